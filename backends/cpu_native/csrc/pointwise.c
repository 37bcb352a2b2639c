/* Functions of one or two arrays, element by element, with up to three numbers u, v, w.

   bfloat16 is computed in float and rounded once. */
#include "vector_math.h"

typedef struct {
    void *out;
    const void *a, *b;
    double u, v, w;
} Pointwise;

typedef uint16_t Bfloat;

INLINE float from_f32(float x) { return x; }
INLINE double from_f64(double x) { return x; }
INLINE float from_bf16(Bfloat x) { return bits_to_float((int32_t)((uint32_t)x << 16)); }
INLINE float to_f32(float x) { return x; }
INLINE double to_f64(double x) { return x; }

/* To the nearest, ties to even; a NaN keeps its sign and stays a NaN. */
INLINE Bfloat to_bf16(float x) {
    uint32_t bits = (uint32_t)float_to_bits(x);
    uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    return (Bfloat)(x != x ? (bits >> 16) | 0x40 : rounded);
}

/* C is the type of the computation, T that of memory, S the suffix. */
#define UNARY(name, C, T, S, formula)                                                            \
    WIDE static void name##_step_##S(const void *context, int64_t begin, int64_t end) {           \
        const Pointwise *c = context;                                                            \
        const T *restrict a = c->a;                                                              \
        T *restrict out = c->out;                                                                \
        const C u = (C)c->u, v = (C)c->v, w = (C)c->w;                                           \
        (void)u, (void)v, (void)w;                                                               \
        _Pragma("omp simd") for (int64_t i = begin; i < end; i++) {                              \
            const C x = from_##S(a[i]);                                                          \
            out[i] = to_##S(formula);                                                            \
        }                                                                                        \
    }                                                                                            \
    static void name##_##S(const Args *k) {                                                      \
        Pointwise c = {k->p[0], k->p[1], NULL, k->x[0], k->x[1], k->x[2]};                       \
        split(name##_step_##S, &c, k->n[0], team(k, k->n[0]));                                   \
    }

#define BINARY(name, C, T, S, formula)                                                           \
    WIDE static void name##_step_##S(const void *context, int64_t begin, int64_t end) {           \
        const Pointwise *c = context;                                                            \
        const T *restrict a = c->a, *restrict b = c->b;                                          \
        T *restrict out = c->out;                                                                \
        const C u = (C)c->u, v = (C)c->v, w = (C)c->w;                                           \
        (void)u, (void)v, (void)w;                                                               \
        _Pragma("omp simd") for (int64_t i = begin; i < end; i++) {                              \
            const C g = from_##S(a[i]), x = from_##S(b[i]);                                      \
            out[i] = to_##S(formula);                                                            \
        }                                                                                        \
    }                                                                                            \
    static void name##_##S(const Args *k) {                                                      \
        Pointwise c = {k->p[0], k->p[1], k->p[2], k->x[0], k->x[1], k->x[2]};                    \
        split(name##_step_##S, &c, k->n[0], team(k, k->n[0]));                                   \
    }

/* A function whose formula reads the same in both precisions. */
#define UNARY_ALL(name, formula)               \
    UNARY(name, float, float, f32, formula)    \
    UNARY(name, double, double, f64, formula)  \
    UNARY(name, float, Bfloat, bf16, formula)
#define UNARY_EACH(name, single, twice)      \
    UNARY(name, float, float, f32, single)   \
    UNARY(name, double, double, f64, twice)  \
    UNARY(name, float, Bfloat, bf16, single)
#define BINARY_ALL(name, formula)              \
    BINARY(name, float, float, f32, formula)   \
    BINARY(name, double, double, f64, formula) \
    BINARY(name, float, Bfloat, bf16, formula)
#define BINARY_EACH(name, single, twice)      \
    BINARY(name, float, float, f32, single)   \
    BINARY(name, double, double, f64, twice)  \
    BINARY(name, float, Bfloat, bf16, single)

/* Bounds compare so that a NaN stays what it is. */
UNARY_ALL(relu, x < 0 ? 0 : x)
UNARY_ALL(leaky_relu, x > 0 ? x : x * u)
UNARY_ALL(sign, x > 0 ? 1 : (x < 0 ? -1 : 0))
UNARY_ALL(reciprocal, 1 / x)
UNARY_ALL(clamp, x < u ? u : (x > v ? v : x))
UNARY_EACH(rsqrt, 1 / sqrtf(x), 1 / sqrt(x))
UNARY_EACH(sigmoid, sigmoid_f(x), sigmoid_d(x))
UNARY_EACH(silu, x *sigmoid_f(x), x *sigmoid_d(x))
UNARY(erf, float, float, f32, erf_f(x))
UNARY(erf, float, Bfloat, bf16, erf_f(x))

/* log(1 + exp(ux)) / u, by the exponential of -|ux|, which cannot overflow. */
INLINE float softplus_f(float x, float u, float v) {
    float s = x * u, soft = (s > 0 ? s : 0) + log1p_unit_f(exp_f(-fabsf(s)));
    return s != s || s > v ? x : soft / u;
}
UNARY(softplus, float, float, f32, softplus_f(x, u, v))
UNARY(softplus, float, Bfloat, bf16, softplus_f(x, u, v))

