// Negative log likelihood of a (rows, classes) matrix, row by row; `weight` may be null.  Rows
// whose target is `ignored` have loss and weight 0.
extern "C" __global__ void nll_forward(
    T* loss, T* used, const T* log_probs, const int64* target, const T* weight, int64 ignored,
    int64 rows, int64 classes) {
  GRID_LOOP(row, rows) {
    int64 t = target[row];
    bool counts = t != ignored;
    T w = counts ? (weight ? weight[t] : (T)1) : (T)0;
    used[row] = w;
    loss[row] = counts ? -w * log_probs[row * classes + t] : (T)0;
  }
}

// `grad` has one element per row; the mean's division is in it.
extern "C" __global__ void nll_backward(
    T* out, const T* grad, const int64* target, const T* weight, int64 ignored, int64 rows,
    int64 classes) {
  GRID_LOOP(i, rows * classes) {
    int64 row = i / classes, t = target[row];
    bool hit = t != ignored && t == i - row * classes;
    out[i] = hit ? -grad[row] * (weight ? weight[t] : (T)1) : (T)0;
  }
}
