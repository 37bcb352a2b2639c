/* Passes over the rows of a tile that do what several instructions do: a function of a row and its value, and
   what comes of that.

   For short rows the value of each row costs as much as what is computed with it, and vectors lie askew, so
   that chains gain little (chains.c).  The bits are those of the instructions one by one. */
#include "row_passes.h"

#include "avx512.h"

#if HAS_AVX512

#define SHORT_ROW 256 /* columns below which rows are summed by one vector, as in reduction.c */
#define FEW_VECTORS 3  /* of rows whose repeated operands are kept in registers */

/* A row begins with what is no whole vector, as its sum does. */
#define ROWS(...)                                                                                    \
    const int64_t columns = p->columns, whole = columns & ~(int64_t)15;                              \
    const int64_t step_y = p->repeats_y ? 0 : columns, step_z = p->repeats_z ? 0 : columns;          \
    const float *x = p->x, *y = p->y, *z = p->z, *values = p->values, *seconds = p->seconds;         \
    float *out = p->out;                                                                             \
    const __mmask16 rest = (__mmask16)((1u << (columns - whole)) - 1);                               \
    for (int64_t i = 0; i < p->rows; i++, x += columns, y += step_y, z += step_z) {                  \
        const __m512 value = _mm512_set1_ps(values[i]), second = _mm512_set1_ps(seconds[i]);         \
        (void)second;                                                                                \
        __VA_ARGS__                                                                                  \
    }
#define READ(from, j) _mm512_loadu_ps(from + (j))
#define READ_REST(from) _mm512_maskz_loadu_ps(rest, from + whole)
#define KEEP(to, j, found) _mm512_storeu_ps(to + i * columns + (j), found)
#define KEEP_REST(to, found) _mm512_mask_storeu_ps(to + i * columns + whole, rest, found)

/* By function f of a row, its value and its second one: f and the sum of its squares; f y; f y + z. */
#define SQUARES_OF(f)                                                                                \
    AVX512 static void f##_squares(const struct Pass *p) {                                           \
        float *between = p->between;                                                                 \
        ROWS(const __m512 last = f##_of(READ_REST(x), value, second);                                \
             if (between != NULL) KEEP_REST(between, last);                                          \
             __m512 sum = _mm512_maskz_mul_ps(rest, last, last);                                     \
             for (int64_t j = 0; j < whole; j += 16) {                                               \
                 const __m512 found = f##_of(READ(x, j), value, second);                             \
                 if (between != NULL) KEEP(between, j, found);                                       \
                 sum += found * found;                                                               \
             } out[i] = _mm512_reduce_add_ps(sum);)                                                  \
        divide_sums(p->out, p->rows, p->divisor);                                                    \
    }
