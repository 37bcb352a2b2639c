/* Places in ascending sequences, counts of what falls between them and of numbers, and rows with a one at a place. */
#include "native.h"

typedef struct {
    int64_t *out;
    const void *edges, *values;
    int64_t size, count, rows, after;
} Search;

/* The number of the n edges that stand before x: a NaN stands last. */
#define BISECT(T, S)                                                                    \
    static void bisect_step_##S(const void *context, int64_t begin, int64_t end) {      \
        const Search *c = context;                                                      \
        const T *values = c->values;                                                    \
        for (int64_t i = begin; i < end; i++) {                                         \
            const T *edges = (const T *)c->edges + i / c->count * c->size, x = values[i]; \
            int64_t low = 0, high = c->size;                                            \
            while (low < high) {                                                        \
                const int64_t middle = low + (high - low) / 2;                          \
                const T at = edges[middle];                                             \
                const int before = c->after ? !(at > x) : !(at >= x);                   \
                low = before ? middle + 1 : low;                                        \
                high = before ? high : middle;                                          \
            }                                                                           \
            c->out[i] = low;                                                            \
        }                                                                               \
    }                                                                                   \
    static void bisect_##S(const Args *k) {                                             \
        Search c = {k->p[0], k->p[1], k->p[2], k->n[1], k->n[2], k->n[0], k->n[3] != 0}; \
        split(bisect_step_##S, &c, c.rows * c.count, team(k, c.rows * c.count));        \
    }
BISECT(float, f32)
BISECT(double, f64)
BISECT(int32_t, i32)
BISECT(int64_t, i64)

/* How many of n numbers fall into each of some equal intervals from `low` on, `width` in all: counts, and these
   as numbers.  The greatest belongs to the last. */
#define HISTOGRAM(T, S)                                                                     \
    static void histogram_##S(const Args *k) {                                              \
        T *out = k->p[0];                                                                   \
        int64_t *counts = k->p[1];                                                          \
        const T *a = k->p[2], low = (T)k->x[0], high = (T)k->x[1], width = (T)(k->x[1] - k->x[0]); \
        const int64_t n = k->n[0], bins = k->n[1];                                          \
        const T last = (T)(bins - 1), all = (T)bins;                                        \
        memset(counts, 0, (size_t)bins * sizeof(int64_t));                                  \
        for (int64_t i = 0; bins > 0 && i < n; i++) {                                       \
            const T x = a[i], place = (x - low) / width * all;                              \
            if (!(x >= low && x <= high)) continue;                                         \
            counts[place >= last ? bins - 1 : place > 0 ? (int64_t)place : 0]++;            \
        }                                                                                   \
        for (int64_t i = 0; i < bins; i++) out[i] = (T)counts[i];                           \
    }
HISTOGRAM(float, f32)
HISTOGRAM(double, f64)

/* How often each of `size` numbers occurs among n. */
static void bincount(const Args *k) {
    int64_t *counts = k->p[0];
    const int64_t *a = k->p[1], n = k->n[0], size = k->n[1];
    memset(counts, 0, (size_t)size * sizeof(int64_t));
    for (int64_t i = 0; i < n; i++) {
        const uint64_t place = place_of(a + i);
        if (place >= (uint64_t)size) {
            *k->error = "index out of range";
            return;
        }
        counts[place]++;
    }
}

/* Of each of n numbers a row of `size` zeros with a one at its place. */
static void one_hot(const Args *k) {
    int64_t *out = k->p[0];
    const int64_t *a = k->p[1], n = k->n[0], size = k->n[1];
    for (int64_t i = 0; i < n; i++, out += size) {
        const uint64_t place = place_of(a + i);
        if (place >= (uint64_t)size) {
            *k->error = "index out of range";
            return;
        }
        memset(out, 0, (size_t)size * sizeof(int64_t));
        out[place] = 1;
    }
}

const Row searching_rows[] = {
    {"bincount", "wrii", "d1,d0", bincount},
    {"one_hot", "wrii", "d01,d0", one_hot},
    {"bisect_f32", "wrriiii", "d02,t01,t02", bisect_f32},
    {"bisect_f64", "wrriiii", "d02,t01,t02", bisect_f64},
    {"bisect_i32", "wrriiii", "d02,t01,t02", bisect_i32},
    {"bisect_i64", "wrriiii", "d02,t01,t02", bisect_i64},
    {"histogram_f32", "wwriiff", "w1,d1,w0", histogram_f32},
    {"histogram_f64", "wwriiff", "d1,d1,d0", histogram_f64},
    {NULL, NULL, NULL, NULL},
};
