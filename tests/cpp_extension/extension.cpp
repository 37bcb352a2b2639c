// An extension in the manner of those for PyTorch 1.x: what test_cpp_extension.py calls.
#include <ATen/AccumulateType.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <ATen/cpu/vec256/vec256.h>
#include <TH/TH.h>
#include <torch/csrc/utils/tensor_flatten.h>
#include <torch/cuda.h>
#include <torch/extension.h>
#include <torch/serialize/tensor.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

// By functions.
torch::Tensor gate(torch::Tensor x, torch::Tensor y, torch::Scalar alpha) {
  auto z = torch::sigmoid(x) * y.tanh() + alpha;
  z -= 1;
  return 2 / (1 - z);
}

std::vector<at::Tensor> gate_parts(at::Tensor x) {
  auto parts = at::cat({x, x + 1}, /*dim=*/1).chunk(2, /*dim=*/1);
  return {parts[0], parts[1].sum(/*dim=*/0, /*keepdim=*/true), x.slice(1, 1), x.sum({0, 1})};
}

// By accessors.
torch::Tensor row_sums(torch::Tensor x) {
  TORCH_CHECK(x.dim() == 2, "row_sums wants a matrix, not ", x.dim(), " dimensions");
  auto sums = torch::zeros({x.size(0)}, x.options());
  AT_DISPATCH_ALL_TYPES_AND(at::kHalf, x.scalar_type(), "row_sums", ([&] {
    const auto from = x.accessor<scalar_t, 2>();
    auto to = sums.accessor<scalar_t, 1>();
    for (int64_t i = 0; i < from.size(0); ++i)
      for (int64_t j = 0; j < from.size(1); ++j) to[i] += from[i][j];
  }));
  return sums;
}

// By pointers, in several threads, none of which holds the interpreter's lock.
torch::Tensor squares(torch::Tensor x) {
  x = x.contiguous();
  auto y = torch::empty_like(x);
  const float* from = x.data_ptr<float>();
  float* to = y.data<float>();
  at::parallel_for(0, x.numel(), 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = from[i] * from[i];
  });
  return y;
}

