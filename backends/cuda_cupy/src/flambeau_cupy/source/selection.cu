// The k first elements of rows in the order of a stable sort, without sorting the rows.
//
// Elements have keys: unsigned numbers in that order, NaN at one end, both zeros the same.  Eight bits
// at a time, the most significant first, the elements that agree with what is known are counted by
// their next digit, and the counts say which digit the k-th of them has.  The digits of the place in the
// row follow those of the key: so the order is strict, and in whichever order elements are collected,
// they are the same.  As soon as those up to what is known fit where the k are put in order, they are.
template <class U> __device__ inline U key_of_bits(U bits, U infinity) {
  const U sign = (U)((U)1 << (8 * sizeof(U) - 1));
  U magnitude = bits & (U)~sign;
  if (magnitude > infinity) return (U)~(U)0;
  if (magnitude == 0) return sign;
  return bits & sign ? (U)~bits : (U)(bits | sign);
}

__device__ inline unsigned short ascending(float16 v) {
  return key_of_bits<unsigned short>(v.bits, 0x7c00u);
}
__device__ inline unsigned short ascending(bfloat16 v) {
  return key_of_bits<unsigned short>(v.bits, 0x7f80u);
}
__device__ inline uint32 ascending(float v) { return key_of_bits<uint32>(bits_of(v), 0x7f800000u); }
__device__ inline uint64 ascending(double v) {
  return key_of_bits<uint64>(bits_of(v), 0x7ff0000000000000ull);
}
__device__ inline unsigned char ascending(unsigned char v) { return v; }
__device__ inline unsigned char ascending(signed char v) { return (unsigned char)(v ^ 0x80); }
__device__ inline unsigned short ascending(short v) { return (unsigned short)(v ^ 0x8000); }
__device__ inline uint32 ascending(int v) { return (uint32)v ^ 0x80000000u; }
__device__ inline uint64 ascending(int64 v) { return (uint64)v ^ 0x8000000000000000ull; }

typedef decltype(ascending(*(const T*)0)) Key;
const int BINS = 256, KEY_DIGITS = sizeof(Key);

// Digits of the last element that is taken, as far as they are known.  The others are 0.
struct Bound {
  Key key, key_known;        // the bits, and which they are
  uint32 place, place_known;
  uint32 needed;             // how many are taken of the elements that agree in these bits
  uint32 agreeing;           // how many do

  __device__ bool agrees(Key k, uint32 at) const {
    return (Key)((k ^ key) & key_known) == 0 && ((at ^ place) & place_known) == 0;
  }
  __device__ bool reaches(Key k, uint32 at) const {  // whether it is not beyond what is known
    k &= key_known;
    return k < key || (k == key && (at & place_known) <= place);
  }
  __device__ int64 reached(int64 k) const { return k - needed + agreeing; }  // how many are not
};
static_assert(sizeof(Bound) <= 32, "the memory that is given for each");

__device__ inline Bound unknown(int64 k, int64 columns) {
  return {0, 0, 0, 0, (uint32)k, (uint32)columns};
}

// Calls f(key, place) for every `step`-th element of a row; four are on their way at once.
template <class F> __device__ inline void each(
    const T* row, int64 columns, int64 first, int64 step, int largest, F f) {
  int64 j = first;
  for (; j + 3 * step < columns; j += 4 * step) {
    T loaded[4];
#pragma unroll
    for (int u = 0; u < 4; u++) loaded[u] = row[j + u * step];
#pragma unroll
    for (int u = 0; u < 4; u++) {
      Key key = ascending(loaded[u]);
      f(largest ? (Key)~key : key, (uint32)(j + u * step));
    }
  }
  for (; j < columns; j += step) {
    Key key = ascending(row[j]);
    f(largest ? (Key)~key : key, (uint32)j);
  }
}

// How far the digit of a pass is to be shifted; below 0 it is one of the place.
__device__ inline int shift_of(int pass) { return 8 * (KEY_DIGITS - 1 - pass); }

__device__ inline int shift_of_place(int pass, int64 columns) {
  int digits = 1;
  while (columns - 1 >> 8 * digits) digits++;
  return shift_of(pass) + 8 * digits;
}

