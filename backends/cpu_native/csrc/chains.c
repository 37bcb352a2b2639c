/* Chains: what an instruction of a program gives becomes the operand of the next without going through memory.

   An instruction by itself is a pass over a tile, two loads and a store for one addition.  A chain takes eight
   vectors through all of its instructions before it comes to the next eight.  They are arguments, which the
   convention of calls keeps in registers, and a link ends with a jump to the next one: with one link for
   each function and for where its operands are, all sequences are chains.  Products with a number that are only added,
   or taken away, are a part of the link that does that.  The bits are those of the instructions, whose formulas
   these are. */
#include "chains.h"

#include "avx512.h"

#if HAS_AVX512

#define BLOCK 128 /* elements of eight vectors */

/* The eight vectors are whole, or have those elements that are left. */
enum { WHOLE, PART, FORMS };

typedef struct Link Link;
#define PARAMETERS                                                                                            \
    const Link *l, const Tile *tile, int64_t offset, __m512 v0, __m512 v1, __m512 v2, __m512 v3, __m512 v4,   \
        __m512 v5, __m512 v6, __m512 v7
typedef void (*Work)(PARAMETERS);

/* Where an operand is: with the link before, in memory, a number; or it is such a number times what lies in memory,
   or times what the link before gave. */
enum { HELD, READ, NUMBER, SCALED, TIMES, PLACES };

struct Link {
    Work work[FORMS];
    int function, first, second, to, scale, places[2];
};

#define FUNCTIONS(ONE, TWO, SUM)                        \
    SUM(add, add_in_order(g, x))                        \
    SUM(sub, g - x)                                     \
    TWO(mul, mul_in_order(g, x))                        \
    TWO(div, g / x)                                     \
    ONE(neg, -x)                                        \
    ONE(abs, _mm512_abs_ps(x))                          \
    ONE(square, x *x)                                   \
    ONE(sqrt, _mm512_sqrt_ps(x))                        \
    ONE(reciprocal, _mm512_set1_ps(1) / x)              \
    ONE(rsqrt, _mm512_set1_ps(1) / _mm512_sqrt_ps(x))   \
    ONE(exp, exp_v(x))                                  \
    ONE(log, log_v(x))                                  \
    ONE(tanh, tanh_v(x))                                \
    ONE(sigmoid, sigmoid_v(x))                          \
    ONE(silu, silu_v(x))

#define FORM WHOLE
#define FORMED(name) name##_whole
#define LOAD(p, i) _mm512_loadu_ps(p + 16 * i)
#define STORE(p, i, x) _mm512_storeu_ps(p + 16 * i, x)
#include "chain_template.h"
#undef FORM
#undef FORMED
#undef LOAD
#undef STORE

#define FORM PART
#define FORMED(name) name##_part
#define LOAD(p, i) _mm512_maskz_loadu_ps(tile->left[i], p + 16 * i)
#define STORE(p, i, x) _mm512_mask_storeu_ps(p + 16 * i, tile->left[i], x)
#include "chain_template.h"
#undef FORM
#undef FORMED
#undef LOAD
#undef STORE