// Waits for another thread of Python, in a loop over elements.
bool waits_for(torch::Tensor x, py::function start) {
  static std::atomic<bool> done;
  done = false;
  start(py::cpp_function([] { done = true; }));
  AT_DISPATCH_FLOATING_TYPES(x.type(), "waits_for", [&] {
    for (int i = 0; i < 10000 && !done; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  return done;
}

// Called without the lock.
torch::Tensor without_lock(torch::Tensor x) {
  torch::Tensor y = x;
  for (int i = 0; i < 3; ++i) y = torch::relu(y) + x;
  return y.sum();
}

torch::Tensor threads_of_its_own(torch::Tensor x) {
  std::vector<torch::Tensor> results(4);
  py::gil_scoped_release unlocked;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] { results[i] = (x * i).sum() + x.size(0); });
  for (auto& thread : threads) thread.join();
  return torch::stack(results);
}

torch::Tensor packed(torch::Tensor x) {
  const auto from = x.packed_accessor32<double, 2, torch::RestrictPtrTraits>();
  auto y = torch::zeros({from.size(1), from.size(0)}, torch::dtype(torch::kFloat64));
  auto to = y.packed_accessor64<double, 2>();
  for (int i = 0; i < from.size(0); ++i)
    for (int j = 0; j < from.size(1); ++j) to[j][i] = from[i][j];
  return y;
}

void write_parts(torch::Tensor x) {
  x[0] = 5;
  x[1][0] = x[0][0] + 1;
  x.index_put_({torch::indexing::Slice(2, torch::indexing::None), 1}, -1);
  x.select(1, 2).fill_(0.5).add_(1, 2);
}

std::tuple<torch::Tensor, torch::Tensor, int64_t> largest(torch::Tensor x) {
  torch::Tensor values, indices;
  std::tie(values, indices) = x.max(1);
  return {values, indices, std::get<1>(torch::max(x, 0)).size(0)};
}

std::vector<int64_t> sizes_of_temporaries(torch::Tensor x) {
  auto sizes = torch::cat({x, x}).sizes();
  torch::IntArrayRef list = {1, 2, 3};
  x.resize_({2, 5});
  std::vector<int64_t> all = sizes.vec();
  all.insert(all.end(), list.begin(), list.end());
  for (int64_t size : x.sizes()) all.push_back(size);
  return all;
}

torch::Tensor borrowed(int64_t count, py::function freed) {
  auto* memory = new double[count];
  for (int64_t i = 0; i < count; ++i) memory[i] = double(i);
  return torch::from_blob(
      memory, {count},
      [freed](void* p) {
        delete[] static_cast<double*>(p);
        freed();
      },
      torch::kFloat64);
}

std::vector<torch::Tensor> made(torch::Device device, torch::ScalarType type) {
  const auto options = torch::TensorOptions().dtype(type).device(device).requires_grad(false);
  return {torch::ones({2}, options),        torch::full({2}, 7, type),
          torch::arange(3, options),        torch::eye(2, options),
          torch::tensor({1, 2}, options),   at::zeros({}, options),
          torch::full_like(torch::ones({2}, options), 3)};
}

c10::optional<torch::Tensor> maybe(c10::optional<torch::Tensor> x, bool twice) {
  if (!x.has_value() || !twice) return c10::nullopt;
  return x.value() * 2;
}

bool recorded(torch::Tensor x) {
  at::NoGradGuard guard;
  return (x * 2).requires_grad();
}

std::string described(torch::Tensor x) {
  return c10::str(x.scalar_type(), ' ', x.device(), ' ', x.sizes(), ' ', x.strides(), ' ', x.numel(),
                  ' ', x.is_contiguous(), ' ', x.type(), ' ', x.dtype().itemsize());
}

void fails(const std::string& how) {
  if (how == "check") TORCH_CHECK(false, "three is ", 3);
  if (how == "condition") TORCH_CHECK(how.empty());
  if (how == "index") TORCH_CHECK_INDEX(false, "far out");
  if (how == "value") TORCH_CHECK_VALUE(false, "no such value");
  if (how == "type") TORCH_CHECK_TYPE(false, "no such type");
  if (how == "python") torch::ones({2}).view({3});
  if (how == "undefined") torch::Tensor().sum();
  if (how == "rank") torch::Tensor(torch::ones({2})).index({0, 0});
  if (how == "pointer") torch::ones({2}).data_ptr<double>();
  if (how == "thread") at::parallel_for(0, 8, 1, [](int64_t, int64_t) { AT_ERROR("in a part"); });
  AT_ERROR("nothing failed");
}

std::vector<double> halves(std::vector<double> values) {
  for (double& value : values) value = double(float(c10::Half(float(value))));
  return values;
}

std::vector<double> bfloats(std::vector<double> values) {
  for (double& value : values) value = double(float(c10::BFloat16(float(value))));
  return values;
}

// A sum, a product and a difference, of numbers and of variables.
template <class T>
std::vector<double> sums_of_short(double a, double b, double c) {
  const T x = a, y = b, z = c;
  T in_place = x;
  in_place += b;
  in_place *= z;
  static_assert(std::is_same_v<decltype(x + y), T> && std::is_same_v<decltype(-x), T>);
  static_assert(std::is_same_v<decltype(x * 2), T> && std::is_same_v<decltype(int64_t(2) / x), T>);
  static_assert(std::is_same_v<decltype(x - 1.f), float> && std::is_same_v<decltype(1. - x), double>);
  return {double(x + y + z), double(x * y - z), double(in_place), double(std::max(x + y, T(FLT_EPSILON)))};
}

double sum_of_parts(torch::Tensor x, int64_t grain) {
  const auto* values = x.data_ptr<double>();
  return at::parallel_reduce(
      0, x.numel(), grain, 0.0,
      [&](int64_t begin, int64_t end, double sum) {
        for (int64_t i = begin; i < end; ++i) sum += values[i];
        return sum;
      },
      [](double a, double b) { return a + b; });
}

// A gradient in C++.
class Scaled : public torch::autograd::Function<Scaled> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context,
                                                torch::Tensor x, double factor,
                                                c10::optional<torch::Tensor> nothing) {
    context->saved_data["factor"] = factor;
    context->saved_data["sizes"] = x.sizes();
    context->save_for_backward({x});
    TORCH_CHECK(!nothing && context->needs_input_grad(0));
    return {x * x * factor, x.sum()};
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto x = context->get_saved_variables()[0];
    TORCH_CHECK(context->saved_data["sizes"].toIntVector() == x.sizes());
    const double factor = context->saved_data["factor"].toDouble();
    return {gradients[0] * x * 2 * factor + gradients[1], torch::Tensor(), torch::Tensor()};
  }
};

