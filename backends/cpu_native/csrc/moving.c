/* Sums with a product, ranges, and what moves memory: copies and zeros. */
#include <math.h>

#include "pieces.h"
#include "stream.h"

/* a + b * c, rounded once; c is as long as a, or its first element is the number for all. */
typedef struct {
    void *out;
    const void *a, *b, *c;
    int is_number;
} MultiplyAdd;

#define MULTIPLY_ADD(T, S, fused)                                                             \
    WIDE static void multiply_add_step_##S(const void *context, int64_t begin, int64_t end) { \
        const MultiplyAdd *k = context;                                                       \
        T *out = k->out; /* which may be a */                                                 \
        const T *a = k->a, *b = k->b, *c = k->c;                                              \
        if (k->is_number) {                                                                   \
            const T u = c[0];                                                                 \
            _Pragma("omp simd") for (int64_t i = begin; i < end; i++) out[i] = fused(b[i], u, a[i]);    \
        } else {                                                                              \
            _Pragma("omp simd") for (int64_t i = begin; i < end; i++) out[i] = fused(b[i], c[i], a[i]); \
        }                                                                                     \
    }                                                                                         \
    static void multiply_add_##S(const Args *k) {                                             \
        MultiplyAdd c = {k->p[0], k->p[1], k->p[2], k->p[3], k->n[1] != 0};                   \
        split(multiply_add_step_##S, &c, k->n[0], team(k, k->n[0]));                          \
    }
MULTIPLY_ADD(float, f32, fmaf)
MULTIPLY_ADD(double, f64, fma)

typedef struct {
    char *out;
    const char *a;
    int streams, is_backward;
} Copy;

#define COPIED 8192 /* bytes at a time */

static void copy_step(const void *context, int64_t begin, int64_t end) {
    const Copy *c = context;
    if (c->streams) {
        stream(c->out + begin, c->a + begin, (size_t)(end - begin));
        end_of_stream();
        return;
    }
    const Pieces all = pieces_of(c->out, 1, begin, end, COPIED, c->is_backward);
    for (int64_t i = 0; i < all.count; i++) {
        const Piece piece = piece_of(&all, i);
        move(c->out + piece.begin, c->a + piece.begin, (size_t)(piece.end - piece.begin));
    }
}

/* `count` bytes, to those of `out` from `offset` on, as if all were read before any is written. */
static void copy(const Args *k) {
    const int64_t count = k->n[0];
    Copy c = {(char *)k->p[0] + k->n[1], k->p[1], is_streamed(count, count), 0};
    c.is_backward = count > COPIED && count <= TURNED && goes_back(2 * count);
    const uintptr_t to = (uintptr_t)c.out, from = (uintptr_t)c.a;
    if ((to > from ? to - from : from - to) < (uintptr_t)count) memmove(c.out, c.a, (size_t)count);
    else split(copy_step, &c, count, team(k, count / 4));
}

static void clear_step(const void *context, int64_t begin, int64_t end) {
    memset(*(char *const *)context + begin, 0, (size_t)(end - begin));
}

/* `count` bytes of zeros. */
static void clear(const Args *k) { split(clear_step, k->p, k->n[0], team(k, k->n[0] / 4)); }

/* The bytes of an item, repeated up to a word, all over. */
typedef struct {
    char *out;
    int64_t word;
} Fill;

WIDE static void fill_step(const void *context, int64_t begin, int64_t end) {
    const Fill *c = context;
    char *out = c->out;
    const int64_t word = c->word;
    for (int64_t i = begin; i < end; i++) memcpy(out + i * 8, &word, sizeof word);
}

/* `count` bytes of a word that begins anew after each eight. */
static void fill(const Args *k) {
    const Fill c = {k->p[0], k->n[1]};
    const int64_t words = k->n[0] / 8;
    split(fill_step, &c, words, team(k, words * 2));
    memcpy(c.out + words * 8, &c.word, (size_t)(k->n[0] - words * 8));
}