#define IN_ALL_FORMS(name) {name##_whole, name##_part}
#define BOTH(name) {IN_ALL_FORMS(name##_passed), IN_ALL_FORMS(name##_kept)}
#define ONE(name, formula) {#name, 1, {[HELD] = {[HELD] = BOTH(name##_of_held), [READ] = BOTH(name##_of_read)}}},
#define OF_HELD(name) [READ] = BOTH(name##_held_read), [NUMBER] = BOTH(name##_held_number)
#define OF_READ(name)                                                                           \
    [HELD] = BOTH(name##_read_held), [READ] = BOTH(name##_read_read), [NUMBER] = BOTH(name##_read_number)
#define OF_NUMBER(name) [NUMBER] = {[HELD] = BOTH(name##_number_held), [READ] = BOTH(name##_number_read)}
#define TWO(name, formula) {#name, 2, {[HELD] = {OF_HELD(name)}, [READ] = {OF_READ(name)}, OF_NUMBER(name)}},
#define SUM(name, formula)                                                          \
    {#name, 2, {[HELD] = {OF_HELD(name), [SCALED] = BOTH(name##_held_scaled)},      \
                [READ] = {OF_READ(name), [TIMES] = BOTH(name##_read_times)},        \
                OF_NUMBER(name),                                                    \
                [SCALED] = {[HELD] = BOTH(name##_scaled_held)},                     \
                [TIMES] = {[READ] = BOTH(name##_times_read)}}},
static const struct {
    const char *name;
    int operands;
    Work work[PLACES][PLACES][2][FORMS]; /* by the places of the operands, and whether the result is kept */
} functions[] = {FUNCTIONS(ONE, TWO, SUM)};
static const Work ending[] = IN_ALL_FORMS(end);

int find_function(const char *name) {
    for (size_t j = 0; j < sizeof functions / sizeof functions[0]; j++)
        if (strcmp(name, functions[j].name) == 0) return (int)j + 1;
    return 0;
}

/* A chain that becomes longer. */
typedef struct {
    const Program *p;
    Link *links;
    int count, held; /* the register whose value it has; -1 for none */
    int awaited;     /* the product with a number that the link of its sum computes: its instruction; -1 for none */
} Chain;

static Link *add_link(Chain *c, const Work *work) {
    Link *l = &c->links[c->count++];
    *l = (Link){.places = {HELD, HELD}};
    memcpy(l->work, work, sizeof l->work);
    return l;
}

static int is_number(const Program *p, int r) {
    const int first = p->inputs + p->outputs;
    return r >= first && r < first + p->numbers;
}

/* Lets the last link keep its result if somebody needs it from then on. */
static void keep(Chain *c, int from) {
    if (c->held < 0 || !is_needed(c->p, c->held, from)) return;
    Link *l = &c->links[c->count - 1];
    l->to = c->held;
    memcpy(l->work, functions[l->function].work[l->places[0]][l->places[1]][1], sizeof l->work);
}

static int is_of(const Instruction *i, const char *name) { return i->function == find_function(name); }
static int is_sum(const Instruction *i) { return is_of(i, "add") || is_of(i, "sub"); }

/* Whether an instruction can be a link: it has a function, and not of numbers alone. */
static int is_link(const Program *p, const Instruction *i) {
    return i->way == EACH && i->function &&
           !(is_number(p, i->a) && (functions[i->function - 1].operands == 1 || is_number(p, i->b)));
}

/* Whether an instruction multiplies by a number, which is not NaN, whose bits depend on the order. */
static int is_scaling(const Program *p, const Instruction *i) {
    if (!is_of(i, "mul") || is_number(p, i->a) == is_number(p, i->b)) return 0;
    const float value = p->values[(is_number(p, i->a) ? i->a : i->b) - p->inputs - p->outputs];
    return value == value;
}

/* Whether the product of an array and a number, by the instruction of that number, can wait for a sum: that it alone
   is for, whose other operand comes from the instruction before it. */
static int can_wait(const Program *p, int number) {
    const Instruction *made = &p->code[number];
    const int arrays = p->inputs + p->outputs, from = is_number(p, made->a) ? made->b : made->a;
    if (!is_scaling(p, made) || from >= arrays || made->to < arrays + p->numbers) return 0;
    for (int j = number + 1; j < p->count; j++) {
        const Instruction *i = &p->code[j];
        if (!is_link(p, i)) return 0;
        if (reads(i, made->to)) {
            const int other = i->a == made->to ? i->b : i->a;
            return is_sum(i) && (i->a == made->to) != (i->b == made->to) && j > number + 1 &&
                   p->code[j - 1].to == other && (i->to == made->to || !is_needed(p, made->to, j + 1));
        }
        if (i->to == made->to || i->to == from) return 0;
    }
    return 0;
}

/* Lets the sum of what the last link gives, a product of what that was given, and an array be one link with it; 0 if
   that cannot be. */
static int join_product(Chain *c, int number) {
    const Program *p = c->p;
    if (!c->count || c->awaited >= 0) return 0;
    const Instruction *i = &p->code[number], *made = &p->code[number - 1];
    Link *l = &c->links[c->count - 1];
    if (!is_sum(i) || made->to != c->held || !is_scaling(p, made)) return 0;
    const int is_first = i->a == c->held, other = is_first ? i->b : i->a;
    const int is_held = l->places[0] == HELD ? l->places[1] == NUMBER : l->places[0] == NUMBER && l->places[1] == HELD;
    if (!is_held || (i->a == c->held) == (i->b == c->held) || is_number(p, other)) return 0;
    if (i->to != c->held && is_needed(p, c->held, number + 1)) return 0;
    l->scale = l->places[0] == HELD ? l->second : l->first;
    l->function = i->function - 1, l->first = l->second = other;
    l->places[0] = is_first ? TIMES : READ, l->places[1] = is_first ? READ : TIMES;
    memcpy(l->work, functions[l->function].work[l->places[0]][l->places[1]][0], sizeof l->work);
    c->held = i->to;
    return 1;
}

/* Adds the sum of what the last link gave and of a product that waited for it. */
static void add_awaited(Chain *c, int number) {
    const Program *p = c->p;
    const Instruction *i = &p->code[number], *made = &p->code[c->awaited];
    const int is_first = i->a == made->to, is_second_number = is_number(p, made->b);
    const int first = is_first ? SCALED : HELD, second = is_first ? HELD : SCALED;
    keep(c, number + 1);
    Link *l = add_link(c, functions[i->function - 1].work[first][second][0]);
    l->function = i->function - 1, l->places[0] = first, l->places[1] = second;
    l->first = l->second = is_second_number ? made->a : made->b;
    l->scale = is_second_number ? made->b : made->a;
    c->held = i->to, c->awaited = -1;
}

/* Adds the instruction of that number; 0 if it cannot be part of the chain. */
static int add_instruction(Chain *c, int number) {
    const Program *p = c->p;
    const Instruction *i = &p->code[number];
    if (!is_link(p, i)) return 0;
    if (c->awaited < 0 && can_wait(p, number)) {
        c->awaited = number;
        return 1;
    }
    if (c->awaited >= 0 && reads(i, p->code[c->awaited].to)) {
        add_awaited(c, number);
        return 1;
    }
    if (join_product(c, number)) return 1;
    const int is_square = i->a == i->b && i->function == find_function("mul");
    const int function = (is_square ? find_function("square") : i->function) - 1;
    const int is_one = functions[function].operands == 1, first = i->a, second = is_one ? i->a : i->b;
    int at_first = is_number(p, first) ? NUMBER : first == c->held ? HELD : READ;
    int at_second = is_number(p, second) ? NUMBER : second == c->held ? HELD : READ;
    const int is_twice = !is_one && at_first == HELD && at_second == HELD;
    if (is_twice) at_second = READ;
    if (is_one) at_first = HELD;
    const Work(*work)[FORMS] = functions[function].work[at_first][at_second];
    keep(c, (first == c->held || second == c->held) && !is_twice ? number + 1 : number);
    Link *l = add_link(c, work[0]);
    l->first = first, l->second = second, l->function = function;
    l->places[0] = at_first, l->places[1] = at_second;
    c->held = i->to;
    return 1;
}

/* Whether a register is read from memory by an instruction of a program with chains. */
static int is_read(const Program *p, const Instruction *i, int r) {
    if (i->way != CHAIN) return reads(i, r);
    for (const Link *l = p->links + i->a; l < p->links + i->a + i->b; l++)
        if ((l->first == r && l->places[0] != HELD) || (l->second == r && l->places[1] != HELD)) return 1;
    return 0;
}

void make_chains(Program *p) {
    if (!has_avx512()) return;
    p->links = malloc((size_t)p->count * 2 * sizeof(Link)); /* of each instruction one, and the ends */
    if (p->links == NULL) return;
    int kept = 0, used = 0;
    for (int k = 0; k < p->count;) {
        Chain c = {.p = p, .links = p->links + used, .held = -1, .awaited = -1};
        int taken = 0;
        while (k + taken < p->count && add_instruction(&c, k + taken)) taken++;
        if (taken < 2) {
            p->code[kept++] = p->code[k++];
            continue;
        }
        k += taken;
        keep(&c, k);
        add_link(&c, ending);
        p->code[kept++] = (Instruction){.way = CHAIN, .a = used, .b = c.count};
        used += c.count;
    }
    p->count = kept;
    /* An output that only its chain used again need not stay in the caches. */
    for (int r = p->inputs; r < p->inputs + p->outputs; r++) {
        p->is_read[r] = 0;
        for (int k = 0; k < kept; k++) p->is_read[r] |= is_read(p, &p->code[k], r);
    }
}

AVX512 void run_chain(const Program *p, const Instruction *i, Tile *tile, int64_t m, int64_t bytes) {
    const __m512 z = _mm512_setzero_ps();
    const Link *l = p->links + i->a;
    const int64_t share = bytes * BLOCK / m + 1, rest = m % BLOCK;
    int64_t start = 0;
    for (; start + BLOCK <= m; start += BLOCK) {
        if (tile->ahead.count) ask(&tile->ahead, tile->ahead.wanted + share);
        l->work[WHOLE](l, tile, start * (int64_t)sizeof(float), z, z, z, z, z, z, z, z);
    }
    if (!rest) return;
    for (int j = 0; j < 8; j++) {
        const int64_t left = rest - 16 * j;
        tile->left[j] = left >= 16 ? 0xffff : left > 0 ? (uint16_t)((1u << left) - 1) : 0;
    }
    l->work[PART](l, tile, start * (int64_t)sizeof(float), z, z, z, z, z, z, z, z);
}

void drop_chains(Program *p) { free(p->links); }

#else
int find_function(const char *name) {
    (void)name;
    return 0;
}
void make_chains(Program *p) { (void)p; }
void run_chain(const Program *p, const Instruction *i, Tile *tile, int64_t m, int64_t bytes) {
    (void)p, (void)i, (void)tile, (void)m, (void)bytes;
}
void drop_chains(Program *p) { (void)p; }
#endif
