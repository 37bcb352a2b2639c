/* Products that other kernels are made of. */
#ifndef FLAMBEAU_PRODUCT_H
#define FLAMBEAU_PRODUCT_H

#include "native.h"

#define PANEL_BYTES 64 /* a row of a panel: two vectors of AVX2, four of NEON */

/* out = a @ b, b packed: for kernels that make many products with it. */
void multiply_packed_f32(const Args *k, float *out, const float *a, const float *packed, int64_t rows,
                         int64_t depth, int64_t columns);
void multiply_packed_f64(const Args *k, double *out, const double *a, const double *packed, int64_t rows,
                         int64_t depth, int64_t columns);

/* out = a @ b + bias of float32 matrices that are not empty, and relu of it; a bias may be NULL.  An element
   of `a` is `down` and `right` from those above it and to its left.  There with AVX-512 only. */
typedef struct {
    float *out;
    const float *a, *b, *bias;
    int64_t rows, columns, depth, out_step, down, right, b_step;
    int b_turned, relu;
} Matrices;

/* On as many threads at most. */
void multiply_matrices(const Matrices *c, int most);

#endif
