/* Pooling of planes (h, w) to (oh, ow), a row of windows at a time and in it tap by tap; or of volumes (d, h, w). */

typedef struct {
    const T *x;
    T *out;
    int64_t *places;
    int64_t h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw, channels;
    int64_t d, od, kd, sd, pd, dd; /* of maxima: 1, or 0 for pd, of planes */
    int include_pad;
    double divisor;
    Flag *outside; /* becomes 1 where a step finds a place out of range */
} NAME(Pool);

/* Whether the windows of a line are few and wide, and better taken one by one than tap by tap. */
INLINE int NAME(are_few)(const NAME(Pool) * c) { return c->ow < c->kw || (c->sw > 2 && c->ow < 2 * c->kw); }

/* The windows [*first, *last) of a row whose element at `offset` from their start lies inside. */
INLINE void NAME(inside)(const NAME(Pool) * c, int64_t offset, int64_t *first, int64_t *last) {
    *first = offset >= 0 ? 0 : (-offset + c->sw - 1) / c->sw;
    *last = offset >= c->w ? 0 : (c->w - 1 - offset) / c->sw + 1;
    if (*last > c->ow) *last = c->ow;
}

/* Elements that are `stride` apart, and their places as far. */
INLINE void NAME(max_tap)(const T *restrict x, T *restrict best, int32_t *restrict at, int64_t n,
                          int64_t stride, int32_t place, int32_t apart) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        T value = x[i * stride];
        /* The first of equals; of NaNs, the last; and anything before any. */
        int better = (value > best[i]) | (value != value) | (at[i] < 0);
        best[i] = better ? value : best[i];
        at[i] = better ? place + (int32_t)i * apart : at[i];
    }
}

/* The taps [*first, *last) of a window that lie within `size`, of `count` that are `step` apart. */
INLINE void NAME(taps_inside)(int64_t start, int64_t step, int64_t count, int64_t size, int64_t *first,
                              int64_t *last) {
    *first = start >= 0 ? 0 : (step - 1 - start) / step;
    *last = start >= size ? 0 : (size - 1 - start) / step + 1;
    if (*last > count) *last = count;
}

/* The taps of a row of windows that lie within the plane in one of them. */
INLINE void NAME(taps_of_row)(const NAME(Pool) * c, int64_t *first, int64_t *last) {
    int64_t none;
    NAME(taps_inside)((c->ow - 1) * c->sw - c->pw, c->dw, c->kw, c->w, first, &none);
    NAME(taps_inside)(-c->pw, c->dw, c->kw, c->w, &none, last);
}

/* Whether windows have steps that go on, and places that a number can say. */
static int NAME(are_windows)(const Args *k, const NAME(Pool) * c) {
    int64_t down, right, place;
    if (c->sh > 0 && c->sw > 0 && c->dh > 0 && c->dw > 0 && reach(c->oh, c->sh, c->kh, c->dh, c->ph, c->h, &down) &&
        reach(c->ow, c->sw, c->kw, c->dw, c->pw, c->w, &right) && !__builtin_mul_overflow(down, c->w, &place) &&
        !__builtin_add_overflow(place, right, &place))
        return 1;
    *k->failure = "windows that lead nowhere";
    return 0;
}

/* The place of a window that meets nothing but padding, as PyTorch has it: its first tap that is not before
   the plane, wherever that is. */
INLINE int64_t NAME(nowhere)(const NAME(Pool) * c, int64_t row, int64_t column) {
    if (row < 0) row += (c->dh - 1 - row) / c->dh * c->dh;
    if (column < 0) column += (c->dw - 1 - column) / c->dw * c->dw;
    return row * c->w + column;
}

/* Windows of a row are done in pieces of PIECE. */
#define PIECE 512

