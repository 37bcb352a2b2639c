// Where a tensor is and what it holds.
#pragma once

#include <flambeau/scalar_type.h>

namespace c10 {

using DeviceIndex = int16_t;

enum class DeviceType : int8_t {
  CPU = 0,
  CUDA = 1,
  HIP = 6,
  XLA = 9,
  MPS = 13,
  Meta = 14,
  Other = 20,
  COMPILE_TIME_MAX_DEVICE_TYPES = 21,
};
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA, kHIP = DeviceType::HIP,
                     kMeta = DeviceType::Meta;

inline std::string DeviceTypeName(DeviceType type, bool lower_case = false) {
  switch (type) {
    case DeviceType::CPU: return lower_case ? "cpu" : "CPU";
    case DeviceType::CUDA: return lower_case ? "cuda" : "CUDA";
    case DeviceType::HIP: return lower_case ? "hip" : "HIP";
    case DeviceType::XLA: return lower_case ? "xla" : "XLA";
    case DeviceType::MPS: return lower_case ? "mps" : "MPS";
    case DeviceType::Meta: return lower_case ? "meta" : "META";
    default: return lower_case ? "other" : "OTHER";
  }
}

inline DeviceType device_type_named(const std::string& name) {
  for (int i = 0; i < 20; ++i)
    if (DeviceTypeName(DeviceType(i), true) == name) return DeviceType(i);
  return DeviceType::Other;
}

inline std::ostream& operator<<(std::ostream& stream, DeviceType type) {
  return stream << DeviceTypeName(type, true);
}

class Device {
 public:
  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  Device(const std::string& text) : type_(DeviceType::CPU) {
    const size_t colon = text.find(':');
    type_ = device_type_named(text.substr(0, colon));
    TORCH_CHECK(type_ != DeviceType::Other, "no type of device is called '", text, "'");
    if (colon != std::string::npos) index_ = DeviceIndex(std::stoi(text.substr(colon + 1)));
  }
  Device(const char* text) : Device(std::string(text)) {}

  DeviceType type() const { return type_; }
  DeviceIndex index() const { return index_; }
  bool has_index() const { return index_ >= 0; }
  void set_index(DeviceIndex index) { index_ = index; }
  bool is_cpu() const { return type_ == kCPU; }
  bool is_cuda() const { return type_ == kCUDA; }
  bool is_meta() const { return type_ == kMeta; }
  std::string str() const {
    return DeviceTypeName(type_, true) + (has_index() ? ":" + std::to_string(index_) : "");
  }
  bool operator==(const Device& other) const {
    return type_ == other.type_ && index_ == other.index_;
  }
  bool operator!=(const Device& other) const { return !(*this == other); }

 private:
  DeviceType type_;
  DeviceIndex index_ = -1;
};

inline std::ostream& operator<<(std::ostream& stream, const Device& device) {
  return stream << device.str();
}

enum class Layout : int8_t { Strided, Sparse, SparseCsr };
constexpr Layout kStrided = Layout::Strided, kSparse = Layout::Sparse, kSparseCsr = Layout::SparseCsr;

enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

// What a function that makes a tensor is told beside its size.
class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType type) : dtype_(type) {}
  TensorOptions(caffe2::TypeMeta type) : dtype_(type.toScalarType()) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType type) : device_(Device(type)) {}
  TensorOptions(Layout layout) : layout_(layout) {}

  TensorOptions dtype(optional<ScalarType> type) const { return with(&TensorOptions::dtype_, type); }
  TensorOptions dtype(ScalarType type) const { return dtype(optional<ScalarType>(type)); }
  TensorOptions dtype(caffe2::TypeMeta type) const { return dtype(type.toScalarType()); }
  template <class T>
  TensorOptions dtype() const {
    return dtype(CppTypeToScalarType<T>::value);
  }
  TensorOptions device(Device device) const {
    return with(&TensorOptions::device_, optional<Device>(device));
  }
  TensorOptions device(optional<Device> device) const {
    return with(&TensorOptions::device_, device);
  }
  TensorOptions device(DeviceType type, DeviceIndex index = -1) const {
    return device(Device(type, index));
  }
  TensorOptions device_index(DeviceIndex index) const { return device(kCUDA, index); }
  TensorOptions layout(Layout layout) const {
    return with(&TensorOptions::layout_, optional<Layout>(layout));
  }
  TensorOptions requires_grad(bool value) const {
    return with(&TensorOptions::requires_grad_, value);
  }
  TensorOptions is_variable(bool) const { return *this; }
  TensorOptions pinned_memory(bool value) const {
    return with(&TensorOptions::pinned_memory_, value);
  }
  TensorOptions memory_format(MemoryFormat format) const {
    return with(&TensorOptions::memory_format_, optional<MemoryFormat>(format));
  }

  bool has_dtype() const { return dtype_.has_value(); }
  bool has_device() const { return device_.has_value(); }
  caffe2::TypeMeta dtype() const { return dtype_.value_or(kFloat); }
  Device device() const { return device_.value_or(Device(kCPU)); }
  Layout layout() const { return layout_.value_or(kStrided); }
  bool requires_grad() const { return requires_grad_; }
  bool pinned_memory() const { return pinned_memory_; }
  optional<ScalarType> dtype_opt() const { return dtype_; }
  optional<Device> device_opt() const { return device_; }
  optional<Layout> layout_opt() const { return layout_; }
  optional<MemoryFormat> memory_format_opt() const { return memory_format_; }

 private:
  template <class T>
  TensorOptions with(T TensorOptions::*field, T value) const {
    TensorOptions changed = *this;
    changed.*field = value;
    return changed;
  }

  optional<ScalarType> dtype_;
  optional<Device> device_;
  optional<Layout> layout_;
  optional<MemoryFormat> memory_format_;
  bool requires_grad_ = false, pinned_memory_ = false;
};

inline TensorOptions dtype(caffe2::TypeMeta type) { return TensorOptions(type); }
template <class T>
TensorOptions dtype() {
  return TensorOptions().dtype<T>();
}
inline TensorOptions device(Device device) { return TensorOptions(device); }
inline TensorOptions layout(Layout layout) { return TensorOptions(layout); }
inline TensorOptions requires_grad(bool value = true) {
  return TensorOptions().requires_grad(value);
}

}  // namespace c10