// Adds to `counts`, which is shared and zero, how many agreeing elements have each next digit.
__device__ inline void count(
    uint32* counts, const Bound& bound, int pass, const T* row, int64 columns, int64 first,
    int64 step, int largest) {
  int shift = shift_of(pass);
  if (shift >= 0) {
    each(row, columns, first, step, largest, [&](Key key, uint32 at) {
      if (bound.agrees(key, at)) atomicAdd(&counts[key >> shift & BINS - 1], 1u);
    });
  } else {
    shift = shift_of_place(pass, columns);
    each(row, columns, first, step, largest, [&](Key key, uint32 at) {
      if (bound.agrees(key, at)) atomicAdd(&counts[at >> shift & BINS - 1], 1u);
    });
  }
}

// What is known with one more digit, written by one of the first warp's threads, which all come here.
__device__ inline void narrow(
    Bound* next, Bound bound, const uint32* counts, int pass, int64 columns) {
  const int own = BINS / 32, lane = threadIdx.x % 32;
  uint32 total = 0, before = 0;
  for (int i = 0; i < own; i++) total += counts[own * lane + i];
  uint32 sum = total;  // of the lanes that share all but the last bits of their number
  for (int step = 1; step < 32; step *= 2) {
    uint32 other = __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane & step) before += other;
    sum += other;
  }
  if (before >= bound.needed || before + total < bound.needed) return;
  int digit = own * lane;
  while (before + counts[digit] < bound.needed) before += counts[digit++];
  bound.needed -= before;
  bound.agreeing = counts[digit];
  int shift = shift_of(pass);
  if (shift >= 0) {
    bound.key |= (Key)((Key)digit << shift);
    bound.key_known |= (Key)((Key)(BINS - 1) << shift);
  } else {
    shift = shift_of_place(pass, columns);
    bound.place |= (uint32)digit << shift;
    bound.place_known |= (uint32)(BINS - 1) << shift;
  }
  *next = bound;
}

// Puts shared elements in order, which the block has just written, by a network for the next power of
// two; there is room for that many.  Places are below 2^32 - 1.
__device__ inline void put_in_order(Key* keys, uint32* at, int found) {
  int size = 2;
  while (size < found) size *= 2;
  for (int i = found + threadIdx.x; i < size; i += blockDim.x) keys[i] = (Key)~(Key)0, at[i] = ~0u;
  __syncthreads();
  for (int span = 2; span <= size; span *= 2) {
    for (int step = span / 2; step; step /= 2) {
      for (int i = threadIdx.x; i < size / 2; i += blockDim.x) {
        int a = 2 * i - (i & step - 1), b = a + step;
        Key x = keys[a], y = keys[b];
        uint32 p = at[a], q = at[b];
        bool later = x > y || (x == y && p > q);
        if (later == !(a & span)) keys[a] = y, keys[b] = x, at[a] = q, at[b] = p;
      }
      __syncthreads();
    }
  }
}

// A block for each row.  If `enough` elements, k or more, are more than the block puts in order,
// the places are those of the k first in any order, and no values are written.
template <int CAPACITY> __device__ inline void select(
    T* values, int64* places, const T* x, int64 k, int64 enough, int largest, int64 rows,
    int64 columns) {
  __shared__ Key keys[CAPACITY];
  __shared__ uint32 at[CAPACITY];
  __shared__ uint32 counts[BINS];
  __shared__ uint32 filled;
  __shared__ Bound next;
  bool ordered = enough <= CAPACITY;
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* a = x + row * columns;
    int64* out = places + row * k;
    Bound bound = unknown(k, columns);
    if (threadIdx.x == 0) filled = 0;
    __syncthreads();
    for (int pass = 0; bound.reached(k) > enough; pass++) {
      BLOCK_LOOP(i, BINS) counts[i] = 0;
      __syncthreads();
      count(counts, bound, pass, a, columns, threadIdx.x, blockDim.x, largest);
      __syncthreads();
      if (threadIdx.x < 32) narrow(&next, bound, counts, pass, columns);
      __syncthreads();
      bound = next;
    }
    each(a, columns, threadIdx.x, blockDim.x, largest, [&](Key key, uint32 place) {
      if (!bound.reaches(key, place)) return;
      uint32 slot = atomicAdd(&filled, 1u);
      if (ordered) keys[slot] = key, at[slot] = place;
      else out[slot] = place;
    });
    if (ordered) {
      put_in_order(keys, at, (int)bound.reached(k));
      BLOCK_LOOP(i, k) values[row * k + i] = a[at[i]], out[i] = at[i];
    }
    __syncthreads();  // the next row uses the same memory
  }
}

