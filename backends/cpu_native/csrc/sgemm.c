/* Products of float32 matrices on several threads: of some rows with a weight by the kernel here where the
   processor has AVX-512, all others by those of another library. */
#include "product.h"
#include "turning.h"

#if HAS_THREADS
#include <pthread.h>
#include <signal.h>
#endif

#define PART (1 << 20) /* multiplications per thread below which a second thread is not worth waking */

typedef int (*Sgemm)(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *,
                     int64_t, float, float *, int64_t);

/* out = alpha·(a @ b) + beta·out, or + bias in each line; with relu, numbers below 0 become 0.  `turned`
   matrices are stored column by column. */
typedef struct {
    float *out;
    const float *a, *b, *bias;
    int64_t rows, columns, depth, out_step, a_step, b_step;
    float alpha, beta;
    int a_turned, b_turned, relu;
    Flag *failed;
} Product;

static int team_of(const Args *args, int64_t work) {
    const int64_t useful = work / PART;
    return useful < 1 ? 1 : useful < args->threads ? (int)useful : args->threads;
}

#if HAS_AVX512
#define MOST_VECTORS 4 /* of a panel */
#define DEPTH 512      /* of a block: its panel takes 128 KiB of the second cache */
#define STRIP 512      /* columns of `out` whose sums take 128 KiB of the second cache */
#define LEAST 32       /* of them, for which a panel is worth turning once more for another thread */

/* Of so many rows the vectors are full; of more, libraries are faster. */
#define FEWEST 16
#define FEW 192

/* Libraries copy a matrix into the order in which they read it: one that is as large as a weight and
   meets a few rows only is copied for little use.  Here the rows are turned instead, into panels of up to
   64 of them side by side, and the weight is read as it lies, once for each panel: line by line, each
   number times a vector of the panel.  The sums are turned at the end. */
typedef struct {
    float *out;
    const float *rows, *weight, *bias;
    int64_t count, columns, depth, out_step, rows_step, weight_step;
    int64_t panels, strips;
    int relu;
} Lines;

/* Some lines of a weight, beside each other a panel's `depth` rows and their sums. */
typedef struct {
    float *sums;
    const float *weight, *panel;
    int64_t weight_step, depth;
    int goes_on;
} Tile;

