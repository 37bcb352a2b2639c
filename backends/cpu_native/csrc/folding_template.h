typedef struct {
    const T *columns;
    T *out;
    Windows down, along;
} NAME(Folding);

WIDE static void NAME(col2im_step)(const void *context, int64_t begin, int64_t end) {
    const NAME(Folding) *c = context;
    const Windows *down = &c->down, *along = &c->along;
    const int64_t count = down->count * along->count, step = along->stride;
    for (int64_t plane = begin; plane < end; plane++) {
        T *image = c->out + plane * down->size * along->size;
        const T *column = c->columns + plane * down->taps * along->taps * count;
        memset(image, 0, (size_t)(down->size * along->size) * sizeof(T));
        if (count < 1) continue;
        for (int64_t i = 0; i < down->taps; i++) {
            int64_t top;
            const int64_t bottom = windows_inside(down, i, &top);
            for (int64_t j = 0; j < along->taps; j++, column += count) {
                int64_t left;
                const int64_t right = windows_inside(along, j, &left);
                for (int64_t y = top; y < bottom; y++) {
                    const int64_t line = y * down->stride + i * down->dilation - down->padding;
                    const T *restrict a = column + y * along->count;
                    T *restrict row = image + line * along->size;
                    const int64_t start = j * along->dilation - along->padding;
                    if (step == 1)
#pragma omp simd
                        for (int64_t x = left; x < right; x++) row[x + start] += a[x];
                    else
                        for (int64_t x = left; x < right; x++) row[x * step + start] += a[x];
                }
            }
        }
    }
}

/* Planes; elements of a window and windows along both dimensions; sizes, dilations, paddings and strides. */
static void NAME(col2im)(const Args *k) {
    const int64_t *n = k->n;
    const NAME(Folding) c = {.out = k->p[0], .columns = k->p[1],
                             .down = {n[1], n[3], n[5], n[7], n[9], n[11]},
                             .along = {n[2], n[4], n[6], n[8], n[10], n[12]}};
    if (!are_countable(&c.down) || !are_countable(&c.along)) {
        *k->failure = "windows reach too far";
        return;
    }
    if (c.down.size < 1 || c.along.size < 1) return;
    split(NAME(col2im_step), &c, n[0], team(k, times(n[0], times(c.down.taps * c.along.taps, c.down.count * c.along.count))));
}
