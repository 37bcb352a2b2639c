// Softmax of `rows` vectors of `columns` elements that lie `inner` apart: vector r is that of
// r / inner and r % inner.  Neighbours (inner 1) get a block each; others a thread each, so that
// neighbouring threads read neighbouring elements.
__device__ inline int64 start_of(int64 row, int64 columns, int64 inner) {
  return row / inner * columns * inner + row % inner;
}

template <bool LOG> __device__ inline A share(A x, A top, A total) {
  return LOG ? x - top - total : exp(x - top) / total;
}

template <bool LOG> __device__ void softmax_rows(T* out, const T* x, int64 rows, int64 columns) {
  __shared__ A shared[32];
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* a = x + row * columns;
    A top = NEGATIVE_INFINITY, total = 0;
    BLOCK_LOOP(j, columns) top = bigger(top, (A)a[j]);
    top = over_block<true>(top, shared);
    BLOCK_LOOP(j, columns) total += exp((A)a[j] - top);
    total = over_block<false>(total, shared);
    if (LOG) total = log(total);
    BLOCK_LOOP(j, columns) out[row * columns + j] = (T)share<LOG>(a[j], top, total);
  }
}

template <bool LOG>
__device__ void softmax_apart(T* out, const T* x, int64 rows, int64 columns, int64 inner) {
  GRID_LOOP(row, rows) {
    int64 at = start_of(row, columns, inner);
    A top = NEGATIVE_INFINITY, total = 0;
    for (int64 j = 0; j < columns; j++) top = bigger(top, (A)x[at + j * inner]);
    for (int64 j = 0; j < columns; j++) total += exp((A)x[at + j * inner] - top);
    if (LOG) total = log(total);
    for (int64 j = 0; j < columns; j++) {
      out[at + j * inner] = (T)share<LOG>(x[at + j * inner], top, total);
    }
  }
}

// y (g - Σ g y) and, of the logarithm, g - exp(y) Σ g; y is the result.
template <bool LOG> __device__ inline A slope(A g, A y, A total) {
  return LOG ? g - exp(y) * total : y * (g - total);
}

template <bool LOG>
__device__ void softmax_rows_backward(
    T* out, const T* grad, const T* result, int64 rows, int64 columns) {
  __shared__ A shared[32];
  for (int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    int64 at = row * columns;
    A total = 0;
    BLOCK_LOOP(j, columns) total += LOG ? (A)grad[at + j] : (A)grad[at + j] * (A)result[at + j];
    total = over_block<false>(total, shared);
    BLOCK_LOOP(j, columns) out[at + j] = (T)slope<LOG>(grad[at + j], result[at + j], total);
  }
}

template <bool LOG>
__device__ void softmax_apart_backward(
    T* out, const T* grad, const T* result, int64 rows, int64 columns, int64 inner) {
  GRID_LOOP(row, rows) {
    int64 at = start_of(row, columns, inner);
    A total = 0;
    for (int64 j = 0; j < columns; j++) {
      int64 i = at + j * inner;
      total += LOG ? (A)grad[i] : (A)grad[i] * (A)result[i];
    }
    for (int64 j = 0; j < columns; j++) {
      int64 i = at + j * inner;
      out[i] = (T)slope<LOG>(grad[i], result[i], total);
    }
  }
}

#define SOFTMAX(NAME, LOG) \
  extern "C" __global__ void NAME##_forward( \
      T* out, const T* x, int64 rows, int64 columns, int64 inner) { \
    if (inner == 1) softmax_rows<LOG>(out, x, rows, columns); \
    else softmax_apart<LOG>(out, x, rows, columns, inner); \
  } \
  extern "C" __global__ void NAME##_backward( \
      T* out, const T* grad, const T* result, int64 rows, int64 columns, int64 inner) { \
    if (inner == 1) softmax_rows_backward<LOG>(out, grad, result, rows, columns); \
    else softmax_apart_backward<LOG>(out, grad, result, rows, columns, inner); \
  }
SOFTMAX(softmax, false)
SOFTMAX(log_softmax, true)