std::vector<torch::Tensor> scaled(torch::Tensor x, double factor) {
  return Scaled::apply(x, factor, c10::optional<torch::Tensor>());
}

// What threads of OpenMP do with tensors that an operation made.
torch::Tensor filled_by_threads(torch::Tensor x) {
  auto parts = torch::zeros({2, x.size(0)}, x.options()).unbind(0);
  auto all = at::empty_like(x.contiguous());
#pragma omp parallel for num_threads(3)
  for (int64_t i = 0; i < all.size(0); ++i) {
    AT_DISPATCH_FLOATING_TYPES(all.scalar_type(), "filled_by_threads", [&] {
      all.accessor<scalar_t, 1>()[i] = parts[1].accessor<scalar_t, 1>()[i] + scalar_t(i);
    });
  }
  return all;
}

std::tuple<size_t, bool, bool> stored(torch::Tensor x) {
  const char* first = static_cast<const char*>(x.storage().data());
  const bool inside = first + x.storage_offset() * x.element_size() == x.data_ptr();
  return {x.storage().nbytes(), inside, bool(torch::Tensor().storage())};
}

bool same(torch::Tensor x, torch::Tensor y) {
  y.resize_({1, 1, 1});
  return x.is_same(y) && x.dim() == 3;
}

// Whether `x.accessor<float, 1>()` compiles for such an `x`.
template <class T, class = void>
struct HasAccessor : std::false_type {};
template <class T>
struct HasAccessor<T, std::void_t<decltype(std::declval<T>().template accessor<float, 1>())>>
    : std::true_type {};
template <class T, class = void>
struct HasPacked : std::false_type {};
template <class T>
struct HasPacked<T, std::void_t<decltype(std::declval<T>().template packed_accessor32<float, 1>())>>
    : std::true_type {};

torch::Tensor plus(const torch::Tensor& x, int64_t n) { return x + n; }

TORCH_LIBRARY(flambeau_tests, m) {
  m.def("plus(Tensor x, int n=1, *, float[] unused=[1.0, 2.0]) -> Tensor",
        [](const torch::Tensor& x, int64_t n, const std::vector<double>&) { return plus(x, n); });
  m.def("by_device(Tensor x, int n) -> Tensor");
  m.def("row_sums(Tensor x, float scale=1.0) -> Tensor",
        [](torch::Tensor x, double scale) { return row_sums(x * scale); });
  m.def("padded(Tensor x, int[2] by=1, float[3]? by_more=None) -> (int[], float[])",
        [](torch::Tensor, std::vector<int64_t> by, c10::optional<std::vector<double>> more) {
          return std::make_tuple(by, more.value_or(std::vector<double>()));
        });
  m.def("maybe(Tensor x, Tensor? y=None, str how=\"both\") -> (Tensor, Tensor?)",
        [](torch::Tensor x, c10::optional<torch::Tensor> y, const std::string& how) {
          return std::make_tuple(how == "both" ? x : x + 1, y);
        });
}
TORCH_LIBRARY_IMPL(flambeau_tests, CPU, m) { m.impl("by_device", TORCH_FN(plus)); }
TORCH_LIBRARY_IMPL(flambeau_tests, Autocast, m) {
  m.impl("by_device", [](torch::Tensor x, int64_t) { return x; });
}
TORCH_LIBRARY_FRAGMENT(flambeau_tests, m) {
  m.def("later", [](torch::TensorList list) { return list[0] - 1; });
  m.impl("by_device", torch::dispatch(c10::DispatchKey::CUDA, &plus));
}
// What a library does wrong while it is loaded, if it is asked to.
TORCH_LIBRARY_FRAGMENT(flambeau_tests, m) {
  if (std::getenv("FLAMBEAU_TESTS_REGISTER_WRONGLY")) m.def("elsewhere::op(Tensor x) -> Tensor");
}
TORCH_LIBRARY_FRAGMENT(flambeau_tests, m) { m.def("after", &plus); }
static auto registry = torch::RegisterOperators()
                           .op("flambeau_older::plus", &plus)
                           .op("flambeau_older::minus(Tensor x, int n=2) -> Tensor",
                               [](torch::Tensor x, int64_t n) { return x - n; });

