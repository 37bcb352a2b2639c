// A body once for each dtype, as `scalar_t`.
#pragma once

#include <flambeau/tensor.h>

namespace flambeau {

inline c10::ScalarType type_of(c10::ScalarType type) { return type; }
inline c10::ScalarType type_of(caffe2::TypeMeta type) { return type.toScalarType(); }
inline c10::ScalarType type_of(const at::DeprecatedTypeProperties& type) { return type.type; }

}  // namespace flambeau

// The body is a loop over elements: other threads of Python run meanwhile.
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                                  \
  [&] {                                                                                      \
    const c10::ScalarType flambeau_type_ = ::flambeau::type_of(TYPE);                        \
    ::flambeau::WithoutPython flambeau_without_python_;                                      \
    switch (flambeau_type_) {                                                                \
      __VA_ARGS__                                                                            \
      default:                                                                               \
        AT_ERROR('"', NAME, "\" not implemented for '", c10::toString(flambeau_type_), '\''); \
    }                                                                                        \
  }()
#define AT_PRIVATE_CASE_TYPE_USING_HINT(TYPE, HINT, ...)                        \
  case TYPE: {                                                                  \
    using HINT [[maybe_unused]] = c10::impl::ScalarTypeToCPPTypeT<TYPE>;        \
    return __VA_ARGS__();                                                       \
  }
#define AT_DISPATCH_CASE(TYPE, ...) AT_PRIVATE_CASE_TYPE_USING_HINT(TYPE, scalar_t, __VA_ARGS__)
#define AT_PRIVATE_CASE_TYPE(NAME, TYPE, T, ...) \
  case TYPE: {                                   \
    using scalar_t [[maybe_unused]] = T;         \
    return __VA_ARGS__();                        \
  }

#define AT_DISPATCH_CASE_FLOATING_TYPES(...)       \
  AT_DISPATCH_CASE(c10::ScalarType::Double, __VA_ARGS__) \
  AT_DISPATCH_CASE(c10::ScalarType::Float, __VA_ARGS__)
#define AT_DISPATCH_CASE_COMPLEX_TYPES(...)               \
  AT_DISPATCH_CASE(c10::ScalarType::ComplexDouble, __VA_ARGS__) \
  AT_DISPATCH_CASE(c10::ScalarType::ComplexFloat, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)       \
  AT_DISPATCH_CASE(c10::ScalarType::Byte, __VA_ARGS__)   \
  AT_DISPATCH_CASE(c10::ScalarType::Char, __VA_ARGS__)   \
  AT_DISPATCH_CASE(c10::ScalarType::Int, __VA_ARGS__)    \
  AT_DISPATCH_CASE(c10::ScalarType::Long, __VA_ARGS__)   \
  AT_DISPATCH_CASE(c10::ScalarType::Short, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...)       \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(...) \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)           \
  AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)           \
  AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(T1, TYPE, NAME, ...)       \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                  \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(T1, T2, TYPE, NAME, ...)  \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                  \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__)            \
                     AT_DISPATCH_CASE(T2, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND3(T1, T2, T3, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                     \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)    \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__)               \
                     AT_DISPATCH_CASE(T2, __VA_ARGS__)               \
                     AT_DISPATCH_CASE(T3, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND4(T1, T2, T3, T4, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                         \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)        \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__)                   \
                     AT_DISPATCH_CASE(T2, __VA_ARGS__)                   \
                     AT_DISPATCH_CASE(T3, __VA_ARGS__)                   \
                     AT_DISPATCH_CASE(T4, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES_AND(T1, TYPE, NAME, ...)       \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                  \
                     AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES_AND2(T1, T2, TYPE, NAME, ...)  \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                  \
                     AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__)            \
                     AT_DISPATCH_CASE(T2, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES_AND3(T1, T2, T3, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                     \
                     AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__)    \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__)               \
                     AT_DISPATCH_CASE(T2, __VA_ARGS__)               \
                     AT_DISPATCH_CASE(T3, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES_AND4(T1, T2, T3, T4, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                         \
                     AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__)        \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__)                   \
                     AT_DISPATCH_CASE(T2, __VA_ARGS__)                   \
                     AT_DISPATCH_CASE(T3, __VA_ARGS__)                   \
                     AT_DISPATCH_CASE(T4, __VA_ARGS__))
