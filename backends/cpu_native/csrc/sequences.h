/* What walks through the states of a sequence, whatever the type of its log-probabilities. */
#ifndef FLAMBEAU_SEQUENCES_H
#define FLAMBEAU_SEQUENCES_H

#include "vector_math.h"

/* The logarithm of the sum of three exponentials. */
INLINE double log_sum(double a, double b, double c) {
    const double high = a > b ? a : b, low = a > b ? b : a;
    const double most = high > c ? high : c, middle = high > c ? c : high;
    const double shift = most == -INFINITY ? 0 : most;
    return log_d(1 + exp_d(low - shift) + exp_d(middle - shift)) + most;
}

/* States are taken in whole vectors: those behind the last are never reached. */
#define VECTOR 8
#define WHOLE(states) (((states) + VECTOR - 1) / VECTOR * VECTOR)

/* α of the next step: `before` has two states that are never reached before its first, and so has `to`. */
WIDE static void step_forward(double *restrict to, const double *restrict before, const double *restrict skips,
                              const double *restrict emitted, int64_t states) {
#pragma omp simd
    for (int64_t s = 0; s < states; s++)
        to[s + 2] = log_sum(before[s + 2], before[s + 1], before[s] + skips[s]) + emitted[s];
}

/* β of the step before: `after`, `to` and `skips` have two states more behind the last. */
WIDE static void step_back(double *restrict to, const double *restrict after, const double *restrict skips,
                           const double *restrict emitted, int64_t states) {
#pragma omp simd
    for (int64_t s = 0; s < states; s++)
        to[s] = log_sum(after[s], after[s + 1], after[s + 2] + skips[s + 2]) + emitted[s];
}

/* The probability that a path with the labels is in a state. */
WIDE static void shares(double *restrict to, const double *restrict alpha, const double *restrict beta,
                        const double *restrict emitted, double loss, int64_t states) {
#pragma omp simd
    for (int64_t s = 0; s < states; s++) to[s] = exp_d(alpha[s + 2] + beta[s] - emitted[s] + loss);
}

#endif
