/* Products with a packed matrix, for kernels that make many of them. */
#ifndef FLAMBEAU_PRODUCT_H
#define FLAMBEAU_PRODUCT_H

#include "native.h"

#define PANEL_BYTES 64 /* a row of a panel: two vectors of AVX2, four of NEON */

void multiply_packed_f32(const Args *k, float *out, const float *a, const float *packed, int64_t rows,
                         int64_t depth, int64_t columns);
void multiply_packed_f64(const Args *k, double *out, const double *a, const double *packed, int64_t rows,
                         int64_t depth, int64_t columns);

#endif
