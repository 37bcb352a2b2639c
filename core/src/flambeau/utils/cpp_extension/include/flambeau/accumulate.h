// In which types numbers are computed and summed.
#pragma once

#include <flambeau/scalar_type.h>

namespace at {

// Of two bytes in float, whatever the device; others in themselves.
template <class T>
struct OpMathType {
  using type = std::conditional_t<(sizeof(T) == 2 && !std::is_arithmetic_v<T>), float, T>;
};
template <class T>
using opmath_type = typename OpMathType<T>::type;

// Sums of whole numbers in 64 bits; of floats, but on CUDA, in double.
template <class T, bool is_cuda>
struct AccumulateType {
  using type = std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int64_t,
                                  std::conditional_t<std::is_floating_point_v<T> && !is_cuda, double,
                                                     opmath_type<T>>>;
};
template <class T, bool is_cuda>
struct AccumulateType<std::complex<T>, is_cuda> {
  using type = std::complex<typename AccumulateType<T, is_cuda>::type>;
};
template <class T, bool is_cuda>
using acc_type = typename AccumulateType<T, is_cuda>::type;

}  // namespace at
