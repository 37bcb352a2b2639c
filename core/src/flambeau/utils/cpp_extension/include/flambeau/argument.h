// What functions of tensors take, and the way from C++ to a function of flambeau.
#pragma once

#include <flambeau/tensor_base.h>

#include <string_view>

namespace flambeau {

// Any argument.  It holds values of C++, for it is made where Python may not be called.
class Argument {
 public:
  struct Absent {};
  using Value = std::variant<Absent, std::nullopt_t, c10::Scalar, at::TensorBase,
                             std::vector<int64_t>, std::vector<double>,
                             std::vector<at::TensorBase>, c10::ScalarType, c10::Device,
                             c10::Layout, c10::MemoryFormat, c10::TensorOptions, std::string>;

  Argument() : value_(Absent()) {}
  Argument(std::nullopt_t) : value_(std::nullopt) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>, class = void>
  Argument(T number) : value_(c10::Scalar(number)) {}
  Argument(const c10::Scalar& number) : value_(number) {}
  Argument(c10::Half number) : value_(c10::Scalar(number)) {}
  Argument(c10::BFloat16 number) : value_(c10::Scalar(number)) {}
  Argument(const at::TensorBase& tensor) {
    if (tensor.defined()) {
      value_ = tensor;
    } else {
      value_ = std::nullopt;
    }
  }
  Argument(c10::ScalarType type) : value_(type) {}
  Argument(caffe2::TypeMeta type) : value_(type.toScalarType()) {}
  Argument(c10::Device device) : value_(device) {}
  Argument(c10::DeviceType type) : value_(c10::Device(type)) {}
  Argument(c10::Layout layout) : value_(layout) {}
  Argument(c10::MemoryFormat format) : value_(format) {}
  Argument(const c10::TensorOptions& options) : value_(options) {}
  Argument(std::string text) : value_(std::move(text)) {}
  Argument(const char* text) : value_(std::string(text)) {}
  Argument(std::initializer_list<int64_t> list) : value_(std::vector<int64_t>(list)) {}
  Argument(std::initializer_list<at::TensorBase> list)
      : value_(std::vector<at::TensorBase>(list)) {}
  template <class T>
  Argument(const std::vector<T>& list) : Argument(list.begin(), list.end()) {}
  template <class T, size_t N>
  Argument(const std::array<T, N>& list) : Argument(list.begin(), list.end()) {}
  template <class T>
  Argument(const c10::ArrayRef<T>& list) : Argument(list.begin(), list.end()) {}
  template <class T>
  Argument(const std::optional<T>& maybe) : value_(std::nullopt) {
    if (maybe) *this = Argument(*maybe);
  }

  bool given() const { return !std::holds_alternative<Absent>(value_); }
  const Value& value() const { return value_; }

 private:
  template <class Iterator>
  Argument(Iterator begin, Iterator end) {
    using T = std::decay_t<decltype(*begin)>;
    if constexpr (std::is_floating_point_v<T>) {
      value_ = std::vector<double>(begin, end);
    } else if constexpr (std::is_integral_v<T>) {
      value_ = std::vector<int64_t>(begin, end);
    } else {
      static_assert(std::is_base_of_v<at::TensorBase, T>, "a list of numbers or of tensors");
      value_ = std::vector<at::TensorBase>(begin, end);
    }
  }

