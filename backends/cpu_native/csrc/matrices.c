/* Products of two float32 matrices, of which each is stored row by row or column by column.  Libraries copy
   both into the order in which they read them, and look for the best way before; of small matrices that is a
   third of the time, and of those that the second cache holds a tenth. */
#include "product.h"
#include "turning.h"

#if HAS_AVX512
#define MOST_VECTORS 4 /* of a panel */
#define PANEL (MOST_VECTORS * LANES)
#define DEPTH 512 /* of a block: its panel takes 128 KiB of the second cache, which is asked for ahead */
#define LEAST 24  /* rows for which another thread copies a panel once more */
#define FAR (1 << 17)  /* numbers of a product beyond which the next may lie outside of the nearer caches */
#define PART (1 << 20) /* multiplications per thread below which a second is not worth waking */

/* A product whose rows are divided, too. */
typedef struct {
    Matrices of;
    int64_t groups;
} Divided;

/* Numbers that will be needed: a line of the cache for each step in the depth.  Sixteen steps ask for as many
   lines that are `one` apart, the next sixteen for those that are `sixteen` from these. */
typedef struct {
    const float *first;
    int64_t one, sixteen;
} Ahead;

FORCED const float *line_ahead(const Ahead *c, int64_t k) {
    return c->first + k % LANES * c->one + k / LANES * c->sixteen;
}

/* Some rows of `a`, beside them a panel of `b` and their part of `out`. */
typedef struct {
    const float *a, *panel, *bias;
    Ahead next; /* what the next panel is copied from, a vector of its columns after the other */
    int64_t next_step;
    int next_left; /* vectors */
    float *out;
    int64_t down, right, step, columns, depth;
    __mmask16 last; /* lanes of the last vector */
    int goes_on, relu;
} Tile;

/* `rows` and `vectors` are constants where this is inlined, and the sums stay in registers.  Each is one chain
   in the order of the depth, wherever it stands. */
FORCED void tile(const Tile *t, int rows, int vectors, int far) {
    const float *restrict a = t->a, *restrict panel = t->panel;
    const int64_t width = vectors * LANES, down = t->down, right = t->right;
    /* The rows below: whole lines of some, or of each line the end. */
    const Ahead below = down == 1 ? (Ahead){a + 2 * rows - 1, right, LANES * right} : (Ahead){a + rows * down, down, LANES};
    const Ahead next = t->next_left > 0 ? t->next : (Ahead){panel, 0, 0};
    __m512 sums[12][MOST_VECTORS];
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            if (far) __builtin_prefetch(t->out + (rows + i) * t->step + LANES * v, 1);
            const __mmask16 read = v == vectors - 1 ? t->last : (__mmask16)0xFFFF;
            sums[i][v] = t->goes_on ? _mm512_maskz_loadu_ps(read, t->out + i * t->step + LANES * v)
                                    : _mm512_setzero_ps();
        }
    for (int64_t k = 0; k < t->depth; k++) {
        if (far) {
            __builtin_prefetch(line_ahead(&below, k));
            __builtin_prefetch(line_ahead(&next, k), 0, 2);
        }
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
            __m512 sum = sums[i][v];
            if (t->bias != NULL) sum += _mm512_maskz_loadu_ps(written, t->bias + LANES * v);
            if (t->relu) sum = _mm512_max_ps(_mm512_setzero_ps(), sum);
            _mm512_mask_storeu_ps(t->out + i * t->step + LANES * v, written, sum);
        }
}

FORCED void next_tile(Tile *t, int64_t *rest, int rows, int vectors, int far) {
    tile(t, rows, vectors, far);
    t->a += rows * t->down;
    t->out += rows * t->step;
    t->next.first += t->next_step;
    t->next_left--;
    *rest -= rows;
}

/* As many rows at a time as registers can hold the sums of, beside the panel's line and a factor. */
FORCED void tiles(Tile t, int64_t rows, int vectors, int far) {
    const int most = vectors == 4 ? 6 : vectors == 3 ? 8 : 12;
    while (rows >= most) next_tile(&t, &rows, most, vectors, far);
    if (most > 8 && rows >= 8) next_tile(&t, &rows, 8, vectors, far);
    if (rows >= 4) next_tile(&t, &rows, 4, vectors, far);
    if (rows >= 2) next_tile(&t, &rows, 2, vectors, far);
    if (rows >= 1) next_tile(&t, &rows, 1, vectors, far);
}

