/* A panel is `WIDTH` columns of the matrix, row by row; the last is filled up with zeros. */
#define WIDTH ((int64_t)(PANEL_BYTES / sizeof(T)))

static void NAME(pack)(const Args *k) {
    T *restrict out = k->p[0];
    const T *restrict a = k->p[1];
    const int64_t columns = k->n[0], depth = k->n[1];
    const int64_t right = columns > 1 ? k->n[2] : 0, down = depth > 1 ? k->n[3] : 0;
    int64_t last = 0, further = 0;
    if (right < 0 || down < 0 || __builtin_mul_overflow(columns - 1, right, &last) ||
        __builtin_mul_overflow(depth - 1, down, &further) ||
        __builtin_add_overflow(last, further, &last) || last >= columns * depth) {
        *k->failure = "steps that leave the matrix";
        return;
    }
#if HAS_AVX512
    if (sizeof(T) == sizeof(float) && has_avx512() && (right == 1 || down == 1)) {
        pack_v(k->p[0], k->p[1], columns, depth, right, down);
        return;
    }
#endif
    for (int64_t j0 = 0; j0 < columns; j0 += WIDTH)
        for (int64_t i = 0; i < depth; i++)
            for (int64_t j = j0; j < j0 + WIDTH; j++)
                *out++ = j < columns ? a[j * right + i * down] : 0;
}

typedef struct {
    T *out;
    const T *a, *packed;
    int64_t rows, depth, columns;
    int fused;
} NAME(Product);

/* `rows` and `fused` are constants where this is inlined, and the sums stay in registers. */
INLINE void NAME(block)(const NAME(Product) * c, int rows, int fused, int64_t row, int64_t panel) {
    const int64_t depth = c->depth, j0 = panel * WIDTH;
    const T *restrict a = c->a + row * depth, *restrict b = c->packed + j0 * depth;
    T sums[MOST_ROWS][PANEL_BYTES / sizeof(T)] = {{0}};
    for (int64_t i = 0; i < depth; i++) {
#pragma GCC unroll 6
        for (int m = 0; m < rows; m++) {
            const T x = a[m * depth + i];
#pragma omp simd
            for (int64_t j = 0; j < WIDTH; j++)
                sums[m][j] = fused ? FMA(x, b[i * WIDTH + j], sums[m][j])
                                   : sums[m][j] + x * b[i * WIDTH + j];
        }
    }
    const int64_t width = c->columns - j0 < WIDTH ? c->columns - j0 : WIDTH;
    for (int m = 0; m < rows; m++)
        memcpy(c->out + (row + m) * c->columns + j0, sums[m], (size_t)width * sizeof(T));
}

INLINE void NAME(panel)(const NAME(Product) * c, int fused, int64_t panel) {
    const int64_t blocks = (c->rows + MOST_ROWS - 1) / MOST_ROWS; /* as equal as can be */
    for (int64_t k = 0; k < blocks; k++) {
        const int64_t row = c->rows * k / blocks;
        switch (c->rows * (k + 1) / blocks - row) {
            case 1: NAME(block)(c, 1, fused, row, panel); break;
            case 2: NAME(block)(c, 2, fused, row, panel); break;
            case 3: NAME(block)(c, 3, fused, row, panel); break;
            case 4: NAME(block)(c, 4, fused, row, panel); break;
            case 5: NAME(block)(c, 5, fused, row, panel); break;
            default: NAME(block)(c, 6, fused, row, panel);
        }
    }
}

WIDE static void NAME(panels)(const void *context, int64_t begin, int64_t end) {
    const NAME(Product) *c = context;
    for (int64_t panel = begin; panel < end; panel++) {
        if (c->fused) NAME(panel)(c, 1, panel);
        else NAME(panel)(c, 0, panel);
    }
}

#if HAS_AVX512
/* Two panels at a time and up to twelve rows: the sums fill the 32 registers of AVX-512. */
FORCED void NAME(block_v)(const NAME(Product) * c, int rows, int64_t row, int64_t panel) {
    const int64_t depth = c->depth, j0 = panel * WIDTH;
    const T *restrict a = c->a + row * depth, *restrict left = c->packed + j0 * depth;
    const T *restrict right = left + WIDTH * depth;
    NAME(Vector) sums[MOST_ROWS_V][2];
#pragma GCC unroll 12
    for (int m = 0; m < rows; m++) sums[m][0] = sums[m][1] = (NAME(Vector)){0};
    for (int64_t i = 0; i < depth; i++) {
        const NAME(Vector) b0 = LOAD(left + i * WIDTH), b1 = LOAD(right + i * WIDTH);
#pragma GCC unroll 12
        for (int m = 0; m < rows; m++) {
            const NAME(Vector) x = SPREAD(a[m * depth + i]);
            sums[m][0] = FUSED(x, b0, sums[m][0]);
            sums[m][1] = FUSED(x, b1, sums[m][1]);
        }
    }
    const int64_t width = c->columns - j0 < 2 * WIDTH ? c->columns - j0 : 2 * WIDTH;
#pragma GCC unroll 12
    for (int m = 0; m < rows; m++)
        memcpy(c->out + (row + m) * c->columns + j0, sums[m], (size_t)width * sizeof(T));
}

