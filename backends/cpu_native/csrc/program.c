/* Programs: several elementwise functions, tile by tile, so that what is between them stays in the
   first cache.

   Each instruction is one of the loops that the kernels have, over the elements of a tile: a program
   gives what its kernels give one after the other.  Arrays whose elements do not lie one after the other
   are copied tile by tile. */
#include "program.h"

#include "chains.h"
#include "row_passes.h"
#include "stream.h"

#if HAS_THREADS
#include <stdatomic.h>
#endif

#define TILE 1024 /* elements, or as many rows as fit; half of it is slower, and so is twice as much */
#define ROWS_TILE 3072  /* of many rows, of which each tile has values that few instructions compute */
#define MANY_ROWS 65536 /* elements */
#define FEWEST 512 /* elements, below which nothing is gained by joining instructions */
#define MANY 12   /* registers, from which on half a tile is faster: the first cache holds more of them */

int is_needed(const Program *p, int r, int from) {
    if (r < p->inputs + p->outputs) return 1;
    for (int k = from; k < p->count; k++) {
        if (reads(&p->code[k], r)) return 1;
        if (p->code[k].to == r) return 0;
    }
    return 0;
}

/* Bytes of all arrays from which on they are not in the caches of one core.  The processor foresees what
   is read of a page when it has begun, and a tile is a page of each array: so lines of the next tile are
   asked for between the instructions, a few at a time, since more than some twenty are waited for.  Of two
   arrays it foresees enough, unless the first pass over rows does little else than read them. */
#define FAR (3 << 20)
#define FAR_ROWS (12 << 20)

static void find_streams(Program *p) {
    const int arrays = p->inputs + p->outputs;
    const int64_t others = p->size * 4 * (arrays - 1); /* bytes; less where arrays repeat */
    for (int j = p->inputs; j < arrays; j++)
        p->streams[j] = p->kinds[j] == 'f' && !p->is_read[j] && is_streamed(p->size * 4, others);
}

void finish_program(Program *p) {
    p->work = p->count;
    find_streams(p);
    if (p->size < FEWEST) return;
    join_rows(p);
    make_chains(p);
    find_streams(p); /* what only its chain used again need not stay in the caches */
    for (int j = 0; j < p->numbers; j++) {
        p->is_single[j] = 1;
        for (int k = 0; k < p->count; k++)
            if (p->code[k].way != CHAIN && reads(&p->code[k], p->inputs + p->outputs + j)) p->is_single[j] = 0;
    }
}

WIDE static void choose(float *out, const float *is_first, const float *a, const float *b, int64_t n) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) out[i] = is_first[i] != 0 ? a[i] : b[i];
}

WIDE static void multiply_add(float *out, const float *a, const float *b, const float *c, int64_t n) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) out[i] = fmaf(b[i], c[i], a[i]);
}

/* How a tile of an array is found: the dimensions that are not one with the next. */
typedef struct {
    char *memory;
    int rank, is_linear, is_same; /* one run of elements; the same in every tile */
    int64_t shape[MAX_RANK], strides[MAX_RANK];
    char kind;
} View;

typedef struct {
    const Program *p;
    View views[MAX_PROGRAM_ARRAYS];
    int64_t unit, tile, tiles, parts, room;
    int streams[MAX_REGISTERS], repeats[MAX_REGISTERS], are_far;
    char *scratch;
} Run;

static View view_of(const Program *p, const Place *place, char kind) {
    View v = {.memory = place->memory, .kind = kind};
    for (int d = 0; d < p->rank; d++) {
        const int64_t n = p->shape[d], stride = place->strides[d];
        if (n == 1) continue;
        if (v.rank && v.strides[v.rank - 1] == stride * n) {
            v.shape[v.rank - 1] *= n;
            v.strides[v.rank - 1] = stride;
        } else {
            v.shape[v.rank] = n, v.strides[v.rank++] = stride;
        }
    }
    if (!v.rank) v.shape[v.rank] = 1, v.strides[v.rank++] = size_of(kind);
    v.is_linear = v.rank == 1 && v.strides[0] == size_of(kind) &&
                  ((uintptr_t)v.memory & (uintptr_t)(size_of(kind) - 1)) == 0;
    return v;
}