WIDE static void NAME(max_pool2d_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Pool) *c = context;
    int32_t at[PIECE];
    for (int64_t line = begin; line < end; line++) {
        const int64_t frame = line / c->oh, y = line % c->oh, depth = frame % c->od * c->sd - c->pd;
        const T *x = c->x + frame / c->od * c->d * c->h * c->w;
        int64_t front, back;
        NAME(taps_inside)(depth, c->dd, c->kd, c->d, &front, &back);
        for (int64_t from = 0; from < c->ow; from += PIECE) {
            const int64_t to = from + PIECE < c->ow ? from + PIECE : c->ow;
            T *best = c->out + line * c->ow;
            for (int64_t i = 0; i < to - from; i++) {
                at[i] = -1;
                best[from + i] = (T)-INFINITY;
            }
            int64_t upper, lower, left, right;
            NAME(taps_inside)(y * c->sh - c->ph, c->dh, c->kh, c->h, &upper, &lower);
            NAME(taps_of_row)(c, &left, &right);
            for (int64_t ahead = front; ahead < back; ahead++) {
                for (int64_t i = upper; i < lower; i++) {
                    const int64_t row = (depth + ahead * c->dd) * c->h + y * c->sh - c->ph + i * c->dh;
                    for (int64_t j = left; j < right; j++) {
                        int64_t first, last;
                        NAME(inside)(c, j * c->dw - c->pw, &first, &last);
                        if (first < from) first = from;
                        if (last > to) last = to;
                        const int64_t start = row * c->w + first * c->sw + j * c->dw - c->pw;
                        if (first >= last) continue;
                        if (c->sw == 1) {
                            NAME(max_tap)(x + start, best + first, at + first - from, last - first, 1,
                                          (int32_t)start, 1);
                        } else if (c->sw == 2) {
                            NAME(max_tap)(x + start, best + first, at + first - from, last - first, 2,
                                          (int32_t)start, 2);
                        } else {
                            NAME(max_tap)(x + start, best + first, at + first - from, last - first,
                                          c->sw, (int32_t)start, (int32_t)c->sw);
                        }
                    }
                }
            }
            int64_t *places = c->places + line * c->ow + from;
            for (int64_t i = 0; i < to - from; i++)
                places[i] = at[i] >= 0 ? at[i]
                                       : NAME(nowhere)(c, y * c->sh - c->ph, (from + i) * c->sw - c->pw);
        }
    }
}

/* The elements of a window of an image whose channels vary fastest: from row `top` and column `left` on, so
   many rows and columns, some steps apart; there are some. */
INLINE void NAME(max_window)(const NAME(Pool) * c, const T *x, int64_t top, int64_t rows, int64_t down, int64_t left,
                             int64_t columns, int64_t right, T *out, int64_t *places) {
    int32_t at[PIECE];
    for (int64_t from = 0; from < c->channels; from += PIECE) {
        const int64_t n = c->channels - from < PIECE ? c->channels - from : PIECE;
        T *restrict best = out + from;
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
                const int64_t place = (top + i * down) * c->w + left + j * right;
                const T *restrict tap = x + place * c->channels + from;
                if (i == 0 && j == 0)
                    for (int64_t k = 0; k < n; k++) best[k] = tap[k], at[k] = (int32_t)place;
                else
                    NAME(max_tap)(tap, best, at, n, 1, (int32_t)place, 0);
            }
        for (int64_t k = 0; k < n; k++) places[from + k] = at[k];
    }
}

/* max_pool2d_step of such images. */
WIDE static void NAME(max_pixels_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Pool) *c = context;
    for (int64_t line = begin; line < end; line++) {
        const int64_t image = line / c->oh, top = line % c->oh * c->sh - c->ph;
        const T *x = c->x + image * c->h * c->w * c->channels;
        int64_t upper, lower, left, right;
        NAME(taps_inside)(top, c->dh, c->kh, c->h, &upper, &lower);
        for (int64_t window = 0; window < c->ow; window++) {
            const int64_t start = window * c->sw - c->pw, pixel = (line * c->ow + window) * c->channels;
            T *out = c->out + pixel;
            int64_t *places = c->places + pixel;
            NAME(taps_inside)(start, c->dw, c->kw, c->w, &left, &right);
            if (upper < lower && left < right) {
                NAME(max_window)(c, x, top + upper * c->dh, lower - upper, c->dh, start + left * c->dw, right - left,
                                 c->dw, out, places);
            } else {
                for (int64_t k = 0; k < c->channels; k++)
                    out[k] = (T)-INFINITY, places[k] = NAME(nowhere)(c, top, start);
            }
        }
    }
}

