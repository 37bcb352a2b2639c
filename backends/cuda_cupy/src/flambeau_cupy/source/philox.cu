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

// Uniforms of 53 bits of one element, as many as it needs, two of a block.
struct Uniforms {
  const Place& place;
  int64 element;
  uint32 taken, words[4];
  __device__ Uniforms(const Place& p, int64 i) : place(p), element(i), taken(0) {}
  __device__ double next() {
    int at = taken % 2 * 2;
    if (!at) place.words(element, words, taken / 2);
    taken++;
    return unit(words[at], words[at + 1]);
  }
};

// How many events of a rate: products of uniforms down to exp(-rate) (Knuth), or, from a rate of 10
// on, transformed rejection (Hoermann 1993, PTRS).
__device__ inline double events(Uniforms uniform, double rate) {
  if (!(rate > 0)) return 0;  // also NaN, which has been complained of
  if (rate == -(double)NEGATIVE_INFINITY) return rate;
  if (rate < 10) {
    double bound = exp(-rate), product = 1;
    for (uint32 count = 0;; count++) {
      product *= uniform.next();
      if (product <= bound) return count;
    }
  }
  double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), bound = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    double u = uniform.next() - 0.5, v = uniform.next(), us = 0.5 - fabs(u);
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
  GRID_LOOP(i, n) out[i] = (T)(A)events(Uniforms(place, i), (A)rates[i]);
}

// A gamma number of scale 1 (Marsaglia and Tsang 2000); a trial takes a normal number, which is the
// cosine of Box and Muller's pair, and a uniform.  Each trial has a squeeze that NaN does not touch.
__device__ inline double gamma_number(Uniforms uniform, double alpha) {
  double scale = 1;
  if (alpha == 0) return 0;
  if (alpha < 1) scale = pow(1 - uniform.next(), 1 / alpha), alpha += 1;
  double d = alpha - 1.0 / 3, c = 1 / sqrt(9 * d);
  for (;;) {
    double radius = sqrt(-2 * log1p(-uniform.next()));
    double x = radius * cos(6.283185307179586 * uniform.next()), y = 1 + c * x;
    if (y <= 0) continue;
    double v = y * y * y, u = 1 - uniform.next(), square = x * x;
    if (u < 1 - 0.0331 * square * square) return scale * d * v;
    if (log(u) < 0.5 * square + d * (1 - v + log(v))) return scale * d * v;
  }
}

// Into float64 or the shapes' own type, none below the least normal number of float32 or float64.
template <class Out> __device__ inline void gamma_numbers(
    Out* out, const T* alpha, const Place& place, int64 n) {
  double least = sizeof(Out) == 8 ? 2.2250738585072014e-308 : 1.1754943508222875e-38;
  GRID_LOOP(i, n) {
    double value = gamma_number(Uniforms(place, i), (A)alpha[i]);
    out[i] = (Out)(value < least ? least : value);
  }
}

extern "C" __global__ void philox_gamma(
    T* out, const T* alpha, uint64 seed, uint64 offset, const uint64* base, int64 n) {
  gamma_numbers(out, alpha, Place(seed, offset, base), n);
}

extern "C" __global__ void philox_gamma_wide(
    double* out, const T* alpha, uint64 seed, uint64 offset, const uint64* base, int64 n) {
  gamma_numbers(out, alpha, Place(seed, offset, base), n);
}

// log k! less Stirling's formula at k + 1: the first seven terms hold all digits from k = 9 on.
__device__ inline double stirling_rest(double k) {
  double before = 0;
  for (; k < 9; k++) before += (k + 1.5) * log((k + 2) / (k + 1)) - 1;
  double r = 1 / (k + 1), s = r * r;
  return before + r * (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680 -
      s * (1.0 / 1188 - s * (691.0 / 360360 - s / 156))))));
}

// How many of `count` trials succeed: waiting times between successes for means below 10 (Devroye
// 1986), else transformed rejection (Hoermann 1993, BTRS).
__device__ inline double successes(Uniforms uniform, double count, double prob) {
  if (count <= 0 || prob <= 0) return 0;
  if (prob >= 1) return count;
  if (!(count < -(double)NEGATIVE_INFINITY) || prob != prob) return count * prob * 0 / 0.0;
  double p = prob <= 0.5 ? prob : 1 - prob, mean = count * p;
  if (mean < 10) {
    double failure = log1p(-p), passed = 0;
    for (double found = 0;; found++) {
      passed += ceil(log(uniform.next()) / failure);
      if (passed > count) return prob <= 0.5 ? found : count - found;
    }
  }
  double deviation = sqrt(mean * (1 - p)), b = 1.15 + 2.53 * deviation;
  double a = -0.0873 + 0.0248 * b + 0.01 * p, centre = mean + 0.5, bound = 0.92 - 4.2 / b;
  double odds = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation, mode = floor((count + 1) * p);
  for (;;) {
    double u = uniform.next() - 0.5, v = uniform.next(), us = 0.5 - fabs(u);
    double k = floor((2 * a / us + b) * u + centre);
    if (us == 0 || k < 0 || k > count) continue;
    bool taken = us >= 0.07 && v <= bound;
    if (!taken) {
      double most = (mode + 0.5) * log((mode + 1) / (odds * (count - mode + 1))) +
          (count + 1) * log((count - mode + 1) / (count - k + 1)) +
          (k + 0.5) * log(odds * (count - k + 1) / (k + 1)) + stirling_rest(mode) +
          stirling_rest(count - mode) - stirling_rest(k) - stirling_rest(count - k);
      taken = log(v * alpha / (a / (us * us) + b)) <= most;
    }
    if (taken) return prob <= 0.5 ? k : count - k;
  }
}

extern "C" __global__ void philox_binomial(
    T* out, const T* counts, const T* probs, uint64 seed, uint64 offset, const uint64* base,
    int64 n) {
  Place place(seed, offset, base);
  GRID_LOOP(i, n) out[i] = (T)(A)successes(Uniforms(place, i), (A)counts[i], (A)probs[i]);
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
