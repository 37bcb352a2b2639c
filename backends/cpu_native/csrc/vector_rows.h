/* Rows of float32 by vectors of AVX-512, of which the last may be a part.

   Rows of up to FEW vectors stay in registers.  A step is written once, for `few` vectors or, where that is 0, for
   any number of them, which are read again from memory. */
#ifndef FLAMBEAU_VECTOR_ROWS_H
#define FLAMBEAU_VECTOR_ROWS_H

#include "avx512.h"
#include "native.h"

#if HAS_AVX512
#define FEW 4

/* What steps know of rows of n > 0 elements. */
#define VECTORS_OF(n)                                                                                \
    const int64_t vectors = few ? few : ((n) + 15) / 16;                                             \
    const __mmask16 rest = (__mmask16)(0xFFFF >> (-(n) & 15))

/* For each vector k of a row, of which `lanes` are elements; `turn` is known when this is compiled. */
#define OVER_ROW(...)                                                                                \
    do {                                                                                             \
        int64_t at_ = 0;                                                                             \
        for (; at_ + 4 < vectors; at_ += 4) {                                                        \
            _Pragma("GCC unroll 4") for (int turn = 0; turn < 4; turn++) {                           \
                const int64_t k = at_ + turn;                                                        \
                const __mmask16 lanes = 0xFFFF;                                                      \
                __VA_ARGS__                                                                          \
            }                                                                                        \
        }                                                                                            \
        _Pragma("GCC unroll 4") for (; at_ < vectors - 1; at_++) {                                   \
            const int64_t k = at_;                                                                   \
            const __mmask16 lanes = 0xFFFF;                                                          \
            const int turn = 0;                                                                      \
            (void)turn;                                                                              \
            __VA_ARGS__                                                                              \
        }                                                                                            \
        const int64_t k = vectors - 1;                                                               \
        const __mmask16 lanes = rest;                                                                \
        const int turn = 1;                                                                          \
        (void)turn;                                                                                  \
        __VA_ARGS__                                                                                  \
    } while (0)

#define ROW_LOAD(from) _mm512_maskz_loadu_ps(lanes, (from) + 16 * k)
#define ROW_STORE(to, found) _mm512_mask_storeu_ps((to) + 16 * k, lanes, found)
/* The vector in registers, or what it was computed from. */
#define HELD(registers, ...) (few ? registers[few ? k : 0] : (__m512)(__VA_ARGS__))
#define HOLD(registers, found)                                                                       \
    do {                                                                                             \
        if (few) registers[few ? k : 0] = found;                                                     \
    } while (0)

/* The step of so many vectors. */
#define BY_VECTORS(n, step, ...)                                                                     \
    do {                                                                                             \
        switch (((n) + 15) / 16) {                                                                   \
            case 1: step(__VA_ARGS__, 1); break;                                                     \
            case 2: step(__VA_ARGS__, 2); break;                                                     \
            case 3: step(__VA_ARGS__, 3); break;                                                     \
            case 4: step(__VA_ARGS__, 4); break;                                                     \
            default: step(__VA_ARGS__, 0);                                                           \
        }                                                                                            \
    } while (0)
#endif

#endif
