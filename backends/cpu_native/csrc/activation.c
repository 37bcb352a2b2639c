/* softmax and log_softmax over the last dimension, their gradients, and logsumexp. */
#include "softmax_rows.h"

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
EXP_SUM(float, exp_f, exp_sum_f32)
EXP_SUM(double, exp_d, exp_sum_f64)

/* Each kernel exists for float and double; T is the type, E its exponential, S the suffix. */
#define SOFTMAX(T, E, LOG, S)                                                                     \
    typedef struct {                                                                              \
        const T *a, *b;                                                                           \
        T *out;                                                                                   \
        int64_t n;                                                                                \
    } Rows_##S;                                                                                   \
                                                                                                  \
    WIDE static void softmax_step_##S(const void *context, int64_t begin, int64_t end) {          \
        const Rows_##S *c = context;                                                              \
        int64_t n = c->n;                                                                         \
        for (int64_t row = begin; row < end; row++) {                                             \
            const T *a = c->a + row * n;                                                          \
            T *out = c->out + row * n;                                                            \
            T scale = 1 / exp_sum_##S(out, a, n, greatest_##S(a, n));                             \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) out[i] *= scale;                  \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    WIDE static void log_softmax_step_##S(const void *context, int64_t begin, int64_t end) {      \
        const Rows_##S *c = context;                                                              \
        int64_t n = c->n;                                                                         \
        for (int64_t row = begin; row < end; row++) {                                             \
            const T *a = c->a + row * n;                                                          \
            T *out = c->out + row * n;                                                            \
            const T m = greatest_##S(a, n);                                                       \
            T rest = LOG(exp_sum_##S(NULL, a, n, m)); /* taken off last: m + rest rounds to m for large m */           \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) out[i] = (a[i] - m) - rest;       \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    WIDE static void logsumexp_step_##S(const void *context, int64_t begin, int64_t end) {        \
        const Rows_##S *c = context;                                                              \
        for (int64_t row = begin; row < end; row++) {                                             \
            const T *a = c->a + row * c->n, m = greatest_##S(a, c->n);                            \
            const T shift = m - m == 0 ? m : 0; /* none by an infinity or a NaN */                \
            c->out[row] = LOG(exp_sum_##S(NULL, a, c->n, shift)) + shift;                         \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    WIDE static void softmax_backward_step_##S(const void *context, int64_t begin, int64_t end) { \
        const Rows_##S *c = context;                                                              \
        int64_t n = c->n;                                                                         \
        for (int64_t row = begin; row < end; row++) {                                             \
            const T *g = c->a + row * n, *y = c->b + row * n;                                     \
            T *out = c->out + row * n;                                                            \
            T dot = 0;                                                                            \
            _Pragma("omp simd reduction(+ : dot)") for (int64_t i = 0; i < n; i++) dot +=         \
                g[i] * y[i];                                                                      \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) out[i] = y[i] * (g[i] - dot);     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    WIDE static void log_softmax_backward_step_##S(const void *context, int64_t begin,            \
                                                   int64_t end) {                                 \
        const Rows_##S *c = context;                                                              \
        int64_t n = c->n;                                                                         \
        for (int64_t row = begin; row < end; row++) {                                             \
            const T *g = c->a + row * n, *y = c->b + row * n;                                     \
            T *out = c->out + row * n;                                                            \
            T total = 0;                                                                          \
            _Pragma("omp simd reduction(+ : total)") for (int64_t i = 0; i < n; i++) total +=     \
                g[i];                                                                             \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) out[i] = g[i] - E(y[i]) * total;  \
        }                                                                                         \
    }

SOFTMAX(float, exp_f, logf, f32)
SOFTMAX(double, exp_d, log, f64)

#if HAS_AVX512
#define STEPS(name, width, ...)                                                                        \
    AVX512 static void name##_vectors(const void *context, int64_t begin, int64_t end) {          \
        const Rows_f32 *c = context;                                                              \
        const int64_t n = c->n, start = begin * n;                                                \
        BY_VECTORS(n, name##_step, c->out + begin * width, __VA_ARGS__, end - begin, n);          \
    }
STEPS(softmax, n, c->a + start)
STEPS(log_softmax, n, c->a + start)
STEPS(logsumexp, 1, c->a + start)
STEPS(softmax_backward, n, c->a + start, c->b + start)
STEPS(log_softmax_backward, n, c->a + start, c->b + start)
#define STEP_f32(name, n) ((n) > 0 && has_avx512() ? name##_vectors : name##_step_f32)
#else
#define STEP_f32(name, n) name##_step_f32
#endif
#define STEP_f64(name, n) name##_step_f64

#define KERNEL(name, S, second)                                                                   \
    static void name##_##S(const Args *k) {                                                       \
        Rows_##S c = {k->p[1], second, k->p[0], k->n[1]};                                         \
        split(STEP_##S(name, c.n), &c, k->n[0], team(k, k->n[0] * k->n[1]));                      \
    }
#define KERNELS(T, S)                                                                             \
    KERNEL(softmax, S, NULL)                                                                      \
    KERNEL(log_softmax, S, NULL)                                                                  \
    KERNEL(logsumexp, S, NULL)                                                                    \
    KERNEL(softmax_backward, S, k->p[2])                                                          \
    KERNEL(log_softmax_backward, S, k->p[2])                                                      \
    void log_softmax_rows_##S(T *out, const T *a, int64_t rows, int64_t n) {                      \
        STEP_##S(log_softmax, n)(&(Rows_##S){a, NULL, out, n}, 0, rows);                          \
    }
KERNELS(float, f32)
KERNELS(double, f64)

const Row activation_rows[] = {
    {"softmax_f32", "wrii", "t01,t01", softmax_f32},
    {"softmax_f64", "wrii", "t01,t01", softmax_f64},
    {"log_softmax_f32", "wrii", "t01,t01", log_softmax_f32},
    {"log_softmax_f64", "wrii", "t01,t01", log_softmax_f64},
    {"logsumexp_f32", "wrii", "t0,t01", logsumexp_f32},
    {"logsumexp_f64", "wrii", "t0,t01", logsumexp_f64},
    {"softmax_backward_f32", "wrrii", "t01,t01,t01", softmax_backward_f32},
    {"softmax_backward_f64", "wrrii", "t01,t01,t01", softmax_backward_f64},
    {"log_softmax_backward_f32", "wrrii", "t01,t01,t01", log_softmax_backward_f32},
    {"log_softmax_backward_f64", "wrrii", "t01,t01,t01", log_softmax_backward_f64},
    {NULL, NULL, NULL, NULL},
};
