/* Reading and adding by index; sorting; copies of reversed rows and of transposed matrices. */
#include "kth_key.h"
#include "stream.h"

/* `in_range` of many indices. */
WIDE static int are_in_range(const Args *a, const int64_t *index, int64_t count, int64_t size) {
    return in_range(a, index, count, size);
}

#define TEMPLATE "indexing_template.h"
#include "both.h"

typedef struct {
    char *out;
    const char *a;
    const int64_t *index;
    int64_t size, count, inner;
    Flag *outside; /* becomes 1 where a step finds an index out of range */
} Rows;

/* Rows of `inner` bytes. */
static void take_step(const void *context, int64_t begin, int64_t end) {
    const Rows *c = context;
    const int streams = c->inner >= 1024 && is_streamed(c->count * c->inner, c->count * c->inner);
    for (int64_t i = begin; i < end; i++) {
        const uint64_t place = place_of(c->index + i);
        if (place >= (uint64_t)c->size) {
            *c->outside = 1;
            break;
        }
        const char *row = c->a + (int64_t)place * c->inner;
        if (streams) stream(c->out + i * c->inner, row, (size_t)c->inner);
        else move(c->out + i * c->inner, row, (size_t)c->inner);
    }
    if (streams) end_of_stream();
}

static void take(const Args *k) {
    Flag outside = 0;
    Rows c = {k->p[0], k->p[1], k->p[2], k->n[2], k->n[0], k->n[1], &outside};
    split(take_step, &c, c.count, team(k, c.count * c.inner / 4));
    if (outside) *k->error = "index out of range";
}

/* out[i] = a[index[i]][more[i]], rows of bytes of which a[0] has `sizes[1]`. */
typedef struct {
    char *out;
    const char *a;
    const int64_t *index, *more;
    int64_t inner, sizes[2];
    Flag *outside;
} Pairs;

static void take_pairs_step(const void *context, int64_t begin, int64_t end) {
    const Pairs *c = context;
    for (int64_t i = begin; i < end; i++) {
        const uint64_t first = place_of(c->index + i), second = place_of(c->more + i);
        if (first >= (uint64_t)c->sizes[0] || second >= (uint64_t)c->sizes[1]) {
            *c->outside = 1;
            break;
        }
        const int64_t place = (int64_t)first * c->sizes[1] + (int64_t)second;
        move(c->out + i * c->inner, c->a + place * c->inner, (size_t)c->inner);
    }
}

static void take_pairs(const Args *k) {
    Flag outside = 0;
    Pairs c = {k->p[0], k->p[1], k->p[2], k->p[3], k->n[1], {k->n[2], k->n[3]}, &outside};
    split(take_pairs_step, &c, k->n[0], team(k, k->n[0] * c.inner / 4));
    if (outside) *k->error = "index out of range";
}

/* out[index[i]] = a[i] and out[index[i]][more[i]] = a[i], of rows of bytes: of equal places the last. */
static void put_rows(const Args *k) {
    const int64_t *index = k->p[1], inner = k->n[1];
    for (int64_t i = 0; i < k->n[0]; i++) {
        const uint64_t place = place_of(index + i);
        if (place >= (uint64_t)k->n[2]) {
            *k->error = "index out of range";
            return;
        }
        move((char *)k->p[0] + (int64_t)place * inner, (const char *)k->p[2] + i * inner, (size_t)inner);
    }
}

static void put_pairs(const Args *k) {
    const int64_t *index = k->p[1], *more = k->p[2], inner = k->n[1], rows = k->n[3];
    for (int64_t i = 0; i < k->n[0]; i++) {
        const uint64_t first = place_of(index + i), second = place_of(more + i);
        if (first >= (uint64_t)k->n[2] || second >= (uint64_t)rows) {
            *k->error = "index out of range";
            return;
        }
        char *out = (char *)k->p[0] + ((int64_t)first * rows + (int64_t)second) * inner;
        move(out, (const char *)k->p[3] + i * inner, (size_t)inner);
    }
}

