// Shapes, inputs and comparisons of the checks; see subject.h. Lengths are at most about 130.
#include "harness/check/subject.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/autograd/grad_or_zeros.h"
#include "core/ops/ops.h"

namespace attn {
namespace {

// Outputs are averages of N(0, 1) values over up to 130 keys: below this size a difference is
// measured absolutely.
constexpr double kSmall = 0.1;

struct Pair {
  int64_t q_len, kv_len;
};

AttentionShape shape_of(Pair lengths, bool causal) {
  const int64_t head_dim = lengths.kv_len == 7 ? 5 : 8;  // an odd one for the tails of vector loops
  const int64_t heads = lengths.kv_len == 7 ? 3 : lengths.kv_len == 33 ? 4 : 2;
  return {.batch = 2,
          .heads = heads,
          .q_len = lengths.q_len,
          .kv_len = lengths.kv_len,
          .head_dim = head_dim,
          .causal = causal};
}

std::vector<Pair> pairs(ShapeKind lengths, bool full) {
  std::vector<Pair> result;
  if (lengths != ShapeKind::cross) {
    if (full)
      result = {{1, 1}, {2, 2}, {7, 7}, {33, 33}, {64, 64}, {65, 65}, {130, 130}};
    else
      result = {{1, 1}, {7, 7}, {65, 65}};
  }
  if (lengths != ShapeKind::self) {
    result.push_back({5, 33});
    if (full) result.insert(result.end(), {{33, 5}, {1, 65}, {65, 64}});
  }
  return result;
}

}  // namespace

bool Verdict::is_worst(double figure, double bound) {
  double ratio = std::numeric_limits<double>::infinity();
  if (figure <= bound)
    ratio = bound > 0 ? figure / bound : 0;
  else if (bound > 0 && std::isfinite(figure))
    ratio = figure / bound;
  if (!(ratio > worst_)) return false;
  worst_ = ratio;
  return true;
}

Subject::Subject(const VariantInfo& variant, std::map<std::string, ParamValue> given_params,
                 attn_check::Level check_level)
    : info(variant),
      given(std::move(given_params)),
      params(variant.name, variant.params, given),
      level(check_level) {}

bool Subject::defaults() const {
  return params.values() == Params(info.name, info.params).values();
}

std::vector<AttentionShape> Subject::shapes(ShapeKind lengths, int64_t longest) const {
  std::vector<AttentionShape> result;
  if (only) {
    if (lengths != ShapeKind::cross && can_run(*only)) result.push_back(*only);
    return result;
  }
  const auto add_runnable = [&](Pair pair) {
    for (const bool causal : {false, true})
      if (const AttentionShape shape = shape_of(pair, causal); can_run(shape))
        result.push_back(shape);
  };
  for (const Pair pair : pairs(lengths, full()))
    if (pair.kv_len <= longest) add_runnable(pair);
  // Parameters such as a large rank may rule out all of these: the shortest longer one then stands
  // for them.
  if (lengths != ShapeKind::cross)
    for (int64_t n = 257; result.empty() && n < 5000; n = 2 * n - 1) add_runnable({n, n});
  return result;
}

std::string Subject::why_no_shape() const {
  return info.why_not(shape_of({65, 65}, false), params)
      .value_or("nothing to compare at the shapes tried");
}

std::unique_ptr<Attention> Subject::build(const AttentionShape& shape, uint64_t seed) const {
  return info.build({.heads = shape.heads,
                     .head_dim = shape.head_dim,
                     .max_len = shape.kv_len,
                     .causal = shape.causal,
                     .seed = seed,
                     .params = {}},
                    given);
}

Inputs Inputs::clone() const {
  Inputs copy{q.clone(), k.clone(), v.clone()};
  for (const Tensor& gate : gates) copy.gates.push_back(gate.clone());
  return copy;
}

std::vector<Tensor> Inputs::of_keys() const {
  std::vector<Tensor> all = {k, v};
  all.insert(all.end(), gates.begin(), gates.end());
  return all;
}

std::vector<Tensor> Gradients::of_keys() const {
  std::vector<Tensor> all = {k, v};
  all.insert(all.end(), gates.begin(), gates.end());
  return all;
}

Inputs make_inputs(const Attention& attention, const AttentionShape& shape, uint64_t seed,
                   double scale) {
  const Shape query{shape.batch, shape.heads, shape.q_len, shape.head_dim};
  const Shape key = query.with(2, shape.kv_len);
  return {Tensor::normal(query, rng(seed, "check q"), scale),
          Tensor::normal(key, rng(seed, "check k"), scale),
          Tensor::normal(key, rng(seed, "check v")),
          random_gates(attention.gates(), shape.batch, shape.heads, shape.kv_len, seed, scale)};
}

void move_weights(const Attention& attention, uint64_t seed) {
  for (const Weight& weight : attention.weights()) {
    if (!weight.learned) continue;
    const Tensor moved = weight.value.value().clone();
    Rng random = rng(seed, weight.name);
    for (real& value : moved.values()) value += static_cast<real>(0.1 * random.normal());
    weight.value.set_value(moved);
  }
}

Tensor make_seed(const AttentionShape& shape, uint64_t seed) {
  return Tensor::normal({shape.batch, shape.heads, shape.q_len, shape.head_dim},
                        rng(seed, "check q"));
}

Mask mask_of(const AttentionShape& shape, std::vector<int64_t> kv_lengths) {
  return {shape.causal, std::move(kv_lengths)};
}

Tensor output_of(const Attention& attention, const Inputs& inputs, const Mask& mask) {
  const NoGrad no_grad;
  return attention
      .forward(Var(inputs.q), Var(inputs.k), Var(inputs.v), mask, leaves_of(inputs.gates))
      .value();
}

Gradients gradients_of(const Attention& attention, const Inputs& inputs, const Mask& mask,
                       const Tensor& seed) {
  const Var q(inputs.q, true), k(inputs.k, true), v(inputs.v, true);
  const std::vector<Var> gates = leaves_of(inputs.gates, true);
  for (const Weight& weight : attention.weights())
    if (weight.learned) weight.value.zero_grad();
  const Var out = attention.forward(q, k, v, mask, gates);
  const auto grad = [](const Var& var) { return grad_or_zeros(var).clone(); };
  Gradients result;
  result.output = out.value();
  if (out.requires_grad()) out.backward(seed);
  result.q = grad(q);
  result.k = grad(k);
  result.v = grad(v);
  for (const Var& gate : gates) result.gates.push_back(grad(gate));
  for (const Weight& weight : attention.weights())
    if (weight.learned) result.weights.push_back(grad(weight.value));
  return result;
}

Tensor part(const Tensor& t, int dim, int64_t begin, int64_t end) {
  const NoGrad no_grad;
  return slice(Var(t), dim, begin, end).value().clone();
}

Inputs part(const Inputs& inputs, int dim, int64_t begin, int64_t end) {
  Inputs result{part(inputs.q, dim, begin, end), part(inputs.k, dim, begin, end),
                part(inputs.v, dim, begin, end)};
  for (const Tensor& gate : inputs.gates) result.gates.push_back(part(gate, dim, begin, end));
  return result;
}

void extend(Decoder& decoder, const Inputs& x, int64_t begin, int64_t end) {
  const Inputs some = part(x, 2, begin, end);
  decoder.extend(some.k, some.v, some.q, some.gates);
}

void fill_from(const Tensor& t, int64_t begin, double scale, Rng rng, int64_t entry) {
  const int64_t matrix = t.dim(2) * t.dim(3), per_entry = t.dim(1) * matrix;
  for (int64_t i = 0; i < t.size(); i++)
    if (i % matrix >= begin * t.dim(3) && (entry < 0 || i / per_entry == entry))
      t[i] = static_cast<real>(scale * rng.normal());
}

void fill_from(const Tensor& t, int64_t begin, real value, int64_t entry) {
  const int64_t matrix = t.dim(2) * t.dim(3), per_entry = t.dim(1) * matrix;
  for (int64_t i = 0; i < t.size(); i++)
    if (i % matrix >= begin * t.dim(3) && (entry < 0 || i / per_entry == entry)) t[i] = value;
}

Gap gap(const Tensor& a, const Tensor& b) {
  ATTN_CHECK(a.shape() == b.shape(), "compared {} with {}", a.shape().str(), b.shape().str());
  const double scale = std::max(kSmall, largest(b));
  const int64_t width = a.shape().rank() > 0 ? a.dim(-1) : 1;
  const int64_t rows = a.shape().rank() > 1 ? a.dim(-2) : 1;
  Gap result;
  for (int64_t i = 0; i < a.size(); i++) {
    const double difference =
        std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) / scale;
    if (difference <= result.size) continue;
    result = {difference, i / width % rows};
    if (std::isnan(difference)) break;
  }
  return result;
}

