/* Operands with gaps between their rows, or that repeat: pieces of them are copied to where they stand side by side,
   in the first cache, and kernels of elements see these. */
#include "gapped.h"

#include "avx512.h"

#define PIECE 1024       /* elements that are copied at a time */
#define LONG_PIECE 16384 /* that are read where they are */
#define LEAST_LINE 4 /* elements of a line, below which NumPy's loops are as fast */
#define SHORT_LINE 16 /* bytes of a line, up to which it is copied as one item */

/* The stride of a dimension of the common shape, of which an operand may have but one element, or none. */
static int64_t stride_in(const Array *a, int d, int rank) {
    const int own = d - (rank - a->rank);
    return own < 0 || a->shape[own] == 1 ? 0 : (int64_t)a->strides[own];
}

static int read_shapes(const Array *const *arrays, int count, int *rank, Py_ssize_t *shape) {
    *rank = 0;
    for (int j = 0; j < count; j++)
        if (arrays[j]->rank > *rank) *rank = arrays[j]->rank;
    if (*rank > MOST_RANK) return 0;
    Py_ssize_t all = 1;
    for (int d = 0; d < *rank; d++) {
        shape[d] = 1;
        for (int j = 0; j < count; j++) {
            const int own = d - (*rank - arrays[j]->rank);
            const Py_ssize_t size = own < 0 ? 1 : arrays[j]->shape[own];
            if (size != 1 && shape[d] != 1 && size != shape[d]) return 0;
            if (size != 1) shape[d] = size;
        }
        if (shape[d] < 1 || __builtin_mul_overflow(all, shape[d], &all) || all > PY_SSIZE_T_MAX / 8) return 0;
    }
    return 1;
}

/* Whether an operand is aligned and goes through memory forwards, as the result does or in any order. */
static int is_in_order(const Array *a, int64_t itemsize, Order order, int rank, const Py_ssize_t *shape) {
    const uintptr_t unit = itemsize > 8 ? 8 : (uintptr_t)itemsize;
    int64_t last = INT64_MAX;
    if (((uintptr_t)a->memory & (unit - 1)) != 0) return 0;
    for (int d = 0; d < rank; d++) {
        const int64_t step = stride_in(a, d, rank);
        if (shape[d] == 1 || step == 0) continue;
        if (step < 0 || step > last || step % itemsize != 0) return 0;
        if (order != ANY_ORDER) last = step;
    }
    return 1;
}

int read_gapped(Gapped *g, const Array *const *arrays, int count, const Py_ssize_t *itemsizes, Order order, int *rank,
                Py_ssize_t *shape) {
    if (count > MOST_GAPPED || !read_shapes(arrays, count, rank, shape)) return 0;
    *g = (Gapped){.operands = count, .itemsize = itemsizes[0]};
    for (int j = 0; j < count; j++) {
        if (!is_in_order(arrays[j], itemsizes[j], order, *rank, shape)) return 0;
        g->memory[j] = arrays[j]->memory;
    }
    for (int d = 0; d < *rank; d++) {
        if (shape[d] == 1) continue;
        int is_joined = g->rank > 0;
        for (int j = 0; j < count; j++)
            is_joined = is_joined && g->strides[j][g->rank - 1] == stride_in(arrays[j], d, *rank) * shape[d];
        if (is_joined) g->shape[g->rank - 1] *= shape[d];
        else g->shape[g->rank++] = shape[d];
        for (int j = 0; j < count; j++) g->strides[j][g->rank - 1] = stride_in(arrays[j], d, *rank);
    }
    if (g->rank == 0) return 0;
    if (order == SPREAD) return 1;
    if (g->shape[g->rank - 1] < LEAST_LINE) return 0;
    for (int j = 0; j < count; j++) {
        const int64_t step = g->strides[j][g->rank - 1];
        if (step != 0 && step != itemsizes[j]) return 0;
    }
    return 1;
}

typedef struct {
    const Gapped *g;
    Kernel kernel;
    char *out;
    int64_t size, rows, line, piece, rows_of_piece, pieces_of_line; /* elements of a line, and of a piece of it */
    const double *floats;
    int takes_numbers;
    enum { COPIED, IN_PLACE, NUMBER } how[MOST_GAPPED];
    const char **failure;
} Run;

