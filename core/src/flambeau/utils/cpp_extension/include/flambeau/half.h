// Numbers of two bytes, and what C++ calls the other dtypes.
#pragma once

#include <cfloat>
#include <climits>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <ostream>
#include <type_traits>

#if defined(__CUDACC__) || defined(__HIPCC__)
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#else
#define C10_HOST_DEVICE
#define C10_DEVICE
#define C10_HOST
#endif

namespace c10 {
namespace detail {

C10_HOST_DEVICE inline float float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

C10_HOST_DEVICE inline uint32_t bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// IEEE 754 binary16, rounded to nearest, ties to even.
C10_HOST_DEVICE inline uint16_t half_bits(float value) {
  const uint32_t bits = bits_of_float(value);
  const uint16_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;    // NaN
  if (magnitude >= 0x477ff000) return sign | 0x7c00;   // 65520 and more: infinity
  if (magnitude < 0x38800000) {                        // below 2^-14: multiples of 2^-24
    // Adding 0.5 leaves as many bits after the point as a subnormal has, and rounds to them.
    return sign | (bits_of_float(float_of_bits(magnitude) + 0.5f) - 0x3f000000);
  }
  const uint32_t odd = (magnitude >> 13) & 1;
  return sign | ((magnitude - 0x38000000 + 0xfff + odd) >> 13);
}

C10_HOST_DEVICE inline float half_value(uint16_t bits) {
  const uint32_t sign = uint32_t(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0x1f) return float_of_bits(sign | 0x7f800000 | fraction << 13);
  if (exponent) return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
  return float_of_bits(sign | bits_of_float(fraction * 0x1p-24f));
}

C10_HOST_DEVICE inline uint16_t bfloat16_bits(float value) {
  const uint32_t bits = bits_of_float(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fc0;
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

C10_HOST_DEVICE inline float bfloat16_value(uint16_t bits) {
  return float_of_bits(uint32_t(bits) << 16);
}

// What an operation of a short float and of a T gives.
template <class Short, class T>
using with_short = std::conditional_t<std::is_integral<T>::value, Short, T>;

}  // namespace detail

// A number of two bytes. Sums and products of two are rounded, as are those with an integer;
// with a float or double they are floats or doubles.
#define FLAMBEAU_SHORT_OPERATOR(Name, op)                                                      \
  C10_HOST_DEVICE inline Name operator op(const Name& a, const Name& b) {                      \
    return float(a) op float(b);                                                               \
  }                                                                                            \
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>                   \
  C10_HOST_DEVICE detail::with_short<Name, T> operator op(const Name& a, T b) {                \
    return detail::with_short<Name, T>(a) op detail::with_short<Name, T>(b);                   \
  }                                                                                            \
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>                   \
  C10_HOST_DEVICE detail::with_short<Name, T> operator op(T a, const Name& b) {                \
    return detail::with_short<Name, T>(a) op detail::with_short<Name, T>(b);                   \
  }                                                                                            \
  C10_HOST_DEVICE inline Name& operator op##=(Name& a, const Name& b) { return a = a op b; }

#define FLAMBEAU_SHORT_FLOAT(Name, to_bits, to_value)                                          \
  struct Name {                                                                                \
    struct from_bits_t {};                                                                     \
    static constexpr from_bits_t from_bits() { return {}; }                                    \
    uint16_t x;                                                                                \
    Name() = default;                                                                          \
    constexpr Name(uint16_t bits, from_bits_t) : x(bits) {}                                    \
    C10_HOST_DEVICE Name(float value) : x(detail::to_bits(value)) {}                           \
    C10_HOST_DEVICE operator float() const { return detail::to_value(x); }                     \
  };                                                                                           \
  FLAMBEAU_SHORT_OPERATOR(Name, +)                                                             \
  FLAMBEAU_SHORT_OPERATOR(Name, -)                                                             \
  FLAMBEAU_SHORT_OPERATOR(Name, *)                                                             \
  FLAMBEAU_SHORT_OPERATOR(Name, /)                                                             \
  C10_HOST_DEVICE inline Name operator-(const Name& a) { return -float(a); }                   \
  inline std::ostream& operator<<(std::ostream& stream, Name value) {                          \
    return stream << float(value);                                                             \
  }

FLAMBEAU_SHORT_FLOAT(Half, half_bits, half_value)
FLAMBEAU_SHORT_FLOAT(BFloat16, bfloat16_bits, bfloat16_value)
#undef FLAMBEAU_SHORT_FLOAT
#undef FLAMBEAU_SHORT_OPERATOR

template <class T>
using complex = std::complex<T>;

}  // namespace c10

namespace std {

template <>
class numeric_limits<c10::Half> {
 public:
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true;
  static constexpr int digits = 11;
  static constexpr c10::Half min() { return {0x0400, c10::Half::from_bits()}; }
  static constexpr c10::Half max() { return {0x7bff, c10::Half::from_bits()}; }
  static constexpr c10::Half lowest() { return {0xfbff, c10::Half::from_bits()}; }
  static constexpr c10::Half epsilon() { return {0x1400, c10::Half::from_bits()}; }
  static constexpr c10::Half infinity() { return {0x7c00, c10::Half::from_bits()}; }
  static constexpr c10::Half quiet_NaN() { return {0x7e00, c10::Half::from_bits()}; }
};

template <>
class numeric_limits<c10::BFloat16> {
 public:
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true;
  static constexpr int digits = 8;
  static constexpr c10::BFloat16 min() { return {0x0080, c10::BFloat16::from_bits()}; }
  static constexpr c10::BFloat16 max() { return {0x7f7f, c10::BFloat16::from_bits()}; }
  static constexpr c10::BFloat16 lowest() { return {0xff7f, c10::BFloat16::from_bits()}; }
  static constexpr c10::BFloat16 epsilon() { return {0x3c00, c10::BFloat16::from_bits()}; }
  static constexpr c10::BFloat16 infinity() { return {0x7f80, c10::BFloat16::from_bits()}; }
  static constexpr c10::BFloat16 quiet_NaN() { return {0x7fc0, c10::BFloat16::from_bits()}; }
};

}  // namespace std
