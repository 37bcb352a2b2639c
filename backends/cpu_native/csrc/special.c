/* Special functions of float32, computed in double: polynomials fitted to a relative distance of 10⁻⁹, in the
   variable that makes the function smooth. */
#include "elements.h"

/* A polynomial, lowest coefficient first; unrolled where `count` is a constant. */
INLINE double polynomial(const double *c, int count, double x) {
    double y = c[count - 1];
#pragma GCC unroll 20
    for (int i = count - 2; i >= 0; i--) y = fma(y, x, c[i]);
    return y;
}
#define POLYNOMIAL(c, x) polynomial(c, (int)(sizeof(c) / sizeof(*(c))), x)

/* exp(x²)·erfc(x) by t = 2/(2 + x), x in [0, 10.6]; beyond, erfc is no float32. */
static const double TAIL[] = {
    0.3296091039581962, 0.42897148045754041, 0.19784413334845422, 0.047357648514336922,
    -0.0010035425855518148, -0.0030711383706405757, 7.8257033243245863e-05, 0.0002678783273523697,
    -4.0116297126943912e-05, -2.2820960423375183e-05, 9.0672104668158908e-06, 1.1150414313493288e-06,
    -1.065757955713975e-06,
};
#define TAIL_LEAST (2 / 12.6)

INLINE double erfc_d(double x) {
    const double size = fabs(x) > 10.6 ? 10.6 : fabs(x), t = 2 / (2 + size);
    const double tail = exp_d(-size * size) * POLYNOMIAL(TAIL, (t - (1 + TAIL_LEAST) / 2) / ((1 - TAIL_LEAST) / 2));
    const double found = x < 0 ? 2 - tail : tail;
    return x != x ? x : found;
}
UNARY(erfc, double, float, f32, (float)erfc_d(x))
HALVES(erfc, erfc_loop_f32, ONE_OPERAND)

/* erfinv(x)/x by w = -log(1 - x²), below 6 and by the root of w beyond.
   Source of the variables: Giles, Approximating the erfinv function, 2012. */
static const double NEAR[] = {
    1.6235420063358792, 0.72489120616873859, -0.051643209648439374, -0.022576724431922338, 0.015799912142893207,
    -0.0030916228619886571, -0.0012742440236545884, 0.00098968355633900795, -0.00015496168036734399,
    -0.00011774508830105369, 6.4314692585461591e-05, 3.9469323372938537e-06, -8.1479179391650091e-06,
};
static const double FAR[] = {
    3.1506523420903862, 0.8720419031302945, 0.0035208587036103748, -0.0020581756664209546, 0.001124116460984113,
    -0.00065451437321849834, 0.00033686771341312916, -0.0001274422922438083, 1.6967804853131159e-05,
    1.6701557641600758e-05, -8.264874406112264e-06,
};
#define ROOT_LEAST 2.449489742783178
#define ROOT_MOST 4.183300132670378

#define LAST (1 - 0x1p-25) /* beyond every float32 below 1 */

INLINE double erfinv_d(double x) {
    const double below = x > LAST ? LAST : x, inside = below < -LAST ? -LAST : below;
    const double w = -log_normal_d((1 - inside) * (1 + inside), 0);
    const double near = POLYNOMIAL(NEAR, w / 3 - 1);
    const double far = POLYNOMIAL(FAR, (sqrt(w) - (ROOT_MOST + ROOT_LEAST) / 2) / ((ROOT_MOST - ROOT_LEAST) / 2));
    const double found = inside * (w < 6 ? near : far), end = fabs(x) == 1 ? x * INFINITY : (double)NAN;
    return fabs(x) < 1 ? found : end;
}
UNARY(erfinv, double, float, f32, (float)erfinv_d(x))
HALVES(erfinv, erfinv_loop_f32, ONE_OPERAND)

