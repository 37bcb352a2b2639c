/* Products of few rows with a matrix that many of them meet: it is packed once, where BLAS would
   pack it for each.  And the products of another library, in the threads of this one. */
#include "avx512.h"

#define TEMPLATE "product_template.h"

/* Whether fused multiply-add is an instruction here, and not a call of the C library. */
static int is_fused(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    return __builtin_cpu_supports("fma") != 0;
#elif defined(__aarch64__)
    return 1;
#else
    return 0;
#endif
}

#define PANEL_BYTES 64 /* a row of a panel: two vectors of AVX2, four of NEON */
#define MOST_ROWS 6    /* whose sums fit into 16 registers beside it */
#if HAS_AVX512
#define MOST_ROWS_V 12
#define FORCED static inline __attribute__((always_inline)) AVX512
#define LOAD(p) _Generic(p, const float *: _mm512_loadu_ps, const double *: _mm512_loadu_pd)(p)
#define SPREAD(x) _Generic(x, float: _mm512_set1_ps, double: _mm512_set1_pd)(x)
#define FUSED(a, b, c) _Generic(c, __m512: _mm512_fmadd_ps, __m512d: _mm512_fmadd_pd)(a, b, c)
typedef __m512 Vector_f32;
typedef __m512d Vector_f64;
#endif
#include "both.h"

#define BOTH(name, arguments) {#name "_f32", arguments, name##_f32}, {#name "_f64", arguments, name##_f64}

/* -- the products of another library ------------------------------------------------------------- */

#define LINES 16         /* parts begin at multiples of this: libraries compute tiles of so many */
#define PART (1 << 20)   /* multiplications per thread below which a second thread is not worth waking */

typedef int (*Sgemm)(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *,
                     int64_t, float, float *, int64_t);

typedef struct {
    Sgemm sgemm;
    int (*get_threads)(void);
    void (*set_threads)(int);
    float *out;
    const float *a, *b, *bias;
    int64_t rows, columns, depth, out_step, a_step, b_step;
    float alpha, beta;
    int a_turned, b_turned, by_rows, relu;
    Flag *failed;
} Sgemms;

WIDE static void start_lines(float *restrict out, const float *restrict bias, int64_t rows,
                             int64_t columns, int64_t step) {
    for (int64_t i = 0; i < rows; i++) memcpy(out + i * step, bias, (size_t)columns * sizeof(float));
}

WIDE static void cut_off_lines(float *out, int64_t rows, int64_t columns, int64_t step) {
    for (int64_t i = 0; i < rows; i++) {
        float *line = out + i * step;
#pragma omp simd
        for (int64_t j = 0; j < columns; j++) line[j] = line[j] < 0 ? 0 : line[j];
    }
}

static void sgemm_lines(const void *context, int64_t begin, int64_t end) {
    const Sgemms *c = context;
    int64_t length = c->by_rows ? c->rows : c->columns, first = begin * LINES, last = end * LINES;
    if (last > length) last = length;
    int64_t row = c->by_rows ? first : 0, column = c->by_rows ? 0 : first;
    int64_t rows = c->by_rows ? last - first : c->rows, columns = c->by_rows ? c->columns : last - first;
    float *out = c->out + row * c->out_step + column;
    const float *a = c->a + row * (c->a_turned ? 1 : c->a_step);
    const float *b = c->b + column * (c->b_turned ? c->b_step : 1);
    if (c->bias != NULL) start_lines(out, c->bias + column, rows, columns, c->out_step);
    /* The number belongs to the thread, and may be shared with other users of the library. */
    int before = c->get_threads ? c->get_threads() : 1;
    if (before != 1) c->set_threads(1);
    int status = c->sgemm(c->a_turned ? 'T' : 'N', c->b_turned ? 'T' : 'N', rows, columns, c->depth,
                          c->alpha, a, c->a_step, b, c->b_step, c->beta, out, c->out_step);
    if (before != 1) c->set_threads(before);
    if (status) *c->failed = 1;
    if (c->relu) cut_off_lines(out, rows, columns, c->out_step);
}

/* out = alpha·(a @ b) + beta·out by a function with the arguments of dnnl_sgemm, of matrices by their
   addresses; where there is a bias, each line of out is that at first.  With relu, numbers below 0
   become 0. */
static void sgemm(const Args *args) {
    const int64_t *n = args->n;
    Flag failed = 0;
    Sgemms c = {.sgemm = (Sgemm)(intptr_t)n[0],
                .get_threads = (int (*)(void))(intptr_t)n[1],
                .set_threads = (void (*)(int))(intptr_t)n[2],
                .out = (float *)(intptr_t)n[3],
                .a = (const float *)(intptr_t)n[4],
                .b = (const float *)(intptr_t)n[5],
                .bias = args->p[0],
                .rows = n[6], .columns = n[7], .depth = n[8],
                .out_step = n[9], .a_step = n[10], .b_step = n[11],
                .a_turned = n[12] != 0, .b_turned = n[13] != 0, .relu = n[14] != 0,
                .alpha = (float)args->x[0], .beta = (float)args->x[1],
                .by_rows = n[6] >= n[7], .failed = &failed};
    int64_t lines = ((c.by_rows ? c.rows : c.columns) + LINES - 1) / LINES;
    int64_t useful = c.rows * c.columns * c.depth / PART;
    int64_t threads = useful < args->threads ? useful : args->threads;
    split(sgemm_lines, &c, lines, (int)(threads < lines ? threads : lines));
    if (failed) *args->failure = "the library refuses the product";
}

const Row product_rows[] = {
    BOTH(pack, "wriiii"),
    BOTH(packed_product, "wrriii"),
    {"sgemm", "iiiiiioiiiiiiiiiff", sgemm},
    {NULL, NULL, NULL},
};
