// Elements of a tensor by their indices.
#pragma once

#include <flambeau/half.h>

#include <cstddef>
#include <type_traits>

namespace at {

template <class T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
#if defined(_MSC_VER)
#define FLAMBEAU_RESTRICT __restrict
#else
#define FLAMBEAU_RESTRICT __restrict__
#endif
template <class T>
struct RestrictPtrTraits {
  using PtrType = T* FLAMBEAU_RESTRICT;
};

// Points to sizes and strides that the tensor, or the packed accessor, keeps.
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
          class index_t = int64_t>
class TensorAccessor {
 public:
  using PtrType = typename PtrTraits<T>::PtrType;

  C10_HOST_DEVICE TensorAccessor(PtrType data, const index_t* sizes, const index_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}

  C10_HOST_DEVICE index_t size(int64_t dim) const { return sizes_[dim]; }
  C10_HOST_DEVICE index_t stride(int64_t dim) const { return strides_[dim]; }
  C10_HOST_DEVICE PtrType data() const { return data_; }
  // An element of the last dimension, else what the index leaves.
  C10_HOST_DEVICE decltype(auto) operator[](index_t index) const {
    if constexpr (N == 1) {
      return static_cast<T&>(data_[index * strides_[0]]);
    } else {
      return TensorAccessor<T, N - 1, PtrTraits, index_t>(data_ + index * strides_[0], sizes_ + 1,
                                                          strides_ + 1);
    }
  }
#if !defined(__CUDA_ARCH__)
  struct Sizes {
    const index_t* first;
    const index_t* begin() const { return first; }
    const index_t* end() const { return first + N; }
    size_t size() const { return N; }
    const index_t& operator[](size_t dim) const { return first[dim]; }
  };
  Sizes sizes() const { return {sizes_}; }
  Sizes strides() const { return {strides_}; }
#endif

 private:
  PtrType data_;
  const index_t* sizes_;
  const index_t* strides_;
};

// Holds sizes and strides itself: it can be copied to where the tensor is not, into a kernel.
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
          class index_t = int64_t>
class GenericPackedTensorAccessor {
 public:
  using PtrType = typename PtrTraits<T>::PtrType;

  template <class From>
  C10_HOST GenericPackedTensorAccessor(PtrType data, const From* sizes, const From* strides)
      : data_(data) {
    for (size_t dim = 0; dim < N; ++dim) {
      sizes_[dim] = index_t(sizes[dim]);
      strides_[dim] = index_t(strides[dim]);
    }
  }

  C10_HOST_DEVICE index_t size(int64_t dim) const { return sizes_[dim]; }
  C10_HOST_DEVICE index_t stride(int64_t dim) const { return strides_[dim]; }
  C10_HOST_DEVICE PtrType data() const { return data_; }
  C10_HOST_DEVICE decltype(auto) operator[](index_t index) const {
    return TensorAccessor<T, N, PtrTraits, index_t>(data_, sizes_, strides_)[index];
  }

 private:
  PtrType data_;
  index_t sizes_[N];
  index_t strides_[N];
};

template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, PtrTraits, int32_t>;
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, PtrTraits, int64_t>;
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
          class index_t = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, PtrTraits, index_t>;

}  // namespace at
