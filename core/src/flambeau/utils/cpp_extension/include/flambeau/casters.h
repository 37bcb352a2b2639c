// Arguments and results of the functions that an extension gives Python.
#pragma once

#include <flambeau/functions.h>

namespace pybind11::detail {

template <>
struct type_caster<at::Tensor> {
  PYBIND11_TYPE_CASTER(at::Tensor, const_name("Tensor"));
  bool load(handle source, bool) {
    const object& module = flambeau::runtime();
    static const object* cls = new object(module.attr("Tensor"));
    if (!isinstance(source, *cls)) return false;
    value = at::Tensor(reinterpret_borrow<object>(source));
    // Now: a thread without the interpreter's lock may ask for it.
    value.held().prepare();
    return true;
  }
  static handle cast(const at::Tensor& tensor, return_value_policy, handle) {
    return tensor.object().release();
  }
};

template <>
struct type_caster<c10::Scalar> {
  PYBIND11_TYPE_CASTER(c10::Scalar, const_name("Number"));
  bool load(handle source, bool) {
    if (PyBool_Check(source.ptr())) {
      value = c10::Scalar(source.cast<bool>());
    } else if (PyLong_Check(source.ptr())) {
      value = c10::Scalar(source.cast<int64_t>());
    } else if (PyFloat_Check(source.ptr())) {
      value = c10::Scalar(source.cast<double>());
    } else if (PyComplex_Check(source.ptr())) {
      value = c10::Scalar(source.cast<std::complex<double>>());
    } else if (hasattr(source, "item") && hasattr(source, "dim")) {
      value = at::Tensor(reinterpret_borrow<object>(source)).item();
    } else {
      return false;
    }
    return true;
  }
  static handle cast(const c10::Scalar& scalar, return_value_policy, handle) {
    return flambeau::lower(scalar).release();
  }
};

template <>
struct type_caster<c10::ScalarType> {
  PYBIND11_TYPE_CASTER(c10::ScalarType, const_name("dtype"));
  bool load(handle source, bool) {
    const int number = flambeau::runtime().attr("type_number")(source).cast<int>();
    value = c10::ScalarType(number);
    return number >= 0;
  }
  static handle cast(c10::ScalarType type, return_value_policy, handle) {
    return flambeau::dtype_object(type).release();
  }
};

template <>
struct type_caster<caffe2::TypeMeta> {
  PYBIND11_TYPE_CASTER(caffe2::TypeMeta, const_name("dtype"));
  bool load(handle source, bool convert) {
    type_caster<c10::ScalarType> caster;
    if (!caster.load(source, convert)) return false;
    value = static_cast<c10::ScalarType&>(caster);
    return true;
  }
  static handle cast(caffe2::TypeMeta type, return_value_policy, handle) {
    return flambeau::dtype_object(type.toScalarType()).release();
  }
};

template <>
struct type_caster<c10::Device> {
 public:
  static constexpr auto name = const_name("device");
  template <class T>
  using cast_op_type = movable_cast_op_type<T>;
  operator c10::Device*() { return &value; }
  operator c10::Device&() { return value; }
  operator c10::Device&&() && { return std::move(value); }
  bool load(handle source, bool) {
    const object& module = flambeau::runtime();
    static const object* cls = new object(module.attr("device"));
    if (!isinstance(source, *cls)) return false;
    value = c10::Device(std::string(str(source)));
    return true;
  }
  static handle cast(const c10::Device& device, return_value_policy, handle) {
    const object& module = flambeau::runtime();
    static const object* cls = new object(module.attr("device"));
    return (*cls)(device.str()).release();
  }

 private:
  c10::Device value = c10::Device(c10::kCPU);
};

template <class T>
struct type_caster<c10::ArrayRef<T>> {
  PYBIND11_TYPE_CASTER(c10::ArrayRef<T>, const_name("Sequence[") + make_caster<T>::name +
                                             const_name("]"));
  bool load(handle source, bool convert) {
    list_caster<std::vector<T>, T> caster;
    if (!caster.load(source, convert)) return false;
    value = c10::ArrayRef<T>(std::move(static_cast<std::vector<T>&>(caster)));
    return true;
  }
  static handle cast(const c10::ArrayRef<T>& list, return_value_policy policy, handle parent) {
    return list_caster<std::vector<T>, T>::cast(list.vec(), policy, parent);
  }
};

template <>
struct type_caster<c10::Half> {
  PYBIND11_TYPE_CASTER(c10::Half, const_name("float"));
  bool load(handle source, bool convert) {
    make_caster<float> caster;
    if (!caster.load(source, convert)) return false;
    value = c10::Half(static_cast<float>(caster));
    return true;
  }
  static handle cast(c10::Half number, return_value_policy, handle) {
    return PyFloat_FromDouble(double(float(number)));
  }
};

}  // namespace pybind11::detail
