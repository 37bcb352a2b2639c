// Optimizer steps over one parameter group in one launch: `table` has, for every block of the
// grid's y direction, the addresses of one parameter's arrays, and `sizes` its length.
extern "C" __global__ void sgd_step(
    T* const* table, const int64* sizes, double lr, double momentum, double dampening,
    double weight_decay, int nesterov, int first) {
  T* p = table[3 * blockIdx.y];
  const T* g = table[3 * blockIdx.y + 1];
  T* buffer = table[3 * blockIdx.y + 2];
  GRID_LOOP(i, sizes[blockIdx.y]) {
    T d = g[i] + (T)weight_decay * p[i];
    if (momentum != 0) {
      T b = first ? d : (T)momentum * buffer[i] + (T)(1 - dampening) * d;
      buffer[i] = b;
      d = nesterov ? d + (T)momentum * b : b;
    }
    p[i] -= (T)lr * d;
  }
}

// `correction1` is 1 - β₁ᵗ and `correction2` the root of 1 - β₂ᵗ, of the step t that is made.
extern "C" __global__ void adam_step(
    T* const* table, const int64* sizes, double lr, double beta1, double beta2, double eps,
    double weight_decay, int decoupled, double correction1, double correction2) {
  T* p = table[4 * blockIdx.y];
  const T* g = table[4 * blockIdx.y + 1];
  T* mean = table[4 * blockIdx.y + 2];
  T* square = table[4 * blockIdx.y + 3];
  GRID_LOOP(i, sizes[blockIdx.y]) {
    T x = p[i], d = g[i];
    if (decoupled) x *= (T)(1 - lr * weight_decay);
    else d += (T)weight_decay * x;
    T m = mean[i] + (T)(1 - beta1) * (d - mean[i]);
    T v = (T)beta2 * square[i] + (T)(1 - beta2) * d * d;
    mean[i] = m;
    square[i] = v;
    p[i] = x - (T)(lr / correction1) * m / (sqrt(v) / (T)correction2 + (T)eps);
  }
}
