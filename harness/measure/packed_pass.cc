// See packed_pass.h. run() costs the passes of the sequences, run_padded() one of a batch in which
// all are as long as the longest.
#include "harness/measure/packed_pass.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/autograd/grad_or_zeros.h"
#include "core/base/counters.h"
#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "core/ops/ops_heads.h"
#include "harness/measure/sequence_alone.h"
#include "harness/measure/workload_cost.h"
#include "harness/measure/workload_inputs.h"
#include "variants/api/mixer.h"
#include "variants/api/packed_forward.h"

namespace attn {
namespace {

// One sequence as a workload of its own.
WorkloadSpec spec_of_sequence(const WorkloadSpec& spec, size_t index) {
  WorkloadSpec own = spec;
  own.batch = 1;
  own.length = spec.packed[index];
  own.packed.clear();
  own.seed = rng(spec.input_seed(), "packed sequence", index).bits();
  own.draw = 0;
  return own;
}

// Copies x [1, heads, len, width] to the first positions of entry `b` of all [batch, heads,
// longest, width].
void put_padded(const Tensor& x, int64_t b, const Tensor& all) {
  const int64_t heads = x.dim(1), rows = x.dim(2) * x.dim(3), longest = all.dim(2) * x.dim(3);
  for (int64_t head = 0; head < heads; ++head)
    std::copy_n(x.data() + head * rows, rows, all.data() + (b * heads + head) * longest);
}

// The same memory as [1, len, heads · width] of rows with one head.
Tensor rows_of_block(const Tensor& block) {
  return block.reshaped({block.dim(0), block.dim(2), block.dim(3)});
}

// Of entry `b` the first positions, [1, heads, len, width]. Reverses put_padded().
Tensor from_padded(const Tensor& all, int64_t b, int64_t length) {
  const bool is_rows = all.shape().rank() == 3;
  const int64_t heads = is_rows ? 1 : all.dim(1), width = all.dim(is_rows ? 2 : 3);
  const int64_t longest = all.dim(is_rows ? 1 : 2) * width;
  const Tensor own = Tensor::zeros({1, heads, length, width});
  for (int64_t head = 0; head < heads; ++head)
    std::copy_n(all.data() + (b * heads + head) * longest, length * width,
                own.data() + head * length * width);
  return own;
}

Tensor split_rows(const Tensor& rows, int64_t heads) {
  const NoGrad no_grad;
  return split_heads(Var(rows), heads).value();
}

}  // namespace

struct PackedPass::State {
  explicit State(const WorkloadSpec& given) : spec(given), packing(given.packed) {}

  WorkloadSpec spec;
  Packing packing;
  std::unique_ptr<Attention> attention;
  std::vector<Var> inputs;  // packed: q, k, v and gates, or the rows of a mixer
  std::vector<Var> padded;  // [batch, heads, longest, width], or [batch, longest, width]
  Tensor seed, padded_seed, answer, padded_answer;
  std::vector<ChangingRow<real>> changing, changing_padded;  // one of each sequence
  int64_t runs = 0, padded_runs = 0;
  bool ran_both = false;                        // the last two passes, of the same numbers
  std::vector<Tensor> padded_weight_gradients;  // then
  std::optional<double> counted;

  bool trains() const { return spec.mode == Mode::train; }
  bool has_padded() const { return spec.variant->traits.padding; }
  bool is_mixer() const { return as_mixer(*attention) != nullptr; }
  std::string name_of(size_t input) const {
    static const char* const kNames[] = {"q", "k", "v"};
    if (is_mixer()) return "x";
    return input < 3 ? kNames[input] : "gate " + attention->gates()[input - 3].name;
  }

  // Blocks [1, heads, len, width] of one sequence, and last the gradient of its output.
  std::vector<Tensor> drawn(size_t index) const {
    const WorkloadSpec own = spec_of_sequence(spec, index);
    std::vector<Tensor> blocks = drawn_inputs(own, is_mixer());
    for (Tensor& gate : drawn_gates(own, *attention)) blocks.push_back(std::move(gate));
    blocks.push_back(Tensor::normal(blocks[0].shape(), rng(own.input_seed(), "workload gradient")));
    if (is_mixer())
      for (Tensor& x : blocks) x = x.reshaped({1, 1, own.length, x.dim(2)});
    return blocks;
  }

  void make_inputs() {
    std::vector<Tensor> packed, of_batch;
    const int64_t longest = packing.longest();
    for (int64_t s = 0; s < packing.count(); ++s) {
      const std::vector<Tensor> blocks = drawn(static_cast<size_t>(s));
      for (size_t i = 0; i < blocks.size(); ++i) {
        const int64_t heads = blocks[i].dim(1), width = blocks[i].dim(3);
        if (s == 0) {
          packed.emplace_back(Shape{packing.positions() * heads, width});
          if (has_padded())
            of_batch.push_back(Tensor::zeros({packing.count(), heads, longest, width}));
        }
        packing.block(packed[i], s).copy_from(blocks[i]);
        if (has_padded()) put_padded(blocks[i], s, of_batch[i]);
      }
    }
    seed = std::exchange(packed.back(), Tensor());
    packed.pop_back();
    for (const Tensor& x : packed) inputs.emplace_back(x, trains());
    if (!has_padded()) return;
    padded_seed = std::exchange(of_batch.back(), Tensor());
    of_batch.pop_back();
    if (is_mixer()) padded_seed = rows_of_block(padded_seed);
    for (const Tensor& x : of_batch)
      padded.emplace_back(is_mixer() ? rows_of_block(x) : x, trains());
  }