/* start + step i: floats in double, rounded twice and then to T; integers modulo their range. */
#define COUNTED 1024
typedef struct {
    void *out;
    double start, step;
    uint64_t first, distance;
} Range;

#define ARANGE(T, S)                                                                       \
    WIDE static void arange_step_##S(const void *context, int64_t begin, int64_t end) {    \
        const Range *c = context;                                                          \
        const double start = c->start, step = c->step;                                     \
        for (int64_t i = begin; i < end; i += COUNTED) {                                   \
            T *restrict out = (T *)c->out + i;                                             \
            const double before = (double)i;                                               \
            const int32_t count = end - i < COUNTED ? (int32_t)(end - i) : COUNTED;        \
            _Pragma("omp simd") for (int32_t j = 0; j < count; j++)                        \
                out[j] = (T)((before + (double)j) * step + start);                         \
        }                                                                                  \
    }                                                                                      \
    static void arange_##S(const Args *k) {                                                \
        const Range c = {.out = k->p[0], .start = k->x[0], .step = k->x[1]};               \
        split(arange_step_##S, &c, k->n[0], team(k, k->n[0]));                             \
    }
ARANGE(float, f32)
ARANGE(double, f64)

/* Numbers that are counted from both ends, the first `half` of them from the first. */
typedef struct {
    void *out;
    double start, end, step;
    int64_t size, half;
} Ends;

#define LINSPACE(T, S)                                                                     \
    WIDE static void linspace_step_##S(const void *context, int64_t begin, int64_t end) {  \
        const Ends *c = context;                                                           \
        const int64_t middle = c->half < begin ? begin : c->half < end ? c->half : end;    \
        const Range first = {.out = c->out, .start = c->start, .step = c->step};           \
        arange_step_##S(&first, begin, middle);                                            \
        const double last = c->end, step = c->step;                                        \
        for (int64_t i = middle; i < end; i += COUNTED) {                                  \
            T *restrict out = (T *)c->out + i;                                             \
            const double after = (double)(c->size - 1 - i);                                \
            const int32_t count = end - i < COUNTED ? (int32_t)(end - i) : COUNTED;        \
            _Pragma("omp simd") for (int32_t j = 0; j < count; j++)                        \
                out[j] = (T)(last - (after - (double)j) * step);                           \
        }                                                                                  \
    }                                                                                      \
    static void linspace_##S(const Args *k) {                                              \
        const int64_t half = k->n[0] > 1 ? k->n[0] / 2 : k->n[0];                          \
        const Ends c = {k->p[0], k->x[0], k->x[1], k->x[2], k->n[0], half};                \
        split(linspace_step_##S, &c, c.size, team(k, c.size));                             \
    }
LINSPACE(float, f32)
LINSPACE(double, f64)

#define ONES(T, S)                                                                         \
    static void ones_on_diagonal_##S(const Args *k) {                                      \
        const int64_t rows = k->n[0], columns = k->n[1];                                   \
        T *out = k->p[0];                                                                  \
        for (int64_t i = 0; i < rows && i < columns; i++) out[i * columns + i] = 1;        \
    }
ONES(float, f32)
ONES(double, f64)
ONES(int64_t, i64)

WIDE static void arange_step_i64(const void *context, int64_t begin, int64_t end) {
    const Range *c = context;
    uint64_t *restrict out = c->out;
    const uint64_t first = c->first, distance = c->distance;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) out[i] = first + distance * (uint64_t)i;
}

static void arange_i64(const Args *k) {
    const Range c = {.out = k->p[0], .first = (uint64_t)k->n[1], .distance = (uint64_t)k->n[2]};
    split(arange_step_i64, &c, k->n[0], team(k, k->n[0]));
}

#define FILLING 64 /* bytes, of whole items of any size but odd ones */

typedef struct {
    char *out;
    const char *a;
    int64_t rows, columns, size, diagonal;
    int is_lower;
} Triangle;

