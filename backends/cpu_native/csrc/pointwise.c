/* Functions of one or two arrays, element by element. */
#include "division.h"
#include "elements.h"

/* A function of float_math.h, or a slope there times the gradient. */
#define ELEMENTARY(name)                                                \
    UNARY_LOOP(name, float, float, f32, float, f32, name##_f(x))        \
    VECTOR_LOOP(name, 0, name##_v(x), )                                 \
    HALVES(name, FASTEST(name), ONE_OPERAND)                            \
    UNARY_KERNEL(name, float, f32, float, FASTEST(name))
#define GRADIENT(name, slope)                                           \
    BINARY_LOOP(name, float, float, f32, g *slope##_f(x))               \
    VECTOR_LOOP(name, 1, g *slope##_v(x), )                             \
    HALVES(name, FASTEST(name), TWO_OPERANDS)                           \
    BINARY_KERNEL(name, float, f32, FASTEST(name))

ELEMENTARY(exp)
ELEMENTARY(log)
ELEMENTARY(tanh)
ELEMENTARY(sigmoid)
ELEMENTARY(silu)
ELEMENTARY(erf)
ELEMENTARY(gelu)
ELEMENTARY(gelu_tanh)
GRADIENT(gelu_backward, gelu_slope)
GRADIENT(gelu_tanh_backward, gelu_tanh_slope)
GRADIENT(silu_backward, silu_slope)
UNARY(sigmoid, double, double, f64, sigmoid_d(x))
UNARY(silu, double, double, f64, x *sigmoid_d(x))
INLINE double silu_slope_d(double x) {
    double s = sigmoid_d(x);
    return s * (x * (1 - s) + 1);
}
BINARY(silu_backward, double, double, f64, g *silu_slope_d(x))

/* Waves of arguments so large that the subtractions lose digits are left to the C library. */
WIDE static int any_far(const float *a, int64_t n) {
    int far = 0;
#pragma omp simd reduction(| : far)
    for (int64_t i = 0; i < n; i++) far |= !(fabsf(a[i]) <= FURTHEST);
    return far;
}
#define WAVE(name)                                                                                \
    static void name##_far(float *out, const float *a, int64_t n) {                               \
        for (int64_t i = 0; i < n; i++)                                                           \
            if (!(fabsf(a[i]) <= FURTHEST)) out[i] = name##f(a[i]);                               \
    }                                                                                             \
    UNARY_LOOP(name##_near, float, float, f32, float, f32, name##_f(x))                           \
    static void name##_loop_f32(void *to, const void *from, const void *other, int64_t n,         \
                                const double *numbers, int streams) {                             \
        name##_near_loop_f32(to, from, other, n, numbers, streams);                               \
        if (any_far(from, n)) name##_far(to, from, n);                                            \
    }                                                                                             \
    VECTOR_LOOP(name, 0, name##_v(x)    , if (any_far(from, n)) name##_far(to, from, n))        \
    HALVES(name, FASTEST(name), ONE_OPERAND)                                                     \
    UNARY_KERNEL(name, float, f32, float, FASTEST(name))
WAVE(sin)
WAVE(cos)

/* Bounds compare so that a NaN stays what it is. */
#define ZERO _mm512_setzero_ps()
#define ONE _mm512_set1_ps(1)
#define IF _mm512_mask_blend_ps
#define IS_NAN(a) _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q)
#define IS(a, relation, b) _mm512_cmp_ps_mask(a, b, _CMP_##relation##_OQ)
UNARY_BOTH(relu, x < 0 ? 0 : x, IF(IS(x, LT, ZERO), x, ZERO))
UNARY_BOTH(leaky_relu, x > 0 ? x : x * u, IF(IS(x, GT, ZERO), x *u, x))
UNARY_BOTH(sign, x > 0 ? 1 : (x < 0 ? -1 : 0),
          IF(IS(x, GT, ZERO), IF(IS(x, LT, ZERO), ZERO, -ONE), ONE))
#define PI _Generic(x, float: 3.14159274f, double: 3.14159265358979324)
UNARY_BOTH(angle, x != x ? x : (x < 0 ? PI : 0), IF(IS_NAN(x), IF(IS(x, LT, ZERO), ZERO, _mm512_set1_ps(3.14159274f)), x))
UNARY_BOTH(reciprocal, 1 / x, ONE / x)
UNARY_BOTH(clamp, x < u ? u : (x > v ? v : x), IF(IS(x, LT, u), IF(IS(x, GT, v), x, v), u))
#define SIX _mm512_set1_ps(6)
#define THREE _mm512_set1_ps(3)
#define TO_SIX(x) ((x) < 0 ? 0 : ((x) > 6 ? 6 : (x)))
#define TO_SIX_V(x) IF(IS(x, LT, ZERO), IF(IS(x, GT, SIX), x, SIX), ZERO)
UNARY_BOTH(hardsigmoid, TO_SIX(x + 3) / 6, TO_SIX_V((x + THREE)) / SIX)
UNARY_BOTH(hardswish, x * TO_SIX(x + 3) / 6, x * TO_SIX_V((x + THREE)) / SIX)
UNARY_BOTH(hardshrink, x >= -u && x <= u ? 0 : x, IF(IS(x, GE, -u) & IS(x, LE, u), x, ZERO))
UNARY_BOTH(softshrink, x > u ? x - u : (x < -u ? x + u : x - x),
           IF(IS(x, GT, u), IF(IS(x, LT, -u), x - x, x + u), x - u))
UNARY_BOTH(rsqrt, 1 / SQRT(x), ONE / _mm512_sqrt_ps(x))
UNARY_BOTH(neg, -x, -x)
UNARY_BOTH(square, x *x, x *x)
UNARY_BOTH(cube, x *x *x, x *x *x)
UNARY_BOTH(abs, ABS(x), _mm512_abs_ps(x))
UNARY_BOTH(sqrt, SQRT(x), _mm512_sqrt_ps(x))
UNARY_BOTH(floor, FLOOR(x), _mm512_roundscale_ps(x, 9))
UNARY_BOTH(ceil, CEIL(x), _mm512_roundscale_ps(x, 10))
UNARY_BOTH(trunc, TRUNC(x), _mm512_roundscale_ps(x, 11))
UNARY_BOTH(round, ROUND(x), _mm512_roundscale_ps(x, 8))
/* `out` may be one of the operands. */
#define DIVISION(name, formula)                                                                   \
    WIDE static void name##_of_rest(float *out, const float *a, const float *b, const float *r, int64_t n) {\
        (void)a, (void)b;                                                                         \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) out[i] = formula;                     \
    }                                                                                             \
    static void name##_loop(void *to, const void *first, const void *second, int64_t n,           \
                            const double *numbers, int streams) {                                 \
        float rest[PIECE], *out = to;                                                             \
        const float *a = first, *b = second;                                                      \
        (void)numbers, (void)streams;                                                             \
        for (int64_t i = 0, count; i < n; i += count) {                                           \
            count = n - i < PIECE ? n - i : PIECE;                                                \
            if (near_rest(rest, a + i, b + i, count)) far_rest(rest, a + i, b + i, count);        \
            name##_of_rest(out + i, a + i, b + i, rest, count);                                   \
        }                                                                                         \
    }                                                                                             \
    static void name##_f32(const Args *k) {                                                       \
        pointwise(k, name##_loop, sizeof(float), (Operand){k->p[1], k->n[1], sizeof(float)},      \
                  (Operand){k->p[2], k->n[2], sizeof(float)});                                    \
    }
