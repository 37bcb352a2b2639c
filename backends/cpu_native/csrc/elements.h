/* What functions of elements are made of: loops over one or two arrays with numbers u, v, w, and the
   kernels that run them.

   Floats of 16 bits are computed in float and rounded once. */
#ifndef FLAMBEAU_ELEMENTS_H
#define FLAMBEAU_ELEMENTS_H

#include "avx512.h"
#include "halves.h"
#include "program.h"

#define PIECE 1024 /* elements computed at a time: operand and result stay in the level-1 cache */

/* An operand of `period` elements repeats; one of period 0 is as long as the result. */
typedef struct {
    const char *memory;
    int64_t period, size;
    int is_number; /* that stands for all: a run of it, or what the loop takes for one */
} Operand;

/* Runs a loop over the k->n[0] elements, of `size` bytes, of the first array; numbers become runs, so that
   a loop has two arrays always.  Of 16 bits, `widen` and `narrow` convert; else they are NULL. */
void run_loop(const Args *k, Loop loop, int64_t size, Operand a, Operand b, Convert widen, Convert narrow);

static inline void pointwise(const Args *k, Loop loop, int64_t size, Operand a, Operand b) {
    run_loop(k, loop, size, a, b, NULL, NULL);
}

/* A loop over float32 for operands of 16 bits: of one, of two, or of two that may repeat. */
typedef enum { ONE_OPERAND, TWO_OPERANDS, REPEATING } Operands;

static inline void run_halves(const Args *k, Loop loop, Operands how, int is_bfloat) {
    const int repeats = how == REPEATING;
    const Operand none = {0}, a = {k->p[1], repeats ? k->n[1] : 0, sizeof(uint16_t), 0};
    const Operand b = how == ONE_OPERAND ? none : (Operand){k->p[2], repeats ? k->n[2] : 0, sizeof(uint16_t), 0};
    run_loop(k, loop, sizeof(uint16_t), a, b, widening(is_bfloat), narrowing(is_bfloat));
}
#define HALVES(name, loop, how)                                                    \
    static void name##_f16(const Args *k) { run_halves(k, loop, how, 0); }         \
    static void name##_bf16(const Args *k) { run_halves(k, loop, how, 1); }

#define SQRT(x) _Generic(x, float: sqrtf, double: sqrt)(x)
#define ABS(x) _Generic(x, float: fabsf, double: fabs)(x)
#define FLOOR(x) _Generic(x, float: floorf, double: floor)(x)
#define CEIL(x) _Generic(x, float: ceilf, double: ceil)(x)
#define TRUNC(x) _Generic(x, float: truncf, double: trunc)(x)
#define ROUND(x) _Generic(x, float: rintf, double: rint)(x)

INLINE float from_f32(float x) { return x; }
INLINE double from_f64(double x) { return x; }
INLINE float to_f32(float x) { return x; }
INLINE double to_f64(double x) { return x; }

/* C is the type of the computation, T and OUT are those of memory, S and OUT_S their suffixes. */
#define UNARY_LOOP(name, C, T, S, OUT, OUT_S, formula)                                            \
    WIDE static void name##_loop_##S(void *to, const void *from, const void *other, int64_t n,    \
                                     const double *numbers, int streams) {                        \
        const T *a = from; /* which may be `to` */                                                \
        OUT *out = to;                                                                            \
        const C u = (C)numbers[0], v = (C)numbers[1], w = (C)numbers[2];                          \
        (void)other, (void)streams, (void)u, (void)v, (void)w;                                    \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) {                                     \
            const C x = from_##S(a[i]);                                                           \
            out[i] = to_##OUT_S(formula);                                                         \
        }                                                                                         \
    }
#define BINARY_LOOP(name, C, T, S, formula)                                                       \
    WIDE static void name##_loop_##S(void *to, const void *first, const void *second, int64_t n,  \
                                     const double *numbers, int streams) {                        \
        const T *restrict a = first, *restrict b = second;                                        \
        T *restrict out = to;                                                                     \
        const C u = (C)numbers[0], v = (C)numbers[1], w = (C)numbers[2];                          \
        (void)streams, (void)u, (void)v, (void)w;                                                 \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) {                                     \
            const C g = from_##S(a[i]), x = from_##S(b[i]);                                       \
            out[i] = to_##S(formula);                                                             \
        }                                                                                         \
    }

#define UNARY_KERNEL(name, T, S, OUT, loop)                                                       \
    static void name##_##S(const Args *k) {                                                       \
        pointwise(k, loop, sizeof(OUT), (Operand){k->p[1], 0, sizeof(T)}, (Operand){0});          \
    }
#define BINARY_KERNEL(name, T, S, loop)                                                           \
    static void name##_##S(const Args *k) {                                                       \
        pointwise(k, loop, sizeof(T), (Operand){k->p[1], 0, sizeof(T)},                           \
                  (Operand){k->p[2], 0, sizeof(T)});                                              \
    }