/* Copies lines of n items, which begin `step` bytes apart, or repeats the one item of each, to lines that do `apart`. */
typedef void Copy(char *to, int64_t apart, const char *from, int64_t step, int64_t lines, int64_t n, int64_t itemsize,
                  int repeats);

static void copy_lines(char *to, int64_t apart, const char *from, int64_t step, int64_t lines, int64_t n,
                       int64_t itemsize, int repeats) {
    for (; lines > 0; lines--, from += step, to += apart) {
        if (!repeats) memcpy(to, from, (size_t)(n * itemsize));
        else
            for (int64_t i = 0; i < n; i++) memcpy(to + i * itemsize, from, (size_t)itemsize);
    }
}

#if HAS_AVX512
/* The same of items of four or eight bytes, in vectors of 64. */
#define COPY_LINES(name, lanes, mask_type, load, store, repeated)                                                  \
    AVX512 static void name(char *to, int64_t apart, const char *from, int64_t step, int64_t lines, int64_t n,     \
                            int64_t itemsize, int repeats) {                                                       \
        const int64_t rest = n % (lanes), whole = n - rest;                                                        \
        const mask_type last = (mask_type)((1u << rest) - 1);                                                      \
        for (; lines > 0; lines--, from += step, to += apart) {                                                    \
            if (repeats) {                                                                                         \
                const __m512i item = repeated;                                                                     \
                for (int64_t i = 0; i < whole; i += (lanes)) _mm512_storeu_si512(to + i * itemsize, item);         \
                if (rest) store(to + whole * itemsize, last, item);                                                \
            } else {                                                                                               \
                for (int64_t i = 0; i < whole; i += (lanes))                                                       \
                    _mm512_storeu_si512(to + i * itemsize, _mm512_loadu_si512(from + i * itemsize));               \
                if (rest) store(to + whole * itemsize, last, load(last, from + whole * itemsize));                 \
            }                                                                                                      \
        }                                                                                                          \
    }
COPY_LINES(copy_lines_w4, 16, __mmask16, _mm512_maskz_loadu_epi32, _mm512_mask_storeu_epi32,
           _mm512_set1_epi32(*(const int32_t *)(const void *)from))
COPY_LINES(copy_lines_w8, 8, __mmask8, _mm512_maskz_loadu_epi64, _mm512_mask_storeu_epi64,
           _mm512_set1_epi64(*(const int64_t *)(const void *)from))
#endif

static Copy *copy_of(int64_t itemsize) {
#if HAS_AVX512
    if (has_avx512() && itemsize == 4) return copy_lines_w4;
    if (has_avx512() && itemsize == 8) return copy_lines_w8;
#else
    (void)itemsize;
#endif
    return copy_lines;
}

int64_t place_in_gapped(const Gapped *g, int j, int64_t row, int64_t first) {
    const int64_t *steps = g->strides[j];
    int64_t place = first * steps[g->rank - 1];
    for (int d = g->rank - 2; d >= 0; row /= g->shape[d--]) place += row % g->shape[d] * steps[d];
    return place;
}

#if HAS_AVX512
/* Copies every second of n items of four or eight bytes to where they lie side by side, or back; returns how many, in
   whole vectors.  Nothing is read behind the last, and nothing is written between them. */
#define EVERY_SECOND(S, W, lanes, all_but_last, of_items)                                                             \
    AVX512 static int64_t every_second_##S(char *to, const char *from, int64_t n, int is_back) {                      \
        W even[lanes], first[lanes], second[lanes];                                                                   \
        for (int i = 0; i < (lanes); i++) even[i] = 2 * i, first[i] = i / 2, second[i] = (lanes) / 2 + i / 2;         \
        const __m512i picked = _mm512_loadu_si512(even), low = _mm512_loadu_si512(first);                             \
        const __m512i high = _mm512_loadu_si512(second);                                                              \
        const int64_t vector = 64;                                                                                    \
        int64_t i = 0;                                                                                                \
        for (; i + (lanes) <= n; i += (lanes)) {                                                                      \
            if (is_back) {                                                                                            \
                const __m512i items = _mm512_loadu_si512(from + i * (int64_t)sizeof(W));                              \
                char *at = to + i * 2 * (int64_t)sizeof(W);                                                           \
                _mm512_mask_storeu_##of_items(at, 0x5555 & ((1 << (lanes)) - 1), _mm512_permutexvar_##of_items(low, items)); \
                _mm512_mask_storeu_##of_items(at + vector, 0x5555 & ((1 << (lanes)) - 1),                             \
                                              _mm512_permutexvar_##of_items(high, items));                            \
            } else {                                                                                                  \
                const char *at = from + i * 2 * (int64_t)sizeof(W);                                                   \
                const __m512i before = _mm512_loadu_si512(at);                                                        \
                const __m512i after = _mm512_maskz_loadu_##of_items(all_but_last, at + vector);                       \
                _mm512_storeu_si512(to + i * (int64_t)sizeof(W), _mm512_permutex2var_##of_items(before, picked, after)); \
            }                                                                                                         \
        }                                                                                                             \
        return i;                                                                                                     \
    }
