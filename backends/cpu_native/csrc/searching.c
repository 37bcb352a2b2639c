/* Places in ascending sequences. */
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

const Row searching_rows[] = {
    {"bisect_f32", "wrriiii", "d02,t01,t02", bisect_f32},
    {"bisect_f64", "wrriiii", "d02,t01,t02", bisect_f64},
    {"bisect_i32", "wrriiii", "d02,t01,t02", bisect_i32},
    {"bisect_i64", "wrriiii", "d02,t01,t02", bisect_i64},
    {NULL, NULL, NULL, NULL},
};
