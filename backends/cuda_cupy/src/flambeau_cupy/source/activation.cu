// Activations by number: 0 relu, 1 sigmoid, 2 silu, 3 gelu (exact), 4 gelu (tanh), 5 softplus.
__device__ T sigmoid_of(T x) {
  T e = exp(x < 0 ? x : -x);  // of the non-positive side: never overflows
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

__device__ T tanh_argument(T x) {
  return (T)0.7978845608028654 * (x + (T)0.044715 * x * x * x);  // √(2/π)
}

__device__ T activated(T x, int which) {
  switch (which) {
    case 0: return x > 0 || x != x ? x : (T)0;
    case 1: return sigmoid_of(x);
    case 2: return x * sigmoid_of(x);
    case 3: return (T)0.5 * x * (1 + erf(x * (T)0.7071067811865476));
    case 4: return (T)0.5 * x * (1 + tanh(tanh_argument(x)));
    default: return x > 20 ? x : log1p(exp(x));
  }
}

__device__ T derivative(T x, int which) {
  switch (which) {
    case 0: return x > 0 ? (T)1 : (T)0;
    case 1: { T s = sigmoid_of(x); return s * (1 - s); }
    case 2: { T s = sigmoid_of(x); return s * (1 + x * (1 - s)); }
    case 3:
      return (T)0.5 * (1 + erf(x * (T)0.7071067811865476)) +
             x * (T)0.3989422804014327 * exp((T)-0.5 * x * x);  // 1/√(2π)
    case 4: {
      T t = tanh(tanh_argument(x));
      T inner = (T)0.7978845608028654 * (1 + 3 * (T)0.044715 * x * x);
      return (T)0.5 * (1 + t) + (T)0.5 * x * (1 - t * t) * inner;
    }
    default: return x > 20 ? (T)1 : sigmoid_of(x);
  }
}

extern "C" __global__ void activation_forward(T* out, const T* x, int which, int64 n) {
  GRID_LOOP(i, n) out[i] = activated(x[i], which);
}

extern "C" __global__ void activation_backward(
    T* out, const T* grad, const T* x, int which, int64 n) {
  GRID_LOOP(i, n) out[i] = grad[i] * derivative(x[i], which);
}
