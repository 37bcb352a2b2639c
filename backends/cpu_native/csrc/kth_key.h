/* The k-th of 32-bit keys with AVX-512, sixteen keys at a time. */
#ifndef FLAMBEAU_KTH_KEY_H
#define FLAMBEAU_KTH_KEY_H

#include "avx512.h"
#include "native.h"

#if HAS_AVX512
#define KEYS 16
#define MOST_ROUNDS 64

static int compare_keys(const void *a, const void *b) {
    uint32_t x, y;
    memcpy(&x, a, sizeof x), memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static inline uint32_t key_at(const void *keys, int64_t i) {
    uint32_t key;
    memcpy(&key, (const char *)keys + i * (int64_t)sizeof key, sizeof key);
    return key;
}

static inline __mmask16 first_keys(int64_t count) { return count >= KEYS ? 0xFFFF : (__mmask16)((1u << count) - 1); }

/* The k-th smallest of n keys, from 0: Hoare's quickselect.  Of each round's keys only those of the side where it is
   are kept; what many rounds have not found is sorted. */
AVX512 static uint32_t kth_key(void *keys, int64_t n, int64_t k) {
    char *at = keys;
    for (int rounds = 0; n > 1; rounds++) {
        if (rounds == MOST_ROUNDS) {
            qsort(keys, (size_t)n, sizeof(uint32_t), compare_keys);
            return key_at(keys, k);
        }
        const uint32_t a = key_at(keys, n / 4), b = key_at(keys, n / 2), c = key_at(keys, n - 1 - n / 4);
        const uint32_t low = a < b ? a : b, high = a < b ? b : a, pivot = c < low ? low : c > high ? high : c;
        const __m512i all = _mm512_set1_epi32((int)pivot);
        int64_t less = 0, equal = 0, kept = 0;
        for (int64_t i = 0; i < n; i += KEYS) {
            const __mmask16 some = first_keys(n - i);
            const __m512i x = _mm512_maskz_loadu_epi32(some, at + i * 4);
            less += __builtin_popcount(_mm512_mask_cmplt_epu32_mask(some, x, all));
            equal += __builtin_popcount(_mm512_mask_cmpeq_epu32_mask(some, x, all));
        }
        if (k >= less && k < less + equal) return pivot;
        const int is_before = k < less;
        for (int64_t i = 0; i < n; i += KEYS) { /* what is written has been read */
            const __mmask16 some = first_keys(n - i);
            const __m512i x = _mm512_maskz_loadu_epi32(some, at + i * 4);
            const __mmask16 these = is_before ? _mm512_mask_cmplt_epu32_mask(some, x, all)
                                              : _mm512_mask_cmpgt_epu32_mask(some, x, all);
            const int count = __builtin_popcount(these);
            _mm512_mask_storeu_epi32(at + kept * 4, first_keys(count), _mm512_maskz_compress_epi32(these, x));
            kept += count;
        }
        if (!is_before) k -= less + equal;
        n = kept;
    }
    return key_at(keys, 0);
}
#endif
#endif
