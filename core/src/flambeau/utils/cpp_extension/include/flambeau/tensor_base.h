// A tensor of Python, held from C++: what it is and where its elements are.
#pragma once

#include <flambeau/accessor.h>
#include <flambeau/options.h>

#include <atomic>
#include <memory>
#include <unordered_map>

namespace flambeau {

// One for each tensor that C++ holds.  What C++ reads often is copied from Python once: it can be read
// by threads that do not hold the interpreter's lock, and in loops.
class Held {
 public:
  struct Facts {
    c10::ScalarType type = c10::ScalarType::Undefined;
    c10::DeviceType device_type = c10::DeviceType::CPU;
    c10::DeviceIndex device_index = -1;
    bool reachable = false;
    void* address = nullptr;
    int64_t numel = 1;
    std::vector<int64_t> sizes, strides;
  };

  // The only way to make one: a tensor has the same whichever way it came here.
  static std::shared_ptr<Held> of(py::object object) {
    WithPython with_python;
    std::weak_ptr<Held>& known = registry()[object.ptr()];
    if (std::shared_ptr<Held> held = known.lock()) return held;
    std::shared_ptr<Held> held(new Held(std::move(object)));
    known = held;
    return held;
  }

  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  ~Held() {
    if (!Py_IsInitialized()) {  // a static variable: its memory went with the interpreter
      object_.release();
      memory_.release();
      return;
    }
    WithPython with_python;
    auto found = registry().find(object_.ptr());
    if (found != registry().end() && found->second.expired()) registry().erase(found);
    object_ = py::object();
    memory_ = py::object();
  }

  const py::object& object() const { return object_; }

  const Facts& facts() {
    if (!known_.load(std::memory_order_acquire)) read(false);
    return facts_;
  }

  void* address() {
    if (!addressed_.load(std::memory_order_acquire)) read(true);
    TORCH_CHECK(facts_.reachable, "a tensor on the device '",
                c10::Device(facts_.device_type, facts_.device_index),
                "', or one that is sparse, has no memory that C++ can reach");
    return facts_.address;
  }

  // Read all there is, now.
  void prepare() { read(true); }

  // Read what is known again, after a write that may have changed size or memory.
  void refresh() {
    if (known_.load(std::memory_order_acquire)) read(addressed_.load(std::memory_order_acquire));
  }

 private:
  explicit Held(py::object object) : object_(std::move(object)) {}

  static std::unordered_map<PyObject*, std::weak_ptr<Held>>& registry() {
    static auto* tensors = new std::unordered_map<PyObject*, std::weak_ptr<Held>>();
    return *tensors;
  }

  void read(bool address) {
    WithPython with_python;
    const py::object& module = runtime();
    static const py::object* describe = new py::object(module.attr("describe"));
    const auto found = (*describe)(object_, address)
                           .cast<std::tuple<int, std::string, int, std::vector<int64_t>,
                                            std::vector<int64_t>, py::object, intptr_t>>();
    Facts facts;
    facts.type = c10::ScalarType(std::get<0>(found));
    facts.device_type = c10::device_type_named(std::get<1>(found));
    facts.device_index = c10::DeviceIndex(std::get<2>(found));
    facts.sizes = std::get<3>(found);
    facts.strides = std::get<4>(found);
    for (int64_t size : facts.sizes) facts.numel *= size;
    facts.reachable = !std::get<5>(found).is_none();
    facts.address = reinterpret_cast<void*>(std::get<6>(found));
    // Others may be reading: the lists move only if they are different.
    if (facts.sizes != facts_.sizes || facts.strides != facts_.strides) {
      facts_.sizes.swap(facts.sizes);
      facts_.strides.swap(facts.strides);
    }
    facts_.type = facts.type;
    facts_.device_type = facts.device_type;
    facts_.device_index = facts.device_index;
    facts_.numel = facts.numel;
    known_.store(true, std::memory_order_release);
    if (!address) return;
    // The memory stays while C++ may have its address, even if the tensor gets another.
    memory_ = std::get<5>(found);
    facts_.reachable = facts.reachable;
    facts_.address = facts.address;
    addressed_.store(true, std::memory_order_release);
  }