/* exp(-|x|)·I₀(x) and exp(-x)·I₁(x)/x up to 8; beyond, both by 8/x and times the root of x. */
static const double ZEROTH[] = {
    0.20700192117089028, -0.11300432752312388, 0.09451564006410193, -0.089043402965813312, 0.087343008263775945,
    -0.084964035645049438, 0.079280766720887241, -0.069536378263880705, 0.056739201471091218,
    -0.043003495981122686, 0.030324721289149252, -0.019652144369320095, 0.011617344794166007,
    -0.0068033332413573074, 0.0041045748359394719, -0.0018589950904938368, 0.00044819441243442132,
    -0.00030303564424150487, 0.00034051770080769191, -0.00011496017923564775,
};
static const double ZEROTH_FAR[] = {
    0.40217650941921418, 0.0033605522423918632, 0.0001362171642029817, 1.113981029409346e-05,
    1.4761158447852923e-06, 3.0734302252734434e-07, 1.0867935037151486e-07, 3.1613722173349189e-08,
};
static const double FIRST[] = {
    0.044687709909389264, -0.061124338227812575, 0.068057593686741746, -0.068482587382627649,
    0.063767585636262406, -0.05528049177377501, 0.044672595730117157, -0.033666801194951856,
    0.023696365724359132, -0.015594819784699785, 0.0095550981312595741, -0.0054661314028243493,
    0.003048855659046151, -0.0016550660770644355, 0.00071509669311079112, -0.00022846127640290768,
    0.00014818036544557889, -0.00011739680496833044, 3.4824062146414544e-05,
};
static const double FIRST_FAR[] = {
    0.38939845905966119, -0.0097495774544005508, -0.00021923712541543818, -1.5035293279876617e-05,
    -1.8256906397304543e-06, -3.5837938572666644e-07, -1.2273223479737645e-07, -3.5803218378304042e-08,
};

#define NEAR_8(x) ((x) > 8 ? 8 : (x))
#define FAR_8(x) ((x) > 8 ? (x) : 8)

INLINE double i0e_d(double x) {
    const double size = fabs(x), far = FAR_8(size);
    const double found = size > 8 ? POLYNOMIAL(ZEROTH_FAR, 16 / far - 1) / sqrt(far)
                                  : POLYNOMIAL(ZEROTH, NEAR_8(size) / 4 - 1);
    return x != x ? x : found;
}
INLINE double i1e_d(double x) {
    const double size = fabs(x), far = FAR_8(size);
    const double found = size > 8 ? copysign(POLYNOMIAL(FIRST_FAR, 16 / far - 1) / sqrt(far), x)
                                  : x * POLYNOMIAL(FIRST, NEAR_8(size) / 4 - 1);
    return x != x ? x : found;
}
/* From 100 on these are no float32: of larger numbers as of 100; of infinities NaN, as in SciPy and PyTorch. */
#define UP_TO_100(x) (fabs(x) > 100 ? copysign(100.0, x) : (x))
UNARY(i0e, double, float, f32, (float)i0e_d(x))
UNARY(i1e, double, float, f32, (float)i1e_d(x))
UNARY(i0, double, float, f32, (float)(i0e_d(UP_TO_100(x)) * exp_d(fabs(UP_TO_100(x))) + (x - x)))
UNARY(i1, double, float, f32, (float)(i1e_d(UP_TO_100(x)) * exp_d(fabs(UP_TO_100(x))) + (x - x)))
HALVES(i0e, i0e_loop_f32, ONE_OPERAND)
HALVES(i1e, i1e_loop_f32, ONE_OPERAND)
HALVES(i0, i0_loop_f32, ONE_OPERAND)
HALVES(i1, i1_loop_f32, ONE_OPERAND)

/* sin(πr)/(πr) by the square of πr. */
static const double SINE[] = {
    1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000,
    1.0 / 355687428096000, -1.0 / 121645100408832000,
};
#define PI 3.1415926535897931

/* The second derivative of log Γ: six steps up, then the asymptotic series; below 1/2 by reflection, with the sine
   of π times the distance from the nearest pole. */
static const double BERNOULLI[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66};
INLINE double trigamma_d(double x) {
    const double z = x < 0.5 ? 1 - x : x, up = 1 / (z + 6), square = up * up;
    double found = up + 0.5 * square + up * square * POLYNOMIAL(BERNOULLI, square);
#pragma GCC unroll 6
    for (int k = 0; k < 6; k++) found += 1 / ((z + k) * (z + k));
    const double r = PI * (x - nearbyint(x)), sine = r * POLYNOMIAL(SINE, r * r);
    return x < 0.5 ? PI * PI / (sine * sine) - found : found;
}
UNARY(trigamma, double, float, f32, (float)trigamma_d(x))

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