DIVISION(fmod, r[i])
DIVISION(remainder, remainder_f(r[i], b[i]))
DIVISION(floor_divide, floor_quotient_f(a[i], b[i], r[i]))

#if HAS_AVX512
/* What the sum 1 + x lost is added: its quotient by the sum. */
INLINE AVX512 __m512 log1p_v(__m512 x) {
    const __m512 sum = x + ONE, lost = x - (sum - ONE), logarithm = log_v(sum);
    const __m512 found = logarithm + lost / sum;
    const __mmask16 is_end = IS(sum, EQ, ZERO), is_own = IS(x, EQ, ZERO) | IS(x, EQ, _mm512_set1_ps(INFINITY));
    return IF(is_own, IF(is_end, found, logarithm), x);
}
#endif
UNARY_LOOP(log1p, float, float, f32, float, f32, log1pf(x))
VECTOR_LOOP(log1p, 0, log1p_v(x), )
UNARY_KERNEL(log1p, float, f32, float, FASTEST(log1p))
HALVES(log1p, FASTEST(log1p), ONE_OPERAND)

/* Of probabilities g and targets x, with logarithms not below -100. */
#define AT_LEAST_LOG(y) ((y) < -100 ? -100 : (y))
#define CROSS_ENTROPY(yes, no) ((x - 1) * AT_LEAST_LOG(no) - x * AT_LEAST_LOG(yes))
#if HAS_AVX512
INLINE AVX512 __m512 binary_cross_entropy_v(__m512 g, __m512 x) {
    const __m512 least = _mm512_set1_ps(-100); /* the second operand of a maximum is the result if it is NaN */
    return (x - ONE) * _mm512_max_ps(least, log1p_v(-g)) - x * _mm512_max_ps(least, log_v(g));
}
#endif
BINARY_LOOP(binary_cross_entropy, float, float, f32, CROSS_ENTROPY(log_f(g), log1pf(-g)))
VECTOR_LOOP(binary_cross_entropy, 1, binary_cross_entropy_v(g, x), )
BINARY_KERNEL(binary_cross_entropy, float, f32, FASTEST(binary_cross_entropy))
HALVES(binary_cross_entropy, FASTEST(binary_cross_entropy), TWO_OPERANDS)
BINARY(binary_cross_entropy, double, double, f64, CROSS_ENTROPY(log(g), log1p(-g)))

