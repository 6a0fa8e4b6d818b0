// Gradients along one direction; see slopes.h. Costs a pass, unless all rows are compared, and two
// evaluations of the reference.
#include "harness/verify/slopes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "harness/check/parts.h"

namespace attn {
namespace {

constexpr double kAllowed = 1e-3;  // in float32, of the gradients' length, as in check/reference.cc
// Of the entries of the leaf with the least gradient; those of others move less. Central
// differences in double are good to about 1e-7 with the first step. The shorter ones are for a
// direction that crosses a kink of a relu, or a change of the chosen keys, within a step.
constexpr double kSteps[] = {3e-8, 3e-9, 3e-10};
constexpr size_t kLogits = 2;  // leaves whose gradients a surrogate declares: q and k

using ArrayOf = std::function<oracle::Array&(ReferenceInputs&)>;

// A leaf: its gradient for the compared rows along a direction of signs, and the direction where
// the reference reads the leaf.
struct Part {
  std::string name;
  double unit = 1;   // the length of the gradient, and what rounding leaves
  double slope = 0;  // gradient · direction
  ArrayOf array;
  std::vector<double> direction;
};

// Adds `sign` where number i of a leaf stands in the array of the reference.
using PutSign = std::function<void(oracle::Array& direction, int64_t i, double sign)>;

void at_same_place(oracle::Array& x, int64_t i, double sign) { x.x[static_cast<size_t>(i)] = sign; }

// Of keys or values [batch, kv_heads, len, dim], each for `group` query heads.
PutSign repeated(const Shape& shape, int64_t group) {
  const int64_t matrix = shape[2] * shape[3];
  return [=](oracle::Array& x, int64_t i, double sign) {
    const int64_t head = i / matrix, in_matrix = i % matrix;
    for (int64_t copy = 0; copy < group; ++copy)
      x.x[static_cast<size_t>((head * group + copy) * matrix + in_matrix)] = sign;
  };
}

// Of rows [batch, len, heads · dim], by heads.
PutSign by_heads(const Shape& shape, int64_t dim) {
  return [=, len = shape[1], width = shape[2]](oracle::Array& x, int64_t i, double sign) {
    const int64_t c = i % width, row = i / width;
    x.at(row / len, c / dim, row % len, c % dim) = sign;
  };
}

struct Read {
  ArrayOf array;
  PutSign place;
};

// Where the reference reads the leaf.
Read read_of(const LeafGradient& leaf, const SeenPass& seen, const WorkloadSpec& spec) {
  using Inputs = ReferenceInputs;
  const Shape& shape = leaf.value.shape();
  const ArrayOf values = [](Inputs& of) -> oracle::Array& { return of.v; };
  if (leaf.name == "q") return {[](Inputs& of) -> oracle::Array& { return of.q; }, at_same_place};
  if (leaf.name == "k")
    return {[](Inputs& of) -> oracle::Array& { return of.k; }, repeated(shape, spec.group())};
  if (leaf.name == "v") return {values, repeated(shape, spec.group())};
  if (leaf.name == "x") return {values, by_heads(shape, spec.head_dim)};
  if (leaf.name == "received")
    return {[](Inputs& of) -> oracle::Array& { return of.received; }, at_same_place};
  const std::vector<GateInput>& gates = seen.attention->gates();
  for (size_t i = 0; i < gates.size(); ++i)
    if (leaf.name == "gate " + gates[i].name)
      return {[i](Inputs& of) -> oracle::Array& { return of.gates[i]; }, at_same_place};
  const std::vector<Weight> weights = seen.attention->weights();
  for (size_t i = 0; i < weights.size(); ++i)
    if (leaf.name == weights[i].name)
      return {[i](Inputs& of) -> oracle::Array& { return of.weights[i]; }, at_same_place};
  throw_error("no input of the reference is the leaf " + leaf.name);
}

// A wrong gradient is off by about its own length. One that cancels to zero leaves rounding of the
// size of the output's gradient, which grows with the logits: they are sums of head_dim products.
double unit_of(const Tensor& gradient, double length_of_seed, int64_t head_dim) {
  return length_of(gradient) + 0.01 * (1 + static_cast<double>(head_dim) / 32) * length_of_seed;
}

Part part_of(const LeafGradient& leaf, const SeenPass& seen, const WorkloadSpec& spec,
             ReferenceInputs& inputs, double length_of_seed) {
  const Read read = read_of(leaf, seen, spec);
  oracle::Array direction = read.array(inputs);
  std::fill(direction.x.begin(), direction.x.end(), 0.0);
  Rng random = rng(spec.input_seed(), "direction of " + leaf.name);
  double slope = 0;
  for (int64_t i = 0; i < leaf.gradient.size(); ++i) {
    const double sign = random.coin() ? 1 : -1;
    slope += static_cast<double>(leaf.gradient[i]) * sign;
    read.place(direction, i, sign);
  }
  return {leaf.name, unit_of(leaf.gradient, length_of_seed, spec.head_dim), slope, read.array,
          std::move(direction.x)};
}

// The number of the output's gradient, [batch, heads, len, dim] or [batch, len, heads · dim], that
// belongs to an entry of the reference's outputs.
int64_t place_of(const Tensor& seed, const oracle::Array& out, int64_t b, int64_t h, int64_t row,
                 int64_t c) {
  if (seed.shape().rank() == 4) return ((b * out.heads + h) * out.len + row) * out.dim + c;
  return (b * out.len + row) * seed.dim(2) + h * out.dim + c;
}

class SlopesAt {
 public:
  SlopesAt(const Tensor& seed, const ReferenceInputs& inputs, std::vector<int64_t> rows)
      : seed_(seed), inputs_(inputs), rows_(std::move(rows)) {}

