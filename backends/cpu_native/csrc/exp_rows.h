/* The greatest of a row, and sums of exponentials less it. */
#ifndef FLAMBEAU_EXP_ROWS_H
#define FLAMBEAU_EXP_ROWS_H

#include "avx512.h"

#define GREATEST(T, S)                                                                             \
    INLINE T greatest_##S(const T *a, int64_t n) {                                                 \
        T m = -(T)INFINITY;                                                                        \
        int64_t nan = 0;                                                                           \
        _Pragma("omp simd reduction(max : m) reduction(| : nan)") for (int64_t i = 0; i < n;       \
                                                                       i++) {                      \
            m = a[i] > m ? a[i] : m;                                                               \
            nan |= a[i] != a[i];                                                                   \
        }                                                                                          \
        return nan ? (T)NAN : m;                                                                   \
    }
GREATEST(float, f32)
GREATEST(double, f64)

/* The sum of exp(a[i] - m); the terms go to `out` if there is one. */
#define EXP_SUM(T, E, name)                                                                        \
    WIDE static T name(T *out, const T *a, int64_t n, T m) {                                       \
        T total = 0;                                                                               \
        if (out == NULL) {                                                                         \
            _Pragma("omp simd reduction(+ : total)") for (int64_t i = 0; i < n; i++) total +=      \
                E(a[i] - m);                                                                       \
            return total;                                                                          \
        }                                                                                          \
        _Pragma("omp simd reduction(+ : total)") for (int64_t i = 0; i < n; i++) {                 \
            T e = E(a[i] - m);                                                                     \
            out[i] = e;                                                                            \
            total += e;                                                                            \
        }                                                                                          \
        return total;                                                                              \
    }
EXP_SUM(float, exp_f, exp_sum_portable)
EXP_SUM(double, exp_d, exp_sum_f64)

#if HAS_AVX512
AVX512 static float exp_sum_v(float *out, const float *a, int64_t n, float m) {
    const __m512 top = _mm512_set1_ps(m);
    __m512 total = _mm512_setzero_ps();
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512 e = exp_v(_mm512_loadu_ps(a + i) - top);
        if (out != NULL) _mm512_storeu_ps(out + i, e);
        total += e;
    }
    if (i < n) {
        const __mmask16 rest = (__mmask16)((1u << (n - i)) - 1);
        __m512 e = exp_v(_mm512_maskz_loadu_ps(rest, a + i) - top);
        if (out != NULL) _mm512_mask_storeu_ps(out + i, rest, e);
        total = _mm512_mask_add_ps(total, rest, total, e);
    }
    return _mm512_reduce_add_ps(total);
}
static inline float exp_sum_f32(float *out, const float *a, int64_t n, float m) {
    return has_avx512() ? exp_sum_v(out, a, n, m) : exp_sum_portable(out, a, n, m);
}
#else
#define exp_sum_f32 exp_sum_portable
#endif
#endif