static void triangle_step(const void *context, int64_t begin, int64_t end) {
    const Triangle *c = context;
    const int64_t bytes = c->columns * c->size;
    for (int64_t i = begin; i < end; i++) {
        int64_t edge = i % c->rows + c->diagonal + c->is_lower; /* the first column of the other side */
        edge = (edge < 0 ? 0 : edge > c->columns ? c->columns : edge) * c->size;
        char *out = c->out + i * bytes;
        const char *a = c->a + i * bytes;
        const int64_t kept = c->is_lower ? 0 : edge, end_of_kept = c->is_lower ? edge : bytes;
        if (out != a) memcpy(out + kept, a + kept, (size_t)(end_of_kept - kept));
        memset(c->is_lower ? out + edge : out, 0, (size_t)(c->is_lower ? bytes - edge : edge));
    }
}

/* One side of the diagonal of matrices of `size` bytes an item, zeros beyond; `out` may be `a`. */
static void triangle(const Args *k) {
    const int64_t rows = k->n[1], columns = k->n[2];
    int64_t diagonal = k->n[4];
    diagonal = diagonal < -rows - 1 ? -rows - 1 : diagonal > columns ? columns : diagonal;
    Triangle c = {k->p[0], k->p[1], rows, columns, k->n[3], diagonal, k->n[5] != 0};
    if (rows > 0) split(triangle_step, &c, k->n[0] * rows, team(k, k->n[0] * rows * columns));
}

#define MANY (INT64_MAX / 4)

/* The rows, then the columns, of n[0] / 2 elements on one side of a diagonal of a matrix. */
static void triangle_places(const Args *k) {
    int64_t *out = k->p[0], at = 0;
    const int64_t count = k->n[0] / 2, rows = k->n[1], columns = k->n[2], is_lower = k->n[4] != 0;
    int64_t diagonal = k->n[3];
    if (rows < 0 || columns < 0 || rows > MANY || columns > MANY) {
        *k->failure = "another number of elements";
        return;
    }
    diagonal = diagonal < -rows ? -rows : diagonal > columns ? columns : diagonal;
    /* Rows that have some. */
    const int64_t above = is_lower && diagonal < 0 ? -diagonal : 0, width = columns - diagonal;
    const int64_t end = columns == 0 ? 0 : is_lower || rows < width ? rows : width;
    for (int64_t i = above; i < end; i++) {
        int64_t edge = i + diagonal + is_lower;
        edge = edge < 0 ? 0 : edge > columns ? columns : edge;
        const int64_t first = is_lower ? 0 : edge, n = is_lower ? edge : columns - edge;
        if (n > count - at) break;
        for (int64_t j = 0; j < n; j++) out[at + j] = i, out[count + at + j] = first + j;
        at += n;
    }
    if (at < count) *k->failure = "another number of elements";
}

/* Lines of bytes in the middle of longer ones, and of items that are all alike; or what is cropped to them. */
typedef struct {
    char *out;
    const char *a;
    int64_t rows, width, out_rows, out_width, top, left, size;
    char item[FILLING]; /* repeated */
} Padding;

static void fill_bytes(char *out, const Padding *c, int64_t count) {
    for (; count >= FILLING; count -= FILLING, out += FILLING) memcpy(out, c->item, FILLING);
    if (count > 0) memcpy(out, c->item, (size_t)count);
}

static void pad_step(const void *context, int64_t begin, int64_t end) {
    const Padding *c = context;
    const int64_t left = c->left > 0 ? c->left : 0, from = left - c->left;
    int64_t kept = c->width - from;
    if (kept > c->out_width - left) kept = c->out_width - left;
    for (int64_t line = begin; line < end; line++) {
        const int64_t row = line % c->out_rows - c->top;
        char *out = c->out + line * c->out_width;
        if (row < 0 || row >= c->rows || kept <= 0) {
            fill_bytes(out, c, c->out_width);
            continue;
        }
        fill_bytes(out, c, left);
        memcpy(out + left, c->a + (line / c->out_rows * c->rows + row) * c->width + from, (size_t)kept);
        fill_bytes(out + left + kept, c, c->out_width - left - kept);
    }
}