  // The reference's outputs · the gradient of the output, at the compared rows.
  double value(const oracle::Array& out) const {
    double sum = 0;
    for (int64_t b = 0; b < out.batch; ++b)
      for (int64_t h = 0; h < out.heads; ++h)
        for (const int64_t row : rows_)
          for (int64_t c = 0; c < out.dim; ++c)
            sum += static_cast<double>(seed_[place_of(seed_, out, b, h, row, c)]) *
                   out.at(b, h, row, c);
    return sum;
  }
  // |claimed - wanted| along the direction through all parts, each over its unit.
  double difference(const std::vector<const Part*>& parts, const Reference& reference) const {
    double claimed = 0, smallest = std::numeric_limits<double>::infinity(), unit = smallest;
    for (const Part* part : parts) {
      claimed += part->slope / part->unit;
      unit = std::min(unit, part->unit);
    }
    for (const double of_entries : kSteps) {
      const double step = of_entries * unit;
      const double wanted =
          (value(reference(moved(parts, step))) - value(reference(moved(parts, -step)))) /
          (2 * step);
      const double off = std::abs(claimed - wanted);
      if (off < smallest) smallest = off;
      if (smallest <= kAllowed) break;
    }
    return smallest;
  }

 private:
  ReferenceInputs moved(const std::vector<const Part*>& parts, double step) const {
    ReferenceInputs to = inputs_;
    to.rows = rows_;
    for (const Part* part : parts) {
      std::vector<double>& x = part->array(to).x;
      const double share = step / part->unit;
      for (size_t i = 0; i < x.size(); ++i) x[i] += share * part->direction[i];
    }
    return to;
  }

  const Tensor& seed_;
  const ReferenceInputs& inputs_;
  const std::vector<int64_t> rows_;
};

// 0 at `rows` of every head.
Tensor without_rows(const Tensor& seed, const oracle::Array& like,
                    const std::vector<int64_t>& rows) {
  Tensor rest = seed.clone();
  for (int64_t b = 0; b < like.batch; ++b)
    for (int64_t h = 0; h < like.heads; ++h)
      for (const int64_t row : rows)
        for (int64_t c = 0; c < like.dim; ++c) rest[place_of(seed, like, b, h, row, c)] = 0;
  return rest;
}

}  // namespace

ComparedSlopes compare_slopes(GradientPass& pass, const SeenPass& seen,
                              const ReferenceInputs& inputs, const std::vector<int64_t>& left_out) {
  const WorkloadSpec& spec = pass.spec();
  const VariantInfo& info = *seen.variant;
  std::vector<int64_t> rows;
  for (const int64_t row : oracle::wanted_rows(inputs.rows, inputs.q.len))
    if (std::find(left_out.begin(), left_out.end(), row) == left_out.end()) rows.push_back(row);
  const Tensor seed = pass.output_gradient();
  std::vector<LeafGradient> leaves = pass.gradients();
  for (LeafGradient& leaf : leaves) leaf.gradient = leaf.gradient.clone();
  const Tensor rest = without_rows(seed, inputs.q, rows);
  Tensor of_rows = seed.clone();
  for (int64_t i = 0; i < seed.size(); ++i) of_rows[i] -= rest[i];
  if (std::ssize(rows) < inputs.q.len) {
    pass.run_again(rest);
    const std::vector<LeafGradient> others = pass.gradients();
    for (size_t i = 0; i < leaves.size(); ++i)
      for (int64_t at = 0; at < leaves[i].gradient.size(); ++at)
        leaves[i].gradient[at] -= others[i].gradient[at];
  }
  std::vector<Part> parts;
  ReferenceInputs shapes = inputs;
  for (const LeafGradient& leaf : leaves)
    parts.push_back(part_of(leaf, seen, spec, shapes, length_of(of_rows)));

  const SlopesAt slopes(of_rows, inputs, rows);
  ComparedSlopes result{.bound = kAllowed};
  const auto compare = [&](const std::vector<const Part*>& some, const Reference& reference) {
    const double off = slopes.difference(some, reference);
    result.error = std::max(result.error, off);
    if (off <= kAllowed || result.fault) return;
    std::string names;
    for (const Part* part : some) {  // which of them?
      if (some.size() == 1 || !(slopes.difference({part}, reference) <= kAllowed))
        names += (names.empty() ? "" : ", ") + part->name;
    }
    result.fault = fmt::format(
        "the gradient of {} is off by {:.1e} of its length against the reference; allowed {:.1e}",
        names.empty() ? "all inputs together" : names, off, kAllowed);
  };
  std::vector<const Part*> logits, others;
  const bool has_surrogate = info.has_surrogate(Params(info.name, info.params, seen.params));
  for (size_t i = 0; i < parts.size(); ++i)
    (has_surrogate && i < kLogits ? logits : others).push_back(&parts[i]);
  if (!logits.empty())
    compare(logits, [&](const ReferenceInputs& x) { return info.surrogate(x, inputs); });
  compare(others, info.reference);
  return result;
}

}  // namespace attn
