// Normalisation of the rows of a row-major matrix, and of the channels of (images, channels, size).
// Weight and bias are T, or A where `wide`, and may be null.
extern "C" __global__ void layer_norm_forward(
    T* out, T* mean, T* invstd, const T* x, const void* weight, const void* bias, int wide,
    int64 rows, int64 columns, double eps) {
  __shared__ A shared[32];
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* a = x + row * columns;
    A total = 0, squares = 0;
    BLOCK_LOOP(j, columns) total += (A)a[j];
    A m = over_block<false>(total, shared) / columns;
    BLOCK_LOOP(j, columns) squares += ((A)a[j] - m) * ((A)a[j] - m);
    A s = 1 / sqrt(over_block<false>(squares, shared) / columns + (A)eps);
    BLOCK_LOOP(j, columns) {
      A y = ((A)a[j] - m) * s;
      if (weight) y *= parameter(weight, j, wide);
      if (bias) y += parameter(bias, j, wide);
      out[row * columns + j] = (T)y;
    }
    if (threadIdx.x == 0) mean[row] = (T)m, invstd[row] = (T)s;
  }
}

// With h = grad · weight and y the normalised row: invstd (h - mean(h) - y mean(h y)).
extern "C" __global__ void layer_norm_backward_input(
    T* out, const T* grad, const T* x, const void* weight, int wide, const T* mean,
    const T* invstd, int64 rows, int64 columns) {
  __shared__ A shared[32];
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    int64 at = row * columns;
    A m = mean[row], s = invstd[row], total = 0, dot = 0;
    BLOCK_LOOP(j, columns) {
      A h = weight ? (A)grad[at + j] * parameter(weight, j, wide) : (A)grad[at + j];
      total += h;
      dot += h * ((A)x[at + j] - m) * s;
    }
    total = over_block<false>(total, shared) / columns;
    dot = over_block<false>(dot, shared) / columns;
    BLOCK_LOOP(j, columns) {
      A h = weight ? (A)grad[at + j] * parameter(weight, j, wide) : (A)grad[at + j];
      out[at + j] = (T)(s * (h - total - ((A)x[at + j] - m) * s * dot));
    }
  }
}

// Per column: Σ grad and Σ grad · y.
extern "C" __global__ void layer_norm_backward_weight(
    A* over_weight, A* over_bias, const T* grad, const T* x, const T* mean, const T* invstd,
    int64 rows, int64 columns) {
  __shared__ A shared[1024];
  int warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int64 first = 32 * (int64)blockIdx.x; first < columns; first += 32 * (int64)gridDim.x) {
    int64 j = first + threadIdx.x % 32;
    A total = 0, dot = 0;
    for (int64 row = warp; row < rows && j < columns; row += warps) {
      A g = grad[row * columns + j];
      total += g;
      dot += g * ((A)x[row * columns + j] - (A)mean[row]) * (A)invstd[row];
    }
    total = down_columns(total, shared);
    dot = down_columns(dot, shared);
    if (warp == 0 && j < columns) over_weight[j] = dot, over_bias[j] = total;
  }
}

// Mean and invstd of each channel: the mean first, then squares about it.
extern "C" __global__ void batch_norm_statistics(
    T* mean, T* invstd, const T* x, int64 images, int64 channels, int64 size, double eps) {
  __shared__ A shared[32];
  int64 count = images * size;
  for (int64 c = blockIdx.x; c < channels; c += gridDim.x) {
    A total = 0, squares = 0;
    BLOCK_LOOP(i, count) total += (A)x[(i / size * channels + c) * size + i % size];
    A m = over_block<false>(total, shared) / count;
    BLOCK_LOOP(i, count) {
      A d = (A)x[(i / size * channels + c) * size + i % size] - m;
      squares += d * d;
    }
    A s = 1 / sqrt(over_block<false>(squares, shared) / count + (A)eps);
    if (threadIdx.x == 0) mean[c] = (T)m, invstd[c] = (T)s;
  }
}

