/* Writing large results past the caches.

   An ordinary store first reads the line that it overwrites.  A result that is larger than the caches
   close to the processor gains nothing by that: what reads it next reads it from memory in any case. */
#ifndef FLAMBEAU_STREAM_H
#define FLAMBEAU_STREAM_H

#include "avx512.h"
#include "native.h"

/* Bytes of a result from which on the sum of two arrays, together with what reads it, is no slower
   (docs/design/native.md has the figures). */
#define STREAMED 3500000

/* Whether a result of so many bytes, of operands of so many, is written past the caches: not where the
   third cache holds them all and is fast. */
int is_streamed(int64_t result, int64_t operands);

#if defined(__x86_64__) && defined(__GNUC__)
#include <emmintrin.h>

/* memcpy to memory that nobody reads soon. */
static inline void stream(char *to, const char *from, size_t bytes) {
    size_t head = -(uintptr_t)to & 15;
    if (head > bytes) head = bytes;
    memcpy(to, from, head);
    to += head, from += head, bytes -= head;
    for (; bytes >= 64; bytes -= 64, to += 64, from += 64) {
        const __m128i *a = (const __m128i *)(const void *)from;
        __m128i *out = (__m128i *)(void *)to;
        __m128i w = _mm_loadu_si128(a), x = _mm_loadu_si128(a + 1), y = _mm_loadu_si128(a + 2),
                z = _mm_loadu_si128(a + 3);
        _mm_stream_si128(out, w);
        _mm_stream_si128(out + 1, x);
        _mm_stream_si128(out + 2, y);
        _mm_stream_si128(out + 3, z);
    }
    memcpy(to, from, bytes);
}

/* Before other threads may look. */
static inline void end_of_stream(void) { _mm_sfence(); }
#else
static inline void stream(char *to, const char *from, size_t bytes) { memcpy(to, from, bytes); }
static inline void end_of_stream(void) {}
#endif

/* memcpy to memory that is read soon: what the C library does with many bytes may write past the caches. */
#if HAS_AVX512
AVX512 static inline void move_lines(char *to, const char *from, size_t bytes) {
    size_t i = 0;
    for (; i + 256 <= bytes; i += 256) {
        const __m512i w = _mm512_loadu_si512(from + i), x = _mm512_loadu_si512(from + i + 64),
                      y = _mm512_loadu_si512(from + i + 128), z = _mm512_loadu_si512(from + i + 192);
        _mm512_storeu_si512(to + i, w);
        _mm512_storeu_si512(to + i + 64, x);
        _mm512_storeu_si512(to + i + 128, y);
        _mm512_storeu_si512(to + i + 192, z);
    }
    memcpy(to + i, from + i, bytes - i);
}
static inline void move(char *to, const char *from, size_t bytes) {
    if (bytes >= 1024 && has_avx512()) move_lines(to, from, bytes);
    else memcpy(to, from, bytes);
}
#else
static inline void move(char *to, const char *from, size_t bytes) { memcpy(to, from, bytes); }
#endif
#endif
