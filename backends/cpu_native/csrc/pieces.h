/* Arrays taken piece by piece, from the beginning or from the end. */
#ifndef FLAMBEAU_PIECES_H
#define FLAMBEAU_PIECES_H

#include "native.h"

/* Whether this call begins at the end of its arrays: each second one of a thread does.  What follows reads
   what was written last, or the operands again, and a call that begins where the one before ended finds
   lines in the second cache that would be gone when it came to them (docs/design/native.md has the figures). */
int turn(void);

/* Bytes of all arrays of a call from which on too little of them stays in that cache: the processor foresees
   less of what goes backward. */
#define TURNED (3 << 20)

static inline int goes_back(int64_t bytes) { return bytes <= TURNED && turn(); }

/* [begin, end) in pieces of `length`, whose results begin at cache lines but for the first. */
typedef struct {
    int64_t begin, end, origin, length, count;
    int is_backward;
} Pieces;

typedef struct {
    int64_t begin, end;
} Piece;

/* `out` is of elements of `size` bytes, or NULL if where it lies is all the same. */
static inline Pieces pieces_of(const void *out, int64_t size, int64_t begin, int64_t end, int64_t length,
                               int is_backward) {
    const int64_t askew = (int64_t)(((uintptr_t)out + (uintptr_t)(begin * size)) & 63) / size;
    const int64_t origin = end - begin <= length ? begin : begin - askew;
    return (Pieces){begin, end, origin, length, (end - origin + length - 1) / length, is_backward};
}

static inline Piece piece_of(const Pieces *all, int64_t number) {
    const int64_t place = all->is_backward ? all->count - 1 - number : number;
    const int64_t begin = all->origin + place * all->length, end = begin + all->length;
    return (Piece){begin < all->begin ? all->begin : begin, end < all->end ? end : all->end};
}

#endif
