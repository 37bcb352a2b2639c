/* Where points lie is computed by the steps of the op's decomposition, so that no rounding parts the two.
   Places are as wide as the numbers, which are gathered by vectors of both. */

#if NAME(IS_SINGLE)
#define PLACE int32_t
#define FMOD fmodf
#define FLOOR floorf
#define RINT rintf
#else
#define PLACE int64_t
#define FMOD fmod
#define FLOOR floor
#define RINT rint
#endif

typedef struct {
    const T *x, *grid, *grad;
    T *out;
    int64_t images, channels, points, elements, size[3]; /* of the dimensions, the last last */
    int rank, mode, padding, align, orders[3], taps;
} NAME(Sampling);

/* Of some points: places and weights along a dimension, then those of all combinations, and what a
   channel is multiplied by.  A place below 0 is outside. */
typedef struct {
    PLACE along[3][4][AHEAD];
    T weights[2][3][4][AHEAD]; /* as often derived as is said, and once more */
    PLACE place[16][AHEAD];
    T weight[16][AHEAD];
} NAME(Taps);

/* What a position is after the padding, and, times `slope`, its derivative. */
INLINE void NAME(fold_back)(const NAME(Sampling) * c, int64_t size, T *restrict at, T *restrict slope, int count) {
    const T last = (T)(size - 1);
    if (c->padding == ZEROS) return;
    if (c->padding == REFLECTION) {
        const T low = c->align ? 0 : (T)-0.5, span = c->align ? last : (T)size;
        int far = 0;
        if (span == 0) {
            memset(at, 0, (size_t)count * sizeof(T));
        } else {
#pragma omp simd reduction(| : far)
            for (int i = 0; i < count; i++) {
                const T from = at[i] - low, distance = ABS(from);
                const int odd = distance >= span;
                const T beyond = distance - span;
                T turned = from < 0 ? -slope[i] : slope[i];
                far |= !(distance < 2 * span);
                slope[i] = odd ? -turned : turned;
                at[i] = (odd ? span - beyond : distance) + low;
                /* Left to the loop below, which knows it by this: what is done is at most one span. */
                if (!(distance < 2 * span)) at[i] = distance, slope[i] = turned;
            }
            for (int i = 0; far && i < count; i++) {
                if (at[i] < 2 * span) continue;
                const T rest = FMOD(at[i], span), turns = FLOOR(at[i] / span);
                const int odd = FMOD(turns, 2) == 1;
                if (odd) slope[i] = -slope[i];
                at[i] = (odd ? span - rest : rest) + low;
            }
        }
    }
#pragma omp simd
    for (int i = 0; i < count; i++) {
        const T here = at[i], above = here > 0 ? here : 0; /* nan becomes 0 */
        slope[i] = (here > 0) & (here < last) ? slope[i] : 0;
        at[i] = above < last ? above : last;
    }
}

/* The place of a whole position; -1 outside. */
INLINE PLACE NAME(place_at)(T at, int64_t size) {
    const T from = at >= 0 ? at : -1, within = from < (T)size ? from : -1;
    const PLACE place = (PLACE)within;
    return place < (PLACE)size ? place : -1; /* a size may be rounded up */
}

/* A polynomial of third degree, its highest coefficient first. */
INLINE T NAME(cubic)(const T *of, T x) { return ((of[0] * x + of[1]) * x + of[2]) * x + of[3]; }

INLINE void NAME(cubic_weights)(const T *part, T (*weights)[AHEAD], int order, T scale, int count) {
    T near[] = {(T)1.25, (T)-2.25, 0, 1}, far[] = {(T)-0.75, (T)3.75, (T)-6, (T)3}, by = 1;
    for (int k = 0; k < order; k++) {
        by *= scale;
        for (int j = 3; j > 0; j--) near[j] = (T)(4 - j) * near[j - 1], far[j] = (T)(4 - j) * far[j - 1];
        near[0] = far[0] = 0;
    }
    const T back = order % 2 ? -by : by;
#pragma omp simd
    for (int i = 0; i < count; i++) {
        const T t = part[i];
        weights[0][i] = NAME(cubic)(far, t + 1) * by;
        weights[1][i] = NAME(cubic)(near, t) * by;
        weights[2][i] = NAME(cubic)(near, 1 - t) * back;
        weights[3][i] = NAME(cubic)(far, 2 - t) * back;
    }
}