  Value value_;
};

// What a parameter has that no argument was given for.
inline const Argument absent;

inline py::object dtype_object(c10::ScalarType type) {
  const py::object& module = runtime();
  static const py::object* dtypes = new py::object(module.attr("DTYPES"));
  return (*dtypes)[py::int_(int(type))];
}

inline py::object lower(const c10::Scalar& number) {
  return std::visit([](auto value) { return py::object(py::cast(value)); }, number.value());
}

inline py::object lower(const c10::Device& device) { return py::str(device.str()); }

struct Lower {
  py::object operator()(const Argument::Absent&) const { return py::none(); }
  py::object operator()(const std::nullopt_t&) const { return py::none(); }
  py::object operator()(const c10::Scalar& number) const { return lower(number); }
  py::object operator()(const at::TensorBase& tensor) const { return tensor.object(); }
  py::object operator()(const std::vector<int64_t>& list) const { return py::tuple(py::cast(list)); }
  py::object operator()(const std::vector<double>& list) const { return py::tuple(py::cast(list)); }
  py::object operator()(const std::vector<at::TensorBase>& list) const {
    py::tuple tensors(list.size());
    for (size_t i = 0; i < list.size(); ++i) tensors[i] = list[i].object();
    return tensors;
  }
  template <class Option>
  py::object operator()(const Option&) const {
    throw c10::Error("a dtype, a device or options are no argument of this function");
  }
  py::object operator()(const std::string& text) const { return py::str(text); }
};

inline py::object lower(const Argument& argument) { return std::visit(Lower(), argument.value()); }

inline void add_options(py::dict& keywords, const c10::TensorOptions& options) {
  if (auto type = options.dtype_opt()) keywords["dtype"] = dtype_object(*type);
  if (auto device = options.device_opt()) keywords["device"] = lower(*device);
  if (options.layout() != c10::kStrided)
    keywords["layout"] = runtime().attr("LAYOUTS")[py::int_(int(options.layout()))];
  if (options.requires_grad()) keywords["requires_grad"] = true;
  if (options.pinned_memory()) keywords["pin_memory"] = true;
  if (auto format = options.memory_format_opt()) 
    keywords["memory_format"] = runtime().attr("MEMORY_FORMATS")[py::int_(int(*format))];
}

// Makes keywords of dtypes, devices and the like, wherever they stand in C++; says of others that they are none.
struct AddOptions {
  py::dict& keywords;

  bool operator()(const c10::TensorOptions& options) const {
    add_options(keywords, options);
    return true;
  }
  bool operator()(c10::ScalarType type) const { return (*this)(c10::TensorOptions(type)); }
  bool operator()(c10::Device device) const { return (*this)(c10::TensorOptions(device)); }
  bool operator()(c10::Layout layout) const { return (*this)(c10::TensorOptions(layout)); }
  bool operator()(c10::MemoryFormat format) const {
    return (*this)(c10::TensorOptions().memory_format(format));
  }
  template <class Other>
  bool operator()(const Other&) const {
    return false;
  }
};

using Arguments = std::initializer_list<const Argument*>;
using Names = std::initializer_list<const char*>;

// Call `function`: so many arguments by position, then some that have names.  Those that are absent are
// left out; options of tensors become keywords wherever they stand.
inline py::object call(const py::object& function, const at::TensorBase* self, Arguments arguments,
                       size_t positional = SIZE_MAX, Names names = {}) {
  py::list values;
  py::dict keywords;
  if (self) values.append(self->held().object());
  bool skipped = false;
  size_t index = 0;
  for (const Argument* argument : arguments) {
    const size_t here = index++;
    if (!argument->given()) {
      skipped = true;
    } else if (std::visit(AddOptions{keywords}, argument->value())) {
      continue;
    } else if (here >= positional) {
      TORCH_CHECK(here - positional < names.size(), "too many arguments");
      keywords[names.begin()[here - positional]] = lower(*argument);
    } else {
      TORCH_CHECK(!skipped, "an argument is missing before others");
      values.append(lower(*argument));
    }
  }
  return function(*py::tuple(values), **keywords);
}

// A function of flambeau by the name that it has in C++.
inline const py::object& function_named(const char* name) {
  static auto* known = new std::unordered_map<std::string_view, py::object>();
  auto found = known->find(name);
  if (found == known->end())
    found = known->emplace(name, runtime().attr("function")(name)).first;
  return found->second;
}

}  // namespace flambeau
