// Negative log likelihood of a (rows, classes) matrix; `weight` may be null.  Rows whose target is
// `ignored` have loss and weight 0.
__device__ inline A weight_of(const T* weight, int64 t, int64 ignored) {
  return t == ignored ? (A)0 : weight ? (A)weight[t] : (A)1;
}

// Whether a target names no class: compared where it is used, for it may have changed since.
__device__ inline bool no_class(int64 t, int64 classes) { return t < 0 || t >= classes; }

extern "C" __global__ void nll_rows(
    T* loss, const T* log_probs, const int64* target, const T* weight, int64 ignored, int64 rows,
    int64 classes) {
  GRID_LOOP(row, rows) {
    int64 t = target[row];
    A value = 0;
    if (no_class(t, classes)) value /= value;
    else value = -weight_of(weight, t, ignored) * (A)log_probs[row * classes + t];
    loss[row] = t == ignored ? (T)0 : (T)value;
  }
}

// One block: the sum of all rows or (`mean`) their weighted mean, and the sum of weights.
extern "C" __global__ void nll_total(
    T* loss, T* total_weight, const T* log_probs, const int64* target, const T* weight,
    int64 ignored, int mean, int64 rows, int64 classes) {
  __shared__ A shared[32];
  A total = 0, weights = 0;
  BLOCK_LOOP(row, rows) {
    int64 t = target[row];
    if (t == ignored) continue;
    if (no_class(t, classes)) {
      total = (A)0 / (A)0;
      continue;
    }
    A w = weight_of(weight, t, ignored);
    weights += w;
    total -= w * (A)log_probs[row * classes + t];
  }
  total = over_block<false>(total, shared);
  weights = over_block<false>(weights, shared);
  if (threadIdx.x == 0) {
    *loss = (T)(mean ? total / weights : total);
    *total_weight = (T)weights;
  }
}

// `grad` has one element, or one per row (`step` 1); divided by `*divisor` unless that is null.
extern "C" __global__ void nll_backward(
    T* out, const T* grad, int64 step, const T* divisor, const int64* target, const T* weight,
    int64 ignored, int64 rows, int64 classes) {
  GRID_LOOP(i, rows * classes) {
    int64 row = i / classes, t = target[row];
    A value = 0;
    if (t != ignored && t == i - row * classes) {
      value = divisor ? (A)grad[step * row] / (A)*divisor : (A)grad[step * row];
      value *= -weight_of(weight, t, ignored);
    }
    out[i] = (T)value;
  }
}

// grad / count · (exp(log_probs) - one-hot), 0 in ignored rows.
extern "C" __global__ void cross_entropy_backward(
    T* out, const T* grad, const T* count, const T* log_probs, const int64* target, int64 ignored,
    int64 rows, int64 classes) {
  A share = (A)*grad / (A)*count;
  GRID_LOOP(i, rows * classes) {
    int64 row = i / classes, t = target[row];
    A hit = t == i - row * classes ? (A)1 : (A)0;
    out[i] = t == ignored ? (T)0 : (T)((exp((A)log_probs[i]) - hit) * share);
  }
}
