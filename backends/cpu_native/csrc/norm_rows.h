/* Layer and group normalisation of rows of float32 by vectors (vector_rows.h). */
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

/* Elements whose sums are taken in float, before these go to double. */
#define SOME 4096

/* Two sums over n elements, of x and of g. */
#define SUMS_V(name, first, second)                                                                  \
    INLINE AVX512 void name(const float *x, const float *g, int64_t n, __m512 m, double *sums) {     \
        const int few = 0;                                                                           \
        (void)m, (void)g;                                                                            \
        sums[0] = sums[1] = 0;                                                                       \
        for (; n > 0; n -= SOME, x += SOME, g += SOME) {                                             \
            VECTORS_OF(n < SOME ? n : SOME);                                                         \
            __m512 one[4] = {0}, other[4] = {0};                                                     \
            OVER_ROW(first; second;);                                                                \
            sums[0] += SUM_OF(one);                                                                  \
            sums[1] += SUM_OF(other);                                                                \
        }                                                                                            \
    }
SUMS_V(total_v, one[turn] += ROW_LOAD(x), (void)other)
SUMS_V(squares_v, const __m512 d = _mm512_maskz_sub_ps(lanes, ROW_LOAD(x), m); one[turn] += d * d, (void)other)
SUMS_V(slopes_v, const __m512 h = ROW_LOAD(g); one[turn] += h,
       other[turn] += h *_mm512_maskz_sub_ps(lanes, ROW_LOAD(x), m))
#undef SUMS_V
#undef SOME

AVX512 static void group_norm_vectors(const Norm_f32 *c, int64_t begin, int64_t end) {
    const int64_t n = c->n, each = c->each, count = each * n;
    const int few = 0;
    if (count <= 0) return;
    VECTORS_OF(n);
    for (int64_t row = begin; row < end; row++) {
        const float *x = c->x + row * count;
        float *out = c->out + row * count;
        double sums[2];
        total_v(x, x, count, _mm512_setzero_ps(), sums);
        const float mean = (float)(sums[0] / (double)count);
        const __m512 m = _mm512_set1_ps(mean);
        squares_v(x, x, count, m, sums);
        const float invstd = (float)(1 / sqrt(sums[0] / (double)count + c->eps));
        c->mean[row] = mean;
        c->invstd[row] = invstd;
        const int64_t first = row % c->groups * each;
        for (int64_t i = first; i < first + each; i++, x += n, out += n) {
            const __m512 scale = _mm512_set1_ps(c->weight != NULL ? invstd * c->weight[i] : invstd);
            const __m512 shift = _mm512_set1_ps(c->bias != NULL ? c->bias[i] : 0);
            OVER_ROW(ROW_STORE(out, (ROW_LOAD(x) - m) * scale + shift););
        }
    }
}

AVX512 static void group_norm_backward_vectors(const Norm_f32 *c, int64_t begin, int64_t end) {
    const int64_t n = c->n, each = c->each, count = each * n;
    const int few = 0;
    if (count <= 0) return;
    VECTORS_OF(n);
    for (int64_t row = begin; row < end; row++) {
        const float *x = c->x + row * count, *g = c->g + row * count;
        float *out = c->out + row * count;
        double *sums = c->sums + 2 * row * each;
        const float invstd = c->invstd[row];
        const __m512 m = _mm512_set1_ps(c->mean[row]), by = _mm512_set1_ps(invstd);
        const float *weight = c->weight != NULL ? c->weight + row % c->groups * each : NULL;
        double sum = 0, dot = 0;
        for (int64_t i = 0; i < each; i++) {
            double *own = sums + 2 * i;
            slopes_v(x + i * n, g + i * n, n, m, own);
            const double factor = weight != NULL ? (double)weight[i] : 1;
            own[1] *= (double)invstd;
            sum += factor * own[0];
            dot += factor * own[1];
        }
        const __m512 centre = _mm512_set1_ps((float)(sum / (double)count));
        const __m512 slope = _mm512_set1_ps((float)(dot / (double)count * (double)invstd));
        for (int64_t i = 0; i < each; i++, x += n, g += n, out += n) {
            const __m512 factor = _mm512_set1_ps(weight != NULL ? weight[i] : 1);
            OVER_ROW(ROW_STORE(out, by * (ROW_LOAD(g) * factor - centre - (ROW_LOAD(x) - m) * slope)););
        }
    }
}
#endif

#endif
