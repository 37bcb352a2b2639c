// The memory under a tensor.
#pragma once

#include <flambeau/python.h>

namespace c10 {

class Storage {
 public:
  Storage() = default;
  explicit Storage(flambeau::py::object object) : object_(std::move(object)) {}

  explicit operator bool() const { return bool(object_); }
  size_t nbytes() const {
    flambeau::WithPython with_python;
    return object_.attr("nbytes")().cast<size_t>();
  }
  void* data() const {
    flambeau::WithPython with_python;
    return reinterpret_cast<void*>(object_.attr("data_ptr")().cast<intptr_t>());
  }
  template <class T>
  T* data() const {
    return static_cast<T*>(data());
  }

 private:
  flambeau::py::object object_;
};

}  // namespace c10

namespace at {
using c10::Storage;
}  // namespace at