/* Calls DO(address, count, stride) for each run of the elements [start, start + m). */
#define FOR_RUNS(v, start, m, DO)                                                                 \
    do {                                                                                          \
        int64_t index_[MAX_RANK], left_ = (start), done_ = 0;                                     \
        char *at_ = (v)->memory;                                                                  \
        const int last_ = (v)->rank - 1;                                                          \
        for (int d_ = last_; d_ >= 0; d_--) {                                                     \
            index_[d_] = left_ % (v)->shape[d_], left_ /= (v)->shape[d_];                         \
            at_ += index_[d_] * (v)->strides[d_];                                                 \
        }                                                                                         \
        const int64_t stride = (v)->strides[last_];                                               \
        while (done_ < (m)) {                                                                     \
            int64_t count = (v)->shape[last_] - index_[last_];                                    \
            if (count > (m) - done_) count = (m) - done_;                                         \
            char *address = at_;                                                                  \
            const int64_t done = done_;                                                           \
            DO;                                                                                   \
            done_ += count;                                                                       \
            at_ += count * stride;                                                                \
            index_[last_] += count;                                                               \
            for (int d_ = last_; d_ > 0 && index_[d_] == (v)->shape[d_]; d_--) {                  \
                at_ += (v)->strides[d_ - 1] - index_[d_] * (v)->strides[d_];                      \
                index_[d_] = 0, index_[d_ - 1]++;                                                 \
            }                                                                                     \
        }                                                                                         \
    } while (0)

WIDE static void fill(float *to, const char *from, int64_t count) {
    float value;
    memcpy(&value, from, sizeof value);
    for (int64_t i = 0; i < count; i++) to[i] = value;
}

static void gather_run(float *to, const char *from, int64_t count, int64_t stride) {
    if (stride == sizeof(float)) {
        memcpy(to, from, (size_t)count * sizeof(float));
    } else if (stride == 0) {
        fill(to, from, count);
    } else {
        for (int64_t i = 0; i < count; i++) memcpy(to + i, from + i * stride, sizeof(float));
    }
}

WIDE static void gather_bools(float *to, const char *from, int64_t count, int64_t stride) {
    if (stride == 1) {
        for (int64_t i = 0; i < count; i++) to[i] = from[i] != 0;
    } else {
        for (int64_t i = 0; i < count; i++) to[i] = from[i * stride] != 0;
    }
}

static void gather(const View *v, int64_t start, int64_t m, float *to) {
    if (v->kind == 'b')
        FOR_RUNS(v, start, m, gather_bools(to + done, address, count, stride));
    else
        FOR_RUNS(v, start, m, gather_run(to + done, address, count, stride));
}

static void scatter_run(char *to, const float *from, int64_t count, int64_t stride, char kind) {
    if (kind == 'b') {
        for (int64_t i = 0; i < count; i++) to[i * stride] = from[i] != 0;
    } else if (stride == sizeof(float)) {
        memcpy(to, from, (size_t)count * sizeof(float));
    } else {
        for (int64_t i = 0; i < count; i++) memcpy(to + i * stride, from + i, sizeof(float));
    }
}

static void scatter(const View *v, int64_t start, int64_t m, const float *from) {
    FOR_RUNS(v, start, m, scatter_run(address, from + done, count, stride, v->kind));
}

/* The tile of an input: where it lies, or copied to `room`. */
static const char *tile_of(const View *v, int64_t start, int64_t m, char *room) {
    if (v->is_linear && v->kind != 'b') return v->memory + start * (int64_t)sizeof(float);
    if (v->is_same) return room;
    if (v->kind != 'b' && v->rank == 2 && v->strides[1] == sizeof(float)) {
        const int64_t row = start / v->shape[1], column = start % v->shape[1];
        char *at = v->memory + row * v->strides[0] + column * (int64_t)sizeof(float);
        if (column + m <= v->shape[1] && ((uintptr_t)at & 3) == 0) return at;
    }
    gather(v, start, m, (float *)(void *)room);
    return room;
}

/* Whole vectors: what one writes past the end of its row, the next row writes again. */
static void execute_by_row(const Instruction *i, char *const *at, int64_t rows, int64_t columns) {
    const int is_first = i->way == BY_FIRST;
    const int64_t bytes = columns * (int64_t)sizeof(float), vectors = (columns + 15) & ~(int64_t)15;
    const char *value = at[is_first ? i->a : i->b], *row = at[is_first ? i->b : i->a];
    char *to = at[i->to];
    for (int64_t r = 0; r < rows; r++, value += sizeof(float), row += bytes, to += bytes) {
        if (i->number != NULL) {
            const int64_t n = (rows - r) * columns < vectors ? columns : vectors;
            i->number(to, is_first ? value : row, is_first ? row : value, n, i->numbers, 0);
        } else {
            float repeated[MAX_COLUMNS];
            fill(repeated, value, columns);
            i->loop(to, is_first ? (const void *)repeated : row, is_first ? row : (const void *)repeated, columns,
                    i->numbers, 0);
        }
    }
}