/* out[o][i][j] = a[o][index[o][i][j]][j], of words of the size of W. */
#define GATHER(W, S)                                                                     \
    WIDE static void gather_step_##S(const void *context, int64_t begin, int64_t end) {  \
        const Rows *c = context;                                                         \
        const int64_t inner = c->inner;                                                  \
        const uint64_t size = (uint64_t)c->size;                                         \
        uint64_t outside = 0;                                                            \
        for (int64_t o = begin; o < end; o++) {                                          \
            const W *restrict a = (const W *)c->a + o * c->size * inner;                 \
            for (int64_t i = 0; i < c->count; i++) {                                     \
                const int64_t row = (o * c->count + i) * inner;                          \
                W *restrict out = (W *)c->out + row;                                     \
                const int64_t *restrict index = c->index + row;                          \
                _Pragma("omp simd reduction(| : outside)")                               \
                for (int64_t j = 0; j < inner; j++) {                                    \
                    const uint64_t place = (uint64_t)index[j];                           \
                    const int lies_outside = place >= size;                              \
                    outside |= (uint64_t)lies_outside;                                   \
                    out[j] = a[(lies_outside ? 0 : (int64_t)place) * inner + j];         \
                }                                                                        \
            }                                                                            \
        }                                                                                \
        if (outside) *c->outside = 1;                                                    \
    }                                                                                    \
    /* Of one row; 0 if an index is out of range.  Four loads beside each other: they    \
       take less time than the gathering loads of AVX2 and AVX-512. */                   \
    static int gather_row_##S(W *restrict out, const W *restrict a,                      \
                              const int64_t *restrict index, int64_t count,              \
                              uint64_t size) {                                           \
        int64_t i = 0;                                                                   \
        for (; i + 4 <= count; i += 4) {                                                 \
            const uint64_t w = place_of(index + i), x = place_of(index + i + 1);         \
            const uint64_t y = place_of(index + i + 2), z = place_of(index + i + 3);     \
            if (w >= size || x >= size || y >= size || z >= size) return 0;              \
            out[i] = a[w], out[i + 1] = a[x], out[i + 2] = a[y], out[i + 3] = a[z];      \
        }                                                                                \
        for (; i < count; i++) {                                                         \
            const uint64_t place = place_of(index + i);                                  \
            if (place >= size) return 0;                                                 \
            out[i] = a[place];                                                           \
        }                                                                                \
        return 1;                                                                        \
    }                                                                                    \
    static void gather_last_step_##S(const void *context, int64_t begin, int64_t end) {  \
        const Rows *c = context;                                                         \
        for (int64_t o = begin; o < end; o++) {                                          \
            const W *a = (const W *)c->a + o * c->size;                                  \
            W *out = (W *)c->out + o * c->count;                                         \
            const int64_t *index = c->index + o * c->count;                              \
            if (!gather_row_##S(out, a, index, c->count, (uint64_t)c->size)) {           \
                *c->outside = 1;                                                         \
                return;                                                                  \
            }                                                                            \
        }                                                                                \
    }                                                                                    \
    static void gather_##S(const Args *k) {                                              \
        Flag outside = 0;                                                                \
        Rows c = {k->p[0], k->p[1], k->p[2], k->n[1], k->n[2], k->n[3], &outside};       \
        const int64_t count = k->n[0] * c.count * c.inner;                               \
        const Step step = c.inner == 1 ? gather_last_step_##S : gather_step_##S;         \
        if (c.size > 0) split(step, &c, k->n[0], team(k, count));                        \
        if (outside || (c.size == 0 && count > 0)) *k->error = "index out of range";     \
    }

GATHER(uint32_t, w4)
GATHER(uint64_t, w8)