static void NAME(max_pool2d_pixels)(const Args *k) {
    const int64_t *n = k->n;
    NAME(Pool) c = {.out = k->p[0], .places = k->p[1], .x = k->p[2], .h = n[1], .w = n[2],
                    .oh = n[3], .ow = n[4], .channels = n[5], .kh = n[6], .kw = n[7], .sh = n[8],
                    .sw = n[9], .ph = n[10], .pw = n[11], .dh = n[12], .dw = n[13]};
    if (!NAME(are_windows)(k, &c)) return;
    split(NAME(max_pixels_step), &c, c.ow == 0 ? 0 : n[0] * c.oh,
          team(k, times(n[0] * c.oh * c.ow * c.channels, times(c.kh, c.kw))));
}

/* The greatest number of a line; whether one of its numbers is a NaN. */
INLINE T NAME(line_max)(const T *restrict x, int64_t n, int *has_nan) {
    T best = x[0];
    int nan = 0;
#pragma omp simd reduction(max : best) reduction(| : nan)
    for (int64_t i = 0; i < n; i++) {
        nan |= x[i] != x[i];
        best = x[i] > best ? x[i] : best;
    }
    *has_nan = nan;
    return best;
}

typedef struct {
    const T *x;
    T *out;
    int64_t *places;
    const int64_t *first[3], *end[3]; /* of each window along each dimension */
    int64_t size[3], count[3], step[3];
    Flag *outside; /* becomes 1 where a step finds a window that leaves the volume */
    Box *max;
} NAME(Boxes);

#define LONG_LINE 32

/* One window of a volume: of equals the first, of NaNs the last. */
WIDE static void NAME(max_box)(const void *context, const void *volume, const int64_t *from, const int64_t *to,
                               void *value, int64_t *place) {
    const NAME(Boxes) *c = context;
    const T *x = volume;
    T best = -INFINITY;
    int64_t at = (from[0] * c->size[1] + from[1]) * c->size[2] + from[2];
    for (int64_t i = from[0]; i < to[0]; i += c->step[0]) {
        for (int64_t j = from[1]; j < to[1]; j += c->step[1]) {
            const int64_t line = (i * c->size[1] + j) * c->size[2];
            const int64_t begin = line + from[2], end = line + to[2];
            if (c->step[2] == 1 && end - begin >= LONG_LINE) {
                int has_nan;
                const T most = NAME(line_max)(x + begin, end - begin, &has_nan);
                if (!has_nan && !(most > best)) continue;
            }
            for (int64_t k = begin; k < end; k += c->step[2]) /* one comparison for nearly all */
                if (!(x[k] <= best) && (best == best || x[k] != x[k])) best = x[k], at = k;
        }
    }
    *(T *)value = best;
    *place = at;
}

/* Windows of a plane one by one; where they are whole rows, these are one line. */
WIDE static void NAME(max_few_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Pool) *c = context;
    Box *const max = IS_QUARTERED && sizeof(T) == 4 && c->dw == 1 ? max_box_v : NAME(max_box);
    const NAME(Boxes) plane = {.size = {1, c->h, c->w}, .step = {1, c->dh, c->dw}};
    const NAME(Boxes) line = {.size = {1, 1, c->h * c->w}, .step = {1, 1, 1}};
    for (int64_t row = begin; row < end; row++) {
        const int64_t top = row % c->oh * c->sh - c->ph;
        const T *x = c->x + row / c->oh * c->h * c->w;
        int64_t upper, lower, left, right;
        NAME(taps_inside)(top, c->dh, c->kh, c->h, &upper, &lower);
        for (int64_t i = 0; i < c->ow; i++) {
            const int64_t start = i * c->sw - c->pw;
            T *best = c->out + row * c->ow + i;
            int64_t *place = c->places + row * c->ow + i;
            NAME(taps_inside)(start, c->dw, c->kw, c->w, &left, &right);
            if (upper >= lower || left >= right) {
                *best = (T)-INFINITY;
                *place = NAME(nowhere)(c, top, start);
                continue;
            }
            const int64_t from[3] = {0, top + upper * c->dh, start + left * c->dw};
            const int64_t to[3] = {1, top + (lower - 1) * c->dh + 1, start + (right - 1) * c->dw + 1};
            if (c->dh == 1 && c->dw == 1 && right - left == c->w) {
                const int64_t first[3] = {0, 0, from[1] * c->w}, last[3] = {1, 1, to[1] * c->w};
                max(&line, x, first, last, best, place);
            } else {
                max(&plane, x, from, to, best, place);
            }
        }
    }
}

