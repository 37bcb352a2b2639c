/* Optimiser steps.  The order of operations, hence the rounding, is that of the NumPy kernels, with
   fused multiply-add where those have BLAS do it. */

typedef struct {
    T *p, *m, *v;
    const T *g;
    T momentum, damped, decay, rate, shrink, first, second, second_rest, correction, eps;
    int nesterov, maximize, decoupled;
} NAME(Step);

WIDE static void NAME(sgd_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Step) *c = context;
    T *restrict p = c->p, *restrict m = c->m;
    const T *restrict g = c->g;
    const T momentum = c->momentum, damped = c->damped, decay = c->decay, rate = c->rate;
    const T sign = c->maximize ? -1 : 1;
    const int nesterov = c->nesterov;
    if (m == NULL) {
#pragma omp simd
        for (int64_t i = begin; i < end; i++) {
            T d = sign * g[i];
            d = decay != 0 ? p[i] * decay + d : d;
            p[i] = FMA(d, rate, p[i]);
        }
        return;
    }
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        T d = sign * g[i];
        d = decay != 0 ? p[i] * decay + d : d;
        m[i] = FMA(d, damped, m[i] * momentum);
        d = nesterov ? d + m[i] * momentum : m[i];
        p[i] = FMA(d, rate, p[i]);
    }
}

static void NAME(sgd)(const Args *k) {
    NAME(Step) c = {.p = k->p[0], .g = k->p[1], .decay = (T)k->x[0], .rate = (T)k->x[1],
                    .maximize = (int)k->n[1]};
    split(NAME(sgd_step), &c, k->n[0], team(k, k->n[0]));
}

static void NAME(sgd_momentum)(const Args *k) {
    NAME(Step) c = {.p = k->p[0], .g = k->p[1], .m = k->p[2], .decay = (T)k->x[0],
                    .rate = (T)k->x[1], .momentum = (T)k->x[2], .damped = (T)k->x[3],
                    .maximize = (int)k->n[1], .nesterov = (int)k->n[2]};
    split(NAME(sgd_step), &c, k->n[0], team(k, k->n[0]));
}

WIDE static void NAME(adam_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Step) *c = context;
    T *restrict p = c->p, *restrict m = c->m, *restrict v = c->v;
    const T *restrict g = c->g;
    const T decay = c->decay, shrink = c->shrink, first = c->first, second = c->second;
    const T second_rest = c->second_rest, correction = c->correction, eps = c->eps, rate = c->rate;
    const T sign = c->maximize ? -1 : 1;
    const int decoupled = c->decoupled;
    const T first_rest = c->damped;
    const int from_m = first > (T)0.5; /* the two forms of lerp: start from the nearer end */
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        T x = p[i], d = sign * g[i];
        x = decoupled ? x * shrink : x;
        d = decay != 0 ? x * decay + d : d;
        T t = d - m[i];
        m[i] = from_m ? FMA(t, first_rest, m[i]) : d - t * first;
        v[i] = FMA(d * d, second_rest, v[i] * second);
        p[i] = FMA(m[i] / (SQRT(v[i]) / correction + eps), rate, x);
    }
}

static void NAME(adam)(const Args *k) {
    NAME(Step) c = {.p = k->p[0], .g = k->p[1], .m = k->p[2], .v = k->p[3],
                    .maximize = (int)k->n[1], .decoupled = (int)k->n[2],
                    .decay = (T)k->x[0], .rate = (T)k->x[1], .shrink = (T)k->x[2],
                    .first = (T)k->x[3], .damped = (T)k->x[4], .second = (T)k->x[5],
                    .second_rest = (T)k->x[6], .correction = (T)k->x[7], .eps = (T)k->x[8]};
    split(NAME(adam_step), &c, k->n[0], team(k, k->n[0]));
}
