/* NumPy's MT19937: its words, a block at a time, from the memory where NumPy keeps its state. */
#ifndef FLAMBEAU_TWISTER_H
#define FLAMBEAU_TWISTER_H

#include "native.h"

/* NumPy's structure: the words, and how many of them are drawn. */
#define WORDS 624
#define SHIFT 397
typedef struct {
    uint32_t key[WORDS];
    int position;
} Twister;

INLINE uint32_t twisted(uint32_t upper, uint32_t lower, uint32_t other) {
    uint32_t y = (upper & 0x80000000u) | (lower & 0x7FFFFFFFu);
    return other ^ (y >> 1) ^ ((0u - (y & 1)) & 0x9908B0DFu);
}

WIDE static inline void refill(Twister *t) {
    uint32_t *k = t->key;
#pragma omp simd
    for (int i = 0; i < WORDS - SHIFT; i++) k[i] = twisted(k[i], k[i + 1], k[i + SHIFT]);
#pragma omp simd safelen(64)
    for (int i = WORDS - SHIFT; i < WORDS - 1; i++)
        k[i] = twisted(k[i], k[i + 1], k[i + SHIFT - WORDS]);
    k[WORDS - 1] = twisted(k[WORDS - 1], k[0], k[SHIFT - 1]);
    t->position = 0;
}

WIDE static inline void temper(uint32_t *out, const uint32_t *key, int64_t n) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        uint32_t y = key[i];
        y ^= y >> 11;
        y ^= (y << 7) & 0x9D2C5680u;
        y ^= (y << 15) & 0xEFC60000u;
        out[i] = y ^ (y >> 18);
    }
}

static inline void draw(Twister *t, uint32_t *out, int64_t n) {
    while (n > 0) {
        if (t->position >= WORDS) refill(t);
        int64_t some = WORDS - t->position;
        if (some > n) some = n;
        temper(out, t->key + t->position, some);
        t->position += (int)some;
        out += some;
        n -= some;
    }
}

#endif
