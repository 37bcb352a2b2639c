// Windows over volumes (depth, height, width) of `planes` planes; images have depth 1.
struct Windows {
  int64 in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
};

// The largest element and its place in the plane: the first of equals, the last of NaNs.  A place
// outside of the plane is no element.
extern "C" __global__ void max_pool(
    T* values, int64* places, const T* x, Windows w, int64 n) {
  int64 plane = w.in[0] * w.in[1] * w.in[2];
  GRID_LOOP(i, n) {
    int64 c = i % w.out[2], b = i / w.out[2] % w.out[1], a = i / w.out[2] / w.out[1] % w.out[0];
    const T* from = x + i / (w.out[0] * w.out[1] * w.out[2]) * plane;
    A best = 0;
    int64 place = -1;
    for (int64 p = 0; p < w.kernel[0]; p++) {
      int64 d = a * w.stride[0] - w.padding[0] + p * w.dilation[0];
      if (d < 0 || d >= w.in[0]) continue;
      for (int64 q = 0; q < w.kernel[1]; q++) {
        int64 h = b * w.stride[1] - w.padding[1] + q * w.dilation[1];
        if (h < 0 || h >= w.in[1]) continue;
        for (int64 r = 0; r < w.kernel[2]; r++) {
          int64 v = c * w.stride[2] - w.padding[2] + r * w.dilation[2];
          if (v < 0 || v >= w.in[2]) continue;
          int64 at = (d * w.in[1] + h) * w.in[2] + v;
          A value = from[at];
          if (place < 0 || value > best || value != value) best = value, place = at;
        }
      }
    }
    values[i] = (T)best;
    places[i] = place;
  }
}

// Adds each gradient at its place; where windows overlap, in any order.
extern "C" __global__ void max_pool_backward(
    A* out, const T* grad, const int64* places, int64 plane, int64 windows, int64 n) {
  GRID_LOOP(i, n) add_at(out + i / windows * plane + places[i], (A)grad[i]);
}

// The same, one thread per plane: slower, and the sums are taken in the same order each time.
extern "C" __global__ void max_pool_backward_in_order(
    A* out, const T* grad, const int64* places, int64 plane, int64 windows, int64 planes) {
  GRID_LOOP(i, planes) {
    for (int64 j = i * windows; j < (i + 1) * windows; j++) out[i * plane + places[j]] += (A)grad[j];
  }
}

// How many elements a window along one dimension averages over; it ends with the padding.
__device__ inline int64 reach(const Windows& w, int d, int64 i, int with_padding) {
  int64 first = i * w.stride[d] - w.padding[d], last = first + w.kernel[d];
  int64 end = w.in[d] + w.padding[d];
  if (last > end) last = end;
  if (!with_padding) {
    if (first < 0) first = 0;
    if (last > w.in[d]) last = w.in[d];
  }
  return last - first;
}

__device__ inline A divisor_of(
    const Windows& w, int64 a, int64 b, int64 c, int with_padding, int64 divisor) {
  if (divisor) return (A)divisor;
  return (A)(reach(w, 0, a, with_padding) * reach(w, 1, b, with_padding) *
             reach(w, 2, c, with_padding));
}

extern "C" __global__ void avg_pool(
    T* out, const T* x, Windows w, int with_padding, int64 divisor, int64 n) {
  int64 plane = w.in[0] * w.in[1] * w.in[2];
  GRID_LOOP(i, n) {
    int64 c = i % w.out[2], b = i / w.out[2] % w.out[1], a = i / w.out[2] / w.out[1] % w.out[0];
    const T* from = x + i / (w.out[0] * w.out[1] * w.out[2]) * plane;
    A total = 0;
    for (int64 p = 0; p < w.kernel[0]; p++) {
      int64 d = a * w.stride[0] - w.padding[0] + p;
      if (d < 0 || d >= w.in[0]) continue;
      for (int64 q = 0; q < w.kernel[1]; q++) {
        int64 h = b * w.stride[1] - w.padding[1] + q;
        if (h < 0 || h >= w.in[1]) continue;
        for (int64 r = 0; r < w.kernel[2]; r++) {
          int64 v = c * w.stride[2] - w.padding[2] + r;
          if (v >= 0 && v < w.in[2]) total += (A)from[(d * w.in[1] + h) * w.in[2] + v];
        }
      }
    }
    out[i] = (T)(total / divisor_of(w, a, b, c, with_padding, divisor));
  }
}

// The windows along one dimension that an element lies in: [first, last).
__device__ inline void covering(const Windows& w, int d, int64 i, int64* first, int64* last) {
  int64 at = i + w.padding[d], from = at - w.kernel[d] + 1;
  *first = from <= 0 ? 0 : (from + w.stride[d] - 1) / w.stride[d];
  *last = at / w.stride[d] + 1;
  if (*last > w.out[d]) *last = w.out[d];
}

// Each element gathers the shares of its windows.
extern "C" __global__ void avg_pool_backward(
    T* out, const T* grad, Windows w, int with_padding, int64 divisor, int64 n) {
  int64 windows = w.out[0] * w.out[1] * w.out[2];
  GRID_LOOP(i, n) {
    int64 v = i % w.in[2], h = i / w.in[2] % w.in[1], d = i / w.in[2] / w.in[1] % w.in[0];
    const T* from = grad + i / (w.in[0] * w.in[1] * w.in[2]) * windows;
    int64 first[3], last[3];
    covering(w, 0, d, first, last);
    covering(w, 1, h, first + 1, last + 1);
    covering(w, 2, v, first + 2, last + 2);
    A total = 0;
    for (int64 a = first[0]; a < last[0]; a++)
      for (int64 b = first[1]; b < last[1]; b++)
        for (int64 c = first[2]; c < last[2]; c++)
          total += (A)from[(a * w.out[1] + b) * w.out[2] + c] /
                   divisor_of(w, a, b, c, with_padding, divisor);
    out[i] = (T)total;
  }
}
