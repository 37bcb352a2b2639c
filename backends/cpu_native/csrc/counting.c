/* Sums and products of integers and counts of what is not zero over the middle of (outer, n, inner), whether two arrays are
   equal, where elements are not zero, and places repeated as often as counts say. */
#include "short_rows.h"

#define PARTS 64
#define TILE 512    /* columns of a piece of the work */
/* Elements of a row that is turned; of longer ones a vector of sums. */
#define SHORT(T) (sizeof(T) == 8 ? 16 : sizeof(T) == 4 ? 32 : 64)
#define LONG 256
#define BLOCK 2048  /* terms that are added in the narrower type */

typedef struct {
    const void *a;
    int64_t *out, n, inner, tiles;
} Sums;

/* W is what terms are added in, BLOCK of them at a time; sums and products of integers wrap around. */
#define PRAGMA(text) _Pragma(#text)
#define SUMS(name, T, W, first_value, combine, term)                                                \
    INLINE uint64_t name##_run(const T *restrict a, int64_t n) {                                    \
        uint64_t total = first_value;                                                                      \
        for (int64_t start = 0; start < n; start += BLOCK) {                                        \
            const int64_t end = n - start < BLOCK ? n : start + BLOCK;                              \
            W sum = first_value;                                                                    \
            PRAGMA(omp simd reduction(combine : sum)) for (int64_t i = start; i < end; i++) {          \
                const T x = a[i];                                                                   \
                sum = sum combine (W)(term);                                                                   \
            }                                                                                       \
            total = total combine (uint64_t)sum;                                                                 \
        }                                                                                           \
        return total;                                                                               \
    }                                                                                               \
    WIDE static void name##_parts(const void *context, int64_t begin, int64_t end) {                \
        const Sums *c = context;                                                                    \
        for (int64_t part = begin; part < end; part++) {                                            \
            const int64_t first = part * c->tiles, left = c->n - first;                             \
            c->out[part] = (int64_t)name##_run((const T *)c->a + first, left < c->tiles ? left : c->tiles); \
        }                                                                                           \
    }                                                                                               \
    WIDE static void name##_rows(const void *context, int64_t begin, int64_t end) {                 \
        const Sums *c = context;                                                                    \
        for (int64_t row = begin; row < end; row++)                                                 \
            c->out[row] = (int64_t)name##_run((const T *)c->a + row * c->n, c->n);                  \
    }                                                                                               \
    WIDE static void name##_columns(const void *context, int64_t begin, int64_t end) {              \
        const Sums *c = context;                                                                    \
        for (int64_t piece = begin; piece < end; piece++) {                                         \
            const int64_t outer = piece / c->tiles, first = piece % c->tiles * TILE;                \
            const int64_t rest = c->inner - first, width = rest < TILE ? rest : TILE;               \
            const T *a = (const T *)c->a + outer * c->n * c->inner + first;                         \
            uint64_t *restrict out = (uint64_t *)c->out + outer * c->inner + first;                 \
            for (int64_t j = 0; j < width; j++) out[j] = first_value;                                    \
            for (int64_t start = 0; start < c->n; start += BLOCK) {                                 \
                const int64_t last = c->n - start < BLOCK ? c->n : start + BLOCK;                   \
                W sums[TILE];                                                                       \
                for (int64_t j = 0; j < width; j++) sums[j] = first_value;                          \
                for (int64_t i = start; i < last; i++) {                                            \
                    const T *restrict row = a + i * c->inner;                                       \
                    _Pragma("omp simd") for (int64_t j = 0; j < width; j++) {                       \
                        const T x = row[j];                                                         \
                        sums[j] = sums[j] combine (W)(term);                                                      \
                    }                                                                               \
                }                                                                                   \
                _Pragma("omp simd") for (int64_t j = 0; j < width; j++) out[j] = out[j] combine (uint64_t)sums[j]; \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    /* Sums beside each other of a row, eight of them. */                                           \
    INLINE void name##_folded(uint64_t *restrict out, const T *restrict a, int64_t n) {             \
        uint64_t sums[8];                                                                           \
        for (int j = 0; j < 8; j++) sums[j] = first_value;                                          \
        int64_t i = 0;                                                                              \
        for (; i + 8 <= n; i += 8)                                                                  \
            _Pragma("omp simd") for (int j = 0; j < 8; j++) {                                       \
                const T x = a[i + j];                                                               \
                sums[j] = sums[j] combine (uint64_t)(term);                                         \
            }                                                                                       \
        const int rest = (int)(n - i);                                                              \
        _Pragma("omp simd") for (int j = 0; j < 8; j++) {                                           \
            const T x = j < rest ? a[i + j] : (T)first_value;                                       \
            out[j] = sums[j] combine (uint64_t)(j < rest ? (term) : first_value);                   \
        }                                                                                           \
    }                                                                                               \
    WIDE static void name##_turned(const void *context, int64_t begin, int64_t end) {               \
        const Sums *c = context;                                                                    \
        const int64_t n = c->n, most = rows_at_once(n > SHORT(T) ? 64 : n * (int64_t)sizeof(T));       \
        for (int64_t row = begin, rows; row < end; row += rows) {                                   \
            rows = end - row < most ? end - row : most;                                             \
            const T *a = (const T *)c->a + row * n;                                                 \
            if (n <= SHORT(T)) {                                                                       \
                T turned[TURNED / sizeof(T)];                                                       \
                const Sums some = {turned, c->out + row, n, rows, 1};                               \
                turn_rows(turned, a, rows, n, sizeof(T));                                           \
                name##_columns(&some, 0, 1);                                                        \
                continue;                                                                           \
            }                                                                                       \
            uint64_t folded[TURNED / 8], turned[TURNED / 8], *restrict out = (uint64_t *)c->out + row; \
            for (int64_t i = 0; i < rows; i++) name##_folded(folded + i * 8, a + i * n, n);         \
            turn_rows(turned, folded, rows, 8, 8);                                                  \
            for (int64_t j = 0; j < rows; j++) out[j] = first_value;                                \
            for (int64_t i = 0; i < 8; i++)                                                         \
                _Pragma("omp simd") for (int64_t j = 0; j < rows; j++)                              \
                    out[j] = out[j] combine turned[i * rows + j];                                   \
        }                                                                                           \
    }                                                                                               \
    static void name(const Args *k) {                                                               \
        const int64_t outer = k->n[0], n = k->n[1], inner = k->n[2];                                \
        const int threads = team(k, outer * n * inner);                                             \
        Sums c = {k->p[1], k->p[0], n, inner, (inner + TILE - 1) / TILE};                           \
        if (inner != 1) {                                                                           \
            split(name##_columns, &c, outer * c.tiles, threads);                                    \
        } else if (outer >= FEWEST_TURNED && n > 1 && n <= (sizeof(T) == 8 ? LONG : SHORT(T))) {       \
            split(name##_turned, &c, outer, threads);                                               \
        } else if (outer != 1 || threads == 1) {                                                    \
            split(name##_rows, &c, outer, threads);                                                 \
        } else {                                                                                    \
            int64_t parts[PARTS], *const out = c.out;                                         \
            uint64_t total = first_value;                                                                  \
            c.tiles = n / PARTS + 1;                                                                \
            for (int i = 0; i < PARTS; i++) parts[i] = first_value;\
            c.out = parts;                                                                        \
            split(name##_parts, &c, (n + c.tiles - 1) / c.tiles, threads);                          \
            for (int i = 0; i < PARTS; i++) total = total combine (uint64_t)parts[i];                            \
            *out = (int64_t)total;                                                                  \
        }                                                                                           \
    }

SUMS(sum_i64, int64_t, uint64_t, 0, +, x)
SUMS(prod_i64, int64_t, uint64_t, 1, *, x)
SUMS(count_nonzero_b8, uint8_t, uint32_t, 0, +, x != 0)
SUMS(count_nonzero_i32, int32_t, uint32_t, 0, +, x != 0)
SUMS(count_nonzero_f32, float, uint32_t, 0, +, x != 0)
SUMS(count_nonzero_f64, double, uint64_t, 0, +, x != 0)
SUMS(count_nonzero_i64, int64_t, uint64_t, 0, +, x != 0)

/* Whether all elements are equal, as numbers or byte by byte: it is over where some are not. */
#define SEEN 512
#define EQUAL(S, T)                                                                         \
    WIDE static int is_equal_##S(const T *restrict a, const T *restrict b, int64_t n) {     \
        for (int64_t start = 0; start < n; start += SEEN) {                                 \
            const int64_t end = n - start < SEEN ? n : start + SEEN;                        \
            int differ = 0;                                                                 \
            _Pragma("omp simd reduction(| : differ)") for (int64_t i = start; i < end; i++) \
                differ |= a[i] != b[i];                                                     \
            if (differ) return 0;                                                           \
        }                                                                                   \
        return 1;                                                                           \
    }                                                                                       \
    static void equal_##S(const Args *k) {                                                  \
        *(uint8_t *)k->p[0] = (uint8_t)is_equal_##S(k->p[1], k->p[2], k->n[0]);             \
    }
EQUAL(f32, float)
EQUAL(f64, double)

static void equal_b8(const Args *k) {
    *(uint8_t *)k->p[0] = !memcmp(k->p[1], k->p[2], (size_t)k->n[0]);
}

/* The rows and columns of the `count` elements that are not zero, of a matrix; rows may be left out.  Another
   thread may write to the matrix: what has no room is left out, and what is missing is its first place. */
#define NONZERO(S, T)                                                                    \
    static void nonzero_##S(const Args *k) {                                             \
        int64_t *rows = k->p[0], *columns = k->p[1], found[SEEN], filled = 0;            \
        const int64_t count = k->n[0], height = k->n[1], width = k->n[2];                \
        const T *a = k->p[2];                                                            \
        for (int64_t row = 0; width > 0 && row < height && filled < count; row++, a += width) { \
            for (int64_t start = 0; start < width; start += SEEN) {                      \
                const int64_t end = width - start < SEEN ? width : start + SEEN;         \
                int64_t some = 0;                                                        \
                for (int64_t i = start; i < end; i++) {                                  \
                    found[some] = i;                                                     \
                    some += a[i] != 0;                                                   \
                }                                                                        \
                if (some > count - filled) some = count - filled;                        \
                memcpy(columns + filled, found, (size_t)some * sizeof(int64_t));         \
                for (int64_t i = 0; rows != NULL && i < some; i++) rows[filled + i] = row; \
                filled += some;                                                          \
            }                                                                            \
        }                                                                                \
        for (; filled < count; filled++) {                                               \
            columns[filled] = 0;                                                         \
            if (rows != NULL) rows[filled] = 0;                                          \
        }                                                                                \
    }
NONZERO(b8, uint8_t)
NONZERO(f32, float)
NONZERO(f64, double)
NONZERO(i64, int64_t)

/* Each place i as often as counts[i] says, `total` in all. */
static void repeat_places(const Args *k) {
    int64_t *restrict out = k->p[0], filled = 0;
    const int64_t *counts = k->p[1], total = k->n[0], n = k->n[1];
    for (int64_t i = 0; i < n; i++) {
        const uint64_t count = place_of(counts + i);
        if (count > (uint64_t)(total - filled)) {
            *k->error = "counts add up to another number";
            return;
        }
        if (count <= 4 && total - filled >= 4) { /* what is too many is written over */
            for (int j = 0; j < 4; j++) out[filled + j] = i;
            filled += (int64_t)count;
            continue;
        }
        for (const int64_t end = filled + (int64_t)count; filled < end; filled++) out[filled] = i;
    }
    if (filled != total) *k->error = "counts add up to another number";
}

const Row counting_rows[] = {
    {"sum_i64", "wriii", "d02,d012", sum_i64},
    {"prod_i64", "wriii", "d02,d012", prod_i64},
    {"count_nonzero_b8", "wriii", "d02,b012", count_nonzero_b8},
    {"count_nonzero_i32", "wriii", "d02,w012", count_nonzero_i32},
    {"count_nonzero_f32", "wriii", "d02,w012", count_nonzero_f32},
    {"count_nonzero_f64", "wriii", "d02,d012", count_nonzero_f64},
    {"count_nonzero_i64", "wriii", "d02,d012", count_nonzero_i64},
    {"equal_f32", "wrri", "b,w0,w0", equal_f32},
    {"equal_f64", "wrri", "b,d0,d0", equal_f64},
    {"equal_b8", "wrri", "b,b0,b0", equal_b8},
    {"nonzero_b8", "Wwriii", "d0,d0,b12", nonzero_b8},
    {"nonzero_f32", "Wwriii", "d0,d0,w12", nonzero_f32},
    {"nonzero_f64", "Wwriii", "d0,d0,d12", nonzero_f64},
    {"nonzero_i64", "Wwriii", "d0,d0,d12", nonzero_i64},
    {"repeat_places", "wrii", "d0,d1", repeat_places},
    {NULL, NULL, NULL, NULL},
};