#define UNARY(name, C, T, S, formula)          \
    UNARY_LOOP(name, C, T, S, T, S, formula)   \
    UNARY_KERNEL(name, T, S, T, name##_loop_##S)
#define BINARY(name, C, T, S, formula)   \
    BINARY_LOOP(name, C, T, S, formula)  \
    BINARY_KERNEL(name, T, S, name##_loop_##S)

/* A function whose formula reads the same in both precisions; `vectors` is the formula for AVX-512. */
#define UNARY_BOTH(name, formula, vectors)                         \
    UNARY_LOOP(name, float, float, f32, float, f32, formula)       \
    VECTOR_LOOP(name, 0, vectors, )                                \
    UNARY_KERNEL(name, float, f32, float, FASTEST(name))           \
    HALVES(name, FASTEST(name), ONE_OPERAND)                       \
    UNARY(name, double, double, f64, formula)
#define BINARY_ALL(name, formula, vectors)           \
    BINARY_LOOP(name, float, float, f32, formula)    \
    VECTOR_LOOP(name, 1, vectors, )                  \
    BINARY_KERNEL(name, float, f32, FASTEST(name))   \
    HALVES(name, FASTEST(name), TWO_OPERANDS)        \
    BINARY(name, double, double, f64, formula)

/* Operands that repeat: of a number, `second` or `first` is the loop, or NULL if `loop` is given a run of it. */
static inline void repeating(const Args *k, int64_t size, Loop loop, Loop first, Loop second) {
    Operand a = {k->p[1], k->n[1], size, 0}, b = {k->p[2], k->n[2], size, 0};
    if (second != NULL && b.period == 1) {
        loop = second;
        b = (Operand){k->p[2], 0, size, 1};
    } else if (first != NULL && a.period == 1) {
        loop = first;
        a = (Operand){k->p[1], 0, size, 1};
    }
    pointwise(k, loop, size, a, b);
}
#define ARITHMETIC(name, formula, vectors)                                                                     \
    VECTOR_LOOP(name, 1, vectors, )                                                                            \
    NUMBER_LOOPS(name, vectors)                                                                                \
    BINARY_LOOP(name, float, float, f32, formula)                                                              \
    BINARY_LOOP(name, double, double, f64, formula)                                                            \
    HALVES(name, FASTEST(name), REPEATING)                                                                     \
    static void name##_f32(const Args *k) {                                                                    \
        repeating(k, sizeof(float), FASTEST(name), NUMBER_FIRST(name), NUMBER_SECOND(name));                   \
    }                                                                                                          \
    static void name##_f64(const Args *k) { repeating(k, sizeof(double), name##_loop_f64, NULL, NULL); }

/* A loop over vectors of AVX-512 goes by the same function as the portable one. */
#if HAS_AVX512
/* The processor foresees the reading of a page only when it has begun; so much is asked for before. */
#define AHEAD 512
#define PREFETCH(a) _mm_prefetch((const char *)((a) + i + AHEAD), _MM_HINT_T0)
#define EACH_OF(a) _mm512_loadu_ps((a) + i)
#define REST_OF(a) _mm512_maskz_loadu_ps(rest, (a) + i)
#define VECTOR_LOOP_OF(function, is_binary, first, second, rest_first, rest_second, expression, after)\
    AVX512 static void function(void *to, const void *from, const void *other, int64_t n,         \
                                const double *numbers, int streams) {                             \
        const float *a = from, *b = is_binary ? other : from;                                     \
        float *out = to;                                                                          \
        int64_t i = 0;                                                                            \
        const __m512 u = _mm512_set1_ps((float)numbers[0]), v = _mm512_set1_ps((float)numbers[1]);\
        const __m512 w = _mm512_set1_ps((float)numbers[2]);                                       \
        const __m512 one_a = _mm512_set1_ps(a[0]), one_b = _mm512_set1_ps(b[0]);                  \
        (void)u, (void)v, (void)w, (void)one_a, (void)one_b;                                      \
        if (streams && ((uintptr_t)out & 63) == 0) {                                              \
            for (; i + 16 <= n; i += 16) {                                                        \
                const __m512 g = first, x = second;                                               \
                (void)g;                                                                          \
                PREFETCH(b);                                                                      \
                if (is_binary) PREFETCH(a);                                                       \
                _mm512_stream_ps(out + i, expression);                                            \
            }                                                                                     \
        } else {                                                                                  \
            for (; i + 16 <= n; i += 16) {                                                        \
                const __m512 g = first, x = second;                                               \
                (void)g;                                                                          \
                _mm512_storeu_ps(out + i, expression);                                            \
            }                                                                                     \
        }                                                                                         \
        if (i < n) {                                                                              \
            const __mmask16 rest = (__mmask16)((1u << (n - i)) - 1);                              \
            const __m512 g = rest_first, x = rest_second;                                         \
            (void)g;                                                                              \
            _mm512_mask_storeu_ps(out + i, rest, expression);                                     \
        }                                                                                         \
        after;                                                                                    \
    }
#define VECTOR_LOOP(name, is_binary, expression, after)                                           \
    VECTOR_LOOP_OF(name##_loop_v, is_binary, EACH_OF(a), EACH_OF(b), REST_OF(a), REST_OF(b),      \
                   expression, after)
/* One operand is a number: the first element of its array stands for all. */
#define NUMBER_LOOPS(name, expression)                                                                  \
    VECTOR_LOOP_OF(name##_number_v, 1, EACH_OF(a), one_b, REST_OF(a), one_b, expression, )              \
    VECTOR_LOOP_OF(number_##name##_v, 1, one_a, EACH_OF(b), one_a, REST_OF(b), expression, )
#define FASTEST(name) (has_avx512() ? name##_loop_v : name##_loop_f32)
#define NUMBER_FIRST(name) (has_avx512() ? number_##name##_v : NULL)
#define NUMBER_SECOND(name) (has_avx512() ? name##_number_v : NULL)
#else
#define VECTOR_LOOP(name, is_binary, expression, after)
#define NUMBER_LOOPS(name, expression)
#define FASTEST(name) name##_loop_f32
#define NUMBER_FIRST(name) NULL
#define NUMBER_SECOND(name) NULL
#endif

#endif
