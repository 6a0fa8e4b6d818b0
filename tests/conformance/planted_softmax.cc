// Builds the logits, the mask, the weights and the output one after the other; see
// planted_softmax.h.
#include "tests/conformance/planted_softmax.h"

#include <cmath>
#include <utility>
#include <vector>

#include "core/ops/ops.h"

namespace attn {
namespace {

class Planted final : public Attention {
 public:
  Planted(const AttentionConfig& config, const Faults& faults) : Attention(config), f_(faults) {
    if (f_.gains) gains_ = normal_weight("gains", {config.heads, 1}, 1);
    if (f_.gains_twice) normal_weight("gains", {config.heads, 1}, 1);
    if (f_.secret) secret_ = rng(config.seed, "secret").normal();
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const Pass pass{mask, q.dim(1), q.dim(2), k.dim(2), recording({q, k, v}), kept_};
    const auto changed = [&](const PlantedChange& change, const Var& x) {
      return change ? change(x, pass) : x;
    };
    const std::shared_ptr<void> held = f_.beside ? f_.beside(pass.q_len, pass.kv_len) : nullptr;
    const Var queries = changed(f_.query, q);
    const Var keys = changed(f_.key, zero_padding(k, mask.kv_lengths));
    const Var values = changed(f_.value, zero_padding(v, mask.kv_lengths));
    const double tau = 1 / std::sqrt(static_cast<double>(q.dim(3)));
    const Var scaled = scale(queries, tau);
    const Var logits =
        changed(f_.logits, f_.scores ? f_.scores(scaled, keys) : matmul(scaled, keys, false, true));
    const Var weights = softmax(add(logits, Var(hidden(pass, logits.shape()))));
    Var out = matmul(changed(f_.weights, weights), values);
    if (f_.gains) out = with_gains(out);
    if (f_.secret) out = scale(out, secret_);
    if (f_.gains_drift) gains_.set_value(scale(Var(gains_.value()), 1.001).value());
    return changed(f_.output, out);
  }
  Var with_gains(const Var& out) const {
    std::vector<Var> rows;
    for (int64_t h = 0; h < out.dim(1); h++) {
      const int64_t gain = h % f_.gains_of;
      const Var head = slice(out, 1, h, h + 1);
      const Shape column{head.shape().size(), 1};
      rows.push_back(
          reshape(matmul(reshape(head, column), slice(gains_, 0, gain, gain + 1)), head.shape()));
    }
    return concat(rows, 1);
  }
  // 0 where the query sees the key, -inf elsewhere: [batch, heads, q_len, kv_len].
  Tensor hidden(const Pass& pass, const Shape& shape) const {
    Tensor result(shape);
    for (int64_t at = 0; at < result.size(); at++) {
      const int64_t j = at % pass.kv_len, i = at / pass.kv_len % pass.q_len,
                    h = at / pass.kv_len / pass.q_len % pass.heads,
                    b = at / pass.kv_len / pass.q_len / pass.heads;
      bool seen = j < pass.valid(b) && (!pass.mask.causal || j <= pass.position(i));
      if (f_.sees) seen = f_.sees(pass, b, h, i, j, seen);
      result[at] = seen ? real(0) : -kInfinity;
    }
    return result;
  }
  Cost do_cost(const AttentionShape& s) const override {
    const auto matrices = static_cast<double>(s.batch * s.heads);
    const auto q_len = static_cast<double>(s.q_len), kv_len = static_cast<double>(s.kv_len);
    const auto dim = static_cast<double>(s.head_dim);
    Cost cost;
    cost.flops = 4 * matrices * q_len * kv_len * dim;
    if (f_.gains) cost.flops += 2 * matrices * q_len * dim;
    cost.bytes = sizeof(real) * matrices * (2 * dim * (q_len + kv_len) + 6 * q_len * kv_len);
    cost.peak_bytes = sizeof(real) * matrices * q_len * 4 * kv_len;
    if (f_.cost) f_.cost(cost, s);
    return cost;
  }

  Faults f_;
  Var gains_;  // [heads, 1]
  double secret_ = 1;
  mutable Kept kept_;
};

}  // namespace

// out times `factor(b, h, i)`.
Var scaled_rows(const Var& out, const std::function<double(int64_t, int64_t, int64_t)>& factor) {
  Tensor factors({out.dim(0), out.dim(1), out.dim(2)});
  for (int64_t at = 0; at < factors.size(); at++)
    factors[at] = static_cast<real>(
        factor(at / out.dim(2) / out.dim(1), at / out.dim(2) % out.dim(1), at % out.dim(2)));
  return scale_rows(out, Var(factors));
}

// The value of x with another gradient.
Var with_gradient(const Var& x, std::function<double(double)> change) {
  if (!recording({x})) return x;
  return custom_op(x.value().clone(), {x}, [change](const Tensor& grad, std::span<Tensor> grads) {
    if (!grads[0].defined()) return;
    for (int64_t i = 0; i < grad.size(); i++)
      grads[0][i] += static_cast<real>(change(static_cast<double>(grad[i])));
  });
}

VariantInfo softmax_with(const std::string& name, const Faults& faults, const Traits& traits,
                         bool referenced) {
  VariantInfo info;
  info.name = name;
  info.summary = "softmax attention composed from ops";
  info.traits = traits;
  info.make = [faults](const AttentionConfig& config) {
    return std::make_unique<Planted>(config, faults);
  };
  if (referenced)
    info.reference = [](const ReferenceInputs& x) {
      oracle::Array out = oracle::softmax_attention(x.q, x.k, x.v, x.visible());
      if (x.weights.empty()) return out;
      for (size_t at = 0; at < out.x.size(); at++)
        out.x[at] *=
            x.weights[0]
                .x[at / static_cast<size_t>(out.len * out.dim) % static_cast<size_t>(out.heads)];
      return out;
    };
  return info;
}

}  // namespace attn
