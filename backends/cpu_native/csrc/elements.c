/* Runs loops over pieces of arrays, in parts. */
#include "elements.h"
#include "pieces.h"
#include "stream.h"

typedef struct {
    Loop loop;
    char *out;
    int64_t size; /* of an element of `out` */
    Operand operands[2];
    double numbers[3];
    int streams, is_backward, repeats;
    Convert widen, narrow; /* of 16 bits; or none, if the loop takes what is in memory */
} Pointwise;

/* The operand from element i on; `count` becomes as many elements as it goes on for, at most. */
static inline const char *at(const Operand *x, int64_t i, int64_t *count) {
    if (x->is_number) return x->memory;
    if (x->period > 0) {
        i %= x->period;
        if (x->period - i < *count) *count = x->period - i;
    }
    return x->memory + i * x->size;
}

static void pointwise_step(const void *context, int64_t begin, int64_t end) {
    const Pointwise *c = context;
    _Alignas(64) float x[PIECE], y[PIECE], found[PIECE];
    if (c->operands[1].is_number && c->widen != NULL) c->widen(y, c->operands[1].memory, PIECE, 0);
    const Pieces all = pieces_of(c->repeats ? NULL : c->out, c->size, begin, end, PIECE, c->is_backward);
    for (int64_t j = 0; j < all.count; j++) {
        const Piece piece = piece_of(&all, j);
        for (int64_t i = piece.begin, count; i < piece.end; i += count) {
            char *out = c->out + i * c->size;
            count = unit_from(&all, &piece, i, PIECE);
            const char *a = at(&c->operands[0], i, &count), *b = at(&c->operands[1], i, &count);
            if (c->narrow == NULL) {
                c->loop(out, a, b, count, c->numbers, c->streams);
                continue;
            }
            c->widen(x, a, count, 0);
            if (c->operands[1].memory != NULL && !c->operands[1].is_number) c->widen(y, b, count, 0);
            c->loop(found, x, y, count, c->numbers, 0);
            c->narrow(out, found, count, c->streams);
        }
    }
    if (c->streams) end_of_stream();
}

void run_loop(const Args *k, Loop loop, int64_t size, Operand a, Operand b, Convert widen, Convert narrow) {
    const int64_t count = k->n[0], length = widen == NULL && count < PIECE ? count : PIECE; /* of a run */
    _Alignas(64) char runs[2][PIECE * sizeof(double)];
    Pointwise c = {loop, k->p[0], size, {a, b}, {k->x[0], k->x[1], k->x[2]}, 0, 0, 0, widen, narrow};
    for (int i = 0; i < 2; i++) {
        Operand *x = &c.operands[i];
        if (x->period != 1) continue;
        for (int64_t j = 0; j < length; j++) memcpy(runs[i] + j * x->size, x->memory, (size_t)x->size);
        x->memory = runs[i];
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
    c.is_backward = !c.streams && count > PIECE && turn();
    split(pointwise_step, &c, count, team(k, count));
}