extern "C" __global__ void select_few(
    T* values, int64* places, const T* x, int64 k, int64 enough, int largest, int64 rows,
    int64 columns) {
  select<256>(values, places, x, k, enough, largest, rows, columns);
}

extern "C" __global__ void select_many(
    T* values, int64* places, const T* x, int64 k, int64 enough, int largest, int64 rows,
    int64 columns) {
  select<2048>(values, places, x, k, enough, largest, rows, columns);
}

// The same by several blocks for each row, which are the grid's second direction: a launch for each
// digit, one that collects, and one that puts in order.

// What is known of this block's row when `pass` digits have been counted; kept for the next launch.
__device__ inline Bound known(
    Bound* bounds, const uint32* counts, int pass, int64 k, int64 enough, int64 columns) {
  __shared__ Bound next;
  int64 before = (pass - 1) * (int64)gridDim.y + blockIdx.y;
  Bound bound = pass ? bounds[before] : unknown(k, columns);
  if (pass && bound.reached(k) > enough) {
    if (threadIdx.x < 32) narrow(&next, bound, counts + before * BINS, pass - 1, columns);
    __syncthreads();
    bound = next;
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) bounds[before + gridDim.y] = bound;
  return bound;
}

extern "C" __global__ void count_digits(
    uint32* counts, Bound* bounds, const T* x, int64 k, int64 enough, int largest, int pass,
    int64 columns) {
  __shared__ uint32 own[BINS];
  Bound bound = known(bounds, counts, pass, k, enough, columns);
  if (bound.reached(k) <= enough) return;
  BLOCK_LOOP(i, BINS) own[i] = 0;
  __syncthreads();
  count(own, bound, pass, x + blockIdx.y * columns, columns,
        blockIdx.x * (int64)blockDim.x + threadIdx.x, gridDim.x * (int64)blockDim.x, largest);
  __syncthreads();
  uint32* sums = counts + (pass * (int64)gridDim.y + blockIdx.y) * BINS;
  BLOCK_LOOP(i, BINS) if (own[i]) atomicAdd(&sums[i], own[i]);
}

extern "C" __global__ void collect_first(
    int64* chosen, uint32* filled, const uint32* counts, Bound* bounds, const T* x, int64 k,
    int64 enough, int largest, int passes, int64 columns) {
  Bound bound = known(bounds, counts, passes, k, enough, columns);
  each(x + blockIdx.y * columns, columns, blockIdx.x * (int64)blockDim.x + threadIdx.x,
       gridDim.x * (int64)blockDim.x, largest, [&](Key key, uint32 place) {
    if (!bound.reaches(key, place)) return;
    chosen[blockIdx.y * enough + atomicAdd(&filled[blockIdx.y], 1u)] = place;
  });
}

extern "C" __global__ void order_first(
    T* values, int64* places, const int64* chosen, const uint32* filled, const T* x, int64 k,
    int64 enough, int largest, int64 rows, int64 columns) {
  __shared__ Key keys[2048];
  __shared__ uint32 at[2048];
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* a = x + row * columns;
    int found = filled[row];
    BLOCK_LOOP(i, found) {
      at[i] = chosen[row * enough + i];
      Key key = ascending(a[at[i]]);
      keys[i] = largest ? (Key)~key : key;
    }
    put_in_order(keys, at, found);
    BLOCK_LOOP(i, k) values[row * k + i] = a[at[i]], places[row * k + i] = at[i];
    __syncthreads();
  }
}