/* The taps of `count` points along dimension d. */
INLINE void NAME(find_along)(const NAME(Sampling) * c, NAME(Taps) * t, int d, const T *grid, int count, int derived) {
    const int64_t size = c->size[d];
    const T last = (T)(size - 1), scale = c->align ? last / 2 : (T)size / 2;
    PLACE(*along)[AHEAD] = t->along[d];
    T at[AHEAD], slope[AHEAD], part[AHEAD];
    grid += c->rank - 1 - d;
    if (c->rank == 2)
#pragma omp simd
        for (int i = 0; i < count; i++) at[i] = grid[2 * i];
    else
#pragma omp simd
        for (int i = 0; i < count; i++) at[i] = grid[3 * i];
    if (c->align)
#pragma omp simd
        for (int i = 0; i < count; i++) at[i] = (at[i] + 1) / 2 * last;
    else
#pragma omp simd
        for (int i = 0; i < count; i++) at[i] = ((at[i] + 1) * (T)size - 1) / 2;
    for (int i = 0; i < count; i++) slope[i] = scale;
    if (c->mode != BICUBIC) NAME(fold_back)(c, size, at, slope, count);
    if (c->mode == NEAREST) {
#pragma omp simd
        for (int i = 0; i < count; i++) along[0][i] = NAME(place_at)(RINT(at[i]), size);
        for (int k = 0; k <= derived; k++)
            for (int i = 0; i < count; i++) t->weights[k][d][0][i] = c->orders[d] + k == 0;
        return;
    }
#pragma omp simd
    for (int i = 0; i < count; i++) {
        const T low = FLOOR(at[i]);
        part[i] = at[i] - low;
        at[i] = low;
    }
    if (c->mode == BILINEAR) {
#pragma omp simd
        for (int i = 0; i < count; i++) {
            along[0][i] = NAME(place_at)(at[i], size);
            along[1][i] = NAME(place_at)(at[i] + 1, size);
        }
    } else {
        for (int k = 0; k < 4; k++) {
            T shifted[AHEAD], unused[AHEAD];
            for (int i = 0; i < count; i++) shifted[i] = at[i] + (T)(k - 1), unused[i] = 0;
            NAME(fold_back)(c, size, shifted, unused, count);
#pragma omp simd
            for (int i = 0; i < count; i++) along[k][i] = NAME(place_at)(shifted[i], size);
        }
    }
    for (int k = 0; k <= derived; k++) {
        T(*weights)[AHEAD] = t->weights[k][d];
        const int order = c->orders[d] + k;
        if (c->mode == BICUBIC) {
            NAME(cubic_weights)(part, weights, order, scale, count);
        } else if (order == 0) {
#pragma omp simd
            for (int i = 0; i < count; i++) weights[0][i] = 1 - part[i], weights[1][i] = part[i];
        } else {
            for (int i = 0; i < count; i++) {
                const T s = order == 1 ? slope[i] : 0;
                weights[0][i] = -s, weights[1][i] = s;
            }
        }
    }
}

/* The tap along dimension d of tap k of all. */
INLINE int NAME(tap_along)(const NAME(Sampling) * c, int k, int d) {
    const int n = taps_along[c->mode];
    for (int e = c->rank - 1; e > d; e--) k /= n;
    return k % n;
}

/* The weights of tap k, once more derived along dimension `derived`, if it is one. */
INLINE void NAME(weigh)(const NAME(Sampling) * c, const NAME(Taps) * t, int k, int derived, T *restrict out, int count) {
    for (int d = 0; d < c->rank; d++) {
        const T *weights = t->weights[d == derived][d][NAME(tap_along)(c, k, d)];
        if (d == 0) memcpy(out, weights, (size_t)count * sizeof(T));
        else
#pragma omp simd
            for (int i = 0; i < count; i++) out[i] *= weights[i];
    }
}

/* The taps of `count` points; with `derived` their weights are only those along each dimension. */
INLINE void NAME(find_taps)(const NAME(Sampling) * c, NAME(Taps) * t, const T *grid, int count, int derived) {
    for (int d = 0; d < c->rank; d++) NAME(find_along)(c, t, d, grid, count, derived);
    for (int k = 0; k < c->taps; k++) {
        PLACE *restrict place = t->place[k];
        for (int d = 0; d < c->rank; d++) {
            const PLACE *restrict here = t->along[d][NAME(tap_along)(c, k, d)], size = (PLACE)c->size[d];
            if (d == 0) memcpy(place, here, (size_t)count * sizeof(PLACE));
            else
#pragma omp simd
                for (int i = 0; i < count; i++)
                    place[i] = (place[i] | here[i]) < 0 ? -1 : place[i] * size + here[i];
        }
        if (!derived) NAME(weigh)(c, t, k, -1, t->weight[k], count);
    }
}

