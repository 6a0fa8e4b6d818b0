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
constexpr double kPieceSeconds = 10;      // beyond the budget, for pieces of further sequences
constexpr double kAloneGradients = 1e-3;  // of a gradient's length, as in slopes.cc
constexpr double kSlopeEvaluations = 2;
constexpr int64_t kPieces = 3;  // sequences of which a first piece is compared at least

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
    const std::vector<int64_t> order = from_both_ends(pass_.packing());
    for (const int64_t s : order) compare_answer(s);
    if (pass_.ran_both()) compare_padded(order);
    if (options_.whole && spec_.mode == Mode::train) compare_gradients();
    if (by_alone_) all_.identities = {"alone"};
    if (all_.by != VerifiedBy::reference) compare_identities_of(order[0]);
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
    all_.by = std::max(all_.by,
                       compare_first_piece(s, seen) ? VerifiedBy::pieces : VerifiedBy::identities);
  }

  // A sequence alone is answered by the same code, which a reference must have been beside. Returns
  // whether it was.
  bool compare_first_piece(int64_t s, const SeenPass& seen) {
    if (!seen.variant->reference || !seen.causal) return false;
    if (pieces_++ >= kPieces && seconds_since(start_) > options_.budget_s + kPieceSeconds)
      return false;
    const SeenPass piece = first_positions(seen, std::min(kFirstPiece, seen.q.dim(2)));
    take(s,
         compare_outputs(piece, reference_inputs(piece, rows_of(piece.q.dim(2))), Dtype::float32));
    return true;
  }

  bool is_judged(const SeenPass& seen) const {
    return seen.variant->reference &&
           forecast_of_reference(seen, std::ssize(rows_of(seen.q.dim(2)))) <= kJudgingSeconds;
  }

  // Where a reference takes too long or none is declared, identities say more than the sequence
  // alone. Where one that no trait promises finds a fault, the reference decides.
  void compare_identities_of(int64_t s) {
    const SeenPass seen = pass_.seen(s);
    const ComparedIdentities found = compare_identities(seen, Dtype::float32);
    if (found.fault) refuse(s, *found.fault);
    all_.identities.insert(all_.identities.end(), found.names.begin(), found.names.end());
    if (!found.doubt) return;
    if (!is_judged(seen)) refuse(s, *found.doubt);
    take(s, compare_outputs(seen, reference_inputs(seen, rows_of(seen.q.dim(2))), Dtype::float32));
  }

  // Returns whether the padded pass answers a sequence as the packed one does. Rounding may choose
  // other keys in the two: then the reference decides.
  bool compare_padded_output(int64_t s) {
    const SeenPass packed = pass_.seen(s);
    SeenPass padded = packed;
    padded.out = pass_.padded_output(s);
    const int64_t length = packed.q.dim(2);
    std::vector<int64_t> rows(static_cast<size_t>(length));
    std::iota(rows.begin(), rows.end(), int64_t{0});
    const ComparedRows found =
        compare_rows(padded.out, oracle_array(packed.out), rows, 0,
                     allowance_of(packed, Dtype::float32, length), "the packed pass");
    const bool is_in_doubt = found.fault && is_judged(padded);
    take(s,
         is_in_doubt ? compare_outputs(padded, reference_inputs(padded, rows), Dtype::float32)
                     : found,
         "in the padded batch, ");
    return !is_in_doubt;
  }

  // The padded pass beside the packed one. Where other keys are chosen, gradients differ.
  void compare_padded(const std::vector<int64_t>& order) {
    bool is_same = true;
    double of_seeds = 0;
    for (const int64_t s : order) {
      const bool is_same_output = compare_padded_output(s);
      is_same &= is_same_output;
      if (spec_.mode != Mode::train) continue;
      const double of_seed = length_of(pass_.output_gradient(s));
      of_seeds = std::hypot(of_seeds, of_seed);
      const std::vector<Tensor> gradients = pass_.padded_input_gradients(s);
      const std::vector<LeafGradient> own = pass_.input_gradients(s);
      for (size_t i = 0; is_same_output && i < own.size(); ++i)
        take_distance(distance(gradients[i], own[i].gradient, of_seed), place_of(s) + "padded, ",
                      own[i].name, "the packed pass");
    }
    if (spec_.mode != Mode::train || !is_same) return;
    const std::vector<LeafGradient> own = pass_.weight_gradients();
    for (size_t i = 0; i < own.size(); ++i)
      take_distance(distance(pass_.padded_weight_gradients()[i], own[i].gradient, of_seeds),
                    "padded, ", own[i].name, "the packed pass");
  }

  void take(int64_t s, const ComparedRows& found, const std::string& where = "") {
    if (found.fault) refuse(s, where + *found.fault);
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

  void take_distance(double off, const std::string& place, const std::string& name,
                     const std::string& against) {
    if (!(off <= kAloneGradients))
      throw WrongAnswer(fmt::format(
          "wrong answer at the shape that was measured: {}the gradient of {} is off by {:.1e} of "
          "its length against {}; allowed {:.1e}",
          place, name, off, against, kAloneGradients));
    take_gradients(off, kAloneGradients);
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
      take_distance(distance(packed[i].gradient, own[i].gradient, of_seed), place_of(s),
                    own[i].name, "that sequence alone");
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
    for (size_t i = 0; i < timed.size(); ++i)
      take_distance(distance(timed[i].gradient, sums[i], of_seeds), "", timed[i].name,
                    "the sum of those of each packed sequence alone");
  }

  const PackedPass& pass_;
  const WorkloadSpec& spec_;
  const VerifyOptions options_;
  const Clock::time_point start_ = Clock::now();
  bool by_alone_ = false;
  int64_t pieces_ = 0;  // that were asked for
  Verified all_;
};

}  // namespace

Verified verify_packed(const PackedPass& pass, const VerifyOptions& options) {
  return PackedComparison(pass, options).compare();
}

}  // namespace attn