#define SQRT_HALF 0.707106781f
#define DENSITY_AT_0 0.398942280f /* 1 / sqrt(2 pi) */
INLINE float gelu_f(float x) { return 0.5f * x * (1 + erf_f(x * SQRT_HALF)); }
UNARY(gelu, float, float, f32, gelu_f(x))
UNARY(gelu, float, Bfloat, bf16, gelu_f(x))

INLINE float gelu_slope_f(float x) {
    return 0.5f * (1 + erf_f(x * SQRT_HALF)) + x * DENSITY_AT_0 * exp_f(-0.5f * x * x);
}
BINARY(gelu_backward, float, float, f32, g *gelu_slope_f(x))
BINARY(gelu_backward, float, Bfloat, bf16, g *gelu_slope_f(x))

#define GELU_A 0.7978845608028654 /* sqrt(2 / pi) */
#define GELU_B 0.035677408136300125 /* 0.044715 sqrt(2 / pi) */
UNARY_EACH(gelu_tanh, 0.5f * x * (1 + tanh_f(x * ((float)GELU_A + (float)GELU_B * x * x))),
           0.5 * x * (1 + tanh_d(x * (GELU_A + GELU_B * x * x))))

INLINE float gelu_tanh_slope_f(float x) {
    float t = tanh_f(x * ((float)GELU_A + (float)GELU_B * x * x));
    return 0.5f * (1 + t + x * ((float)GELU_A + 3 * (float)GELU_B * x * x) * (1 - t * t));
}
INLINE double gelu_tanh_slope_d(double x) {
    double t = tanh_d(x * (GELU_A + GELU_B * x * x));
    return 0.5 * (1 + t + x * (GELU_A + 3 * GELU_B * x * x) * (1 - t * t));
}
BINARY_EACH(gelu_tanh_backward, g *gelu_tanh_slope_f(x), g *gelu_tanh_slope_d(x))

/* u is the level or the slope; the gradient's bits pass unchanged, so infinity times 0 is 0. */
BINARY_ALL(threshold_backward, x <= u ? 0 : g)
BINARY_ALL(leaky_relu_backward, x > 0 ? g : g * u)

/* log |gamma(x)| for x > 0 in double: Stirling's series at x + 8 or more, less log of the factors. */
INLINE double log_gamma_positive(double x) {
    double product = 1.0, y = x;
    for (int i = 0; i < 8; i++) {
        double below = y < 8.0;
        product = below ? product * y : product;
        y = below ? y + 1.0 : y;
    }
    double r = 1.0 / y, z = r * r;
    double series = 1.0 / 156;
    series = fma(series, z, -691.0 / 360360);
    series = fma(series, z, 1.0 / 1188);
    series = fma(series, z, -1.0 / 1680);
    series = fma(series, z, 1.0 / 1260);
    series = fma(series, z, -1.0 / 360);
    series = fma(series, z, 1.0 / 12) * r;
    double value = (y - 0.5) * log_d(y) - y + 0.91893853320467274178 + series - log_d(product);
    return x == 1.0 || x == 2.0 ? 0.0 : value;
}

WIDE static void lgamma_step_f32(const void *context, int64_t begin, int64_t end) {
    const Pointwise *c = context;
    const float *restrict a = c->a;
    float *restrict out = c->out;
    int64_t other = 0;
#pragma omp simd reduction(+ : other)
    for (int64_t i = begin; i < end; i++) {
        double x = a[i];
        out[i] = (float)log_gamma_positive(x);
        other += !(x > 0.0 && x < INFINITY);
    }
    /* Zero, negative numbers, infinities and NaN are left to the C library. */
    for (int64_t i = begin; other && i < end; i++) {
        if (a[i] != a[i]) {
            out[i] = a[i];
        } else if (!(a[i] > 0.0f && a[i] < INFINITY)) {
            out[i] = (float)lgamma(a[i]);
        }
    }
}

static void lgamma_f32(const Args *k) {
    Pointwise c = {k->p[0], k->p[1], NULL, 0, 0, 0};
    split(lgamma_step_f32, &c, k->n[0], team(k, k->n[0]));
}

#define ROWS_3(name, arguments)                        \
    {#name "_f32", arguments, name##_f32},             \
    {#name "_f64", arguments, name##_f64},             \
    {#name "_bf16", arguments, name##_bf16}
#define ROWS_2(name, arguments)                        \
    {#name "_f32", arguments, name##_f32},             \
    {#name "_bf16", arguments, name##_bf16}

const Row pointwise_rows[] = {
    ROWS_3(relu, "wri"),
    ROWS_3(leaky_relu, "wrif"),
    ROWS_3(sign, "wri"),
    ROWS_3(reciprocal, "wri"),
    ROWS_3(clamp, "wriff"),
    ROWS_3(rsqrt, "wri"),
    ROWS_3(sigmoid, "wri"),
    ROWS_3(silu, "wri"),
    ROWS_2(erf, "wri"),
    ROWS_2(softplus, "wriff"),
    ROWS_2(gelu, "wri"),
    ROWS_2(gelu_backward, "wrri"),
    ROWS_3(gelu_tanh, "wri"),
    ROWS_3(gelu_tanh_backward, "wrri"),
    ROWS_3(threshold_backward, "wrrif"),
    ROWS_3(leaky_relu_backward, "wrrif"),
    {"lgamma_f32", "wri", lgamma_f32},
    {NULL, NULL, NULL},
};
