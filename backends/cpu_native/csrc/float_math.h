/* Elementary functions of F: of one float (vector_math.h), or of a vector of them (avx512.h).

   The file that includes this defines C, which makes an F of a number, and what is not written with
   operators alike for both; and BY_TABLE if it has exp, log, tanh and gelu of its own. */

/* exp(x) = 2^k exp(r), r = x - k log 2 in two parts (Cody and Waite), exp(r) - 1 by a polynomial of
   degree 7 fitted to |r| <= log(2)/2. */
FORCED F FN(expm1_part)(F x, F k) {
    F r = MULTIPLY_ADD(k, C(-0.693359375f), x);
    r = MULTIPLY_ADD(k, C(2.12194440e-4f), r);
    F p = MULTIPLY_ADD(C(1.9875691500e-4f), r, C(1.3981999507e-3f));
    p = MULTIPLY_ADD(p, r, C(8.3334519073e-3f));
    p = MULTIPLY_ADD(p, r, C(4.1665795894e-2f));
    p = MULTIPLY_ADD(p, r, C(1.6666665459e-1f));
    p = MULTIPLY_ADD(p, r, C(5.0000001201e-1f));
    return MULTIPLY_ADD(p * r, r, r);
}
FORCED F FN(exp_part)(F x, F k) { return FN(expm1_part)(x, k) + C(1.0f); }

#ifndef BY_TABLE
FORCED F FN(exp)(F x) {
    F bounded = BETWEEN(x, C(-104.0f), C(89.0f));
    F k = NEAREST(bounded * C(1.44269504f));
    return FN(scaled)(FN(exp_part)(bounded, k), k);
}
#endif

/* The same for -87 < x < 88. */
FORCED F FN(exp_normal)(F x) {
    F k = NEAREST(x * C(1.44269504f));
    return FN(scaled_normal)(FN(exp_part)(x, k), k);
}

/* exp(x) - 1 for x <= 89, of which no digit is lost for small x; the scale is halved, or it overflows. */
FORCED F FN(expm1)(F x) {
    F bounded = BETWEEN(x, C(-20.0f), C(89.0f));
    F k = NEAREST(bounded * C(1.44269504f)), half = FN(scaled_normal)(C(0.5f), k);
    F found = MULTIPLY_ADD(half, FN(expm1_part)(bounded, k), half - C(0.5f));
    return CHOSEN(LESS(MAGNITUDE(x), C(1e-8f)), x, found + found);
}

#ifndef BY_TABLE
/* log(x) = k log 2 + log(1 + f), by a polynomial fitted to sqrt 1/2 <= 1 + f < sqrt 2. */
FORCED F FN(log)(F x) {
    F k, f = FN(mantissa)(x, &k) - C(1.0f), z = f * f;
    F p = MULTIPLY_ADD(C(-7.634544e-02f), f, C(1.2761681e-01f));
    p = MULTIPLY_ADD(p, f, C(-1.3160215e-01f));
    p = MULTIPLY_ADD(p, f, C(1.4201748e-01f));
    p = MULTIPLY_ADD(p, f, C(-1.6623354e-01f));
    p = MULTIPLY_ADD(p, f, C(2.0001227e-01f));
    p = MULTIPLY_ADD(p, f, C(-2.5000823e-01f));
    p = MULTIPLY_ADD(p, f, C(3.333333e-01f));
    F y = MULTIPLY_ADD(k, C(-2.12194440e-4f), p * f * z);
    y = MULTIPLY_ADD(C(-0.5f), z, y) + f;
    return FN(log_edges)(x, k, MULTIPLY_ADD(k, C(0.693359375f), y));
}
#endif

/* sin(x + turn pi/2) for 0 <= x <= FURTHEST: x less k pi/2, whose first two parts have so few digits
   that their subtraction is exact, then the polynomial of the quadrant. */