static void NAME(max_pool2d)(const Args *k) {
    const int64_t *n = k->n;
    NAME(Pool) c = {.out = k->p[0], .places = k->p[1], .x = k->p[2], .h = n[1], .w = n[2],
                    .oh = n[3], .ow = n[4], .kh = n[5], .kw = n[6], .sh = n[7], .sw = n[8],
                    .ph = n[9], .pw = n[10], .dh = n[11], .dw = n[12], .d = 1, .od = 1, .kd = 1, .sd = 1, .dd = 1};
    if (!NAME(are_windows)(k, &c)) return;
    Step step = NAME(are_few)(&c) ? NAME(max_few_step) : NAME(max_pool2d_step);
    if (IS_QUARTERED && sizeof(T) == 4 && c.kh == 2 && c.kw == 2 && c.sh == 2 && c.sw == 2 &&
        !c.ph && !c.pw && c.dh == 1 && c.dw == 1 && 2 * c.oh <= c.h && 2 * c.ow <= c.w)
        step = c.w <= 16 && 2 * c.ow == c.w && 2 * c.oh == c.h && !(c.h * c.w & (c.h * c.w - 1))
                   ? few_columns_step
                   : quartered_step;
    else if (IS_QUARTERED && sizeof(T) == 4 && c.sw <= 2 && c.kw <= WIDEST && 2 * c.ow > c.kw)
        step = windows_step;
    split(step, &c, n[0] * c.oh, team(k, times(n[0] * c.oh * c.ow, times(c.kh, c.kw))));
}

/* Of volumes whose windows all have elements. */
static void NAME(max_pool3d)(const Args *k) {
    const int64_t *n = k->n;
    int64_t far;
    NAME(Pool) c = {.out = k->p[0], .places = k->p[1], .x = k->p[2], .d = n[1], .h = n[2], .w = n[3],
                    .od = n[4], .oh = n[5], .ow = n[6], .kd = n[7], .kh = n[8], .kw = n[9],
                    .sd = n[10], .sh = n[11], .sw = n[12], .pd = n[13], .ph = n[14], .pw = n[15],
                    .dd = n[16], .dh = n[17], .dw = n[18]};
    if (!NAME(are_windows)(k, &c)) return;
    if (c.sd < 1 || c.dd < 1 || c.kh < 1 || !reach(c.od, c.sd, c.kd, c.dd, c.pd, c.d, &far) ||
        __builtin_mul_overflow(c.kd, c.kh, &far)) {
        *k->failure = "windows that lead nowhere";
        return;
    }
    const int is_quick = IS_QUARTERED && sizeof(T) == 4 && c.sw <= 2 && c.kw <= WIDEST;
    const int64_t lines = c.ow == 0 ? 0 : n[0] * c.od * c.oh;
    split(is_quick ? windows_step : NAME(max_pool2d_step), &c, lines,
          team(k, times(lines * c.ow, times(far, c.kw))));
}

WIDE static void NAME(max_boxes_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Boxes) *c = context;
    const int64_t volume = c->size[0] * c->size[1] * c->size[2];
    int64_t from[3], to[3];
    for (int64_t line = begin; line < end; line++) {
        const int64_t frame = line / c->count[1];
        const int64_t at[2] = {frame % c->count[0], line % c->count[1]};
        for (int64_t i = 0; i < c->count[2]; i++) {
            for (int d = 0; d < 3; d++) {
                const int64_t window = d < 2 ? at[d] : i;
                from[d] = (int64_t)place_of(c->first[d] + window);
                to[d] = (int64_t)place_of(c->end[d] + window);
                if (from[d] < 0 || from[d] >= to[d] || to[d] > c->size[d]) {
                    *c->outside = 1;
                    return;
                }
            }
            const int64_t result = line * c->count[2] + i;
            c->max(c, c->x + frame / c->count[0] * volume, from, to, c->out + result, c->places + result);
        }
    }
}
#undef LONG_LINE