void checked(const torch::Tensor& x, const torch::Tensor& y, const std::string& how) {
  at::TensorArg a{x, "x", 1}, b{y, "y", 2};
  at::CheckedFrom c = "checked";
  if (how == "type") at::checkAllSameType(c, {a, b});
  if (how == "dim") at::checkDim(c, a, 2);
  if (how == "sizes") at::checkSize(c, a, {2, 3});
  if (how == "same size") at::checkAllSameSize(c, {a, b});
  if (how == "numel") at::checkAllSameNumel(c, {a, b});
  if (how == "contiguous") at::checkAllContiguous(c, {a, b});
  if (how == "gpu") at::checkAllSameGPU(c, {a, b});
}

std::vector<torch::Tensor> parts_of(torch::Tensor x, int64_t count) {
  return {torch::full(count, -1, x.options()), at::full({2, count}, 7, torch::kInt64),
          at::slice(x, 0, 1, count, 2), at::slice(x, -1, 1), at::one_hot(x.to(torch::kInt64), 4)};
}

// From headers that PyTorch's bring with them.
using Brought = std::tuple<std::queue<int>, std::bitset<8>, std::chrono::seconds, std::ostream*,
                           decltype(std::setw(1)), std::unordered_set<int>, std::list<int>,
                           std::condition_variable, std::unique_ptr<int>, std::map<int, int>>;

static_assert(std::is_same_v<at::acc_type<float, false>, double>);
static_assert(std::is_same_v<at::acc_type<float, true>, float>);
static_assert(std::is_same_v<at::acc_type<at::Half, true>, float>);
static_assert(std::is_same_v<at::acc_type<uint8_t, true>, int64_t>);
static_assert(std::is_same_v<at::opmath_type<at::BFloat16>, float>);
static_assert(std::is_same_v<at::opmath_type<int16_t>, int16_t>);

// Matrices whose columns follow each other.
template <class T>
void product(const std::string& how, int64_t m, int64_t n, int64_t k, T alpha, torch::Tensor a,
             torch::Tensor b, T beta, torch::Tensor c) {
  THArgCheck(c.is_contiguous(), 9, "argument %d has to be contiguous, not of %d dimensions", 9,
             int(c.dim()));
  const int64_t lead_a = std::tolower(how[0]) == 'n' ? m : k, lead_b = std::tolower(how[1]) == 'n' ? k : n;
  if constexpr (std::is_same_v<T, float>)
    THFloatBlas_gemm(how[0], how[1], m, n, k, alpha, a.data<T>(), lead_a, b.data<T>(), lead_b, beta,
                     c.data<T>(), m);
  else
    THDoubleBlas_gemm(how[0], how[1], m, n, k, alpha, a.data<T>(), lead_a, b.data<T>(), lead_b,
                      beta, c.data<T>(), m);
}