#define PRODUCTS_OF(f)                                                                               \
    AVX512 static void f##_times(const struct Pass *p) {                                             \
        ROWS(KEEP_REST(out, mul_in_order(f##_of(READ_REST(x), value, second), READ_REST(y)));        \
             for (int64_t j = 0; j < whole; j += 16)                                                 \
                 KEEP(out, j, mul_in_order(f##_of(READ(x, j), value, second), READ(y, j)));)         \
    }                                                                                                \
    /* The same where y and z are one row of few vectors, which stay in registers. */                \
    INLINE AVX512 void f##_few_times_plus(const struct Pass *p, const int64_t vectors) {             \
        __m512 ys[FEW_VECTORS], zs[FEW_VECTORS];                                                     \
        const __mmask16 cut = (__mmask16)((1u << p->columns % 16) - 1);                              \
        for (int64_t v = 0; v < vectors; v++) ys[v] = READ(p->y, 16 * v), zs[v] = READ(p->z, 16 * v);\
        const __m512 y_rest = _mm512_maskz_loadu_ps(cut, p->y + 16 * vectors);                       \
        const __m512 z_rest = _mm512_maskz_loadu_ps(cut, p->z + 16 * vectors);                       \
        ROWS(const __m512 last = mul_in_order(f##_of(READ_REST(x), value, second), y_rest);          \
             for (int64_t v = 0; v < vectors; v++) {                                                 \
                 const __m512 found = mul_in_order(f##_of(READ(x, 16 * v), value, second), ys[v]);   \
                 KEEP(out, 16 * v, add_in_order(found, zs[v]));                                      \
             } KEEP_REST(out, add_in_order(last, z_rest));)                                          \
    }                                                                                                \
    AVX512 static void f##_times_plus(const struct Pass *p) {                                        \
        if (p->repeats_y && p->repeats_z) switch (p->columns / 16) {                                 \
                case 0: f##_few_times_plus(p, 0); return;                                            \
                case 1: f##_few_times_plus(p, 1); return;                                            \
                case 2: f##_few_times_plus(p, 2); return;                                            \
                case 3: f##_few_times_plus(p, 3); return;                                            \
                default: break;                                                                      \
            }                                                                                        \
        ROWS(const __m512 last = mul_in_order(f##_of(READ_REST(x), value, second), READ_REST(y));    \
             KEEP_REST(out, add_in_order(last, READ_REST(z)));                                       \
             for (int64_t j = 0; j < whole; j += 16) {                                               \
                 const __m512 found = mul_in_order(f##_of(READ(x, j), value, second), READ(y, j));   \
                 KEEP(out, j, add_in_order(found, READ(z, j)));                                      \
             })                                                                                      \
    }
#define FUNCTION(f, ...)                                                                             \
    INLINE AVX512 __m512 f##_of(__m512 x, __m512 value, __m512 second) {                             \
        (void)second;                                                                                \
        return __VA_ARGS__;                                                                          \
    }                                                                                                \
    PRODUCTS_OF(f)
FUNCTION(add, add_in_order(x, value))
FUNCTION(sub, x - value)
FUNCTION(mul, mul_in_order(x, value))
FUNCTION(div, x / value)
SQUARES_OF(add)
SQUARES_OF(sub)
SQUARES_OF(mul)
SQUARES_OF(div)
FUNCTION(sub_mul, mul_in_order(x - value, second))
FUNCTION(sub_div, (x - value) / second)

enum { SQUARES, TIMES, TIMES_PLUS, KINDS };
#define NAMED(f) {#f, {f##_squares, f##_times, f##_times_plus}}
static const struct {
    const char *name;
    RowPass passes[KINDS];
} table[] = {NAMED(add), NAMED(sub), NAMED(mul), NAMED(div)};

/* Passes over x - value that is kept, and over x. */
static const RowPass again[][2] = {
    {mul_times, sub_mul_times}, {mul_times_plus, sub_mul_times_plus},
    {div_times, sub_div_times}, {div_times_plus, sub_div_times_plus},
};

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
    *pass = (Instruction){.way = ROW_PASS, .a = i->a, .b = i->b, .c = i->a, .d = i->a, .e = i->b, .kept = -1};
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

/* Has the values that an instruction takes by row computed to a free register; 0 where others read them. */
static int move_values(Program *p, int number, int to) {
    Instruction *reader = &p->code[number], *i = reader - 1;
    const int from = reader->b;
    if (reader->to != from && is_needed(p, from, number + 1)) return 0;
    for (; i >= p->code; i--) {
        if (i->to == to || reads(i, to)) return 0;
        if (i->to == from) {
            i->to = reader->b = reader->e = to;
            return 1;
        }
        if (reads(i, from)) return 0;
    }
    return 0;
}

/* A row in the caches is subtracted from again in less time than its difference takes to be written down: what
   but one later pass reads is not, and its register has the values. */
static void compute_again(Program *p, int number) {
    Instruction *first = &p->code[number];
    const int x = first->a, kept = first->kept;
    if (first->way != ROW_PASS || first->pass != sub_squares || kept < 0 || kept == x || first->to == x) return;
    for (Instruction *i = first + 1; i < p->code + p->count; i++) {
        if (!reads(i, kept)) {
            if (i->to == x || (i->way == ROW_PASS && i->kept == x)) return;
            continue;
        }
        if (i->way != ROW_PASS || i->a != kept || i->b == kept || i->c == kept || i->d == kept || i->to == kept ||
            is_needed(p, kept, (int)(i - p->code) + 1))
            return;
        for (size_t j = 0; j < sizeof again / sizeof again[0]; j++)
            if (i->pass == again[j][0] && move_values(p, number, kept)) {
                i->pass = again[j][1], i->a = x, i->e = i->b, i->b = kept;
                first->kept = -1;
            }
        return;
    }
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
    for (int k = 0; k < p->count; k++) compute_again(p, k);
}
#else
void join_rows(Program *p) { (void)p; }
#endif