/* out[o][index[o][i][j]][j] = a[o][i][j], of words of the size of W: of equal places the last. */
#define SCATTER(W, S)                                                                 \
    static void scatter_step_##S(const void *context, int64_t begin, int64_t end) {   \
        const Rows *c = context;                                                      \
        for (int64_t o = begin; o < end; o++) {                                       \
            W *restrict out = (W *)c->out + o * c->size * c->inner;                   \
            for (int64_t i = 0; i < c->count; i++) {                                  \
                const int64_t row = (o * c->count + i) * c->inner;                    \
                for (int64_t j = 0; j < c->inner; j++) {                              \
                    const uint64_t place = place_of(c->index + row + j);              \
                    if (place >= (uint64_t)c->size) {                                 \
                        *c->outside = 1;                                              \
                        return;                                                       \
                    }                                                                 \
                    out[(int64_t)place * c->inner + j] = ((const W *)c->a)[row + j];  \
                }                                                                     \
            }                                                                         \
        }                                                                             \
    }                                                                                 \
    static void scatter_##S(const Args *k) {                                          \
        Flag outside = 0;                                                             \
        Rows c = {k->p[0], k->p[2], k->p[1], k->n[1], k->n[2], k->n[3], &outside};    \
        split(scatter_step_##S, &c, k->n[0], team(k, k->n[0] * c.count * c.inner));   \
        if (outside) *k->error = "index out of range";                                \
    }

SCATTER(uint32_t, w4)
SCATTER(uint64_t, w8)

typedef struct {
    void *out;
    const void *a;
    int64_t n;
} Reversed;

/* out[o][i] = a[o][n - 1 - i]: of whole rows, or of part of the only one. */
#define FLIP(W, S)                                                                            \
    WIDE static void flip_row_##S(W *restrict out, const W *restrict last, int64_t count) {    \
        _Pragma("omp simd") for (int64_t i = 0; i < count; i++) out[i] = last[-i];            \
    }                                                                                         \
    static void flip_rows_##S(const void *context, int64_t begin, int64_t end) {              \
        const Reversed *c = context;                                                          \
        for (int64_t o = begin; o < end; o++)                                                 \
            flip_row_##S((W *)c->out + o * c->n, (const W *)c->a + (o + 1) * c->n - 1, c->n); \
    }                                                                                         \
    static void flip_part_##S(const void *context, int64_t begin, int64_t end) {              \
        const Reversed *c = context;                                                          \
        flip_row_##S((W *)c->out + begin, (const W *)c->a + c->n - 1 - begin, end - begin);   \
    }                                                                                         \
    static void flip_##S(const Args *k) {                                                     \
        Reversed c = {k->p[0], k->p[1], k->n[1]};                                             \
        const int threads = team(k, k->n[0] * c.n);                                           \
        if (k->n[0] == 1) split(flip_part_##S, &c, c.n, threads);                             \
        else split(flip_rows_##S, &c, k->n[0], threads);                                      \
    }
FLIP(uint32_t, w4)
FLIP(uint64_t, w8)

/* out[b][j][i] = a[b][i][j]; squares of SIDE x SIDE words stay in the level-1 cache. */
#define SIDE 32
typedef struct {
    void *out;
    const void *a;
    int64_t rows, columns, strips;
} Transposed;

/* Squares of as many words as a line of the cache holds, which is read and written as a whole: through memory
   that no other line competes with, as the lines of a column do where rows are a power of two apart. */
#if defined(__x86_64__) && defined(__GNUC__)
INLINE void turn_w4(uint32_t *out, int64_t wide, const uint32_t *a, int64_t high) {
    _Alignas(64) uint32_t turned[16][16];
    for (int i = 0; i < 16; i += 4) {
        const float *row = (const float *)(const void *)(a + i * high);
        for (int j = 0; j < 16; j += 4) {
            __m128 w = _mm_loadu_ps(row + j), x = _mm_loadu_ps(row + high + j),
                   y = _mm_loadu_ps(row + 2 * high + j), z = _mm_loadu_ps(row + 3 * high + j);
            _MM_TRANSPOSE4_PS(w, x, y, z);
            _mm_store_ps((float *)(void *)&turned[j][i], w);
            _mm_store_ps((float *)(void *)&turned[j + 1][i], x);
            _mm_store_ps((float *)(void *)&turned[j + 2][i], y);
            _mm_store_ps((float *)(void *)&turned[j + 3][i], z);
        }
    }
    for (int j = 0; j < 16; j++) memcpy(out + j * wide, turned[j], sizeof turned[j]);
}
INLINE void turn_w8(uint64_t *out, int64_t wide, const uint64_t *a, int64_t high) {
    _Alignas(64) uint64_t turned[8][8];
    for (int i = 0; i < 8; i += 2) {
        const double *row = (const double *)(const void *)(a + i * high);
        for (int j = 0; j < 8; j += 2) {
            const __m128d x = _mm_loadu_pd(row + j), y = _mm_loadu_pd(row + high + j);
            _mm_store_pd((double *)(void *)&turned[j][i], _mm_unpacklo_pd(x, y));
            _mm_store_pd((double *)(void *)&turned[j + 1][i], _mm_unpackhi_pd(x, y));
        }
    }
    for (int j = 0; j < 8; j++) memcpy(out + j * wide, turned[j], sizeof turned[j]);
}
#else
#define PLAIN_TURN(W, S, LINE)                                                            \
    INLINE void turn_##S(W *out, int64_t wide, const W *a, int64_t high) {                \
        for (int j = 0; j < LINE; j++)                                                    \
            for (int i = 0; i < LINE; i++) out[j * wide + i] = a[i * high + j];           \
    }
