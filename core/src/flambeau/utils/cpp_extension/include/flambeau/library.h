// Ops that a library has under names: Python finds them in torch.ops.
#pragma once

#include <flambeau/casters.h>

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace c10 {

enum class DispatchKey {
  Undefined,
  CPU,
  CUDA,
  HIP,
  Meta,
  SparseCPU,
  SparseCUDA,
  QuantizedCPU,
  QuantizedCUDA,
  BackendSelect,
  Autograd,
  AutogradCPU,
  AutogradCUDA,
  Autocast,
  AutocastCPU,
  AutocastCUDA,
  ADInplaceOrView,
  CatchAll,
  CompositeImplicitAutograd,
  CompositeExplicitAutograd,
};

// The name that Python's `torch.library` knows a key by.
inline const char* toString(DispatchKey key) {
  switch (key) {
    case DispatchKey::CPU: return "CPU";
    case DispatchKey::CUDA: return "CUDA";
    case DispatchKey::HIP: return "HIP";
    case DispatchKey::Meta: return "Meta";
    case DispatchKey::SparseCPU: return "SparseCPU";
    case DispatchKey::SparseCUDA: return "SparseCUDA";
    case DispatchKey::QuantizedCPU: return "QuantizedCPU";
    case DispatchKey::QuantizedCUDA: return "QuantizedCUDA";
    case DispatchKey::BackendSelect: return "BackendSelect";
    case DispatchKey::Autograd: return "Autograd";
    case DispatchKey::AutogradCPU: return "AutogradCPU";
    case DispatchKey::AutogradCUDA: return "AutogradCUDA";
    case DispatchKey::Autocast: return "Autocast";
    case DispatchKey::AutocastCPU: return "AutocastCPU";
    case DispatchKey::AutocastCUDA: return "AutocastCUDA";
    case DispatchKey::ADInplaceOrView: return "ADInplaceOrView";
    case DispatchKey::CompositeExplicitAutograd: return "CompositeExplicitAutograd";
    default: return "";
  }
}

}  // namespace c10

namespace flambeau {

// A type of C++ as schemas write it; empty for one that they have no name for.
template <class T>
struct SchemaType {
  static std::string name() {
    if constexpr (std::is_same_v<T, bool>) return "bool";
    else if constexpr (std::is_integral_v<T>) return "int";
    else if constexpr (std::is_floating_point_v<T>) return "float";
    else if constexpr (std::is_same_v<T, at::Tensor>) return "Tensor";
    else if constexpr (std::is_same_v<T, c10::Scalar>) return "Scalar";
    else if constexpr (std::is_same_v<T, c10::ScalarType>) return "ScalarType";
    else if constexpr (std::is_same_v<T, c10::Device>) return "Device";
    else if constexpr (std::is_same_v<T, std::string>) return "str";
    else if constexpr (std::is_same_v<T, void>) return "()";
    else return "";
  }
};
template <class T>
std::string schema_type() {
  return SchemaType<std::remove_cv_t<std::remove_reference_t<T>>>::name();
}
template <class T>
struct SchemaType<std::optional<T>> {
  static std::string name() {
    const std::string inner = schema_type<T>();
    return inner.empty() ? inner : inner + "?";
  }
};
template <class T>
struct SchemaType<std::vector<T>> {
  static std::string name() {
    const std::string inner = schema_type<T>();
    return inner.empty() ? inner : inner + "[]";
  }
};
template <class T>
struct SchemaType<c10::ArrayRef<T>> : SchemaType<std::vector<T>> {};
template <class... T>
struct SchemaType<std::tuple<T...>> {
  static std::string name() {
    std::string all;
    bool known = true;
    ((known = known && !schema_type<T>().empty(),
      all += (all.empty() ? "" : ", ") + schema_type<T>()),
     ...);
    return known ? "(" + all + ")" : "";
  }
};

// What a function takes and gives, "(Tensor _0, int _1) -> Tensor": for ops that have a name only.
template <class R, class... A>
std::string schema_of(R (*)(A...)) {
  std::string all;
  bool known = !schema_type<R>().empty();
  int place = 0;
  ((known = known && !schema_type<A>().empty(),
    all += (place ? ", " : "") + schema_type<A>() + " _" + std::to_string(place), ++place),
   ...);
  return known ? "(" + all + ") -> " + schema_type<R>() : "";
}
template <class C, class R, class... A>
std::string schema_of(R (C::*)(A...) const) {
  return schema_of(static_cast<R (*)(A...)>(nullptr));
}
template <class F>
std::string schema_of(const F&) {
  return schema_of(&F::operator());
}
template <class F>
struct Kernel;
template <class F>
std::string schema_of(const Kernel<F>& kernel) {
  return schema_of(kernel.function);
}

// Runs what registers ops while a library is loaded. An error that left it would end the process. It
// becomes Python's current error: whoever asked for the library finds it, and what would be registered
// after it is not.
template <class F>
void registering(F&& body) {
  WithPython with_python;
  if (PyErr_Occurred()) return;
  try {
    body();
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const py::builtin_exception& error) {
    error.set_error();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  if (!PyErr_Occurred()) return;
  py::error_already_set error;
  try {
    // What imports a module may tell that there was an error and not which.
    runtime().attr("registration_failed")(error.value());
  } catch (py::error_already_set& another) {
    another.restore();
    return;
  }
  error.restore();
}

inline void define_op(const std::string& space, const std::string& schema) {
  WithPython with_python;
  runtime().attr("define_op")(space, schema);
}

template <class F>
void implement_op(const std::string& space, const std::string& name, const std::string& key,
                  F&& function) {
  WithPython with_python;
  runtime().attr("implement_op")(space, name, key, py::cpp_function(std::forward<F>(function)));
}

// A function that is for one kind of devices.
template <class F>
struct Kernel {
  c10::DispatchKey key;
  F function;
};

}  // namespace flambeau

namespace torch {

template <class F>
flambeau::Kernel<std::decay_t<F>> dispatch(c10::DispatchKey key, F&& function) {
  return {key, std::forward<F>(function)};
}
template <class F>
flambeau::Kernel<std::decay_t<F>> dispatch(c10::DeviceType device, F&& function) {
  const bool cuda = device == c10::DeviceType::CUDA;
  return {cuda ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU, std::forward<F>(function)};
}

// What TORCH_LIBRARY gives its body: the ops of a namespace.
class Library {
 public:
  explicit Library(std::string space, std::string key = "")
      : space_(std::move(space)), key_(std::move(key)) {}

