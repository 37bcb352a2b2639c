/* Optimiser steps.  The order of operations, hence the rounding, is that of PyTorch's steps on a
   processor with fused multiply-add: x + factor * a is rounded once, x + factor * a * b where the last
   product is added, x + factor * a / b three times. */

typedef struct {
    T *p, *m, *v, *more; /* parameter, running mean and square, or what takes their place */
    const T *g;
    T momentum, damped, decay, rate, shrink, first, second, second_rest, correction, eps, factor;
    int nesterov, maximize, flag;
} NAME(Step);

/* The gradient of element i with its sign and the decay. */
INLINE T NAME(direction)(const NAME(Step) *c, T g, T p) {
    T d = c->maximize ? -g : g;
    return c->decay != 0 ? FMA(p, c->decay, d) : d;
}

/* The running mean of d: the two forms of lerp, from the nearer end. */
INLINE T NAME(mean)(T m, T d, T rest) {
    T t = d - m;
    return ABS(rest) < (T)0.5 ? FMA(t, rest, m) : FMA(t, rest - 1, d);
}

/* The running mean of the square of d. */
INLINE T NAME(square)(const NAME(Step) *c, T v, T d) { return FMA(c->second_rest * d, d, v * c->second); }

/* The larger of two; NaN where one is. */
INLINE T NAME(larger)(T a, T b) { return a > b || a != a ? a : b; }

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
            d = decay != 0 ? FMA(p[i], decay, d) : d;
            p[i] = FMA(d, rate, p[i]);
        }
        return;
    }
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        T d = sign * g[i];
        d = decay != 0 ? FMA(p[i], decay, d) : d;
        m[i] = FMA(d, damped, m[i] * momentum);
        d = nesterov ? FMA(m[i], momentum, d) : m[i];
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

/* What every step of the Adam family begins with: x is the parameter after a decay of its own, d the
   gradient, and the moments move on. */
#define MOMENTS                                                                          \
    T x = c.shrink != 1 ? p[i] * c.shrink : p[i], d = NAME(direction)(&c, g[i], x);      \
    m[i] = NAME(mean)(m[i], d, c.damped);                                       \
    v[i] = NAME(square)(&c, v[i], d);

WIDE static void NAME(adam_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Step) c = *(const NAME(Step) *)context;
    T *restrict p = c.p, *restrict m = c.m, *restrict v = c.v, *restrict largest = c.more;
    const T *restrict g = c.g;
    if (largest != NULL) {
#pragma omp simd
        for (int64_t i = begin; i < end; i++) {
            MOMENTS
            largest[i] = NAME(larger)(v[i], largest[i]);
            p[i] = x + c.rate * m[i] / (SQRT(largest[i]) / c.correction + c.eps);
        }
        return;
    }
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        MOMENTS
        p[i] = x + c.rate * m[i] / (SQRT(v[i]) / c.correction + c.eps);
    }
}

WIDE static void NAME(nadam_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Step) c = *(const NAME(Step) *)context;
    T *restrict p = c.p, *restrict m = c.m, *restrict v = c.v;
    const T *restrict g = c.g;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        MOMENTS
        T deviation = SQRT(v[i] / c.correction) + c.eps;
        x += c.rate * d / deviation;
        p[i] = x + c.momentum * m[i] / deviation;
    }
}

WIDE static void NAME(radam_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Step) c = *(const NAME(Step) *)context;
    T *restrict p = c.p, *restrict m = c.m, *restrict v = c.v;
    const T *restrict g = c.g;
    if (c.flag) { /* rectified */
#pragma omp simd
        for (int64_t i = begin; i < end; i++) {
            MOMENTS
            p[i] = x - m[i] / c.correction * c.rate * (1 / (SQRT(v[i]) + c.eps) * c.momentum) * c.factor;
        }
        return;
    }
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        MOMENTS
        p[i] = x - m[i] / c.correction * c.rate;
    }
}
#undef MOMENTS

/* Arguments: p, g, m, v and for Adam the largest v; n, maximize, flag; decay, shrink, rate, the decay
   rates of m and v with their complements, eps, correction and for NAdam the rate of m. */
