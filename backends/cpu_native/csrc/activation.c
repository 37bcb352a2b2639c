/* softmax and log_softmax over the last dimension, their gradients, and logsumexp. */
#include "exp_rows.h"

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
    }                                                                                             \
                                                                                                  \
    static void softmax_##S(const Args *k) {                                                      \
        Rows_##S c = {k->p[1], NULL, k->p[0], k->n[1]};                                           \
        split(softmax_step_##S, &c, k->n[0], team(k, k->n[0] * k->n[1]));                         \
    }                                                                                             \
    static void log_softmax_##S(const Args *k) {                                                  \
        Rows_##S c = {k->p[1], NULL, k->p[0], k->n[1]};                                           \
        split(log_softmax_step_##S, &c, k->n[0], team(k, k->n[0] * k->n[1]));                     \
    }                                                                                             \
    static void logsumexp_##S(const Args *k) {                                                    \
        Rows_##S c = {k->p[1], NULL, k->p[0], k->n[1]};                                           \
        split(logsumexp_step_##S, &c, k->n[0], team(k, k->n[0] * k->n[1]));                       \
    }                                                                                             \
    static void softmax_backward_##S(const Args *k) {                                             \
        Rows_##S c = {k->p[1], k->p[2], k->p[0], k->n[1]};                                        \
        split(softmax_backward_step_##S, &c, k->n[0], team(k, k->n[0] * k->n[1]));                \
    }                                                                                             \
    static void log_softmax_backward_##S(const Args *k) {                                         \
        Rows_##S c = {k->p[1], k->p[2], k->p[0], k->n[1]};                                        \
        split(log_softmax_backward_step_##S, &c, k->n[0], team(k, k->n[0] * k->n[1]));            \
    }

SOFTMAX(float, exp_f, logf, f32)
SOFTMAX(double, exp_d, log, f64)

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
