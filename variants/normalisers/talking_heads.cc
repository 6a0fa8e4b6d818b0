// talking_heads: logits are mixed over heads before the softmax, and weights after it, by two
// learned matrices. Shazeer et al. 2020, arXiv:2003.02436, section 4. Time 4·n²·d FLOPs a head and
// 4·n²·heads² more; memory n·d, and strips of some queries of all heads: no n² numbers.
#include <array>
#include <cmath>
#include <vector>

#include "core/base/recycled.h"
#include "core/ops/ops.h"
#include "variants/api/variant_info.h"
#include "variants/normalisers/normalisers.h"
#include "variants/reference/attention.h"

namespace attn::variants {
namespace {

Tensor identity(int64_t heads) {
  const Tensor result = Tensor::zeros({1, heads, heads});
  for (int64_t h = 0; h < heads; ++h) result[h * heads + h] = 1;
  return result;
}

class TalkingHeads final : public Attention {
 public:
  explicit TalkingHeads(const AttentionConfig& config)
      : Attention(config),
        logits_(weight("logits", identity(config.heads))),
        weights_(weight("weights", identity(config.heads))) {}

 private:
  Var mixing() const {
    const std::array both = {logits_, weights_};
    return concat(both, 0);  // [2, heads, heads]
  }
  static RowRule rule(const Var& matrices) {
    return std::allocate_shared<HeadMixing>(Recycled<HeadMixing>(), matrices.value());
  }
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const Var matrices = mixing();
    return strip_attention(q, k, v, mask, rule(matrices), matrices);
  }
  Cost do_cost(const AttentionShape& shape) const override {
    const int64_t heads = config().heads;
    Cost cost = strip_cost(shape, HeadMixing(Tensor::zeros({2, heads, heads})));
    const double matrices = 2 * sizeof(real) * static_cast<double>(heads * heads);
    cost.bytes += 2 * matrices, cost.peak_bytes += matrices;
    return cost;
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const NoGrad no_grad;
    return strip_decoder(position, capacity, rule(mixing()));
  }

  Var logits_, weights_;  // [1, heads, heads]: from, to
};

oracle::Array talking_heads_reference(const ReferenceInputs& x) {
  const int64_t heads = x.q.heads;
  const double root = std::sqrt(static_cast<double>(x.q.dim));
  const oracle::Visibility seen = x.visible();
  const auto entry = [&](size_t which, int64_t from, int64_t to) {
    return x.weights[which].at(0, 0, from, to);
  };
  const std::vector<int64_t> rows = oracle::wanted_rows(x.rows, x.q.len);
  oracle::Array out(x.q.batch, heads, x.q.len, x.v.dim);
  for (int64_t b = 0; b < x.q.batch; ++b)
    for (const int64_t i : rows) {
      std::vector<int64_t> keys;
      for (int64_t j = 0; j < x.k.len; ++j)
        if (oracle::sees(seen, b, i, j, x.q.len, x.k.len)) keys.push_back(j);
      oracle::Array logits(1, 1, heads, std::ssize(keys));  // of each head
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t at = 0; at < logits.dim; ++at)
          logits.at(0, 0, h, at) =
              oracle::dot(x.q.row(b, h, i), x.k.row(b, h, keys[static_cast<size_t>(at)])) / root;
      for (int64_t g = 0; g < heads; ++g) {
        std::vector<double> mixed(keys.size());
        double top = -INFINITY, total = 0;
        for (int64_t h = 0; h < heads; ++h)
          oracle::add_times(entry(0, h, g), logits.line(0, 0, h), mixed.data(), logits.dim);
        for (const double z : mixed) top = std::fmax(top, z);
        for (double& z : mixed) total += z = std::exp(z - top);
        for (size_t at = 0; at < keys.size(); ++at)  // of weights of g in every head
          for (int64_t h = 0; h < heads; ++h)
            oracle::add_times(entry(1, g, h) * mixed[at] / total, x.v.line(b, h, keys[at]),
                              out.line(b, h, i), out.dim);
      }
    }
  return out;
}

}  // namespace

VariantInfo talking_heads() {
  return {
      .name = "talking_heads",
      .family = "normaliser",
      .summary = "softmax attention whose logits and weights are mixed over heads",
      .paper = "Shazeer et al. 2020, arXiv:2003.02436, section 4",
      .cost_formula =
          "4·n²·(d + heads) FLOPs a head, causal half; memory 2·n·d, and for each "
          "thread a strip of 1 MiB or 6·n logits of each head",
      .traits =
          {.causal = true, .cross = true, .permutable = true, .decode = true, .rowwise = true},
      .params = {},
      .make = make_as<TalkingHeads>,
      .reference = talking_heads_reference,
      .limit = [](const AttentionShape&) -> std::optional<VariantInfo::Limit> {
        return VariantInfo::Limit{.prepare = [](const Attention& attention) {
          for (const Weight& w : attention.weights()) w.value.set_value(identity(w.value.dim(1)));
        }};
      },
      .notes = {"logits and weights [1, heads, heads]: entry (h, g) is what head g gets of head h. "
                "Both start as the identity, so that training starts at full attention; the "
                "paper starts them as other projections, at random.",
                "The numbers of heads of keys, of logits and of values are the same here."}};
}

}  // namespace attn::variants
