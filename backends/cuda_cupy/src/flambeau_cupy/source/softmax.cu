// Softmax over the rows of a row-major matrix, one block per row (or several, by turns).
extern "C" __global__ void softmax_forward(T* out, const T* x, int64 rows, int64 columns) {
  __shared__ T shared[32];
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* a = x + row * columns;
    T top = NEGATIVE_INFINITY, total = 0;
    for (int64 j = threadIdx.x; j < columns; j += blockDim.x) top = bigger(top, a[j]);
    top = over_block<true>(top, shared);
    for (int64 j = threadIdx.x; j < columns; j += blockDim.x) total += exp(a[j] - top);
    total = over_block<false>(total, shared);
    for (int64 j = threadIdx.x; j < columns; j += blockDim.x) {
      out[row * columns + j] = exp(a[j] - top) / total;
    }
  }
}

extern "C" __global__ void log_softmax_forward(T* out, const T* x, int64 rows, int64 columns) {
  __shared__ T shared[32];
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* a = x + row * columns;
    T top = NEGATIVE_INFINITY, total = 0;
    for (int64 j = threadIdx.x; j < columns; j += blockDim.x) top = bigger(top, a[j]);
    top = over_block<true>(top, shared);
    for (int64 j = threadIdx.x; j < columns; j += blockDim.x) total += exp(a[j] - top);
    T shift = log(over_block<false>(total, shared));
    for (int64 j = threadIdx.x; j < columns; j += blockDim.x) {
      out[row * columns + j] = a[j] - top - shift;
    }
  }
}

// y (g - Σ g y), y being the result.
extern "C" __global__ void softmax_backward(
    T* out, const T* grad, const T* result, int64 rows, int64 columns) {
  __shared__ T shared[32];
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    int64 at = row * columns;
    T dot = 0;
    for (int64 j = threadIdx.x; j < columns; j += blockDim.x) dot += grad[at + j] * result[at + j];
    dot = over_block<false>(dot, shared);
    for (int64 j = threadIdx.x; j < columns; j += blockDim.x) {
      out[at + j] = result[at + j] * (grad[at + j] - dot);
    }
  }
}

// g - exp(y) Σ g, y being the result.
extern "C" __global__ void log_softmax_backward(
    T* out, const T* grad, const T* result, int64 rows, int64 columns) {
  __shared__ T shared[32];
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    int64 at = row * columns;
    T total = 0;
    for (int64 j = threadIdx.x; j < columns; j += blockDim.x) total += grad[at + j];
    total = over_block<false>(total, shared);
    for (int64 j = threadIdx.x; j < columns; j += blockDim.x) {
      out[at + j] = grad[at + j] - exp(result[at + j]) * total;
    }
  }
}
