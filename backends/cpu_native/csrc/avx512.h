/* The functions of float_math.h for vectors of AVX-512, which has instructions for what takes many
   otherwise: scaling by a power of two, mantissa and exponent, and choosing. */
#ifndef FLAMBEAU_AVX512_H
#define FLAMBEAU_AVX512_H

#include "tables.h"
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

/* a / b for normal b: one step of Newton's method from 14 bits on. */
FORCED F quotient_v(F a, F b) {
    F inverse = _mm512_rcp14_ps(b), y = a * inverse;
    return MULTIPLY_ADD(_mm512_fnmadd_ps(y, b, a), inverse, y);
}

FORCED F scaled_normal_v(F p, F k) { return _mm512_scalef_ps(p, k); }
FORCED F signed_v(F y, F x) { return _mm512_xor_ps(y, _mm512_and_ps(x, C(-0.0f))); }
FORCED __mmask16 is_odd_v(F k) {
    return _mm512_test_epi32_mask(_mm512_cvtps_epi32(k), _mm512_set1_epi32(1));
}
FORCED F turned_v(F y, F k) {
    __m512i two = _mm512_and_epi32(_mm512_cvtps_epi32(k), _mm512_set1_epi32(2));
    return _mm512_xor_ps(y, _mm512_castsi512_ps(_mm512_slli_epi32(two, 30)));
}

#define BY_TABLE
FORCED F looked_up(const float *table, __m512i index) {
    return _mm512_permutexvar_ps(index, _mm512_loadu_ps(table));
}
FORCED F looked_up_in_two(const float *table, __m512i index) {
    return _mm512_permutex2var_ps(_mm512_loadu_ps(table), index, _mm512_loadu_ps(table + 16));
}

/* x = k log 2 + r with k a multiple of 1/16, whose fraction is looked up. */
FORCED F exp_v(F x) {
    F bounded = BETWEEN(x, C(-104.0f), C(89.0f));
    F shifted = MULTIPLY_ADD(bounded, C(1.44269504f), C(786432.0f)); /* the last digit counts 1/16 */
    F k = shifted - C(786432.0f), power = looked_up(EXP_TABLE, _mm512_castps_si512(shifted));
    F r = MULTIPLY_ADD(k, C(-0.693359375f), bounded);
    r = MULTIPLY_ADD(k, C(2.12194440e-4f), r);
    F p = MULTIPLY_ADD(C(0.16667060554f), r, C(0.50001651049f));
    p = MULTIPLY_ADD(p * r, r, r);
    return _mm512_scalef_ps(MULTIPLY_ADD(power, p, power), k);
}

/* The same of x log 2: powers of two are exact. */
FORCED F exp2_v(F x) {
    F bounded = BETWEEN(x, C(-152.0f), C(129.0f));
    F shifted = bounded + C(786432.0f), k = shifted - C(786432.0f);
    F r = (bounded - k) * C(0.693147181f), power = looked_up(EXP_TABLE, _mm512_castps_si512(shifted));
    F p = MULTIPLY_ADD(C(0.16667060554f), r, C(0.50001651049f));
    p = MULTIPLY_ADD(p * r, r, r);
    return _mm512_scalef_ps(MULTIPLY_ADD(power, p, power), k);
}

/* log(x) = k log 2 + log c + log(1 + f), x = (1 + f) c 2^k.  The first two are summed exactly.  At zeros
   and infinity, k and both parts of the sum are infinite; negative numbers have a NaN for mantissa. */
FORCED F log_v(F x) {
    F m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
    F k = _mm512_getexp_ps(x) - _mm512_getexp_ps(m);
    __m512i index = _mm512_srli_epi32(_mm512_castps_si512(m), 18);
    F f = MULTIPLY_ADD(m, looked_up_in_two(LOG_INVERSES, index), C(-1.0f));
    F p = MULTIPLY_ADD(C(1.8868848681e-1f), f, C(-2.5007480383e-1f));
    p = MULTIPLY_ADD(p, f, C(3.3334431052e-1f));
    p = MULTIPLY_ADD(p, f, C(-0.5f));
    F large = MULTIPLY_ADD(k, C(0.693115234375f), looked_up_in_two(LOG_TABLE, index));
    F small = MULTIPLY_ADD(k, C(3.1946184945e-5f), f);
    return large + MULTIPLY_ADD(f * f, p, small);
}

/* The polynomial whose coefficients are `table`. */
#define POLYNOMIAL(table, index, d)                                                 \
    F p = looked_up_in_two((table)[5], index);                                      \
    p = MULTIPLY_ADD(p, d, looked_up_in_two((table)[4], index));                    \
    p = MULTIPLY_ADD(p, d, looked_up_in_two((table)[3], index));                    \
    p = MULTIPLY_ADD(p, d, looked_up_in_two((table)[2], index));                    \
    p = MULTIPLY_ADD(p, d, looked_up_in_two((table)[1], index));                    \
    p = MULTIPLY_ADD(p, d, looked_up_in_two((table)[0], index))

FORCED F tanh_v(F x) {
    F t = _mm512_min_ps(C(9.02f), MAGNITUDE(x)), least = _mm512_max_ps(C(0.124999993f), t);
    __m512i index = _mm512_srli_epi32(_mm512_castps_si512(least), 21);
    F d = t - looked_up_in_two(TANH_TABLE[0], index);
    POLYNOMIAL(TANH_TABLE + 1, index, d);
    return signed_v(p, x);
}

FORCED F gelu_v(F x) {
    F bounded = BETWEEN(x, C(-6.0f), C(5.8f));
    F shifted = MULTIPLY_ADD(bounded, C(2.66666667f), C(12582912.0f)); /* the last digit counts 3/8 */
    F d = MULTIPLY_ADD(shifted - C(12582912.0f), C(-0.375f), bounded);
    __m512i index = _mm512_castps_si512(shifted);
    POLYNOMIAL(NORMAL_TABLE, index, d);
    return x * p;
}

#include "float_math.h"

#undef BY_TABLE
#undef POLYNOMIAL
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

/* In this order: of two NaN the first is the result, and compilers exchange what commutes. */
#define IN_ORDER(name, instruction)                                                \
    static inline __attribute__((always_inline)) AVX512 __m512 name##_in_order(    \
        __m512 g, __m512 x) {                                                      \
        __m512 found;                                                              \
        __asm__(instruction " %2, %1, %0" : "=v"(found) : "v"(g), "vm"(x));        \
        return found;                                                              \
    }
IN_ORDER(add, "vaddps")
IN_ORDER(mul, "vmulps")

static inline int has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#else
#define HAS_AVX512 0
#endif
#endif