  // Of a sequence of one position the query changes no answer of softmax, but the value does.
  void make_changing_rows() {
    for (int64_t s = 0; s < packing.count(); ++s) {
      const int64_t length = packing.length(s);
      const size_t chosen = is_mixer() || (reads_of(spec).queries && length > 1) ? 0 : 2;
      const Tensor block = packing.block(inputs[chosen].value(), s);
      const int64_t width = block.dim(3), before = s * block.dim(1) * packing.longest();
      const WorkloadSpec own = spec_of_sequence(spec, static_cast<size_t>(s));
      const auto row = [&](const Tensor& of, int64_t at) { return of.data() + at * width; };
      changing.emplace_back(row(block, length - 1), width, own);
      if (has_padded())
        changing_padded.emplace_back(row(padded[chosen].value(), before + length - 1), width, own);
    }
  }

  Var padded_forward() const {
    return forward_of(*attention, padded, {spec.causal, packing.lengths()});
  }

  void zero_gradients(const std::vector<Var>& of) const {
    for (const Var& input : of) input.zero_grad();
    for (const Weight& weight : attention->weights()) weight.value.zero_grad();
  }

  // Threads share out sequences by their FLOPs, where these are declared.
  void weigh_sequences() {
    std::vector<double> work;
    for (size_t i = 0; i < spec.packed.size(); ++i) {
      const auto cost = attention->declared_cost(spec_of_sequence(spec, i).shape());
      if (!cost || !(cost->flops > 0)) return;
      work.push_back(cost->flops);
    }
    packing = Packing(spec.packed, std::move(work));
  }

