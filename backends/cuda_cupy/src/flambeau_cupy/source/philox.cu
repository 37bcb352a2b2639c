// Philox 4x32-10 and what is drawn from it; the stream is that of flambeau_cupy.philox.
__device__ void philox(uint64 seed, uint64 number, uint32* out) {
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

// `state` holds seed and offset on the device, so that a captured launch draws on.
extern "C" __global__ void philox_words(uint32* out, const uint64* state, int64 n) {
  GRID_LOOP(block, (n + 3) / 4) {
    uint32 words[4];
    philox(state[0], state[1] / 4 + block, words);
    for (int j = 0; j < 4 && 4 * block + j < n; j++) out[4 * block + j] = words[j];
  }
}

// out = x / (1 - p) where the element's uniform number is not below p, else 0; mask says where.
extern "C" __global__ void dropout_forward(
    T* out, bool* mask, const T* x, const uint64* state, double p, int64 n) {
  T scale = p < 1 ? (T)1 / ((T)1 - (T)p) : (T)0;
  GRID_LOOP(block, (n + 3) / 4) {
    uint32 words[4];
    philox(state[0], state[1] / 4 + block, words);
    for (int j = 0; j < 4 && 4 * block + j < n; j++) {
      int64 i = 4 * block + j;
      bool keep = (words[j] >> 8) * 5.9604644775390625e-08f >= (float)p;  // times 2^-24
      mask[i] = keep;
      out[i] = keep ? x[i] * scale : (T)0;
    }
  }
}
