// See served.h. Costs two evaluations of the reference, or two forward passes, a sequence.
#include "harness/verify/served.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "harness/check/subject.h"
#include "harness/verify/budget.h"
#include "harness/verify/chosen_rows.h"
#include "harness/verify/outputs.h"

namespace attn {
namespace {

constexpr int64_t kSequencesCompared = 3;  // of a group: the first, the last and one between
constexpr int64_t kFirstOfPrompt = 1025;   // as the longest that the contract checks compare whole

std::vector<int64_t> chosen_sequences(int64_t count, Rng random) {
  std::vector<int64_t> chosen = {0};
  if (count > kSequencesCompared - 1) chosen.push_back(random.between(1, count - 2));
  if (count > 1) chosen.push_back(count - 1);
  return chosen;
}

// The positions of the last `answered` of `seen`.
std::vector<int64_t> rows_of(const SeenPass& seen, const WorkloadSpec& spec) {
  const int64_t answered = seen.out.dim(2), first = seen.q.dim(2) - answered;
  if (spec.cache != CacheType::float32 && first > 0) return {seen.q.dim(2) - 1};
  std::vector<int64_t> rows = chosen_rows(answered, positions_to_compare(1, spec.heads),
                                          rng(spec.input_seed(), "compared rows"));
  for (int64_t& row : rows) row += first;
  return rows;
}

class Comparison {
 public:
  Comparison(const Serving& serving, double budget_s) : serving_(serving), budget_s_(budget_s) {}

  void add(size_t group, int64_t sequence, bool in_last_call) {
    const WorkloadSpec& spec = serving_.spec();
    const SeenPass seen = serving_.seen(group, sequence, in_last_call);
    place_ = fmt::format("group {} of workload {}, sequence {}, {} call: ", group + 1,
                         to_string(spec.served), sequence + 1, in_last_call ? "last" : "first");
    const std::vector<int64_t> rows = rows_of(seen, spec);
    // A cache of fewer bits answers something else than a forward pass.
    if (seen.variant->reference && (spec.cache != CacheType::float32 || is_affordable(seen, rows)))
      return take(by_reference(seen, rows, in_last_call || seen.out.dim(2) < seen.q.dim(2)),
                  VerifiedBy::reference);
    const bool is_prompt = seen.out.dim(2) == seen.q.dim(2);
    if (!is_prompt) return take_forward(seen, rows);
    if (!seen.variant->reference) return;  // the last call is compared with a forward pass
    const SeenPass piece = first_positions(seen, std::min(kFirstOfPrompt, seen.q.dim(2)));
    take(by_reference(piece, rows_of(piece, spec), false), VerifiedBy::pieces);
  }

  const Verified& all() const { return all_; }

 private:
  bool is_affordable(const SeenPass& seen, const std::vector<int64_t>& rows) const {
    return forecast_of_reference(seen, std::ssize(rows)) <= budget_s_;
  }

  ComparedRows by_reference(const SeenPass& seen, const std::vector<int64_t>& rows,
                            bool is_cached) const {
    ReferenceInputs inputs = reference_inputs(seen, rows);
    inputs.config.max_len = std::max(inputs.config.max_len, seen.q.dim(2));
    if (is_cached) inputs.round_as_cached(serving_.spec().cache);
    return compare_outputs(seen, inputs, Dtype::float32);
  }

  void take_forward(const SeenPass& seen, const std::vector<int64_t>& rows) {
    const Tensor forward =
        output_of(*seen.attention, {seen.q, seen.k, seen.v, seen.gates}, {true, {}});
    take(compare_rows(seen.out, oracle_array(forward), rows, seen.q.dim(2) - seen.out.dim(2),
                      allowance_of(seen, Dtype::float32, seen.q.dim(2)), "the causal forward pass"),
         seen.variant->reference ? VerifiedBy::pieces : VerifiedBy::identities);
    all_.identities = {"forward"};
  }

  void take(const ComparedRows& found, VerifiedBy by) {
    if (found.fault)
      throw WrongAnswer("wrong answer at the shape that was measured: " + place_ + *found.fault);
    Verified one{.by = by, .rows = found.rows, .error = found.error, .bound = found.bound};
    if (all_.rows == 0) all_.bound = found.bound;
    add_visit(all_, one);
  }

  const Serving& serving_;
  const double budget_s_;
  std::string place_;
  Verified all_;
};

}  // namespace

Verified verify_served(const Serving& serving, double budget_s) {
  const auto start = std::chrono::steady_clock::now();
  const WorkloadSpec& spec = serving.spec();
  Comparison comparison(serving, budget_s);
  for (size_t group = 0; group < serving.groups(); ++group)
    for (const int64_t sequence : chosen_sequences(
             spec.served[group].count, rng(spec.input_seed(), "compared sequences", group)))
      for (const bool in_last_call : {false, true}) comparison.add(group, sequence, in_last_call);
  Verified all = comparison.all();
  all.shape = {spec.batch, spec.heads, spec.length, spec.head_dim};
  all.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return all;
}

}  // namespace attn
