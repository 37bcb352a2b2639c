/* Softmax and its family over rows; those of float32 by vectors (vector_rows.h). */
#ifndef FLAMBEAU_SOFTMAX_ROWS_H
#define FLAMBEAU_SOFTMAX_ROWS_H

#include "vector_rows.h"

/* log_softmax of rows (activation.c). */
void log_softmax_rows_f32(float *out, const float *a, int64_t rows, int64_t n);
void log_softmax_rows_f64(double *out, const double *a, int64_t rows, int64_t n);

#if HAS_AVX512
#define MOST 16 /* rows whose logarithms are taken together */

/* The greatest of a row, which few vectors keep. */
INLINE AVX512 float greatest_of(__m512 *held, const float *a, int64_t vectors, __mmask16 rest, int few) {
    const __m512 lowest = _mm512_set1_ps(-INFINITY);
    __m512 most = lowest;
    __mmask16 nan = 0;
    OVER_ROW(const __m512 x = _mm512_mask_loadu_ps(lowest, lanes, a + 16 * k); HOLD(held, x);
             most = _mm512_max_ps(x, most); nan |= _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q););
    return nan ? NAN : _mm512_reduce_max_ps(most);
}

/* The sum of exp(a - top); the terms stay in `held` or go to `out`, if there are such. */
INLINE AVX512 float exp_sum_of(__m512 *held, float *out, const float *a, float top, int64_t vectors, __mmask16 rest,
                               int few) {
    __m512 total = _mm512_setzero_ps();
    OVER_ROW(const __m512 e = exp_v(HELD(held, ROW_LOAD(a)) - _mm512_set1_ps(top));
             if (few) HOLD(held, e); else if (out != NULL) ROW_STORE(out, e);
             total = _mm512_mask_add_ps(total, lanes, total, e););
    return _mm512_reduce_add_ps(total);
}

INLINE AVX512 void softmax_step(float *out, const float *a, int64_t rows, int64_t n, const int few) {
    VECTORS_OF(n);
    __m512 held[FEW];
    for (; rows > 0; rows--, a += n, out += n) {
        const float top = greatest_of(held, a, vectors, rest, few);
        const __m512 scale = _mm512_set1_ps(1 / exp_sum_of(held, out, a, top, vectors, rest, few));
        OVER_ROW(ROW_STORE(out, HELD(held, ROW_LOAD(out)) * scale););
    }
}

/* The greatest of each of some rows, and the logarithms of the sums of exp(a - shift). */
INLINE AVX512 void logs_of_sums(float *top, float *logs, const float *a, int64_t rows, int64_t n, int is_finite,
                                const int few) {
    VECTORS_OF(n);
    __m512 held[FEW];
    float sums[MOST] = {0};
    for (int64_t i = 0; i < rows; i++) {
        const float found = greatest_of(held, a + i * n, vectors, rest, few);
        top[i] = is_finite && found - found != 0 ? 0 : found;
        sums[i] = exp_sum_of(held, NULL, a + i * n, top[i], vectors, rest, few);
    }
    _mm512_storeu_ps(logs, log_v(_mm512_loadu_ps(sums)));
}

/* The logarithm is taken off last: top + logarithm rounds to top for a large one. */
INLINE AVX512 void log_softmax_step(float *out, const float *a, int64_t rows, int64_t n, const int few) {
    VECTORS_OF(n);
    float top[MOST], logs[MOST];
    for (int64_t start = 0; start < rows; start += MOST) {
        const int64_t some = rows - start < MOST ? rows - start : MOST;
        logs_of_sums(top, logs, a, some, n, 0, few);
        for (int64_t i = 0; i < some; i++, a += n, out += n) {
            const __m512 m = _mm512_set1_ps(top[i]), log = _mm512_set1_ps(logs[i]);
            OVER_ROW(ROW_STORE(out, ROW_LOAD(a) - m - log););
        }
    }
}

INLINE AVX512 void logsumexp_step(float *out, const float *a, int64_t rows, int64_t n, const int few) {
    float top[MOST], logs[MOST];
    for (int64_t start = 0; start < rows; start += MOST) {
        const int64_t some = rows - start < MOST ? rows - start : MOST;
        logs_of_sums(top, logs, a + start * n, some, n, 1, few);
        for (int64_t i = 0; i < some; i++) out[start + i] = logs[i] + top[i];
    }
}

INLINE AVX512 void softmax_backward_step(float *out, const float *g, const float *y, int64_t rows, int64_t n,
                                         const int few) {
    VECTORS_OF(n);
    __m512 grads[FEW], results[FEW];
    for (; rows > 0; rows--, g += n, y += n, out += n) {
        __m512 dot = _mm512_setzero_ps();
        OVER_ROW(const __m512 p = ROW_LOAD(g); const __m512 q = ROW_LOAD(y); HOLD(grads, p); HOLD(results, q);
                 dot += p * q;);
        const __m512 sum = _mm512_set1_ps(_mm512_reduce_add_ps(dot));
        OVER_ROW(ROW_STORE(out, HELD(results, ROW_LOAD(y)) * (HELD(grads, ROW_LOAD(g)) - sum)););
    }
}

INLINE AVX512 void log_softmax_backward_step(float *out, const float *g, const float *y, int64_t rows, int64_t n,
                                             const int few) {
    VECTORS_OF(n);
    __m512 grads[FEW];
    for (; rows > 0; rows--, g += n, y += n, out += n) {
        __m512 total = _mm512_setzero_ps();
        OVER_ROW(const __m512 p = ROW_LOAD(g); HOLD(grads, p); total += p;);
        const __m512 sum = _mm512_set1_ps(_mm512_reduce_add_ps(total));
        OVER_ROW(ROW_STORE(out, HELD(grads, ROW_LOAD(g)) - exp_v(ROW_LOAD(y)) * sum););
    }
}
#endif

#endif
