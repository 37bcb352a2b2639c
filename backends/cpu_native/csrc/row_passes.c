/* Passes over the rows of a tile that do what several instructions do: a function of a row and its value, and
   what comes of that.

   For short rows the value of each row costs as much as what is computed with it, and vectors lie askew, so
   that chains gain little (chains.c).  The bits are those of the instructions one by one. */
#include "row_passes.h"

#include "avx512.h"

#if HAS_AVX512

#define SHORT_ROW 256 /* columns below which rows are summed by one vector, as in reduction.c */

/* A row begins with what is no whole vector, as its sum does. */
#define ROWS(...)                                                                                    \
    const int64_t columns = p->columns, whole = columns & ~(int64_t)15;                              \
    const int64_t step_y = p->repeats_y ? 0 : columns, step_z = p->repeats_z ? 0 : columns;          \
    const float *x = p->x, *y = p->y, *z = p->z;                                                     \
    float *between = p->between, *out = p->out;                                                      \
    const __mmask16 rest = (__mmask16)((1u << (columns - whole)) - 1);                               \
    (void)between;                                                                                   \
    for (int64_t i = 0; i < p->rows; i++, x += columns, y += step_y, z += step_z) {                  \
        const __m512 value = _mm512_set1_ps(p->values[i]);                                           \
        __VA_ARGS__                                                                                  \
    }
#define READ(from, j) _mm512_loadu_ps(from + (j))
#define READ_REST(from) _mm512_maskz_loadu_ps(rest, from + whole)
#define KEEP(to, j, found) _mm512_storeu_ps(to + i * columns + (j), found)
#define KEEP_REST(to, found) _mm512_mask_storeu_ps(to + i * columns + whole, rest, found)

/* By function f: f(x, value) and the sum of its squares; f(x, value) y; f(x, value) y + z. */
#define PASSES(f)                                                                                    \
    AVX512 static void f##_squares(const struct Pass *p) {                                                  \
        ROWS(const __m512 last = f##_of(READ_REST(x), value);                                  \
             if (between != NULL) KEEP_REST(between, last);                                       \
             __m512 sum = _mm512_maskz_mul_ps(rest, last, last);                                     \
             for (int64_t j = 0; j < whole; j += 16) {                                               \
                 const __m512 found = f##_of(READ(x, j), value);                               \
                 if (between != NULL) KEEP(between, j, found);                                    \
                 sum += found * found;                                                               \
             } out[i] = (float)((double)_mm512_reduce_add_ps(sum) / p->divisor);)                 \
    }                                                                                                \
    AVX512 static void f##_times(const struct Pass *p) {                                                    \
        ROWS(KEEP_REST(out, mul_in_order(f##_of(READ_REST(x), value), READ_REST(y)));          \
             for (int64_t j = 0; j < whole; j += 16)                                                 \
                 KEEP(out, j, mul_in_order(f##_of(READ(x, j), value), READ(y, j)));)           \
    }                                                                                                \
    AVX512 static void f##_times_plus(const struct Pass *p) {                                               \
        ROWS(const __m512 last = mul_in_order(f##_of(READ_REST(x), value), READ_REST(y));      \
             KEEP_REST(out, add_in_order(last, READ_REST(z)));                                       \
             for (int64_t j = 0; j < whole; j += 16) {                                               \
                 const __m512 found = mul_in_order(f##_of(READ(x, j), value), READ(y, j));     \
                 KEEP(out, j, add_in_order(found, READ(z, j)));                                      \
             })                                                                                      \
    }
#define add_of add_in_order
#define mul_of mul_in_order
INLINE AVX512 __m512 sub_of(__m512 g, __m512 x) { return g - x; }
INLINE AVX512 __m512 div_of(__m512 g, __m512 x) { return g / x; }
PASSES(add)
PASSES(sub)
PASSES(mul)
PASSES(div)

enum { SQUARES, TIMES, TIMES_PLUS, KINDS };
#define NAMED(f) {#f, {f##_squares, f##_times, f##_times_plus}}
static const struct {
    const char *name;
    RowPass passes[KINDS];
} table[] = {NAMED(add), NAMED(sub), NAMED(mul), NAMED(div)};

/* The passes of an instruction's function, or NULL. */
static const RowPass *passes_of(const Instruction *i) {
    for (size_t j = 0; j < sizeof table / sizeof table[0]; j++)
        if (i->way == BY_SECOND && i->loop == loop_of(table[j].name)) return table[j].passes;
    return NULL;
}

/* Whether an instruction gives a b with that a. */
static int multiplies(const Instruction *i, int a) {
    return i->way == EACH && i->loop == loop_of("mul") && i->a == a;
}

/* The pass of the instructions from that number on; how many they are, or 0. */
static int find_pass(const Program *p, int number, Instruction *pass) {
    const Instruction *i = &p->code[number];
    const RowPass *passes = passes_of(i);
    const int left = p->count - number, to = i->to;
    if (passes == NULL || left < 2 || !multiplies(i + 1, to)) return 0;
    const Instruction *second = i + 1, *third = i + (left > 2 ? 2 : 1);
    *pass = (Instruction){.way = ROW_PASS, .a = i->a, .b = i->b, .c = i->a, .d = i->a, .kept = -1};
    const int goes_on = left > 2 && !is_needed(p, second->to, number + 3) && third->a == second->to;
    if (second->b == to) {
        if (!goes_on || third->reducer != sum_of_rows || p->shape[p->rank - 1] >= SHORT_ROW) return 0;
        pass->pass = passes[SQUARES], pass->to = third->to, pass->numbers[0] = third->numbers[0];
        if (is_needed(p, to, number + 2)) pass->kept = to;
        return 3;
    }
    if (is_needed(p, to, number + 2)) return 0;
    pass->c = second->b;
    /* What values of later rows are still read from is no place for results. */
    if (goes_on && third->way == EACH && third->loop == loop_of("add") && third->to != i->b && third->b != second->to &&
        !p->streams[third->to]) {
        pass->pass = passes[TIMES_PLUS], pass->to = third->to, pass->d = third->b;
        return 3;
    }
    if (second->to == i->b || p->streams[second->to]) return 0;
    pass->pass = passes[TIMES], pass->to = second->to;
    return 2;
}

void join_rows(Program *p) {
    int kept = 0;
    if (!has_avx512()) return;
    for (int k = 0, taken; k < p->count; k += taken ? taken : 1) {
        Instruction pass;
        taken = find_pass(p, k, &pass);
        p->code[kept++] = taken ? pass : p->code[k];
    }
    p->count = kept;
}
#else
void join_rows(Program *p) { (void)p; }
#endif
