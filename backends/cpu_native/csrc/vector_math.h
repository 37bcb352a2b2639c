/* Elementary functions without branches or calls, so that loops over them become vectors.

   Their accuracy stands in docs/design/native.md, and tests measure it.  NaN and infinities as in C. */
#ifndef FLAMBEAU_VECTOR_MATH_H
#define FLAMBEAU_VECTOR_MATH_H

#include "native.h"

INLINE float bits_to_float(int32_t i) {
    float f;
    memcpy(&f, &i, sizeof f);
    return f;
}

INLINE int32_t float_to_bits(float f) {
    int32_t i;
    memcpy(&i, &f, sizeof i);
    return i;
}

INLINE double bits_to_double(int64_t i) {
    double f;
    memcpy(&f, &i, sizeof f);
    return f;
}

INLINE int64_t double_to_bits(double f) {
    int64_t i;
    memcpy(&i, &f, sizeof i);
    return i;
}

/* The float functions, of one number. */
#define F float
#define FN(name) name##_f
#define FORCED INLINE
#define C(x) (x)
#define MULTIPLY_ADD fmaf
#define NEAREST nearbyintf
#define QUOTIENT(a, b) ((a) / (b))
#define MAGNITUDE fabsf
#define LESS(a, b) ((a) < (b))
#define CHOSEN(condition, a, b) ((condition) ? (a) : (b))
#define BETWEEN(x, low, high) CHOSEN(LESS(high, x), high, CHOSEN(LESS(x, low), low, x))

/* p 2^k in two factors: neither overflows before the result does, which may be subnormal.  A NaN has
   any exponent here and stays a NaN: unsigned, since that is no overflow. */
INLINE float scaled_f(float p, float k) {
    int32_t n = (int32_t)k, half = n >> 1;
    uint32_t low = (uint32_t)half + 127, high = (uint32_t)n - (uint32_t)half + 127;
    return p * bits_to_float((int32_t)(low << 23)) * bits_to_float((int32_t)(high << 23));
}

/* The same where 2^k and the result are normal. */
INLINE float scaled_normal_f(float p, float k) {
    return p * bits_to_float((int32_t)(((uint32_t)(int32_t)k + 127) << 23));
}

/* x = m 2^k, m in [sqrt 1/2, sqrt 2), for positive x. */
INLINE float mantissa_f(float x, float *k) {
    float scaled = x < 1.17549435e-38f ? x * 33554432.0f : x;
    int32_t offset = (int32_t)((uint32_t)float_to_bits(scaled) - 0x3F3504F3u);
    *k = (float)(offset >> 23) - (x < 1.17549435e-38f ? 25.0f : 0.0f);
    return bits_to_float((offset & 0x7FFFFF) + 0x3F3504F3);
}

/* log of what has no mantissa in `mantissa_f`; otherwise y. */
INLINE float log_edges_f(float x, float k, float y) {
    (void)k;
    y = x == 0.0f ? -INFINITY : y;
    y = x == INFINITY ? x : y;
    return x < 0.0f || x != x ? NAN : y;
}

/* y with its sign turned if x is below zero, or minus zero. */
INLINE float signed_f(float y, float x) {
    return bits_to_float(float_to_bits(y) ^ (float_to_bits(x) & INT32_MIN));
}

INLINE int is_odd_f(float k) { return (int32_t)k & 1; }
/* y with its sign turned in the third and fourth quadrant. */
INLINE float turned_f(float y, float k) {
    return bits_to_float(float_to_bits(y) ^ (int32_t)((uint32_t)((int32_t)k & 2) << 30));
}

#include "float_math.h"
#undef F
#undef FN
#undef FORCED
#undef C
#undef MULTIPLY_ADD
#undef NEAREST
#undef QUOTIENT
#undef MAGNITUDE
#undef LESS
#undef CHOSEN
#undef BETWEEN

