/* Instructions of programs that go over rows together (row_passes.c). */
#ifndef FLAMBEAU_ROW_PASSES_H
#define FLAMBEAU_ROW_PASSES_H

#include "program.h"

/* The operands of a pass: rows x with a value each and a second one, y and z beside them, or one row of these for
   all, where the function of x goes, or NULL, and the result. */
struct Pass {
    const float *x, *values, *seconds, *y, *z;
    float *between, *out;
    int64_t rows, columns;
    int repeats_y, repeats_z;
    double divisor;
};

/* Puts passes in the place of instructions that one does together, where the processor has them. */
void join_rows(Program *p);

#endif
