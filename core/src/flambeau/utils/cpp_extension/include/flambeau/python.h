// Python, and who may call it: tensors are Python objects, and C++ runs in threads that hold no lock.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/complex.h>
#include <pybind11/stl.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <atomic>
#include <optional>
#include <stdexcept>

namespace flambeau {

namespace py = pybind11;

// How many threads of this library gave the lock away for what they run now.
inline std::atomic<int>& released() {
  static std::atomic<int> count{0};
  return count;
}

// While it lives Python may be called, whichever thread this is.
class WithPython {
 public:
  WithPython() {
    if (PyGILState_Check()) return;
#ifdef _OPENMP
    // Who opened the region waits for this thread, perhaps with the lock in hand.
    if (omp_in_parallel() && !released())
      throw std::runtime_error(
          "a thread of OpenMP called an operation of tensors: take pointers, accessors and sizes "
          "before the parallel region");
#endif
    acquired_.emplace();
  }

 private:
  std::optional<py::gil_scoped_acquire> acquired_;
};

// While it lives other threads of Python run.
class WithoutPython {
 public:
  WithoutPython() {
    if (!PyGILState_Check()) return;
    released_.emplace();
    ++released();
  }
  ~WithoutPython() {
    if (released_) --released();
  }

 private:
  std::optional<py::gil_scoped_release> released_;
};

// The functions that the headers ask for; they import flambeau.
inline const py::object& runtime() {
  // Never destroyed: the interpreter may be gone before static objects are. Two threads may both come
  // to the import, which lets others run: waiting for a static with the lock held would be for ever.
  static std::atomic<const py::object*> module{nullptr};
  const py::object* found = module.load(std::memory_order_acquire);
  if (!found) {
    found = new py::object(py::module_::import("flambeau.utils.cpp_extension._runtime"));
    module.store(found, std::memory_order_release);
  }
  return *found;
}

}  // namespace flambeau