PLAIN_TURN(uint32_t, w4, 16)
PLAIN_TURN(uint64_t, w8, 8)
#endif

#define TRANSPOSE(W, S, LINE)                                                                 \
    WIDE static void transpose_step_##S(const void *context, int64_t begin, int64_t end) {     \
        const Transposed *c = context;                                                        \
        for (int64_t strip = begin; strip < end; strip++) {                                   \
            const int64_t b = strip / c->strips, j0 = strip % c->strips * SIDE;               \
            const int64_t j1 = j0 + SIDE < c->columns ? j0 + SIDE : c->columns;               \
            const W *restrict a = (const W *)c->a + b * c->rows * c->columns;                 \
            W *restrict out = (W *)c->out + b * c->rows * c->columns;                         \
            for (int64_t i0 = 0; i0 < c->rows; i0 += SIDE) {                                  \
                const int64_t i1 = i0 + SIDE < c->rows ? i0 + SIDE : c->rows;                 \
                if (i1 - i0 == SIDE && j1 - j0 == SIDE) {                                     \
                    for (int64_t j = j0; j < j1; j += LINE)                                   \
                        for (int64_t i = i0; i < i1; i += LINE)                               \
                            turn_##S(out + j * c->rows + i, c->rows, a + i * c->columns + j,  \
                                     c->columns);                                             \
                    continue;                                                                 \
                }                                                                             \
                if (c->rows == 3) { /* the colours of images */                               \
                    const W *restrict second = a + c->columns, *restrict third = second + c->columns; \
                    _Pragma("omp simd") for (int64_t j = j0; j < j1; j++) {                   \
                        out[3 * j] = a[j];                                                    \
                        out[3 * j + 1] = second[j];                                           \
                        out[3 * j + 2] = third[j];                                            \
                    }                                                                         \
                    continue;                                                                 \
                }                                                                             \
                for (int64_t j = j0; j < j1; j++) {                                           \
                    _Pragma("omp simd") for (int64_t i = i0; i < i1; i++)                     \
                        out[j * c->rows + i] = a[i * c->columns + j];                         \
                }                                                                             \
            }                                                                                 \
        }                                                                                     \
    }                                                                                         \
    static void transpose_##S(const Args *k) {                                                \
        int64_t strips = (k->n[2] + SIDE - 1) / SIDE;                                         \
        Transposed c = {k->p[0], k->p[1], k->n[1], k->n[2], strips};                          \
        split(transpose_step_##S, &c, k->n[0] * strips, team(k, k->n[0] * k->n[1] * k->n[2])); \
    }
TRANSPOSE(uint32_t, w4, 16)
TRANSPOSE(uint64_t, w8, 8)

/* Numbers as unsigned keys of the same order: NaN are equal and greatest, the two zeros are equal. */
INLINE uint32_t key_f32(float x) {
    uint32_t bits = (uint32_t)float_to_bits(x == 0 ? 0.0f : x);
    uint32_t key = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return x != x ? 0xFFFFFFFFu : key;
}
INLINE uint64_t key_f64(double x) {
    uint64_t bits = (uint64_t)double_to_bits(x == 0 ? 0.0 : x);
    uint64_t key = bits >> 63 ? ~bits : bits | 0x8000000000000000u;
    return x != x ? UINT64_MAX : key;
}
INLINE uint32_t key_i32(int32_t x) { return (uint32_t)x ^ 0x80000000u; }
INLINE uint64_t key_i64(int64_t x) { return (uint64_t)x ^ 0x8000000000000000u; }