UNARY_LOOP(exp2, float, float, f32, float, f32, exp2f(x))
VECTOR_LOOP(exp2, 0, exp2_v(x), )
UNARY_KERNEL(exp2, float, f32, float, FASTEST(exp2))

/* log(1 + exp(ux)) / u, by the exponential of -|ux|, which cannot overflow. */
INLINE float softplus_f(float x, float u, float v) {
    float s = x * u, soft = (s > 0 ? s : 0) + log1p_unit_f(exp_f(-fabsf(s)));
    return s != s || s > v ? x : soft / u;
}
UNARY(softplus, float, float, f32, softplus_f(x, u, v))
HALVES(softplus, softplus_loop_f32, ONE_OPERAND)
BINARY_LOOP(softplus_backward, float, float, f32, g * (x * u > v ? 1 : sigmoid_f(x * u)))
VECTOR_LOOP(softplus_backward, 1, IF(IS(x *u, GT, v), g *sigmoid_v(x *u), g), )
HALVES(softplus_backward, FASTEST(softplus_backward), TWO_OPERANDS)
BINARY_KERNEL(softplus_backward, float, f32, FASTEST(softplus_backward))

INLINE float log_sigmoid_f(float x) { return (x < 0 ? x : 0) - log1p_unit_f(exp_f(-fabsf(x))); }
UNARY(log_sigmoid, float, float, f32, log_sigmoid_f(x))
HALVES(log_sigmoid, log_sigmoid_loop_f32, ONE_OPERAND)
BINARY_LOOP(log_sigmoid_backward, float, float, f32, g * sigmoid_f(-x))
VECTOR_LOOP(log_sigmoid_backward, 1, g *sigmoid_v(-x), )
HALVES(log_sigmoid_backward, FASTEST(log_sigmoid_backward), TWO_OPERANDS)
BINARY_KERNEL(log_sigmoid_backward, float, f32, FASTEST(log_sigmoid_backward))

UNARY(gelu_tanh, double, double, f64, 0.5 * x * (1 + tanh_d(x * (GELU_A + GELU_B * x * x))))
INLINE double gelu_tanh_slope_d(double x) {
    double t = tanh_d(x * (GELU_A + GELU_B * x * x));
    return 0.5 * (1 + t + x * (GELU_A + 3 * GELU_B * x * x) * (1 - t * t));
}
BINARY(gelu_tanh_backward, double, double, f64, g *gelu_tanh_slope_d(x))

/* u is the level or the slope; the gradient's bits pass unchanged, so infinity times 0 is 0. */
BINARY_ALL(threshold_backward, x <= u ? 0 : g, IF(IS(x, LE, u), g, ZERO))
BINARY_ALL(leaky_relu_backward, x > 0 ? g : g * u, IF(IS(x, GT, ZERO), g *u, g))
BINARY_ALL(hardtanh_backward, x <= u || x >= v ? 0 : g, IF(IS(x, LE, u) | IS(x, GE, v), g, ZERO))
BINARY_ALL(hardsigmoid_backward, x > -3 && x < 3 ? g * _Generic(x, float: 1.0f / 6, double: 1.0 / 6) : 0,
           IF(IS(x, GT, -THREE) & IS(x, LT, THREE), ZERO, g *_mm512_set1_ps(1.0f / 6)))
BINARY_ALL(hardswish_backward, x <= -3 ? 0 : (x >= 3 ? g : g * (x / 3 + 0.5f)),
           IF(IS(x, LE, -THREE), IF(IS(x, GE, THREE), g *(x / THREE + _mm512_set1_ps(0.5f)), g), ZERO))