static void NAME(max_boxes)(const Args *k) {
    const int64_t *n = k->n;
    Flag outside = 0;
    NAME(Boxes) c = {.out = k->p[0], .places = k->p[1], .x = k->p[2],
                     .first = {k->p[3], k->p[5], k->p[7]}, .end = {k->p[4], k->p[6], k->p[8]},
                     .size = {n[1], n[2], n[3]}, .count = {n[4], n[5], n[6]},
                     .step = {n[7], n[8], n[9]}, .outside = &outside, .max = NAME(max_box)};
    if (IS_QUARTERED && sizeof(T) == 4 && c.step[2] == 1) c.max = max_box_v;
    for (int d = 0; d < 3; d++) {
        if (c.step[d] < 1) outside = 1;
        /* All steps that leave the volume are one; what they lead to could be no number. */
        if (c.step[d] > c.size[d]) c.step[d] = c.size[d];
    }
    if (!outside) split(NAME(max_boxes_step), &c, n[0] * n[4] * n[5], team(k, n[0] * n[1] * n[2] * n[3]));
    if (outside) *k->error = "window out of range";
}

/* Windows, given by their first elements and ends along rows and columns, of images whose channels vary fastest. */
typedef struct {
    NAME(Pool) pool;
    const int64_t *first[2], *end[2];
    int64_t size[2];
} NAME(Spans);

/* Whether window i along a dimension has elements, all of the image. */
INLINE int NAME(span)(const NAME(Spans) * c, int d, int64_t i, int64_t *from, int64_t *count) {
    const int64_t end = (int64_t)place_of(c->end[d] + i);
    *from = (int64_t)place_of(c->first[d] + i);
    if (*from < 0 || *from >= end || end > c->size[d]) {
        *c->pool.outside = 1;
        return 0;
    }
    *count = end - *from;
    return 1;
}

WIDE static void NAME(max_spans_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Spans) *c = context;
    const NAME(Pool) *pool = &c->pool;
    for (int64_t line = begin; line < end; line++) {
        const T *x = pool->x + line / pool->oh * pool->h * pool->w * pool->channels;
        int64_t top, rows, left, columns;
        if (!NAME(span)(c, 0, line % pool->oh, &top, &rows)) return;
        for (int64_t i = 0; i < pool->ow; i++) {
            const int64_t pixel = (line * pool->ow + i) * pool->channels;
            if (!NAME(span)(c, 1, i, &left, &columns)) return;
            NAME(max_window)(pool, x, top, rows, 1, left, columns, 1, pool->out + pixel, pool->places + pixel);
        }
    }
}
#undef PIECE

static void NAME(max_boxes_pixels)(const Args *k) {
    const int64_t *n = k->n;
    Flag outside = 0;
    const NAME(Spans) c = {.pool = {.out = k->p[0], .places = k->p[1], .x = k->p[2], .h = n[1], .w = n[2],
                                    .oh = n[3], .ow = n[4], .channels = n[5], .outside = &outside},
                           .first = {k->p[3], k->p[5]}, .end = {k->p[4], k->p[6]}, .size = {n[1], n[2]}};
    const int64_t lines = c.pool.ow > 0 ? n[0] * c.pool.oh : 0;
    split(NAME(max_spans_step), &c, lines, team(k, n[0] * n[1] * n[2] * n[5]));
    if (outside) *k->error = "window out of range";
}

static void NAME(max_pool2d_backward_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Pool) *c = context;
    const int64_t size = c->h, windows = c->w;
    for (int64_t plane = begin; plane < end; plane++) {
        T *restrict out = c->out + plane * size;
        const T *restrict g = c->x + plane * windows;
        const int64_t *restrict places = c->places + plane * windows;
        memset(out, 0, (size_t)size * sizeof(T));
        for (int64_t i = 0; i < windows; i++) {
            const uint64_t place = place_of(places + i);
            if (place < (uint64_t)size) out[place] += g[i];
            else *c->outside = 1;
        }
    }
}

static void NAME(max_pool2d_backward)(const Args *k) {
    Flag outside = 0;
    NAME(Pool) c = {.out = k->p[0], .x = k->p[1], .places = k->p[2], .h = k->n[1], .w = k->n[2],
                    .outside = &outside};
    split(NAME(max_pool2d_backward_step), &c, k->n[0], team(k, k->n[0] * (c.h + c.w)));
    if (outside) *k->error = "index out of range";
}

