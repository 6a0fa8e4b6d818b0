// One variant at one shape: attention alone, an encoder layer, or a model of two layers. Inputs and
// weights are made once. run() costs one forward pass, one forward and backward pass with all
// gradients, or one decode step.
#include "harness/measure/workload.h"

#include <cmath>

#include "core/autograd/grad_or_zeros.h"
#include "harness/measure/workload_cost.h"
#include "harness/measure/workload_state.h"
#include "variants/api/counted_cost.h"
#include "variants/api/stack.h"

namespace attn {
namespace {

constexpr double kDenseTrain = 1 + 2;  // forward, gradient of the input, gradient of the weight

}  // namespace

Workload::Workload(const WorkloadSpec& spec) : state_(std::make_unique<WorkloadState>(spec)) {}
Workload::~Workload() = default;

void Workload::run() { state_->run(); }

Var Workload::forward() const {
  ATTN_CHECK(!state_->decoder, "mode decode has no forward pass");
  ATTN_CHECK(state_->spec.dtype == Dtype::float32, "a pass in bfloat16 is not recorded");
  return state_->forward();
}

const std::vector<Var>& Workload::inputs() const { return state_->inputs; }
const std::vector<Var>& Workload::gates() const { return state_->gates; }

bool Workload::widens() const {
  const WorkloadState& s = *state_;
  if (s.spec.dtype == Dtype::float32) return false;
  return s.decoder ? !s.decoder->keeps_bfloat16() : !s.attention->reads_bfloat16();
}

bool Workload::declares_cost() const { return state_->decoder || state_->total; }

double Workload::flops() const {
  WorkloadState& s = *state_;
  if (s.decoder) return s.decoder->step_flops();
  const bool train = s.spec.mode == Mode::train;
  if (!s.total || (train && s.total->backward_depends_on_data)) {
    if (!s.counted) s.counted = s.counted_flops();
    return *s.counted;
  }
  double dense = s.spec.scope == ScopeKind::attention ? 0 : layers_dense_flops(s.spec);
  if (s.spec.scope == ScopeKind::model) dense += ends_flops(s.spec);
  return s.total->flops + (train ? s.total->backward_flops : 0) + dense * (train ? kDenseTrain : 1);
}

std::optional<double> Workload::bytes() const {
  const WorkloadState& s = *state_;
  if (s.decoder) return s.decoder->step_bytes();
  if (s.spec.mode != Mode::forward || s.spec.scope != ScopeKind::attention) return std::nullopt;
  return s.cost ? std::optional(s.cost->bytes) : std::nullopt;
}

const Attention& Workload::attention() const {
  ATTN_CHECK(state_->attention, "a workload of scope {} has no bare attention",
             to_string(state_->spec.scope));
  return *state_->attention;
}

const std::optional<Cost>& Workload::attention_cost() const { return state_->cost; }
int64_t Workload::layers() const { return layers_of(state_->spec); }

std::optional<int64_t> Workload::state_bytes() const {
  const WorkloadState& s = *state_;
  if (s.decoder) return s.decoder->state_bytes();
  if (s.total) return std::llround(s.total->state_bytes);
  int64_t bytes = 0;
  for (int64_t i = 0; i < layers(); ++i) {
    const auto [variant, params] = layer_variant(*s.spec.variant, s.spec.params, i);
    const std::optional<double> held =
        held_state_bytes(*variant, params, s.spec.shape(), s.spec.kv_heads);
    if (!held) return std::nullopt;
    bytes += std::llround(*held);
  }
  return bytes;
}

Tensor Workload::decoded() const {
  ATTN_CHECK(state_->decoder, "mode {} decodes nothing", to_string(state_->spec.mode));
  return state_->spec.dtype == Dtype::bfloat16 ? widened(state_->rounded_out) : state_->out;
}

const WorkloadSpec& Workload::spec() const { return state_->spec; }

void Workload::forget() {
  state_->answer = {};
  state_->rounded_answer = {};
}

std::vector<SeenPass> Workload::seen() { return state_->seen(); }
SeenPass Workload::seen(SeenToken which) { return state_->seen(which); }

std::vector<LeafGradient> Workload::gradients() const {
  std::vector<LeafGradient> all;
  for (size_t i = 0; i < state_->leaves.size(); ++i) {
    const Var& leaf = state_->leaves[i];
    all.push_back({state_->leaf_names[i], leaf.value(), grad_or_zeros(leaf)});
  }
  return all;
}

const Tensor& Workload::output_gradient() const { return state_->seed; }

void Workload::run_again(const Tensor& output_gradient) {
  const Tensor own = state_->seed;
  state_->seed = output_gradient;
  state_->pass();
  state_->seed = own;
}

}  // namespace attn