  py::object object_, memory_;
  Facts facts_;
  std::atomic<bool> known_{false}, addressed_{false};
};

}  // namespace flambeau

namespace at {

using c10::ArrayRef;
using c10::Device;
using c10::IntArrayRef;
using c10::Layout;
using c10::MemoryFormat;
using c10::Scalar;
using c10::ScalarType;
using c10::TensorOptions;

// What needs no operation.  Copies are the same tensor.
class TensorBase {
 public:
  TensorBase() = default;
  explicit TensorBase(flambeau::py::object object)
      : held_(object.is_none() ? nullptr : flambeau::Held::of(std::move(object))) {}

  bool defined() const { return held_ != nullptr; }
  explicit operator bool() const { return defined(); }
  void reset() { held_.reset(); }
  bool is_same(const TensorBase& other) const { return held_ == other.held_; }
  long use_count() const { return held_.use_count(); }

  // The tensor of Python; hold the interpreter's lock.
  flambeau::py::object object() const {
    return held_ ? held_->object() : flambeau::py::object(flambeau::py::none());
  }
  flambeau::Held& held() const {
    TORCH_CHECK(held_, "the tensor is undefined");
    return *held_;
  }

  int64_t dim() const { return int64_t(facts().sizes.size()); }
  int64_t ndimension() const { return dim(); }
  int64_t numel() const { return facts().numel; }
  size_t nbytes() const { return size_t(numel()) * itemsize(); }
  int64_t size(int64_t dim) const { return facts().sizes[wrapped(dim)]; }
  int64_t stride(int64_t dim) const {
    const size_t place = wrapped(dim);
    TORCH_CHECK(place < facts().strides.size(), "a sparse tensor has no strides");
    return facts().strides[place];
  }
  // Of a temporary the lists outlive it.
  IntArrayRef sizes() const {
    const auto& list = facts().sizes;
    return IntArrayRef(list.data(), list.size(), held_);
  }
  IntArrayRef strides() const {
    const auto& list = facts().strides;
    return IntArrayRef(list.data(), list.size(), held_);
  }

  ScalarType scalar_type() const { return facts().type; }
  caffe2::TypeMeta dtype() const { return scalar_type(); }
  size_t itemsize() const { return c10::elementSize(scalar_type()); }
  int64_t element_size() const { return int64_t(itemsize()); }
  Device device() const { return Device(facts().device_type, facts().device_index); }
  int64_t get_device() const { return facts().device_index; }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_meta() const { return device().is_meta(); }
  bool is_hip() const { return false; }
  bool is_xla() const { return false; }
  bool is_quantized() const { return false; }
  bool is_floating_point() const { return c10::isFloatingType(scalar_type()); }
  bool is_complex() const { return c10::isComplexType(scalar_type()); }
  bool is_signed() const { return c10::isSignedType(scalar_type()); }
  TensorOptions options() const {
    return TensorOptions(scalar_type()).device(device()).layout(layout());
  }
  Layout layout() const { return is_sparse() ? c10::kSparse : c10::kStrided; }

  bool is_sparse() const { return flag("is_sparse"); }
  bool requires_grad() const { return flag("requires_grad"); }
  bool is_leaf() const { return flag("is_leaf"); }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    if (format == MemoryFormat::Contiguous) return is_row_major();
    flambeau::WithPython with_python;
    return flambeau::runtime().attr("is_contiguous")(object(), int(format)).cast<bool>();
  }
  int64_t storage_offset() const {
    flambeau::WithPython with_python;
    return held().object().attr("storage_offset")().cast<int64_t>();
  }
  int64_t _version() const {
    flambeau::WithPython with_python;
    return held().object().attr("_version").cast<int64_t>();
  }