// The same where the channels are the last dimension: lanes are channels.
extern "C" __global__ void batch_norm_column_statistics(
    T* mean, T* invstd, const T* x, int64 rows, int64 channels, double eps) {
  __shared__ A shared[1024], means[32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  for (int64 first = 32 * (int64)blockIdx.x; first < channels; first += 32 * (int64)gridDim.x) {
    int64 c = first + lane;
    A total = 0, squares = 0;
    for (int64 row = warp; row < rows && c < channels; row += warps) total += (A)x[row * channels + c];
    total = down_columns(total, shared);
    if (warp == 0) means[lane] = total / rows;
    __syncthreads();
    A m = means[lane];
    for (int64 row = warp; row < rows && c < channels; row += warps) {
      A d = (A)x[row * channels + c] - m;
      squares += d * d;
    }
    squares = down_columns(squares, shared);
    if (warp == 0 && c < channels) {
      mean[c] = (T)m, invstd[c] = (T)(1 / sqrt(squares / rows + (A)eps));
    }
  }
}

// The statistics of batch normalisation may be T or A (`wide_statistics`), as weight and bias may.
extern "C" __global__ void batch_norm_transform(
    T* out, const T* x, const void* weight, const void* bias, int wide, const void* mean,
    const void* invstd, int wide_statistics, int64 channels, int64 size, int64 n) {
  GRID_LOOP(i, n) {
    int64 c = i / size % channels;
    A y = ((A)x[i] - parameter(mean, c, wide_statistics)) * parameter(invstd, c, wide_statistics);
    if (weight) y *= parameter(weight, c, wide);
    if (bias) y += parameter(bias, c, wide);
    out[i] = (T)y;
  }
}

// Per channel: Σ grad and Σ grad · y.
extern "C" __global__ void batch_norm_sums(
    A* over_weight, A* over_bias, const T* grad, const T* x, const void* mean, const void* invstd,
    int wide_statistics, int64 images, int64 channels, int64 size) {
  __shared__ A shared[32];
  int64 count = images * size;
  for (int64 c = blockIdx.x; c < channels; c += gridDim.x) {
    A m = parameter(mean, c, wide_statistics), s = parameter(invstd, c, wide_statistics);
    A total = 0, dot = 0;
    BLOCK_LOOP(i, count) {
      int64 at = (i / size * channels + c) * size + i % size;
      total += (A)grad[at];
      dot += (A)grad[at] * ((A)x[at] - m);
    }
    total = over_block<false>(total, shared);
    dot = over_block<false>(dot, shared) * s;
    if (threadIdx.x == 0) over_weight[c] = dot, over_bias[c] = total;
  }
}

extern "C" __global__ void batch_norm_column_sums(
    A* over_weight, A* over_bias, const T* grad, const T* x, const void* mean, const void* invstd,
    int wide_statistics, int64 rows, int64 channels) {
  __shared__ A shared[1024];
  int warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int64 first = 32 * (int64)blockIdx.x; first < channels; first += 32 * (int64)gridDim.x) {
    int64 c = first + threadIdx.x % 32;
    A m = c < channels ? parameter(mean, c, wide_statistics) : (A)0, total = 0, dot = 0;
    for (int64 row = warp; row < rows && c < channels; row += warps) {
      A g = grad[row * channels + c];
      total += g;
      dot += g * ((A)x[row * channels + c] - m);
    }
    total = down_columns(total, shared);
    dot = down_columns(dot, shared);
    if (warp == 0 && c < channels) {
      over_weight[c] = dot * parameter(invstd, c, wide_statistics), over_bias[c] = total;
    }
  }
}

// weight · invstd · (grad - Σ grad / count - y Σ grad y / count), with the sums of above.
extern "C" __global__ void batch_norm_backward_input(
    T* out, const T* grad, const T* x, const void* weight, int wide, const void* mean,
    const void* invstd, int wide_statistics, const A* over_weight, const A* over_bias,
    int64 channels, int64 size, int64 n) {
  A share = (A)1 / (A)(n / channels);
  GRID_LOOP(i, n) {
    int64 c = i / size % channels;
    A s = parameter(invstd, c, wide_statistics);
    A y = ((A)x[i] - parameter(mean, c, wide_statistics)) * s;
    A d = (A)grad[i] - over_bias[c] * share - y * over_weight[c] * share;
    out[i] = (T)(d * (weight ? s * parameter(weight, c, wide) : s));
  }
}
