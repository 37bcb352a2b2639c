/* The functions of float_math.h for vectors of AVX-512, which has instructions for what takes many
   otherwise: scaling by a power of two, mantissa and exponent, and choosing. */
#ifndef FLAMBEAU_AVX512_H
#define FLAMBEAU_AVX512_H

#include "vector_math.h"

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)
#define HAS_AVX512 1
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma")))
#define FORCED static inline __attribute__((always_inline)) AVX512
#define F __m512
#define FN(name) name##_v
#define C(x) _mm512_set1_ps(x)
#define MULTIPLY_ADD _mm512_fmadd_ps
#define NEAREST(x) _mm512_roundscale_ps(x, 8)
#define QUOTIENT quotient_v
#define MAGNITUDE _mm512_abs_ps
#define LESS(a, b) _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ)
#define CHOSEN(condition, a, b) _mm512_mask_blend_ps(condition, b, a)
/* Both return their second operand if one is a NaN. */
#define BETWEEN(x, low, high) _mm512_max_ps(low, _mm512_min_ps(high, x))

/* a / b for normal b, and 1 / sqrt(x) for any x: one step of Newton's method from 14 bits on. */
FORCED F quotient_v(F a, F b) {
    F inverse = _mm512_rcp14_ps(b), y = a * inverse;
    return MULTIPLY_ADD(_mm512_fnmadd_ps(y, b, a), inverse, y);
}
FORCED F rsqrt_v(F x) {
    F y = _mm512_rsqrt14_ps(x), step = _mm512_fnmadd_ps(x * y, y, C(1.0f));
    /* At 0 and infinity, y is right and the step is none. */
    return _mm512_mask_blend_ps(_mm512_fpclass_ps_mask(y, 0x1E), MULTIPLY_ADD(C(0.5f) * y, step, y), y);
}

FORCED F scaled_v(F p, F k) { return _mm512_scalef_ps(p, k); }
FORCED F scaled_normal_v(F p, F k) { return _mm512_scalef_ps(p, k); }
FORCED F mantissa_v(F x, F *k) {
    F m = _mm512_getmant_ps(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan), e = _mm512_getexp_ps(x);
    __mmask16 large = _mm512_cmp_ps_mask(m, C(1.41421354f), _CMP_GE_OQ);
    *k = _mm512_mask_add_ps(e, large, e, C(1.0f));
    return _mm512_mask_mul_ps(m, large, m, C(0.5f));
}
/* At zeros and infinity the exponent is the logarithm; a mantissa of less than zero is a NaN. */
FORCED F log_edges_v(F x, F k, F y) {
    return CHOSEN(_mm512_fpclass_ps_mask(x, 0x0E), k, y);
}
FORCED F signed_v(F y, F x) { return _mm512_xor_ps(y, _mm512_and_ps(x, C(-0.0f))); }
FORCED __mmask16 is_odd_v(F k) {
    return _mm512_test_epi32_mask(_mm512_cvtps_epi32(k), _mm512_set1_epi32(1));
}
FORCED F turned_v(F y, F k) {
    __m512i two = _mm512_and_epi32(_mm512_cvtps_epi32(k), _mm512_set1_epi32(2));
    return _mm512_xor_ps(y, _mm512_castsi512_ps(_mm512_slli_epi32(two, 30)));
}

#include "float_math.h"

#undef FORCED
#undef F
#undef FN
#undef C
#undef MULTIPLY_ADD
#undef NEAREST
#undef QUOTIENT
#undef MAGNITUDE
#undef LESS
#undef CHOSEN
#undef BETWEEN

static inline int has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#else
#define HAS_AVX512 0
#endif
#endif
