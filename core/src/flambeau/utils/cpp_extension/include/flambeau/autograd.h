// Functions with a gradient that is written in C++.
#pragma once

#include <flambeau/casters.h>

#include <map>
#include <memory>
#include <string>

namespace c10 {

// A value that a context keeps between forward and backward.
class IValue {
 public:
  IValue() = default;
  IValue(at::Tensor value) : value_(std::move(value)) {}
  IValue(bool value) : value_(value) {}
  IValue(const char* value) : value_(std::string(value)) {}
  IValue(std::string value) : value_(std::move(value)) {}
  IValue(std::vector<int64_t> value) : value_(std::move(value)) {}
  IValue(IntArrayRef value) : value_(value.vec()) {}
  IValue(std::vector<double> value) : value_(std::move(value)) {}
  IValue(std::vector<at::Tensor> value) : value_(std::move(value)) {}
  IValue(Scalar value) : value_(value) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  IValue(T value) : value_(Scalar(value)) {}
  template <class T>
  IValue(const optional<T>& value) {
    if (value) *this = IValue(*value);
  }

  bool isNone() const { return std::holds_alternative<std::monostate>(value_); }
  bool isTensor() const { return std::holds_alternative<at::Tensor>(value_); }
  at::Tensor toTensor() const { return get<at::Tensor>("a tensor"); }
  Scalar toScalar() const {
    if (auto flag = std::get_if<bool>(&value_)) return Scalar(*flag);
    return get<Scalar>("a number");
  }
  int64_t toInt() const { return toScalar().toLong(); }
  double toDouble() const { return toScalar().toDouble(); }
  bool toBool() const { return toScalar().toBool(); }
  std::string toStringRef() const { return get<std::string>("a text"); }
  std::vector<int64_t> toIntVector() const { return get<std::vector<int64_t>>("a list of int"); }
  std::vector<int64_t> toIntList() const { return toIntVector(); }
  std::vector<double> toDoubleVector() const {
    return get<std::vector<double>>("a list of float");
  }
  std::vector<at::Tensor> toTensorVector() const {
    return get<std::vector<at::Tensor>>("a list of tensors");
  }
  std::vector<at::Tensor> toTensorList() const { return toTensorVector(); }

 private:
  template <class T>
  T get(const char* expected) const {
    const T* found = std::get_if<T>(&value_);
    TORCH_CHECK(found, "the value is not ", expected);
    return *found;
  }

  std::variant<std::monostate, at::Tensor, bool, Scalar, std::string, std::vector<int64_t>,
               std::vector<double>, std::vector<at::Tensor>>
      value_;
};

}  // namespace c10

namespace torch::autograd {

using Variable = at::Tensor;
using variable_list = std::vector<Variable>;

// What forward leaves for backward.
class AutogradContext {
 public:
  std::map<std::string, c10::IValue> saved_data;

  void save_for_backward(variable_list tensors) {
    flambeau::WithPython with_python;
    flambeau::py::list list;
    for (const Variable& tensor : tensors) list.append(tensor.object());
    node_.attr("save_for_backward")(*flambeau::py::tuple(list));
  }
  variable_list get_saved_variables() const {
    flambeau::WithPython with_python;
    return at::Tensor::list_of(node_.attr("saved_tensors"));
  }
  void mark_dirty(const variable_list& tensors) { mark("mark_dirty", tensors); }
  void mark_non_differentiable(const variable_list& tensors) {
    mark("mark_non_differentiable", tensors);
  }
  void set_materialize_grads(bool value) {
    flambeau::WithPython with_python;
    node_.attr("set_materialize_grads")(value);
  }
  bool needs_input_grad(size_t index) const {
    flambeau::WithPython with_python;
    // The first two inputs are forward and backward.
    return node_.attr("needs_input_grad")[flambeau::py::int_(index + 2)].cast<bool>();
  }

  // While a pass of Python is in forward or backward: its context.
  class In {
   public:
    In(AutogradContext& context, flambeau::py::object node) : context_(context) {
      context_.node_ = std::move(node);
    }
    ~In() { context_.node_ = flambeau::py::object(); }
    In(const In&) = delete;
    In& operator=(const In&) = delete;

   private:
    AutogradContext& context_;
  };

 private:
  void mark(const char* name, const variable_list& tensors) {
    flambeau::WithPython with_python;
    flambeau::py::list list;
    for (const Variable& tensor : tensors) list.append(tensor.object());
    node_.attr(name)(*flambeau::py::tuple(list));
  }

  // Not owned between the passes: the node owns the functions that own this.
  flambeau::py::object node_;
};

namespace detail {

inline void add_inputs(flambeau::py::list& inputs, const at::Tensor& tensor) {
  inputs.append(tensor.object());
}
inline void add_inputs(flambeau::py::list& inputs, const c10::optional<at::Tensor>& tensor) {
  inputs.append(tensor ? tensor->object() : flambeau::py::object(flambeau::py::none()));
}
inline void add_inputs(flambeau::py::list& inputs, const variable_list& tensors) {
  for (const at::Tensor& tensor : tensors) inputs.append(tensor.object());
}
inline void add_inputs(flambeau::py::list& inputs, const at::TensorList& tensors) {
  for (const at::Tensor& tensor : tensors) inputs.append(tensor.object());
}
template <class T>
void add_inputs(flambeau::py::list& inputs, const T&) {
  inputs.append(flambeau::py::none());
}

}  // namespace detail

// A class with static functions `forward(AutogradContext*, ...)`, which gives a tensor or a list, and
// `backward(AutogradContext*, variable_list)`, which gives a gradient for each argument, undefined for
// those that have none.
template <class T>
class Function {
 public:
  template <class X = T, class... Args>
  static auto apply(Args&&... args) {
    using Result = decltype(X::forward(static_cast<AutogradContext*>(nullptr), args...));
    flambeau::WithPython with_python;
    auto context = std::make_shared<AutogradContext>();
    flambeau::py::list inputs;
    (detail::add_inputs(inputs, args), ...);
    flambeau::py::cpp_function forward([&](flambeau::py::object node) {
      AutogradContext::In in(*context, std::move(node));
      return flambeau::py::cast(X::forward(context.get(), args...));
    });
    flambeau::py::cpp_function backward([context](flambeau::py::object node,
                                                  flambeau::py::object gradients) {
      AutogradContext::In in(*context, std::move(node));
      const variable_list given = gradients_of(gradients);
      flambeau::py::list found;
      for (const Variable& gradient : X::backward(context.get(), given))
        found.append(gradient.object());
      return found;
    });
    const flambeau::py::object result = flambeau::runtime().attr("apply")(forward, backward, inputs);
    if constexpr (std::is_same_v<std::decay_t<Result>, at::Tensor>) {
      return at::Tensor::one(result);
    } else {
      return at::Tensor::list_of(result);
    }
  }

 private:
  static variable_list gradients_of(const flambeau::py::object& gradients) {
    variable_list list;
    for (flambeau::py::handle gradient : gradients)
      list.emplace_back(flambeau::py::reinterpret_borrow<flambeau::py::object>(gradient));
    return list;
  }
};

}  // namespace torch::autograd
