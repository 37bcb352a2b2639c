// Activations by number: 0 relu, 1 sigmoid, 2 silu, 3 gelu (exact), 4 gelu (tanh), 5 softplus with
// its factor p and threshold q, 6 leaky relu with slope p, 7 elu with alpha p, scale q and the
// factor r of its argument, 8 q in place of what is at most p.
__device__ inline A sigmoid_of(A x) {
  A e = exp(x < 0 ? x : -x);  // of the non-positive side: never overflows
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

__device__ inline A tanh_argument(A x) {
  return (A)0.7978845608028654 * (x + (A)0.044715 * x * x * x);  // √(2/π)
}

__device__ inline A activated(A x, int which, A p, A q, A r) {
  switch (which) {
    case 0: return x > 0 || x != x ? x : (A)0;
    case 1: return sigmoid_of(x);
    case 2: return x * sigmoid_of(x);
    case 3: return (A)0.5 * x * (1 + erf(x * (A)0.7071067811865476));
    case 4: return (A)0.5 * x * (1 + tanh(tanh_argument(x)));
    case 5: return x * p > q ? x : log1p(exp(x * p)) / p;
    case 6: return x > 0 ? x : x * p;
    case 7: return x > 0 ? x * q : expm1(x * r) * p * q;
    default: return x <= p ? q : x;
  }
}

// Of those whose gradient is an op: 3 and 4, 6, and 8.
__device__ inline A derivative(A x, int which, A p) {
  switch (which) {
    case 3:
      return (A)0.5 * (1 + erf(x * (A)0.7071067811865476)) +
             x * (A)0.3989422804014327 * exp((A)-0.5 * x * x);  // 1/√(2π)
    case 4: {
      A t = tanh(tanh_argument(x));
      A inner = (A)0.7978845608028654 * (1 + 3 * (A)0.044715 * x * x);
      return (A)0.5 * (1 + t) + (A)0.5 * x * (1 - t * t) * inner;
    }
    case 6: return x > 0 ? (A)1 : p;
    default: return 1;
  }
}

extern "C" __global__ void activation_forward(
    T* out, const T* x, int which, double p, double q, double r, int64 n) {
  map(out, x, n, [=](A a) { return activated(a, which, (A)p, (A)q, (A)r); });
}

extern "C" __global__ void activation_backward(
    T* out, const T* grad, const T* x, int which, double p, int64 n) {
  if (which == 8) {  // no product: a gradient that is not passed on may be infinite
    map2(out, grad, x, n, [=](A g, A a) { return a <= (A)p ? (A)0 : g; });
  } else {
    map2(out, grad, x, n, [=](A g, A a) { return g * derivative(a, which, (A)p); });
  }
}
