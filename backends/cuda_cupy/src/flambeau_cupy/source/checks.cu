// Copies of arguments that are known to be good.  What is not is replaced and put down in the place of
// the complaint, whose number goes to the first word; the host reads both after it has waited.
extern "C" __global__ void checked_index(
    int64* out, const int64* index, int64 n, int64 size, int wrap, int exempt, int64 allowed,
    int64* complaints, int64 number) {
  GRID_LOOP(i, n) {
    int64 at = index[i];
    if (wrap && at < 0) at += size;
    if ((at < 0 || at >= size) && !(exempt && at == allowed)) {
      complaints[number] = index[i];
      complaints[0] = number;
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
      complaints[0] = number;
      d = 1;
    }
    out[i] = (T)d;
  }
}
