/* Functions of elements that are written where their first argument is.

   Their loops read `o`, the element that is there, `g` and `x`, those of one or two arrays beside it, and
   the numbers u, v, w.  Each is the formula of core, rounded where that rounds, so that what is written in
   place has the bits of what is not. */
#include "elements.h"

#define WRITE_LOOP(name, T, S, formula)                                                           \
    WIDE static void write_##name##_loop_##S(void *to, const void *first, const void *second,     \
                                             int64_t n, const double *numbers, int streams) {     \
        T *out = to; /* which a and b may be */                                                   \
        const T *a = first, *b = second;                                                          \
        const T u = (T)numbers[0], v = (T)numbers[1], w = (T)numbers[2];                          \
        (void)streams, (void)u, (void)v, (void)w;                                                 \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) {                                     \
            const T o = out[i], g = a[i], x = b[i];                                               \
            (void)g, (void)x;                                                                     \
            out[i] = (T)(formula);                                                                \
        }                                                                                         \
    }

/* Of how many arrays a function is, and how its row reads. */
#define ITSELF(T) ((Operand){k->p[0], 0, sizeof(T), 0})
#define OTHER(T, i) ((Operand){k->p[i], k->n[i], sizeof(T), 0})
#define FIRST_1(T) ITSELF(T)
#define SECOND_1(T) ITSELF(T)
#define FIRST_2(T) OTHER(T, 1)
#define SECOND_2(T) ITSELF(T)
#define FIRST_3(T) OTHER(T, 1)
#define SECOND_3(T) OTHER(T, 2)
#define WRITE(name, arrays, T, S, formula)                                                        \
    WRITE_LOOP(name, T, S, formula)                                                               \
    static void write_##name##_##S(const Args *k) {                                               \
        pointwise(k, write_##name##_loop_##S, sizeof(T), FIRST_##arrays(T), SECOND_##arrays(T));  \
    }
#define WRITE_BOTH(name, arrays, formula)        \
    WRITE(name, arrays, float, f32, formula)     \
    WRITE(name, arrays, double, f64, formula)

/* The next number after o in the direction of g: numbers of one sign are ordered as their bits are. */
#define NEXT(T, BITS, to_bits, from_bits, S)                                                      \
    INLINE T next_##S(T o, T g) {                                                                 \
        const BITS bits = to_bits(o) + ((g > o) == (o > 0) ? 1 : -1);                             \
        const T least = from_bits(1), stepped = o == 0 ? (g > 0 ? least : -least) : from_bits(bits); \
        return o == g ? g : (o != o || g != g ? (T)NAN : stepped);                                \
    }
NEXT(float, int32_t, float_to_bits, bits_to_float, f)
NEXT(double, int64_t, double_to_bits, bits_to_double, d)

/* The length of (o, g), of which the longer side is scaled to 1. */
#define LENGTH(T, S)                                                                              \
    INLINE T length_##S(T o, T g) {                                                               \
        const T x = ABS(o), y = ABS(g), longer = x >= y || x != x ? x : y;                        \
        const T scale = longer == 0 || longer == (T)INFINITY ? 1 : longer, a = o / scale, b = g / scale; \
        const T length = scale * SQRT(a * a + b * b);                                             \
        return x == (T)INFINITY || y == (T)INFINITY ? (T)INFINITY : length;                       \
    }
LENGTH(float, f)
LENGTH(double, d)

#define FUSED(a, b, c) _Generic(a, float: fmaf, double: fma)(a, b, c)

WRITE_BOTH(frac, 1, o - TRUNC(o))
WRITE_BOTH(nan_to_num, 1, o != o ? u : (o == INFINITY ? v : (o == -INFINITY ? w : o)))
WRITE_BOTH(threshold, 1, o <= u ? v : o)
WRITE_BOTH(logical_not, 1, o == 0)
WRITE(nextafter, 2, float, f32, next_f(o, g))
WRITE(nextafter, 2, double, f64, next_d(o, g))
WRITE(copysign, 2, float, f32, copysignf(o, g))
WRITE(copysign, 2, double, f64, copysign(o, g))
WRITE(hypot, 2, float, f32, length_f(o, g))
WRITE(hypot, 2, double, f64, length_d(o, g))
WRITE_BOTH(eq, 2, o == g)
WRITE_BOTH(ne, 2, o != g)
WRITE_BOTH(lt, 2, o < g)
WRITE_BOTH(le, 2, o <= g)
WRITE_BOTH(gt, 2, o > g)
WRITE_BOTH(ge, 2, o >= g)
/* A bound that is NaN takes the place of an element. */
WRITE_BOTH(clamp_min, 2, o < g || g != g ? g : o)
WRITE_BOTH(clamp_max, 2, o > g || g != g ? g : o)
/* From the nearer end, which is o where v is not 0. */
WRITE_BOTH(lerp, 2, v != 0 ? FUSED(g - o, u, o) : FUSED(g - o, u - 1, g))
WRITE_BOTH(addcmul, 3, FUSED(g * u, x, o))
WRITE_BOTH(addcdiv, 3, o + g * u / x)

#define ROWS(name, arguments, extents)                                     \
    {"write_" #name "_f32", arguments, extents, write_##name##_f32},       \
    {"write_" #name "_f64", arguments, extents, write_##name##_f64}
#define OF_ONE(name) ROWS(name, "wifff", "t0")
#define OF_TWO(name) ROWS(name, "wriifff", "t0,t0|1")
#define OF_THREE(name) ROWS(name, "wrriiifff", "t0,t0|1,t0|2")

const Row writing_rows[] = {
    OF_ONE(frac), OF_ONE(nan_to_num), OF_ONE(threshold), OF_ONE(logical_not),
    OF_TWO(nextafter), OF_TWO(copysign), OF_TWO(hypot), OF_TWO(lerp),
    OF_TWO(eq), OF_TWO(ne), OF_TWO(lt), OF_TWO(le), OF_TWO(gt), OF_TWO(ge),
    OF_TWO(clamp_min), OF_TWO(clamp_max),
    OF_THREE(addcmul), OF_THREE(addcdiv),
    {NULL, NULL, NULL, NULL},
};