double largest(const Tensor& t) {
  double result = 0;
  for (const real value : t.values()) {
    if (std::isnan(value)) return std::numeric_limits<double>::quiet_NaN();
    result = std::max(result, std::abs(static_cast<double>(value)));
  }
  return result;
}

oracle::Array oracle_array(const Tensor& t) {
  const int rank = t.shape().rank();
  const auto dim = [&](int from_end) { return rank >= from_end ? t.dim(-from_end) : 1; };
  oracle::Array a(dim(4), dim(3), dim(2), dim(1));
  for (int64_t i = 0; i < t.size(); i++) a.x[static_cast<size_t>(i)] = static_cast<double>(t[i]);
  return a;
}

ReferenceInputs reference_inputs_of(const Attention& attention, const Inputs& x, const Mask& mask) {
  ReferenceInputs inputs{.q = oracle_array(x.q),
                         .k = oracle_array(x.k),
                         .v = oracle_array(x.v),
                         .weights = {},
                         .gates = {},
                         .config = attention.config(),
                         .mask = mask};
  for (const Weight& weight : attention.weights())
    inputs.weights.push_back(oracle_array(weight.value.value()));
  for (const Tensor& gate : x.gates) inputs.gates.push_back(oracle_array(gate));
  return inputs;
}

double worst(std::initializer_list<double> sizes) {
  double result = 0;
  for (const double size : sizes)
    if (!(size <= result)) result = std::isnan(result) ? result : size;
  return result;
}

