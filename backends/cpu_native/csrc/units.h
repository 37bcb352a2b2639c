/* Uniforms of 53 bits from NumPy's MT19937, and waiting times of them. */
#ifndef FLAMBEAU_UNITS_H
#define FLAMBEAU_UNITS_H

#include "native.h"
#include "twister.h"

/* As many at a time stay in the level-1 cache between drawing and use. */
#define UNITS 1024

INLINE Twister *state_of(const Args *k) { return (Twister *)(intptr_t)k->n[0]; }

/* The first word of each pair is the upper half; 53 bits are used. */
INLINE uint64_t pair(const uint32_t *w, int64_t i) {
    return (((uint64_t)w[2 * i] << 32) | w[2 * i + 1]) & 0x1FFFFFFFFFFFFFull;
}

WIDE static inline void to_units(double *out, const uint32_t *w, int64_t n) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) out[i] = (double)(int64_t)pair(w, i) * 0x1p-53;
}

static inline void units(Twister *t, double *out, int64_t n) {
    uint32_t w[2 * UNITS];
    draw(t, w, 2 * n);
    to_units(out, w, n);
}

/* Waiting times -log(1 - u) to some ten digits: 1 - u is exact, and so is the difference to 1 of its
   mantissa; then the series of artanh.  The caller looks again, by libm, where digits decide. */
WIDE static inline void to_waits(double *wait, const double *u, int64_t n) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        double v = 1 - u[i];
        uint64_t bits;
        memcpy(&bits, &v, sizeof bits);
        int64_t e = (int64_t)((bits - 0x3FE6A09E667F3BCDull + (64ull << 52)) >> 52) - 64;
        bits -= (uint64_t)e << 52;
        double m;
        memcpy(&m, &bits, sizeof m);
        double f = m - 1, s = f / (2 + f), z = s * s;
        double series = 1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11 + z * (1.0 / 13)));
        series = 1 + z * (1.0 / 3 + z * (1.0 / 5 + z * series));
        wait[i] = -((double)e * 0.6931471805599453) - 2 * s * series;
    }
}

#endif
