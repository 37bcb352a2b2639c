/* Runs loops over pieces of arrays, in parts. */
#include "elements.h"
#include "pieces.h"
#include "stream.h"

/* To begin a piece takes some nanoseconds, which are 5 % of a simple loop's; of few elements, more pieces
   are there to turn at. */
#define MANY 65536
#define LONG_PIECE 4096

typedef struct {
    Loop loop;
    char *out;
    int64_t size; /* of an element of `out` */
    Operand operands[2];
    double numbers[3];
    int streams, is_backward, repeats;
    int64_t length; /* of a piece */
    Convert widen, narrow; /* of 16 bits; or none, if the loop takes what is in memory */
} Pointwise;

/* Which of an operand's elements stands beside element i. */
static inline int64_t place_in(const Operand *x, int64_t i) { return x->period > 0 ? i % x->period : i; }

/* The operand from `place` on; `count` becomes as many elements as it goes on for, at most. */
static inline const char *from(const Operand *x, int64_t *place, int64_t *count) {
    if (x->is_number) return x->memory;
    if (x->period > 0) {
        if (*place == x->period) *place = 0;
        if (x->period - *place < *count) *count = x->period - *place;
    }
    return x->memory + *place * x->size;
}

static void pointwise_step(const void *context, int64_t begin, int64_t end) {
    const Pointwise *c = context;
    _Alignas(64) float x[PIECE], y[PIECE], found[PIECE];
    if (c->operands[1].is_number && c->widen != NULL) c->widen(y, c->operands[1].memory, PIECE, 0);
    const Operand *first = &c->operands[0], *second = &c->operands[1];
    const Pieces all = pieces_of(c->repeats ? NULL : c->out, c->size, begin, end, c->length, c->is_backward);
    for (int64_t j = 0; j < all.count; j++) {
        const Piece piece = piece_of(&all, j);
        int64_t places[2] = {place_in(first, piece.begin), place_in(second, piece.begin)};
        for (int64_t i = piece.begin, count; i < piece.end; i += count, places[0] += count, places[1] += count) {
            char *out = c->out + i * c->size;
            count = piece.end - i;
            const char *a = from(first, &places[0], &count), *b = from(second, &places[1], &count);
            if (c->narrow == NULL) {
                c->loop(out, a, b, count, c->numbers, c->streams);
                continue;
            }
            c->widen(x, a, count, 0);
            if (second->memory != NULL && !second->is_number) c->widen(y, b, count, 0);
            c->loop(found, x, y, count, c->numbers, 0);
            c->narrow(out, found, count, c->streams);
        }
    }
    if (c->streams) end_of_stream();
}

/* Repeats an item, of a size that is known to the compiler where it is usual. */
static void fill_run(char *to, const char *item, int64_t size, int64_t count) {
    if (size == 4)
        for (int64_t j = 0; j < count; j++) memcpy(to + j * 4, item, 4);
    else if (size == 8)
        for (int64_t j = 0; j < count; j++) memcpy(to + j * 8, item, 8);
    else
        for (int64_t j = 0; j < count; j++) memcpy(to + j * size, item, (size_t)size);
}

void run_loop(const Args *k, Loop loop, int64_t size, Operand a, Operand b, Convert widen, Convert narrow) {
    const int64_t count = k->n[0], length = widen == NULL && count < PIECE ? count : PIECE; /* of a run */
    _Alignas(64) char runs[2][PIECE * sizeof(double)];
    Pointwise c = {loop, k->p[0], size, {a, b}, {k->x[0], k->x[1], k->x[2]}, 0, 0, 0, PIECE, widen, narrow};
    if (widen == NULL && count >= MANY) c.length = LONG_PIECE;
    for (int i = 0; i < 2; i++) {
        Operand *x = &c.operands[i];
        if (x->period != 1) continue;
        fill_run(runs[i], x->memory, x->size, length);
        x->memory = runs[i];
        c.length = PIECE;
        x->is_number = 1;
    }
    int64_t operands = 0; /* bytes */
    for (int i = 0; i < 2; i++) {
        const Operand *x = &c.operands[i];
        if (x->memory == NULL || x->is_number) continue;
        if (x->period == 0) operands += count * x->size;
        else c.repeats = 1;
    }
    c.streams = is_streamed(count * size, operands);
    c.is_backward = count > PIECE && goes_back(count * size + operands);
    split(pointwise_step, &c, count, team(k, count));
}