/* What lies at a place. */
INLINE T NAME(at_place)(const T *x, PLACE place) {
    const T found = x[place < 0 ? 0 : place];
    return place < 0 ? 0 : found;
}

INLINE void NAME(sum_taps)(const NAME(Taps) * t, const T *x, T *restrict out, int count, int taps) {
#pragma omp simd
    for (int i = 0; i < count; i++) {
        T sum = t->weight[0][i] * NAME(at_place)(x, t->place[0][i]);
#pragma GCC unroll 8
        for (int k = 1; k < taps; k++) sum += t->weight[k][i] * NAME(at_place)(x, t->place[k][i]);
        out[i] = sum;
    }
}

/* The points of block `block`: of which image, from where, how many. */
INLINE int NAME(block_of)(const NAME(Sampling) * c, int64_t block, int64_t *image, int64_t *first) {
    const int64_t blocks = (c->points + AHEAD - 1) / AHEAD;
    *image = block / blocks, *first = block % blocks * AHEAD;
    return (int)(c->points - *first < AHEAD ? c->points - *first : AHEAD);
}

WIDE static void NAME(grid_values_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Sampling) *c = context;
    NAME(Taps) t;
    for (int64_t block = begin; block < end; block++) {
        int64_t image, first;
        const int count = NAME(block_of)(c, block, &image, &first);
        NAME(find_taps)(c, &t, c->grid + (image * c->points + first) * c->rank, count, 0);
        for (int64_t plane = image * c->channels; plane < (image + 1) * c->channels; plane++) {
            const T *x = c->x + plane * c->elements;
            T *out = c->out + plane * c->points + first;
            if (c->taps == 1) NAME(sum_taps)(&t, x, out, count, 1);
            else if (c->taps == 4) NAME(sum_taps)(&t, x, out, count, 4);
            else if (c->taps == 8) NAME(sum_taps)(&t, x, out, count, 8);
            else NAME(sum_taps)(&t, x, out, count, 16);
        }
    }
}

/* Planes begin to end, each of which one thread adds up. */
INLINE void NAME(spread_taps)(const NAME(Taps) * t, const T *grad, T *out, int count, int taps) {
    for (int i = 0; i < count; i++) {
        const T g = grad[i];
#pragma GCC unroll 8
        for (int k = 0; k < taps; k++) {
            const PLACE place = t->place[k][i];
            if (place >= 0) out[place] += t->weight[k][i] * g;
        }
    }
}

WIDE static void NAME(grid_spread_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Sampling) *c = context;
    NAME(Taps) t;
    memset(c->out + begin * c->elements, 0, (size_t)((end - begin) * c->elements) * sizeof(T));
    while (begin < end) {
        const int64_t image = begin / c->channels, next = (image + 1) * c->channels;
        const int64_t last = next < end ? next : end;
        for (int64_t first = 0; first < c->points; first += AHEAD) {
            const int count = (int)(c->points - first < AHEAD ? c->points - first : AHEAD);
            NAME(find_taps)(c, &t, c->grid + (image * c->points + first) * c->rank, count, 0);
            for (int64_t plane = begin; plane < last; plane++) {
                const T *grad = c->grad + plane * c->points + first;
                T *out = c->out + plane * c->elements;
                if (c->taps == 1) NAME(spread_taps)(&t, grad, out, count, 1);
                else if (c->taps == 4) NAME(spread_taps)(&t, grad, out, count, 4);
                else if (c->taps == 8) NAME(spread_taps)(&t, grad, out, count, 8);
                else NAME(spread_taps)(&t, grad, out, count, 16);
            }
        }
        begin = last;
    }
}

/* Adds to dots[k] what channel x has at tap k, times its gradient. */
INLINE void NAME(dot_taps)(const NAME(Taps) * t, const T *x, const T *grad, T (*dots)[AHEAD], int count, int taps) {
#pragma omp simd
    for (int i = 0; i < count; i++) {
        const T g = grad[i];
#pragma GCC unroll 8
        for (int k = 0; k < taps; k++) dots[k][i] += g * NAME(at_place)(x, t->place[k][i]);
    }
}