#define FURTHEST 8192.0f
FORCED F FN(wave)(F x, float turn) {
    F k = NEAREST(x * C(0.636619772f));
    F r = MULTIPLY_ADD(k, C(-1.5703125f), x);
    r = MULTIPLY_ADD(k, C(-4.837512969970703125e-4f), r);
    r = MULTIPLY_ADD(k, C(-7.549790126404332e-08f), r);
    r = MULTIPLY_ADD(k, C(1.7151245100058819e-15f), r);
    F z = r * r, quadrant = k + C(turn);
    F s = MULTIPLY_ADD(C(-1.9515295891e-4f), z, C(8.3321608736e-3f));
    s = MULTIPLY_ADD(s, z, C(-1.6666654611e-1f));
    s = MULTIPLY_ADD(s * z, r, r);
    F c = MULTIPLY_ADD(C(2.443315711809948e-5f), z, C(-1.388731625493765e-3f));
    c = MULTIPLY_ADD(c, z, C(4.166664568298827e-2f));
    c = MULTIPLY_ADD(c, z, C(-0.5f));
    c = MULTIPLY_ADD(c, z, C(1.0f));
    return FN(turned)(CHOSEN(FN(is_odd)(quadrant), c, s), quadrant);
}

/* An odd function, with the sign of zero. */
FORCED F FN(sin)(F x) { return FN(signed)(FN(wave)(MAGNITUDE(x), 0.0f), x); }
FORCED F FN(cos)(F x) { return FN(wave)(MAGNITUDE(x), 1.0f); }

#ifndef BY_TABLE
/* tanh(t) = e / (e + 2) with e = exp(2t) - 1, of which no digit is lost for small t. */
FORCED F FN(tanh)(F x) {
    F t = BETWEEN(MAGNITUDE(x), C(0.0f), C(10.0f)), twice = t + t;
    F k = NEAREST(twice * C(1.44269504f)), scale = FN(scaled_normal)(C(1.0f), k);
    F e = MULTIPLY_ADD(scale, FN(expm1_part)(twice, k), scale - C(1.0f));
    return FN(signed)(QUOTIENT(e, e + C(2.0f)), x);
}
#endif

/* erf: an odd polynomial near 0, beyond it 1 - exp(q(|x|)), q fitted to log erfc on [0.95, 4]. */
FORCED F FN(erf)(F x) {
    F t = MAGNITUDE(x), z = x * x;
    t = BETWEEN(t, C(0.0f), C(4.0f));
    F p = MULTIPLY_ADD(C(-5.86230961e-4f), z, C(4.96756373e-3f));
    p = MULTIPLY_ADD(p, z, C(-2.67489161e-2f));
    p = MULTIPLY_ADD(p, z, C(1.12813228e-1f));
    p = MULTIPLY_ADD(p, z, C(-3.76124463e-1f));
    p = MULTIPLY_ADD(p, z, C(1.28379142e-1f));
    F near = MULTIPLY_ADD(x, p, x);
    F q = MULTIPLY_ADD(C(1.92427294e-4f), t, C(-3.00854868e-3f));
    q = MULTIPLY_ADD(q, t, C(2.20876848e-2f));
    q = MULTIPLY_ADD(q, t, C(-1.03640409e-1f));
    q = MULTIPLY_ADD(q, t, C(-6.37516918e-1f));
    q = MULTIPLY_ADD(q, t, C(-1.27475037e-1f));
    q = MULTIPLY_ADD(q, t, C(-2.44701604e-4f));
    F far = FN(signed)(C(1.0f) - FN(exp_normal)(q - t), x);
    return CHOSEN(LESS(t, C(0.95f)), near, far);
}

/* 2^x for |x| < 126, within 2e-7 of it. */
FORCED F FN(power_of_two)(F x) {
    F k = NEAREST(x), r = x - k;
    F p = MULTIPLY_ADD(C(1.3276482e-3f), r, C(9.6755465e-3f));
    p = MULTIPLY_ADD(p, r, C(5.5507135e-2f));
    p = MULTIPLY_ADD(p, r, C(2.4022120e-1f));
    p = MULTIPLY_ADD(p, r, C(6.9314694e-1f));
    return FN(scaled_normal)(MULTIPLY_ADD(p, r, C(1.0000001f)), k);
}

