// Errors, and the macros that raise them.
#pragma once

#include <flambeau/python.h>

#include <cstdio>
#include <sstream>
#include <string>

namespace c10 {

// RuntimeError in Python.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  const std::string msg() const { return what(); }
  const char* what_without_backtrace() const noexcept { return what(); }
};

template <class... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream text;
  ((text << parts), ...);
  return text.str();
}

namespace detail {

template <class... Parts>
std::string message(const char* unless_given, const Parts&... parts) {
  if constexpr (sizeof...(parts) == 0) {
    return unless_given;
  } else {
    return str(parts...);
  }
}

[[noreturn]] inline void raise_not_implemented(const std::string& message) {
  flambeau::WithPython with_python;
  PyErr_SetString(PyExc_NotImplementedError, message.c_str());
  throw pybind11::error_already_set();
}

}  // namespace detail
}  // namespace c10

// Statements that end without a semicolon: programs use them with and without.
#define FLAMBEAU_CHECK(exception, condition, ...)                                             \
  if (!(condition)) {                                                                         \
    throw exception(::c10::detail::message(                                                   \
        "Expected " #condition " to be true, but got false." __VA_OPT__(, ) __VA_ARGS__));    \
  }

#define TORCH_CHECK(condition, ...) \
  FLAMBEAU_CHECK(::c10::Error, condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) \
  FLAMBEAU_CHECK(::pybind11::index_error, condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) \
  FLAMBEAU_CHECK(::pybind11::value_error, condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) \
  FLAMBEAU_CHECK(::pybind11::type_error, condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...)                                           \
  if (!(condition)) {                                                                         \
    ::c10::detail::raise_not_implemented(::c10::detail::message(                              \
        "Expected " #condition " to be true, but got false." __VA_OPT__(, ) __VA_ARGS__));    \
  }
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY TORCH_CHECK
#define AT_CHECK TORCH_CHECK
#define AT_ASSERT TORCH_CHECK
#define AT_ASSERTM TORCH_CHECK
#define AT_INDEX_ERROR(...) throw ::pybind11::index_error(::c10::str(__VA_ARGS__))
#define AT_ERROR(...) throw ::c10::Error(::c10::detail::message("" __VA_OPT__(, ) __VA_ARGS__))
#define AT_WARN TORCH_WARN
#define TORCH_WARN(...)                                                                        \
  do {                                                                                         \
    ::flambeau::WithPython with_python;                                                        \
    if (PyErr_WarnEx(PyExc_UserWarning, ::c10::str(__VA_ARGS__).c_str(), 1) < 0)               \
      throw ::pybind11::error_already_set();                                                   \
  } while (false)
#define TORCH_WARN_ONCE(...)         \
  do {                               \
    static bool warned = false;      \
    if (!warned) {                   \
      warned = true;                 \
      TORCH_WARN(__VA_ARGS__);       \
    }                                \
  } while (false)
