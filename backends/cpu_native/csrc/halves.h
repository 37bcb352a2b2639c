/* Floats of 16 bits, one at a time and without branches, so that loops over them become vectors. */
#ifndef FLAMBEAU_HALVES_H
#define FLAMBEAU_HALVES_H

#include "vector_math.h"

typedef uint16_t Bfloat;

INLINE float from_bf16(Bfloat x) { return bits_to_float((int32_t)((uint32_t)x << 16)); }

/* To the nearest, ties to even; a NaN keeps its sign and stays a NaN. */
INLINE Bfloat to_bf16(float x) {
    uint32_t bits = (uint32_t)float_to_bits(x);
    uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    return (Bfloat)(x != x ? (bits >> 16) | 0x40 : rounded);
}

/* Exact. */
INLINE float from_f16(uint16_t x) {
    const uint32_t sign = (uint32_t)(x & 0x8000) << 16, bits = (uint32_t)(x & 0x7FFF) << 13;
    const uint32_t quiet = bits > 0x0F800000 ? 0x400000 : 0;
    const uint32_t normal = bits + (bits >= 0x0F800000 ? 0x70000000 : 0x38000000);
    /* Of a subnormal number the digits are those of an integer. */
    const uint32_t small = (uint32_t)float_to_bits((float)(int32_t)(x & 0x3FF) * 0x1p-24f);
    return bits_to_float((int32_t)(sign | quiet | (bits < 0x00800000 ? small : normal)));
}

/* As to_bf16. */
INLINE uint16_t to_f16(float x) {
    const uint32_t bits = (uint32_t)float_to_bits(x), magnitude = bits & 0x7FFFFFFF;
    const uint32_t normal = (magnitude - 0x38000000 + 0xFFF + ((magnitude >> 13) & 1)) >> 13;
    /* Beside 1/2 the last digit of a float is that of a subnormal number, so that the sum rounds. */
    const uint32_t sum = (uint32_t)float_to_bits(bits_to_float((int32_t)magnitude) + 0.5f);
    uint32_t found = magnitude < 0x38800000 ? sum - 0x3F000000 : normal;
    found = magnitude >= 0x477FF000 ? 0x7C00 : found; /* 65520: beyond the greatest, when rounded */
    found = magnitude > 0x7F800000 ? 0x7E00 | ((magnitude >> 13) & 0x3FF) : found;
    return (uint16_t)(found | ((bits >> 16) & 0x8000));
}

/* Converts `n` numbers; `to` may be streamed where `streams` says so and it begins a line of the cache. */
typedef void (*Convert)(void *to, const void *from, int64_t n, int streams);

/* Between float32 and 16 bits: those of bfloat16, or of float16. */
Convert widening(int is_bfloat);
Convert narrowing(int is_bfloat);

#endif