/* Of all numbers: from 0 down by reflection, infinite at the poles, where the sine is 0. */
#define LOG_PI 1.1447298858494002
#define LINE 256
INLINE void log_gamma_of_line(float *restrict out, const float *restrict a, int64_t n) {
    double up[LINE], turn[LINE];
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const double x = a[i];
        up[i] = log_gamma_positive(x <= 0 ? 1 - x : x);
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const double x = a[i], r = PI * (x - nearbyint(x));
        turn[i] = LOG_PI - log_d(fabs(r * POLYNOMIAL(SINE, r * r)));
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const double found = a[i] <= 0 ? turn[i] - up[i] : up[i];
        out[i] = fabsf(a[i]) == INFINITY ? INFINITY : (float)found;
    }
}

WIDE static void lgamma_loop_f32(void *to, const void *from, const void *unused, int64_t n,
                                 const double *numbers, int streams) {
    (void)unused, (void)numbers, (void)streams;
    for (int64_t begin = 0; begin < n; begin += LINE) {
        const float *a = (const float *)from + begin;
        float *out = (float *)to + begin;
        const int64_t count = n - begin < LINE ? n - begin : LINE;
        int other = 0;
#pragma omp simd reduction(| : other)
        for (int64_t i = 0; i < count; i++) other |= !(a[i] > 0 && a[i] < INFINITY);
        if (other) {
            log_gamma_of_line(out, a, count);
        } else {
#pragma omp simd
            for (int64_t i = 0; i < count; i++) out[i] = (float)log_gamma_positive(a[i]);
        }
    }
}
UNARY_KERNEL(lgamma, float, f32, float, lgamma_loop_f32)
HALVES(lgamma, lgamma_loop_f32, ONE_OPERAND)

/* log(exp g + exp x), and of powers of two: the greater one and what the other adds. */
#define GREATER(g, x) ((g) > (x) || (g) != (g) ? (g) : (x))
#define GAP(g, x) ((g) == (x) ? 0 : -ABS((g) - (x)))

/* log(1 + e) = 2 atanh(e/(2 + e)) of e in [0, 1], by its series: the quotient is at most 1/3, and `lost` is
   what it and the sum lost. */
static const double ATANH[] = {
    1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19,
    1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27, 1.0 / 29, 1.0 / 31, 1.0 / 33, 1.0 / 35,
};
INLINE double log1p_unit_d(double e) {
    const double sum = 2 + e, s = e / sum, z = s * s;
    const double lost = (fma(-s, sum, e) - s * (e - (sum - 2))) * (1 / sum);
    return 2 * (s + fma(s * z, POLYNOMIAL(ATANH, z), lost));
}
/* The same in float: 10⁻⁹ of it. */
INLINE double log1p_unit_f32(double e) {
    const double s = e / (2 + e), z = s * s;
    return 2 * fma(s * z, polynomial(ATANH, 8, z), s);
}
#define LOG_2 0.69314718055994531
#define ADDED(base) exp_d(GAP(g, x) * (base))
BINARY(logaddexp, double, float, f32, (float)(GREATER(g, x) + log1p_unit_f32(ADDED(1.0))))
BINARY(logaddexp, double, double, f64, GREATER(g, x) + log1p_unit_d(ADDED(1.0)))
BINARY(logaddexp2, double, float, f32, (float)fma(log1p_unit_f32(ADDED(LOG_2)), 1 / LOG_2, GREATER(g, x)))
BINARY(logaddexp2, double, double, f64, fma(log1p_unit_d(ADDED(LOG_2)), 1 / LOG_2, GREATER(g, x)))
HALVES(logaddexp, logaddexp_loop_f32, TWO_OPERANDS)
HALVES(logaddexp2, logaddexp2_loop_f32, TWO_OPERANDS)

/* g log x, and 0 where g is, unless x is NaN. */
#define UNLESS_NOTHING(found) (g == 0 && x == x ? 0 : (found))
#if HAS_AVX512
#define NOTHING (_mm512_cmp_ps_mask(g, _mm512_setzero_ps(), _CMP_EQ_OQ) & _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q))
#endif
BINARY_LOOP(xlogy, float, float, f32, UNLESS_NOTHING(g *log_f(x)))
VECTOR_LOOP(xlogy, 1, _mm512_maskz_mul_ps((__mmask16)~NOTHING, g, log_v(x)), )
BINARY_KERNEL(xlogy, float, f32, FASTEST(xlogy))
BINARY(xlogy, double, double, f64, UNLESS_NOTHING(g *log_d(x)))

/* The logarithm of the running sum of exponentials along `n` lines of `inner` elements. */
#define AT_ONCE 256
#define WIDEST(T) (sizeof(T) == 4 ? 32 : 8) /* between the greatest number and the first sum, that keeps its digits */
typedef struct {
    void *out;
    const void *a;
    int64_t n, inner;
} Sums;