  // Of one pass by formula; nullopt: none is declared.
  std::optional<Cost> declared() const {
    Cost sum;
    for (size_t s = 0; s < spec.packed.size(); ++s) {
      const WorkloadSpec own = spec_of_sequence(spec, s);
      std::optional<Cost> one = attention->declared_cost(own.shape());
      if (!one) return std::nullopt;
      if (own.group() > 1) add_repeats(own, *one);
      sum.flops += one->flops;
      sum.backward_flops += one->backward_flops;
      sum.backward_depends_on_data |= one->backward_depends_on_data;
      sum.bytes += one->bytes;
    }
    return sum;
  }
};

PackedPass::PackedPass(const WorkloadSpec& spec) {
  ATTN_CHECK(spec.variant && !spec.packed.empty(), "a packed pass needs a variant and lengths");
  const std::optional<std::string> reason = why_not(spec);
  ATTN_CHECK(!reason, "{}: {}", spec.variant->name, *reason);
  state_ = std::make_unique<State>(spec);
  State& s = *state_;
  ATTN_CHECK(s.packing.longest() == spec.length && s.packing.count() == spec.batch,
             "{} packed sequences, the longest of {}, for a batch of {} of {}", s.packing.count(),
             s.packing.longest(), spec.batch, spec.length);
  set_threads(spec.threads);
  AttentionConfig config;
  config.heads = spec.heads;
  config.head_dim = spec.head_dim;
  config.max_len = spec.length;
  config.causal = spec.causal;
  config.seed = spec.seed;
  s.attention = spec.variant->build(std::move(config), spec.params);
  s.weigh_sequences();
  s.make_inputs();
  s.make_changing_rows();
}

PackedPass::~PackedPass() = default;

void PackedPass::run() {
  State& s = *state_;
  set_threads(s.spec.threads);
  for (ChangingRow<real>& row : s.changing) row.take(s.runs);
  ++s.runs;
  s.ran_both = false;
  s.answer = {};
  if (!s.trains()) {
    const NoGrad no_grad;
    s.answer = packed_forward(*s.attention, s.inputs, s.packing).value();
    return;
  }
  s.zero_gradients(s.inputs);
  const Var out = packed_forward(*s.attention, s.inputs, s.packing);
  s.answer = out.value();
  out.backward(s.seed);
}

bool PackedPass::has_padded() const { return state_->has_padded(); }

void PackedPass::run_padded() {
  State& s = *state_;
  ATTN_CHECK(s.has_padded(), "{} takes no padding", s.spec.variant->name);
  set_threads(s.spec.threads);
  for (ChangingRow<real>& row : s.changing_padded) row.take(s.padded_runs);
  ++s.padded_runs;
  s.ran_both = false;
  s.padded_answer = {};
  if (!s.trains()) {
    const NoGrad no_grad;
    s.padded_answer = s.padded_forward().value();
    return;
  }
  s.zero_gradients(s.padded);
  const Var out = s.padded_forward();
  s.padded_answer = out.value();
  out.backward(s.padded_seed);
}

void PackedPass::run_both() {
  State& s = *state_;
  if (!has_padded()) return run();
  s.padded_runs = s.runs;
  run_padded();
  s.padded_weight_gradients.clear();
  for (const LeafGradient& leaf : weight_gradients())
    s.padded_weight_gradients.push_back(leaf.gradient.clone());
  run();
  s.ran_both = true;
}

bool PackedPass::ran_both() const { return state_->ran_both; }

bool PackedPass::declares_cost() const { return state_->declared().has_value(); }

double PackedPass::flops() {
  State& s = *state_;
  const std::optional<Cost> cost = s.declared();
  if (cost && !(s.trains() && cost->backward_depends_on_data))
    return cost->flops + (s.trains() ? cost->backward_flops : 0);
  if (!s.counted) {
    if (s.runs == 0) run();  // what is made on first use is none of its cost
    const double before = counters().flops;
    run();
    s.counted = counters().flops - before;
  }
  return *s.counted;
}

std::optional<double> PackedPass::bytes() const {
  if (state_->trains()) return std::nullopt;
  const std::optional<Cost> cost = state_->declared();
  return cost ? std::optional(cost->bytes) : std::nullopt;
}

const Packing& PackedPass::packing() const { return state_->packing; }
const WorkloadSpec& PackedPass::spec() const { return state_->spec; }

SeenPass PackedPass::seen(int64_t sequence) const {
  const State& s = *state_;
  ATTN_CHECK(s.answer.defined(), "no packed pass has run");
  SeenPass seen{.variant = s.spec.variant,
                .params = s.spec.params,
                .attention = s.attention.get(),
                .causal = s.spec.causal};
  const auto block = [&](size_t i) { return s.packing.block(s.inputs[i].value(), sequence); };
  const Tensor out = s.packing.block(s.answer, sequence);
  if (s.is_mixer()) {
    seen.q = seen.k = seen.v = split_rows(rows_of_block(block(0)), s.spec.heads);
    seen.out = split_rows(rows_of_block(out), s.spec.heads);
    return seen;
  }
  const NoGrad no_grad;
  seen.q = block(0);
  seen.k = repeat_heads(Var(block(1)), s.spec.group()).value();
  seen.v = repeat_heads(Var(block(2)), s.spec.group()).value();
  for (size_t i = 3; i < s.inputs.size(); ++i) seen.gates.push_back(block(i));
  seen.out = out;
  return seen;
}

std::vector<LeafGradient> PackedPass::input_gradients(int64_t sequence) const {
  const State& s = *state_;
  std::vector<LeafGradient> all;
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    const Var& input = s.inputs[i];
    const Tensor value = s.packing.block(input.value(), sequence);
    const Tensor gradient = s.packing.block(grad_or_zeros(input), sequence);
    all.push_back({s.name_of(i), s.is_mixer() ? rows_of_block(value) : value,
                   s.is_mixer() ? rows_of_block(gradient) : gradient});
  }
  return all;
}

Tensor PackedPass::output_gradient(int64_t sequence) const {
  const Tensor seed = state_->packing.block(state_->seed, sequence);
  return state_->is_mixer() ? rows_of_block(seed) : seed;
}

Tensor PackedPass::padded_output(int64_t sequence) const {
  const State& s = *state_;
  const Tensor out = from_padded(s.padded_answer, sequence, s.packing.length(sequence));
  return s.is_mixer() ? split_rows(rows_of_block(out), s.spec.heads) : out;
}

std::vector<Tensor> PackedPass::padded_input_gradients(int64_t sequence) const {
  const State& s = *state_;
  std::vector<Tensor> all;
  for (const Var& input : s.padded) {
    const Tensor own = from_padded(grad_or_zeros(input), sequence, s.packing.length(sequence));
    all.push_back(s.is_mixer() ? rows_of_block(own) : own);
  }
  return all;
}

const std::vector<Tensor>& PackedPass::padded_weight_gradients() const {
  return state_->padded_weight_gradients;
}

std::vector<LeafGradient> PackedPass::weight_gradients() const {
  std::vector<LeafGradient> all;
  for (const Weight& weight : state_->attention->weights())
    if (weight.learned)
      all.push_back({weight.name, weight.value.value(), grad_or_zeros(weight.value)});
  return all;
}

std::unique_ptr<GradientPass> PackedPass::alone(int64_t sequence) const {
  const State& s = *state_;
  WorkloadSpec own = spec_of_sequence(s.spec, static_cast<size_t>(sequence));
  own.mode = Mode::train;
  std::vector<Tensor> inputs;
  std::vector<std::string> names;
  for (LeafGradient& leaf : input_gradients(sequence)) {
    inputs.push_back(std::move(leaf.value));
    names.push_back(std::move(leaf.name));
  }
  return sequence_alone(std::move(own), *s.attention, inputs, std::move(names),
                        output_gradient(sequence));
}

}  // namespace attn
