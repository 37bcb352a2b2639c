/* Sliding windows of images, given as columns, added where they lie. */
#include "native.h"

/* Windows along a dimension of an image: element `tap` of window `at` is at * stride + tap * dilation - padding. */
typedef struct {
    int64_t taps, count, size, dilation, padding, stride;
} Windows;

/* Whether places of all elements are numbers, also of those outside. */
static int are_countable(const Windows *w) {
    int64_t last, tap;
    return w->dilation >= 0 && w->padding >= 0 && w->stride > 0 && w->padding < INT64_MAX / 4 &&
           w->size < INT64_MAX / 4 && !__builtin_mul_overflow(w->count, w->stride, &last) && last < INT64_MAX / 4 &&
           !__builtin_mul_overflow(w->taps, w->dilation, &tap) && tap < INT64_MAX / 4;
}

/* Which windows have their element `tap` inside: from `*first` to before the result. */
INLINE int64_t windows_inside(const Windows *w, int64_t tap, int64_t *first) {
    const int64_t start = tap * w->dilation - w->padding, room = w->size - 1 - start;
    *first = start < 0 ? (-start + w->stride - 1) / w->stride : 0;
    const int64_t end = room < 0 ? 0 : room / w->stride + 1;
    return end < w->count ? end : w->count;
}

#define TEMPLATE "folding_template.h"
#include "both.h"

#define ARGUMENTS "wriiiiiiiiiiiii"
const Row folding_rows[] = {
    {"col2im_f32", ARGUMENTS, "t056,t01234", col2im_f32},
    {"col2im_f64", ARGUMENTS, "t056,t01234", col2im_f64},
    {NULL, NULL, NULL, NULL},
};