AVX512 static void NAME(panels_v)(const void *context, int64_t begin, int64_t end) {
    const NAME(Product) *c = context;
    const int64_t blocks = (c->rows + MOST_ROWS_V - 1) / MOST_ROWS_V;
    for (int64_t pair = begin; pair < end; pair++) {
        const int64_t panel = 2 * pair;
        if ((panel + 1) * WIDTH >= c->columns) {
            NAME(panel)(c, 1, panel);
            continue;
        }
        for (int64_t k = 0; k < blocks; k++) {
            const int64_t row = c->rows * k / blocks;
            switch (c->rows * (k + 1) / blocks - row) {
                case 1: NAME(block_v)(c, 1, row, panel); break;
                case 2: NAME(block_v)(c, 2, row, panel); break;
                case 3: NAME(block_v)(c, 3, row, panel); break;
                case 4: NAME(block_v)(c, 4, row, panel); break;
                case 5: NAME(block_v)(c, 5, row, panel); break;
                case 6: NAME(block_v)(c, 6, row, panel); break;
                case 7: NAME(block_v)(c, 7, row, panel); break;
                case 8: NAME(block_v)(c, 8, row, panel); break;
                case 9: NAME(block_v)(c, 9, row, panel); break;
                case 10: NAME(block_v)(c, 10, row, panel); break;
                case 11: NAME(block_v)(c, 11, row, panel); break;
                default: NAME(block_v)(c, 12, row, panel);
            }
        }
    }
}
#endif

/* out = a @ b of `rows` rows without gaps, b packed. */
void NAME(multiply_packed)(const Args *k, T *out, const T *a, const T *packed, int64_t rows, int64_t depth,
                           int64_t columns) {
    NAME(Product) c = {out, a, packed, rows, depth, columns, is_fused()};
    const int64_t panels = (columns + WIDTH - 1) / WIDTH;
    const int threads = team(k, rows * depth * columns / 16);
#if HAS_AVX512
    if (has_avx512()) {
        split(NAME(panels_v), &c, (panels + 1) / 2, threads);
        return;
    }
#endif
    split(NAME(panels), &c, panels, threads);
}

static void NAME(packed_product)(const Args *k) {
    NAME(multiply_packed)(k, k->p[0], k->p[1], k->p[2], k->n[0], k->n[1], k->n[2]);
}
#undef WIDTH

/* The products of a batch of matrices of few numbers each: terms are rounded and added in order, which
   here is faster than fused ones of a library.  Of fewer matrices than products the first follows the last. */
typedef struct {
    T *out;
    const T *a, *b;
    int64_t rows, depth, columns, a_count, b_count;
} NAME(Few);

static void NAME(few_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Few) *c = context;
    const int64_t rows = c->rows, depth = c->depth, columns = c->columns;
    int64_t i = begin % c->a_count, j = begin % c->b_count;
    T *restrict out = c->out + begin * rows * columns;
    for (int64_t batch = begin; batch < end; batch++) {
        const T *restrict a = c->a + i * rows * depth, *restrict b = c->b + j * depth * columns;
        for (int64_t row = 0; row < rows; row++, a += depth)
            for (int64_t column = 0; column < columns; column++) {
                T sum = 0;
                for (int64_t term = 0; term < depth; term++)
                    sum += a[term] * b[term * columns + column];
                *out++ = sum;
            }
        i = i + 1 < c->a_count ? i + 1 : 0;
        j = j + 1 < c->b_count ? j + 1 : 0;
    }
}

static void NAME(few)(const Args *k) {
    const int64_t count = k->n[0], work = count * k->n[1] * k->n[2] * k->n[3];
    const NAME(Few) c = {k->p[0], k->p[1], k->p[2], k->n[1], k->n[2], k->n[3], k->n[4], k->n[5]};
    if (c.a_count < 1 || c.b_count < 1) {
        *k->failure = "a batch has no matrices";
        return;
    }
    if (!c.rows || !c.columns) /* nothing to write, however many products it is */
        return;
    split(NAME(few_step), &c, count, team(k, work));
}
