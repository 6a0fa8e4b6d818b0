// See delta_rule.h. One pass over the rows each way besides the engine's.
#include "variants/chunked/delta_rule.h"

#include <cmath>

#include "core/ops/ops.h"
#include "variants/chunked/key_rows.h"
#include "variants/reference/gated.h"

namespace attn {
namespace {

// Of unit_rows() for queries and keys, and of the strengths.
void add_delta_cost(const AttentionShape& s, Cost& cost) {
  const auto rows = static_cast<double>(s.batch * s.heads * s.kv_len);
  const double numbers = rows * static_cast<double>(s.head_dim);
  cost.bytes += sizeof(real) * (4 * numbers + 2 * rows);
  cost.peak_bytes += sizeof(real) * (2 * numbers + rows);
}

// Unit rows and the strength, from gate number `gate`, of one head and position.
void set_delta(const StateRows& rows, int64_t head_dim, size_t gate, real factor, real most) {
  if (rows.q) unit_row(factor, nullptr, head_dim, rows.q);
  unit_row(1, nullptr, head_dim, rows.k);
  *rows.beta = most / (1 + std::exp(-*rows.gates[gate]));
}

double beta_max_of(const Params& params) {
  return params.values().contains("beta_max") ? params.number("beta_max") : 1;
}

}  // namespace

DeltaRule::DeltaRule(const AttentionConfig& config, Decay decay, double least_rate)
    : GatedAttention(config), decay_(decay), beta_max_(beta_max_of(config.params)) {
  if (decay != Decay::none) a_log_ = weight("A_log", decay_rates(config, least_rate));
}

double DeltaRule::tau() const { return 1 / std::sqrt(static_cast<double>(config().head_dim)); }

int64_t DeltaRule::decay_width(int64_t head_dim) const {
  if (decay_ == Decay::none) return 0;
  return decay_ == Decay::channel ? head_dim : 1;
}

Var DeltaRule::do_gated_forward(const Var& q, const Var& k, const Var& v,
                                std::span<const Var> gates, const Mask& mask) const {
  const std::vector<int64_t>& lengths = mask.kv_lengths;
  const bool decays = decay_ != Decay::none;
  Var strength = sigmoid(zero_padding(gates.back(), lengths));
  if (beta_max_ != 1) strength = scale(strength, beta_max_);
  return chunked_attention({.q = unit_rows(q, tau(), {}),
                            .k = unit_rows(k, 1, lengths),
                            .v = v,
                            .log_decay = decays ? gates[0] : Var(),
                            .rule = decays ? LogDecay::of_steps(a_log_) : LogDecay{},
                            .beta = strength},
                           {.kv_lengths = lengths});
}

Cost DeltaRule::do_cost(const AttentionShape& s) const {
  Cost cost = chunked_cost(s, decay_, WriteRule::delta);
  add_delta_cost(s, cost);
  return cost;
}

std::unique_ptr<Decoder> DeltaRule::do_decoder(const Shape& position, int64_t capacity) const {
  const int64_t dim = position[3], width = decay_width(dim);
  const auto by = static_cast<real>(tau()), most = static_cast<real>(beta_max_);
  if (width == 0)
    return state_decoder(
        position, capacity,
        {.delta = true, .gate_widths = {1}, .prepare = [dim, by, most](const StateRows& x) {
           set_delta(x, dim, 0, by, most);
         }});
  return state_decoder(position, capacity,
                       {.delta = true,
                        .gate_widths = {width, 1},
                        .prepare = [dim, width, by, most, a_log = a_log_](const StateRows& x) {
                          set_decay(x, dim, width, LogDecay::of_steps(a_log));
                          set_delta(x, dim, 1, by, most);
                        }});
}

GateInput beta_gate() { return {.name = "beta", .help = "of the strength σ(beta) of a write"}; }

ParamSpec beta_max_param() {
  return ParamSpec("beta_max", 1.0, "strength of a write at most: β = beta_max·σ(beta)", 1.0, 2.0)
      .later();
}

std::string beta_max_note() {
  return "With beta_max=2 the state can change its sign under a key, as tracking a state needs "
         "(arXiv:2411.12537, and fla's allow_neg_eigval); the paper's is 1.";
}

oracle::Array delta_reference(const ReferenceInputs& x) {
  const std::vector<int64_t>& lengths = x.mask.kv_lengths;
  const oracle::Array log_decay =
      x.gates.size() > 1 ? log_decay_reference(x, x.gates[0]) : oracle::Array();
  const double most = beta_max_of(x.params());
  const oracle::Array strength =
      oracle::of_gates(x.gates.back(), lengths,
                       [most](int64_t, double gate) { return most / (1 + std::exp(-gate)); });
  return oracle::delta_attention(oracle::unit_rows(x.q, 1e-6), oracle::unit_rows(x.k, 1e-6), x.v,
                                 log_decay, strength, 1 / std::sqrt(static_cast<double>(x.q.dim)),
                                 lengths, x.rows);
}

std::vector<std::string> delta_notes(const std::vector<std::string>& more) {
  std::vector<std::string> notes = {
      "Queries and keys are divided by √(|x|² + 1e-6), as fla does; outputs are scaled by 1/√d.",
      "The mixer alone, unless block=paper: without the paper's short convolutions and silu before "
      "it, and without the norm and the gate of the output.",
      "Where query heads share keys and values (kv_heads), each still has its own gates, and with "
      "them a state of its own."};
  notes.insert(notes.end(), more.begin(), more.end());
  return notes;
}

}  // namespace attn
