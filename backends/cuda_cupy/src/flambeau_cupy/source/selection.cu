// The k first elements of rows in the order of a stable sort, without sorting: the next one is the
// first that comes after the last one.  NaN is larger than all numbers, and NaNs are equal.
__device__ inline bool beyond(A a, A b, int largest) {  // whether a comes before an unequal b
  bool x = a != a, y = b != b;
  if (x || y) return largest ? x && !y : y && !x;
  return largest ? a > b : a < b;
}

__device__ inline bool precedes(A a, int64 i, A b, int64 j, int largest) {
  return beyond(a, b, largest) || (!beyond(b, a, largest) && i < j);
}

extern "C" __global__ void select_first(
    T* values, int64* places, const T* x, int64 k, int largest, int64 rows, int64 columns) {
  __shared__ A candidate[1024];
  __shared__ int64 where[1024];
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* a = x + row * columns;
    A last = 0;
    int64 at = -1;  // none yet
    for (int64 s = 0; s < k; s++) {
      A best = 0;
      int64 place = -1;
      BLOCK_LOOP(j, columns) {
        A value = a[j];
        if (at >= 0 && !precedes(last, at, value, j, largest)) continue;
        if (place < 0 || precedes(value, j, best, place, largest)) best = value, place = j;
      }
      __syncthreads();
      candidate[threadIdx.x] = best;
      where[threadIdx.x] = place;
      for (int step = blockDim.x / 2; step; step >>= 1) {
        __syncthreads();
        if (threadIdx.x < step && where[threadIdx.x + step] >= 0 &&
            (where[threadIdx.x] < 0 ||
             precedes(candidate[threadIdx.x + step], where[threadIdx.x + step],
                      candidate[threadIdx.x], where[threadIdx.x], largest))) {
          candidate[threadIdx.x] = candidate[threadIdx.x + step];
          where[threadIdx.x] = where[threadIdx.x + step];
        }
      }
      __syncthreads();
      last = candidate[0];
      at = where[0];
      if (threadIdx.x == 0) values[row * k + s] = a[at], places[row * k + s] = at;
    }
  }
}
