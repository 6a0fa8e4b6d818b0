// Compares gradients with central differences of ⟨s, f⟩ along random directions. q, k, v, each gate
// and each learned weight are checked separately: a large gradient does not hide a small one. Costs
// two forward passes per direction. Gradients of queries and keys that are a declared surrogate's
// (VariantInfo::surrogate) are compared by check_reference() alone.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/check/variant_checks.h"

namespace attn {
namespace {

// Balances truncation (h²) against rounding (epsilon / h); small enough in double to cross next to
// no kink of a ReLU.
constexpr double kStep = kIsDouble ? 1e-6 : 1e-2;
// Of a second try in double where that step did cross one: the slopes on both sides then differ.
constexpr double kShorterStep = 3e-8;
// Of ‖gradient‖ + 1: in float the difference quotient itself is only good to a few 1e-3.
constexpr double kAllowedSlope = kIsDouble ? 1e-6 : 1e-2;

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); i++)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

Tensor moved(const Tensor& from, double step, const Tensor& along) {
  Tensor result(from.shape());
  for (int64_t i = 0; i < from.size(); i++)
    result[i] = static_cast<real>(from[i] + step * static_cast<double>(along[i]));
  return result;
}

// What an input did at any shape.
struct Moves {
  bool gradient = false;  // its gradient is not zero
  bool output = false;    // the output differs where it does
};

struct Probe {
  const AttentionShape& shape;
  const std::string where;
  int directions;
  Verdict& verdict;
  std::map<std::string, Moves>& moves;
  bool surrogate;  // gradients of q and k are a surrogate's, which check_reference() compares
};

// `value(x)` is the scalar at x; `gradient` what is claimed at `at`.
void compare(const Probe& probe, const std::string& name, const Tensor& at, const Tensor& gradient,
             const std::function<double(const Tensor&)>& value) {
  const double length = std::sqrt(dot(gradient, gradient)), scale = length + 1;
  Moves& moves = probe.moves[name];
  moves.gradient |= length > 0;
  if (probe.surrogate && (name == "q" || name == "k")) return;
  for (int d = 0; d < probe.directions; d++) {
    const Tensor along = Tensor::normal(at.shape(), rng(31, name, static_cast<uint64_t>(d)));
    const double claimed = dot(gradient, along);
    const double above = value(moved(at, kStep, along)), below = value(moved(at, -kStep, along));
    double numeric = (above - below) / (2 * kStep);
    const double allowed = kAllowedSlope * scale;
    moves.output |= above != below;
    if (kIsDouble && !(std::abs(numeric - claimed) <= allowed) &&
        std::abs(above + below - 2 * value(at)) / kStep > allowed)
      numeric = (value(moved(at, kShorterStep, along)) - value(moved(at, -kShorterStep, along))) /
                (2 * kShorterStep);
    probe.verdict.expect(
        std::abs(numeric - claimed) / scale, kAllowedSlope,
        "the gradient of {} gives {:.6g} along a direction where differences give {:.6g} ({})",
        name, claimed, numeric, probe.where);
  }
}

void compare_all(const Probe& probe, const Attention& attention, const Inputs& x,
                 const Mask& mask) {
  const Tensor seed = Tensor::normal(
      {probe.shape.batch, probe.shape.heads, probe.shape.q_len, probe.shape.head_dim},
      rng(31, "seed"));
  const Gradients back = gradients_of(attention, x, mask, seed);
  const auto at = [&](const Inputs& inputs) {
    return dot(output_of(attention, inputs, mask), seed);
  };
  compare(probe, "q", x.q, back.q, [&](const Tensor& q) { return at({q, x.k, x.v, x.gates}); });
  compare(probe, "k", x.k, back.k, [&](const Tensor& k) { return at({x.q, k, x.v, x.gates}); });
  compare(probe, "v", x.v, back.v, [&](const Tensor& v) { return at(x.with_values(v)); });
  for (size_t i = 0; i < x.gates.size(); i++)
    compare(probe, "gate " + attention.gates()[i].name, x.gates[i], back.gates[i],
            [&](const Tensor& gate) {
              Inputs changed = x;
              changed.gates[i] = gate;
              return at(changed);
            });
  size_t next = 0;
  for (const Weight& weight : attention.weights()) {
    if (!weight.learned) continue;
    const Tensor before = weight.value.value().clone();
    compare(probe, weight.name, before, back.weights[next++], [&](const Tensor& value) {
      weight.value.set_value(value);
      return at(x);
    });
    weight.value.set_value(before);
  }
}

// A learned weight that moves nothing is a mistake or ballast; so is a projection that nothing
// reads, or one that a layer leaves out although it is read (VariantInfo::reads). Some parameters
// leave nothing to choose, as a window of 0: of those, only that nothing unread moves.
void require_what_is_read(const Subject& subject, const std::map<std::string, Moves>& moves,
                          Verdict& verdict) {
  const VariantInfo::Reads read = subject.info.read_by(subject.params);
  for (const auto& [name, moved] : moves) {
    const bool expected = name == "q" ? read.queries : name == "k" ? read.keys : true;
    if (!moved.gradient && !subject.defaults()) continue;
    if (expected && !moved.gradient && moved.output)
      verdict.require(false, "the gradient of {} is 0 at every shape, though {} moves the output",
                      name, name);
    else
      verdict.require(moved.gradient == expected,
                      "{} {} the output at {} shape, and is declared {}", name,
                      moved.gradient ? "moves" : "does not move", moved.gradient ? "some" : "any",
                      expected ? "read" : "unread");
  }
}

}  // namespace

void check_gradients(const Subject& subject, Verdict& verdict) {
  std::map<std::string, Moves> moves;
  for (const AttentionShape& shape : subject.shapes(ShapeKind::all, 65)) {
    const auto attention = subject.build(shape);
    const Inputs x = make_inputs(*attention, shape, 31);
    const int directions = subject.full() ? 3 : 1;
    const bool surrogate = subject.info.has_surrogate(subject.params);
    compare_all({shape, text(shape), directions, verdict, moves, surrogate}, *attention, x,
                mask_of(shape));
    if (!subject.info.traits.padding || shape.kv_len < 2) continue;
    const std::vector<int64_t> lengths = {shape.kv_len / 2, shape.kv_len - 1};
    compare_all({shape, text(shape) + ", padded", directions, verdict, moves, surrogate},
                *attention, x, mask_of(shape, lengths));
  }
  require_what_is_read(subject, moves, verdict);
}

}  // namespace attn