EVERY_SECOND(w4, int32_t, 16, 0x7FFF, epi32)
EVERY_SECOND(w8, int64_t, 8, 0x7F, epi64)
#endif

/* Copies items that begin `step` bytes apart to where they do `apart`. */
#define COPY_ITEMS(bytes) \
    for (int64_t i = 0; i < n; i++) memcpy(to + i * apart, from + i * step, bytes)
static void copy_items(char *to, int64_t apart, const char *from, int64_t step, int64_t n, int64_t itemsize) {
#if HAS_AVX512
    const int is_back = step == itemsize;
    if ((itemsize == 4 || itemsize == 8) && step + apart == 3 * itemsize && step * apart == 2 * itemsize * itemsize && has_avx512()) {
        const int64_t done = itemsize == 4 ? every_second_w4(to, from, n, is_back) : every_second_w8(to, from, n, is_back);
        to += done * apart, from += done * step, n -= done;
    }
#endif
    if (itemsize == 4) COPY_ITEMS(4);
    else if (itemsize == 8) COPY_ITEMS(8);
    else if (itemsize == 12) COPY_ITEMS(12);
    else if (itemsize == 16) COPY_ITEMS(16);
    else COPY_ITEMS((size_t)itemsize);
}

/* Copies lines of n items from the first steps to the second ones: { of lines, of items }. */
static void copy_block(char *to, const int64_t *apart, const char *from, const int64_t *step, int64_t lines, int64_t n,
                       int64_t itemsize, Copy *copy) {
    if (step[1] == 0 || (step[1] == itemsize && apart[1] == itemsize)) {
        if (step[1] != 0 && n * itemsize <= SHORT_LINE) copy_items(to, apart[0], from, step[0], lines, n * itemsize);
        else copy(to, apart[0], from, step[0], lines, n, itemsize, step[1] == 0);
    } else if (n == 1) {
        copy_items(to, apart[0], from, step[0], lines, itemsize);
    } else {
        for (; lines > 0; lines--, from += step[0], to += apart[0])
            copy_items(to, apart[1], from, step[1], n, itemsize);
    }
}

/* Copies n items of some rows, from the item `first` of each on, to where they lie side by side, or back. */
static void carry(const Gapped *g, int j, int64_t row, int64_t rows, int64_t first, int64_t n, char *beside, int is_back,
                  Copy *copy) {
    const int64_t *steps = g->strides[j], itemsize = g->itemsize, last = g->rank - 1;
    const int64_t own[2] = {last == 0 ? 0 : steps[last - 1], steps[last]}, dense[2] = {n * itemsize, itemsize};
    int64_t place[MOST_RANK], left = row;
    char *at = (char *)(uintptr_t)g->memory[j] + place_in_gapped(g, j, row, first);
    for (int64_t d = last - 1; d >= 0; left /= g->shape[d--]) place[d] = left % g->shape[d];
    while (rows > 0) {
        const int64_t run = last == 0 ? 1 : g->shape[last - 1] - place[last - 1];
        const int64_t lines = run < rows ? run : rows;
        if (is_back) copy_block(at, own, beside, dense, lines, n, itemsize, copy);
        else copy_block(beside, dense, at, own, lines, n, itemsize, copy);
        beside += lines * n * itemsize, rows -= lines;
        if (rows == 0) return;
        at += lines * own[0];
        for (int64_t d = last - 1; d >= 0; d--) { /* the line is over: the next of the dimensions before */
            if (d == last - 1) place[d] += lines;
            if (place[d] < g->shape[d]) break;
            at -= place[d] * steps[d], place[d] = 0;
            if (d > 0) at += steps[d - 1], place[d - 1]++;
        }
    }
}

