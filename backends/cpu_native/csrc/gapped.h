/* Operands with gaps between their rows, or that repeat, read some elements at a time. */
#ifndef FLAMBEAU_GAPPED_H
#define FLAMBEAU_GAPPED_H

#include "arrays.h"
#include "native.h"

#define MOST_GAPPED 3

/* Operands of one shape that have been joined to lines of elements: the last dimension is a line. */
typedef struct {
    int operands, rank; /* of what is left of the shape, at least 1 */
    int64_t itemsize, shape[MOST_RANK]; /* bytes of an item of the first operand, and mostly of all */
    const char *memory[MOST_GAPPED];
    int64_t strides[MOST_GAPPED][MOST_RANK]; /* bytes; of a line's elements they mostly are 0 or side by side */
} Gapped;

/* SPREAD is row-major with lines of any length, whose elements may lie apart. */
typedef enum { ROW_MAJOR, ANY_ORDER, SPREAD } Order;

/* The shape that some operands have together, by `rank` and `shape`, and how they lie in it.  0 of what is not
   read so: other orders of memory, short lines and those with gaps but by SPREAD, and what is not aligned or has no
   elements. */
int read_gapped(Gapped *g, const Array *const *arrays, int count, const Py_ssize_t *itemsizes, Order order, int *rank,
                Py_ssize_t *shape);

/* The same of one operand, whose lines may be of any length and have gaps; `*bytes` are those of its elements, and
   `*repeats` says whether it has more of them than memory. */
int read_one_gapped(Gapped *g, const Array *a, Py_ssize_t itemsize, int64_t *bytes, int *repeats);

/* Copies the elements of one operand to where they lie side by side, in parts. */
void collect_gapped(const Gapped *g, char *to, int threads);

/* How far into an operand, in bytes, the item `first` of a row is. */
int64_t place_in_gapped(const Gapped *g, int operand, int64_t row, int64_t first);

/* Whether the first operand may be written: its elements lie apart from each other, and from those of the second, if
   there is one that is not the same. */
int can_be_written_gapped(const Gapped *g);

/* Calls the kernel, of a result of so large items and of rows that lie side by side, for piece after piece.  If it
   takes operands that repeat, numbers are such.  Without a result the first operand is written. */
void run_gapped(const Gapped *g, Kernel kernel, int takes_numbers, char *out, int64_t size, const double *floats,
                int threads, const char **failure);

/* Copies the second operand to the first, in parts.  0 of arrays whose memory may be shared, and of a first one that
   repeats. */
int copy_gapped(const Gapped *g, int threads);

#endif