/* `lines` and `vectors` are constants where this is inlined, and the sums stay in registers. */
FORCED void tile(const Tile *t, int lines, int vectors) {
    const float *restrict weight = t->weight, *restrict panel = t->panel;
    const int64_t step = t->weight_step, width = vectors * LANES;
    __m512 sums[12][MOST_VECTORS];
#pragma GCC unroll 12
    for (int i = 0; i < lines; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sums[i][v] = t->goes_on ? _mm512_load_ps(t->sums + i * width + LANES * v) : _mm512_setzero_ps();
    for (int64_t k = 0; k < t->depth; k++) {
        if (k % LANES == 0) /* the lines after these */
#pragma GCC unroll 12
            for (int i = 0; i < lines; i++) __builtin_prefetch(weight + (lines + i) * step + k);
        __m512 y[MOST_VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            y[v] = _mm512_load_ps(panel + k * width + LANES * v);
            __asm__("" : "+v"(y[v])); /* read once, and not by each instruction: reading is the bottleneck */
        }
#pragma GCC unroll 12
        for (int i = 0; i < lines; i++) {
            const __m512 factor = _mm512_set1_ps(weight[i * step + k]);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) sums[i][v] = _mm512_fmadd_ps(factor, y[v], sums[i][v]);
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < lines; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) _mm512_store_ps(t->sums + i * width + LANES * v, sums[i][v]);
}

FORCED void next_tile(Tile *t, int64_t *rest, int lines, int vectors) {
    tile(t, lines, vectors);
    t->weight += lines * t->weight_step;
    t->sums += lines * vectors * LANES;
    *rest -= lines;
}

/* As many lines at a time as registers can hold the sums of, beside the panel's row and a factor. */
FORCED void tiles(Tile t, int64_t lines, int vectors) {
    const int most = vectors == 4 ? 6 : vectors == 3 ? 8 : 12;
    while (lines >= most) next_tile(&t, &lines, most, vectors);
    if (most > 8 && lines >= 8) next_tile(&t, &lines, 8, vectors);
    if (lines >= 4) next_tile(&t, &lines, 4, vectors);
    if (lines >= 2) next_tile(&t, &lines, 2, vectors);
    if (lines >= 1) next_tile(&t, &lines, 1, vectors);
}

AVX512 static void block(const Tile *t, int64_t lines, int vectors) {
    switch (vectors) {
        case 1: tiles(*t, lines, 1); break;
        case 2: tiles(*t, lines, 2); break;
        case 3: tiles(*t, lines, 3); break;
        default: tiles(*t, lines, 4);
    }
}

/* Memory of each thread, which it has from its first product on. */
static _Thread_local float panel[DEPTH * MOST_VECTORS * LANES] __attribute__((aligned(64)));
static _Thread_local float sums[STRIP * MOST_VECTORS * LANES] __attribute__((aligned(64)));

/* The strips [begin, end) of the weight, counted for each panel. */
static void strips(const void *context, int64_t begin, int64_t end) {
    const Lines *c = context;
    const int64_t units = (c->count + LANES - 1) / LANES, blocks = (c->depth + DEPTH - 1) / DEPTH;
    for (int64_t number = begin; number < end; number++) {
        const int64_t p = number / c->strips, s = number % c->strips;
        const int64_t unit = units * p / c->panels, row = unit * LANES;
        const int vectors = (int)(units * (p + 1) / c->panels - unit);
        const int64_t width = vectors * LANES, rows = c->count - row < width ? c->count - row : width;
        const int64_t column = c->columns * s / c->strips, columns = c->columns * (s + 1) / c->strips - column;
        for (int64_t i = 0; i < blocks; i++) {
            const int64_t k = c->depth * i / blocks, depth = c->depth * (i + 1) / blocks - k;
            turned(panel, width, c->rows + row * c->rows_step + k, c->rows_step, rows, depth, width, NULL, 0);
            const Tile t = {sums, c->weight + column * c->weight_step + k, panel, c->weight_step, depth, i > 0};
            block(&t, columns, vectors);
        }
        turned(c->out + row * c->out_step + column, c->out_step, sums, width, columns, rows, columns,
               c->bias == NULL ? NULL : c->bias + column, c->relu);
    }
}

static void by_lines(Lines *c, int threads) {
    c->panels = (c->count + MOST_VECTORS * LANES - 1) / (MOST_VECTORS * LANES);
    c->strips = (c->columns + STRIP - 1) / STRIP;
    if (c->columns >= threads * LEAST) c->strips = (c->strips + threads - 1) / threads * threads;
    split(strips, c, c->panels * c->strips, threads);
}

/* Whether the product is made here. */
static int multiplied(const Product *c, int threads) {
    const int is_sum = c->alpha == 1 && (c->bias != NULL ? c->beta == 1 : c->beta == 0);
    if (!has_avx512() || !is_sum || c->a_turned || !c->b_turned) return 0;
    if (c->rows < FEWEST || c->rows > FEW || c->columns < c->rows || c->depth < 1) return 0;
    Lines lines = {c->out, c->a, c->b, c->bias, c->rows, c->columns, c->depth,
                   c->out_step, c->a_step, c->b_step, 0, 0, c->relu};
    by_lines(&lines, threads);
    return 1;
}

static int64_t filled(int64_t count) { return (count + LANES - 1) / LANES * LANES; }

/* rows @ weightᵀ + bias, of matrices without gaps that are not empty, and its relu.  Either the rows and the
   sums are turned or the weight, and what is turned fills vectors; turning a number takes the time of some six
   products.  The sums are the same. */
static void make_lines(const Args *args, int relu) {
    const int64_t *n = args->n, rows = n[0], columns = n[1], depth = n[2];
    const double by_rows = filled(rows) * (double)columns * depth + 6.0 * rows * (depth + columns);
    const double by_weight = rows * (double)filled(columns) * depth + 6.0 * columns * depth;
    if (by_weight < by_rows) {
        const Matrices c = {.out = args->p[0], .a = args->p[1], .b = args->p[2], .bias = args->p[3],
                            .rows = rows, .columns = columns, .depth = depth, .out_step = columns,
                            .down = depth, .right = 1, .b_step = depth, .b_turned = 1, .relu = relu};
        multiply_matrices(&c, args->threads);
        return;
    }
    Lines lines = {args->p[0], args->p[1], args->p[2], args->p[3], rows, columns, depth, columns, depth, depth, 0, 0, relu};
    by_lines(&lines, team_of(args, rows * columns * depth));
}

static void linear(const Args *args) { make_lines(args, 0); }

/* The same and its relu. */
static void linear_relu(const Args *args) { make_lines(args, 1); }
int has_linear(void) { return has_avx512(); }
#else
static int multiplied(const Product *c, int threads) {
    (void)c, (void)threads;
    return 0;
}

int has_linear(void) { return 0; }
#endif

#define LINES 16 /* parts begin at multiples of this: libraries compute tiles of so many */

typedef struct {
    const Product *product;
    Sgemm sgemm;
    int (*get_threads)(void);
    void (*set_threads)(int);
    int by_rows;
} Call;

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

/* A signal that is delivered within a library's product was seen to corrupt the heap, unless it had a
   stack of its own: none is delivered meanwhile but those of faults. */
#if HAS_THREADS
typedef sigset_t Signals;
static void hold_signals(Signals *before) {
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, before);
}
static void let_signals(const Signals *before) { pthread_sigmask(SIG_SETMASK, before, NULL); }
#else
typedef int Signals;
static void hold_signals(Signals *before) { *before = 0; }
static void let_signals(const Signals *before) { (void)before; }
#endif