#define AT_DISPATCH_COMPLEX_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__))
#define AT_DISPATCH_COMPLEX_TYPES_AND(T1, TYPE, NAME, ...)       \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                 \
                     AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__) \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__))
#define AT_DISPATCH_COMPLEX_TYPES_AND2(T1, T2, TYPE, NAME, ...)  \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                 \
                     AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__) \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__)           \
                     AT_DISPATCH_CASE(T2, __VA_ARGS__))
#define AT_DISPATCH_COMPLEX_TYPES_AND3(T1, T2, T3, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                    \
                     AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)    \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__)              \
                     AT_DISPATCH_CASE(T2, __VA_ARGS__)              \
                     AT_DISPATCH_CASE(T3, __VA_ARGS__))
#define AT_DISPATCH_COMPLEX_TYPES_AND4(T1, T2, T3, T4, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                        \
                     AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)        \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__)                  \
                     AT_DISPATCH_CASE(T2, __VA_ARGS__)                  \
                     AT_DISPATCH_CASE(T3, __VA_ARGS__)                  \
                     AT_DISPATCH_CASE(T4, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(T1, TYPE, NAME, ...)       \
  AT_DISPATCH_SWITCH(TYPE, NAME,                             \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(T1, T2, TYPE, NAME, ...)  \
  AT_DISPATCH_SWITCH(TYPE, NAME,                             \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__)       \
                     AT_DISPATCH_CASE(T2, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND3(T1, T2, T3, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)    \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__)          \
                     AT_DISPATCH_CASE(T2, __VA_ARGS__)          \
                     AT_DISPATCH_CASE(T3, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND4(T1, T2, T3, T4, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                    \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)        \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__)              \
                     AT_DISPATCH_CASE(T2, __VA_ARGS__)              \
                     AT_DISPATCH_CASE(T3, __VA_ARGS__)              \
                     AT_DISPATCH_CASE(T4, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND(T1, TYPE, NAME, ...)       \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                         \
                     AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__) \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(T1, T2, TYPE, NAME, ...)  \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                         \
                     AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__) \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__)                   \
                     AT_DISPATCH_CASE(T2, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(T1, T2, T3, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                            \
                     AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__)    \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__)                      \
                     AT_DISPATCH_CASE(T2, __VA_ARGS__)                      \
                     AT_DISPATCH_CASE(T3, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(T1, T2, T3, T4, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                \
                     AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__)        \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__)                          \
                     AT_DISPATCH_CASE(T2, __VA_ARGS__)                          \
                     AT_DISPATCH_CASE(T3, __VA_ARGS__)                          \
                     AT_DISPATCH_CASE(T4, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND(T1, TYPE, NAME, ...)       \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                              \
                     AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__) \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(T1, T2, TYPE, NAME, ...)  \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                              \
                     AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__) \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__)                        \
                     AT_DISPATCH_CASE(T2, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND3(T1, T2, T3, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                 \
                     AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)    \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__)                           \
                     AT_DISPATCH_CASE(T2, __VA_ARGS__)                           \
                     AT_DISPATCH_CASE(T3, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND4(T1, T2, T3, T4, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                     \
                     AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__)        \
                     AT_DISPATCH_CASE(T1, __VA_ARGS__)                               \
                     AT_DISPATCH_CASE(T2, __VA_ARGS__)                               \
                     AT_DISPATCH_CASE(T3, __VA_ARGS__)                               \
                     AT_DISPATCH_CASE(T4, __VA_ARGS__))

#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
  AT_DISPATCH_FLOATING_TYPES_AND(c10::ScalarType::Half, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_HALF(TYPE, NAME, ...) \
  AT_DISPATCH_ALL_TYPES_AND(c10::ScalarType::Half, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...)                                          \
  AT_DISPATCH_SWITCH(                                                                     \
      TYPE, NAME,                                                                         \
      AT_PRIVATE_CASE_TYPE_USING_HINT(c10::ScalarType::Int, index_t, __VA_ARGS__)         \
          AT_PRIVATE_CASE_TYPE_USING_HINT(c10::ScalarType::Long, index_t, __VA_ARGS__))
