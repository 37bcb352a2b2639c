/* LSTM and GRU, forward and backward: one step, which is what stands between two matrix products, and whole
   sequences with the products. */
#include "avx512.h"
#include "product.h"

#if HAS_AVX512
static void lstm_rows_v(const void *context, int64_t begin, int64_t end);
static void lstm_slopes_v(void *grad, void *over_cell, const void *over, const void *gates, const void *cells,
                          const void *before, int64_t size);
#endif

#define TEMPLATE "recurrent_template.h"
#include "both.h"

#if HAS_AVX512
#define ONE _mm512_set1_ps(1.0f)

/* The same as the loops of the template, by the functions of vectors. */
AVX512 static void lstm_rows_v(const void *context, int64_t begin, int64_t end) {
    const Lstm_f32 *c = context;
    const int64_t size = c->size;
    for (int64_t row = begin; row < end; row++)
        for (int64_t j = 0; j < size; j += 16) {
            const __mmask16 some = size - j >= 16 ? 0xFFFF : (__mmask16)((1u << (size - j)) - 1);
            float *gates = c->gates + row * 4 * size + j, *cell = c->cell + row * size + j;
            const float *x = c->x + row * 4 * size + j;
            __m512 gate[4];
#pragma GCC unroll 4
            for (int g = 0; g < 4; g++) {
                gate[g] = _mm512_maskz_loadu_ps(some, gates + g * size) + _mm512_maskz_loadu_ps(some, x + g * size);
                gate[g] = g == 2 ? tanh_v(gate[g]) : sigmoid_v(gate[g]);
                _mm512_mask_storeu_ps(gates + g * size, some, gate[g]);
            }
            const __m512 next = _mm512_maskz_loadu_ps(some, cell) * gate[1] + gate[0] * gate[2];
            _mm512_mask_storeu_ps(cell, some, next);
            _mm512_mask_storeu_ps(c->cells + row * size + j, some, next);
            _mm512_mask_storeu_ps(c->out + row * size + j, some, tanh_v(next) * gate[3]);
        }
}

/* Of one row; what is given are float32. */
AVX512 static void lstm_slopes_v(void *grad_, void *over_cell_, const void *over_, const void *gates_,
                                 const void *cells_, const void *before_, int64_t size) {
    float *grad = grad_, *over_cell = over_cell_;
    const float *over = over_, *gates = gates_, *cells = cells_, *before = before_;
    for (int64_t j = 0; j < size; j += 16) {
        const __mmask16 some = size - j >= 16 ? 0xFFFF : (__mmask16)((1u << (size - j)) - 1);
        const __m512 i = _mm512_maskz_loadu_ps(some, gates + j), f = _mm512_maskz_loadu_ps(some, gates + size + j);
        const __m512 g = _mm512_maskz_loadu_ps(some, gates + 2 * size + j);
        const __m512 o = _mm512_maskz_loadu_ps(some, gates + 3 * size + j);
        const __m512 squashed = tanh_v(_mm512_maskz_loadu_ps(some, cells + j));
        const __m512 over_h = _mm512_maskz_loadu_ps(some, over + j);
        const __m512 over_c =
            _mm512_maskz_loadu_ps(some, over_cell + j) + over_h * ((ONE - squashed * squashed) * o);
        _mm512_mask_storeu_ps(grad + j, some, over_c * (i * (ONE - i) * g));
        _mm512_mask_storeu_ps(grad + size + j, some,
                              over_c * (f * (ONE - f) * _mm512_maskz_loadu_ps(some, before + j)));
        _mm512_mask_storeu_ps(grad + 2 * size + j, some, over_c * ((ONE - g * g) * i));
        _mm512_mask_storeu_ps(grad + 3 * size + j, some, over_h * (o * (ONE - o) * squashed));
        _mm512_mask_storeu_ps(over_cell + j, some, over_c * f);
    }
}
#endif

#define BOTH(name, arguments, extents)                         \
    {#name "_f32", arguments, extents, name##_f32}, {#name "_f64", arguments, extents, name##_f64}

const Row recurrent_rows[] = {
    BOTH(lstm_step, "wwwwriiii", "4t(0+1)2,t(0+1)2,t12,t(3+1)2,4t(0+1)2"),
    BOTH(lstm_step_backward, "wwwooorrriii",
         "4t(0+1)2,t12,t12,t(0+1)2,t(0+1)2,4t(0+1)2,4t(0+1)2,t(0+1)2,t(0+1)2"),
    BOTH(gru_step, "wwwrroiii", "4t(0+1)2,t12,t(0+1)2,3t12,3t(0+1)2,3t2"),
    BOTH(gru_step_backward, "wwwoorriii", "3t(0+1)2,3t(0+1)2,t12,t(0+1)2,4t(0+1)2,4t(0+1)2,t(0+1)2"),
    BOTH(lstm_sequence, "wwwwwrrriiiii", "4t02,t02,t12,t12,t02,4t02,t42,2d3"),
    BOTH(lstm_sequence_backward, "wwwooorrrrriiiii",
         "4t02,t12,t12,t02,t02,4t02,4t02,t02,t02,4t42,2d3"),
    BOTH(gru_sequence, "wwwwrorriiiii", "4t02,t12,t02,3t12,3t02,3t2,t42,2d3"),
    BOTH(gru_sequence_backward, "wwwwoorrrriiiii", "3t02,3t02,t12,t12,t02,4t02,4t02,t02,3t42,2d3"),
    {NULL, NULL, NULL, NULL},
};
