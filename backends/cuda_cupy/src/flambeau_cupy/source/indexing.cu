// Rows and elements by index; indices are checked.  T stands for its bytes where nothing is added.

// Rows of a table of `count`, and zeros for what is none.
extern "C" __global__ void take_rows(
    T* out, const T* table, const int64* rows, int64 columns, int64 count, int64 n,
    int64* complaints, int64 number) {
  GRID_LOOP(i, n) {
    int64 row = rows[i / columns];
    bool there = row >= 0 && row < count;
    if (!there) complain(complaints, number, row);
    out[i] = there ? table[row * columns + i % columns] : (T)0;
  }
}

// Adds rows of `values` to rows of `table`.  `order` sorts the target rows, and `sorted` are they:
// the first of a run of equal ones adds the run, in the order of `values`.
extern "C" __global__ void add_rows(
    T* table, const T* values, const int64* order, const int64* sorted, int64 columns, int64 n) {
  GRID_LOOP(i, n * columns) {
    int64 first = i / columns, j = i % columns, row = sorted[first];
    if (first && sorted[first - 1] == row) continue;
    A total = table[row * columns + j];
    for (int64 k = first; k < n && sorted[k] == row; k++) total += (A)values[order[k] * columns + j];
    table[row * columns + j] = (T)total;
  }
}

// Along the middle dimension of (outer, length, inner) by an index (outer, count, inner).
extern "C" __global__ void gather_along(
    T* out, const T* a, const int64* index, int64 length, int64 count, int64 inner, int64 n) {
  GRID_LOOP(i, n) {
    out[i] = a[(i / inner / count * length + index[i]) * inner + i % inner];
  }
}

// Each line of the result is one thread's, which adds in the order of the index.
extern "C" __global__ void scatter_add_along(
    T* out, const T* src, const int64* index, int64 length, int64 count, int64 inner,
    int64 lines) {
  GRID_LOOP(line, lines) {
    int64 to = line / inner * length * inner + line % inner;
    int64 from = line / inner * count * inner + line % inner;
    for (int64 k = 0; k < count; k++) {
      T* at = out + to + index[from + k * inner] * inner;
      *at = (T)((A)*at + (A)src[from + k * inner]);
    }
  }
}

// The same by one thread per element, in any order; `out` is A.
extern "C" __global__ void scatter_add_along_at_once(
    A* out, const T* src, const int64* index, int64 length, int64 count, int64 inner, int64 n) {
  GRID_LOOP(i, n) {
    int64 at = (i / inner / count * length + index[i]) * inner + i % inner;
    add_at(out + at, (A)src[i]);
  }
}

// The greatest (or least) of each element of `out`, which is A, and of those that go there.
extern "C" __global__ void scatter_extremum_along(
    A* out, const T* src, const int64* index, int largest, int64 length, int64 count, int64 inner,
    int64 n) {
  GRID_LOOP(i, n) {
    int64 at = (i / inner / count * length + index[i]) * inner + i % inner;
    reach_at(out + at, (A)src[i], largest);
  }
}
