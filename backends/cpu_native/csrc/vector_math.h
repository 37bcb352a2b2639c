/* Elementary functions without branches or calls, so that loops over them become vectors.

   Accuracy, against correctly rounded values, over all finite float32 arguments (tests measure it):
   exp 1 ulp, log 1 ulp, tanh 2 ulp, erf 2 ulp, sigmoid 2 ulp.  The float64 forms are for
   float64 kernels, within 2 ulp.  NaN and infinities as in C. */
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

/* exp(x) = 2^k exp(r), r = x - k log 2 in two parts (Cody and Waite), exp(r) by a polynomial of
   degree 6 fitted to |r| <= log(2)/2.  The scale is applied in two halves: no intermediate overflows
   before the result does, and results may be subnormal. */
INLINE float exp_f(float x) {
    float clamped = x > 89.0f ? 89.0f : x;
    clamped = clamped < -104.0f ? -104.0f : clamped;
    float k = nearbyintf(clamped * 1.44269504f);
    float r = fmaf(k, -0.693359375f, clamped);
    r = fmaf(k, 2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = fmaf(p, r, 1.3981999507e-3f);
    p = fmaf(p, r, 8.3334519073e-3f);
    p = fmaf(p, r, 4.1665795894e-2f);
    p = fmaf(p, r, 1.6666665459e-1f);
    p = fmaf(p, r, 5.0000001201e-1f);
    p = fmaf(p * r, r, r) + 1.0f;
    /* A NaN has any exponent here and stays a NaN: unsigned, since that is no overflow. */
    int32_t n = (int32_t)k, half = n >> 1;
    uint32_t low = (uint32_t)half + 127, high = (uint32_t)n - (uint32_t)half + 127;
    return p * bits_to_float((int32_t)(low << 23)) * bits_to_float((int32_t)(high << 23));
}

/* The same for -87 < x < 88, where one factor does. */
INLINE float exp_normal_f(float x) {
    float k = nearbyintf(x * 1.44269504f);
    float r = fmaf(k, -0.693359375f, x);
    r = fmaf(k, 2.12194440e-4f, r);
    float p = 1.3981999507e-3f;
    p = fmaf(1.9875691500e-4f, r, p);
    p = fmaf(p, r, 8.3334519073e-3f);
    p = fmaf(p, r, 4.1665795894e-2f);
    p = fmaf(p, r, 1.6666665459e-1f);
    p = fmaf(p, r, 5.0000001201e-1f);
    p = fmaf(p * r, r, r) + 1.0f;
    return p * bits_to_float((int32_t)(((uint32_t)(int32_t)k + 127) << 23));
}

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

/* log(x) = e log 2 + log m, m in [sqrt 1/2, sqrt 2), by the series of 2 atanh((m-1)/(m+1)). */
INLINE double log_d(double x) {
    double scaled = x < 2.2250738585072014e-308 ? x * 18014398509481984.0 : x;
    int64_t bits = double_to_bits(scaled), offset = bits - 0x3FE6A09E667F3BCD;
    int64_t e = offset >> 52;
    double m = bits_to_double((offset & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD);
    double k = (double)(int32_t)e - (x < 2.2250738585072014e-308 ? 54.0 : 0.0);
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
    y = fma(k, 0.693147180369123816490, y);
    y = x == 0.0 ? -INFINITY : y;
    y = x == INFINITY ? x : y;
    return x < 0.0 || x != x ? NAN : y;
}

/* tanh: an odd polynomial near 0, beyond it 1 - 2 / (exp(2|x|) + 1). */
INLINE float tanh_f(float x) {
    float t = fabsf(x), z = x * x;
    float bounded = t > 20.0f ? 20.0f : t;
    float p = -0.00552863726f;
    p = fmaf(p, z, 0.02048332f);
    p = fmaf(p, z, -0.0536929695f);
    p = fmaf(p, z, 0.133308998f);
    p = fmaf(p, z, -0.333332629f);
    float near = fmaf(x * z, p, x);
    float far = copysignf(1.0f - 2.0f / (exp_normal_f(2.0f * bounded) + 1.0f), x);
    return t < 0.65f ? near : far;
}

/* The double form subtracts nothing near 0 either: expm1 by its series where |x| is small. */
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

/* erf: an odd polynomial near 0, beyond it 1 - exp(q(|x|)), q fitted to log erfc on [0.95, 4]. */
INLINE float erf_f(float x) {
    float t = fabsf(x), z = x * x;
    t = t > 4.0f ? 4.0f : t;
    float p = -5.86230961e-4f;
    p = fmaf(p, z, 4.96756373e-3f);
    p = fmaf(p, z, -2.67489161e-2f);
    p = fmaf(p, z, 1.12813228e-1f);
    p = fmaf(p, z, -3.76124463e-1f);
    p = fmaf(p, z, 1.28379142e-1f);
    float near = fmaf(x, p, x);
    float q = 1.92427294e-4f;
    q = fmaf(q, t, -3.00854868e-3f);
    q = fmaf(q, t, 2.20876848e-2f);
    q = fmaf(q, t, -1.03640409e-1f);
    q = fmaf(q, t, -6.37516918e-1f);
    q = fmaf(q, t, -1.27475037e-1f);
    q = fmaf(q, t, -2.44701604e-4f);
    float far = copysignf(1.0f - exp_normal_f(q - t), x);
    return t < 0.95f ? near : far;
}

/* By exp(-|x|), which is exact where the result is small. */
INLINE float sigmoid_f(float x) {
    float e = exp_f(-fabsf(x));
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}
INLINE double sigmoid_d(double x) {
    double e = exp_d(-fabs(x));
    return (x < 0 ? e : 1.0) / (1.0 + e);
}

/* log(1 + e) for 0 <= e <= 1, as 2 atanh(e / (2 + e)): small e keep their digits. */
INLINE float log1p_unit_f(float e) {
    float s = e / (2.0f + e), z = s * s;
    float p = 0.140135794f;
    p = fmaf(p, z, 0.13999318f);
    p = fmaf(p, z, 0.200108635f);
    p = fmaf(p, z, 0.333332064f);
    return 2.0f * fmaf(s * z, p, s);
}

#endif
