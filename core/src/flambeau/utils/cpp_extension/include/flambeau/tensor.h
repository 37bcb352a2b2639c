// `at::Tensor`: methods are those of the tensor in Python.
#pragma once

#include <flambeau/argument.h>
#include <flambeau/names.h>
#include <flambeau/storage.h>

#include <tuple>

namespace at {

class Tensor;
struct DeprecatedTypeProperties;
using TensorList = ArrayRef<Tensor>;
using flambeau::absent;
using flambeau::Argument;

namespace indexing {

struct Slice {
  c10::optional<int64_t> start, stop, step;
  Slice(c10::optional<int64_t> start = {}, c10::optional<int64_t> stop = {},
        c10::optional<int64_t> step = {})
      : start(start), stop(stop), step(step) {}
};

enum class EllipsisIndexType { Ellipsis };
constexpr EllipsisIndexType Ellipsis = EllipsisIndexType::Ellipsis;
constexpr std::nullopt_t None = std::nullopt;

// One of the indices in `x.index({...})`.
class TensorIndex {
 public:
  TensorIndex(std::nullopt_t) : value_(std::nullopt) {}
  TensorIndex(EllipsisIndexType) : value_(Ellipsis) {}
  TensorIndex(const char* dots) : value_(Ellipsis) {
    TORCH_CHECK(std::string(dots) == "...", "an index cannot be the text '", dots, "'");
  }
  TensorIndex(Slice slice) : value_(slice) {}
  TensorIndex(TensorBase tensor) : value_(std::move(tensor)) {}
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  TensorIndex(T index)
      : value_(std::conditional_t<std::is_same_v<T, bool>, bool, int64_t>(index)) {}
  flambeau::py::object object() const;