/* The normal distribution function at -|x| within 1e-7: 2^q(|x|), q fitted to its logarithm on [0, 6]. */
FORCED F FN(tail)(F x) {
    F t = MAGNITUDE(x), bounded = CHOSEN(LESS(C(6.0f), t), C(6.0f), t);
    F q = MULTIPLY_ADD(C(-2.7720557e-06f), bounded, C(3.8620827e-05f));
    q = MULTIPLY_ADD(q, bounded, C(-0.00018254798f));
    q = MULTIPLY_ADD(q, bounded, C(-0.00014586921f));
    q = MULTIPLY_ADD(q, bounded, C(0.0070754704f));
    q = MULTIPLY_ADD(q, bounded, C(-0.052505028f));
    q = MULTIPLY_ADD(q, bounded, C(-0.45920491f));
    q = MULTIPLY_ADD(q, bounded, C(-1.1511058f));
    q = MULTIPLY_ADD(q, bounded, C(-1.0f));
    return CHOSEN(LESS(C(6.0f), t), C(0.0f), FN(power_of_two)(q));
}

#ifndef BY_TABLE
FORCED F FN(gelu)(F x) {
    F h = FN(tail)(x);
    return x * CHOSEN(LESS(x, C(0.0f)), h, C(1.0f) - h);
}
#endif

/* The derivative, with the density exp(-x^2 / 2) / sqrt(2 pi). */
FORCED F FN(gelu_slope)(F x) {
    F h = FN(tail)(x), u = C(-0.5f * 1.44269504f) * x * x;
    F bell = FN(power_of_two)(BETWEEN(u, C(-125.0f), C(0.0f)));
    F density = CHOSEN(LESS(u, C(-125.0f)), C(0.0f), C(0.398942280f) * bell);
    return MULTIPLY_ADD(x, density, CHOSEN(LESS(x, C(0.0f)), h, C(1.0f) - h));
}

#define GELU_A 0.7978845608028654 /* sqrt(2 / pi) */
#define GELU_B 0.035677408136300125 /* 0.044715 sqrt(2 / pi) */
FORCED F FN(gelu_inner)(F x) { return FN(tanh)(x * (C((float)GELU_A) + C((float)GELU_B) * x * x)); }
FORCED F FN(gelu_tanh)(F x) { return C(0.5f) * x * (C(1.0f) + FN(gelu_inner)(x)); }
FORCED F FN(gelu_tanh_slope)(F x) {
    F t = FN(gelu_inner)(x);
    F inner = x * (C((float)GELU_A) + C(3 * (float)GELU_B) * x * x);
    return C(0.5f) * (C(1.0f) + t + inner * (C(1.0f) - t * t));
}

/* By exp(-|x|), which is exact where the result is small. */
FORCED F FN(sigmoid)(F x) {
    F e = FN(exp)(-MAGNITUDE(x));
    return QUOTIENT(CHOSEN(LESS(x, C(0.0f)), e, C(1.0f)), C(1.0f) + e);
}

FORCED F FN(silu)(F x) { return x * FN(sigmoid)(x); }
FORCED F FN(silu_slope)(F x) {
    F s = FN(sigmoid)(x);
    return s * MULTIPLY_ADD(x, C(1.0f) - s, C(1.0f));
}

/* log(1 + e) for 0 <= e <= 1, as 2 atanh(e / (2 + e)): small e keep their digits. */
FORCED F FN(log1p_unit)(F e) {
    F s = e / (C(2.0f) + e), z = s * s;
    F p = MULTIPLY_ADD(C(0.140135794f), z, C(0.13999318f));
    p = MULTIPLY_ADD(p, z, C(0.200108635f));
    p = MULTIPLY_ADD(p, z, C(0.333332064f));
    return C(2.0f) * MULTIPLY_ADD(s * z, p, s);
}