/* Least significant digit first, 11 bits at a time: stable, and as fast for any order.  Digits that all
   keys share are passed over.  `work` has room for 4 n entries of keys and places. */
#define DIGIT 11
#define BUCKETS (1 << DIGIT)

#define SORT(T, K, S, PASSES)                                                                   \
    typedef struct {                                                                            \
        K key;                                                                                  \
        uint32_t place;                                                                         \
    } Entry_##S;                                                                                \
    static void sort_##S(const Args *k) {                                                       \
        const T *all = k->p[2];                                                                 \
        T *values = k->p[0];                                                                    \
        int64_t *places = k->p[1];                                                              \
        const int64_t rows = k->n[0], n = k->n[1];                                              \
        const K turn = k->n[2] ? (K)-1 : 0;                                                     \
        Entry_##S *first = k->p[3], *second = first + n;                                        \
        for (int64_t row = 0; row < rows; row++) {                                              \
            const T *a = all + row * n;                                                         \
            uint32_t counts[PASSES][BUCKETS];                                                   \
            memset(counts, 0, sizeof counts);                                                   \
            Entry_##S *from = first, *to = second;                                              \
            for (int64_t i = 0; i < n; i++) {                                                   \
                K key = key_##S(a[i]) ^ turn;                                                   \
                from[i] = (Entry_##S){key, (uint32_t)i};                                        \
                for (int pass = 0; pass < PASSES; pass++)                                       \
                    counts[pass][(key >> (pass * DIGIT)) & (BUCKETS - 1)]++;                    \
            }                                                                                   \
            for (int pass = 0; pass < PASSES; pass++) {                                         \
                uint32_t *count = counts[pass], sum = 0;                                        \
                if (count[(from[0].key >> (pass * DIGIT)) & (BUCKETS - 1)] == n) continue;      \
                for (int bucket = 0; bucket < BUCKETS; bucket++) {                              \
                    uint32_t here = count[bucket];                                              \
                    count[bucket] = sum;                                                        \
                    sum += here;                                                                \
                }                                                                               \
                for (int64_t i = 0; i < n; i++)                                                 \
                    to[count[(from[i].key >> (pass * DIGIT)) & (BUCKETS - 1)]++] = from[i];     \
                Entry_##S *other = from;                                                        \
                from = to;                                                                      \
                to = other;                                                                     \
            }                                                                                   \
            for (int64_t i = 0; i < n; i++) {                                                   \
                places[row * n + i] = from[i].place;                                            \
                values[row * n + i] = a[from[i].place];                                         \
            }                                                                                   \
        }                                                                                       \
    }
SORT(float, uint32_t, f32, 3)
SORT(double, uint64_t, f64, 6)
SORT(int32_t, uint32_t, i32, 3)
SORT(int64_t, uint64_t, i64, 6)

#define FEW 128 /* the largest k of what follows */

#if HAS_AVX512
/* Of a row of keys of four bytes the k greatest, by selecting the k-th and ranking what is not below: from a few on,
   in rows that find a place on the stack. */
#define LEAST_RANKED 9
#define MOST_RANKED 4096
#define RANKED 32 /* words at a time */

/* How many of `count` words are greater than each. */
AVX512 static void rank_words(const uint64_t *words, int64_t count, uint64_t *ranks) {
    const __m512i one = _mm512_set1_epi64(1);
    for (int64_t first = 0; first < count; first += RANKED) {
        __m512i x[4], rank[4];
        for (int v = 0; v < 4; v++) {
            x[v] = _mm512_loadu_si512(words + first + 8 * v);
            rank[v] = _mm512_setzero_si512();
        }
        for (int64_t i = 0; i < count; i++) {
            const __m512i other = _mm512_set1_epi64((long long)words[i]);
            for (int v = 0; v < 4; v++)
                rank[v] = _mm512_mask_add_epi64(rank[v], _mm512_cmpgt_epu64_mask(other, x[v]), rank[v], one);
        }
        for (int v = 0; v < 4; v++) _mm512_storeu_si512(ranks + first + 8 * v, rank[v]);
    }
}

