// What sources of the first PyTorch call of the library under it: checks, and products of matrices.
#pragma once

#include <flambeau/names_of_torch.h>

#include <cstdarg>

namespace flambeau {

[[noreturn]] __attribute__((format(printf, 1, 2))) inline void th_error(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  char text[2048];
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  throw c10::Error(text);
}

inline bool is_transposed(char how) { return how == 't' || how == 'T'; }

// A matrix that lies column by column, `lead` elements from one to the next; or its transpose.
template <class T>
at::Tensor columns(const T* data, bool transposed, int64_t rows, int64_t columns, int64_t lead) {
  const auto options = at::TensorOptions(at::CppTypeToScalarType<T>::value);
  auto* memory = const_cast<T*>(data);
  if (transposed) return at::from_blob(memory, {rows, columns}, {lead, 1}, options);
  return at::from_blob(memory, {rows, columns}, {1, lead}, options);
}

template <class T>
void gemm(char transposed_a, char transposed_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a,
          int64_t lead_a, const T* b, int64_t lead_b, T beta, T* c, int64_t lead_c) {
  at::NoGradGuard no_grad;
  at::Tensor to = columns(c, false, m, n, lead_c);
  at::Tensor product = at::mm(columns(a, is_transposed(transposed_a), m, k, lead_a),
                              columns(b, is_transposed(transposed_b), k, n, lead_b)) * alpha;
  to.copy_(beta == T(0) ? product : product + to * beta);  // what 0 stands before is not read
}

// `a` has `m` rows and `n` columns before it is transposed; elements of vectors are steps apart.
template <class T>
void gemv(char transposed, int64_t m, int64_t n, T alpha, const T* a, int64_t lead, const T* x,
          int64_t step_x, T beta, T* y, int64_t step_y) {
  if (is_transposed(transposed)) std::swap(m, n);
  // A step is what one column is from the next: the vectors are rows of matrices.
  const char other = is_transposed(transposed) ? 'n' : 't';
  gemm<T>('n', other, 1, m, n, alpha, x, step_x, a, lead, beta, y, step_y);
}

}  // namespace flambeau

#define THError(...) ::flambeau::th_error(__VA_ARGS__)
#define THArgCheck(condition, place, ...)                  \
  do {                                                     \
    if (!(condition)) ::flambeau::th_error(__VA_ARGS__);   \
  } while (false)
#define THAssert TORCH_CHECK
#define THFloatBlas_gemm ::flambeau::gemm<float>
#define THDoubleBlas_gemm ::flambeau::gemm<double>
#define THFloatBlas_gemv ::flambeau::gemv<float>
#define THDoubleBlas_gemv ::flambeau::gemv<double>
