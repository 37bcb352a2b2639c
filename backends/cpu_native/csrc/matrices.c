/* Products of two float32 matrices without gaps that the second cache holds, of which each is stored row by
   row or column by column.  Libraries copy both into the order in which they read them, and look for the
   best way before; of matrices of this size that is a third of the time. */
#include "product.h"
#include "turning.h"

#if HAS_AVX512
#define MOST_VECTORS 4 /* of a panel */
#define PANEL (MOST_VECTORS * LANES)
#define DEPTH 128 /* of a block: its panel takes 32 KiB of the first cache */
#define LEAST 24  /* rows for which another thread copies a panel once more */
#define PART (1 << 20) /* multiplications per thread below which a second is not worth waking */

/* out = a @ b + bias.  An element of `a` is `down` and `right` from those above it and to its left. */
typedef struct {
    float *out;
    const float *a, *b, *bias;
    int64_t rows, columns, depth, down, right;
    int b_turned;
    int64_t groups; /* of rows */
} Matrices;

/* Some rows of `a`, beside them a panel of `b` and their part of `out`. */
typedef struct {
    const float *a, *panel, *bias;
    float *out;
    int64_t down, right, step, columns, depth;
    __mmask16 last; /* lanes of the last vector */
    int goes_on;
} Tile;

/* `rows` and `vectors` are constants where this is inlined, and the sums stay in registers.  Each is one chain
   in the order of the depth, wherever it stands. */
FORCED void tile(const Tile *t, int rows, int vectors) {
    const float *restrict a = t->a, *restrict panel = t->panel;
    const int64_t width = vectors * LANES, down = t->down, right = t->right;
    __m512 sums[12][MOST_VECTORS];
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            const __mmask16 read = v == vectors - 1 ? t->last : (__mmask16)0xFFFF;
            sums[i][v] = t->goes_on ? _mm512_maskz_loadu_ps(read, t->out + i * t->step + LANES * v)
                                    : _mm512_setzero_ps();
        }
    for (int64_t k = 0; k < t->depth; k++) {
        __m512 y[MOST_VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            y[v] = _mm512_loadu_ps(panel + k * width + LANES * v);
            __asm__("" : "+v"(y[v])); /* read once, and not by each instruction */
        }
#pragma GCC unroll 12
        for (int i = 0; i < rows; i++) {
            const __m512 factor = _mm512_set1_ps(a[i * down + k * right]);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) sums[i][v] = _mm512_fmadd_ps(factor, y[v], sums[i][v]);
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            const __mmask16 written = v == vectors - 1 ? t->last : (__mmask16)0xFFFF;
            if (t->bias != NULL) sums[i][v] += _mm512_maskz_loadu_ps(written, t->bias + LANES * v);
            _mm512_mask_storeu_ps(t->out + i * t->step + LANES * v, written, sums[i][v]);
        }
}

FORCED void next_tile(Tile *t, int64_t *rest, int rows, int vectors) {
    tile(t, rows, vectors);
    t->a += rows * t->down;
    t->out += rows * t->step;
    *rest -= rows;
}

/* As many rows at a time as registers can hold the sums of, beside the panel's line and a factor. */
FORCED void tiles(Tile t, int64_t rows, int vectors) {
    const int most = vectors == 4 ? 6 : vectors == 3 ? 8 : 12;
    while (rows >= most) next_tile(&t, &rows, most, vectors);
    if (most > 8 && rows >= 8) next_tile(&t, &rows, 8, vectors);
    if (rows >= 4) next_tile(&t, &rows, 4, vectors);
    if (rows >= 2) next_tile(&t, &rows, 2, vectors);
    if (rows >= 1) next_tile(&t, &rows, 1, vectors);
}

AVX512 static void block(const Tile *t, int64_t rows, int vectors) {
    switch (vectors) {
        case 1: tiles(*t, rows, 1); break;
        case 2: tiles(*t, rows, 2); break;
        case 3: tiles(*t, rows, 3); break;
        default: tiles(*t, rows, 4);
    }
}

/* Memory of each thread, which it has from its first product on. */
static _Thread_local float copied[DEPTH * PANEL] __attribute__((aligned(64)));

