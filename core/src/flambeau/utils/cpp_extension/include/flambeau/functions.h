// Functions of tensors: those of flambeau.
#pragma once

#include <flambeau/tensor.h>

#include <functional>

namespace at {

#define FLAMBEAU_TAIL                                                                       \
  const Argument &a = absent, const Argument &b = absent, const Argument &c = absent,       \
                 const Argument &d = absent, const Argument &e = absent,                    \
                 const Argument &f = absent, const Argument &g = absent
#define FLAMBEAU_GIVEN {&a, &b, &c, &d, &e, &f, &g}

// `name_out(result, self, ...)` stores what `name(self, ...)` gives.
#define FLAMBEAU_FUNCTION(name, ...)                                                          \
  inline Tensor name(const Tensor& self, FLAMBEAU_TAIL) {                                     \
    flambeau::WithPython with_python;                                                         \
    return Tensor::one(                                                                       \
        flambeau::call(flambeau::function_named(#name), &self, FLAMBEAU_GIVEN, ##__VA_ARGS__)); \
  }                                                                                           \
  inline Tensor& name##_out(Tensor& result, const Tensor& self, FLAMBEAU_TAIL) {              \
    flambeau::WithPython with_python;                                                         \
    return flambeau::store(result, name(self, a, b, c, d, e, f, g));                          \
  }
#define FLAMBEAU_WRITE(name, ...)                                                       \
  inline Tensor& name(const Tensor& self, FLAMBEAU_TAIL) {                              \
    flambeau::WithPython with_python;                                                   \
    flambeau::call(flambeau::function_named(#name), &self, FLAMBEAU_GIVEN, ##__VA_ARGS__); \
    return self.written();                                                              \
  }
#define FLAMBEAU_NAMED_FUNCTION(name, count, ...) \
  FLAMBEAU_FUNCTION(name, size_t(count), flambeau::Names{__VA_ARGS__})
#define FLAMBEAU_NAMED_WRITE(name, count, ...) \
  FLAMBEAU_WRITE(name, size_t(count), flambeau::Names{__VA_ARGS__})
#define FLAMBEAU_PAIR(name)                                                          \
  inline std::tuple<Tensor, Tensor> name(const Tensor& self, FLAMBEAU_TAIL) {        \
    flambeau::WithPython with_python;                                                \
    return Tensor::tuple_of<2>(                                                      \
        flambeau::call(flambeau::function_named(#name), &self, FLAMBEAU_GIVEN));     \
  }
#define FLAMBEAU_TRIPLE(name)                                                        \
  inline std::tuple<Tensor, Tensor, Tensor> name(const Tensor& self, FLAMBEAU_TAIL) { \
    flambeau::WithPython with_python;                                                \
    return Tensor::tuple_of<3>(                                                      \
        flambeau::call(flambeau::function_named(#name), &self, FLAMBEAU_GIVEN));     \
  }
#define FLAMBEAU_LIST(name)                                                          \
  inline std::vector<Tensor> name(const Tensor& self, FLAMBEAU_TAIL) {               \
    flambeau::WithPython with_python;                                                \
    return Tensor::list_of(                                                          \
        flambeau::call(flambeau::function_named(#name), &self, FLAMBEAU_GIVEN));     \
  }

}  // namespace at

namespace flambeau {

// As `out=` does: the result's size and values, in the memory of the other tensor.
inline at::Tensor& store(at::Tensor& result, const at::Tensor& value) {
  if (!result.defined()) return result = value;
  runtime().attr("store")(result.object(), value.object());
  return result.written();
}

}  // namespace flambeau

namespace at {

FLAMBEAU_BOTH(FLAMBEAU_FUNCTION)
FLAMBEAU_FUNCTIONS(FLAMBEAU_FUNCTION)
FLAMBEAU_NAMED(FLAMBEAU_NAMED_FUNCTION)
FLAMBEAU_WRITES(FLAMBEAU_WRITE)
FLAMBEAU_FUNCTION_WRITES(FLAMBEAU_WRITE)
FLAMBEAU_NAMED_WRITES(FLAMBEAU_NAMED_WRITE)
FLAMBEAU_PAIRS(FLAMBEAU_PAIR)
FLAMBEAU_TRIPLES(FLAMBEAU_TRIPLE)
FLAMBEAU_LISTS(FLAMBEAU_LIST)
#undef FLAMBEAU_FUNCTION
#undef FLAMBEAU_WRITE
#undef FLAMBEAU_NAMED_FUNCTION
#undef FLAMBEAU_NAMED_WRITE
#undef FLAMBEAU_PAIR
#undef FLAMBEAU_TRIPLE
#undef FLAMBEAU_LIST

#define FLAMBEAU_EXTREME(name)                                                                     \
  inline Tensor name(const Tensor& self) { return self.name(); }                                   \
  inline Tensor name(const Tensor& self, const Tensor& other) { return self.name(other); }         \
  inline std::tuple<Tensor, Tensor> name(const Tensor& self, int64_t dim, bool keepdim = false) {  \
    return self.name(dim, keepdim);                                                                \
  }                                                                                                \
  inline Tensor& name##_out(Tensor& result, const Tensor& self, const Tensor& other) {             \
    flambeau::WithPython with_python;                                                              \
    return flambeau::store(result, self.name(other));                                              \
  }                                                                                                \
  inline std::tuple<Tensor&, Tensor&> name##_out(Tensor& values, Tensor& indices,                  \
                                                 const Tensor& self, int64_t dim,                  \
                                                 bool keepdim = false) {                           \
    flambeau::WithPython with_python;                                                              \
    const auto found = self.name(dim, keepdim);                                                    \
    return {flambeau::store(values, std::get<0>(found)),                                           \
            flambeau::store(indices, std::get<1>(found))};                                         \
  }
FLAMBEAU_EXTREME(max)
FLAMBEAU_EXTREME(min)
FLAMBEAU_EXTREME(median)
#undef FLAMBEAU_EXTREME

template <class... Rest>
Tensor std(const Tensor& self, Rest... rest) {
  return self.std(rest...);
}
template <class... Rest>
Tensor var(const Tensor& self, Rest... rest) {
  return self.var(rest...);
}
inline Tensor pow(const Scalar& base, const Tensor& exponent) {
  flambeau::WithPython with_python;
  const Argument first(base), second(exponent);
  return Tensor::one(flambeau::call(flambeau::function_named("pow"), nullptr, {&first, &second}));
}
inline Tensor where(const Tensor& condition, const Argument& a, const Argument& b) {
  flambeau::WithPython with_python;
  return Tensor::one(flambeau::call(flambeau::function_named("where"), &condition, {&a, &b}));
}
inline std::vector<Tensor> where(const Tensor& condition) {
  flambeau::WithPython with_python;
  return Tensor::list_of(flambeau::call(flambeau::function_named("where"), &condition, {}));
}
inline bool equal(const Tensor& a, const Tensor& b) { return a.equal(b); }
inline bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
                     bool equal_nan = false) {
  return a.allclose(b, rtol, atol, equal_nan);
}
inline bool is_nonzero(const Tensor& self) { return self.is_nonzero(); }
inline std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& self,
                                                             bool return_inverse = false,
                                                             bool return_counts = false,
                                                             c10::optional<int64_t> dim = {}) {
  return self.unique_consecutive(return_inverse, return_counts, dim);
}
inline std::tuple<Tensor, Tensor, Tensor> _unique2(const Tensor& self, bool sorted = true,
                                                   bool return_inverse = false,
                                                   bool return_counts = false) {
  flambeau::WithPython with_python;
  return Tensor::tuple_of<3>(flambeau::runtime().attr("unique")(self.object(), sorted,
                                                               return_inverse, return_counts));
}
inline std::tuple<Tensor, Tensor> _unique(const Tensor& self, bool sorted = true,
                                          bool return_inverse = false) {
  const auto found = _unique2(self, sorted, return_inverse);
  return {std::get<0>(found), std::get<1>(found)};
}

// Functions of lists of tensors.
#define FLAMBEAU_OF_LIST(name)                                                                  \
  inline Tensor name(TensorList tensors, const Argument& dim = absent) {                        \
    flambeau::WithPython with_python;                                                           \
    const Argument first(tensors);                                                              \
    return Tensor::one(                                                                         \
        flambeau::call(flambeau::function_named(#name), nullptr, {&first, &dim}));              \
  }                                                                                             \
  inline Tensor& name##_out(Tensor& result, TensorList tensors, const Argument& dim = absent) { \
    flambeau::WithPython with_python;                                                           \
    return flambeau::store(result, name(tensors, dim));                                         \
  }
FLAMBEAU_OF_LIST(cat)
FLAMBEAU_OF_LIST(stack)
FLAMBEAU_OF_LIST(hstack)
FLAMBEAU_OF_LIST(vstack)
FLAMBEAU_OF_LIST(dstack)
FLAMBEAU_OF_LIST(cartesian_prod)
FLAMBEAU_OF_LIST(block_diag)
#undef FLAMBEAU_OF_LIST
inline Tensor einsum(const std::string& equation, TensorList tensors) {
  flambeau::WithPython with_python;
  const Argument first(equation), second(tensors);
  return Tensor::one(
      flambeau::call(flambeau::function_named("einsum"), nullptr, {&first, &second}));
}
#define FLAMBEAU_OF_LIST(name)                                                              \
  inline std::vector<Tensor> name(TensorList tensors) {                                     \
    flambeau::WithPython with_python;                                                       \
    const Argument first(tensors);                                                          \
    return Tensor::list_of(flambeau::runtime().attr(#name)(flambeau::lower(first)));        \
  }
FLAMBEAU_OF_LIST(meshgrid)
FLAMBEAU_OF_LIST(broadcast_tensors)
#undef FLAMBEAU_OF_LIST

// Functions that make tensors.  The kind of tensor may stand first, as in programs of 2018.
#define FLAMBEAU_FACTORY(name)                                                       \
  inline Tensor name(IntArrayRef size, const TensorOptions& options = {}) {          \
    flambeau::WithPython with_python;                                                \
    const Argument first(size), second(options);                                     \
    return Tensor::one(                                                              \
        flambeau::call(flambeau::function_named(#name), nullptr, {&first, &second})); \
  }                                                                                  \
  inline Tensor name(const DeprecatedTypeProperties& type, IntArrayRef size) {       \
    return name(size, type.options());                                               \
  }
FLAMBEAU_FACTORY(empty)
FLAMBEAU_FACTORY(ones)
FLAMBEAU_FACTORY(rand)
FLAMBEAU_FACTORY(randn)
FLAMBEAU_FACTORY(zeros)
#undef FLAMBEAU_FACTORY

#define FLAMBEAU_FACTORY(name)                                                               \
  inline Tensor name(const Argument& a, const Argument& b = absent, const Argument& c = absent, \
                     const Argument& d = absent, const Argument& e = absent) {              \
    flambeau::WithPython with_python;                                                       \
    return Tensor::one(                                                                     \
        flambeau::call(flambeau::function_named(#name), nullptr, {&a, &b, &c, &d, &e}));    \
  }                                                                                         \
  inline Tensor& name##_out(Tensor& result, const Argument& a, const Argument& b = absent,  \
                            const Argument& c = absent) {                                   \
    flambeau::WithPython with_python;                                                       \
    return flambeau::store(result, name(a, b, c));                                          \
  }
FLAMBEAU_FACTORY(arange)
FLAMBEAU_FACTORY(bartlett_window)
FLAMBEAU_FACTORY(blackman_window)
FLAMBEAU_FACTORY(empty_strided)
FLAMBEAU_FACTORY(eye)
FLAMBEAU_FACTORY(hamming_window)
FLAMBEAU_FACTORY(hann_window)
FLAMBEAU_FACTORY(linspace)
FLAMBEAU_FACTORY(logspace)
FLAMBEAU_FACTORY(randint)
FLAMBEAU_FACTORY(randperm)
FLAMBEAU_FACTORY(range)
FLAMBEAU_FACTORY(scalar_tensor)
FLAMBEAU_FACTORY(sparse_coo_tensor)
FLAMBEAU_FACTORY(tril_indices)
FLAMBEAU_FACTORY(triu_indices)
#undef FLAMBEAU_FACTORY

// One number is a list of sizes, too.
inline Tensor full(IntArrayRef size, const Argument& value, const Argument& a = absent,
                   const Argument& b = absent, const Argument& c = absent) {
  flambeau::WithPython with_python;
  const Argument first(size);
  return Tensor::one(
      flambeau::call(flambeau::function_named("full"), nullptr, {&first, &value, &a, &b, &c}));
}
inline Tensor& full_out(Tensor& result, IntArrayRef size, const Argument& value) {
  flambeau::WithPython with_python;
  return flambeau::store(result, full(size, value));
}

inline Tensor slice(const Tensor& self, int64_t dim = 0, c10::optional<int64_t> start = {},
                    c10::optional<int64_t> end = {}, int64_t step = 1) {
  return self.slice(dim, start, end, step);
}

// Values of C++; in braces, of the type of their elements, or of the options.
template <class T>
Tensor tensor(ArrayRef<T> values, const TensorOptions& options = {}) {
  flambeau::WithPython with_python;
  flambeau::py::list list;
  for (const T& value : values) list.append(flambeau::lower(Scalar(value)));
  flambeau::py::dict keywords;
  flambeau::add_options(keywords,
                        options.has_dtype() ? options : options.dtype<std::remove_const_t<T>>());
  return Tensor::one(flambeau::function_named("tensor")(list, **keywords));
}
template <class T>
Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(values), options);
}
template <class T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(values), options);
}
template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
Tensor tensor(T value, const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(value), options).reshape(std::vector<int64_t>());
}

// A tensor on memory of C++, which `deleter` is given when nothing uses it any more.
inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                        std::function<void(void*)> deleter, const TensorOptions& options = {}) {
  flambeau::WithPython with_python;
  TORCH_CHECK(options.device().is_cpu(), "from_blob: the memory has to be the CPU's");
  using Deleter = std::function<void(void*)>;
  flambeau::py::object owner = flambeau::py::none();
  if (deleter)
    owner = flambeau::py::capsule(new std::pair<void*, Deleter>(data, std::move(deleter)), [](void* p) {
      std::unique_ptr<std::pair<void*, Deleter>> pair(static_cast<std::pair<void*, Deleter>*>(p));
      pair->second(pair->first);
    });
  Tensor made = Tensor::one(flambeau::runtime().attr("from_blob")(
      reinterpret_cast<intptr_t>(data), flambeau::lower(Argument(sizes)),
      flambeau::lower(Argument(strides)),
      flambeau::dtype_object(options.dtype().toScalarType()), owner));
  return options.requires_grad() ? made.requires_grad_(true) : made;
}
inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                        const TensorOptions& options = {}) {
  return from_blob(data, sizes, strides, nullptr, options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, std::function<void(void*)> deleter,
                        const TensorOptions& options = {}) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t dim = sizes.size(); dim-- > 1;) strides[dim - 1] = strides[dim] * sizes[dim];
  return from_blob(data, sizes, strides, std::move(deleter), options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {}) {
  return from_blob(data, sizes, std::function<void(void*)>(), options);
}

inline Tensor DeprecatedTypeProperties::tensor(IntArrayRef size) const {
  return at::empty(size, options());
}
inline Tensor DeprecatedTypeProperties::empty(IntArrayRef size) const {
  return at::empty(size, options());
}
inline Tensor DeprecatedTypeProperties::zeros(IntArrayRef size) const {
  return at::zeros(size, options());
}
inline Tensor DeprecatedTypeProperties::ones(IntArrayRef size) const {
  return at::ones(size, options());
}
inline Tensor DeprecatedTypeProperties::scalarTensor(Scalar value) const {
  return scalar_tensor(value, options());
}

#define FLAMBEAU_OPERATOR(op, name)                                                         \
  inline Tensor operator op(const Tensor& a, const Tensor& b) { return a.name(b); }          \
  inline Tensor operator op(const Tensor& a, const Scalar& b) { return a.name(b); }
FLAMBEAU_OPERATOR(+, add)
FLAMBEAU_OPERATOR(-, sub)
FLAMBEAU_OPERATOR(*, mul)
FLAMBEAU_OPERATOR(/, div)
FLAMBEAU_OPERATOR(%, remainder)
FLAMBEAU_OPERATOR(<, lt)
FLAMBEAU_OPERATOR(<=, le)
FLAMBEAU_OPERATOR(>, gt)
FLAMBEAU_OPERATOR(>=, ge)
FLAMBEAU_OPERATOR(==, eq)
FLAMBEAU_OPERATOR(!=, ne)
FLAMBEAU_OPERATOR(&, bitwise_and)
FLAMBEAU_OPERATOR(|, bitwise_or)
FLAMBEAU_OPERATOR(^, bitwise_xor)
FLAMBEAU_OPERATOR(&&, logical_and)
FLAMBEAU_OPERATOR(||, logical_or)
#undef FLAMBEAU_OPERATOR
inline Tensor operator!(const Tensor& a) { return a.logical_not(); }
// With the number first: by the method of Python that is asked then.
#define FLAMBEAU_OPERATOR(op, expression) \
  inline Tensor operator op(const Scalar& a, const Tensor& b) { return expression; }
FLAMBEAU_OPERATOR(+, b.add(a))
FLAMBEAU_OPERATOR(-, b.rsub(a))
FLAMBEAU_OPERATOR(*, b.mul(a))
FLAMBEAU_OPERATOR(/, b.reciprocal().mul(a))
FLAMBEAU_OPERATOR(<, b.gt(a))
FLAMBEAU_OPERATOR(<=, b.ge(a))
FLAMBEAU_OPERATOR(>, b.lt(a))
FLAMBEAU_OPERATOR(>=, b.le(a))
FLAMBEAU_OPERATOR(==, b.eq(a))
FLAMBEAU_OPERATOR(!=, b.ne(a))
#undef FLAMBEAU_OPERATOR

// Blocks in which no operation is recorded, or again.
class AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled) {
    flambeau::WithPython with_python;
    before_ = is_enabled();
    set_enabled(enabled);
  }
  ~AutoGradMode() {
    flambeau::WithPython with_python;
    set_enabled(before_);
  }
  AutoGradMode(const AutoGradMode&) = delete;
  AutoGradMode& operator=(const AutoGradMode&) = delete;

  static bool is_enabled() {
    flambeau::WithPython with_python;
    return flambeau::function_named("is_grad_enabled")().cast<bool>();
  }
  static void set_enabled(bool enabled) {
    flambeau::WithPython with_python;
    flambeau::runtime().attr("set_grad_enabled")(enabled);
  }

 private:
  bool before_;
};
using GradMode = AutoGradMode;
struct NoGradGuard : AutoGradMode {
  NoGradGuard() : AutoGradMode(false) {}
};
struct AutoNonVariableTypeMode : AutoGradMode {
  explicit AutoNonVariableTypeMode(bool enabled = true) : AutoGradMode(!enabled) {}
};

inline void manual_seed(uint64_t seed) {
  flambeau::WithPython with_python;
  flambeau::function_named("manual_seed")(seed);
}
inline int64_t get_num_threads() {
  flambeau::WithPython with_python;
  return flambeau::function_named("get_num_threads")().cast<int64_t>();
}
inline void set_num_threads(int64_t count) {
  flambeau::WithPython with_python;
  flambeau::function_named("set_num_threads")(count);
}

}  // namespace at