WIDE static void NAME(grid_slopes_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Sampling) *c = context;
    NAME(Taps) t;
    for (int64_t block = begin; block < end; block++) {
        int64_t image, first;
        const int count = NAME(block_of)(c, block, &image, &first);
        const int64_t at = (image * c->points + first) * c->rank;
        NAME(find_taps)(c, &t, c->grid + at, count, 1);
        T(*dots)[AHEAD] = t.weight; /* which have no other use here */
        memset(dots, 0, (size_t)c->taps * sizeof *dots);
        for (int64_t plane = image * c->channels; plane < (image + 1) * c->channels; plane++) {
            const T *x = c->x + plane * c->elements, *grad = c->grad + plane * c->points + first;
            if (c->taps == 1) NAME(dot_taps)(&t, x, grad, dots, count, 1);
            else if (c->taps == 4) NAME(dot_taps)(&t, x, grad, dots, count, 4);
            else if (c->taps == 8) NAME(dot_taps)(&t, x, grad, dots, count, 8);
            else NAME(dot_taps)(&t, x, grad, dots, count, 16);
        }
        for (int d = 0; d < c->rank; d++) {
            T sums[AHEAD] = {0}, weights[AHEAD];
            T *out = c->out + at + c->rank - 1 - d;
            for (int k = 0; k < c->taps; k++) {
                NAME(weigh)(c, &t, k, d, weights, count);
#pragma omp simd
                for (int i = 0; i < count; i++) sums[i] += weights[i] * dots[k][i];
            }
            for (int i = 0; i < count; i++) out[i * c->rank] = sums[i];
        }
    }
}

/* The numbers of a call; of no images, channels or elements there is nothing to read, and all is 0. */
static int NAME(sampling)(const Args *k, NAME(Sampling) * c) {
    const int64_t *n = k->n;
    c->images = n[0], c->channels = n[1], c->points = n[2];
    c->elements = times(times(n[3], n[4]), n[5]);
    c->rank = (int)n[6], c->mode = (int)n[7], c->padding = (int)n[8], c->align = n[9] != 0;
    const int is_known = (n[6] == 2 || n[6] == 3) && n[7] >= BILINEAR && n[7] <= BICUBIC && n[8] >= ZEROS &&
                         n[8] <= REFLECTION && !(n[6] == 3 && n[7] == BICUBIC);
    int fits = sizeof(T) == sizeof(double) || c->elements < 1 << 30; /* what 32 bits count */
    for (int d = 0; d < 3; d++) fits &= n[10 + d] >= 0 && n[10 + d] < 1 << 16;
    if (!is_known || !fits || (n[6] == 2 && n[3] != 1)) {
        *k->failure = "no such samples of a grid";
        return 0;
    }
    c->taps = 1;
    for (int d = 0; d < c->rank; d++) {
        c->size[d] = n[6 - c->rank + d], c->orders[d] = (int)n[13 - c->rank + d];
        c->taps *= taps_along[c->mode];
    }
    return c->images > 0 && c->channels > 0 && c->points > 0 && c->elements > 0;
}

static int64_t NAME(work)(const NAME(Sampling) * c) {
    return times(times(c->images, c->points), times(c->channels + 2, c->taps) / 4 + 1);
}

static void NAME(grid_values)(const Args *k) {
    NAME(Sampling) c = {.out = k->p[0], .x = k->p[1], .grid = k->p[2]};
    if (NAME(sampling)(k, &c))
        split(NAME(grid_values_step), &c, c.images * ((c.points + AHEAD - 1) / AHEAD), team(k, NAME(work)(&c)));
    else if (c.images * c.channels * c.points > 0)
        memset(c.out, 0, (size_t)(c.images * c.channels * c.points) * sizeof(T));
}

static void NAME(grid_spread)(const Args *k) {
    NAME(Sampling) c = {.out = k->p[0], .grad = k->p[1], .grid = k->p[2]};
    if (NAME(sampling)(k, &c)) split(NAME(grid_spread_step), &c, c.images * c.channels, team(k, NAME(work)(&c)));
    else if (c.images * c.channels * c.elements > 0)
        memset(c.out, 0, (size_t)(c.images * c.channels * c.elements) * sizeof(T));
}

static void NAME(grid_slopes)(const Args *k) {
    NAME(Sampling) c = {.out = k->p[0], .grad = k->p[1], .x = k->p[2], .grid = k->p[3]};
    if (NAME(sampling)(k, &c))
        split(NAME(grid_slopes_step), &c, c.images * ((c.points + AHEAD - 1) / AHEAD), team(k, NAME(work)(&c)));
    else if (c.images * c.points * c.rank > 0)
        memset(c.out, 0, (size_t)(c.images * c.points * c.rank) * sizeof(T));
}

#undef PLACE
#undef FMOD
#undef FLOOR
#undef RINT
