// Projections, passes over rows and the mixer between them; see block.h. Costs the products
// of the projections beside the mixer, and a pass over rows for each convolution, norm and gate.
#include "variants/block/block.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/base/check.h"
#include "core/ops/ops.h"
#include "core/ops/ops_block.h"
#include "core/ops/ops_gated_norm.h"
#include "core/ops/ops_heads.h"
#include "variants/block/paper_parts.h"

namespace attn {
namespace {

constexpr double kSmall = 0.01 / std::numbers::sqrt3;  // deviation of numbers uniform in ±0.01

// Of first steps that the papers' codes start at 0, where what is before them has no gradient.
constexpr double kTiny = 1e-3;

bool is_in(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// [batch, ..] to [batch · times, ..]: each sequence so many times in a row.
Var repeated(const Var& x, int64_t times) {
  if (times == 1) return x;
  const Shape s = x.shape();
  return reshape(repeat_heads(reshape(x, {1, s[0], s[1] * s[2], s[3]}), times),
                 {s[0] * times, s[1], s[2], s[3]});
}

// Rows [batch, len, heads · parts · dim] to [batch · parts, heads, len, dim].
Var to_parts(const Var& rows, int64_t heads, int64_t parts) {
  if (parts == 1) return split_heads(rows, heads);
  const int64_t batch = rows.dim(0), len = rows.dim(1), wide = rows.dim(2);
  const Var apart = split_heads(reshape(rows, {batch * len, heads, wide / heads}), parts);
  return reshape(split_heads(reshape(apart, {batch, len, wide}), parts * heads),
                 {batch * parts, heads, len, wide / heads / parts});
}

// x + share ⊙ (before - x)
Var shifted(const Var& x, const Var& before, const Var& share) {
  return add(x, multiply(subtract(before, x), share));
}

Tensor descending(int64_t count, double power) {
  const Tensor start({count});
  for (int64_t i = 0; i < count; ++i)
    start[i] =
        static_cast<real>(1 - std::pow(static_cast<double>(i) / static_cast<double>(count), power));
  return start;
}

}  // namespace

PaperBlock::PaperBlock(const VariantInfo& base, const AttentionConfig& config)
    : CarryingMixer(config),
      block_(base.block.value()),
      heads_(config.heads * block_.expansion),
      inner_width_(heads_ * config.head_dim * block_.value_parts) {
  AttentionConfig inner = config;
  inner.heads = heads_;
  inner.params = {};
  inner.receives = false;
  inner.seed = rng(config.seed, "mixer").bits();
  const Params own = mixer_params(base, config.params);
  if (!block_.key_dim.empty()) key_dim_ = inner.key_dim = own.integer(block_.key_dim);
  inner_ = base.build(std::move(inner), own.values());
  inner_mixer_ = as_mixer(*inner_);
  reads_ = base.read_by(inner_->config().params);
  check_names();
  ATTN_CHECK(!inner_mixer_ || block_.value_parts == 1,
             "{}: value_parts must be 1 around a mixer, which reads rows", base.name);
  ATTN_CHECK(block_.projects_values || (block_.expansion == 1 && block_.value_parts == 1),
             "{}: expansion and value_parts must be 1 where values are not projected", base.name);
  ATTN_CHECK(!block_.token_shift || !block_.gates_of_values,
             "{}: token_shift and gates_of_values cannot go together", base.name);
  ATTN_CHECK(!block_.bonus || (!inner_mixer_ && block_.value_parts == 1),
             "{}: a bonus is of queries, keys and values of one width", base.name);
  ATTN_CHECK(block_.gate != LayerBlock::Gate::linear
                 ? !block_.bonus || block_.gate == LayerBlock::Gate::none
                 : !block_.gate_before_norm,
             "{}: a linear gate is the last, and the one that a bonus goes with", base.name);
  ATTN_CHECK(block_.gate != LayerBlock::Gate::gelu || !block_.gate_before_norm,
             "{}: a gate through gelu is the last", base.name);
  ATTN_CHECK(block_.projects_output || (!block_.glu && !block_.projection_biases),
             "{}: the output has biases or a gate of a projection that it does not pass",
             base.name);
  ATTN_CHECK(!block_.gate_sigmoid_inside || block_.gate_rank != 0,
             "{}: gate_sigmoid_inside needs a gate of two steps", base.name);
  ATTN_CHECK(!block_.value_residual || block_.projects_values,
             "{}: a value residual is of projected values", base.name);
  if (block_.token_shift) shift_stream_ = stream(width(), 2);
  if (block_.shift_rank > 0) shift_share_ = weight("shift.mix", descending(width(), 1));
  const LayerBlock::Convolution& by = block_.convolution;
  const int64_t key_heads = block_.one_key_head ? 1 : heads_;
  if (reads_.queries) make_side("q", key_heads, by.queries, block_.silu_queries, q_);
  if (reads_.keys) make_side("k", key_heads, by.keys, block_.silu_keys, k_);
  if (block_.projects_values)
    make_side("v", heads_ * block_.value_parts, by.values, block_.silu_values, v_);
  if (block_.value_residual && config.receives) make_value_residual();
  const std::vector<GateInput> ranks =
      base.gates_of(config.heads, config.head_dim, inner_->config().params);
  for (size_t i = 0; i < inner_->gates().size(); ++i) make_gate(inner_->gates()[i], ranks[i].rank);
  if (block_.skip != LayerBlock::Skip::none) {
    const Shape size = {block_.skip == LayerBlock::Skip::head ? heads_ : inner_width_};
    skip_ = block_.skip_is_drawn ? normal_weight("D", size, 1) : weight("D", Tensor::full(size, 1));
  }
  if (block_.bonus)
    bonus_ = weight("bonus", Tensor::full({inner_width_}, static_cast<real>(block_.bonus.value())));
  make_output_gate();
  if (block_.norm != LayerBlock::Norm::none && block_.norm_is_learned) {
    const bool of_heads = block_.norm == LayerBlock::Norm::rms_of_heads && !block_.norms_each_head;
    norm_gain_ =
        weight("norm.gain", Tensor::full({of_heads ? inner_width_ / heads_ : inner_width_}, 1));
    if (block_.norm == LayerBlock::Norm::layer || block_.norm == LayerBlock::Norm::layer_of_heads)
      norm_shift_ = weight("norm.shift", Tensor::zeros({inner_width_}));
  }
  const int64_t out = block_.glu ? 2 * width() : width();
  if (block_.projects_output) out_ = glorot_weight("W_o", {inner_width_, out});
  if (block_.glu || block_.projection_biases) out_bias_ = weight("W_o.bias", Tensor::zeros({out}));
  adopt_weights("mixer.", *inner_);
}

// max(32, times·√width), rounded to a multiple of 32; a half to even, as Python's round().
int64_t PaperBlock::rank_of(double times) const {
  const double rank = times * std::sqrt(static_cast<double>(width()));
  return std::max<int64_t>(32, 32 * static_cast<int64_t>(std::nearbyint(rank / 32)));
}

int64_t PaperBlock::gate_rank() const {
  if (block_.gate_rank >= 0) return block_.gate_rank;
  return block_.gate_rank == -1 ? config().head_dim : rank_of(5);
}

void PaperBlock::make_value_residual() {
  const int64_t rank = rank_of(1.7);
  first_down_ = normal_weight("first.down", {width(), rank}, kTiny);
  first_up_ = normal_weight("first.up", {rank, inner_width_}, kSmall);
  const Tensor start({inner_width_});
  for (int64_t c = 0; c < inner_width_; ++c)
    start[c] =
        static_cast<real>(0.93 - 0.4 * static_cast<double>(c) /
                                     static_cast<double>(std::max<int64_t>(1, inner_width_ - 1)));
  first_bias_ = weight("first.bias", start);
}

void PaperBlock::make_output_gate() {
  if (block_.gate == LayerBlock::Gate::none) return;
  if (block_.token_shift) gate_mix_ = make_shift("gate");
  const int64_t rank = gate_rank();
  if (rank > 0) gate_down_ = glorot_weight("gate.down", {width(), rank});
  gate_up_ =
      glorot_weight(rank > 0 ? "gate.up" : "gate", {rank > 0 ? rank : width(), inner_width_});
  if (block_.gate_bias) gate_bias_ = weight("gate.bias", Tensor::zeros({inner_width_}));
}

// A name that no gate has would be passed over, here and in the reference.
void PaperBlock::check_names() const {
  for (const auto* const list :
       {&block_.convolution.gates, &block_.shared_gates, &block_.tanh_gates, &block_.biased_gates})
    for (const std::string& name : *list)
      ATTN_CHECK(std::any_of(inner_->gates().begin(), inner_->gates().end(),
                             [&](const GateInput& gate) { return gate.name == name; }),
                 "the block names a gate '{}', which the mixer does not read", name);
}

int64_t PaperBlock::stream(int64_t channels, int64_t taps) {
  streams_.push_back({channels, taps - 1});
  return std::ssize(streams_) - 1;
}

// Of numbers uniform in ±1/√kernel, with which the papers' codes start.
double PaperBlock::taps_deviation() const {
  return 1 / std::sqrt(3 * static_cast<double>(block_.convolution.kernel));
}

Var PaperBlock::make_taps(const std::string& name, int64_t channels, int64_t& of_stream) {
  const int64_t taps = block_.convolution.kernel;
  of_stream = stream(channels, taps);
  return normal_weight(name + ".convolution", {taps, channels}, taps_deviation());
}

PaperBlock::Shift PaperBlock::make_shift(const std::string& name) {
  const auto given = block_.shift_powers.find(name);
  const double power = given == block_.shift_powers.end() ? 1 : given->second;
  Shift made{.share = weight(name + ".mix", descending(width(), power))};
  if (const int64_t rank = block_.shift_rank; rank > 0) {
    made.down = normal_weight(name + ".mix.down", {width(), rank}, kTiny);
    made.up = normal_weight(name + ".mix.up", {rank, width()}, kSmall);
  }
  return made;
}

// x + share ⊙ (before - x), where a part of the share may depend on x.
Var PaperBlock::shifted(const Var& x, const Var& before, const Shift& by) const {
  if (!by.share.defined()) return x;
  if (!by.down.defined()) return mix_rows(x, before, by.share, {});
  const Var from = mix_rows(x, before, shift_share_, {});
  return mix_rows(x, before, by.share, linear(tanh(linear(from, by.down, {})), by.up, {}));
}

void PaperBlock::make_side(const std::string& name, int64_t heads, bool convolved, bool silu,
                           Side& side) {
  const int64_t dim = name != "v" && key_dim_ > 0 ? key_dim_ : config().head_dim, out = heads * dim;
  side.heads = heads;
  side.dim = dim;
  side.silu = silu;
  if (block_.token_shift) side.mix = make_shift(name);
  // Numbers half as large as those of a row, as where a mixer makes its narrow keys itself.
  side.weight = name != "v" && key_dim_ > 0
                    ? normal_weight("W_" + name, {width(), out},
                                    0.5 / std::sqrt(static_cast<double>(width())))
                    : glorot_weight("W_" + name, {width(), out});
  if (block_.projection_biases) side.bias = weight("W_" + name + ".bias", Tensor::zeros({out}));
  if (convolved && block_.convolution.kernel > 0) {
    side.taps = make_taps(name, out, side.stream);
    if (block_.convolution.bias)
      side.taps_bias = normal_weight(name + ".convolution.bias", {out}, taps_deviation());
  }
  if (block_.key_value_shift && name != "q") {
    side.shift = glorot_weight(name + ".shift", {width(), heads});
    side.shift_stream = stream(out, 2);
  }
  if (block_.query_key_norm && name != "v")
    side.gain = weight(name + ".gain", Tensor::full({out}, 1));
}

void PaperBlock::make_gate(const GateInput& gate, int64_t rank) {
  Gate made;
  made.shared = is_in(block_.shared_gates, gate.name);
  made.tanh = is_in(block_.tanh_gates, gate.name);
  const int64_t in = block_.gates_of_values ? inner_width_ : width(),
                out = (made.shared ? 1 : heads_) * gate.width;
  if (block_.token_shift) made.mix = make_shift("gate." + gate.name);
  const std::string name = "gate." + gate.name;
  if (made.tanh) {
    ATTN_CHECK(rank > 0, "gate {} has no step for tanh", gate.name);
    made.down = normal_weight(name + ".down", {in, rank}, kTiny);
  } else if (rank > 0) {
    made.down = glorot_weight(name + ".down", {in, rank});
  }
  made.up = made.tanh ? normal_weight(name + ".up", {rank, out}, kSmall)
                      : glorot_weight(rank > 0 ? name + ".up" : name, {rank > 0 ? rank : in, out});
  if (is_in(block_.biased_gates, gate.name))
    made.bias = weight(name + ".bias", Tensor::zeros({out}));
  else if (!gate.bias.empty())
    made.bias = weight(name + ".bias", Tensor::of({out}, gate.bias));
  if (is_in(block_.convolution.gates, gate.name)) made.taps = make_taps(name, out, made.stream);
  gates_.push_back(std::move(made));
}

// The projection of one side of its shifted rows, [batch, len, heads · head_dim].
Var PaperBlock::projected(const Var& from, const Side& side, const Convolve& convolve) const {
  Var rows = linear(from, side.weight, side.bias);
  if (side.taps.defined())
    rows = convolve(rows, {side.stream, side.taps, side.taps_bias, side.silu});
  else if (side.silu)
    rows = silu(rows);
  if (side.shift.defined()) {
    const Var last = convolve(rows, {side.shift_stream, previous_taps(rows.dim(2)), {}, false});
    const Shape apart = {rows.dim(0), rows.dim(1), side.heads, side.dim};
    const Var share =
        reshape(sigmoid(linear(from, side.shift, {})), {rows.dim(0), rows.dim(1), side.heads, 1});
    rows = reshape(attn::shifted(reshape(rows, apart), reshape(last, apart), share), rows.shape());
  }
  return rows;
}

// Queries or keys [batch · parts, inner heads, len, head_dim].
Var PaperBlock::key_heads(const Var& from, const Side& of, const Convolve& convolve) const {
  Var rows = projected(from, of, convolve);
  if (of.gain.defined())
    rows = gated_norm(rows, {.norm = GatedNorm::Norm::rms, .segment = of.dim, .gain = of.gain});
  Var heads = split_heads(rows, of.heads);
  if (of.dim < config().head_dim) {
    const Var wide[] = {
        heads,
        Var(Tensor::zeros({heads.dim(0), heads.dim(1), heads.dim(2), config().head_dim - of.dim}))};
    heads = concat(wide, 3);
  }
  if (of.heads < heads_) heads = repeat_heads(heads, heads_ / of.heads);
  return repeated(heads, block_.value_parts);
}

// Values beside those of the first layer; `from` is what they are projected from.
Var PaperBlock::mixed_values(const Var& values, const Var& from, const Var& first) const {
  const Var share = linear(linear(from, first_down_, {}), first_up_, first_bias_);
  return attn::shifted(values, first, sigmoid(share));
}

PaperBlock::Inputs PaperBlock::inputs(const Var& x, const Var& received,
                                      const Convolve& convolve) const {
  const int64_t parts = block_.value_parts;
  Inputs all;
  all.rows = x;
  if (shift_stream_ >= 0)
    all.before = convolve(x, {shift_stream_, previous_taps(width()), {}, false});
  const auto shifted_for = [&](const Side& side) { return shifted(x, all.before, side.mix); };
  all.values = x;
  if (block_.projects_values) {
    const Var from = shifted_for(v_);
    all.values = projected(from, v_, convolve);
    if (block_.value_residual) all.handed = received.defined() ? received : all.values;
    if (received.defined()) all.values = mixed_values(all.values, from, received);
  }
  if (!inner_mixer_) {
    all.v = to_parts(all.values, heads_, parts);
    all.q = reads_.queries ? key_heads(shifted_for(q_), q_, convolve) : all.v;
    all.k = reads_.keys ? key_heads(shifted_for(k_), k_, convolve) : all.v;
  }
  const Var& from = block_.gates_of_values ? all.values : x;
  for (const Gate& gate : gates_) {
    Var rows = shifted(from, all.before, gate.mix);
    if (gate.down.defined()) rows = linear(rows, gate.down, {});
    if (gate.tanh) rows = tanh(rows);
    rows = linear(rows, gate.up, gate.bias);
    if (gate.taps.defined()) rows = convolve(rows, {gate.stream, gate.taps, {}, true});
    const Var heads =
        gate.shared ? repeat_heads(split_heads(rows, 1), heads_) : split_heads(rows, heads_);
    all.gates.push_back(repeated(heads, parts));
  }
  return all;
}

CarryingMixer::Passed PaperBlock::do_pass(const Var& x, const Var& received,
                                          const Mask& mask) const {
  const Var from = zero_padding(x, mask.kv_lengths);
  const Var first = received.defined() ? zero_padding(received, mask.kv_lengths) : received;
  const Inputs in = inputs(from, first, [](const Var& rows, const Convolved& by) {
    return short_convolution(rows, by.taps, by.bias, by.activated);
  });
  if (inner_mixer_) return {output(inner_mixer_->mix(in.values, mask), in), in.handed};
  Mask all = mask;
  all.kv_lengths.clear();
  for (const int64_t length : mask.kv_lengths)
    all.kv_lengths.insert(all.kv_lengths.end(), static_cast<size_t>(block_.value_parts), length);
  return {output(inner_->forward(in.q, in.k, in.v, all, in.gates), in), in.handed};
}

std::unique_ptr<Decoder> PaperBlock::do_decoder(const Shape& position, int64_t capacity) const {
  return paper_decoder(*this, position, capacity);
}

double PaperBlock::dense_flops() const {
  double numbers = 0;
  const auto count = [&](std::initializer_list<Var> matrices) {
    for (const Var& matrix : matrices)
      if (matrix.defined()) numbers += static_cast<double>(matrix.value().size());
  };
  for (const Side* const side : {&q_, &k_, &v_})
    count({side->weight, side->shift, side->mix.down, side->mix.up});
  for (const Gate& gate : gates_) count({gate.down, gate.up, gate.mix.down, gate.mix.up});
  count({first_down_, first_up_});
  count({gate_down_, gate_up_, gate_mix_.down, gate_mix_.up, out_});
  return 2 * numbers;
}

}  // namespace attn
