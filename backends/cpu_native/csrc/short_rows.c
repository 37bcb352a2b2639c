/* Rows of few numbers turned into columns. */
#include "short_rows.h"
#include "turning.h"

/* Loops over few columns are compiled for their number: vectors are read whole and their lanes chosen. */
#define TURN(T)                                                                                         \
    INLINE void turn_##T(T *restrict out, const T *restrict a, int64_t rows, int64_t columns) {         \
        for (int64_t j = 0; j < columns; j++)                                                           \
            _Pragma("omp simd") for (int64_t i = 0; i < rows; i++) out[j * rows + i] = a[i * columns + j]; \
    }                                                                                                   \
    WIDE static void turn_rows_##T(T *out, const T *a, int64_t rows, int64_t columns) {                 \
        switch (columns) {                                                                              \
            case 2: turn_##T(out, a, rows, 2); break;                                                   \
            case 3: turn_##T(out, a, rows, 3); break;                                                   \
            case 4: turn_##T(out, a, rows, 4); break;                                                   \
            case 8: turn_##T(out, a, rows, 8); break;                                                   \
            default: turn_##T(out, a, rows, columns);                                                   \
        }                                                                                               \
    }
TURN(uint8_t)
TURN(uint32_t)
TURN(uint64_t)

#if HAS_AVX512
/* The transpose of eight vectors of eight numbers. */
FORCED void turn_eight(__m512d *r) {
    __m512d t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm512_unpacklo_pd(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_pd(r[i], r[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        const __m512d a = _mm512_shuffle_f64x2(t[i], t[i + 2], 0x88), b = _mm512_shuffle_f64x2(t[i], t[i + 2], 0xDD);
        const __m512d c = _mm512_shuffle_f64x2(t[i + 4], t[i + 6], 0x88);
        const __m512d d = _mm512_shuffle_f64x2(t[i + 4], t[i + 6], 0xDD);
        r[i] = _mm512_shuffle_f64x2(a, c, 0x88);
        r[i + 4] = _mm512_shuffle_f64x2(a, c, 0xDD);
        r[i + 2] = _mm512_shuffle_f64x2(b, d, 0x88);
        r[i + 6] = _mm512_shuffle_f64x2(b, d, 0xDD);
    }
}

AVX512 static void turned_eights(double *out, const double *a, int64_t rows, int64_t columns) {
    for (int64_t j0 = 0; j0 < columns; j0 += 8)
        for (int64_t i0 = 0; i0 < rows; i0 += 8) {
            __m512d v[8];
            const __mmask8 read = (__mmask8)lanes(columns - j0), written = (__mmask8)lanes(rows - i0);
#pragma GCC unroll 8
            for (int i = 0; i < 8; i++)
                v[i] = i0 + i < rows ? _mm512_maskz_loadu_pd(read, a + (i0 + i) * columns + j0)
                                     : _mm512_setzero_pd();
            turn_eight(v);
            for (int j = 0; j < 8 && j0 + j < columns; j++)
                _mm512_mask_storeu_pd(out + (j0 + j) * rows + i0, written, v[j]);
        }
}
#endif

void turn_rows(void *out, const void *a, int64_t rows, int64_t columns, size_t size) {
#if HAS_AVX512
    if (columns > 4 && size > 1 && has_avx512()) {
        if (size == 8) turned_eights(out, a, rows, columns);
        else turned(out, rows, a, columns, rows, columns, rows, NULL, 0);
        return;
    }
#endif
    if (size == 1) turn_rows_uint8_t(out, a, rows, columns);
    else if (size == 4) turn_rows_uint32_t(out, a, rows, columns);
    else turn_rows_uint64_t(out, a, rows, columns);
}