BINARY_ALL(hardshrink_backward, x >= -u && x <= u ? 0 : g, IF(IS(x, GE, -u) & IS(x, LE, u), g, ZERO))
/* u is alpha, v the scale and w that of the input. */
UNARY_LOOP(elu, float, float, f32, float, f32, x > 0 ? x * v : expm1_f(x * w) * (float)(numbers[0] * numbers[1]))
VECTOR_LOOP(elu, 0, IF(IS(x, GT, ZERO), expm1_v(x *w) * _mm512_set1_ps((float)(numbers[0] * numbers[1])), x *v), )
HALVES(elu, FASTEST(elu), ONE_OPERAND)
UNARY_KERNEL(elu, float, f32, float, FASTEST(elu))
#define FALL (float)(numbers[0] * numbers[1] * numbers[2])
BINARY_LOOP(elu_backward, float, float, f32, g * (x > 0 ? v : exp_f(x * w) * FALL))
VECTOR_LOOP(elu_backward, 1, g *IF(IS(x, GT, ZERO), exp_v(x *w) * _mm512_set1_ps(FALL), v), )
HALVES(elu_backward, FASTEST(elu_backward), TWO_OPERANDS)
BINARY_KERNEL(elu_backward, float, f32, FASTEST(elu_backward))
/* Of the distance d: d^2 / 2v up to the knee u, and the tangent beyond it. */
#define DISTANCE ABS((g - x))
#define NEAR (DISTANCE > u ? u : DISTANCE)
#if HAS_AVX512
INLINE AVX512 __m512 bent_v(__m512 d, __m512 u) {
    const __m512 near = IF(IS(d, GT, u), d, u);
    return near * (d - near * _mm512_set1_ps(0.5f));
}
#endif
BINARY_ALL(bent, NEAR *(DISTANCE - NEAR * 0.5f) / v, bent_v(_mm512_abs_ps(g - x), u) / v)
/* x is the function's result here. */
BINARY_ALL(sigmoid_backward, g *(1 - x) * x, g *(ONE - x) * x)
BINARY_ALL(tanh_backward, g *(1 - x * x), g *(ONE - x * x))

ARITHMETIC(add, g + x, add_in_order(g, x))
ARITHMETIC(sub, g - x, g - x)
ARITHMETIC(mul, g *x, mul_in_order(g, x))
ARITHMETIC(div, g / x, g / x)
/* A NaN of either is the result. */
ARITHMETIC(maximum, g >= x || g != g ? g : x, IF(IS(g, GE, x) | IS_NAN(g), x, g))
ARITHMETIC(minimum, g <= x || g != g ? g : x, IF(IS(g, LE, x) | IS_NAN(g), x, g))