  void* data_ptr() const { return held().address(); }
  template <class T>
  T* data_ptr() const {
    using Element = std::remove_const_t<T>;
    constexpr ScalarType wanted = c10::CppTypeToScalarType<Element>::value;
    TORCH_CHECK(scalar_type() == wanted, "expected scalar type ", wanted, " but found ",
                scalar_type());
    return static_cast<T*>(data_ptr());
  }
  template <class T>
  T* data() const {
    return data_ptr<T>();
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  const T* const_data_ptr() const {
    return data_ptr<T>();
  }
  void* mutable_data_ptr() const { return data_ptr(); }
  const void* const_data_ptr() const { return data_ptr(); }

  // It points to the sizes that this tensor keeps: of a temporary it would dangle.
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() const& {
    static_assert(N > 0, "a tensor without dimensions has no accessor: *x.data_ptr<T>()");
    check_dim(N);
    return TensorAccessor<T, N>(data_ptr<T>(), facts().sizes.data(), facts().strides.data());
  }
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() && = delete;

  template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
            class index_t = int64_t>
  GenericPackedTensorAccessor<T, N, PtrTraits, index_t> generic_packed_accessor() const& {
    static_assert(N > 0, "a tensor without dimensions has no accessor: *x.data_ptr<T>()");
    check_dim(N);
    TORCH_CHECK((std::is_same_v<index_t, int64_t> || numel() <= INT32_MAX), "a tensor with ",
                numel(), " elements is too large for an accessor with indices of 32 bits");
    return {data_ptr<T>(), facts().sizes.data(), facts().strides.data()};
  }
  template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
            class index_t = int64_t>
  GenericPackedTensorAccessor<T, N, PtrTraits, index_t> generic_packed_accessor() && = delete;
  template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
            class index_t = int64_t>
  GenericPackedTensorAccessor<T, N, PtrTraits, index_t> packed_accessor() const& {
    return generic_packed_accessor<T, N, PtrTraits, index_t>();
  }
  template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
            class index_t = int64_t>
  GenericPackedTensorAccessor<T, N, PtrTraits, index_t> packed_accessor() && = delete;
  template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, PtrTraits> packed_accessor32() const& {
    return generic_packed_accessor<T, N, PtrTraits, int32_t>();
  }
  template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, PtrTraits> packed_accessor32() && = delete;
  template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, PtrTraits> packed_accessor64() const& {
    return generic_packed_accessor<T, N, PtrTraits, int64_t>();
  }
  template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, PtrTraits> packed_accessor64() && = delete;

 protected:
  const flambeau::Held::Facts& facts() const { return held().facts(); }

 private:
  size_t wrapped(int64_t dim) const {
    const int64_t count = this->dim();
    TORCH_CHECK_INDEX(dim >= -count && dim < count, "Dimension out of range (expected to be in [",
                      -count, ", ", count - 1, "], but got ", dim, ")");
    return size_t(dim < 0 ? dim + count : dim);
  }
  void check_dim(size_t expected) const {
    TORCH_CHECK(dim() == int64_t(expected), "TensorAccessor expected ", expected,
                " dims but tensor has ", dim());
  }
  bool is_row_major() const {
    const auto& facts = this->facts();
    if (facts.strides.size() != facts.sizes.size()) return false;  // a sparse tensor has none
    if (facts.numel == 0) return true;
    int64_t expected = 1;
    for (size_t dim = facts.sizes.size(); dim-- > 0;) {
      if (facts.sizes[dim] != 1 && facts.strides[dim] != expected) return false;
      expected *= facts.sizes[dim];
    }
    return true;
  }
  bool flag(const char* name) const {
    flambeau::WithPython with_python;
    return held().object().attr(name).cast<bool>();
  }

  std::shared_ptr<flambeau::Held> held_;
};

}  // namespace at