  // From a schema, or from a name and a function whose types say the rest.
  Library& def(const std::string& schema) {
    flambeau::define_op(space_, schema);
    return *this;
  }
  template <class F>
  Library& def(const std::string& schema, F&& function) {
    const auto open = schema.find('(');
    const bool whole = open != std::string::npos;
    const auto& plain = static_cast<const std::decay_t<F>&>(function);
    flambeau::define_op(space_, whole ? schema : schema + flambeau::schema_of(plain));
    return impl(schema.substr(0, open), std::forward<F>(function));
  }
  template <class F>
  Library& impl(const std::string& name, F&& function) {
    return add(name, key_, std::forward<F>(function));
  }

 private:
  template <class F>
  Library& add(const std::string& name, const std::string& key, F&& function) {
    flambeau::implement_op(space_, name, key, std::forward<F>(function));
    return *this;
  }
  template <class F>
  Library& add(const std::string& name, const std::string&, flambeau::Kernel<F>& kernel) {
    return add(name, c10::toString(kernel.key), kernel.function);
  }
  template <class F>
  Library& add(const std::string& name, const std::string&, flambeau::Kernel<F>&& kernel) {
    return add(name, c10::toString(kernel.key), std::move(kernel.function));
  }

  std::string space_, key_;
};

// The older form, in which every op says its namespace.
class RegisterOperators {
 public:
  RegisterOperators() = default;
  template <class F>
  explicit RegisterOperators(const std::string& schema, F&& function) {
    op(schema, std::forward<F>(function));
  }

  template <class F>
  RegisterOperators& op(const std::string& schema, F&& function) {
    flambeau::registering([&] {
      const auto colons = schema.find("::");
      TORCH_CHECK(colons != std::string::npos, "the op ", schema, " has no namespace");
      Library(schema.substr(0, colons)).def(schema.substr(colons + 2), std::forward<F>(function));
    });
    return *this;
  }
};

namespace jit {
using torch::RegisterOperators;
}  // namespace jit

namespace detail {

// Runs the body of TORCH_LIBRARY when the library is loaded.
struct Registration {
  Registration(const char* space, const char* key, void (*body)(Library&)) {
    flambeau::registering([&] {
      Library library(space, key);
      body(library);
    });
  }
};

}  // namespace detail

}  // namespace torch

namespace c10 {
using torch::RegisterOperators;
}  // namespace c10

#define FLAMBEAU_JOINED_(a, b) a##b
#define FLAMBEAU_JOINED(a, b) FLAMBEAU_JOINED_(a, b)
#define FLAMBEAU_LIBRARY(space, key, m, number)                                        \
  static void FLAMBEAU_JOINED(flambeau_library_, number)(torch::Library&);             \
  static const torch::detail::Registration FLAMBEAU_JOINED(flambeau_registration_,     \
                                                           number)(                    \
      #space, key, &FLAMBEAU_JOINED(flambeau_library_, number));                       \
  static void FLAMBEAU_JOINED(flambeau_library_, number)([[maybe_unused]] torch::Library & m)

#define TORCH_LIBRARY(space, m) FLAMBEAU_LIBRARY(space, "", m, __COUNTER__)
#define TORCH_LIBRARY_FRAGMENT(space, m) FLAMBEAU_LIBRARY(space, "", m, __COUNTER__)
#define TORCH_LIBRARY_IMPL(space, key, m) \
  FLAMBEAU_LIBRARY(space, c10::toString(c10::DispatchKey::key), m, __COUNTER__)
#define TORCH_FN(function) function
#define TORCH_SELECTIVE_NAME(name) name
#define TORCH_SELECTIVE_SCHEMA(schema) schema