#define ROWS(name, arguments, extents)                         \
    {#name "_f64", arguments, extents, name##_f64}, SINGLE(name, arguments, extents)
#define SINGLE(name, arguments, extents)                                                             \
    {#name "_f32", arguments, extents, name##_f32}, {#name "_f16", arguments, extents, name##_f16},  \
    {#name "_bf16", arguments, extents, name##_bf16}
#define ONE_EACH "t0,t0"
#define TWO_EACH "t0,t0,t0"
#define REPEATED "t0,t0|1,t0|2"

const Row pointwise_rows[] = {
    ROWS(relu, "wri", ONE_EACH), ROWS(leaky_relu, "wrif", ONE_EACH),
    ROWS(sign, "wri", ONE_EACH), ROWS(angle, "wri", ONE_EACH), ROWS(reciprocal, "wri", ONE_EACH),
    ROWS(clamp, "wriff", ONE_EACH), ROWS(rsqrt, "wri", ONE_EACH),
    ROWS(sigmoid, "wri", ONE_EACH), ROWS(silu, "wri", ONE_EACH),
    SINGLE(erf, "wri", ONE_EACH), SINGLE(softplus, "wriff", ONE_EACH),
    SINGLE(softplus_backward, "wrriff", TWO_EACH), SINGLE(log_sigmoid, "wri", ONE_EACH), SINGLE(log_sigmoid_backward, "wrri", TWO_EACH),
    SINGLE(gelu, "wri", ONE_EACH), SINGLE(gelu_backward, "wrri", TWO_EACH),
    ROWS(gelu_tanh, "wri", ONE_EACH), ROWS(gelu_tanh_backward, "wrri", TWO_EACH),
    ROWS(threshold_backward, "wrrif", TWO_EACH), ROWS(leaky_relu_backward, "wrrif", TWO_EACH),
    ROWS(bent, "wrriff", TWO_EACH), ROWS(sigmoid_backward, "wrri", TWO_EACH), ROWS(tanh_backward, "wrri", TWO_EACH),
    ROWS(silu_backward, "wrri", TWO_EACH),
    SINGLE(exp, "wri", ONE_EACH), SINGLE(log, "wri", ONE_EACH),
    SINGLE(tanh, "wri", ONE_EACH), SINGLE(elu, "wrifff", ONE_EACH), SINGLE(elu_backward, "wrrifff", TWO_EACH),
    ROWS(hardsigmoid, "wri", ONE_EACH), ROWS(hardsigmoid_backward, "wrri", TWO_EACH),
    ROWS(hardswish, "wri", ONE_EACH), ROWS(hardswish_backward, "wrri", TWO_EACH),
    ROWS(hardshrink, "wrif", ONE_EACH), ROWS(hardshrink_backward, "wrrif", TWO_EACH),
    ROWS(softshrink, "wrif", ONE_EACH), ROWS(hardtanh_backward, "wrriff", TWO_EACH),
    ROWS(binary_cross_entropy, "wrri", TWO_EACH),
    SINGLE(log1p, "wri", ONE_EACH), SINGLE(sin, "wri", ONE_EACH), SINGLE(cos, "wri", ONE_EACH),
    ROWS(neg, "wri", ONE_EACH), ROWS(square, "wri", ONE_EACH), ROWS(cube, "wri", ONE_EACH), ROWS(abs, "wri", ONE_EACH), ROWS(sqrt, "wri", ONE_EACH),
    ROWS(floor, "wri", ONE_EACH), ROWS(ceil, "wri", ONE_EACH), ROWS(trunc, "wri", ONE_EACH), ROWS(round, "wri", ONE_EACH),
    ROWS(add, "wrriii", REPEATED), ROWS(sub, "wrriii", REPEATED), ROWS(mul, "wrriii", REPEATED), ROWS(div, "wrriii", REPEATED),
    ROWS(maximum, "wrriii", REPEATED), ROWS(minimum, "wrriii", REPEATED),
    {"fmod_f32", "wrriii", REPEATED, fmod_f32}, {"remainder_f32", "wrriii", REPEATED, remainder_f32},
    {"floor_divide_f32", "wrriii", REPEATED, floor_divide_f32}, {"exp2_f32", "wri", ONE_EACH, exp2_f32},
    {NULL, NULL, NULL, NULL},
};

/* The loops over float32 by name, for programs of several. */
Loop loop_of(const char *name) {
#define NAMED(known) \
    if (strcmp(name, #known) == 0) return FASTEST(known);
    NAMED(add) NAMED(sub) NAMED(mul) NAMED(div) NAMED(maximum) NAMED(minimum)
    NAMED(neg) NAMED(abs) NAMED(sqrt) NAMED(square) NAMED(reciprocal) NAMED(rsqrt) NAMED(sign)
    NAMED(floor) NAMED(ceil) NAMED(trunc) NAMED(round)
    NAMED(exp) NAMED(log) NAMED(tanh) NAMED(sin) NAMED(cos) NAMED(erf)
    NAMED(relu) NAMED(leaky_relu) NAMED(clamp) NAMED(sigmoid) NAMED(silu) NAMED(gelu) NAMED(gelu_tanh)
    NAMED(threshold_backward) NAMED(leaky_relu_backward) NAMED(sigmoid_backward) NAMED(tanh_backward)
    NAMED(silu_backward) NAMED(gelu_backward) NAMED(gelu_tanh_backward)
    NAMED(hardsigmoid) NAMED(hardsigmoid_backward) NAMED(hardswish) NAMED(hardswish_backward)
    NAMED(elu) NAMED(elu_backward) NAMED(hardshrink) NAMED(hardshrink_backward) NAMED(softshrink) NAMED(hardtanh_backward)
#undef NAMED
    return strcmp(name, "softplus") == 0 ? softplus_loop_f32 : NULL;
}

Loop number_loop_of(const char *name, int is_first) {
#if HAS_AVX512
#define NAMED(known) \
    if (has_avx512() && strcmp(name, #known) == 0) return is_first ? number_##known##_v : known##_number_v;
    NAMED(add) NAMED(sub) NAMED(mul) NAMED(div) NAMED(maximum) NAMED(minimum)
#undef NAMED
#else
    (void)name, (void)is_first;
#endif
    return NULL;
}
