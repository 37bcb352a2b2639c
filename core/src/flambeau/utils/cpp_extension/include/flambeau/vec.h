// Thirty-two bytes of numbers at a time, as kernels for CPUs are written with them; loops of a fixed
// length, which compilers turn into instructions for vectors.
#pragma once

#include <flambeau/accumulate.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace at {
namespace vec {

template <class T>
class Vectorized {
 public:
  using value_type = T;
  using size_type = int;
  static constexpr int size() { return sizeof(T) < 32 ? 32 / int(sizeof(T)) : 1; }

  Vectorized() : values{} {}
  Vectorized(T value) { std::fill_n(values, size(), value); }
  template <class... Values, class = std::enable_if_t<(sizeof...(Values) == size() && size() > 1)>>
  Vectorized(Values... given) : values{T(given)...} {}

  // Of fewer than all, the rest is zero.
  static Vectorized loadu(const void* from, int64_t count = size()) {
    Vectorized made;
    std::memcpy(static_cast<void*>(made.values), from, size_t(count) * sizeof(T));
    return made;
  }
  void store(void* to, int64_t count = size()) const {
    std::memcpy(to, static_cast<const void*>(values), size_t(count) * sizeof(T));
  }
  // The first `count` of b, the rest of a.
  static Vectorized set(const Vectorized& a, const Vectorized& b, int64_t count = size()) {
    Vectorized made = a;
    std::copy_n(b.values, count, made.values);
    return made;
  }
  template <class Step = T>
  static Vectorized arange(T base = T(0), Step step = Step(1)) {
    Vectorized made;
    for (int i = 0; i < size(); ++i) made.values[i] = T(base + T(i) * step);
    return made;
  }
  // Of b where a bit of the mask is set.
  template <int64_t mask>
  static Vectorized blend(const Vectorized& a, const Vectorized& b) {
    Vectorized made = a;
    for (int i = 0; i < size(); ++i)
      if (mask >> i & 1) made.values[i] = b.values[i];
    return made;
  }

  const T& operator[](int at) const { return values[at]; }
  T& operator[](int at) { return values[at]; }
  operator const T*() const { return values; }

  template <class Op>
  Vectorized map(Op op) const {
    Vectorized made;
    for (int i = 0; i < size(); ++i) made.values[i] = T(op(values[i]));
    return made;
  }
  template <class Op>
  Vectorized with(const Vectorized& other, Op op) const {
    Vectorized made;
    for (int i = 0; i < size(); ++i) made.values[i] = T(op(values[i], other.values[i]));
    return made;
  }

#define FLAMBEAU_VEC_OF_ONE(name, expression)                                   \
  Vectorized name() const {                                                     \
    return map([](T x) {                                                        \
      using std::abs, std::ceil, std::cos, std::exp, std::floor, std::log;      \
      using std::sin, std::sqrt, std::tanh, std::trunc;                         \
      return expression;                                                        \
    });                                                                         \
  }
  FLAMBEAU_VEC_OF_ONE(neg, -x)
  FLAMBEAU_VEC_OF_ONE(abs, x < T(0) ? -x : x)
  FLAMBEAU_VEC_OF_ONE(reciprocal, T(1) / x)
  FLAMBEAU_VEC_OF_ONE(sqrt, sqrt(opmath_type<T>(x)))
  FLAMBEAU_VEC_OF_ONE(rsqrt, opmath_type<T>(1) / sqrt(opmath_type<T>(x)))
  FLAMBEAU_VEC_OF_ONE(exp, exp(opmath_type<T>(x)))
  FLAMBEAU_VEC_OF_ONE(log, log(opmath_type<T>(x)))
  FLAMBEAU_VEC_OF_ONE(tanh, tanh(opmath_type<T>(x)))
  FLAMBEAU_VEC_OF_ONE(sin, sin(opmath_type<T>(x)))
  FLAMBEAU_VEC_OF_ONE(cos, cos(opmath_type<T>(x)))
  FLAMBEAU_VEC_OF_ONE(floor, floor(opmath_type<T>(x)))
  FLAMBEAU_VEC_OF_ONE(ceil, ceil(opmath_type<T>(x)))
  FLAMBEAU_VEC_OF_ONE(trunc, trunc(opmath_type<T>(x)))
#undef FLAMBEAU_VEC_OF_ONE

