/* Divisors and multiples of integers. */
#include "native.h"

typedef struct {
    void *out;
    const void *a, *b;
} Pair;

/* The number of zeros below the lowest one of a number that is not 0. */
INLINE int zeros_below(uint64_t a) {
#if defined(__GNUC__)
    return __builtin_ctzll(a);
#else
    int count = 0;
    while (!(a & 1)) a >>= 1, count++;
    return count;
#endif
}

/* Source: Stein, Computational problems associated with Racah algebra, 1967. */
INLINE uint64_t divisor(uint64_t a, uint64_t b) {
    if (!a || !b) return a | b;
    const int shift = zeros_below(a | b);
    a >>= zeros_below(a);
    do {
        b >>= zeros_below(b);
        const uint64_t least = a < b ? a : b;
        b = a < b ? b - a : a - b;
        a = least;
    } while (b);
    return a << shift;
}

/* The least number of a type has no size in it.  Euclid's algorithm then gives a divisor that may be negative;
   PyTorch's answer is that one. */
#define INTEGERS(T, UNSIGNED, LEAST, S)                                                       \
    INLINE UNSIGNED size_##S(T x) { return x < 0 ? 0 - (UNSIGNED)x : (UNSIGNED)x; }           \
    INLINE T gcd_of_##S(T a, T b) {                                                           \
        UNSIGNED x = size_##S(a), y = size_##S(b);                                            \
        if (a != LEAST && b != LEAST) return (T)divisor(x, y);                                \
        for (a = (T)x, b = (T)y; a != 0;) {                                                   \
            const T rest = a == -1 ? 0 : b % a;                                               \
            b = a;                                                                            \
            a = rest;                                                                         \
        }                                                                                     \
        return b;                                                                             \
    }                                                                                         \
    INLINE T lcm_of_##S(T a, T b) {                                                           \
        const UNSIGNED x = size_##S(a), y = size_##S(b), common = (UNSIGNED)divisor(x, y);    \
        return common ? (T)size_##S((T)(x / common * y)) : 0;                                 \
    }                                                                                         \
    INTEGER_KERNEL(gcd, T, S)                                                                 \
    INTEGER_KERNEL(lcm, T, S)
#define INTEGER_KERNEL(name, T, S)                                                            \
    static void name##_step_##S(const void *context, int64_t begin, int64_t end) {            \
        const Pair *c = context;                                                              \
        const T *a = c->a, *b = c->b;                                                         \
        T *out = c->out;                                                                      \
        for (int64_t i = begin; i < end; i++) out[i] = name##_of_##S(a[i], b[i]);             \
    }                                                                                         \
    static void name##_##S(const Args *k) {                                                   \
        const Pair c = {k->p[0], k->p[1], k->p[2]};                                           \
        split(name##_step_##S, &c, k->n[0], team(k, times(k->n[0], 8)));                      \
    }
INTEGERS(int32_t, uint32_t, INT32_MIN, i32)
INTEGERS(int64_t, uint64_t, INT64_MIN, i64)

#define TWO_EACH "t0,t0,t0"
const Row integers_rows[] = {
    {"gcd_i32", "wrri", TWO_EACH, gcd_i32}, {"gcd_i64", "wrri", TWO_EACH, gcd_i64},
    {"lcm_i32", "wrri", TWO_EACH, lcm_i32}, {"lcm_i64", "wrri", TWO_EACH, lcm_i64},
    {NULL, NULL, NULL, NULL},
};
