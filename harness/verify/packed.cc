// See packed.h. Costs a forward pass of every sequence, or a forward and backward one, and
// references of as many as the time allows.
#include "harness/verify/packed.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

#include "harness/check/parts.h"
#include "harness/check/subject.h"
#include "harness/verify/budget.h"
#include "harness/verify/chosen_rows.h"
#include "harness/verify/identities.h"
#include "harness/verify/outputs.h"
#include "harness/verify/slopes.h"

namespace attn {
namespace {

constexpr int64_t kSlopes = 3;            // sequences whose gradients the reference answers for
constexpr double kAloneGradients = 1e-3;  // of a gradient's length, as in slopes.cc
constexpr double kSlopeEvaluations = 2;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The longest, the shortest, the second longest, and so on.
std::vector<int64_t> from_both_ends(const Packing& packing) {
  std::vector<int64_t> order(static_cast<size_t>(packing.count())), ends;
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return packing.length(a) > packing.length(b); });
  for (size_t low = 0, high = order.size(); low < high;) {
    ends.push_back(order[low++]);
    if (low < high) ends.push_back(order[--high]);
  }
  return ends;
}

// The length of a - b over that of b, or over what rounding leaves of a gradient that cancels.
double distance(const Tensor& a, const Tensor& b, double length_of_seed) {
  Tensor apart = a.clone();
  for (int64_t i = 0; i < apart.size(); ++i) apart[i] -= b[i];
  return length_of(apart) / (length_of(b) + 0.01 * length_of_seed);
}

class PackedComparison {
 public:
  PackedComparison(const PackedPass& pass, const VerifyOptions& options)
      : pass_(pass), spec_(pass.spec()), options_(options) {
    all_.by = pass.spec().variant->reference ? VerifiedBy::reference : VerifiedBy::identities;
  }

  Verified compare() {
    for (const int64_t s : from_both_ends(pass_.packing())) compare_answer(s);
    if (options_.whole && spec_.mode == Mode::train) compare_gradients();
    if (by_alone_) all_.identities = {"alone"};
    if (!spec_.variant->reference) compare_identities_of(from_both_ends(pass_.packing())[0]);
    all_.shape = {spec_.batch, spec_.heads, spec_.length, spec_.head_dim};
    all_.seconds = seconds_since(start_);
    return all_;
  }

 private:
  std::string place_of(int64_t s) const {
    return fmt::format("sequence {} of {} packed ones, of {} positions: ", s, spec_.packed.size(),
                       pass_.packing().length(s));
  }
  [[noreturn]] void refuse(int64_t s, const std::string& fault) const {
    throw WrongAnswer("wrong answer at the shape that was measured: " + place_of(s) + fault);
  }

  std::vector<int64_t> rows_of(int64_t length) const {
    return chosen_rows(length, positions_to_compare(spec_.batch, spec_.heads),
                       rng(spec_.input_seed(), "compared rows"));
  }

  bool is_affordable(const SeenPass& seen, double evaluations) const {
    if (!seen.variant->reference) return false;
    const double left = options_.budget_s - seconds_since(start_);
    if (left <= 0) return false;
    return evaluations * forecast_of_reference(seen, std::ssize(rows_of(seen.q.dim(2)))) <= left;
  }

  void compare_answer(int64_t s) {
    const SeenPass seen = pass_.seen(s);
    const std::vector<int64_t> rows = rows_of(seen.q.dim(2));
    if (is_affordable(seen, 1))
      return take(s, compare_outputs(seen, reference_inputs(seen, rows), Dtype::float32));
    const Tensor alone =
        output_of(*seen.attention, {seen.q, seen.k, seen.v, seen.gates}, {seen.causal, {}});
    take(s, compare_rows(seen.out, oracle_array(alone), rows, 0,
                         allowance_of(seen, Dtype::float32, seen.q.dim(2)), "that sequence alone"));
    by_alone_ = true;
    if (all_.by == VerifiedBy::reference) all_.by = VerifiedBy::pieces;
  }