static void execute(const Instruction *i, const Tile *tile, int64_t m, int64_t columns, int streams) {
    char *const *at = tile->at;
    const int64_t rows = m / columns;
    switch (i->way) {
        case EACH: i->loop(at[i->to], at[i->a], at[i->b], m, i->numbers, streams); break;
        case BY_FIRST:
        case BY_SECOND: execute_by_row(i, at, rows, columns); break;
        case EACH_ROW: i->loop(at[i->to], at[i->a], at[i->b], rows, i->numbers, 0); break;
        case REDUCE:
            i->reducer((float *)(void *)at[i->to], (const float *)(void *)at[i->a], rows, columns,
                       i->numbers[0]);
            break;
        case EXPAND:
            for (int64_t r = 0; r < rows; r++)
                fill((float *)(void *)at[i->to] + r * columns, at[i->a] + r * (int64_t)sizeof(float), columns);
            break;
        case ROW_PASS:
            i->pass(&(struct Pass){(const float *)(const void *)at[i->a], (const float *)(const void *)at[i->b],
                                   (const float *)(const void *)at[i->e], (const float *)(const void *)at[i->c],
                                   (const float *)(const void *)at[i->d],
                                   i->kept < 0 ? NULL : (float *)(void *)at[i->kept], (float *)(void *)at[i->to], rows,
                                   columns, tile->repeats[i->c], tile->repeats[i->d], i->numbers[0]});
            break;
        case MULTIPLY_ADD:
            multiply_add((float *)(void *)at[i->to], (const float *)(void *)at[i->a],
                         (const float *)(void *)at[i->b], (const float *)(void *)at[i->c], m);
            break;
        default:
            choose((float *)(void *)at[i->to], (const float *)(void *)at[i->a],
                   (const float *)(void *)at[i->b], (const float *)(void *)at[i->c], m);
    }
}

/* Whether what comes after a tile is to be asked for. */
static int are_far(const Run *run) {
    const Program *p = run->p;
    int64_t large = 0;
    for (int j = 0; j < p->inputs + p->outputs; j++) large += run->views[j].is_linear;
    const int64_t bytes = p->size * large * (int64_t)sizeof(float);
    return large > 2 ? bytes >= FAR : p->has_rows && bytes >= FAR_ROWS;
}

/* Notes the arrays that lie far away, behind their tiles of `bytes`. */
static void look_ahead(const Run *run, Tile *tile, int64_t bytes) {
    Ahead *ahead = &tile->ahead;
    ahead->asked = ahead->wanted = 0;
    for (int j = 0; j < run->p->inputs + run->p->outputs; j++)
        if (run->views[j].is_linear && run->views[j].kind == 'f' && !tile->streams[j])
            ahead->next[ahead->count++] = tile->at[j] + bytes;
}

static void run_part(const Run *run, int64_t part) {
    const Program *p = run->p;
    const int arrays = p->inputs + p->outputs;
    const int64_t columns = p->has_rows ? p->shape[p->rank - 1] : 1;
    char *own[MAX_REGISTERS], *base = run->scratch + part * p->registers * run->room;
    Tile tile;
    char **const at = tile.at;
    tile.streams = run->streams, tile.repeats = run->repeats;
    for (int r = 0; r < p->registers; r++) at[r] = own[r] = base + r * run->room;
    for (int j = 0; j < p->numbers; j++) {
        float *to = (float *)(void *)own[arrays + j];
        const int64_t count = p->is_single[j] ? 1 : run->tile;
        for (int64_t k = 0; k < count; k++) to[k] = p->values[j];
    }
    for (int j = 0; j < p->inputs; j++)
        if (run->views[j].is_same) gather(&run->views[j], 0, run->tile, (float *)(void *)own[j]);
    const int64_t begin = run->tiles * part / run->parts, end = run->tiles * (part + 1) / run->parts;
    const int64_t pieces = (run->unit + run->tile - 1) / run->tile; /* of a long row */
    for (int64_t t = begin; t < end; t++) {
        int64_t start = t * run->tile, stop = p->size;
        if (pieces > 1) {
            start = t / pieces * run->unit + t % pieces * run->tile;
            stop = (t / pieces + 1) * run->unit;
        }
        const int64_t m = stop - start < run->tile ? stop - start : run->tile;
        for (int j = 0; j < p->inputs; j++)
            at[j] = (char *)(uintptr_t)tile_of(&run->views[j], start, m, own[j]);
        for (int j = p->inputs; j < arrays; j++) {
            const View *v = &run->views[j];
            if (v->kind == 'R') at[j] = v->memory + start / columns * (int64_t)sizeof(float);
            else if (v->kind == 'f' && v->is_linear) at[j] = v->memory + start * (int64_t)sizeof(float);
        }
        const int64_t bytes = m * (int64_t)sizeof(float);
        tile.ahead.count = 0;
        if (run->are_far && t + 1 < end) look_ahead(run, &tile, bytes);
        for (int k = 0; k < p->count; k++) {
            const Instruction *i = &p->code[k];
            if (i->way == CHAIN) {
                run_chain(p, i, &tile, m, bytes / p->count);
                continue;
            }
            if (tile.ahead.count) ask(&tile.ahead, bytes * (k + 1) / p->count);
            execute(i, &tile, m, columns, run->streams[i->to]);
        }
        for (int j = p->inputs; j < arrays; j++)
            if (at[j] == own[j]) scatter(&run->views[j], start, m, (const float *)(void *)own[j]);
    }
    for (int j = p->inputs; j < arrays; j++)
        if (run->streams[j]) {
            end_of_stream();
            break;
        }
}

