// Philox 4x32-10 and what is drawn from it; the stream is that of flambeau_cupy.device.philox.
__device__ inline void philox(uint64 seed, uint64 number, uint32 further, uint32* out) {
  uint32 c0 = (uint32)number, c1 = (uint32)(number >> 32), c2 = further, c3 = 0;
  uint32 k0 = (uint32)seed, k1 = (uint32)(seed >> 32);
  for (int round = 0; round < 10; round++) {
    uint64 p0 = (uint64)0xD2511F53u * c0, p1 = (uint64)0xCD9E8D57u * c2;
    c0 = (uint32)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32)p1;
    c2 = (uint32)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0; out[1] = c1; out[2] = c2; out[3] = c3;
}

// Where a draw begins: by value, or, in a captured graph, by what `base` (seed and offset) holds
// when the graph is launched, and `offset` words further.
struct Place {
  uint64 seed, block;
  __device__ Place(uint64 s, uint64 offset, const uint64* base)
      : seed(base ? base[0] : s), block((base ? base[1] + offset : offset) / 4) {}
  __device__ void words(int64 i, uint32* out, uint32 further = 0) const {
    philox(seed, block + i, further, out);
  }
};

__device__ inline float unit(uint32 word) { return (word >> 8) * 5.9604644775390625e-08f; }
__device__ inline double unit(uint32 high, uint32 low) {  // times 2^-53
  return (((uint64)high << 32 | low) >> 11) * 1.1102230246251565e-16;
}

// Numbers per block of words, and their uniforms: 4 floats or 2 doubles.
__device__ inline void units(const uint32* w, float* u) {
  for (int j = 0; j < 4; j++) u[j] = unit(w[j]);
}
__device__ inline void units(const uint32* w, double* u) {
  for (int j = 0; j < 2; j++) u[j] = unit(w[2 * j], w[2 * j + 1]);
}
#define PER_BLOCK (16 / (int)sizeof(A))

// Calls f(i, u) for the i-th of n uniforms.
template <class F> __device__ inline void each_uniform(const Place& place, int64 n, F f) {
  GRID_LOOP(block, (n + PER_BLOCK - 1) / PER_BLOCK) {
    uint32 words[4];
    A u[PER_BLOCK];
    place.words(block, words);
    units(words, u);
    for (int j = 0; j < PER_BLOCK && PER_BLOCK * block + j < n; j++) f(PER_BLOCK * block + j, u[j]);
  }
}

// What `base` holds from now on.
extern "C" __global__ void philox_place(uint64* base, uint64 seed, uint64 offset) {
  if (blockIdx.x == 0 && threadIdx.x == 0) base[0] = seed, base[1] = offset;
}

extern "C" __global__ void philox_words(
    uint32* out, uint64 seed, uint64 offset, const uint64* base, int64 n) {
  Place place(seed, offset, base);
  GRID_LOOP(block, (n + 3) / 4) {
    uint32 words[4];
    place.words(block, words);
    for (int j = 0; j < 4 && 4 * block + j < n; j++) out[4 * block + j] = words[j];
  }
}

// u (high - low) + low, and low where that is rounded to high.
extern "C" __global__ void philox_uniform(
    T* out, uint64 seed, uint64 offset, const uint64* base, double low, double high, int64 n) {
  A start = (A)low, end = (A)high;
  T last = (T)end;
  each_uniform(Place(seed, offset, base), n, [&](int64 i, A u) {
    T value = (T)(u * (end - start) + start);
    out[i] = (A)value == (A)last ? (T)start : value;
  });
}

// Pairs by Box and Muller.
extern "C" __global__ void philox_normal(
    T* out, uint64 seed, uint64 offset, const uint64* base, double mean, double deviation,
    int64 n) {
  Place place(seed, offset, base);
  GRID_LOOP(block, (n + PER_BLOCK - 1) / PER_BLOCK) {
    uint32 words[4];
    A u[PER_BLOCK];
    place.words(block, words);
    units(words, u);
    for (int j = 0; j < PER_BLOCK; j += 2) {
      A radius = sqrt((A)-2 * log((A)1 - u[j])), angle = (A)6.283185307179586 * u[j + 1];
      A pair[2] = {radius * cos(angle), radius * sin(angle)};
      for (int k = 0; k < 2 && PER_BLOCK * block + j + k < n; k++) {
        out[PER_BLOCK * block + j + k] = (T)(pair[k] * (A)deviation + (A)mean);
      }
    }
  }
}

// 1 where a uniform of 53 bits is below p, else 0.
extern "C" __global__ void philox_bernoulli(
    T* out, uint64 seed, uint64 offset, const uint64* base, double p, int64 n) {
  Place place(seed, offset, base);
  GRID_LOOP(block, (n + 1) / 2) {
    uint32 words[4];
    place.words(block, words);
    for (int j = 0; j < 2 && 2 * block + j < n; j++) {
      out[2 * block + j] = unit(words[2 * j], words[2 * j + 1]) < p ? (T)1 : (T)0;
    }
  }
}

