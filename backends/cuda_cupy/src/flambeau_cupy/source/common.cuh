// What all kernels share.  T is the element type; sums over many elements are of type T, too.
typedef long long int64;
typedef unsigned int uint32;
typedef unsigned long long uint64;

// A loop over n elements by all threads of the grid, whatever its size.
#define GRID_LOOP(i, n) \
  for (int64 i = blockIdx.x * (int64)blockDim.x + threadIdx.x; i < (n); \
       i += (int64)gridDim.x * blockDim.x)

#define NEGATIVE_INFINITY (-(T)1 / (T)0)

template <class N> __device__ N bigger(N a, N b) {  // NaN wins
  return a > b || a != a ? a : b;
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
