// What is compared with what; see verify.h. Costs the reference at some rows (chosen_rows.h) and,
// in mode train, two evaluations of it and a pass more.
#include "harness/verify/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "harness/check/subject.h"
#include "harness/verify/budget.h"
#include "harness/verify/chosen_rows.h"
#include "harness/verify/identities.h"
#include "harness/verify/outputs.h"
#include "harness/verify/slopes.h"
#include "harness/verify/tokens.h"
#include "variants/api/forgetting.h"
#include "variants/api/stack.h"

namespace attn {
namespace {

[[noreturn]] void refuse(const std::string& fault) {
  throw WrongAnswer("wrong answer at the shape that was measured: " + fault);
}

void take_outputs(int64_t rows, double error, double bound, VerifiedBy by, Verified& all) {
  all.rows += rows;
  all.by = std::max(all.by, by);
  if (error * std::max(all.bound, 1e-30) < all.error * bound) return;
  all.error = error;
  all.bound = bound;
}

void take_gradients(double error, double bound, Verified& all) {
  all.gradient_error = error;
  all.gradient_bound = bound;
}

std::vector<int64_t> rows_to_compare(const WorkloadSpec& spec, const SeenPass& seen) {
  return chosen_rows(seen.q.dim(2), positions_to_compare(seen.q.dim(0), seen.q.dim(1)),
                     rng(spec.input_seed(), "compared rows"));
}

// Output, and gradients by two evaluations along a direction.
constexpr double kEvaluations = 1, kWithGradients = 3;

// Seconds of one evaluation of the reference. Another process may disturb a forecast: one beyond
// `enough_s` is made again, and the least counts.
double least_forecast(const SeenPass& seen, int64_t positions, double enough_s) {
  const double first = forecast_of_reference(seen, positions);
  return first <= enough_s ? first : std::min(first, forecast_of_reference(seen, positions));
}

bool is_affordable(const SeenPass& seen, double evaluations, double budget_s) {
  if (!seen.variant->reference) return false;
  const int64_t positions = positions_to_compare(seen.q.dim(0), seen.q.dim(1));
  return evaluations * least_forecast(seen, positions, budget_s / evaluations) <= budget_s;
}

// Whether a token is compared with the reference: where a cache of fewer bits answers something
// else than a forward pass, in the time that comparing may take, or where the forward pass, which
// would stand in for the reference, takes longer.
bool has_reference_of_token(const WorkloadSpec& spec, const SeenPass& seen,
                            const VerifyOptions& options) {
  if (spec.cache != CacheType::float32) return true;
  if (!seen.variant->reference) return false;
  const double evaluations = options.whole ? 3 : 1;
  const double forecast = least_forecast(seen, 1, options.budget_s / evaluations);
  if (evaluations * forecast <= options.budget_s) return true;
  return !as_forgetting(*seen.attention) && forecast <= forecast_of_forward(seen);
}

ComparedRows outputs_by_reference(const SeenPass& seen, const ReferenceInputs& inputs, Dtype dtype,
                                  Verified& all) {
  ComparedRows outputs = compare_outputs(seen, inputs, dtype);
  if (outputs.fault) refuse(*outputs.fault);
  take_outputs(outputs.rows, outputs.error, outputs.bound, VerifiedBy::reference, all);
  if (!seen.handed.defined()) return outputs;
  const ComparedRows handed = compare_handed(seen, inputs);
  if (handed.fault) refuse(*handed.fault);
  take_outputs(handed.rows, handed.error, handed.bound, VerifiedBy::reference, all);
  return outputs;
}

void verify_by_reference(Workload& workload, const SeenPass& seen, bool gradients, Verified& all) {
  const WorkloadSpec& spec = workload.spec();
  const ReferenceInputs inputs = reference_inputs(seen, rows_to_compare(spec, seen));
  const ComparedRows outputs = outputs_by_reference(seen, inputs, spec.dtype, all);
  if (!gradients) return;
  const ComparedSlopes slopes = compare_slopes(workload, seen, inputs, outputs.tied);
  if (slopes.fault) refuse(*slopes.fault);
  take_gradients(slopes.error, slopes.bound, all);
}

// Returns whether identities were what decided. Where one that no trait promises finds a fault, the
// reference decides: what holds of short sequences, as within two blocks, need not hold of this
// one.
bool verify_by_identities(Workload& workload, const SeenPass& seen, bool gradients, Verified& all) {
  if (gradients) {  // before another pass takes the place of the timed one
    if (const auto found = compare_differences(workload)) {
      if (found->fault) refuse("identity differences: " + *found->fault);
      take_gradients(found->error, found->bound, all);
      all.identities.emplace_back("differences");
    }
  }
  const WorkloadSpec& spec = workload.spec();
  const ComparedIdentities found = compare_identities(seen, spec.dtype);
  if (found.fault) refuse(*found.fault);
  all.identities.insert(all.identities.end(), found.names.begin(), found.names.end());
  if (!found.doubt) {
    if (found.rows > 0)
      take_outputs(found.rows, found.error, found.bound, VerifiedBy::identities, all);
    return true;
  }
  if (!is_affordable(seen, kEvaluations, kJudgingSeconds)) refuse(*found.doubt);
  outputs_by_reference(
      seen,
      reference_inputs(seen,
                       a_row_of_each_tile(seen.q.dim(2), rng(spec.input_seed(), "rows of tiles"))),
      spec.dtype, all);
  return false;
}

// The first positions of a causal pass beside the reference of these alone; true where there are
// such. The rest is compared by identities, among them the decoder's answer to the last position.
bool verify_first_piece(const WorkloadSpec& spec, const SeenPass& seen, Verified& all) {
  if (!seen.variant->reference || !seen.causal) return false;
  const int64_t count = std::min(kFirstPiece, seen.q.dim(2));
  const SeenPass piece = first_positions(seen, count);
  outputs_by_reference(piece, reference_inputs(piece, rows_to_compare(spec, piece)), spec.dtype,
                       all);
  return true;
}

// Each layer received, bit for bit, what the one before of its variant handed on.
void verify_receipts(const std::vector<SeenPass>& passes) {
  for (size_t i = 0; i < passes.size(); ++i) {
    const Tensor& received = passes[i].received;
    if (!received.defined() || passes.size() == 1) continue;
    const SeenPass* before = nullptr;
    for (size_t j = 0; j < i; ++j)
      if (passes[j].variant == passes[i].variant && passes[j].params == passes[i].params)
        before = &passes[j];
    if (!before || !before->handed.defined() || before->handed.shape() != received.shape() ||
        !std::equal(received.data(), received.data() + received.size(), before->handed.data()))
      refuse(fmt::format("layer {} received something else than the layer before handed on", i));
  }
}

// Passes of the last run; gradients where the workload is an attention alone.
void verify_passes(Workload& workload, const VerifyOptions& options, Verified& all) {
  const WorkloadSpec spec = workload.spec();
  const bool gradients =
      options.whole && spec.mode == Mode::train && spec.scope == ScopeKind::attention;
  const std::vector<SeenPass> passes = workload.seen();
  verify_receipts(passes);
  for (const SeenPass& seen : passes) {
    if (is_affordable(seen, gradients ? kWithGradients : kEvaluations, options.budget_s)) {
      verify_by_reference(workload, seen, gradients, all);
      continue;
    }
    const bool has_piece = verify_first_piece(spec, seen, all);
    if (seen.received.defined() && !has_piece) {  // neither pieces nor identities stand in for it
      verify_by_reference(workload, seen, gradients, all);
      continue;
    }
    if (verify_by_identities(workload, seen, gradients, all) && has_piece)
      all.by = VerifiedBy::pieces;
  }
}

// What stands in a layer or a model, each once: its gradients at the shape that it has there. A
// variant that differs from layer to layer is taken of each, and one whose layers hand something on
// as the first and as one that receives.
void verify_attentions(const WorkloadSpec& spec, const VerifyOptions& options, Verified& all) {
  std::vector<std::pair<LayerVariant, bool>> done;
  for (int64_t i = 0; i < (spec.scope == ScopeKind::model ? spec.layers : 1); ++i) {
    const LayerVariant layer = layer_variant(*spec.variant, spec.params, i);
    const std::pair one(layer, receives_at(*spec.variant, spec.params, i));
    const bool is_done = std::find(done.begin(), done.end(), one) != done.end();
    if (is_done && !layer.variant->follows_layer) continue;
    done.push_back(one);
    WorkloadSpec alone = spec;
    alone.layer = i;
    alone.receives = one.second;
    alone.variant = layer.variant.get();
    alone.params = layer.params;
    alone.scope = ScopeKind::attention;
    if (alone.variant->traits.mixer) alone.kv_heads = 0;
    Workload workload(alone);
    workload.run();
    verify_passes(workload, options, all);
  }
}

}  // namespace

Verified verify(Workload& workload, const VerifyOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const WorkloadSpec spec = workload.spec();
  Verified all;
  all.shape = {spec.batch, spec.heads, spec.length, spec.head_dim};
  if (spec.mode == Mode::decode) {
    const bool by_reference =
        has_reference_of_token(spec, workload.seen(SeenToken::first), options);
    const ComparedTokens tokens = compare_tokens(workload, options.whole, by_reference);
    if (tokens.compared.fault) refuse(*tokens.compared.fault);
    take_outputs(tokens.compared.rows, tokens.compared.error, tokens.compared.bound, tokens.by,
                 all);
    if (tokens.by != VerifiedBy::reference) all.identities = {"forward"};
  } else {
    verify_passes(workload, options, all);
    if (options.whole && spec.mode == Mode::train && spec.scope != ScopeKind::attention)
      verify_attentions(spec, options, all);
  }
  all.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return all;
}

}  // namespace attn
