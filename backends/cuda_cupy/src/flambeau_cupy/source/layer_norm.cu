// Normalisation of the rows of a row-major matrix; weight and bias may be null.
extern "C" __global__ void layer_norm_forward(
    T* out, T* mean, T* invstd, const T* x, const T* weight, const T* bias, int64 rows,
    int64 columns, double eps) {
  __shared__ T shared[32];
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* a = x + row * columns;
    T total = 0, squares = 0;
    for (int64 j = threadIdx.x; j < columns; j += blockDim.x) total += a[j];
    T m = over_block<false>(total, shared) / columns;
    for (int64 j = threadIdx.x; j < columns; j += blockDim.x) squares += (a[j] - m) * (a[j] - m);
    T s = 1 / sqrt(over_block<false>(squares, shared) / columns + (T)eps);
    for (int64 j = threadIdx.x; j < columns; j += blockDim.x) {
      T y = (a[j] - m) * s;
      if (weight) y *= weight[j];
      if (bias) y += bias[j];
      out[row * columns + j] = y;
    }
    if (threadIdx.x == 0) mean[row] = m, invstd[row] = s;
  }
}

// With h = grad · weight and y the normalised row: invstd (h - mean(h) - y mean(h y)).
extern "C" __global__ void layer_norm_backward_input(
    T* out, const T* grad, const T* x, const T* weight, const T* mean, const T* invstd,
    int64 rows, int64 columns) {
  __shared__ T shared[32];
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    int64 at = row * columns;
    T m = mean[row], s = invstd[row], total = 0, dot = 0;
    for (int64 j = threadIdx.x; j < columns; j += blockDim.x) {
      T h = weight ? grad[at + j] * weight[j] : grad[at + j];
      total += h;
      dot += h * (x[at + j] - m) * s;
    }
    total = over_block<false>(total, shared) / columns;
    dot = over_block<false>(dot, shared) / columns;
    for (int64 j = threadIdx.x; j < columns; j += blockDim.x) {
      T h = weight ? grad[at + j] * weight[j] : grad[at + j];
      out[at + j] = s * (h - total - (x[at + j] - m) * s * dot);
    }
  }
}