/* `vectors` is a constant where this is inlined. */
FORCED void copy_lines(const float *lines, int64_t step, int64_t depth, int64_t columns, int vectors) {
    const __mmask16 last = lanes(columns - (vectors - 1) * LANES);
    for (int64_t i = 0; i < depth; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            const __mmask16 read = v == vectors - 1 ? last : (__mmask16)0xFFFF;
            _mm512_store_ps(copied + (i * vectors + v) * LANES,
                            _mm512_maskz_loadu_ps(read, lines + i * step + LANES * v));
        }
}

AVX512 static const float *panel_of(const Matrices *c, int64_t k, int64_t depth, int64_t column, int vectors) {
    const int64_t width = vectors * LANES, rest = c->columns - column, columns = rest < width ? rest : width;
    if (c->b_turned) {
        turned(copied, width, c->b + column * c->depth + k, c->depth, columns, depth, width, NULL, 0);
        return copied;
    }
    const float *lines = c->b + k * c->columns + column;
    if (c->columns == width) return lines;
    switch (vectors) {
        case 1: copy_lines(lines, c->columns, depth, columns, 1); break;
        case 2: copy_lines(lines, c->columns, depth, columns, 2); break;
        case 3: copy_lines(lines, c->columns, depth, columns, 3); break;
        default: copy_lines(lines, c->columns, depth, columns, 4);
    }
    return copied;
}

/* The groups of rows [begin, end), counted for each panel. */
AVX512 static void groups(const void *context, int64_t begin, int64_t end) {
    const Matrices *c = context;
    const int64_t units = (c->columns + LANES - 1) / LANES, panels = (units + MOST_VECTORS - 1) / MOST_VECTORS;
    const int64_t blocks = (c->depth + DEPTH - 1) / DEPTH;
    for (int64_t number = begin; number < end; number++) {
        const int64_t p = number / c->groups, g = number % c->groups;
        const int64_t unit = units * p / panels, column = unit * LANES;
        const int vectors = (int)(units * (p + 1) / panels - unit);
        const int64_t row = c->rows * g / c->groups, rows = c->rows * (g + 1) / c->groups - row;
        for (int64_t i = 0; i < blocks; i++) {
            const int64_t k = c->depth * i / blocks, depth = c->depth * (i + 1) / blocks - k;
            const int ends = i == blocks - 1;
            const Tile t = {.a = c->a + row * c->down + k * c->right,
                            .panel = panel_of(c, k, depth, column, vectors),
                            .bias = ends && c->bias != NULL ? c->bias + column : NULL,
                            .out = c->out + row * c->columns + column,
                            .down = c->down, .right = c->right, .step = c->columns, .depth = depth,
                            .last = lanes(c->columns - column - (vectors - 1) * LANES), .goes_on = i > 0};
            block(&t, rows, vectors);
        }
    }
}

static void multiply(const Args *args, Matrices *c) {
    const int64_t panels = (c->columns + PANEL - 1) / PANEL, work = times(times(c->rows, c->columns), c->depth) / PART;
    const int threads = work < 1 ? 1 : work < args->threads ? (int)work : args->threads;
    const int64_t most = (c->rows + LEAST - 1) / LEAST;
    c->groups = threads < 2 ? 1 : threads < most ? threads : most;
    split(groups, c, panels * c->groups, threads);
}

/* a @ b, and whether a and b are turned. */
static void matrices(const Args *args) {
    const int64_t *n = args->n;
    const int a_turned = n[3] != 0;
    Matrices c = {.out = args->p[0], .a = args->p[1], .b = args->p[2], .rows = n[0], .columns = n[1], .depth = n[2],
                  .down = a_turned ? 1 : n[2], .right = a_turned ? n[0] : 1, .b_turned = n[4] != 0};
    if (c.rows && c.columns && c.depth) multiply(args, &c);
    else memset(c.out, 0, (size_t)(c.rows * c.columns) * sizeof(float));
}

void multiply_rows(const Args *args, float *out, const float *a, const float *weight, const float *bias,
                   int64_t rows, int64_t columns, int64_t depth) {
    Matrices c = {.out = out, .a = a, .b = weight, .bias = bias, .rows = rows, .columns = columns, .depth = depth,
                  .down = depth, .right = 1, .b_turned = 1};
    multiply(args, &c);
}
#endif

const Row matrices_rows[] = {
#if HAS_AVX512
    {"matrices", "wrriiiii", "w01,w02,w12", matrices},
#endif
    {NULL, NULL, NULL, NULL},
};
