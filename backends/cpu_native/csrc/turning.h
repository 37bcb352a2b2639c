/* Matrices turned with AVX-512, sixteen by sixteen numbers at a time. */
#ifndef FLAMBEAU_TURNING_H
#define FLAMBEAU_TURNING_H

#include "avx512.h"
#include "native.h"

#if HAS_AVX512
#define FORCED static inline __attribute__((always_inline)) AVX512
#define LANES 16

/* The first `count` lanes. */
FORCED __mmask16 lanes(int64_t count) {
    return count >= LANES ? 0xFFFF : (__mmask16)((1u << count) - 1);
}

/* The transpose of sixteen vectors. */
FORCED void turn(__m512 *r) {
    __m512 t[LANES];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < LANES; i += 4) {
        const __m512d a = _mm512_castps_pd(t[i]), b = _mm512_castps_pd(t[i + 1]);
        const __m512d c = _mm512_castps_pd(t[i + 2]), d = _mm512_castps_pd(t[i + 3]);
        r[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        r[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        r[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        r[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xDD);
        t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xDD);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xDD);
        r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xDD);
    }
}

/* out[j][i] = a[i][j] (+ bias[i]); up to `filled` columns of `out` are zeros where `a` has no row. */
AVX512 static void turned(float *out, int64_t out_step, const float *a, int64_t a_step, int64_t rows,
                          int64_t columns, int64_t filled, const float *bias, int relu) {
    for (int64_t j0 = 0; j0 < columns; j0 += LANES)
        for (int64_t i0 = 0; i0 < filled; i0 += LANES) {
            __m512 v[LANES];
            const __mmask16 read = lanes(columns - j0), written = lanes(filled - i0);
#pragma GCC unroll 16
            for (int i = 0; i < LANES; i++)
                v[i] = i0 + i < rows ? _mm512_maskz_loadu_ps(read, a + (i0 + i) * a_step + j0)
                                     : _mm512_setzero_ps();
            turn(v);
            const __m512 more = bias == NULL ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(written, bias + i0);
            for (int j = 0; j < LANES && j0 + j < columns; j++) {
                __m512 line = bias == NULL ? v[j] : _mm512_add_ps(v[j], more);
                if (relu) line = _mm512_max_ps(_mm512_setzero_ps(), line);
                _mm512_mask_storeu_ps(out + (j0 + j) * out_step + i0, written, line);
            }
        }
}
#endif
#endif
