// late_fault: softmax attention that is right up to `from` positions and wrong beyond, in one way.
// Contract checks end before; what compares the answer that was measured must refuse each. Also the
// source of a plug-in (tests/python/program/test_plugin.py).
#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "variants/api/variant_info.h"
#include "variants/softmax/softmax.h"

namespace attn::variants {
namespace {

constexpr int64_t kIndices = 1024;  // that an index of too few bits tells apart
constexpr int64_t kTile = 64;

// `x` times what `factor` says of each number.
Var edited(const Var& x, const std::function<real(int64_t head, int64_t row, int64_t c)>& factor) {
  const Tensor factors(x.shape());
  const int64_t rows = x.dim(2), dim = x.dim(3);
  for (int64_t i = 0; i < factors.size(); ++i)
    factors[i] = factor(i / dim / rows % x.dim(1), i / dim % rows, i % dim);
  return multiply(x, Var(factors));
}

Var with_half_the_gradient(const Var& x) {
  return custom_op(x.value().clone(), {x}, [](const Tensor& grad, std::span<Tensor> grads) {
    for (int64_t i = 0; grads[0].defined() && i < grad.size(); ++i) grads[0][i] += grad[i] / 2;
  });
}

// Row j of the result is row j % kIndices.
Var wrapped(const Var& x) {
  std::vector<Var> pieces;
  for (int64_t at = 0; at < x.dim(2); at += kIndices)
    pieces.push_back(slice(x, 2, 0, std::min(kIndices, x.dim(2) - at)));
  return concat(pieces, 2);
}

// Answers as softmax attention does, and halves the answer from position `from` on.
class LateDecoder final : public Decoder {
 public:
  LateDecoder(const Shape& position, int64_t capacity, int64_t from)
      : Decoder(position, capacity),
        inner_(softmax_decoder(position, capacity)),
        batch_(position[0]),
        from_(from) {}

 private:
  void do_extend(const Tensor& k, const Tensor& v) override { inner_->extend(k, v); }
  void do_step(const real* q, const real* k, const real* v, real* out) override {
    while (inner_->length() > length()) inner_->step_back();
    const auto over = [&](const real* x, int64_t rows) {
      static const auto owner = std::make_shared<const int>();
      return Tensor::over({batch_, rows / batch_, 1, head_dim()}, const_cast<real*>(x), owner);
    };
    const Tensor answer = over(out, heads() * group());
    inner_->step(over(q, heads() * group()), over(k, heads()), over(v, heads()), answer);
    if (length() < from_) return;
    for (real& value : answer.values()) value /= 2;
  }
  int64_t do_state_bytes() const override { return inner_->state_bytes(); }
  double do_step_flops() const override { return inner_->step_flops(); }
  double do_step_bytes() const override { return inner_->step_bytes(); }

  std::unique_ptr<Decoder> inner_;
  int64_t batch_, from_;
};

class LateFault final : public Attention {
 public:
  explicit LateFault(const AttentionConfig& config)
      : Attention(config), fault_(params().text("fault")), from_(params().integer("from")) {}

 private:
  bool has(const std::string& fault, int64_t length) const {
    return fault_ == fault && length > from_;
  }
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const int64_t n = k.dim(2), heads = q.dim(1);
    SoftmaxOptions options{.causal = mask.causal, .kv_lengths = mask.kv_lengths};
    if (has("last_tile", n) && options.kv_lengths.empty())
      options.kv_lengths.assign(static_cast<size_t>(q.dim(0)), n - kTile);
    const bool wraps = has("index", n);
    const Var out = softmax_attention(has("scale", n) ? scale(q, 1.25) : q,
                                      wraps                  ? wrapped(k)
                                      : has("gradient_k", n) ? with_half_the_gradient(k)
                                                             : k,
                                      wraps ? wrapped(v) : v, options);
    constexpr real kOverflow = std::numeric_limits<real>::infinity();
    const auto late = [&](real factor) {
      return edited(out, [=, this](int64_t, int64_t row, int64_t) {
        return row >= from_ ? factor : real{1};
      });
    };
    if (has("values", n)) return late(static_cast<real>(0.5));
    if (has("state", n)) return late(kOverflow);
    if (has("threads", n) && threads() == 2) return late(static_cast<real>(0.5));
    if (has("head", n))
      return edited(out, [=](int64_t head, int64_t, int64_t) {
        return head == heads - 1 ? real{0} : real{1};
      });
    if (has("channel", n))
      return edited(out, [](int64_t, int64_t, int64_t c) { return c == 3 ? real{-1} : real{1}; });
    return has("kept", n) ? of_the_call_before(out) : out;
  }
  // The answer of the call before, with the gradients of this one.
  static Var of_the_call_before(const Var& out) {
    static Tensor kept;
    const Tensor now = out.value().clone(), before = kept.defined() ? kept : now;
    kept = now;
    if (before.shape() != now.shape()) return out;
    const Tensor difference = before.clone();
    for (int64_t i = 0; i < now.size(); ++i) difference[i] -= now[i];
    return add(out, Var(difference));
  }
  BFloat16Tensor do_bfloat16_forward(const BFloat16Tensor& q, const BFloat16Tensor& k,
                                     const BFloat16Tensor& v, const Mask& mask) const override {
    const Tensor out =
        widened(softmax_attention(q, k, v, {.causal = mask.causal, .kv_lengths = mask.kv_lengths}));
    if (has("bfloat16", k.dim(2)))
      for (real& value : out.values()) value *= static_cast<real>(0.9);
    return rounded(out);
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return std::make_unique<LateDecoder>(
        position, capacity, fault_ == "decoder" ? from_ : std::numeric_limits<int64_t>::max());
  }

  std::string fault_;
  int64_t from_;
};

}  // namespace

VariantInfo late_fault() {
  return {.name = "late_fault",
          .family = "other scores",
          .summary = "softmax attention, wrong beyond some length",
          .paper = "none: for tests",
          .cost_formula = "as full",
          .traits = {.causal = true,
                     .cross = true,
                     .convex = true,
                     .permutable = true,
                     .decode = true,
                     .rowwise = true,
                     .bfloat16 = true},
          .params = {{"fault",
                      {"none", "values", "scale", "last_tile", "index", "head", "channel",
                       "gradient_k", "threads", "state", "kept", "decoder", "bfloat16"},
                      "what is wrong"},
                     {"from", 1100, "positions up to which the answer is right", 1, 1 << 20}},
          .make = make_as<LateFault>,
          .reference = [](const ReferenceInputs& x) {
            return oracle::softmax_attention(x.q, x.k, x.v, x.visible());
          }};
}

}  // namespace attn::variants
