// recurrent: the states of an LSTM or GRU that reads one position after the other. Hochreiter and
// Schmidhuber 1997, Neural Computation 9(8), with the forget gate of Gers et al. 2000 (12(10)); Cho
// et al. 2014, arXiv:1406.1078, eqs. 5-8, with the reset gate after the product as in cuDNN. Time
// 16·n·d² (GRU 12), memory n·d; the products with the input are made for all positions at once.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/ops/ops.h"
#include "variants/api/mixer.h"
#include "variants/api/variant_info.h"
#include "variants/recurrent/recurrent.h"
#include "variants/reference/mixers.h"

namespace attn::variants {
namespace {

class Recurrent final : public Mixer {
 public:
  explicit Recurrent(const AttentionConfig& config)
      : Mixer(config),
        cell_(params().text("cell") == "lstm" ? RecurrentCell::lstm : RecurrentCell::gru),
        both_(params().text("directions") == "both"),
        dim_(both_ ? width() / 2 : width()),
        forward_(draw("")),
        backward_(both_ ? draw("reverse_") : RecurrentWeights{}) {}

 private:
  // Matrices of the variance of uniform numbers in ±1/√dim, biases of zeros but for 1 at the LSTM's
  // forget gate (Jozefowicz et al. 2015, PMLR 37, section 3.2).
  RecurrentWeights draw(const std::string& role) {
    const int64_t gates = gates_of(cell_) * dim_;
    const double deviation = 1 / std::sqrt(3 * static_cast<double>(dim_));
    const Tensor bias = Tensor::zeros({gates});
    if (cell_ == RecurrentCell::lstm) std::fill_n(bias.data() + dim_, dim_, real(1));
    RecurrentWeights drawn{normal_weight(role + "input", {width(), gates}, deviation),
                           weight(role + "bias", bias),
                           normal_weight(role + "state", {dim_, gates}, deviation),
                           {}};
    if (cell_ == RecurrentCell::gru)
      drawn.candidate_bias = weight(role + "candidate_bias", Tensor::zeros({dim_}));
    return drawn;
  }

  Var run(const Var& x, const RecurrentWeights& weights, bool reverse, const Mask& mask) const {
    return recurrence(linear(x, weights.input, weights.bias), weights,
                      {cell_, reverse, mask.kv_lengths});
  }
  Var do_mix(const Var& x, const Mask& mask) const override {
    const Var valid = zero_padding(x, mask.kv_lengths);  // which must not reach W's gradient
    if (!both_) return run(valid, forward_, false, mask);
    return concat(std::array{run(valid, forward_, false, mask), run(valid, backward_, true, mask)},
                  2);
  }

  Cost do_cost(const AttentionShape& s) const override {
    Cost cost = recurrence_cost(cell_, s.batch, s.kv_len, width(), dim_);
    if (!both_) return cost;
    const double states = sizeof(real) * static_cast<double>(s.batch * s.kv_len * dim_);
    cost.flops *= 2;
    cost.bytes = 2 * cost.bytes + 4 * states;  // each direction's, and side by side
    cost.peak_bytes += states;                 // the first direction's beside the second
    cost.state_bytes = 0;
    return cost;
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return recurrent_decoder(position, capacity, cell_, forward_);
  }

  RecurrentCell cell_;
  bool both_;
  int64_t dim_;  // of a direction's state
  RecurrentWeights forward_, backward_;
};

oracle::Array recurrent_reference(const ReferenceInputs& x) {
  const auto cell =
      x.params().text("cell") == "lstm" ? oracle::CellKind::lstm : oracle::CellKind::gru;
  const oracle::Array rows = oracle::merged(x.v);
  const bool both = x.params().text("directions") == "both";
  const auto middle = x.weights.begin() + std::ssize(x.weights) / (both ? 2 : 1);
  const auto run = [&](auto first, auto last, bool reverse) {
    return oracle::recurrent(rows, {first, last}, cell, reverse, {x.mask.kv_lengths});
  };
  const oracle::Array ahead = run(x.weights.begin(), middle, false);
  if (!both) return oracle::split(ahead, x.v.heads);
  return oracle::split(oracle::beside(ahead, run(middle, x.weights.end(), true)), x.v.heads);
}

std::optional<std::string> why_not(const AttentionShape& shape, const Params& params) {
  if (params.text("directions") == "one") return std::nullopt;
  if (shape.causal) return "the second direction reads the future first";
  if (shape.heads * shape.head_dim % 2 == 0) return std::nullopt;
  return "an odd width has no half for each direction";
}

}  // namespace

VariantInfo recurrent() {
  return {.name = "recurrent",
          .family = "recurrent",
          .summary = "the states of an LSTM or GRU, without queries and keys",
          .paper =
              "Hochreiter and Schmidhuber 1997 with Gers et al. 2000; Cho et al. 2014, "
              "arXiv:1406.1078, eqs. 5-8, reset gate after the product",
          .cost_formula =
              "16·n·d² FLOPs (GRU 12, both directions 12 and 9) for a width of d = "
              "heads · head_dim; memory n·d",
          .traits = {.causal = true, .linear_time = true, .decode = true, .mixer = true},
          .params = {{"cell", {"lstm", "gru"}, "what is carried from position to position"},
                     {"directions",
                      {"one", "both"},
                      "both: a second one from the end, each with half of the width"}},
          .make = make_as<Recurrent>,
          .reference = recurrent_reference,
          .skip_reason = why_not,
          .no_decoder = [](const Params& params) -> std::optional<std::string> {
            if (params.text("directions") == "one") return std::nullopt;
            return "the second direction reads the future first";
          },
          .notes = {"Weights [in, gates·dim] for x·W: gates i, f, g, o of an LSTM, r, z, n of a "
                    "GRU, whose candidate_bias stands inside the reset gate."}};
}

}  // namespace attn::variants
