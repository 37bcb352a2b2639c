// Dtypes, and numbers that have one of them.
#pragma once

#include <flambeau/array_ref.h>
#include <flambeau/half.h>

#include <type_traits>
#include <variant>

// Name in C++, name in Python, type in C++; the numbers are those that PyTorch gives them.
#define FLAMBEAU_FORALL_TYPES(_)                        \
  _(Byte, uint8, uint8_t, 0)                            \
  _(Char, int8, int8_t, 1)                              \
  _(Short, int16, int16_t, 2)                           \
  _(Int, int32, int32_t, 3)                             \
  _(Long, int64, int64_t, 4)                            \
  _(Half, float16, ::c10::Half, 5)                      \
  _(Float, float32, float, 6)                           \
  _(Double, float64, double, 7)                         \
  _(ComplexFloat, complex64, ::c10::complex<float>, 9)  \
  _(ComplexDouble, complex128, ::c10::complex<double>, 10) \
  _(Bool, bool, bool, 11)                               \
  _(BFloat16, bfloat16, ::c10::BFloat16, 15)

namespace c10 {

enum class ScalarType : int8_t {
#define FLAMBEAU_TYPE(Name, python, T, number) Name = number,
  FLAMBEAU_FORALL_TYPES(FLAMBEAU_TYPE)
#undef FLAMBEAU_TYPE
  ComplexHalf = 8,
  QInt8 = 12,
  QUInt8 = 13,
  QInt32 = 14,
  Undefined = 16,
  NumOptions = 17,
};

#define FLAMBEAU_TYPE(Name, python, T, number) constexpr ScalarType k##Name = ScalarType::Name;
FLAMBEAU_FORALL_TYPES(FLAMBEAU_TYPE)
#undef FLAMBEAU_TYPE
constexpr ScalarType kUInt8 = kByte, kInt8 = kChar, kInt16 = kShort, kInt32 = kInt, kInt64 = kLong,
                     kFloat16 = kHalf, kFloat32 = kFloat, kFloat64 = kDouble,
                     kComplexFloat64 = kComplexFloat, kF16 = kHalf, kF32 = kFloat, kF64 = kDouble,
                     kU8 = kByte, kI8 = kChar, kI16 = kShort, kI32 = kInt, kI64 = kLong,
                     kUndefined = ScalarType::Undefined;

inline const char* toString(ScalarType type) {
  switch (type) {
#define FLAMBEAU_TYPE(Name, python, T, number) \
  case ScalarType::Name:                       \
    return #Name;
    FLAMBEAU_FORALL_TYPES(FLAMBEAU_TYPE)
#undef FLAMBEAU_TYPE
    default:
      return "Undefined";
  }
}

inline size_t elementSize(ScalarType type) {
  switch (type) {
#define FLAMBEAU_TYPE(Name, python, T, number) \
  case ScalarType::Name:                       \
    return sizeof(T);
    FLAMBEAU_FORALL_TYPES(FLAMBEAU_TYPE)
#undef FLAMBEAU_TYPE
    default:
      throw Error("elementSize: the type is undefined");
  }
}

inline bool isComplexType(ScalarType type) {
  return type == kComplexFloat || type == kComplexDouble;
}
inline bool isFloatingType(ScalarType type) {
  return type == kHalf || type == kFloat || type == kDouble || type == kBFloat16;
}
inline bool isIntegralType(ScalarType type, bool with_bool) {
  return (type >= kByte && type <= kLong) || (with_bool && type == kBool);
}
inline bool isIntegralType(ScalarType type) { return isIntegralType(type, false); }
inline bool isSignedType(ScalarType type) { return type != kByte && type != kBool; }

inline std::ostream& operator<<(std::ostream& stream, ScalarType type) {
  return stream << toString(type);
}

// The dtype of a type of C++; no member where there is none.
template <class T>
struct CppTypeToScalarType {};
#define FLAMBEAU_TYPE(Name, python, T, number) \
  template <>                                  \
  struct CppTypeToScalarType<T> : std::integral_constant<ScalarType, ScalarType::Name> {};
FLAMBEAU_FORALL_TYPES(FLAMBEAU_TYPE)
#undef FLAMBEAU_TYPE
// The other type that has 64 bits.
template <>
struct CppTypeToScalarType<std::conditional_t<std::is_same_v<int64_t, long>, long long, long>>
    : std::integral_constant<ScalarType,
                             sizeof(long) == 8 ? ScalarType::Long : ScalarType::Int> {};

namespace impl {
template <ScalarType>
struct ScalarTypeToCPPType;
#define FLAMBEAU_TYPE(Name, python, T, number) \
  template <>                                  \
  struct ScalarTypeToCPPType<ScalarType::Name> { using type = T; };
FLAMBEAU_FORALL_TYPES(FLAMBEAU_TYPE)
#undef FLAMBEAU_TYPE
template <ScalarType type>
using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<type>::type;
}  // namespace impl

// A number: of a literal, of an argument, of a tensor with one element.
class Scalar {
 public:
  using Value = std::variant<bool, int64_t, double, std::complex<double>>;

