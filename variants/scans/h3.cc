// h3: queries, keys and values around two state spaces, one that shifts and one that is diagonal:
// out = q ⊙ (SSM_diag + D)(((SSM_shift + D_k)(k)) ⊙ v). Fu et al. 2023, arXiv:2212.14052, section
// 3.1 and algorithm 1 with heads of one channel. Computed by its recurrence: time
// n·d·(2·shift + 6·states), memory n·d.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/base/counters.h"
#include "core/ops/ops.h"
#include "variants/api/variant_info.h"
#include "variants/reference/h3.h"
#include "variants/scans/scans.h"

namespace attn::variants {
namespace {

// Of the shift SSM: its taps are C, since its state holds the last rows.
struct ShiftWeights {
  Tensor taps, skip;  // [heads, count, dim], [heads, dim]
};

// The state is the last rows of k and the states of the diagonal SSM.
class H3Decoder final : public Decoder {
 public:
  H3Decoder(const Shape& position, int64_t capacity, ShiftWeights shift, const Tensor& taps)
      : Decoder(position, capacity),
        heads_of_weights_(position[1]),
        shift_(std::move(shift)),
        inner_(constant_decoder(position, capacity, taps)),
        keys_(Tensor::zeros({heads(), count(), head_dim()})),
        row_({position[0], position[1], 1, head_dim()}),
        answer_(row_.shape()) {}

 private:
  int64_t count() const { return shift_.taps.dim(1); }
  // Of one position: the rows of keys move up by one, and `row_` gets what the diagonal SSM reads.
  void put(const real* k, const real* v, int64_t step) {
    const int64_t dim = head_dim(), rows = count();
    for (int64_t head = 0; head < heads(); ++head) {
      real *const held = keys_.data() + head * rows * dim, *const to = row_.data() + head * dim;
      std::copy(held + dim, held + rows * dim, held);
      std::copy_n(k + head * step, dim, held + (rows - 1) * dim);
      const int64_t of = head % heads_of_weights_;
      filter_row(rows, dim, held + (rows - 1) * dim, rows, shift_.taps.data() + of * rows * dim,
                 shift_.skip.data() + of * dim, to);
      for (int64_t c = 0; c < dim; ++c) to[c] *= v[head * step + c];
    }
    count_flops(shift_flops());
    count_bytes(2 * static_cast<double>(held_bytes()));
  }
  // What Decoder::step_back() took back: the sums of the diagonal SSM keep it, and so do the keys.
  void go_back() const {
    while (inner_->length() > length()) inner_->step_back();
  }
  void do_extend(const Tensor& k, const Tensor& v) override {
    go_back();
    const int64_t len = v.dim(2), dim = head_dim();
    for (int64_t t = 0; t < len; ++t) {
      put(k.data() + t * dim, v.data() + t * dim, len * dim);
      inner_->extend(row_, row_);
    }
  }
  void do_step(const real* q, const real* k, const real* v, real* out) override {
    go_back();
    put(k, v, head_dim());
    inner_->step(row_, row_, row_, answer_);
    for (int64_t i = 0; i < answer_.size(); ++i) out[i] = q[i] * answer_[i];
  }
  double shift_flops() const { return 2 * static_cast<double>(keys_.size()); }
  int64_t held_bytes() const { return static_cast<int64_t>(sizeof(real)) * keys_.size(); }
  int64_t do_state_bytes() const override { return held_bytes() + inner_->state_bytes(); }
  double do_step_flops() const override {
    go_back();
    return shift_flops() + inner_->step_flops();
  }
  double do_step_bytes() const override {
    go_back();
    return 2 * static_cast<double>(held_bytes()) + inner_->step_bytes();
  }

  int64_t heads_of_weights_;
  ShiftWeights shift_;
  std::unique_ptr<Decoder> inner_;
  Tensor keys_;          // [batch · heads, count, dim], the last position last
  Tensor row_, answer_;  // [batch, heads, 1, dim]
};

class H3 final : public Attention {
 public:
  explicit H3(const AttentionConfig& config)
      : Attention(config),
        taps_(
            uniform_weight("shift_C", {config.heads, params().integer("shift"), config.head_dim})),
        key_skip_(normal_weight("shift_D", {config.heads, config.head_dim}, 1)),
        states_{.log_step = weight("log_dt", start_steps(config)),
                .log_decay = weight("log_A_real", start_poles(config, std::log(0.5), 0)),
                .frequency = weight("A_imag", start_poles(config, 0, std::numbers::pi)),
                .input_real = weight("B_real", start_poles(config, 1, 0)),
                .input_imaginary = weight("B_imag", start_poles(config, 0, 0)),
                .output_real = normal_weight("C_real", poles_shape(config), std::sqrt(0.5)),
                .output_imaginary = normal_weight("C_imag", poles_shape(config), std::sqrt(0.5))},
        skip_(normal_weight("D", {config.heads, config.head_dim}, 1)) {}

