/* Reductions and running sums. */
#define TEMPLATE "reduction_template.h"
#include "avx512.h"
#include "program.h"
#include "short_rows.h"
#include "both.h"

/* Of rows shorter than this the sums of a vector's lanes are most of the time: one instruction each, by
   hand, is a fifth of what compilers make of the general loop. */
#define SHORT_ROW 256

/* Eight quotients take little more time than one. */
WIDE void divide_sums(float *sums, int64_t rows, double divisor) {
    for (int64_t i = 0; i < rows; i++) sums[i] = (float)((double)sums[i] / divisor);
}

#if HAS_AVX512
AVX512 static void sum_of_short_rows(float *out, const float *a, int64_t rows, int64_t columns, double divisor) {
    const int64_t whole = columns & ~(int64_t)15;
    const __mmask16 rest = (__mmask16)((1u << (columns - whole)) - 1);
    for (int64_t i = 0; i < rows; i++, a += columns) {
        __m512 sum = _mm512_maskz_loadu_ps(rest, a + whole);
        for (int64_t j = 0; j < whole; j += 16) sum += _mm512_loadu_ps(a + j);
        out[i] = _mm512_reduce_add_ps(sum);
    }
    divide_sums(out, rows, divisor);
}
#endif

WIDE static void sum_of_long_rows(float *out, const float *a, int64_t rows, int64_t columns, double divisor) {
    for (int64_t i = 0; i < rows; i++) out[i] = (float)(sum_run_f32(a + i * columns, columns, 0) / divisor);
}

/* What `sum` gives of rows that have one chunk each. */
void sum_of_rows(float *out, const float *a, int64_t rows, int64_t columns, double divisor) {
#if HAS_AVX512
    if (columns < SHORT_ROW && has_avx512()) {
        sum_of_short_rows(out, a, rows, columns, divisor);
        return;
    }
#endif
    sum_of_long_rows(out, a, rows, columns, divisor);
}

static void short_rows_step(const void *context, int64_t begin, int64_t end) {
    const Reduction_f32 *c = context;
    sum_of_rows(c->out + begin, c->a + begin * c->n, end - begin, c->n, c->divisor);
}

static void sum_of_all_f32(const Args *k) {
    const int64_t outer = k->n[0], n = k->n[1];
    const Reduction_f32 rows = {.a = k->p[1], .out = k->p[0], .n = n, .divisor = k->x[0]};
    if (k->n[2] == 1 && n < SHORT_ROW) split(short_rows_step, &rows, outer, team(k, outer * n));
    else sum_f32(k);
}

#define NUMBERS "running_template.h"
#include "numbers.h"

const Row reduction_rows[] = {
    {"sum_f32", "wriiif", "t02,t012", sum_of_all_f32},       {"sum_f64", "wriiif", "t02,t012", sum_f64},
    {"prod_f32", "wriii", "t02,t012", prod_f32},      {"prod_f64", "wriii", "t02,t012", prod_f64},
    {"prod_of_others_f32", "wriii", "t012,t012", prod_of_others_f32},
    {"prod_of_others_f64", "wriii", "t012,t012", prod_of_others_f64},
    {"nansum_f32", "wriii", "t02,t012", nansum_f32},  {"nansum_f64", "wriii", "t02,t012", nansum_f64},
    {"norm2_f32", "wriii", "t02,t012", norm2_f32},    {"norm2_f64", "wriii", "t02,t012", norm2_f64},
    {"var_f32", "wriif", "t0,t01", var_f32},        {"var_f64", "wriif", "t0,t01", var_f64},
    {"distance_f32", "wrrif", "t,t0,t0", distance_f32}, {"distance_f64", "wrrif", "t,t0,t0", distance_f64},
    {"running_place_f32", "wriiii", "d012,t012", running_place_f32},
    {"running_place_f64", "wriiii", "d012,t012", running_place_f64},
    {"running_place_i32", "wriiii", "d012,t012", running_place_i32},
    {"running_place_i64", "wriiii", "d012,t012", running_place_i64},
    {"cumsum_f32", "wriii", "t012,t012", cumsum_f32},  {"cumsum_f64", "wriii", "t012,t012", cumsum_f64},
    {"cumprod_f32", "wriii", "t012,t012", cumprod_f32}, {"cumprod_f64", "wriii", "t012,t012", cumprod_f64},
    {NULL, NULL, NULL, NULL},
};
