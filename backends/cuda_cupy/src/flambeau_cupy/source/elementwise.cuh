// What generated kernels call (see flambeau_cupy.fusion.steps): operators that C has not, or has with
// another meaning.
// The sign of the divisor; an exact zero keeps that of the dividend.
__device__ inline float remainder_of(float a, float b) {
  float r = fmodf(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
__device__ inline double remainder_of(double a, double b) {
  double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
__device__ inline int64 rest_of(int64 a, int64 b) { return b == 0 || b == -1 ? 0 : a % b; }
__device__ inline int64 remainder_of(int64 a, int64 b) {
  int64 r = rest_of(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// The floor of the exact quotient, by way of the exact remainder; of a zero divisor a / b.
template <class N> __device__ inline N floor_of_quotient(N a, N b) {
  if (b == 0) return a / b;
  N r = fmod(a, b), q = (a - r) / b;
  if (r != 0 && (r < 0) != (b < 0)) q -= 1;
  if (q == 0) return copysign((N)0, a) * copysign((N)1, b);
  return rint(q);
}
template <> __device__ inline int64 floor_of_quotient<int64>(int64 a, int64 b) {
  if (b == 0) return 0;
  if (b == -1) return (int64)(0 - (uint64)a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

// Modulo 2^64; a negative power of an integer is rounded towards zero, and 0 of zero.
__device__ inline int64 power_of(int64 a, int64 b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
  uint64 result = 1, base = (uint64)a;
  for (; b; b >>= 1, base *= base) {
    if (b & 1) result *= base;
  }
  return (int64)result;
}

template <class N> __device__ inline N sigmoid_of(N x) {
  N e = exp(x < 0 ? x : -x);  // of the non-positive side: never overflows
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}
template <class N> __device__ inline N tanh_argument(N x) {
  return (N)0.7978845608028654 * (x + (N)0.044715 * x * x * x);  // √(2/π)
}
template <class N> __device__ inline N gelu_tanh_slope(N x) {
  N t = tanh(tanh_argument(x));
  N inner = (N)0.7978845608028654 * (1 + 3 * (N)0.044715 * x * x);
  return (N)0.5 * (1 + t) + (N)0.5 * x * (1 - t * t) * inner;
}
template <class N> __device__ inline N gelu_slope(N x) {
  return (N)0.5 * (1 + erf(x * (N)0.7071067811865476)) +
         x * (N)0.3989422804014327 * exp((N)-0.5 * x * x);  // 1/√(2π)
}

// Neighbouring elements that are read or written at once.
template <class E, int SIZE> struct alignas(sizeof(E) * SIZE) Row { E of[SIZE]; };
template <class R> __device__ inline bool aligned_for(const void* p) {
  return ((uint64)p & (sizeof(R) - 1)) == 0;
}

// Where the elements of the operands lie.  Of `dims` 0, element i of each is i * step[.][0], step
// 0 or 1; else it is found by the sizes, the last of which runs fastest.
template <int OPERANDS> struct Layout {
  int64 n, dims, size[12], step[OPERANDS][12];
  __device__ void places(int64 i, int64* at) const {
    for (int k = 0; k < OPERANDS; k++) at[k] = 0;
    for (int d = (int)dims - 1; d >= 0; d--) {
      int64 rest;
      if ((uint64)i >> 32) {
        rest = i % size[d];
        i /= size[d];
      } else {  // a division of 32 bits is several times as fast
        uint32 j = (uint32)i, s = (uint32)size[d];
        uint32 q = size[d] >> 32 ? 0 : j / s;
        rest = size[d] >> 32 ? (int64)j : (int64)(j - q * s);
        i = q;
      }
      for (int k = 0; k < OPERANDS; k++) at[k] += rest * step[k][d];
    }
  }
};