FORCED void block(const Tile *t, int64_t rows, int vectors, int far) {
    switch (vectors) {
        case 1: tiles(*t, rows, 1, far); break;
        case 2: tiles(*t, rows, 2, far); break;
        case 3: tiles(*t, rows, 3, far); break;
        default: tiles(*t, rows, 4, far);
    }
}

AVX512 static void block_near(const Tile *t, int64_t rows, int vectors) { block(t, rows, vectors, 0); }
AVX512 static void block_far(const Tile *t, int64_t rows, int vectors) { block(t, rows, vectors, 1); }

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
        turned(copied, width, c->b + column * c->b_step + k, c->b_step, columns, depth, width, NULL, 0);
        return copied;
    }
    const float *lines = c->b + k * c->b_step + column;
    if (c->b_step == width && columns == width) return lines;
    switch (vectors) {
        case 1: copy_lines(lines, c->b_step, depth, columns, 1); break;
        case 2: copy_lines(lines, c->b_step, depth, columns, 2); break;
        case 3: copy_lines(lines, c->b_step, depth, columns, 3); break;
        default: copy_lines(lines, c->b_step, depth, columns, 4);
    }
    return copied;
}

/* The groups of rows [begin, end), counted for each panel. */
AVX512 static void groups(const void *context, int64_t begin, int64_t end) {
    const Divided *divided = context;
    const Matrices *c = &divided->of;
    const int64_t units = (c->columns + LANES - 1) / LANES, panels = (units + MOST_VECTORS - 1) / MOST_VECTORS;
    const int64_t blocks = c->depth ? (c->depth + DEPTH - 1) / DEPTH : 1;
    const int far = c->depth >= PANEL && c->rows * c->depth + c->columns * (c->depth + c->rows) > FAR;
    for (int64_t number = begin; number < end; number++) {
        const int64_t p = number / divided->groups, g = number % divided->groups;
        const int64_t unit = units * p / panels, column = unit * LANES;
        const int vectors = (int)(units * (p + 1) / panels - unit);
        const int64_t row = c->rows * g / divided->groups, rows = c->rows * (g + 1) / divided->groups - row;
        for (int64_t i = 0; i < blocks; i++) {
            const int64_t k = c->depth * i / blocks, depth = c->depth * (i + 1) / blocks - k;
            const int ends = i == blocks - 1;
            const int64_t after = ends ? (number + 1) / divided->groups : p, more = ends ? 0 : k + depth;
            const int64_t units_before = units * after / panels, to = units_before * LANES;
            const Tile t = {.next = c->b_turned ? (Ahead){c->b + to * c->b_step + more, c->b_step, LANES}
                                                : (Ahead){c->b + more * c->b_step + to, c->b_step, LANES * c->b_step},
                            .next_step = c->b_turned ? LANES * c->b_step : LANES,
                            .next_left = ends && number + 1 == end ? 0 : (int)(units * (after + 1) / panels - units_before),
                            .a = c->a + row * c->down + k * c->right,
                            .panel = panel_of(c, k, depth, column, vectors),
                            .bias = ends && c->bias != NULL ? c->bias + column : NULL,
                            .out = c->out + row * c->out_step + column,
                            .down = c->down, .right = c->right, .step = c->out_step, .depth = depth,
                            .last = lanes(c->columns - column - (vectors - 1) * LANES), .goes_on = i > 0,
                            .relu = ends ? c->relu : 0};
            if (far) block_far(&t, rows, vectors);
            else block_near(&t, rows, vectors);
        }
    }
}

void multiply_matrices(const Matrices *c, int most) {
    const int64_t panels = (c->columns + PANEL - 1) / PANEL, work = times(times(c->rows, c->columns), c->depth) / PART;
    const int threads = work < 1 ? 1 : work < most ? (int)work : most;
    const int64_t groups_of = (c->rows + LEAST - 1) / LEAST;
    const Divided divided = {*c, threads < 2 ? 1 : threads < groups_of ? threads : groups_of};
    split(groups, &divided, panels * divided.groups, threads);
}