/* The same where the channels vary fastest. */
static void NAME(max_pixels_backward_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Pool) *c = context;
    const int64_t size = c->h, windows = c->w, channels = c->channels;
    for (int64_t image = begin; image < end; image++) {
        T *restrict out = c->out + image * size * channels;
        const T *restrict g = c->x + image * windows * channels;
        const int64_t *restrict places = c->places + image * windows * channels;
        memset(out, 0, (size_t)(size * channels) * sizeof(T));
        for (int64_t i = 0; i < windows; i++, g += channels, places += channels)
            for (int64_t k = 0; k < channels; k++) {
                const uint64_t place = place_of(places + k);
                if (place < (uint64_t)size) out[(int64_t)place * channels + k] += g[k];
                else *c->outside = 1;
            }
    }
}

static void NAME(max_pool2d_pixels_backward)(const Args *k) {
    Flag outside = 0;
    NAME(Pool) c = {.out = k->p[0], .x = k->p[1], .places = k->p[2], .h = k->n[1], .w = k->n[2],
                    .channels = k->n[3], .outside = &outside};
    split(NAME(max_pixels_backward_step), &c, k->n[0], team(k, k->n[0] * c.channels * (c.h + c.w)));
    if (outside) *k->error = "index out of range";
}

/* How many elements the mean of window i along a dimension divides by. */
INLINE int64_t NAME(extent)(int64_t i, int64_t size, int64_t kernel, int64_t stride, int64_t pad,
                            int include_pad) {
    int64_t start = i * stride - pad, end = start + kernel;
    if (end > size + pad) end = size + pad;
    if (!include_pad) {
        if (start < 0) start = 0;
        if (end > size) end = size;
    }
    return end - start;
}

INLINE void NAME(add_tap)(const T *restrict x, T *restrict sum, int64_t n, int64_t stride) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) sum[i] += x[i * stride];
}

WIDE static T NAME(sum_box)(const T *x, int64_t rows, int64_t n, int64_t apart) {
    T sum = 0;
    for (int64_t row = 0; row < rows; row++, x += apart) {
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < n; i++) sum += x[i];
    }
    return sum;
}

/* The rows [upper, lower) of each window of a line, added up window by window. */
INLINE void NAME(add_boxes)(const NAME(Pool) * c, const T *x, T *sum, int64_t upper, int64_t lower) {
    const int is_quick = IS_QUARTERED && sizeof(T) == 4;
    for (int64_t i = 0; i < c->ow; i++) {
        int64_t left, right;
        NAME(taps_inside)(i * c->sw - c->pw, 1, c->kw, c->w, &left, &right);
        const T *from = x + upper * c->w + i * c->sw - c->pw + left;
        const int are_rows = right - left == c->w;
        const int64_t n = are_rows ? (lower - upper) * c->w : right - left, rows = are_rows ? 1 : lower - upper;
        if (upper >= lower || left >= right) continue;
        sum[i] = is_quick ? (T)sum_box_v((const void *)from, rows, n, c->w) : NAME(sum_box)(from, rows, n, c->w);
    }
}

/* Those rows added up tap by tap. */
INLINE void NAME(add_taps)(const NAME(Pool) * c, const T *x, T *sum, int64_t upper, int64_t lower) {
    int64_t left, right;
    NAME(taps_of_row)(c, &left, &right);
    for (int64_t row = upper; row < lower; row++)
        for (int64_t j = left; j < right; j++) {
            int64_t first, last;
            NAME(inside)(c, j - c->pw, &first, &last);
            const T *from = x + row * c->w + first * c->sw + j - c->pw;
            if (first >= last) continue;
            if (c->sw == 1) NAME(add_tap)(from, sum + first, last - first, 1);
            else if (c->sw == 2) NAME(add_tap)(from, sum + first, last - first, 2);
            else NAME(add_tap)(from, sum + first, last - first, c->sw);
        }
}