INLINE int64_t within(int64_t value, int64_t least, int64_t most) {
    return value < least ? least : value > most ? most : value;
}

static void pad(const Args *k) {
    const int64_t *n = k->n;
    Padding c = {.out = k->p[0], .a = k->p[1], .rows = n[1], .width = n[2], .out_rows = n[3], .out_width = n[4],
                 .top = within(n[5], -n[1], n[3]), .left = within(n[6], -n[2], n[4]), .size = n[7]};
    if (c.out_rows < 1 || c.out_width < 1 || c.size < 1) return;
    for (int64_t i = 0; i < FILLING; i++) c.item[i] = ((const char *)k->p[2])[i % c.size];
    split(pad_step, &c, n[0] * c.out_rows, team(k, n[0] * c.out_rows * c.out_width / 4));
}

/* Planes of rows of bytes, each moved by so many places to those behind, and around. */
typedef struct {
    char *out;
    const char *a;
    int64_t planes, rows, bytes, down, along, right;
} Roll;

static void roll_step(const void *context, int64_t begin, int64_t end) {
    const Roll *c = context;
    const int64_t kept = c->bytes - c->right;
    for (int64_t line = begin; line < end; line++) {
        const int64_t matrix = line / c->rows;
        int64_t plane = matrix % c->planes - c->down, row = line % c->rows - c->along;
        plane += plane < 0 ? c->planes : 0, row += row < 0 ? c->rows : 0;
        const char *a = c->a + ((matrix / c->planes * c->planes + plane) * c->rows + row) * c->bytes;
        char *out = c->out + line * c->bytes;
        move(out, a + kept, (size_t)c->right);
        move(out + c->right, a, (size_t)kept);
    }
}

static void roll(const Args *k) {
    const int64_t *n = k->n;
    const Roll c = {k->p[0], k->p[1], n[1], n[2], n[3], n[4], n[5], n[6]};
    if (n[0] < 1 || c.planes < 1 || c.rows < 1 || c.bytes < 1) return;
    if (c.down < 0 || c.along < 0 || c.right < 0 || c.down >= c.planes || c.along >= c.rows || c.right >= c.bytes) {
        *k->error = "index out of range";
        return;
    }
    const int64_t lines = n[0] * c.planes * c.rows;
    split(roll_step, &c, lines, team(k, lines * c.bytes / 4));
}

const Row moving_rows[] = {
    {"roll", "wriiiiiii", "b0123,b0123", roll},
    {"pad", "wrriiiiiiii", "b034,b012,b7", pad},
    {"triangle", "wriiiiii", "b0123,b0123", triangle},
    {"multiply_add_f32", "wrrrii", "t0,t0,t0,t0|1", multiply_add_f32},
    {"multiply_add_f64", "wrrrii", "t0,t0,t0,t0|1", multiply_add_f64},
    {"arange_f32", "wiff", "t0", arange_f32},
    {"arange_f64", "wiff", "t0", arange_f64},
    {"arange_i64", "wiii", "t0", arange_i64},
    {"triangle_places", "wiiiii", "d0", triangle_places},
    {"linspace_f32", "wifff", "t0", linspace_f32},
    {"linspace_f64", "wifff", "t0", linspace_f64},
    {"ones_on_diagonal_f32", "wii", "t01", ones_on_diagonal_f32},
    {"ones_on_diagonal_f64", "wii", "t01", ones_on_diagonal_f64},
    {"ones_on_diagonal_i64", "wii", "t01", ones_on_diagonal_i64},
    {"copy", "wrii", "b(0+1),b0", copy}, {"clear", "wi", "b0", clear}, {"fill", "wii", "b0", fill},
    {NULL, NULL, NULL, NULL},
};
