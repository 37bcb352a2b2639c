// Lists that functions take: of numbers, of tensors.
#pragma once

#include <flambeau/error.h>

#include <array>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <vector>

namespace c10 {

// Elements of somebody else's array.  One made of `{...}` or of a temporary owns what it names, so that a
// variable of this class does not dangle.
template <class T>
class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;
  using size_type = size_t;

  ArrayRef() = default;
  ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  ArrayRef(const T* begin, const T* end) : data_(begin), size_(end - begin) {}
  ArrayRef(const T& one) : ArrayRef(std::vector<T>{one}) {}
  ArrayRef(std::initializer_list<T> list) : ArrayRef(std::vector<T>(list)) {}
  ArrayRef(const std::vector<T>& list) : data_(list.data()), size_(list.size()) {}
  ArrayRef(std::vector<T>&& list) {
    auto owned = std::make_shared<std::vector<T>>(std::move(list));
    data_ = owned->data();
    size_ = owned->size();
    owner_ = std::move(owned);
  }
  ArrayRef(const T* data, size_t size, std::shared_ptr<const void> owner)
      : data_(data), size_(size), owner_(std::move(owner)) {}
  template <size_t N>
  ArrayRef(const std::array<T, N>& list) : data_(list.data()), size_(N) {}
  template <size_t N>
  ArrayRef(const T (&list)[N]) : data_(list), size_(N) {}

  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  std::reverse_iterator<const T*> rbegin() const {
    return std::reverse_iterator<const T*>(end());
  }
  std::reverse_iterator<const T*> rend() const {
    return std::reverse_iterator<const T*>(begin());
  }
  const T& operator[](size_t index) const { return data_[index]; }
  const T& at(size_t index) const {
    TORCH_CHECK(index < size_, "index ", index, " of a list of ", size_);
    return data_[index];
  }
  const T& front() const { return at(0); }
  const T& back() const { return at(size_ - 1); }
  ArrayRef slice(size_t start, size_t count) const {
    TORCH_CHECK(start <= size_ && count <= size_ - start, "elements ", start, " to ", start + count,
                " of ", size_);
    return ArrayRef(data_ + start, count, owner_);
  }
  ArrayRef slice(size_t start) const { return slice(start, size_ - std::min(start, size_)); }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  operator std::vector<T>() const { return vec(); }
  bool equals(const ArrayRef& other) const {
    return size_ == other.size_ && std::equal(begin(), end(), other.begin());
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
  std::shared_ptr<const void> owner_;
};

template <class T>
bool operator==(const ArrayRef<T>& a, const ArrayRef<T>& b) {
  return a.equals(b);
}
template <class T>
bool operator!=(const ArrayRef<T>& a, const ArrayRef<T>& b) {
  return !a.equals(b);
}
template <class T>
bool operator==(const ArrayRef<T>& a, const std::vector<T>& b) {
  return a.equals(ArrayRef<T>(b));
}
template <class T>
bool operator==(const std::vector<T>& a, const ArrayRef<T>& b) {
  return b.equals(ArrayRef<T>(a));
}
template <class T>
bool operator!=(const ArrayRef<T>& a, const std::vector<T>& b) {
  return !(a == b);
}

template <class T>
std::ostream& operator<<(std::ostream& stream, const ArrayRef<T>& list) {
  stream << '[';
  for (size_t i = 0; i < list.size(); ++i) stream << (i ? ", " : "") << list[i];
  return stream << ']';
}

using IntArrayRef = ArrayRef<int64_t>;
using IntList = IntArrayRef;

template <class T>
using optional = std::optional<T>;
using std::make_optional;
using std::nullopt;
using nullopt_t = std::nullopt_t;
using string_view = std::string_view;

// Lists and dictionaries of scripts are those of the standard library here.
template <class T>
using List = std::vector<T>;
template <class T, unsigned N = 0>
using SmallVector = std::vector<T>;

}  // namespace c10