WIDE static void NAME(avg_pool2d_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Pool) *c = context;
    for (int64_t line = begin; line < end; line++) {
        const int64_t plane = line / c->oh, y = line % c->oh, top = y * c->sh - c->ph;
        const T *x = c->x + plane * c->h * c->w;
        T *sum = c->out + line * c->ow;
        for (int64_t i = 0; i < c->ow; i++) sum[i] = 0;
        int64_t upper, lower;
        NAME(taps_inside)(top, 1, c->kh, c->h, &upper, &lower);
        if (NAME(are_few)(c)) NAME(add_boxes)(c, x, sum, top + upper, top + lower);
        else NAME(add_taps)(c, x, sum, top + upper, top + lower);
        const int64_t rows = NAME(extent)(y, c->h, c->kh, c->sh, c->ph, c->include_pad);
        for (int64_t i = 0; i < c->ow; i++) {
            int64_t columns = NAME(extent)(i, c->w, c->kw, c->sw, c->pw, c->include_pad);
            sum[i] /= c->divisor != 0 ? (T)c->divisor : (T)((double)rows * (double)columns);
        }
    }
}

/* The same of images whose channels vary fastest. */
WIDE static void NAME(avg_pixels_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Pool) *c = context;
    const int64_t n = c->channels;
    for (int64_t line = begin; line < end; line++) {
        const int64_t image = line / c->oh, y = line % c->oh, top = y * c->sh - c->ph;
        const int64_t rows = NAME(extent)(y, c->h, c->kh, c->sh, c->ph, c->include_pad);
        int64_t upper, lower, left, right;
        NAME(taps_inside)(top, 1, c->kh, c->h, &upper, &lower);
        for (int64_t window = 0; window < c->ow; window++) {
            const int64_t start = window * c->sw - c->pw;
            const int64_t columns = NAME(extent)(window, c->w, c->kw, c->sw, c->pw, c->include_pad);
            const T divisor = c->divisor != 0 ? (T)c->divisor : (T)((double)rows * (double)columns);
            T *restrict sum = c->out + (line * c->ow + window) * n;
            NAME(taps_inside)(start, 1, c->kw, c->w, &left, &right);
            for (int64_t k = 0; k < n; k++) sum[k] = 0;
            for (int64_t i = upper; i < lower; i++)
                for (int64_t j = left; j < right; j++)
                    NAME(add_tap)(c->x + ((image * c->h + top + i) * c->w + start + j) * n, sum, n, 1);
#pragma omp simd
            for (int64_t k = 0; k < n; k++) sum[k] /= divisor;
        }
    }
}

/* Windows of two by two that share nothing and lie inside. */
WIDE static void NAME(quarters_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Pool) *c = context;
    const T divisor = c->divisor != 0 ? (T)c->divisor : 4;
    for (int64_t line = begin; line < end; line++) {
        const int64_t plane = line / c->oh, y = line % c->oh;
        const T *restrict x = c->x + (plane * c->h + 2 * y) * c->w, *restrict below = x + c->w;
        T *restrict out = c->out + line * c->ow;
        for (int64_t i = 0; i < c->ow; i++)
            out[i] = ((((T)0 + x[2 * i]) + x[2 * i + 1]) + below[2 * i] + below[2 * i + 1]) / divisor;
    }
}

WIDE static void NAME(avg_pool2d_backward_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Pool) *c = context;
    for (int64_t plane = begin; plane < end; plane++) {
        T *out = c->out + plane * c->h * c->w;
        const T *g = c->x + plane * c->oh * c->ow;
        memset(out, 0, (size_t)(c->h * c->w) * sizeof(T));
        for (int64_t y = 0; c->ow > 0 && y < c->oh; y++) {
            const int64_t rows = NAME(extent)(y, c->h, c->kh, c->sh, c->ph, c->include_pad);
            const int64_t top = y * c->sh - c->ph, bottom = top + c->kh;
            for (int64_t i = 0; i < c->ow; i++) {
                const int64_t columns =
                    NAME(extent)(i, c->w, c->kw, c->sw, c->pw, c->include_pad);
                const T divisor = c->divisor != 0 ? (T)c->divisor : (T)((double)rows * (double)columns);
                const T share = g[y * c->ow + i] / divisor;
                int64_t left = i * c->sw - c->pw, right = left + c->kw;
                if (left < 0) left = 0;
                if (right > c->w) right = c->w;
                for (int64_t row = top < 0 ? 0 : top; row < bottom && row < c->h; row++)
                    for (int64_t j = left; j < right; j++) out[row * c->w + j] += share;
            }
        }
    }
}

