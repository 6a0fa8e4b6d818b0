// retention: sums of rotated q·k, each weighted by γ^(distance), with γ_h = 1 - 2^(-5-h) for head
// h: a state of d·d numbers. Sun et al. 2023, arXiv:2307.08621, eqs. 3-7 and, of section 2.2, the
// normalisations 1/√d and of the decays' row; causal always. Time about 4·n·d² + 86·n·2·d,
// memory n·d + d².
#include <algorithm>
#include <cmath>

#include "variants/api/variant_info.h"
#include "variants/chunked/chunked.h"
#include "variants/chunked/rotation.h"
#include "variants/reference/states.h"

namespace attn::variants {
namespace {

double log_decay_of(int64_t head) {
  return std::log1p(-std::exp2(-5.0 - static_cast<double>(head)));
}

class Retention final : public Attention {
 public:
  explicit Retention(const AttentionConfig& config)
      : Attention(config), log_decay_({config.heads}), rows_(config.max_len, config) {
    for (int64_t h = 0; h < config.heads; ++h) log_decay_[h] = static_cast<real>(log_decay_of(h));
  }

 private:
  // What rows are rotated by, and queries multiplied by: 1/√(d·Σ_j γ^(i-j)) at position i.
  struct Rows {
    Rows(int64_t positions, const AttentionConfig& config)
        : table(rotation_table(positions, config.head_dim)), factors({config.heads, positions}) {
      for (int64_t h = 0; h < config.heads; ++h) {
        const double decay = std::exp(log_decay_of(h));
        double sum = 0;
        for (int64_t i = 0; i < positions; ++i) {
          sum = sum * decay + 1;
          factors[h * positions + i] =
              static_cast<real>(1 / std::sqrt(sum * static_cast<double>(config.head_dim)));
        }
      }
    }
    Tensor table, factors;
  };

  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const bool longer = q.dim(2) > rows_.table.dim(0);
    const Rows rows = longer ? Rows(q.dim(2), config()) : rows_;
    return chunked_attention({.q = rotate_rows(q, rows.table, rows.factors),
                              .k = rotate_rows(k, rows.table),
                              .v = v,
                              .log_decay = Var(log_decay_)},
                             {.kv_lengths = mask.kv_lengths});
  }

  Cost do_cost(const AttentionShape& s) const override {
    Cost cost = chunked_cost(s, Decay::head);
    const double rotated =
        sizeof(real) * 2 * static_cast<double>(s.batch * s.heads * s.kv_len * s.head_dim);
    cost.bytes += 2 * rotated, cost.peak_bytes += rotated;
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const Rows rows = capacity > rows_.table.dim(0) ? Rows(capacity, config()) : rows_;
    return state_decoder(
        position, capacity, {.prepare = [rows, log_decay = log_decay_](const StateRows& x) {
          // A step that is taken back again and again comes to the end.
          const int64_t dim = rows.table.dim(1), count = rows.table.dim(0), at = x.at % count;
          const real* const by = rows.table.data() + at * dim;
          const real factor = rows.factors[x.head * count + at];
          if (x.q) rotate_row(by, factor, dim, x.q);
          rotate_row(by, 1, dim, x.k);
          std::fill_n(x.decay, dim, std::exp(log_decay[x.head]));
        }});
  }

  Tensor log_decay_;  // [heads]
  Rows rows_;
};

oracle::Array retention_reference(const ReferenceInputs& x) {
  const auto decay = [](oracle::Index h) {
    return 1 - std::pow(2.0, -5.0 - static_cast<double>(h));
  };
  oracle::Array out = oracle::state_outputs(
      oracle::rotated_by_position(x.q), oracle::rotated_by_position(x.k), x.v,
      {.log_decay = [&](auto, auto h, auto, auto) { return std::log(decay(h)); }},
      x.mask.kv_lengths, x.rows);
  const std::vector<int64_t> rows = oracle::wanted_rows(x.rows, out.len);
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h)
      for (const int64_t i : rows) {
        double row = 0;
        for (int64_t j = 0; j <= i; ++j) row += std::pow(decay(h), static_cast<double>(i - j));
        for (int64_t c = 0; c < out.dim; ++c)
          out.at(b, h, i, c) /= std::sqrt(row * static_cast<double>(x.q.dim));
      }
  return out;
}

}  // namespace

VariantInfo retention() {
  return {
      .name = "retention",
      .family = "gated",
      .summary = "rotated q·k times a decay for each head, as a state; causal always",
      .paper = "Sun et al. 2023, arXiv:2307.08621, eqs. 3-7",
      .cost_formula =
          "4·n·d² FLOPs and about 172·n·d inside tiles of 64; memory 3·n·d, and about d² + 320·d a "
          "thread",
      .traits = {.causal = true, .linear_time = true, .decode = true},
      .params = {},
      .make = make_as<Retention>,
      .reference = retention_reference,
      .always_causal = [](const Params&) { return true; },
      .notes = {"Decays 1 - 2^(-5-h) of head h. Of the paper's layer, the norm of each head, which "
                "no factor of a row changes, and the gate are left out: weights are divided by √d "
                "and by √ of the sum of the row's decays instead."},
      .block = LayerBlock{.value_parts = 2,
                          .norm = LayerBlock::Norm::rms_of_heads,
                          .norm_is_learned = false,

                          .gate = LayerBlock::Gate::silu,
                          .notes = {"Sun et al. 2023, eq. 8: values twice as wide as keys (fla, "
                                    "layers/multiscale_retention.py; microsoft/torchscale has "
                                    "5/3), a norm of each head, without weights as in torchscale, "
                                    "a swish gate. ε is 1e-5, as fla's; torchscale has 1e-6."}}};
}

}  // namespace attn::variants