  // A sequence alone is answered by the same code: where no reference is declared, identities of
  // the longest one say more.
  void compare_identities_of(int64_t s) {
    const ComparedIdentities found = compare_identities(pass_.seen(s), Dtype::float32);
    if (found.fault) refuse(s, *found.fault);
    all_.identities.insert(all_.identities.end(), found.names.begin(), found.names.end());
  }

  void take(int64_t s, const ComparedRows& found) {
    if (found.fault) refuse(s, *found.fault);
    if (all_.rows == 0 || found.error * all_.bound >= all_.error * found.bound)
      all_.error = found.error, all_.bound = found.bound;
    all_.rows += found.rows;
  }

  void take_gradients(double error, double bound) {
    const double before = all_.gradient_bound ? *all_.gradient_error / *all_.gradient_bound : -1;
    if (error / bound < before) return;
    all_.gradient_error = error;
    all_.gradient_bound = bound;
  }

  // Those of inputs of a sequence alone; `weights` gets those of the weights added.
  void compare_inputs(int64_t s, const GradientPass& alone, std::vector<Tensor>& weights) {
    const std::vector<LeafGradient> packed = pass_.input_gradients(s), own = alone.gradients();
    const double of_seed = length_of(alone.output_gradient());
    for (size_t i = 0; i < own.size(); ++i) {
      if (i >= packed.size()) {
        weights[i - packed.size()].add(own[i].gradient);
        continue;
      }
      const double off = distance(packed[i].gradient, own[i].gradient, of_seed);
      if (!(off <= kAloneGradients))
        refuse(s, fmt::format("the gradient of {} is off by {:.1e} of its length against that "
                              "sequence alone; allowed {:.1e}",
                              own[i].name, off, kAloneGradients));
      take_gradients(off, kAloneGradients);
    }
  }

  void compare_slopes_of(int64_t s, GradientPass& alone) {
    const SeenPass seen = pass_.seen(s);
    if (!is_affordable(seen, kSlopeEvaluations)) return;
    const ReferenceInputs inputs = reference_inputs(seen, rows_of(seen.q.dim(2)));
    const ComparedRows outputs = compare_outputs(seen, inputs, Dtype::float32);
    const ComparedSlopes slopes = compare_slopes(alone, seen, inputs, outputs.tied);
    if (slopes.fault) refuse(s, *slopes.fault);
    take_gradients(slopes.error, slopes.bound);
  }

  void compare_gradients() {
    std::vector<LeafGradient> timed = pass_.weight_gradients();
    for (LeafGradient& leaf : timed) leaf.gradient = leaf.gradient.clone();
    std::vector<Tensor> sums;
    for (const LeafGradient& leaf : timed) sums.push_back(Tensor::zeros(leaf.gradient.shape()));
    double of_seeds = 0;
    int64_t asked = 0;
    for (const int64_t s : from_both_ends(pass_.packing())) {
      const auto alone = pass_.alone(s);
      compare_inputs(s, *alone, sums);
      of_seeds = std::hypot(of_seeds, length_of(alone->output_gradient()));
      if (asked++ < kSlopes) compare_slopes_of(s, *alone);
    }
    for (size_t i = 0; i < timed.size(); ++i) {
      const double off = distance(timed[i].gradient, sums[i], of_seeds);
      if (!(off <= kAloneGradients))
        throw WrongAnswer(fmt::format(
            "wrong answer at the shape that was measured: the gradient of {} is off by {:.1e} of "
            "its length against the sum of those of each packed sequence alone; allowed {:.1e}",
            timed[i].name, off, kAloneGradients));
      take_gradients(off, kAloneGradients);
    }
  }

  const PackedPass& pass_;
  const WorkloadSpec& spec_;
  const VerifyOptions options_;
  const Clock::time_point start_ = Clock::now();
  bool by_alone_ = false;
  Verified all_;
};

}  // namespace

Verified verify_packed(const PackedPass& pass, const VerifyOptions& options) {
  return PackedComparison(pass, options).compare();
}

}  // namespace attn
