/* Lines of images as sums of others: interpolation along a dimension, and its adjoint. */
#include "native.h"

#define TEMPLATE "resampling_template.h"
#include "both.h"

/* Lines of (outer, size, width) at given places, in bytes. */
typedef struct {
    const char *x;
    char *out;
    const int64_t *places;
    int64_t size, count, width;
    Flag *outside; /* becomes 1 where a step finds a place out of range */
} Lines;

#define COPIED(bytes)                                                        \
    for (int64_t i = 0; i < c->count; i++, out += (bytes)) {                 \
        const uint64_t place = place_of(c->places + i);                      \
        if (place >= (uint64_t)c->size) {                                    \
            *c->outside = 1;                                                 \
            return;                                                          \
        }                                                                    \
        memcpy(out, x + (int64_t)place * (bytes), (size_t)(bytes));          \
    }

static void take_lines_step(const void *context, int64_t begin, int64_t end) {
    const Lines *c = context;
    for (int64_t row = begin; row < end; row++) {
        const char *x = c->x + row * c->size * c->width;
        char *out = c->out + row * c->count * c->width;
        if (c->width == 4) {
            COPIED(4)
        } else if (c->width == 8) {
            COPIED(8)
        } else {
            COPIED(c->width)
        }
    }
}

static void take_lines(const Args *k) {
    const int64_t *n = k->n;
    Flag outside = 0;
    const Lines c = {k->p[1], k->p[0], k->p[2], n[1], n[2], n[3], &outside};
    if (c.count > 0 && c.width > 0) split(take_lines_step, &c, n[0], team(k, n[0] * c.count * c.width / 4));
    if (outside) *k->error = "index out of range";
}

/* Outer, the lines of x and of the result, inner, and the terms of all lines. */
#define EXTENTS "t023,t013,d2,d4,t4"
const Row resampling_rows[] = {
    {"resample_f32", "wrrrriiiii", EXTENTS, resample_f32},
    {"resample_f64", "wrrrriiiii", EXTENTS, resample_f64},
    {"take_lines", "wrriiii", "b023,b013,d2", take_lines},
    {NULL, NULL, NULL, NULL},
};