static void run_step(const void *context, int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; part++) run_part(context, part);
}

/* One scratch memory is kept, for whoever finds it free. */
#if HAS_THREADS
#define KEPT (256 * 1024)
static atomic_flag is_taken = ATOMIC_FLAG_INIT;
static char *kept;
#endif

static char *borrow(size_t bytes, int *is_kept) {
    *is_kept = 0;
#if HAS_THREADS
    if (bytes <= KEPT && !atomic_flag_test_and_set_explicit(&is_taken, memory_order_acquire)) {
        if (kept == NULL) kept = malloc(KEPT + 64);
        if (kept != NULL) {
            *is_kept = 1;
            return kept;
        }
        atomic_flag_clear_explicit(&is_taken, memory_order_release);
    }
#endif
    return malloc(bytes + 64);
}

static void give_back(char *memory, int is_kept) {
#if HAS_THREADS
    if (is_kept) {
        atomic_flag_clear_explicit(&is_taken, memory_order_release);
        return;
    }
#endif
    (void)is_kept;
    free(memory);
}

int run_program(const Program *p, const Place *places, int threads) {
    if (!p->size) return 1;
    Run run = {.p = p, .unit = 1};
    const int arrays = p->inputs + p->outputs;
    for (int j = 0; j < arrays; j++) {
        run.views[j] = view_of(p, &places[j], p->kinds[j]);
        const View *v = &run.views[j];
        /* Rows that repeat begin with a tile: one copy, or none, serves all. */
        if (v->rank == 2 && v->strides[0] == 0 && run.unit == 1) run.unit = v->shape[1];
        run.streams[j] = p->streams[j] && v->is_linear;
    }
    if (p->has_rows) run.unit = p->shape[p->rank - 1];
    const int64_t few = p->registers < MANY ? TILE : TILE / 2;
    const int64_t tile = p->has_rows && p->size >= MANY_ROWS ? ROWS_TILE : few;
    if (p->has_rows || run.unit <= tile) {
        int64_t lines = run.unit; /* rows that end with a line, so that the next tile may be streamed */
        while (lines % 16 != 0 && lines * 2 <= tile) lines *= 2;
        run.tile = lines < tile ? tile / lines * lines : run.unit;
        if (run.tile > p->size) run.tile = p->size;
        run.tiles = (p->size + run.tile - 1) / run.tile;
        run.unit = run.tile; /* no pieces */
    } else {
        run.tile = tile;
        run.tiles = p->size / run.unit * ((run.unit + tile - 1) / tile);
    }
    for (int j = 0; j < p->inputs; j++) {
        View *v = &run.views[j];
        const int is_number = v->rank == 1 && v->strides[0] == 0;
        const int is_row = v->rank == 2 && v->strides[0] == 0 && run.tile % v->shape[1] == 0;
        v->is_same = is_number || is_row;
        run.repeats[j] = is_row && p->has_rows && v->shape[1] == p->shape[p->rank - 1];
    }
    const int64_t useful = p->size * (p->work + 3) / 4 / GRAIN;
    run.are_far = are_far(&run);
    run.parts = useful < 1 ? 1 : useful < threads ? useful : threads;
    if (run.parts > run.tiles) run.parts = run.tiles;
    /* Registers a whole number of pages apart would share the lines of the first cache. */
    run.room = (run.tile * (int64_t)sizeof(float) + 63) / 64 * 64 + 64;
    int is_kept;
    char *memory = borrow((size_t)(run.parts * p->registers * run.room), &is_kept);
    if (memory == NULL) return 0;
    run.scratch = (char *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
    split(run_step, &run, run.parts, (int)run.parts);
    give_back(memory, is_kept);
    return 1;
}
