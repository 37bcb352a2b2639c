/* Padding with entries of an array itself: lines of its last three dimensions at given places. */
#include "native.h"

/* From (n0, n1, n2) to (o0, o1, o2) entries of `width` bytes, for each of the outer ones.  The last
   dimension is read at `places` but for its middle: `length` entries from `head` on, which are those from
   `start` on. */
typedef struct {
    const char *x;
    char *out;
    const int64_t *places[3];
    int64_t n[3], o[3], width, head, start, length;
    Flag *outside; /* becomes 1 where a step finds a place out of range */
} Boundary;

/* Whether the middle lies within both lines. */
INLINE int is_middle(const int64_t *n, const int64_t *o, int64_t head, int64_t start, int64_t length) {
    return head >= 0 && start >= 0 && length >= 0 && head <= o[2] && length <= o[2] - head && start <= n[2] &&
           length <= n[2] - start;
}

#define AT_PLACES(bytes, from, to)                                                    \
    for (int64_t i = (from); i < (to); i++) {                                         \
        const uint64_t place = place_of(c->places[2] + i);                            \
        if (place >= (uint64_t)c->n[2]) goto outside;                                 \
        memcpy(out + i * (bytes), x + (int64_t)place * (bytes), (size_t)(bytes));     \
    }

#define LINE(bytes)                                                                                            \
    do {                                                                                                       \
        AT_PLACES(bytes, 0, c->head)                                                                           \
        memcpy(out + c->head * (bytes), x + c->start * (bytes), (size_t)(c->length * (bytes)));                \
        AT_PLACES(bytes, c->head + c->length, c->o[2])                                                         \
    } while (0)

static void boundary_step(const void *context, int64_t begin, int64_t end) {
    const Boundary *c = context;
    const int64_t *n = c->n, *o = c->o;
    int64_t j = begin % o[1], i = begin / o[1] % o[0], outer = begin / o[1] / o[0];
    for (int64_t line = begin; line < end; line++) {
        const uint64_t plane = place_of(c->places[0] + i), row = place_of(c->places[1] + j);
        if (plane >= (uint64_t)n[0] || row >= (uint64_t)n[1]) goto outside;
        const char *x = c->x + ((outer * n[0] + (int64_t)plane) * n[1] + (int64_t)row) * n[2] * c->width;
        char *out = c->out + line * o[2] * c->width;
        if (c->width == 4) LINE(4);
        else if (c->width == 8) LINE(8);
        else LINE(c->width);
        if (++j == o[1]) {
            j = 0;
            if (++i == o[0]) i = 0, outer++;
        }
    }
    return;
outside:
    *c->outside = 1;
}

static void boundary(const Args *k) {
    const int64_t *n = k->n;
    Flag outside = 0;
    const Boundary c = {.x = k->p[1], .out = k->p[0], .places = {k->p[2], k->p[3], k->p[4]}, .n = {n[1], n[2], n[3]},
                        .o = {n[4], n[5], n[6]}, .width = n[7], .head = n[8], .start = n[9], .length = n[10],
                        .outside = &outside};
    if (n[0] < 1 || c.o[0] < 1 || c.o[1] < 1 || c.o[2] < 1 || c.width < 1) return;
    if (!is_middle(c.n, c.o, c.head, c.start, c.length)) outside = 1;
    else split(boundary_step, &c, n[0] * c.o[0] * c.o[1], team(k, n[0] * c.o[0] * c.o[1] * c.o[2] * c.width / 4));
    if (outside) *k->error = "index out of range";
}

#define TEMPLATE "boundary_template.h"
#include "both.h"

#define EXTENTS "t01237,t04567,d1,d4,d2,d5,d6"
const Row boundary_rows[] = {
    {"boundary", "wrrrriiiiiiiiiii", "b04567,b01237,d4,d5,d6", boundary},
    {"boundary_backward_f32", "wrrrrrriiiiiiiiiii", EXTENTS, boundary_backward_f32},
    {"boundary_backward_f64", "wrrrrrriiiiiiiiiii", EXTENTS, boundary_backward_f64},
    {NULL, NULL, NULL, NULL},
};