 private:
  std::variant<std::nullopt_t, EllipsisIndexType, Slice, TensorBase, int64_t, bool> value_;
};

}  // namespace indexing

class Tensor : public TensorBase {
 public:
  using TensorBase::TensorBase;
  Tensor() = default;
  Tensor(const TensorBase& base) : TensorBase(base) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) = default;
  // A variable gets another tensor; what an index gave is written to.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & = default;
  Tensor& operator=(const Tensor& value) && { return copy_(value); }
  Tensor& operator=(Tensor&& value) && { return copy_(value); }
  Tensor& operator=(const Scalar& value) && { return fill_(value); }

#define FLAMBEAU_PARAMETERS                                                               \
  const Argument &a = absent, const Argument &b = absent, const Argument &c = absent,     \
                 const Argument &d = absent, const Argument &e = absent
#define FLAMBEAU_METHOD(name)                        \
  Tensor name(FLAMBEAU_PARAMETERS) const {           \
    flambeau::WithPython with_python;                \
    return one(method(#name, {&a, &b, &c, &d, &e})); \
  }
#define FLAMBEAU_WRITE(name)                               \
  Tensor& name(FLAMBEAU_PARAMETERS) const {                \
    flambeau::WithPython with_python;                      \
    return method(#name, {&a, &b, &c, &d, &e}), written(); \
  }
  FLAMBEAU_BOTH(FLAMBEAU_METHOD)
  FLAMBEAU_METHODS(FLAMBEAU_METHOD)
  FLAMBEAU_WRITES(FLAMBEAU_WRITE)
  FLAMBEAU_METHOD_WRITES(FLAMBEAU_WRITE)
#undef FLAMBEAU_METHOD
#undef FLAMBEAU_WRITE
#define FLAMBEAU_METHOD(name, count, ...)                                  \
  Tensor name(FLAMBEAU_PARAMETERS) const {                                 \
    flambeau::WithPython with_python;                                      \
    return one(method(#name, {&a, &b, &c, &d, &e}, count, {__VA_ARGS__})); \
  }
#define FLAMBEAU_WRITE(name, count, ...)                                         \
  Tensor& name(FLAMBEAU_PARAMETERS) const {                                      \
    flambeau::WithPython with_python;                                            \
    return method(#name, {&a, &b, &c, &d, &e}, count, {__VA_ARGS__}), written(); \
  }
  FLAMBEAU_NAMED(FLAMBEAU_METHOD)
  FLAMBEAU_NAMED_WRITES(FLAMBEAU_WRITE)
#undef FLAMBEAU_METHOD
#undef FLAMBEAU_WRITE
#define FLAMBEAU_METHOD(name)                                  \
  std::tuple<Tensor, Tensor> name(FLAMBEAU_PARAMETERS) const { \
    flambeau::WithPython with_python;                          \
    return tuple_of<2>(method(#name, {&a, &b, &c, &d, &e}));   \
  }
  FLAMBEAU_PAIRS(FLAMBEAU_METHOD)
#undef FLAMBEAU_METHOD
#define FLAMBEAU_METHOD(name)                                          \
  std::tuple<Tensor, Tensor, Tensor> name(FLAMBEAU_PARAMETERS) const { \
    flambeau::WithPython with_python;                                  \
    return tuple_of<3>(method(#name, {&a, &b, &c, &d, &e}));           \
  }
  FLAMBEAU_TRIPLES(FLAMBEAU_METHOD)
#undef FLAMBEAU_METHOD
#define FLAMBEAU_METHOD(name)                            \
  std::vector<Tensor> name(FLAMBEAU_PARAMETERS) const {  \
    flambeau::WithPython with_python;                    \
    return list_of(method(#name, {&a, &b, &c, &d, &e})); \
  }
  FLAMBEAU_LISTS(FLAMBEAU_METHOD)
#undef FLAMBEAU_METHOD

// Over all elements a tensor, along a dimension values and indices, with another tensor elementwise.
#define FLAMBEAU_EXTREME(name)                                              \
  Tensor name() const {                                                     \
    flambeau::WithPython with_python;                                       \
    return one(method(#name, {}));                                          \
  }                                                                         \
  Tensor name(const Tensor& other) const {                                  \
    flambeau::WithPython with_python;                                       \
    const Argument argument(other);                                         \
    return one(method(#name, {&argument}));                                 \
  }                                                                         \
  std::tuple<Tensor, Tensor> name(int64_t dim, bool keepdim = false) const { \
    flambeau::WithPython with_python;                                       \
    const Argument first(dim), second(keepdim);                             \
    return tuple_of<2>(method(#name, {&first, &second}));                   \
  }
  FLAMBEAU_EXTREME(max)
  FLAMBEAU_EXTREME(min)
  FLAMBEAU_EXTREME(median)
  FLAMBEAU_EXTREME(nanmedian)
#undef FLAMBEAU_EXTREME

// A single flag is `unbiased`.
#define FLAMBEAU_SPREAD(name)                                                       \
  Tensor name(bool unbiased = true) const { return flagged(#name, absent, unbiased, absent); } \
  Tensor name(int64_t dim, bool unbiased = true, bool keepdim = false) const {      \
    return flagged(#name, dim, unbiased, keepdim);                                  \
  }                                                                                 \
  Tensor name(int dim, bool unbiased = true, bool keepdim = false) const {          \
    return flagged(#name, dim, unbiased, keepdim);                                  \
  }                                                                                 \
  Tensor name(IntArrayRef dim, bool unbiased = true, bool keepdim = false) const {  \
    return flagged(#name, dim, unbiased, keepdim);                                  \
  }
  FLAMBEAU_SPREAD(std)
  FLAMBEAU_SPREAD(var)
#undef FLAMBEAU_SPREAD

  std::tuple<Tensor, Tensor, Tensor> unique_consecutive(bool return_inverse = false,
                                                        bool return_counts = false,
                                                        c10::optional<int64_t> dim = {}) const;

  // The conversions, in the forms that C++ has.
  Tensor to(const TensorOptions& options, bool non_blocking = false, bool copy = false) const {
    flambeau::WithPython with_python;
    flambeau::py::dict keywords;
    flambeau::add_options(keywords, options);
    keywords["non_blocking"] = non_blocking;
    keywords["copy"] = copy;
    return one(held().object().attr("to")(**keywords));
  }
  Tensor to(Device device, ScalarType type, bool non_blocking = false, bool copy = false) const {
    return to(TensorOptions(type).device(device), non_blocking, copy);
  }
  Tensor to(const Tensor& other, bool non_blocking = false, bool copy = false) const {
    return to(TensorOptions(other.scalar_type()).device(other.device()), non_blocking, copy);
  }
  Tensor to(MemoryFormat format) const { return contiguous(format); }
  Tensor toType(ScalarType type) const { return to(TensorOptions(type)); }
  Tensor toBackend(c10::DeviceType type) const { return to(TensorOptions(type)); }
  DeprecatedTypeProperties type() const;
  Tensor suggest_memory_format() const = delete;

  Scalar item() const;
  template <class T>
  T item() const {
    return item().to<T>();
  }
  bool equal(const Tensor& other) const { return truth("equal", other); }
  bool allclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                bool equal_nan = false) const {
    return truth("allclose", other, rtol, atol, equal_nan);
  }
  bool is_nonzero() const { return item().toBool(); }
  bool is_pinned() const { return truth("is_pinned"); }
  bool is_coalesced() const { return truth("is_coalesced"); }
  bool has_storage() const { return true; }
  bool is_variable() const { return true; }
  bool is_contiguous_or_false() const { return is_contiguous(); }

  // A part of it, which shares its memory.
  Tensor operator[](int64_t index) const { return select(0, index); }
  Tensor operator[](const Scalar& index) const { return select(0, index); }
  Tensor operator[](const Tensor& index) const { return this->index({index}); }
  Tensor slice(int64_t dim = 0, c10::optional<int64_t> start = {}, c10::optional<int64_t> end = {},
               int64_t step = 1) const {
    flambeau::WithPython with_python;
    if (dim < 0) dim += this->dim();
    flambeau::py::list indices;
    for (int64_t i = 0; i < dim; ++i) indices.append(indexing::TensorIndex(indexing::Slice()).object());
    if (end && *end == INT64_MAX) end.reset();
    indices.append(indexing::TensorIndex(indexing::Slice(start, end, step)).object());
    return one(held().object()[flambeau::py::tuple(indices)]);
  }
  Tensor index(ArrayRef<indexing::TensorIndex> indices) const {
    flambeau::WithPython with_python;
    return one(held().object()[tuple_of_indices(indices)]);
  }
  Tensor index(std::initializer_list<indexing::TensorIndex> indices) const {
    return index(ArrayRef<indexing::TensorIndex>(indices));
  }
  Tensor& index_put_(ArrayRef<indexing::TensorIndex> indices, const Argument& value,
                     bool accumulate = false) const;
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Argument& value,
                     bool accumulate = false) const {
    return index_put_(ArrayRef<indexing::TensorIndex>(indices), value, accumulate);
  }
  Tensor index_put(ArrayRef<indexing::TensorIndex> indices, const Argument& value,
                   bool accumulate = false) const {
    return clone().index_put_(indices, value, accumulate);
  }

  // Autograd.
  Tensor grad() const {
    flambeau::WithPython with_python;
    return Tensor(flambeau::py::object(held().object().attr("grad")));
  }
  void backward(const Tensor& gradient = {}, c10::optional<bool> retain_graph = {},
                bool create_graph = false) const {
    flambeau::WithPython with_python;
    held().object().attr("backward")(gradient.object(), retain_graph, create_graph);
  }
  const Tensor& set_requires_grad(bool value) const { return requires_grad_(value); }
  Tensor variable_data() const { return detach(); }
  Tensor tensor_data() const { return detach(); }
  void set_data(const Tensor& value) const {
    flambeau::WithPython with_python;
    held().object().attr("data") = value.object();
    held().refresh();
  }

  // False in conditions if the tensor is undefined.
  Storage storage() const {
    if (!defined()) return Storage();
    flambeau::WithPython with_python;
    return Storage(held().object().attr("untyped_storage")());
  }

  using TensorBase::data;
  Tensor data() const { return detach(); }

  Tensor operator-() const { return neg(); }
  Tensor operator~() const { return bitwise_not(); }
#define FLAMBEAU_ASSIGNMENT(op, write)                                   \
  Tensor& operator op(const Tensor& other) { return written_to(write(other)); } \
  Tensor& operator op(const Scalar& other) { return written_to(write(other)); }
  FLAMBEAU_ASSIGNMENT(+=, add_)
  FLAMBEAU_ASSIGNMENT(-=, sub_)
  FLAMBEAU_ASSIGNMENT(*=, mul_)
  FLAMBEAU_ASSIGNMENT(/=, div_)
  FLAMBEAU_ASSIGNMENT(&=, bitwise_and_)
  FLAMBEAU_ASSIGNMENT(|=, bitwise_or_)
  FLAMBEAU_ASSIGNMENT(^=, bitwise_xor_)
#undef FLAMBEAU_ASSIGNMENT

  void print() const {
    flambeau::WithPython with_python;
    flambeau::py::print(object());
  }
  std::string toString() const;

  // For functions: what a call gave.
  static Tensor one(flambeau::py::object result) {
    Tensor made(std::move(result));
    // Now: threads of OpenMP may ask for it, which cannot call Python.
    made.held().prepare();
    return made;
  }
  static std::vector<Tensor> list_of(const flambeau::py::object& results) {
    flambeau::WithPython with_python;
    std::vector<Tensor> list;
    for (flambeau::py::handle result : results)
      list.push_back(one(flambeau::py::reinterpret_borrow<flambeau::py::object>(result)));
    return list;
  }
  template <size_t N>
  static std::conditional_t<N == 2, std::tuple<Tensor, Tensor>, std::tuple<Tensor, Tensor, Tensor>>
  tuple_of(const flambeau::py::object& results) {
    const std::vector<Tensor> list = list_of(results);
    TORCH_CHECK(list.size() == N, "expected ", N, " tensors, found ", list.size());
    if constexpr (N == 2) {
      return std::make_tuple(list[0], list[1]);
    } else {
      return std::make_tuple(list[0], list[1], list[2]);
    }
  }
  Tensor& written() const {
    held().refresh();
    return const_cast<Tensor&>(*this);
  }

 private:
  Tensor& written_to(Tensor&) { return *this; }

  // What the method of Python gives; hold the interpreter's lock.
  flambeau::py::object method(const char* name, flambeau::Arguments arguments,
                              size_t positional = SIZE_MAX, flambeau::Names names = {}) const {
    return flambeau::call(held().object().attr(name), nullptr, arguments, positional, names);
  }
  template <class... Rest>
  bool truth(const char* name, const Rest&... rest) const {
    flambeau::WithPython with_python;
    return held().object().attr(name)(flambeau::lower(Argument(rest))...).template cast<bool>();
  }
  Tensor flagged(const char* name, const Argument& dim, const Argument& unbiased,
                 const Argument& keepdim) const {
    flambeau::WithPython with_python;
    return one(method(name, {&dim, &unbiased, &keepdim}, 0, {"dim", "unbiased", "keepdim"}));
  }
  static flambeau::py::tuple tuple_of_indices(ArrayRef<indexing::TensorIndex> indices) {
    flambeau::py::tuple objects(indices.size());
    for (size_t i = 0; i < indices.size(); ++i) objects[i] = indices[i].object();
    return objects;
  }
};

inline flambeau::py::object indexing::TensorIndex::object() const {
  using namespace flambeau;
  struct Convert {
    py::object operator()(std::nullopt_t) const { return py::none(); }
    py::object operator()(EllipsisIndexType) const { return py::ellipsis(); }
    py::object operator()(const Slice& slice) const {
      return py::slice(py::cast(slice.start), py::cast(slice.stop), py::cast(slice.step));
    }
    // An undefined tensor is a dimension that is taken whole.
    py::object operator()(const TensorBase& tensor) const {
      return tensor.defined() ? tensor.object() : (*this)(Slice());
    }
    py::object operator()(int64_t index) const { return py::int_(index); }
    py::object operator()(bool mask) const { return py::bool_(mask); }
  };
  return std::visit(Convert(), value_);
}

inline Scalar Tensor::item() const {
  flambeau::WithPython with_python;
  const flambeau::py::object value = held().object().attr("item")();
  if (flambeau::py::isinstance<flambeau::py::bool_>(value)) return Scalar(value.cast<bool>());
  if (flambeau::py::isinstance<flambeau::py::int_>(value)) return Scalar(value.cast<int64_t>());
  if (flambeau::py::isinstance<flambeau::py::float_>(value)) return Scalar(value.cast<double>());
  return Scalar(value.cast<std::complex<double>>());
}

inline Tensor& Tensor::index_put_(ArrayRef<indexing::TensorIndex> indices, const Argument& value,
                                  bool accumulate) const {
  flambeau::WithPython with_python;
  flambeau::runtime().attr("index_put_")(object(), tuple_of_indices(indices), flambeau::lower(value),
                                         accumulate);
  return written();
}

inline std::tuple<Tensor, Tensor, Tensor> Tensor::unique_consecutive(
    bool return_inverse, bool return_counts, c10::optional<int64_t> dim) const {
  flambeau::WithPython with_python;
  return tuple_of<3>(flambeau::runtime().attr("unique_consecutive")(object(), return_inverse,
                                                                   return_counts, dim));
}

inline std::string Tensor::toString() const {
  return (is_cuda() ? "CUDA" : "CPU") + std::string(c10::toString(scalar_type())) + "Type";
}

// What `Tensor::type` gives, as old programs use it: a dtype and a device.
struct DeprecatedTypeProperties {
  ScalarType type;
  Device place;

  ScalarType scalarType() const { return type; }
  Device device() const { return place; }
  c10::DeviceType device_type() const { return place.type(); }
  bool is_cuda() const { return place.is_cuda(); }
  bool is_sparse() const { return false; }
  TensorOptions options() const { return TensorOptions(type).device(place); }
  operator TensorOptions() const { return options(); }
  operator Argument() const { return Argument(options()); }
  DeprecatedTypeProperties toScalarType(ScalarType other) const { return {other, place}; }
  std::string toString() const {
    return (is_cuda() ? "CUDA" : "CPU") + std::string(c10::toString(type)) + "Type";
  }
  bool operator==(const DeprecatedTypeProperties& other) const {
    return type == other.type && place.type() == other.place.type();
  }
  bool operator!=(const DeprecatedTypeProperties& other) const { return !(*this == other); }
  // Old programs call the functions that make tensors as methods of it.
  inline Tensor tensor(IntArrayRef size = {0}) const;
  inline Tensor empty(IntArrayRef size) const;
  inline Tensor zeros(IntArrayRef size) const;
  inline Tensor ones(IntArrayRef size) const;
  inline Tensor scalarTensor(Scalar value) const;
  inline Tensor copy(const Tensor& source) const { return source.to(options(), false, true); }
};
using Type = DeprecatedTypeProperties;

inline std::ostream& operator<<(std::ostream& stream, const DeprecatedTypeProperties& type) {
  return stream << type.toString();
}
inline DeprecatedTypeProperties Tensor::type() const { return {scalar_type(), device()}; }
inline DeprecatedTypeProperties CPU(ScalarType type) { return {type, Device(c10::kCPU)}; }
inline DeprecatedTypeProperties CUDA(ScalarType type) { return {type, Device(c10::kCUDA)}; }

inline std::ostream& operator<<(std::ostream& stream, const Tensor& tensor) {
  flambeau::WithPython with_python;
  return stream << std::string(flambeau::py::str(tensor.object()));
}

using OptionalTensorRef = c10::optional<Tensor>;

}  // namespace at