static void gather(const Gapped *g, int j, int64_t row, int64_t rows, int64_t first, int64_t n, char *to, Copy *copy) {
    carry(g, j, row, rows, first, n, to, 0, copy);
}

static void pieces_step(const void *context, int64_t begin, int64_t end) {
    const Run *c = context;
    const Gapped *g = c->g;
    _Alignas(64) char buffers[MOST_GAPPED][PIECE * 8];
    Copy *const copy = copy_of(g->itemsize);
    for (int j = 0; j < g->operands; j++)
        if (c->how[j] == NUMBER) copy(buffers[j], 0, g->memory[j], 0, 1, c->takes_numbers ? 1 : PIECE, g->itemsize, 1);
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t row = piece / c->pieces_of_line * c->rows_of_piece, first = piece % c->pieces_of_line * c->piece;
        const int64_t rows = c->rows - row < c->rows_of_piece ? c->rows - row : c->rows_of_piece;
        const int64_t n = c->line - first < c->piece ? c->line - first : c->piece, at = row * c->line + first;
        int64_t sizes[1 + MOST_GAPPED] = {rows * n};
        void *pointers[1 + MOST_GAPPED] = {c->out == NULL ? NULL : c->out + at * c->size};
        for (int j = 0; j < g->operands; j++) {
            pointers[1 + j] = buffers[j];
            if (c->how[j] == IN_PLACE) pointers[1 + j] = (char *)(uintptr_t)g->memory[j] + place_in_gapped(g, j, row, first);
            else if (c->how[j] == COPIED) gather(g, j, row, rows, first, n, buffers[j], copy);
            else sizes[1 + j] = c->takes_numbers;
        }
        if (c->out == NULL) pointers[0] = pointers[1];
        const char *error = NULL;
        const Args packed = {pointers, sizes, c->floats, 1, &error, c->failure};
        c->kernel(&packed);
        if (c->out == NULL && c->how[0] == COPIED) carry(g, 0, row, rows, first, n, buffers[0], 1, copy);
    }
}

void run_gapped(const Gapped *g, Kernel kernel, int takes_numbers, char *out, int64_t size, const double *floats,
                int threads, const char **failure) {
    Run c = {.g = g, .kernel = kernel, .out = out, .size = size, .rows = 1, .line = g->shape[g->rank - 1],
             .piece = LONG_PIECE, .rows_of_piece = 1, .pieces_of_line = 1, .floats = floats,
             .takes_numbers = takes_numbers, .failure = failure};
    for (int d = 0; d < g->rank - 1; d++) c.rows *= g->shape[d];
    for (int j = 0; j < g->operands; j++) {
        int64_t step = g->itemsize;
        int is_dense = 1, is_number = 1;
        for (int d = g->rank - 1; d >= 0; step *= g->shape[d--]) {
            is_dense &= g->strides[j][d] == step;
            is_number &= g->strides[j][d] == 0;
        }
        const int is_line = c.line > PIECE && g->strides[j][g->rank - 1] == g->itemsize;
        c.how[j] = is_number ? NUMBER : is_dense || is_line ? IN_PLACE : COPIED;
        if (c.how[j] == COPIED || (is_number && !takes_numbers)) c.piece = PIECE;
    }
    if (c.line <= PIECE) c.rows_of_piece = PIECE / c.line;
    else c.pieces_of_line = (c.line + c.piece - 1) / c.piece;
    const int64_t pieces = c.pieces_of_line > 1 ? c.rows * c.pieces_of_line
                                                : (c.rows + c.rows_of_piece - 1) / c.rows_of_piece;
    const Args all = {NULL, NULL, NULL, threads, NULL, NULL};
    split(pieces_step, &c, pieces, team(&all, c.rows * c.line));
}

/* The bytes from the first of an operand's elements to the end of its last. */
static int64_t reach_of(const Gapped *g, int j) {
    int64_t last = 0;
    for (int d = 0; d < g->rank; d++) last += (g->shape[d] - 1) * g->strides[j][d];
    return last + g->itemsize;
}