/* a @ b + bias, whether a and b are turned, and what relu makes of it (`turned`). */
static void matrices(const Args *args) {
    const int64_t *n = args->n, rows = n[0], columns = n[1], depth = n[2];
    const int a_turned = n[3] != 0, b_turned = n[4] != 0;
    const Matrices c = {.out = args->p[0], .a = args->p[1], .b = args->p[2], .bias = args->p[3],
                        .rows = rows, .columns = columns, .depth = depth, .out_step = columns,
                        .down = a_turned ? 1 : depth, .right = a_turned ? rows : 1,
                        .b_step = b_turned ? depth : columns, .b_turned = b_turned, .relu = n[5] != 0};
    if (rows && columns) multiply_matrices(&c, args->threads);
}
/* out = a[0]ᵀ @ b[0] + a[1]ᵀ @ b[1] + …: the gradient of a weight that every step of a loop has used.  The sum of
   each step is over before it is added, as by a call for each. */
typedef struct {
    float *out;
    const float *a, *b;
    int64_t rows, columns, depth, steps;
} Steps;

#define STEP_ROWS 6 /* of a tile, whose sums and those of all steps so far stay in registers */
#define STEP_VECTORS 2

/* `rows` and `vectors` are constants where this is inlined. */
FORCED void steps_tile(const Steps *c, int64_t row, int64_t column, int rows, int vectors) {
    const float *a = c->a + row, *b = c->b + column;
    const __mmask16 last = lanes(c->columns - column - (vectors - 1) * LANES);
    __m512 whole[STEP_ROWS][STEP_VECTORS];
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) whole[i][v] = _mm512_setzero_ps();
    for (int64_t s = 0; s < c->steps; s++) {
        __m512 sums[STEP_ROWS][STEP_VECTORS];
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) sums[i][v] = _mm512_setzero_ps();
        for (int64_t k = 0; k < c->depth; k++, a += c->rows, b += c->columns) {
            __m512 y[STEP_VECTORS];
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                y[v] = v == vectors - 1 ? _mm512_maskz_loadu_ps(last, b + LANES * v) : _mm512_loadu_ps(b + LANES * v);
#pragma GCC unroll 6
            for (int i = 0; i < rows; i++) {
                const __m512 factor = _mm512_set1_ps(a[i]);
#pragma GCC unroll 2
                for (int v = 0; v < vectors; v++) sums[i][v] = _mm512_fmadd_ps(factor, y[v], sums[i][v]);
            }
        }
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) whole[i][v] = s ? _mm512_add_ps(whole[i][v], sums[i][v]) : sums[i][v];
    }
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            _mm512_mask_storeu_ps(c->out + (row + i) * c->columns + column + LANES * v,
                                  v == vectors - 1 ? last : (__mmask16)0xFFFF, whole[i][v]);
}

FORCED void steps_rows(const Steps *c, int64_t row, int64_t end, int64_t column, int vectors) {
    for (; row + STEP_ROWS <= end; row += STEP_ROWS) steps_tile(c, row, column, STEP_ROWS, vectors);
    for (; row + 2 <= end; row += 2) steps_tile(c, row, column, 2, vectors);
    if (row < end) steps_tile(c, row, column, 1, vectors);
}

AVX512 static void some_steps(const void *context, int64_t begin, int64_t end) {
    const Steps *c = context;
    const int64_t first = begin * STEP_ROWS, last = end * STEP_ROWS < c->rows ? end * STEP_ROWS : c->rows;
    for (int64_t column = 0; column < c->columns; column += STEP_VECTORS * LANES)
        if (c->columns - column > LANES) steps_rows(c, first, last, column, 2);
        else steps_rows(c, first, last, column, 1);
}

static void products_of_steps(const Args *args) {
    const int64_t *n = args->n;
    const Steps c = {args->p[0], args->p[1], args->p[2], n[0], n[1], n[2], n[3]};
    if (!c.rows || !c.columns) return;
    if (!c.steps || !c.depth) { /* however many steps of nothing there are */
        memset(c.out, 0, (size_t)(c.rows * c.columns) * sizeof(float));
        return;
    }
    const int64_t tiles = (c.rows + STEP_ROWS - 1) / STEP_ROWS;
    const int64_t useful = times(times(c.rows, c.columns), times(c.depth, c.steps)) / PART;
    const int threads = useful < 1 ? 1 : useful < args->threads ? (int)useful : args->threads;
    split(some_steps, &c, tiles, threads < tiles ? threads : (int)tiles);
}
#endif

const Row matrices_rows[] = {
#if HAS_AVX512
    {"matrices", "wrroiiiiii", "w01,w02,w12,w1", matrices},
    {"products_of_steps", "wrriiii", "w01,w302,w312", products_of_steps},
#endif
    {NULL, NULL, NULL, NULL},
};