/* The same where the channels vary fastest. */
#define PIECE 512
WIDE static void NAME(avg_pixels_backward_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Pool) *c = context;
    const int64_t n = c->channels;
    T share[PIECE];
    for (int64_t image = begin; image < end; image++) {
        T *out = c->out + image * c->h * c->w * n;
        memset(out, 0, (size_t)(c->h * c->w * n) * sizeof(T));
        for (int64_t y = 0; c->ow > 0 && y < c->oh; y++) {
            const int64_t rows = NAME(extent)(y, c->h, c->kh, c->sh, c->ph, c->include_pad);
            const int64_t top = y * c->sh - c->ph;
            int64_t upper, lower, left, right;
            NAME(taps_inside)(top, 1, c->kh, c->h, &upper, &lower);
            for (int64_t window = 0; window < c->ow; window++) {
                const int64_t start = window * c->sw - c->pw;
                const int64_t columns = NAME(extent)(window, c->w, c->kw, c->sw, c->pw, c->include_pad);
                const T divisor = c->divisor != 0 ? (T)c->divisor : (T)((double)rows * (double)columns);
                const T *g = c->x + ((image * c->oh + y) * c->ow + window) * n;
                NAME(taps_inside)(start, 1, c->kw, c->w, &left, &right);
                for (int64_t from = 0; from < n; from += PIECE) {
                    const int64_t some = n - from < PIECE ? n - from : PIECE;
#pragma omp simd
                    for (int64_t k = 0; k < some; k++) share[k] = g[from + k] / divisor;
                    for (int64_t i = upper; i < lower; i++)
                        for (int64_t j = left; j < right; j++)
                            NAME(add_tap)(share, out + ((top + i) * c->w + start + j) * n + from, some, 1);
                }
            }
        }
    }
}
#undef PIECE

/* Of planes, or of images with so many channels. */
INLINE NAME(Pool) NAME(averages)(const Args *k, int has_channels) {
    const int64_t *n = k->n, *how = n + 5 + has_channels;
    return (NAME(Pool)){.out = k->p[0], .x = k->p[1], .h = n[1], .w = n[2], .oh = n[3], .ow = n[4],
                        .channels = has_channels ? n[5] : 1, .kh = how[0], .kw = how[1], .sh = how[2],
                        .sw = how[3], .ph = how[4], .pw = how[5], .dh = 1, .dw = 1,
                        .include_pad = (int)how[6], .divisor = k->x[0]};
}

static void NAME(avg_pool2d)(const Args *k) {
    const NAME(Pool) c = NAME(averages)(k, 0);
    if (!NAME(are_windows)(k, &c)) return;
    const int is_quartered = c.kh == 2 && c.kw == 2 && c.sh == 2 && c.sw == 2 && c.ph == 0 && c.pw == 0 &&
                             2 * c.oh <= c.h && 2 * c.ow <= c.w;
    split(is_quartered ? NAME(quarters_step) : NAME(avg_pool2d_step), &c, c.ow == 0 ? 0 : k->n[0] * c.oh,
          team(k, times(k->n[0] * c.oh * c.ow, times(c.kh, c.kw))));
}

static void NAME(avg_pool2d_backward)(const Args *k) {
    const NAME(Pool) c = NAME(averages)(k, 0);
    if (!NAME(are_windows)(k, &c)) return;
    split(NAME(avg_pool2d_backward_step), &c, k->n[0],
          team(k, times(k->n[0] * c.oh * c.ow, times(c.kh, c.kw))));
}

static void NAME(avg_pool2d_pixels)(const Args *k) {
    const NAME(Pool) c = NAME(averages)(k, 1);
    if (!NAME(are_windows)(k, &c)) return;
    split(NAME(avg_pixels_step), &c, c.ow == 0 ? 0 : k->n[0] * c.oh,
          team(k, times(k->n[0] * c.oh * c.ow * c.channels, times(c.kh, c.kw))));
}

static void NAME(avg_pool2d_pixels_backward)(const Args *k) {
    const NAME(Pool) c = NAME(averages)(k, 1);
    if (!NAME(are_windows)(k, &c)) return;
    split(NAME(avg_pixels_backward_step), &c, k->n[0],
          team(k, times(k->n[0] * c.oh * c.ow * c.channels, times(c.kh, c.kw))));
}
