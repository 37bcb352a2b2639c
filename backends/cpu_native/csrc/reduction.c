/* Reductions and running sums. */
#define TEMPLATE "reduction_template.h"
#include "both.h"
#include "program.h"

/* The least or the greatest of chunks of integers. */
typedef struct {
    const int64_t *a;
    int64_t *parts, n, chunk;
} Extremes;

#define EXTREME(name, start, relation)                                                           \
    WIDE static void name##_chunks(const void *context, int64_t begin, int64_t end) {            \
        const Extremes *c = context;                                                             \
        for (int64_t chunk = begin; chunk < end; chunk++) {                                      \
            const int64_t *restrict a = c->a + chunk * c->chunk, left = c->n - chunk * c->chunk; \
            const int64_t count = left < c->chunk ? left : c->chunk;                             \
            int64_t found = start;                                                               \
            for (int64_t i = 0; i < count; i++) found = a[i] relation found ? a[i] : found;      \
            c->parts[chunk] = found;                                                             \
        }                                                                                        \
    }                                                                                            \
    static void name(const Args *k) {                                                            \
        int64_t parts[64] = {0}, *found = k->p[0];                                                     \
        const int64_t n = k->n[0], chunk = n / 64 + 1, chunks = (n + chunk - 1) / chunk;         \
        Extremes c = {k->p[1], parts, n, chunk};                                                 \
        split(name##_chunks, &c, chunks, team(k, n));                                            \
        *found = parts[0];                                                                       \
        for (int64_t i = 1; i < chunks; i++) *found = parts[i] relation *found ? parts[i] : *found; \
    }
EXTREME(amin_i64, INT64_MAX, <)
EXTREME(amax_i64, INT64_MIN, >)

/* What `sum` gives of rows that have one chunk each. */
WIDE void sum_of_rows(float *out, const float *a, int64_t rows, int64_t columns, double divisor) {
    for (int64_t i = 0; i < rows; i++) out[i] = (float)(sum_run_f32(a + i * columns, columns, 0) / divisor);
}

const Row reduction_rows[] = {
    {"sum_f32", "wriiif", "t02,t012", sum_f32},       {"sum_f64", "wriiif", "t02,t012", sum_f64},
    {"prod_f32", "wriii", "t02,t012", prod_f32},      {"prod_f64", "wriii", "t02,t012", prod_f64},
    {"norm2_f32", "wriii", "t02,t012", norm2_f32},    {"norm2_f64", "wriii", "t02,t012", norm2_f64},
    {"var_f32", "wriif", "t0,t01", var_f32},        {"var_f64", "wriif", "t0,t01", var_f64},
    {"distance_f32", "wrrif", "t,t0,t0", distance_f32}, {"distance_f64", "wrrif", "t,t0,t0", distance_f64},
    {"amin_i64", "wri", "t,t0", amin_i64},        {"amax_i64", "wri", "t,t0", amax_i64},
    {"cumsum_f32", "wriii", "t012,t012", cumsum_f32},  {"cumsum_f64", "wriii", "t012,t012", cumsum_f64},
    {NULL, NULL, NULL, NULL},
};