/* The places of the `few` greatest of n keys, in descending order and of equals the earlier first. */
AVX512 static void rank_keys(const uint32_t *keys, uint32_t *scratch, int64_t n, int64_t few, int64_t *places) {
    uint64_t words[FEW + RANKED] = {0}, ranks[FEW + RANKED];
    memcpy(scratch, keys, (size_t)n * sizeof(uint32_t));
    const uint32_t least = kth_key(scratch, n, n - few);
    int64_t above = 0, held = 0;
    for (int64_t i = 0; i < n; i++) above += keys[i] > least;
    for (int64_t i = 0, equals = few - above; i < n && held < few; i++) {
        const int is_equal = keys[i] == least;
        words[held] = (uint64_t)keys[i] << 32 | (uint32_t)(UINT32_MAX - i);
        held += keys[i] > least || (is_equal && equals > 0);
        equals -= is_equal;
    }
    rank_words(words, few, ranks);
    for (int64_t i = 0; i < few; i++) places[ranks[i] & (FEW - 1)] = UINT32_MAX - (uint32_t)words[i];
}
#endif

/* The k best entries of each row, best first and of equals the earlier: kept in order while the row is
   read.  Runs of 64 keys without a better one, nearly all of a long row, cost one comparison each. */
#if HAS_AVX512
#define RANK(T, S)                                                                              \
    AVX512 static int rank_##S(const T *a, int64_t n, int64_t few, uint32_t turn, int64_t *at) { \
        uint32_t keys[MOST_RANKED], scratch[MOST_RANKED];                                       \
        for (int64_t i = 0; i < n; i++) keys[i] = key_##S(a[i]) ^ turn;                         \
        rank_keys(keys, scratch, n, few, at);                                                   \
        return 1;                                                                               \
    }                                                                                           \
    static int ranks_##S(const T *a, int64_t n, int64_t few, uint32_t turn, int64_t *at) {      \
        return few >= LEAST_RANKED && n <= MOST_RANKED && has_avx512() && rank_##S(a, n, few, turn, at); \
    }
RANK(float, f32)
RANK(int32_t, i32)
#else
#define ranks_f32(...) 0
#define ranks_i32(...) 0
#endif
#define ranks_f64(...) 0
#define ranks_i64(...) 0
#define RANKS(S) ranks_##S

#define TOPK(T, K, S)                                                                           \
    WIDE static K greatest_key_##S(const T *a, int64_t n, K turn) {                              \
        K greatest = 0;                                                                         \
        _Pragma("omp simd reduction(max : greatest)") for (int64_t i = 0; i < n; i++) {         \
            K key = key_##S(a[i]) ^ turn;                                                       \
            greatest = key > greatest ? key : greatest;                                         \
        }                                                                                       \
        return greatest;                                                                        \
    }                                                                                           \
    static void topk_##S(const Args *k) {                                                       \
        T *values = k->p[0];                                                                    \
        int64_t *places = k->p[1];                                                              \
        const int64_t rows = k->n[0], n = k->n[1], few = k->n[2];                               \
        const K turn = k->n[3] ? 0 : (K)-1;                                                     \
        K keys[FEW];                                                                            \
        if (few > FEW || few > n) {                                                             \
            *k->failure = "k is out of range";                                                  \
            return;                                                                             \
        }                                                                                       \
        if (few == 0) return;                                                                   \
        for (int64_t row = 0; row < rows; row++) {                                              \
            const T *a = (const T *)k->p[2] + row * n;                                          \
            int64_t *at = places + row * few, held = 0;                                         \
            if (RANKS(S)(a, n, few, (uint32_t)turn, at)) {                                      \
                for (int64_t j = 0; j < few; j++) values[row * few + j] = a[at[j]];             \
                continue;                                                                       \
            }                                                                                   \
            for (int64_t start = 0; start < n; start += 64) {                                   \
                int64_t end = start + 64 < n ? start + 64 : n;                                  \
                if (held == few && greatest_key_##S(a + start, end - start, turn) <=            \
                                       keys[few - 1])                                           \
                    continue;                                                                   \
                for (int64_t i = start; i < end; i++) {                                         \
                    K key = key_##S(a[i]) ^ turn;                                               \
                    if (held == few && key <= keys[few - 1]) continue;                          \
                    int64_t j = held < few ? held++ : few - 1;                                  \
                    for (; j > 0 && keys[j - 1] < key; j--) {                                   \
                        keys[j] = keys[j - 1];                                                  \
                        at[j] = at[j - 1];                                                      \
                    }                                                                           \
                    keys[j] = key;                                                              \
                    at[j] = i;                                                                  \
                }                                                                               \
            }                                                                                   \
            for (int64_t j = 0; j < few; j++) values[row * few + j] = a[at[j]];                 \
        }                                                                                       \
    }
