// Philox 4x32-10 and what is drawn from it; the stream is that of flambeau_cupy.philox.
__device__ inline void philox(uint64 seed, uint64 number, uint32* out) {
  uint32 c0 = (uint32)number, c1 = (uint32)(number >> 32), c2 = 0, c3 = 0;
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
  __device__ void words(int64 i, uint32* out) const { philox(seed, block + i, out); }
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
  Place place(seed, offset, base);
  A start = (A)low, end = (A)high;
  T last = (T)end;
  GRID_LOOP(block, (n + PER_BLOCK - 1) / PER_BLOCK) {
    uint32 words[4];
    A u[PER_BLOCK];
    place.words(block, words);
    units(words, u);
    for (int j = 0; j < PER_BLOCK && PER_BLOCK * block + j < n; j++) {
      T value = (T)(u[j] * (end - start) + start);
      out[PER_BLOCK * block + j] = (A)value == (A)last ? (T)start : value;
    }
  }
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