int read_one_gapped(Gapped *g, const Array *a, Py_ssize_t itemsize, int64_t *bytes, int *repeats) {
    const Array *const arrays[] = {a};
    const Py_ssize_t sizes[] = {itemsize};
    int rank;
    Py_ssize_t shape[MOST_RANK];
    if (!read_gapped(g, arrays, 1, sizes, SPREAD, &rank, shape)) return 0;
    *bytes = itemsize;
    for (int d = 0; d < g->rank; d++) *bytes *= g->shape[d];
    *repeats = *bytes > reach_of(g, 0);
    return 1;
}

typedef struct {
    const Gapped *g;
    char *to;
} Collection;

static void collect_step(const void *context, int64_t begin, int64_t end) {
    const Collection *c = context;
    const int64_t n = c->g->shape[c->g->rank - 1];
    gather(c->g, 0, begin, end - begin, 0, n, c->to + begin * n * c->g->itemsize, copy_of(c->g->itemsize));
}

void collect_gapped(const Gapped *g, char *to, int threads) {
    const Collection c = {g, to};
    int64_t rows = 1;
    for (int d = 0; d < g->rank - 1; d++) rows *= g->shape[d];
    const Args all = {NULL, NULL, NULL, threads, NULL, NULL};
    split(collect_step, &c, rows, team(&all, rows * g->shape[g->rank - 1]));
}

/* The bytes from the first element of an operand's line to the end of its last. */
static int64_t line_of(const Gapped *g, int j) {
    return (g->shape[g->rank - 1] - 1) * g->strides[j][g->rank - 1] + g->itemsize;
}

/* Whether no byte of one operand is one of the other: they lie apart, or their lines lie beside each other in rows of
   the same length. */
static int are_apart(const Gapped *g) {
    const char *a = g->memory[0], *b = g->memory[1];
    if (a + reach_of(g, 0) <= b || b + reach_of(g, 1) <= a) return 1;
    const int last = g->rank - 1;
    if (last == 0) return 0;
    const int64_t row = g->strides[0][last - 1];
    for (int d = 0; d < last; d++)
        if (g->strides[0][d] % row != 0 || g->strides[1][d] % row != 0) return 0;
    const int64_t between = ((b - a) % row + row) % row;
    return between >= line_of(g, 0) && between + line_of(g, 1) <= row;
}

/* Whether no two elements of an operand share memory, as is seen of rows that lie behind each other. */
static int is_apart_in_itself(const Gapped *g, int j) {
    int64_t reach = g->itemsize;
    for (int d = g->rank - 1; d >= 0; reach += (g->shape[d] - 1) * g->strides[j][d], d--)
        if (g->strides[j][d] < reach) return 0;
    return 1;
}

int can_be_written_gapped(const Gapped *g) {
    if (!is_apart_in_itself(g, 0)) return 0;
    if (g->operands == 1) return 1;
    int is_same = g->memory[0] == g->memory[1];
    for (int d = 0; d < g->rank; d++) is_same = is_same && g->strides[0][d] == g->strides[1][d];
    return is_same || are_apart(g);
}

static void copies_step(const void *context, int64_t begin, int64_t end) {
    const Gapped *g = context;
    const int last = g->rank - 1;
    const int64_t n = g->shape[last], lines = last == 0 ? 1 : g->shape[last - 1];
    Copy *const copy = copy_of(g->itemsize);
    for (int64_t row = begin; row < end;) { /* up to the end of the dimension before the last */
        const int64_t left = lines - row % lines, some = left < end - row ? left : end - row;
        char *to = (char *)(uintptr_t)g->memory[0] + place_in_gapped(g, 0, row, 0);
        const char *from = g->memory[1] + place_in_gapped(g, 1, row, 0);
        const int64_t apart = last == 0 ? 0 : g->strides[0][last - 1], step = last == 0 ? 0 : g->strides[1][last - 1];
        copy(to, apart, from, step, some, n, g->itemsize, g->strides[1][last] == 0);
        row += some;
    }
}

int copy_gapped(const Gapped *g, int threads) {
    int64_t rows = 1;
    for (int d = 0; d < g->rank; d++)
        if (g->shape[d] > 1 && g->strides[0][d] == 0) return 0;
    if (!are_apart(g)) return 0;
    for (int d = 0; d < g->rank - 1; d++) rows *= g->shape[d];
    const Args all = {NULL, NULL, NULL, threads, NULL, NULL};
    split(copies_step, g, rows, team(&all, rows * g->shape[g->rank - 1]));
    return 1;
}
