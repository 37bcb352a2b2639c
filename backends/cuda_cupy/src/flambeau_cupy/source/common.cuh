// What all kernels share.  T is the element as it is stored, A what it is computed and summed in:
// float for halves, else T.
typedef long long int64;
typedef unsigned int uint32;
typedef unsigned long long uint64;

#ifdef __CUDA_ARCH__
__device__ inline uint32 bits_of(float f) { return __float_as_uint(f); }
__device__ inline uint64 bits_of(double d) { return __double_as_longlong(d); }
__device__ inline float from_bits(uint32 u) { return __uint_as_float(u); }
#else
inline uint32 bits_of(float f) { uint32 u; memcpy(&u, &f, 4); return u; }
inline uint64 bits_of(double d) { uint64 u; memcpy(&u, &d, 8); return u; }
inline float from_bits(uint32 u) { float f; memcpy(&f, &u, 4); return f; }
#endif

// The two halves without a header: NVRTC finds none unless a whole toolkit is installed.  Both round
// to nearest, ties to even.
struct float16 {
  unsigned short bits;
  float16() = default;
  __device__ float16(float f) {
#ifdef __CUDA_ARCH__
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(f));
#else
    uint32 u = bits_of(f), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u) bits = (unsigned short)(sign | 0x7e00u);
    else if (a >= 0x477ff000u) bits = (unsigned short)(sign | 0x7c00u);  // 65520 rounds to infinity
    else if (a < 0x38800000u)  // a subnormal: the sum's last place is 2^-24
      bits = (unsigned short)(sign | (bits_of(from_bits(a) + 0.5f) - 0x3f000000u));
    else bits = (unsigned short)(sign | (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13);
#endif
  }
  __device__ operator float() const {
#ifdef __CUDA_ARCH__
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(bits));
    return f;
#else
    uint32 sign = (uint32)(bits & 0x8000u) << 16, e = bits >> 10 & 31u, m = bits & 0x3ffu;
    if (e == 31) return from_bits(sign | 0x7f800000u | m << 13);
    if (e) return from_bits(sign | e + 112u << 23 | m << 13);
    float tiny = m * 5.9604644775390625e-08f;  // times 2^-24
    return sign ? -tiny : tiny;
#endif
  }
};

struct bfloat16 {
  unsigned short bits;
  bfloat16() = default;
  __device__ bfloat16(float f) {
    uint32 u = bits_of(f);
    bits = (u & 0x7fffffffu) > 0x7f800000u
               ? (unsigned short)(u >> 16 | 0x40u)
               : (unsigned short)(u + 0x7fffu + (u >> 16 & 1u) >> 16);
  }
  __device__ operator float() const { return from_bits((uint32)bits << 16); }
};

// A loop over n elements by all threads of the grid, whatever its size.
#define GRID_LOOP(i, n) \
  for (int64 i = blockIdx.x * (int64)blockDim.x + threadIdx.x; i < (n); \
       i += (int64)gridDim.x * blockDim.x)
#define BLOCK_LOOP(j, n) for (int64 j = threadIdx.x; j < (n); j += blockDim.x)

#define NEGATIVE_INFINITY (-(A)1 / (A)0)

// A parameter that is stored as T, or as A where `wide`.
__device__ inline A parameter(const void* p, int64 i, int wide) {
  return wide ? ((const A*)p)[i] : (A)((const T*)p)[i];
}

template <class N> __device__ N bigger(N a, N b) {  // NaN wins
  return a > b || a != a ? a : b;
}

__device__ inline void add_at(float* p, float v) { atomicAdd(p, v); }
__device__ inline void add_at(double* p, double v) { atomicAdd(p, v); }
__device__ inline void add_at(int64* p, int64 v) { atomicAdd((uint64*)p, (uint64)v); }

// Makes a number the greater (or lesser) of itself and v; of many threads the result is the same in any
// order: -0 is less than 0, and a NaN stays.  Among positive numbers the order of the bits is theirs, among
// negative ones the reverse; a NaN gets the bits that are last on the side it is to win.
template <class S, class U, class N> __device__ void reach(N* p, N v, bool largest) {
  N now = *(volatile N*)p;
  if (now != now || (largest ? now > v : now < v)) return;  // nobody takes back what is reached
  U bits = v == v ? bits_of(v) : largest ? ~(U)0 >> 1 : ~(U)0;
  bool negative = bits >> (8 * sizeof(U) - 1);
  if (negative == largest) {
    if (negative) atomicMin((U*)p, bits); else atomicMin((S*)p, (S)bits);
  } else {
    if (negative) atomicMax((U*)p, bits); else atomicMax((S*)p, (S)bits);
  }
}
__device__ inline void reach_at(float* p, float v, bool largest) { reach<int, uint32>(p, v, largest); }
__device__ inline void reach_at(double* p, double v, bool largest) {
  reach<int64, uint64>(p, v, largest);
}
__device__ inline void reach_at(int64* p, int64 v, bool largest) {
  if (largest) atomicMax(p, v); else atomicMin(p, v);
}

// Something is wrong: the number of the complaint goes to the first word, unless there is one already,
// as what is wrong may make what follows wrong.  What it is about goes to the word of that number.  The
// host reads both after it has waited.
__device__ inline void complain(volatile int64* complaints, int64 number, int64 about) {
  if (complaints[0]) return;
  complaints[number] = about;
  complaints[0] = number;
}

// The sum (or maximum) over the threads of a block, for all of them.  `shared` has 32 elements.
template <bool MAXIMUM, class N> __device__ N over_block(N value, N* shared) {
  for (int step = 16; step; step >>= 1) {
    N other = __shfl_xor_sync(0xffffffffu, value, step);
    value = MAXIMUM ? bigger(value, other) : value + other;
  }
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  __syncthreads();  // a former use of `shared` may not be read to its end
  if (lane == 0) shared[warp] = value;
  __syncthreads();
  N total = shared[0];
  for (int w = 1; w < warps; w++) {
    total = MAXIMUM ? bigger(total, shared[w]) : total + shared[w];
  }
  return total;
}

// Sums down 32 columns by a block: lanes are columns, warps share the rows.  The warp 0 has them.
template <class N> __device__ N down_columns(N value, N* shared) {  // `shared` has 1024 elements
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  __syncthreads();
  shared[threadIdx.x] = value;
  __syncthreads();
  N total = value;
  if (warp == 0) {
    for (int w = 1; w < warps; w++) total += shared[32 * w + lane];
  }
  return total;
}