// 1 where a uniform is below p of its place, else 0.
extern "C" __global__ void philox_bernoulli_each(
    T* out, const T* p, uint64 seed, uint64 offset, const uint64* base, int64 n) {
  each_uniform(Place(seed, offset, base), n, [&](int64 i, A u) {
    out[i] = u < (A)p[i] ? (T)1 : (T)0;
  });
}

// How many events of a rate, from uniforms of 53 bits, two of a block: products of them down to
// exp(-rate) (Knuth), or, from a rate of 10 on, transformed rejection (Hoermann 1993, PTRS).
__device__ inline double events(const Place& place, int64 i, double rate) {
  uint32 words[4];
  if (!(rate > 0)) return 0;  // also NaN, which has been complained of
  if (rate == -(double)NEGATIVE_INFINITY) return rate;
  if (rate < 10) {
    double bound = exp(-rate), product = 1;
    for (uint32 count = 0;; count++) {
      int at = count % 2 * 2;
      if (!at) place.words(i, words, count / 2);
      product *= unit(words[at], words[at + 1]);
      if (product <= bound) return count;
    }
  }
  double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), bound = 0.9277 - 3.6224 / (b - 2);
  for (uint32 trial = 0;; trial++) {
    place.words(i, words, trial);
    double u = unit(words[0], words[1]) - 0.5, v = unit(words[2], words[3]), us = 0.5 - fabs(u);
    if (us == 0) continue;
    double k = floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= bound) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    double level = log(v) + log(inverse_alpha) - log(a / (us * us) + b);
    if (level <= k * log(rate) - rate - lgamma(k + 1)) return k;
  }
}

extern "C" __global__ void philox_poisson(
    T* out, const T* rates, uint64 seed, uint64 offset, const uint64* base, int64 n) {
  Place place(seed, offset, base);
  GRID_LOOP(i, n) out[i] = (T)(A)events(place, i, (A)rates[i]);
}

// Exponential waits divided into the weights: the largest are drawn, without replacement.
extern "C" __global__ void philox_scores(
    double* out, const T* weights, uint64 seed, uint64 offset, const uint64* base, int64 n) {
  Place place(seed, offset, base);
  GRID_LOOP(block, (n + 1) / 2) {
    uint32 words[4];
    place.words(block, words);
    for (int j = 0; j < 2 && 2 * block + j < n; j++) {
      double weight = (A)weights[2 * block + j];
      double wait = -log1p(-unit(words[2 * j], words[2 * j + 1]));
      out[2 * block + j] = weight > 0 ? weight / wait : -1;
    }
  }
}

// Running sums of each row, by a block.
extern "C" __global__ void weight_sums(
    double* out, const T* weights, int64 rows, int64 columns) {
  __shared__ double before[1024];
  int64 part = (columns + blockDim.x - 1) / blockDim.x, from = threadIdx.x * part;
  int64 to = from + part < columns ? from + part : columns;
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    double total = 0;
    for (int64 j = from; j < to; j++) total += (A)weights[row * columns + j];
    __syncthreads();
    before[threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
      double sum = 0;
      for (int t = 0; t < blockDim.x; t++) {
        double own = before[t];
        before[t] = sum;
        sum += own;
      }
    }
    __syncthreads();
    total = before[threadIdx.x];
    for (int64 j = from; j < to; j++) out[row * columns + j] = total += (A)weights[row * columns + j];
  }
}

// For each of `samples` uniforms of a row the first place whose running sum is above its share.
extern "C" __global__ void philox_search(
    int64* out, const T* weights, const double* sums, uint64 seed, uint64 offset,
    const uint64* base, int64 samples, int64 columns, int64 n) {
  Place place(seed, offset, base);
  GRID_LOOP(block, (n + 1) / 2) {
    uint32 words[4];
    place.words(block, words);
    for (int j = 0; j < 2 && 2 * block + j < n; j++) {
      int64 row = (2 * block + j) / samples * columns, low = 0, high = columns - 1;
      double share = unit(words[2 * j], words[2 * j + 1]) * sums[row + high];
      while (low < high) {
        int64 middle = (low + high) / 2;
        if (sums[row + middle] > share) high = middle;
        else low = middle + 1;
      }
      while (low && !((A)weights[row + low] > 0)) low--;  // sums are rounded
      out[2 * block + j] = low;
    }
  }
}

// noise: 1 / keep where a uniform of 53 bits is below `keep`, else 0; and x times it.
extern "C" __global__ void philox_dropout(
    T* out, T* noise, const T* x, uint64 seed, uint64 offset, const uint64* base, double keep,
    int64 n) {
  Place place(seed, offset, base);
  T kept = (T)((A)1 / (A)keep);
  GRID_LOOP(block, (n + 1) / 2) {
    uint32 words[4];
    place.words(block, words);
    for (int j = 0; j < 2 && 2 * block + j < n; j++) {
      T factor = unit(words[2 * j], words[2 * j + 1]) < keep ? kept : (T)0;
      noise[2 * block + j] = factor;
      out[2 * block + j] = (T)((A)x[2 * block + j] * (A)factor);
    }
  }
}
