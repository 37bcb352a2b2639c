// Checks of arguments that name them, as ATen/TensorUtils.h has them.
#pragma once

#include <flambeau/functions.h>

#include <algorithm>
#include <sstream>

namespace at {

// The function that checks, for errors.
using CheckedFrom = const char*;

// A tensor with the name and the place of the argument; 0 for what has no place.
struct TensorGeometryArg {
  Tensor tensor;
  const char* name;
  int pos;
  TensorGeometryArg(Tensor tensor, const char* name, int pos)
      : tensor(std::move(tensor)), name(name), pos(pos) {}
  const Tensor* operator->() const { return &tensor; }
  const Tensor& operator*() const { return tensor; }
};
using TensorArg = TensorGeometryArg;

inline std::ostream& operator<<(std::ostream& out, const TensorArg& t) {
  if (t.pos) return out << "argument #" << t.pos << " '" << t.name << "'";
  return out << "'" << t.name << "'";
}

#define FLAMBEAU_ARGUMENT(c, condition, ...) \
  TORCH_CHECK(condition, __VA_ARGS__, " (while checking arguments for ", c, ")")

inline void checkDim(CheckedFrom c, const TensorArg& t, int64_t dim) {
  FLAMBEAU_ARGUMENT(c, t->dim() == dim, "Expected ", dim, "-dimensional tensor, but got ", t->dim(),
                    "-dimensional tensor for ", t);
}
inline void checkDimRange(CheckedFrom c, const TensorArg& t, int64_t start, int64_t end) {
  FLAMBEAU_ARGUMENT(c, t->dim() >= start && t->dim() < end, "Expected ", start, " to ", end - 1,
                    " dimensions, but got ", t->dim(), "-dimensional tensor for ", t);
}
inline void checkContiguous(CheckedFrom c, const TensorArg& t) {
  FLAMBEAU_ARGUMENT(c, t->is_contiguous(),
                    "Expected contiguous tensor, but got non-contiguous tensor for ", t);
}
inline void checkSize(CheckedFrom c, const TensorArg& t, IntArrayRef sizes) {
  checkDim(c, t, sizes.size());
  FLAMBEAU_ARGUMENT(c, t->sizes() == sizes, "Expected tensor of size ", sizes,
                    ", but got tensor of size ", t->sizes(), " for ", t);
}
inline void checkSize(CheckedFrom c, const TensorArg& t, int64_t dim, int64_t size) {
  FLAMBEAU_ARGUMENT(c, t->size(dim) == size, "Expected tensor to have size ", size,
                    " at dimension ", dim, ", but got size ", t->size(dim), " for ", t);
}
inline void checkNumel(CheckedFrom c, const TensorArg& t, int64_t numel) {
  FLAMBEAU_ARGUMENT(c, t->numel() == numel, "Expected tensor for ", t, " to have ", numel,
                    " elements; but it actually has ", t->numel(), " elements");
}
inline void checkScalarType(CheckedFrom c, const TensorArg& t, ScalarType type) {
  FLAMBEAU_ARGUMENT(c, t->scalar_type() == type, "Expected tensor for ", t,
                    " to have scalar type ", type, "; but got ", t->toString(), " instead");
}
inline void checkScalarTypes(CheckedFrom c, const TensorArg& t, ArrayRef<ScalarType> types) {
  for (auto type : types)
    if (t->scalar_type() == type) return;
  FLAMBEAU_ARGUMENT(c, false, "Expected tensor for ", t, " to have another scalar type than ",
                    t->scalar_type());
}
inline void checkDefined(CheckedFrom c, const TensorArg& t) {
  FLAMBEAU_ARGUMENT(c, t->defined(), "Expected tensor for ", t, " to be non-null, but it was undefined");
}
inline void checkSameDim(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  FLAMBEAU_ARGUMENT(c, a->dim() == b->dim(), "Expected tensor for ", a,
                    " to have same dimension as tensor for ", b, "; but ", a->dim(),
                    " does not equal ", b->dim());
}
inline void checkSameNumel(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  FLAMBEAU_ARGUMENT(c, a->numel() == b->numel(), "Expected tensor for ", a,
                    " to have same number of elements as tensor for ", b, "; but ", a->numel(),
                    " does not equal ", b->numel());
}
inline void checkSameSize(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  FLAMBEAU_ARGUMENT(c, a->sizes() == b->sizes(), "Expected tensor for ", a,
                    " to have same size as tensor for ", b, "; but ", a->sizes(),
                    " does not equal ", b->sizes());
}
inline void checkSameType(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  FLAMBEAU_ARGUMENT(c, a->scalar_type() == b->scalar_type() && a->device().type() == b->device().type(),
                    "Expected tensor for ", a, " to have the same type as tensor for ", b,
                    "; but type ", a->toString(), " does not equal ", b->toString());
}
inline void checkSameGPU(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  if (!a->is_cuda() || !b->is_cuda()) {
    std::ostringstream which;
    for (const TensorArg* t : {&a, &b})
      if (!(*t)->is_cuda()) which << "Tensor for " << *t << " is on CPU, ";
    FLAMBEAU_ARGUMENT(c, false, which.str(), "but expected it to be on GPU");
  }
  FLAMBEAU_ARGUMENT(c, a->get_device() == b->get_device(), "Expected tensor for ", a,
                    " to have the same device as tensor for ", b, "; but device ", a->get_device(),
                    " does not equal ", b->get_device());
}

// Of several tensors; those that are undefined are not looked at.
#define FLAMBEAU_OF_ALL(name, same)                                     \
  inline void name(CheckedFrom c, ArrayRef<TensorArg> tensors) {        \
    const TensorArg* first = nullptr;                                   \
    for (const auto& t : tensors) {                                     \
      if (!t->defined()) continue;                                      \
      if (first) same(c, *first, t);                                    \
      else first = &t;                                                  \
    }                                                                   \
  }
FLAMBEAU_OF_ALL(checkAllSameNumel, checkSameNumel)
FLAMBEAU_OF_ALL(checkAllSameSize, checkSameSize)
FLAMBEAU_OF_ALL(checkAllSameType, checkSameType)
FLAMBEAU_OF_ALL(checkAllSameGPU, checkSameGPU)
#undef FLAMBEAU_OF_ALL
inline void checkAllContiguous(CheckedFrom c, ArrayRef<TensorArg> tensors) {
  for (const auto& t : tensors)
    if (t->defined()) checkContiguous(c, t);
}
inline void checkAllDefined(CheckedFrom c, ArrayRef<TensorArg> tensors) {
  for (const auto& t : tensors) checkDefined(c, t);
}
#undef FLAMBEAU_ARGUMENT

// A dimension counted from the front; a tensor without dimensions counts as one with one.
inline int64_t maybe_wrap_dim(int64_t dim, int64_t dims, bool wrap_scalar = true) {
  TORCH_CHECK_INDEX(dims > 0 || wrap_scalar, "dimension specified as ", dim,
                    " but tensor has no dimensions");
  const int64_t count = std::max<int64_t>(dims, 1);
  TORCH_CHECK_INDEX(dim >= -count && dim < count,
                    "Dimension out of range (expected to be in range of [", -count, ", ", count - 1,
                    "], but got ", dim, ")");
  return dim < 0 ? dim + count : dim;
}
inline int64_t maybe_wrap_dim(int64_t dim, TensorList tensors) {
  return tensors.empty() ? dim : maybe_wrap_dim(dim, tensors[0].dim());
}
inline void maybe_wrap_dims(std::vector<int64_t>& dims, int64_t count) {
  for (int64_t& dim : dims) dim = maybe_wrap_dim(dim, count);
}

}  // namespace at