INLINE double exp_d(double x) {
    double clamped = x > 710.0 ? 710.0 : x;
    clamped = clamped < -746.0 ? -746.0 : clamped;
    double k = nearbyint(clamped * 1.4426950408889634);
    double r = fma(k, -0.693147180369123816490, clamped);
    r = fma(k, -1.90821492927058770002e-10, r);
    /* Taylor to degree 13: the remainder is below 2^-57 on |r| <= log(2)/2. */
    double p = 1.6059043836821613e-10;
    p = fma(p, r, 2.0876756987868099e-9);
    p = fma(p, r, 2.505210838544172e-8);
    p = fma(p, r, 2.755731922398589e-7);
    p = fma(p, r, 2.7557319223985893e-6);
    p = fma(p, r, 2.48015873015873e-5);
    p = fma(p, r, 1.984126984126984e-4);
    p = fma(p, r, 1.388888888888889e-3);
    p = fma(p, r, 8.333333333333333e-3);
    p = fma(p, r, 4.1666666666666664e-2);
    p = fma(p, r, 1.6666666666666666e-1);
    p = fma(p, r, 0.5);
    p = fma(p * r, r, r) + 1.0;
    int64_t n = (int32_t)k, half = n >> 1;
    uint64_t low = (uint64_t)half + 1023, high = (uint64_t)n - (uint64_t)half + 1023;
    return p * bits_to_double((int64_t)(low << 52)) * bits_to_double((int64_t)(high << 52));
}

/* log(x / 2^shift) = e log 2 + log m, m in [sqrt 1/2, sqrt 2), by the series of 2 atanh((m-1)/(m+1)), of
   normal numbers above 0. */
INLINE double log_normal_d(double x, double shift) {
    int64_t bits = double_to_bits(x), offset = bits - 0x3FE6A09E667F3BCD;
    int64_t e = offset >> 52;
    double m = bits_to_double((offset & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD);
    double k = (double)(int32_t)e - shift;
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 1.0 / 23;
    p = fma(p, z, 1.0 / 21);
    p = fma(p, z, 1.0 / 19);
    p = fma(p, z, 1.0 / 17);
    p = fma(p, z, 1.0 / 15);
    p = fma(p, z, 1.0 / 13);
    p = fma(p, z, 1.0 / 11);
    p = fma(p, z, 1.0 / 9);
    p = fma(p, z, 1.0 / 7);
    p = fma(p, z, 1.0 / 5);
    p = fma(p, z, 1.0 / 3);
    double y = fma(k, 1.90821492927058770002e-10, 2.0 * s * z * p) + 2.0 * s;
    return fma(k, 0.693147180369123816490, y);
}

INLINE double log_d(double x) {
    int is_small = x < 2.2250738585072014e-308;
    double y = log_normal_d(is_small ? x * 18014398509481984.0 : x, is_small ? 54.0 : 0.0);
    y = x == 0.0 ? -INFINITY : y;
    y = x == INFINITY ? x : y;
    return x < 0.0 || x != x ? NAN : y;
}

/* Near 0 the double form subtracts nothing either. */
INLINE double tanh_d(double x) {
    double t = fabs(x), e = exp_d(2.0 * t);
    double z = x * x, far = copysign(1.0 - 2.0 / (e + 1.0), x);
    /* Lambert's continued fraction x / (1 + z / (3 + z / (5 + ...))), cut at 17 for |x| < 0.55. */
    double c = 15.0 + z / 17.0;
    c = 13.0 + z / c;
    c = 11.0 + z / c;
    c = 9.0 + z / c;
    c = 7.0 + z / c;
    c = 5.0 + z / c;
    c = 3.0 + z / c;
    double near = x / (1.0 + z / c);
    double y = t < 0.55 ? near : far;
    return x != x ? x : y;
}

INLINE double sigmoid_d(double x) {
    double e = exp_d(-fabs(x));
    return (x < 0 ? e : 1.0) / (1.0 + e);
}

#endif