// By vectors of the CPU, as many numbers as there are.
std::vector<at::Tensor> by_vectors(at::Tensor x, at::Tensor y) {
  auto products = at::empty_like(x), mapped = at::empty_like(x), ends = at::empty({3}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "by_vectors", [&] {
    using Vec = at::vec::Vectorized<scalar_t>;
    const auto *a = x.data_ptr<scalar_t>(), *b = y.data_ptr<scalar_t>();
    auto* to = products.data_ptr<scalar_t>();
    auto* end = ends.data_ptr<scalar_t>();
    const int64_t n = x.numel();
    Vec two(scalar_t(2));
    at::vec::map2([two](Vec& p, Vec& q) { return at::vec::fmadd(p, q, two) - p.abs(); }, to, a, b, n);
    at::vec::map([](Vec p) { return p.exp() / (p.exp() + Vec(1)); }, mapped.data_ptr<scalar_t>(), a, n);
    end[0] = at::vec::reduce_all<scalar_t>([](Vec& p, Vec& q) { return at::vec::maximum(p, q); }, a, n);
    end[1] = at::vec::map_reduce_all<scalar_t>([](Vec p) { return p * p; },
                                               [](Vec p, Vec q) { return p + q; }, a, n);
    Vec sum(0);
    int64_t i = 0;
    for (; i < n - n % Vec::size(); i += Vec::size()) sum += Vec::loadu(a + i) * Vec::loadu(b + i);
    end[2] = at::vec::vec_reduce_all<scalar_t>([](Vec& p, Vec& q) { return p + q; }, sum);
    for (; i < n; ++i) end[2] += a[i] * b[i];
  });
  return {products, mapped, ends};
}
static_assert(at::vec256::Vec256<float>::size() == 8, "the name before 1.10");

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("by_vectors", &by_vectors);
  m.def("flat", [](std::vector<at::Tensor> tensors) {
    return torch::utils::flatten_dense_tensors(tensors);
  });
  m.def("unflat", [](at::Tensor flat, std::vector<at::Tensor> tensors) {
    return torch::utils::unflatten_dense_tensors(flat, tensors);
  });
  m.def("product_of_floats", &product<float>);
  m.def("product_of_doubles", &product<double>);
  m.def("times_vector", [](const std::string& how, int64_t m, int64_t n, at::Tensor a, at::Tensor x,
                           int64_t step_x, at::Tensor y, int64_t step_y) {
    THFloatBlas_gemv(how[0], m, n, 2.0f, a.data<float>(), m, x.data<float>(), step_x, 0.5f,
                     y.data<float>(), step_y);
  });
  m.def("wrapped", [](int64_t dim, int64_t dims) { return at::maybe_wrap_dim(dim, dims); });
  m.def("devices", [] { return std::make_pair(torch::cuda::is_available(), torch::cuda::device_count()); });
  m.def("gate", &gate, "a gate", py::arg("x"), py::arg("y"), py::arg("alpha") = 1.0);
  m.def("gate_parts", &gate_parts);
  m.def("row_sums", &row_sums);
  m.def("squares", &squares);
  m.def("waits_for", &waits_for);
  m.def("without_lock", &without_lock, py::call_guard<py::gil_scoped_release>());
  m.def("threads_of_its_own", &threads_of_its_own);
  m.def("packed", &packed);
  m.def("by_names_of_python", [](const torch::Tensor& x, const torch::Tensor& y) {
    auto mixed = x.__xor__(y).__or__(x.__and__(y)).__lshift__(1).__rshift__(1);
    x.__iand__(y);
    return mixed;
  });
  m.def("write_parts", &write_parts);
  m.def("largest", &largest);
  m.def("sizes_of_temporaries", &sizes_of_temporaries);
  m.def("borrowed", &borrowed);
  m.def("made", &made);
  m.def("maybe", &maybe);
  m.def("recorded", &recorded);
  m.def("described", &described);
  m.def("fails", &fails);
  m.def("halves", &halves);
  m.def("sums_of_halves", &sums_of_short<at::Half>);
  m.def("sums_of_bfloats", &sums_of_short<at::BFloat16>);
  m.def("bfloats", &bfloats);
  m.def("sum_of_parts", &sum_of_parts);
  m.def("scaled", &scaled);
  m.attr("variables_have_accessors") = HasAccessor<torch::Tensor&>::value;
  m.attr("temporaries_have_accessors") = HasAccessor<torch::Tensor>::value;
  m.attr("variables_have_packed_accessors") = HasPacked<torch::Tensor&>::value;
  m.attr("temporaries_have_packed_accessors") = HasPacked<torch::Tensor>::value;
  m.def("same", &same);
  m.def("filled_by_threads", &filled_by_threads);
  m.def("stored", &stored);
  m.def("parts_of", &parts_of);
  m.def("checked", &checked);
}
