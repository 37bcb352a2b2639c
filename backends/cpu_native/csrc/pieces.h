/* Arrays taken piece by piece, from the beginning or from the end. */
#ifndef FLAMBEAU_PIECES_H
#define FLAMBEAU_PIECES_H

#include "native.h"

/* Whether this call begins at the end of its arrays: each second one of a thread does.  What follows reads
   what was written last, or the operands again, and a call that begins where the one before ended finds
   lines in the second cache that would be gone when it came to them (docs/design/native.md has the figures). */
int turn(void);

/* What the processor foresees of an array ends with a piece that others precede: pieces are as large as leaves
   SEVERAL of them, up to MOST_UNITS. */
#define SEVERAL 16
#define MOST_UNITS 16

/* Of [begin, end) in pieces of `length`, whose results begin at cache lines but for the first. */
typedef struct {
    int64_t begin, end, origin, length, count;
    int is_backward;
} Pieces;

typedef struct {
    int64_t begin, end;
} Piece;

/* `out` is of elements of `size` bytes, or NULL if where it lies is all the same; a piece has one or more times `unit`, but for the first and the last. */
static inline Pieces pieces_of(const void *out, int64_t size, int64_t begin, int64_t end, int64_t unit,
                               int is_backward) {
    const int64_t units = (end - begin) / (SEVERAL * unit);
    const int64_t length = unit * (units < 1 ? 1 : units > MOST_UNITS ? MOST_UNITS : units);
    const int64_t askew = (int64_t)(((uintptr_t)out + (uintptr_t)(begin * size)) & 63) / size;
    const int64_t origin = end - begin <= length ? begin : begin - askew;
    return (Pieces){begin, end, origin, length, (end - origin + length - 1) / length, is_backward};
}

static inline Piece piece_of(const Pieces *all, int64_t number) {
    const int64_t place = all->is_backward ? all->count - 1 - number : number;
    const int64_t begin = all->origin + place * all->length, end = begin + all->length;
    return (Piece){begin < all->begin ? all->begin : begin, end < all->end ? end : all->end};
}

/* Elements from `i` on to the end of the piece or, with its cache lines, of the unit: a power of two. */
static inline int64_t unit_from(const Pieces *all, const Piece *piece, int64_t i, int64_t unit) {
    const int64_t left = unit - ((i - all->origin) & (unit - 1));
    return piece->end - i < left ? piece->end - i : left;
}

#endif