static void call_lines(const void *context, int64_t begin, int64_t end) {
    const Call *call = context;
    const Product *c = call->product;
    int64_t length = call->by_rows ? c->rows : c->columns, first = begin * LINES, last = end * LINES;
    if (last > length) last = length;
    int64_t row = call->by_rows ? first : 0, column = call->by_rows ? 0 : first;
    int64_t rows = call->by_rows ? last - first : c->rows, columns = call->by_rows ? c->columns : last - first;
    float *out = c->out + row * c->out_step + column;
    const float *a = c->a + row * (c->a_turned ? 1 : c->a_step);
    const float *b = c->b + column * (c->b_turned ? c->b_step : 1);
    if (c->bias != NULL) start_lines(out, c->bias + column, rows, columns, c->out_step);
    /* The number belongs to the thread, and may be shared with other users of the library. */
    int before = call->get_threads ? call->get_threads() : 1;
    if (before != 1) call->set_threads(1);
    Signals signals;
    hold_signals(&signals);
    int status = call->sgemm(c->a_turned ? 'T' : 'N', c->b_turned ? 'T' : 'N', rows, columns, c->depth,
                             c->alpha, a, c->a_step, b, c->b_step, c->beta, out, c->out_step);
    let_signals(&signals);
    if (before != 1) call->set_threads(before);
    if (status) *c->failed = 1;
    if (c->relu) cut_off_lines(out, rows, columns, c->out_step);
}

static void called(const Call *call, int threads) {
    const Product *c = call->product;
    int64_t lines = ((call->by_rows ? c->rows : c->columns) + LINES - 1) / LINES;
    split(call_lines, call, lines, (int)(threads < lines ? threads : lines));
}

/* Matrices by their addresses, and a function with the arguments of dnnl_sgemm. */
static void sgemm(const Args *args) {
    const int64_t *n = args->n;
    Flag failed = 0;
    const Product c = {.out = (float *)(intptr_t)n[3],
                       .a = (const float *)(intptr_t)n[4],
                       .b = (const float *)(intptr_t)n[5],
                       .bias = args->p[0],
                       .rows = n[6], .columns = n[7], .depth = n[8],
                       .out_step = n[9], .a_step = n[10], .b_step = n[11],
                       .a_turned = n[12] != 0, .b_turned = n[13] != 0, .relu = n[14] != 0,
                       .alpha = (float)args->x[0], .beta = (float)args->x[1],
                       .failed = &failed};
    const int threads = team_of(args, c.rows * c.columns * c.depth);
    if (multiplied(&c, threads)) return;
    const Call call = {.product = &c,
                       .sgemm = (Sgemm)(intptr_t)n[0],
                       .get_threads = (int (*)(void))(intptr_t)n[1],
                       .set_threads = (void (*)(int))(intptr_t)n[2],
                       .by_rows = c.rows >= c.columns};
    called(&call, threads);
    if (failed) *args->failure = "the library refuses the product";
}

const Row sgemm_rows[] = {
#if HAS_AVX512
    {"linear", "wrroiii", "w01,w02,w12,w1", linear},
    {"linear_relu", "wrroiii", "w01,w02,w12,w1", linear_relu},
#endif
    {"sgemm", "iiiiiioiiiiiiiiiff", "w7", sgemm},
    {NULL, NULL, NULL, NULL},
};
