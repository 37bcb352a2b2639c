// Loops in several threads.
#pragma once

#include <flambeau/python.h>

#include <algorithm>
#include <exception>

namespace at {

namespace internal {

// Elements of simple work that are worth a thread.
constexpr int64_t GRAIN_SIZE = 32768;

}  // namespace internal

inline int64_t divup(int64_t x, int64_t y) { return (x + y - 1) / y; }

#ifdef _OPENMP
inline bool in_parallel_region() { return omp_in_parallel(); }
inline int get_thread_num() { return omp_get_thread_num(); }
inline int get_max_threads() { return omp_get_max_threads(); }
#else
inline bool in_parallel_region() { return false; }
inline int get_thread_num() { return 0; }
inline int get_max_threads() { return 1; }
#endif
inline void init_num_threads() {}

// `f(from, to)` for parts of the range that have `grain_size` indices or more, by the threads of
// OpenMP if the extension is compiled with -fopenmp.  Other threads of Python run meanwhile.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain_size, const F& f) {
  if (begin >= end) return;
  flambeau::WithoutPython without_python;
#ifdef _OPENMP
  const int64_t count = end - begin, grain = std::max<int64_t>(grain_size, 1);
  const int64_t threads = std::min<int64_t>(omp_get_max_threads(), divup(count, grain));
  if (threads > 1 && !omp_in_parallel()) {
    std::exception_ptr error;
    const int64_t part = divup(count, threads);
#pragma omp parallel for num_threads(int(threads)) schedule(static, 1)
    for (int64_t i = 0; i < threads; ++i) {
      const int64_t from = begin + i * part;
      try {
        if (from < end) f(from, std::min(end, from + part));
      } catch (...) {
#pragma omp critical(flambeau_parallel_for)
        if (!error) error = std::current_exception();
      }
    }
    if (error) std::rethrow_exception(error);
    return;
  }
#else
  (void)grain_size;
#endif
  f(begin, end);
}

// The parts' results combined from the left, in the order of the range.
template <class T, class F, class Combine>
T parallel_reduce(int64_t begin, int64_t end, int64_t grain_size, const T& identity, const F& f,
                  const Combine& combine) {
  if (begin >= end) return identity;
  // Parts do not depend on how many threads there are, so neither does a sum of floats.
  const int64_t part = std::max<int64_t>(grain_size, 1), parts = divup(end - begin, part);
  // Of bools a vector would keep bits, and threads would write to the same byte.
  struct Part {
    T value;
  };
  std::vector<Part> results(parts, Part{identity});
  parallel_for(0, parts, 1, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i)
      results[i].value = f(begin + i * part, std::min(end, begin + (i + 1) * part), identity);
  });
  T result = identity;
  for (const Part& each : results) result = combine(result, each.value);
  return result;
}

}  // namespace at