static NAME(Step) NAME(moments)(const Args *k) {
    return (NAME(Step)){.p = k->p[0], .g = k->p[1], .m = k->p[2], .v = k->p[3],
                        .maximize = (int)k->n[1], .decay = (T)k->x[0], .shrink = (T)k->x[1],
                        .rate = (T)k->x[2], .first = (T)k->x[3], .damped = (T)k->x[4],
                        .second = (T)k->x[5], .second_rest = (T)k->x[6], .eps = (T)k->x[7]};
}

static void NAME(adam)(const Args *k) {
    NAME(Step) c = NAME(moments)(k);
    c.correction = (T)k->x[8];
    c.more = k->p[4];
    split(NAME(adam_step), &c, k->n[0], team(k, k->n[0]));
}

static void NAME(nadam)(const Args *k) {
    NAME(Step) c = NAME(moments)(k);
    c.correction = (T)k->x[8];
    c.momentum = (T)k->x[9];
    split(NAME(nadam_step), &c, k->n[0], team(k, k->n[0]));
}

static void NAME(radam)(const Args *k) {
    NAME(Step) c = NAME(moments)(k);
    c.flag = (int)k->n[2];
    c.correction = (T)k->x[8];
    c.momentum = (T)k->x[9];
    c.factor = (T)k->x[10];
    split(NAME(radam_step), &c, k->n[0], team(k, k->n[0]));
}

WIDE static void NAME(adamax_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Step) c = *(const NAME(Step) *)context;
    T *restrict p = c.p, *restrict m = c.m, *restrict u = c.v;
    const T *restrict g = c.g;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        T d = NAME(direction)(&c, g[i], p[i]);
        m[i] = NAME(mean)(m[i], d, c.damped);
        u[i] = NAME(larger)(ABS(d) + c.eps, u[i] * c.second);
        p[i] = p[i] + c.rate * m[i] / u[i];
    }
}

static void NAME(adamax)(const Args *k) {
    NAME(Step) c = {.p = k->p[0], .g = k->p[1], .m = k->p[2], .v = k->p[3],
                    .maximize = (int)k->n[1], .decay = (T)k->x[0], .rate = (T)k->x[1],
                    .first = (T)k->x[2], .damped = (T)k->x[3], .second = (T)k->x[4],
                    .eps = (T)k->x[5]};
    split(NAME(adamax_step), &c, k->n[0], team(k, k->n[0]));
}

INLINE void NAME(rmsprop_part)(const void *context, int64_t begin, int64_t end, int centered,
                               int has_momentum) {
    const NAME(Step) c = *(const NAME(Step) *)context;
    T *restrict p = c.p, *restrict v = c.v, *restrict mean = c.m, *restrict b = c.more;
    const T *restrict g = c.g;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        T d = NAME(direction)(&c, g[i], p[i]);
        v[i] = NAME(square)(&c, v[i], d);
        T variance = v[i];
        if (centered) {
            mean[i] = NAME(mean)(mean[i], d, c.second_rest);
            variance = FMA(-mean[i], mean[i], variance);
        }
        const T deviation = SQRT(variance) + c.eps;
        if (has_momentum) {
            b[i] = b[i] * c.momentum + d / deviation;
            p[i] = FMA(b[i], c.rate, p[i]);
        } else {
            p[i] += c.rate * d / deviation;
        }
    }
}

WIDE static void NAME(rmsprop_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Step) *c = context;
    if (c->m != NULL && c->more != NULL) NAME(rmsprop_part)(context, begin, end, 1, 1);
    else if (c->m != NULL) NAME(rmsprop_part)(context, begin, end, 1, 0);
    else if (c->more != NULL) NAME(rmsprop_part)(context, begin, end, 0, 1);
    else NAME(rmsprop_part)(context, begin, end, 0, 0);
}

static void NAME(rmsprop)(const Args *k) {
    NAME(Step) c = {.p = k->p[0], .g = k->p[1], .v = k->p[2], .m = k->p[3], .more = k->p[4],
                    .maximize = (int)k->n[1], .decay = (T)k->x[0], .rate = (T)k->x[1],
                    .second = (T)k->x[2], .second_rest = (T)k->x[3], .eps = (T)k->x[4],
                    .momentum = (T)k->x[5]};
    split(NAME(rmsprop_step), &c, k->n[0], team(k, k->n[0]));
}

