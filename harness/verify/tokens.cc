// See tokens.h. Costs the last row of the reference, or a forward pass, for each of three tokens.
#include "harness/verify/tokens.h"

#include <algorithm>
#include <utility>

#include "harness/check/subject.h"
#include "harness/check/tied_rows.h"
#include "harness/verify/identities.h"
#include "variants/api/forgetting.h"

namespace attn {
namespace {

// A step after a prompt of all positions before it, of a decoder that forgets. Rounding may choose
// other positions where two are alike: then inputs within rounding give the answer.
ComparedRows compare_forgetting(const Forgetting& forgetting, const SeenPass& seen,
                                const WorkloadSpec& spec) {
  constexpr int kTries = 8;
  const int64_t last = seen.k.dim(2) - 1;
  const DecodeSteps steps = DecodeSteps::after(last, last + 1, spec.key_heads());
  const auto compared_with = [&](const ReferenceInputs& inputs) {
    return compare_rows(seen.out, forgetting.step_answers(inputs, steps), {last}, last,
                        allowance_of(seen, spec.dtype, last + 1), "the reference");
  };
  const ReferenceInputs inputs = reference_inputs(seen, {last});
  ComparedRows compared = compared_with(inputs);
  Rng random = rng(80, "tied positions");
  for (int draw = 0; compared.fault && draw < kTries; ++draw) {
    ComparedRows other = compared_with(within_rounding(inputs, random));
    if (!other.fault) compared = std::move(other);
  }
  return compared;
}

ComparedRows compare_token(const SeenPass& seen, const WorkloadSpec& spec, bool by_reference) {
  const int64_t last = seen.k.dim(2) - 1;
  if (const Forgetting* const forgetting = as_forgetting(*seen.attention))
    return compare_forgetting(*forgetting, seen, spec);
  if (by_reference) {
    ReferenceInputs inputs = reference_inputs(seen, {last});
    inputs.config.max_len = std::max(inputs.config.max_len, last + 1);
    inputs.round_as_cached(spec.cache);
    return compare_outputs(seen, inputs, spec.dtype);
  }
  const Tensor forward =
      output_of(*seen.attention, {seen.q, seen.k, seen.v, seen.gates}, {true, {}});
  return compare_rows(seen.out, oracle_array(part(forward, 2, last, last + 1)), {0}, 0,
                      allowance_of(seen, spec.dtype, last + 1), "the causal forward pass", last);
}

void take_token(const ComparedRows& one, const char* which, ComparedRows& all) {
  all.rows += one.rows;
  all.bound = one.bound;
  all.error = std::max(all.error, one.error);
  if (one.fault && !all.fault) all.fault = fmt::format("{} token: {}", which, *one.fault);
}

// What the second token was compared as. A cache has forgotten the first token; a sum holds both. A
// sum whose terms have positions holds them at one position, which no sequence has.
enum class Second { alone, after_first, neither };

Second second_of(Workload& workload, bool by_reference, ComparedRows& compared) {
  const WorkloadSpec& spec = workload.spec();
  compared = compare_token(workload.seen(SeenToken::second), spec, by_reference);
  if (!compared.fault) return Second::alone;
  ComparedRows both =
      compare_token(workload.seen(SeenToken::second_after_first), spec, by_reference);
  if (both.fault) return Second::neither;
  compared = std::move(both);
  return Second::after_first;
}

// Whether two tokens of a short sequence agree with neither, where the contract checks compare all.
bool is_neither_when_short(const WorkloadSpec& spec, bool by_reference) {
  WorkloadSpec trial = spec;
  trial.length = std::min(spec.length, kTrialLength);
  while (trial.length > 1 && why_not(trial)) --trial.length;
  if (why_not(trial)) return false;
  Workload shorter(trial);
  for (int i = 0; i < 2; ++i) shorter.run();
  ComparedRows unused;
  return second_of(shorter, by_reference, unused) == Second::neither;
}

bool same_answer(Workload& workload) {
  const Tensor first = workload.seen(SeenToken::first).out,
               second = workload.seen(SeenToken::second).out;
  return std::equal(first.data(), first.data() + first.size(), second.data());
}

}  // namespace

namespace {

// In place of a decoder that forgets, whose reference takes too long: one that holds fewer
// positions.
ComparedTokens compare_shorter_tokens(const WorkloadSpec& spec, bool all) {
  constexpr int64_t kShorter = 1024;
  WorkloadSpec shorter = spec;
  shorter.length = std::min(spec.length, kShorter);
  Workload workload(shorter);
  for (int i = 0; i < 2; ++i) workload.run();
  ComparedTokens result = compare_tokens(workload, all, true);
  result.by = VerifiedBy::pieces;
  return result;
}

}  // namespace

ComparedTokens compare_tokens(Workload& workload, bool all, bool by_reference) {
  const WorkloadSpec& spec = workload.spec();
  if (!by_reference && as_forgetting(workload.attention()))
    return compare_shorter_tokens(spec, all);
  ComparedTokens result;
  const SeenPass first = workload.seen(SeenToken::first);
  result.by = by_reference               ? VerifiedBy::reference
              : first.variant->reference ? VerifiedBy::pieces
                                         : VerifiedBy::identities;
  take_token(compare_token(first, spec, by_reference), "first", result.compared);
  if (!all) return result;
  ComparedRows second;
  const Second is = second_of(workload, by_reference, second);
  if (is == Second::neither && is_neither_when_short(workload.spec(), by_reference)) {
    if (same_answer(workload) && !result.compared.fault)
      result.compared.fault = "the second token has the answer of the first";
    return result;
  }
  take_token(second, "second", result.compared);
  if (is == Second::alone)
    take_token(compare_token(workload.seen(SeenToken::last), spec, by_reference), "last",
               result.compared);
  return result;
}

}  // namespace attn
