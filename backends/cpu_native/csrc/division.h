/* What is left over by division of float32, and the quotient that goes with it; as C's fmodf, to the
   last bit. */
#ifndef FLAMBEAU_DIVISION_H
#define FLAMBEAU_DIVISION_H

#include "vector_math.h"

/* Quotients below this, and what they leave over, are exact to the last digit. */
#define NEAR_QUOTIENT 4194304.0f

INLINE int is_far(float a, float b) {
    const int is_plain = (fabsf(a) < INFINITY) & (fabsf(b) < INFINITY) & (b != 0);
    return is_plain & !(fabsf(a / b) < NEAR_QUOTIENT);
}

/* The rest of n numbers; whether some are left to `far_rest`. */
WIDE static int near_rest(float *rest, const float *a, const float *b, int64_t n) {
    int far = 0;
#pragma omp simd reduction(| : far)
    for (int64_t i = 0; i < n; i++) {
        const float x = a[i], y = b[i], q = truncf(x / y);
        float r = fmaf(-q, y, x);
        /* The quotient may have been rounded up to the next whole number. */
        const float back = r + copysignf(y, x);
        r = (r < 0) != (x < 0) && r != 0 ? back : r;
        r = r == 0 ? copysignf(0, x) : r;
        rest[i] = fabsf(y) == INFINITY && fabsf(x) < INFINITY ? x : r;
        far |= is_far(x, y);
    }
    return far;
}

/* A rest of multiples of the divisor leaves the rest of the divisor: 2^250 of them, 2^200, and so on to
   one, so that quotients stay below 2^51, and every rest has the digits of a float. */
WIDE static void far_rest(float *rest, const float *a, const float *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (!is_far(a[i], b[i])) continue;
        const double y = fabs((double)b[i]);
        double r = fabs((double)a[i]);
        for (double times = 0x1p250; times >= 1; times *= 0x1p-50) {
            const double multiple = y * times;
            if (r < multiple) continue;
            r = fma(-trunc(r / multiple), multiple, r);
            if (r < 0) r += multiple;
        }
        rest[i] = copysignf((float)r, a[i]);
    }
}

/* With the sign of the divisor. */
INLINE float remainder_f(float rest, float b) {
    const float moved = rest + b;
    return rest != 0 && (b < 0) != (rest < 0) ? moved : rest;
}

INLINE float floor_quotient_f(float a, float b, float rest) {
    float q = (a - rest) / b;
    q = rest != 0 && (b < 0) != (rest < 0) ? q - 1 : q;
    const float whole = floorf(q), nearest = q - whole > 0.5f ? whole + 1 : whole;
    const float found = q != 0 ? nearest : copysignf(0, a / b);
    return b == 0 ? a / b : found;
}

#endif
