// Devices and streams of CUDA, as flambeau's backend has them.
#pragma once

#include <flambeau/device_guard.h>

#include <mutex>
#include <unordered_map>

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#define FLAMBEAU_HAS_CUDA 1
#else
typedef struct CUstream_st* cudaStream_t;
#endif

namespace c10::cuda {

class OptionalCUDAGuard : public OptionalDeviceGuard {
 public:
  using OptionalDeviceGuard::OptionalDeviceGuard;
  explicit OptionalCUDAGuard(DeviceIndex index) { set_index(index); }
};

class CUDAGuard : public OptionalCUDAGuard {
 public:
  explicit CUDAGuard(Device device) : OptionalCUDAGuard(optional<Device>(device)) {}
  explicit CUDAGuard(DeviceIndex index) : OptionalCUDAGuard(index) {}
};

class CUDAStream {
 public:
  explicit CUDAStream(cudaStream_t stream) : stream_(stream) {}
  operator cudaStream_t() const { return stream_; }
  cudaStream_t stream() const { return stream_; }

 private:
  cudaStream_t stream_;
};

inline CUDAStream getCurrentCUDAStream(DeviceIndex index = -1) {
  flambeau::WithPython with_python;
  const auto handle = flambeau::runtime().attr("current_cuda_stream")(index).cast<intptr_t>();
  return CUDAStream(reinterpret_cast<cudaStream_t>(handle));
}

inline DeviceIndex current_device() { return DeviceIndex(flambeau::current_cuda_device()); }
inline void set_device(DeviceIndex index) { flambeau::set_cuda_device(index); }

}  // namespace c10::cuda

namespace at::cuda {

using c10::cuda::CUDAGuard;
using c10::cuda::CUDAStream;
using c10::cuda::current_device;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::OptionalCUDAGuard;
using c10::cuda::set_device;

#ifdef FLAMBEAU_HAS_CUDA
inline cudaDeviceProp* getDeviceProperties(int64_t index) {
  static std::unordered_map<int64_t, cudaDeviceProp> known;
  static std::mutex lock;
  std::lock_guard<std::mutex> locked(lock);
  auto found = known.find(index);
  if (found == known.end()) {
    cudaDeviceProp properties;
    const cudaError_t error = cudaGetDeviceProperties(&properties, int(index));
    TORCH_CHECK(error == cudaSuccess, "CUDA error: ", cudaGetErrorString(error));
    found = known.emplace(index, properties).first;
  }
  return &found->second;
}
inline cudaDeviceProp* getCurrentDeviceProperties() {
  return getDeviceProperties(flambeau::current_cuda_device());
}
#endif

// Blocks of so many threads that each element has one.
inline int ATenCeilDiv(int a, int b) { return (a + b - 1) / b; }

}  // namespace at::cuda

namespace torch::cuda {

inline size_t device_count() {
  flambeau::WithPython with_python;
  return flambeau::runtime().attr("cuda_device_count")().cast<size_t>();
}
inline bool is_available() { return device_count() > 0; }

}  // namespace torch::cuda

#ifdef FLAMBEAU_HAS_CUDA
#define C10_CUDA_CHECK(call)                                                               \
  do {                                                                                     \
    const cudaError_t flambeau_error_ = (call);                                            \
    TORCH_CHECK(flambeau_error_ == cudaSuccess, "CUDA error: ",                            \
                cudaGetErrorString(flambeau_error_))                                       \
  } while (false)
#define AT_CUDA_CHECK C10_CUDA_CHECK
#define THCudaCheck C10_CUDA_CHECK
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define CUDA_KERNEL_LOOP(i, n) \
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)
#endif