WIDE static void NAME(adagrad_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Step) c = *(const NAME(Step) *)context;
    T *restrict p = c.p, *restrict sum = c.v;
    const T *restrict g = c.g;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        T d = NAME(direction)(&c, g[i], p[i]);
        sum[i] = FMA(d, d, sum[i]);
        p[i] += c.rate * d / (SQRT(sum[i]) + c.eps);
    }
}

static void NAME(adagrad)(const Args *k) {
    NAME(Step) c = {.p = k->p[0], .g = k->p[1], .v = k->p[2], .maximize = (int)k->n[1],
                    .decay = (T)k->x[0], .rate = (T)k->x[1], .eps = (T)k->x[2]};
    split(NAME(adagrad_step), &c, k->n[0], team(k, k->n[0]));
}

WIDE static void NAME(adadelta_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Step) c = *(const NAME(Step) *)context;
    T *restrict p = c.p, *restrict v = c.v, *restrict u = c.more;
    const T *restrict g = c.g;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        T d = NAME(direction)(&c, g[i], p[i]);
        v[i] = NAME(square)(&c, v[i], d);
        d = SQRT(u[i] + c.eps) / SQRT(v[i] + c.eps) * d;
        u[i] = NAME(square)(&c, u[i], d);
        p[i] = FMA(d, c.rate, p[i]);
    }
}

static void NAME(adadelta)(const Args *k) {
    NAME(Step) c = {.p = k->p[0], .g = k->p[1], .v = k->p[2], .more = k->p[3],
                    .maximize = (int)k->n[1], .decay = (T)k->x[0], .rate = (T)k->x[1],
                    .second = (T)k->x[2], .second_rest = (T)k->x[3], .eps = (T)k->x[4]};
    split(NAME(adadelta_step), &c, k->n[0], team(k, k->n[0]));
}

WIDE static void NAME(asgd_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Step) c = *(const NAME(Step) *)context;
    T *restrict p = c.p, *restrict average = c.m;
    const T *restrict g = c.g;
    const T share = c.damped;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        T d = NAME(direction)(&c, g[i], p[i]);
        p[i] = FMA(d, c.rate, p[i] * c.shrink);
        average[i] = share == 1 ? p[i] : average[i] + (p[i] - average[i]) * share;
    }
}

static void NAME(asgd)(const Args *k) {
    NAME(Step) c = {.p = k->p[0], .g = k->p[1], .m = k->p[2], .maximize = (int)k->n[1],
                    .decay = (T)k->x[0], .rate = (T)k->x[1], .shrink = (T)k->x[2],
                    .damped = (T)k->x[3]};
    split(NAME(asgd_step), &c, k->n[0], team(k, k->n[0]));
}

/* `first` and `second` are the factors of a step size, `eps` and `correction` its bounds. */
WIDE static void NAME(rprop_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Step) c = *(const NAME(Step) *)context;
    T *restrict p = c.p, *restrict last = c.m, *restrict size = c.v;
    const T *restrict g = c.g;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        T d = NAME(direction)(&c, g[i], p[i]), agreement = d * last[i];
        T s = size[i] * (agreement > 0 ? c.second : agreement < 0 ? c.first : (T)1);
        s = s < c.eps ? c.eps : s;
        s = s > c.correction ? c.correction : s;
        d = agreement < 0 ? 0 : d;
        size[i] = s;
        last[i] = d;
        T sign = (T)(d > 0) - (T)(d < 0);
        p[i] -= sign * s;
    }
}

static void NAME(rprop)(const Args *k) {
    NAME(Step) c = {.p = k->p[0], .g = k->p[1], .m = k->p[2], .v = k->p[3],
                    .maximize = (int)k->n[1], .first = (T)k->x[0], .second = (T)k->x[1],
                    .eps = (T)k->x[2], .correction = (T)k->x[3]};
    split(NAME(rprop_step), &c, k->n[0], team(k, k->n[0]));
}