 private:
  // Those of the diagonal SSM, and one state more that holds the last row alone: D.
  Var taps() const {
    const Shape one = {1, config().heads, 1, config().head_dim};
    const Var none(Tensor::zeros(one)), skip = reshape(skip_, one);
    const Var last[] = {none, none, skip, none};
    const Var both[] = {bilinear_steps(states_), concat(last, 0)};
    return concat(both, 2);
  }

  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const Var read = multiply(shift_filter(zero_padding(k, mask.kv_lengths), taps_, key_skip_),
                              zero_padding(v, mask.kv_lengths));
    return multiply(constant_scan(read, taps(), mask.kv_lengths), q);
  }

  // Of the pass: the shifted keys times values, their scan and the output; or, in short sequences,
  // the factors of the states and their copy with D.
  Cost do_cost(const AttentionShape& s) const override {
    const int64_t states = states_.log_decay.dim(1) + 1, width = s.heads * s.head_dim;
    Cost cost = constant_cost(s, states);
    const double numbers = static_cast<double>(s.batch * s.kv_len * width),
                 held = static_cast<double>(params().integer("shift"));
    const double shifting = static_cast<double>(s.batch * width) *
                            shift_filter_flops(s.kv_len, params().integer("shift"));
    cost.flops += shifting;
    cost.backward_flops += 2 * shifting;
    cost.bytes += sizeof(real) * 8 * numbers;
    const double factors = static_cast<double>(4 * states * width);
    cost.peak_bytes =
        std::max({cost.peak_bytes + sizeof(real) * numbers, sizeof(real) * (3 * numbers + factors),
                  sizeof(real) * (numbers + 2 * factors + static_cast<double>(width))});
    cost.state_bytes += sizeof(real) * static_cast<double>(s.batch * width) * held;
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    if (position[2] > 1) return nullptr;  // each query head has states of its own
    const NoGrad no_grad;
    return std::make_unique<H3Decoder>(
        position, capacity, ShiftWeights{taps_.value(), key_skip_.value()}, taps().value());
  }

  // In ±1/√taps.
  Var uniform_weight(const std::string& name, const Shape& shape) {
    Rng stream = rng(config().seed, name);
    const Tensor start(shape);
    const double most = 1 / std::sqrt(static_cast<double>(shape[1]));
    for (real& tap : start.values()) tap = static_cast<real>(stream.uniform(-most, most));
    return weight(name, start);
  }

  Var taps_;      // [heads, shift, head_dim], the tap of distance 0 first
  Var key_skip_;  // D_k, [heads, head_dim]
  DiagonalStates states_;
  Var skip_;  // D, [heads, head_dim]
};

}  // namespace

VariantInfo h3() {
  return {
      .name = "h3",
      .family = "state space",
      .summary = "queries times a state space of values times keys that a second one has shifted",
      .paper = "Fu et al. 2023, arXiv:2212.14052, section 3.1 and algorithm 1",
      .cost_formula = "n·d·(2·shift + 6·states) FLOPs; memory n·d",
      .traits = {.causal = true, .linear_time = true, .decode = true},
      .params = {{"states", 64, "states of each channel, in conjugate pairs", 2, 1024},
                 {"shift", 64, "positions that the shift SSM holds", 1, 1024}},
      .make = make_as<H3>,
      .reference =
          [](const ReferenceInputs& x) {
            return oracle::h3(x.q, x.k, x.v, x.weights, {x.mask.kv_lengths}, x.rows);
          },
      .skip_reason = why_odd_states,
      .always_causal = [](const Params&) { return true; },
      .notes = {"Heads of one channel, as the paper's code has them by default: q, k and v meet "
                "channel by channel. Larger heads, an outer product of k and v, are left out.",
                "Weights: shift_C and shift_D of the shift SSM, whose B is the first unit vector "
                "and whose state holds the last rows of k; of one of each conjugate pair A = "
                "-exp(log_A_real) + i·A_imag, B, C, by the bilinear rule with a step exp(log_dt)."},
      .block =
          LayerBlock{
              .projection_biases = true,
              .notes = {"Fu et al. 2023; HazyResearch/H3, src/models/ssm/h3.py: projections with "
                        "biases, nothing else."}}};
}

}  // namespace attn::variants
