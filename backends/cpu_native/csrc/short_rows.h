/* Short rows turned into columns, some of them at a time: what goes along columns is then as fast for them as
   it is for long ones. */
#ifndef FLAMBEAU_SHORT_ROWS_H
#define FLAMBEAU_SHORT_ROWS_H

#include "native.h"

#define TURNED 16384    /* bytes at a time, which the first cache holds twice */
#define MOST_TURNED 256 /* rows at a time */
#define FEWEST_TURNED 16

/* out[j][i] = a[i][j], of numbers of 1, 4 or 8 bytes. */
void turn_rows(void *out, const void *a, int64_t rows, int64_t columns, size_t size);

/* How many rows of so many bytes are turned at a time, whole vectors of them. */
static inline int64_t rows_at_once(int64_t bytes) {
    const int64_t rows = TURNED / bytes & ~(int64_t)15;
    return rows < MOST_TURNED ? rows : MOST_TURNED;
}

#endif
