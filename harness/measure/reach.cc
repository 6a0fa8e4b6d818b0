// Gradients and perturbations of some positions, and medians of them by distance; see reach.h.
#include "harness/measure/reach.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/base/parallel.h"
#include "harness/model/layer_stack.h"

namespace attn {
namespace {

double norm(const real* row, int64_t width) {
  double sum = 0;
  for (int64_t c = 0; c < width; ++c) sum += static_cast<double>(row[c]) * row[c];
  return std::sqrt(sum);
}

// The mean of the middle two of an even number.
double median(std::vector<double>& values) {
  const size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half),
                   values.end());
  if (values.size() % 2) return values[half];
  return (values[half] +
          *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half))) /
         2;
}

// By distance from input to output, negative where the input comes later.
using Pairs = std::map<int64_t, std::vector<double>>;

void add(int64_t distance, double influence, Pairs& pairs) {
  ATTN_CHECK(std::isfinite(influence), "the influence at distance {} is not finite", distance);
  pairs[distance].push_back(influence);
}

Pairs gradients(const ReachProbe& probe, const std::vector<int64_t>& outputs, uint64_t seed) {
  const int64_t length = probe.input().dim(1), width = probe.input().dim(2);
  Pairs found;
  for (const int64_t i : outputs) {
    // Of unit length in the mean, so that ‖Jᵀ·direction‖² is ‖J‖²/width in the mean.
    const Tensor direction =
        Tensor::normal({width}, rng(seed, "reach direction", static_cast<uint64_t>(i)),
                       1 / std::sqrt(static_cast<double>(width)));
    const Tensor gradient = probe.gradient(i, direction);
    for (int64_t j = 0; j < length; ++j)
      add(i - j, norm(gradient.data() + j * width, width), found);
  }
  return found;
}

Pairs perturbations(const ReachProbe& probe, const std::vector<int64_t>& inputs, uint64_t seed) {
  const int64_t length = probe.input().dim(1), width = probe.input().dim(2);
  const Tensor before = probe.output(probe.input());
  Pairs found;
  for (const int64_t j : inputs) {
    Tensor other = probe.input().clone();
    const Tensor row =
        Tensor::normal({width}, rng(seed, "reach replacement", static_cast<uint64_t>(j)));
    std::copy_n(row.data(), width, other.data() + j * width);
    const Tensor after = probe.output(other);
    for (int64_t i = 0; i < length; ++i) {
      std::vector<real> change(static_cast<size_t>(width));
      for (int64_t c = 0; c < width; ++c)
        change[static_cast<size_t>(c)] = after[i * width + c] - before[i * width + c];
      add(i - j, norm(change.data(), width) / norm(before.data() + i * width, width), found);
    }
  }
  return found;
}

// Each list of values becomes one, such as its median.
template <class Value>
std::map<int64_t, double> each(Pairs pairs, Value value) {
  std::map<int64_t, double> found;
  for (auto& [distance, values] : pairs) found[distance] = value(values);
  return found;
}

// The largest distances whose influence is above `floor`.
ReachDistances reach_of(const std::map<int64_t, double>& influence, double floor) {
  ReachDistances reach;
  for (const auto& [distance, value] : influence) {
    if (!(value > floor)) continue;
    reach.past = std::max(reach.past, distance);
    reach.future = std::max(reach.future, -distance);
  }
  return reach;
}

}  // namespace

ReachProbe::ReachProbe(const WorkloadSpec& spec, int64_t layers) {
  ATTN_CHECK(layers >= 1, "a stack of {} layers; expected 1 or more", layers);
  const std::optional<std::string> reason = why_not(spec);
  ATTN_CHECK(!reason, "{}: {}", spec.variant->name, *reason);
  set_threads(spec.threads);
  const LayerConfig layer = layer_config(spec);
  stack_ = std::make_unique<LayerStack>(layer, layers, spec.seed);
  input_ = Tensor::normal({1, spec.length, layer.width}, rng(spec.seed, "reach input"));
}

ReachProbe::~ReachProbe() = default;

Tensor ReachProbe::output(const Tensor& input) const {
  const NoGrad no_grad;
  return stack_->forward(Var(input)).value();
}

Tensor ReachProbe::gradient(int64_t i, const Tensor& direction) const {
  const Var x(input_, true);
  const Var y = stack_->forward(x);
  const Tensor seed = Tensor::zeros(y.shape());
  std::copy_n(direction.data(), direction.size(), seed.data() + i * direction.size());
  y.backward(seed);
  return x.grad();
}

std::vector<int64_t> reach_distances(int64_t length) {
  std::vector<int64_t> past = {0};
  for (int64_t d = 1; d < length; d *= 2) {
    past.push_back(d);
    if (d > 1 && d + d / 2 < length) past.push_back(d + d / 2);
  }
  if (past.back() != length - 1) past.push_back(length - 1);
  std::vector<int64_t> all;
  for (auto d = past.rbegin(); d != past.rend(); ++d)
    if (*d > 0) all.push_back(-*d);
  all.insert(all.end(), past.begin(), past.end());
  return all;
}

std::vector<int64_t> reach_positions(int64_t length, uint64_t seed) {
  std::vector<int64_t> positions;
  if (length <= kReachPositions) {
    for (int64_t i = 0; i < length; ++i) positions.push_back(i);
    return positions;
  }
  Rng stream = rng(seed, "reach positions");
  constexpr int64_t kBetween = kReachPositions - 2;
  positions.push_back(0);
  for (int64_t part = 0; part < kBetween; ++part)
    positions.push_back(
        stream.between(1 + (length - 2) * part / kBetween, (length - 2) * (part + 1) / kBetween));
  positions.push_back(length - 1);
  return positions;
}

ReachFigures measure_reach(const WorkloadSpec& spec, int64_t layers) {
  const ReachProbe probe(spec, layers);
  const std::vector<int64_t> positions = reach_positions(spec.length, spec.seed);
  const Pairs pairs = gradients(probe, positions, spec.seed);
  const auto by_gradient = each(pairs, median),
             by_perturbation = each(perturbations(probe, positions, spec.seed), median),
             largest = each(pairs, [](const std::vector<double>&values) {
               return *std::max_element(values.begin(), values.end());
             });
  ReachFigures found{.positions = std::ssize(positions),
                     .gradient = reach_of(by_gradient, kReachFloor),
                     .perturbation = reach_of(by_perturbation, kReachFloor),
                     .connected = reach_of(largest, 0),
                     .by_distance = {}};
  // The first and the last position are probed, so that each distance has a pair.
  for (const int64_t distance : reach_distances(spec.length))
    found.by_distance.push_back({.distance = distance,
                                 .gradient = by_gradient.at(distance),
                                 .perturbation = by_perturbation.at(distance)});
  return found;
}

}  // namespace attn
