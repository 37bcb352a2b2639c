// Arguments that are looked at by the device.

// Copies, in which what is wrong is replaced.
extern "C" __global__ void checked_index(
    int64* out, const int64* index, int64 n, int64 size, int wrap, int exempt, int64 allowed,
    int64* complaints, int64 number) {
  GRID_LOOP(i, n) {
    int64 at = index[i];
    if (wrap && at < 0) at += size;
    if ((at < 0 || at >= size) && !(exempt && at == allowed)) {
      complain(complaints, number, index[i]);
      at = 0;
    }
    out[i] = at;
  }
}

extern "C" __global__ void checked_divisor(
    T* out, const T* divisor, int64 n, int64* complaints, int64 number) {
  GRID_LOOP(i, n) {
    A d = divisor[i];
    if (d == (A)0) {
      complain(complaints, number, 0);
      d = 1;
    }
    out[i] = (T)d;
  }
}

// Numbers that are all in [low, high], or so they should be; NaN is not.
extern "C" __global__ void check_values(
    const T* values, int64 n, double low, double high, int64* complaints, int64 number) {
  GRID_LOOP(i, n) {
    double value = (double)(A)values[i];
    if (!(value >= low && value <= high)) complain(complaints, number, 0);
  }
}