  Scalar() : value_(int64_t(0)) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Scalar(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      value_ = value;
    } else if constexpr (std::is_integral_v<T>) {
      value_ = int64_t(value);
    } else {
      value_ = double(value);
    }
  }
  Scalar(Half value) : value_(double(float(value))) {}
  Scalar(BFloat16 value) : value_(double(float(value))) {}
  Scalar(std::complex<float> value) : value_(std::complex<double>(value)) {}
  Scalar(std::complex<double> value) : value_(value) {}

  template <class T>
  T to() const {
    return std::visit(
        [](auto value) -> T {
          using From = decltype(value);
          if constexpr (std::is_same_v<T, std::complex<float>> ||
                        std::is_same_v<T, std::complex<double>>) {
            return T(value);
          } else if constexpr (std::is_same_v<From, std::complex<double>>) {
            TORCH_CHECK(value.imag() == 0, "a complex number cannot become a real one");
            return T(value.real());
          } else {
            return T(value);
          }
        },
        value_);
  }
  double toDouble() const { return to<double>(); }
  float toFloat() const { return to<float>(); }
  int64_t toLong() const { return to<int64_t>(); }
  int toInt() const { return to<int>(); }
  bool toBool() const { return to<bool>(); }
  bool isBoolean() const { return std::holds_alternative<bool>(value_); }
  bool isIntegral(bool with_bool = false) const {
    return std::holds_alternative<int64_t>(value_) || (with_bool && isBoolean());
  }
  bool isFloatingPoint() const { return std::holds_alternative<double>(value_); }
  bool isComplex() const { return std::holds_alternative<std::complex<double>>(value_); }
  ScalarType type() const {
    return isBoolean() ? kBool : isFloatingPoint() ? kDouble : isComplex() ? kComplexDouble : kLong;
  }
  Scalar operator-() const {
    return std::visit(
        [](auto value) {
          if constexpr (std::is_same_v<decltype(value), bool>) {
            return Scalar(-int64_t(value));
          } else {
            return Scalar(-value);
          }
        },
        value_);
  }
  const Value& value() const { return value_; }

 private:
  Value value_;
};

inline std::ostream& operator<<(std::ostream& stream, const Scalar& scalar) {
  return std::visit([&](auto value) -> std::ostream& { return stream << value; }, scalar.value());
}

}  // namespace c10

namespace caffe2 {

// What `Tensor::dtype` gives: a dtype that knows its size.
class TypeMeta {
 public:
  TypeMeta() = default;
  TypeMeta(c10::ScalarType type) : type_(type) {}
  template <class T>
  static TypeMeta Make() {
    return c10::CppTypeToScalarType<T>::value;
  }
  operator c10::ScalarType() const { return type_; }
  c10::ScalarType toScalarType() const { return type_; }
  size_t itemsize() const { return c10::elementSize(type_); }
  const char* name() const { return c10::toString(type_); }
  template <class T>
  bool Match() const {
    return type_ == c10::CppTypeToScalarType<T>::value;
  }

 private:
  c10::ScalarType type_ = c10::ScalarType::Undefined;
};

inline bool operator==(TypeMeta a, TypeMeta b) { return a.toScalarType() == b.toScalarType(); }
inline bool operator!=(TypeMeta a, TypeMeta b) { return !(a == b); }
inline bool operator==(TypeMeta a, c10::ScalarType b) { return a.toScalarType() == b; }
inline bool operator!=(TypeMeta a, c10::ScalarType b) { return a.toScalarType() != b; }
inline bool operator==(c10::ScalarType a, TypeMeta b) { return a == b.toScalarType(); }
inline bool operator!=(c10::ScalarType a, TypeMeta b) { return a != b.toScalarType(); }
inline std::ostream& operator<<(std::ostream& stream, TypeMeta type) {
  return stream << type.toScalarType();
}

}  // namespace caffe2
