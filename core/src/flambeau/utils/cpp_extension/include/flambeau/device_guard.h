// Which device is current, in blocks of C++.
#pragma once

#include <flambeau/functions.h>

namespace flambeau {

inline int64_t current_cuda_device() {
  WithPython with_python;
  return runtime().attr("current_cuda_device")().cast<int64_t>();
}

inline void set_cuda_device(int64_t index) {
  WithPython with_python;
  runtime().attr("set_cuda_device")(index);
}

}  // namespace flambeau

namespace c10 {

// A device of CUDA is current while the guard lives, then the one before; others are never current.
class OptionalDeviceGuard {
 public:
  OptionalDeviceGuard() = default;
  explicit OptionalDeviceGuard(Device device) { reset_device(device); }
  explicit OptionalDeviceGuard(optional<Device> device) {
    if (device) reset_device(*device);
  }
  ~OptionalDeviceGuard() {
    if (before_) flambeau::set_cuda_device(*before_);
  }
  OptionalDeviceGuard(const OptionalDeviceGuard&) = delete;
  OptionalDeviceGuard& operator=(const OptionalDeviceGuard&) = delete;

  void set_index(DeviceIndex index) {
    if (!before_) before_ = flambeau::current_cuda_device();
    flambeau::set_cuda_device(index);
  }
  void set_device(Device device) { set_index(device.index()); }
  void reset_device(Device device) {
    if (device.is_cuda() && device.has_index()) set_device(device);
  }

 private:
  optional<int64_t> before_;
};

class DeviceGuard : public OptionalDeviceGuard {
 public:
  explicit DeviceGuard(Device device) : OptionalDeviceGuard(device) {}
};

}  // namespace c10

namespace at {

using c10::DeviceGuard;
using c10::OptionalDeviceGuard;
inline c10::optional<Device> device_of(const Tensor& tensor) {
  return tensor.defined() ? c10::optional<Device>(tensor.device()) : c10::nullopt;
}

}  // namespace at