 private:
  alignas(32) T values[size()];
};

#define FLAMBEAU_VEC_OPERATOR(op)                                                             \
  template <class T>                                                                          \
  Vectorized<T> operator op(const Vectorized<T>& a, const Vectorized<T>& b) {                 \
    return a.with(b, [](T x, T y) { return x op y; });                                        \
  }                                                                                           \
  template <class T>                                                                          \
  Vectorized<T>& operator op##=(Vectorized<T>& a, const Vectorized<T>& b) {                   \
    return a = a op b;                                                                        \
  }
FLAMBEAU_VEC_OPERATOR(+)
FLAMBEAU_VEC_OPERATOR(-)
FLAMBEAU_VEC_OPERATOR(*)
FLAMBEAU_VEC_OPERATOR(/)
#undef FLAMBEAU_VEC_OPERATOR

// NaN if either is.
template <class T>
Vectorized<T> maximum(const Vectorized<T>& a, const Vectorized<T>& b) {
  return a.with(b, [](T x, T y) { return x != x || x > y ? x : y; });
}
template <class T>
Vectorized<T> minimum(const Vectorized<T>& a, const Vectorized<T>& b) {
  return a.with(b, [](T x, T y) { return x != x || x < y ? x : y; });
}
// a · b + c.
template <class T>
Vectorized<T> fmadd(const Vectorized<T>& a, const Vectorized<T>& b, const Vectorized<T>& c) {
  return a * b + c;
}

// Of the first `count` of one vector.
template <class T, class Op>
T vec_reduce_all(const Op& op, Vectorized<T> vector, int64_t count = Vectorized<T>::size()) {
  using Vec = Vectorized<T>;
  T total = vector[0];
  for (int64_t i = 1; i < count; ++i) {
    Vec x(total), y(vector[int(i)]);
    total = op(x, y)[0];
  }
  return total;
}

// Of n numbers each, which operations are given a vector at a time.
template <class T, class Op, class... From>
void map_of(const Op& op, T* to, int64_t n, const From*... from) {
  using Vec = Vectorized<T>;
  for (int64_t i = 0; i < n; i += Vec::size()) {
    const auto count = std::min<int64_t>(Vec::size(), n - i);
    // Operations may take their arguments by reference.
    auto parts = std::make_tuple(Vec::loadu(from + i, count)...);
    std::apply([&](auto&... each) { op(each...).store(to + i, count); }, parts);
  }
}
template <class T, class Op>
void map(const Op& op, T* to, const T* a, int64_t n) {
  map_of(op, to, n, a);
}
template <class T, class Op>
void map2(const Op& op, T* to, const T* a, const T* b, int64_t n) {
  map_of(op, to, n, a, b);
}
template <class T, class Op>
void map3(const Op& op, T* to, const T* a, const T* b, const T* c, int64_t n) {
  map_of(op, to, n, a, b, c);
}

// What `reduce` makes of n numbers, mapped before.
template <class T, class Map, class Op>
T map_reduce_all(const Map& map, const Op& reduce, const T* from, int64_t n) {
  using Vec = Vectorized<T>;
  auto part = [&](int64_t i, int64_t count) {
    Vec x = Vec::loadu(from + i, count);
    return Vec(map(x));
  };
  if (n < Vec::size()) return vec_reduce_all<T>(reduce, part(0, n), n);
  Vec total = part(0, Vec::size());
  for (int64_t i = Vec::size(); i < n; i += Vec::size()) {
    const auto count = std::min<int64_t>(Vec::size(), n - i);
    Vec x = part(i, count);
    total = Vec::set(total, Vec(reduce(total, x)), count);
  }
  return vec_reduce_all<T>(reduce, total);
}
template <class T, class Op>
T reduce_all(const Op& op, const T* from, int64_t n) {
  return map_reduce_all<T>([](Vectorized<T>& x) { return x; }, op, from, n);
}

}  // namespace vec

// Their name before 1.10.
namespace vec256 {
using namespace vec;
template <class T>
using Vec256 = vec::Vectorized<T>;
}  // namespace vec256
}  // namespace at
