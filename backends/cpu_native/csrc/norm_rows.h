/* Layer normalisation of rows of float32 by vectors (vector_rows.h). */
#ifndef FLAMBEAU_NORM_ROWS_H
#define FLAMBEAU_NORM_ROWS_H

#include "vector_rows.h"

#if HAS_AVX512
/* Sums of four vectors in turn: an addition need not wait for the one before. */
#define IN_TURN(sum, found) sum[turn] += found
#define SUM_OF(sum) _mm512_reduce_add_ps((sum[0] + sum[1]) + (sum[2] + sum[3]))

INLINE AVX512 void layer_norm_rows(const Norm_f32 *c, int64_t begin, int64_t end, const int few) {
    const int64_t n = c->n;
    VECTORS_OF(n);
    const float *x = c->x + begin * n, *weight = c->weight, *bias = c->bias;
    float *out = c->out + begin * n;
    __m512 held[FEW];
    for (int64_t row = begin; row < end; row++, x += n, out += n) {
        __m512 sum[4] = {0}, squares[4] = {0};
        OVER_ROW(const __m512 found = ROW_LOAD(x); HOLD(held, found); IN_TURN(sum, found););
        const float mean = SUM_OF(sum) / (float)n;
        const __m512 m = _mm512_set1_ps(mean);
        OVER_ROW(const __m512 d = _mm512_maskz_sub_ps(lanes, HELD(held, ROW_LOAD(x)), m); HOLD(held, d); IN_TURN(squares, d * d););
        const float scale = 1 / sqrtf(SUM_OF(squares) / (float)n + (float)c->eps);
        const __m512 by = _mm512_set1_ps(scale);
        c->mean[row] = mean;
        c->invstd[row] = scale;
        OVER_ROW(__m512 found = HELD(held, ROW_LOAD(x) - m) * by;
                 if (weight != NULL) found *= ROW_LOAD(weight);
                 if (bias != NULL) found += ROW_LOAD(bias);
                 ROW_STORE(out, found););
    }
}

/* The gradient of rows by x, whose sums for weight and bias are added to those of `over`. */
INLINE AVX512 void layer_norm_backward_rows(const Norm_f32 *c, float *over, int64_t begin, int64_t end, const int few) {
    const int64_t n = c->n;
    VECTORS_OF(n);
    const float *x = c->x + begin * n, *g = c->g + begin * n, *weight = c->weight;
    float *out = c->out + begin * n;
    __m512 normed[FEW], slopes[FEW];
    for (int64_t row = begin; row < end; row++, x += n, g += n, out += n) {
        const __m512 m = _mm512_set1_ps(c->mean[row]), by = _mm512_set1_ps(c->invstd[row]);
        __m512 sum[4] = {0}, dot[4] = {0};
        OVER_ROW(const __m512 h = (ROW_LOAD(x) - m) * by; const __m512 own = ROW_LOAD(g);
                 const __m512 p = weight != NULL ? (__m512)(own * ROW_LOAD(weight)) : own;
                 HOLD(normed, h); HOLD(slopes, p);
                 IN_TURN(sum, p); IN_TURN(dot, _mm512_maskz_mul_ps(lanes, p, h));
                 ROW_STORE(over, ROW_LOAD(over) + own * h);
                 ROW_STORE(over + n, ROW_LOAD(over + n) + own););
        const __m512 centre = _mm512_set1_ps(SUM_OF(sum) / (float)n), slope = _mm512_set1_ps(SUM_OF(dot) / (float)n);
        OVER_ROW(const __m512 h = HELD(normed, (ROW_LOAD(x) - m) * by);
                 const __m512 p = HELD(slopes, weight != NULL ? (__m512)(ROW_LOAD(g) * ROW_LOAD(weight)) : ROW_LOAD(g));
                 ROW_STORE(out, by * (p - centre - h * slope)););
    }
}
#endif

#endif