TOPK(float, uint32_t, f32)
TOPK(double, uint64_t, f64)
TOPK(int32_t, uint32_t, i32)
TOPK(int64_t, uint64_t, i64)

/* Refuses indices outside of [0, size). */
static void in_range_i64(const Args *k) { (void)are_in_range(k, k->p[0], k->n[0], k->n[1]); }

const Row indexing_rows[] = {
    {"in_range_i64", "rii", "t0", in_range_i64},
    {"topk_f32", "wwriiii", "t02,d02,t01", topk_f32},
    {"topk_f64", "wwriiii", "t02,d02,t01", topk_f64},
    {"topk_i32", "wwriiii", "t02,d02,t01", topk_i32},
    {"topk_i64", "wwriiii", "t02,d02,t01", topk_i64},
    {"add_rows_f32", "wrriiii", "t023,d1,t012", add_rows_f32},
    {"add_rows_f64", "wrriiii", "t023,d1,t012", add_rows_f64},
    {"scatter_add_f32", "wrriiii", "t013,d023,t023", scatter_add_f32},
    {"scatter_add_f64", "wrriiii", "t013,d023,t023", scatter_add_f64},
    {"tap_sum_f32", "wrrriiiii", "t014,t012,d034,t034", tap_sum_f32},
    {"tap_sum_f64", "wrrriiiii", "t014,t012,d034,t034", tap_sum_f64},
    {"tap_spread_f32", "wrrriiiii", "t012,t014,d034,t034", tap_spread_f32},
    {"tap_spread_f64", "wrrriiiii", "t012,t014,d034,t034", tap_spread_f64},
    {"tap_dot_f32", "wrrriiiii", "t034,t012,d034,t014", tap_dot_f32},
    {"tap_dot_f64", "wrrriiiii", "t034,t012,d034,t014", tap_dot_f64},
    {"take", "wrriii", "b01,b12,d0", take},
    {"take_pairs", "wrrriiii", "b01,b123,d0,d0", take_pairs},
    {"put_rows", "wrriii", "b12,d0,b01", put_rows},
    {"put_pairs", "wrrriiii", "b123,d0,d0,b01", put_pairs},
    {"add_pairs_f32", "wrrriiii", "t123,d0,d0,t01", add_pairs_f32},
    {"add_pairs_f64", "wrrriiii", "t123,d0,d0,t01", add_pairs_f64},
    {"gather_w4", "wrriiii", "t023,t013,d023", gather_w4},
    {"gather_w8", "wrriiii", "t023,t013,d023", gather_w8},
    {"scatter_w4", "wrriiii", "t013,d023,t023", scatter_w4},
    {"scatter_w8", "wrriiii", "t013,d023,t023", scatter_w8},
    {"flip_w4", "wrii", "t01,t01", flip_w4},
    {"flip_w8", "wrii", "t01,t01", flip_w8},
    {"transpose_w4", "wriii", "t012,t012", transpose_w4},
    {"transpose_w8", "wriii", "t012,t012", transpose_w8},
    {"sort_f32", "wwrwiii", "t01,d01,t01,16b1", sort_f32},
    {"sort_f64", "wwrwiii", "t01,d01,t01,32b1", sort_f64},
    {"sort_i32", "wwrwiii", "t01,d01,t01,16b1", sort_i32},
    {"sort_i64", "wwrwiii", "t01,d01,t01,32b1", sort_i64},
    {NULL, NULL, NULL, NULL},
};
