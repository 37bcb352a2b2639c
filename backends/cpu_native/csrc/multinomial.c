/* Indices drawn with given weights: the stream of flambeau/ops/randomness/random.py, bit for bit. */
#include <float.h>

#include "native.h"
#include "units.h"

#define BLOCK UNITS

/* How many of the increasing bounds are below each number; the last bound counts as 1, which no
   number reaches.  All numbers take each step together. */
WIDE static void search(int64_t *out, const double *u, int64_t n, const double *bounds, int64_t columns) {
    for (int64_t i = 0; i < n; i++) out[i] = 0;
    for (int64_t left = columns; left > 1;) {
        int64_t half = left / 2;
        const double *middle = bounds + half - 1;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) out[i] += middle[out[i]] < u[i] ? half : 0;
        left -= half;
    }
}

#define MULTINOMIAL(T, S, SMALL, LARGE)                                                             \
    /* Whether weights are finite and not negative, and each row has a positive one. */             \
    WIDE static int fit_##S(const T *p, int64_t rows, int64_t columns) {                                 \
        for (int64_t i = 0; i < rows; i++, p += columns) {                                          \
            int wrong = 0, positive = 0;                                                            \
            for (int64_t j = 0; j < columns; j++) {                                                 \
                wrong |= !(p[j] >= 0 && p[j] <= LARGE);                                             \
                positive |= p[j] > 0;                                                               \
            }                                                                                       \
            if (wrong || !positive) return 0;                                                       \
        }                                                                                           \
        return 1;                                                                                   \
    }                                                                                               \
                                                                                                    \
    WIDE static void scores_##S(double *score, const T *p, int64_t n) {                             \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) score[i] = p[i] / score[i];             \
    }                                                                                               \
                                                                                                    \
    WIDE static void shares_##S(double *bounds, T total, int64_t n) {                               \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) bounds[i] = (T)bounds[i] / total;       \
    }                                                                                               \
                                                                                                    \
    /* The index of the largest p/wait in each row.  Rounded quotients decide: those that are not    \
       clearly less than another one are computed again. */                                         \
    static void race_##S(const Args *k, int64_t rows, int64_t columns) {                            \
        double u[BLOCK], score[BLOCK];                                                              \
        const T *p = k->p[2];                                                                       \
        int64_t *out = k->p[0], total = rows * columns, column = 0, best = 0;                       \
        T most = -1;                                                                                \
        for (int64_t start = 0; start < total; start += BLOCK) {                                    \
            int64_t n = total - start < BLOCK ? total - start : BLOCK;                              \
            units(state_of(k), u, n);                                                               \
            to_waits(score, u, n);                                                                  \
            scores_##S(score, p + start, n);                                                        \
            for (int64_t i = 0; i < n;) {                                                           \
                int64_t some = columns - column < n - i ? columns - column : n - i;                 \
                double top = most;                                                                  \
                for (int64_t j = i; j < i + some; j++) top = score[j] > top ? score[j] : top;       \
                double least = top > SMALL && top < LARGE / 4 ? top * (1 - 1e-6) : 0;               \
                for (int64_t j = i; j < i + some; j++) {                                            \
                    if (!(score[j] >= least)) continue;                                             \
                    T wait = (T)-log1p(-u[j]);                                                      \
                    T exact = p[start + j] / wait;                                                  \
                    if (exact > most) most = exact, best = column + j - i;                          \
                }                                                                                   \
                i += some, column += some;                                                          \
                if (column == columns) {                                                            \
                    *out++ = best;                                                                  \
                    column = best = 0;                                                              \
                    most = -1;                                                                      \
                }                                                                                   \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
                                                                                                    \
    /* Uniforms searched in the cumulative sum of the row over its total. */                        \
    static void searched_##S(const Args *k, int64_t rows, int64_t columns, int64_t samples) {       \
        double u[BLOCK], *bounds = k->p[3];                                                         \
        const T *p = k->p[2];                                                                       \
        int64_t *out = k->p[0], left = rows * samples, made = 0, taken = 0;                         \
        for (int64_t row = 0; row < rows; row++, p += columns) {                                    \
            T sum = 0;                                                                              \
            for (int64_t j = 0; j < columns; j++) bounds[j] = sum += p[j];                          \
            shares_##S(bounds, sum, columns);                                                       \
            for (int64_t need = samples; need > 0;) {                                               \
                if (taken == made) {                                                                \
                    made = left < BLOCK ? left : BLOCK;                                             \
                    taken = 0;                                                                      \
                    left -= made;                                                                   \
                    units(state_of(k), u, made);                                                    \
                }                                                                                   \
                int64_t n = need < made - taken ? need : made - taken;                              \
                search(out, u + taken, n, bounds, columns);                                         \
                taken += n, need -= n, out += n;                                                    \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
                                                                                                    \
    static void multinomial_##S(const Args *k) {                                                    \
        int64_t rows = k->n[1], columns = k->n[2], samples = k->n[3];                               \
        uint8_t *refused = k->p[1];                                                                 \
        *refused = !fit_##S(k->p[2], rows, columns);                                                \
        if (*refused) return;                                                                       \
        if (samples == 1)                                                                           \
            race_##S(k, rows, columns);                                                             \
        else                                                                                        \
            searched_##S(k, rows, columns, samples);                                                \
    }
MULTINOMIAL(float, f32, 1e-30, FLT_MAX)
MULTINOMIAL(double, f64, 1e-290, DBL_MAX)

const Row multinomial_rows[] = {
    {"multinomial_f32", "wawrwiii", "d13,b,t12,d2", multinomial_f32},
    {"multinomial_f64", "wawrwiii", "d13,b,t12,d2", multinomial_f64},
    {NULL, NULL, NULL, NULL},
};