double gap_of_inputs(const Gradients& a, const Gradients& b) {
  double size = worst({gap(a.q, b.q).size, gap(a.k, b.k).size, gap(a.v, b.v).size});
  for (size_t i = 0; i < a.gates.size(); i++)
    size = worst({size, gap(a.gates[i], b.gates[i]).size});
  return size;
}

double largest_of_inputs(const Gradients& back) {
  double size = largest(back.q);
  for (const Tensor& gradient : back.of_keys()) size = worst({size, largest(gradient)});
  return size;
}

double weight_bytes(const Attention& attention) {
  double numbers = 0;
  for (const Weight& weight : attention.weights())
    numbers += static_cast<double>(weight.value.shape().size());
  return sizeof(real) * numbers;
}

bool is_without_edge(int64_t key) { return key % 3 == 1; }

std::shared_ptr<const Edges> some_edges(const AttentionShape& shape) {
  auto edges = std::make_shared<Edges>();
  Rng random = rng(61, "check edges");
  for (int64_t r = 0; r < shape.batch * shape.q_len; r++) {
    edges->first.push_back(std::ssize(edges->keys));
    for (int32_t j = 0; j < shape.kv_len; j++)
      if (random.below(4) == 0 && (r >= shape.q_len || !is_without_edge(j)))
        edges->keys.push_back(j);
  }
  edges->first.push_back(std::ssize(edges->keys));
  return edges;
}

double tolerance(int64_t length) {
  return (kIsDouble ? 1e-10 : 1e-5) * std::sqrt(static_cast<double>(length));
}

std::string text(const AttentionShape& shape) {
  std::string result = shape.q_len == shape.kv_len
                           ? fmt::format("length {}", shape.kv_len)
                           : fmt::format("q_len {}, kv_len {}", shape.q_len, shape.kv_len);
  return shape.causal ? result + ", causal" : result;
}

}  // namespace attn
