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

/* rows @ weightᵀ + bias of float32 matrices without gaps that are not empty, the weight copied in panels; there
   with AVX-512 only. */
void multiply_rows(const Args *args, float *out, const float *a, const float *weight, const float *bias,
                   int64_t rows, int64_t columns, int64_t depth);

#endif