/* Of two.  In a part whose first sum is not far below its greatest number, all sums have one scale. */
INLINE double both(double a, double b) {
    const double most = a > b || a != a ? a : b;
    return most + log1p(exp(a == b ? 0 : -fabs(a - b)));
}

#define RUNNING(T, S)                                                                              \
    WIDE static double sums_of_part_##S(T *out, const T *a, int64_t n, int64_t step, double before) {\
        double x[AT_ONCE], most = before, sum;                                                     \
        int64_t odd = 0;                                                                           \
        for (int64_t i = 0; i < n; i++) x[i] = (double)a[i * step];                                \
        _Pragma("omp simd reduction(max : most) reduction(| : odd)") for (int64_t i = 0; i < n; i++) { \
            most = x[i] > most ? x[i] : most;                                                      \
            odd |= !(fabs(x[i]) < INFINITY);                                                       \
        }                                                                                          \
        if (odd || !(most - (before == -INFINITY ? x[0] : before) < WIDEST(T))) {                         \
            for (int64_t i = 0; i < n; i++) {                                                      \
                before = both(before, x[i]);                                                       \
                out[i * step] = (T)before;                                                         \
            }                                                                                      \
            return before;                                                                         \
        }                                                                                          \
        sum = exp_d(before - most);                                                                \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) x[i] = exp_d(x[i] - most);             \
        for (int64_t i = 0; i < n; i++) x[i] = sum += x[i];                                        \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) x[i] = most + log_d(x[i]);             \
        for (int64_t i = 0; i < n; i++) out[i * step] = (T)x[i];                                   \
        return x[n - 1];                                                                           \
    }                                                                                              \
    static void sums_step_##S(const void *context, int64_t begin, int64_t end) {                   \
        const Sums *c = context;                                                                   \
        for (int64_t line = begin; line < end; line++) {                                           \
            const int64_t at = line / c->inner * c->n * c->inner + line % c->inner;                \
            double before = -INFINITY;                                                             \
            for (int64_t i = 0; i < c->n; i += AT_ONCE)                                            \
                before = sums_of_part_##S((T *)c->out + at + i * c->inner,                         \
                                          (const T *)c->a + at + i * c->inner,                     \
                                          c->n - i < AT_ONCE ? c->n - i : AT_ONCE, c->inner, before); \
        }                                                                                          \
    }                                                                                              \
    static void logcumsumexp_##S(const Args *k) {                                                  \
        const Sums c = {.out = k->p[0], .a = k->p[1], .n = k->n[1], .inner = k->n[2]};             \
        const int64_t lines = k->n[0] * c.inner;                                                   \
        split(sums_step_##S, &c, lines, team(k, lines * c.n));                                     \
    }
RUNNING(float, f32)
RUNNING(double, f64)

#define SINGLE(name, arguments, extents)                                                             \
    {#name "_f32", arguments, extents, name##_f32}, {#name "_f16", arguments, extents, name##_f16},  \
    {#name "_bf16", arguments, extents, name##_bf16}
#define ONE_EACH "t0,t0"
#define TWO_EACH "t0,t0,t0"

const Row special_rows[] = {
    SINGLE(erfc, "wri", ONE_EACH), SINGLE(erfinv, "wri", ONE_EACH),
    SINGLE(i0e, "wri", ONE_EACH), SINGLE(i1e, "wri", ONE_EACH),
    SINGLE(i0, "wri", ONE_EACH), SINGLE(i1, "wri", ONE_EACH),
    {"trigamma_f32", "wri", ONE_EACH, trigamma_f32}, SINGLE(lgamma, "wri", ONE_EACH),
    SINGLE(logaddexp, "wrri", TWO_EACH), SINGLE(logaddexp2, "wrri", TWO_EACH),
    {"logaddexp_f64", "wrri", TWO_EACH, logaddexp_f64}, {"logaddexp2_f64", "wrri", TWO_EACH, logaddexp2_f64},
    {"xlogy_f32", "wrri", TWO_EACH, xlogy_f32}, {"xlogy_f64", "wrri", TWO_EACH, xlogy_f64},
    {"logcumsumexp_f32", "wriii", "t012,t012", logcumsumexp_f32},
    {"logcumsumexp_f64", "wriii", "t012,t012", logcumsumexp_f64},
    {NULL, NULL, NULL, NULL},
};
