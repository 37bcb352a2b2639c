// The names under which programs know all of it.
#pragma once

#include <flambeau/autograd.h>
#include <flambeau/casters.h>
#include <flambeau/device_guard.h>
#include <flambeau/dispatch.h>
#include <flambeau/functions.h>
#include <flambeau/library.h>
#include <flambeau/parallel.h>

// Those of PyTorch bring these with them, and sources rely on it.
#include <bitset>
#include <cassert>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <functional>
#include <iomanip>
#include <iostream>
#include <list>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <thread>
#include <unordered_set>

namespace c10 {

using at::IntArrayRef;
using ::caffe2::TypeMeta;

}  // namespace c10

namespace at {

using namespace c10;
using c10::optional;

}  // namespace at

namespace torch {

using namespace at;
using at::Tensor;
namespace indexing = at::indexing;
using Dtype = at::ScalarType;

namespace autograd {
using at::AutoGradMode;
using at::GradMode;
inline Variable make_variable(const at::Tensor& tensor, bool requires_grad = false) {
  return at::Tensor(tensor.detach()).requires_grad_(requires_grad);
}
inline bool any_variable_requires_grad(const variable_list& tensors) {
  for (const Variable& tensor : tensors)
    if (tensor.defined() && tensor.requires_grad()) return true;
  return false;
}
}  // namespace autograd
using autograd::Variable;

namespace nn::functional {
using namespace at;
}  // namespace nn::functional

}  // namespace torch

namespace py = pybind11;
