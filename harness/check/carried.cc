// What layers hand from one to the next (variants/api/carrying.h): the first layer and one that
// receives beside the declared references, of outputs and of what is handed on; gradients of both
// along one direction through all inputs, what was received among them; and decoded positions
// beside the pass. Costs six passes and eight evaluations of references a shape.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd/grad_or_zeros.h"
#include "core/ops/ops.h"
#include "core/ops/ops_heads.h"
#include "harness/check/parts.h"
#include "harness/check/variant_checks.h"
#include "variants/api/carrying.h"

namespace attn {
namespace {

constexpr double kAllowedDecoded = kIsDouble ? 1e-10 : 1e-5;  // as in decoding.cc
constexpr int64_t kLongestCarried = 70;

double seeded(const Tensor& a, const oracle::Array& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    if (a[i] != 0) sum += static_cast<double>(a[i]) * b.x[static_cast<size_t>(i)];
  return sum;
}

class CarriedCase {
 public:
  CarriedCase(const Subject& subject, const AttentionShape& shape, std::vector<int64_t> lengths,
              bool receives)
      : subject_(subject), shape_(shape), lengths_(std::move(lengths)) {
    attention_ = subject.info.build({.heads = shape.heads,
                                     .head_dim = shape.head_dim,
                                     .max_len = shape.kv_len,
                                     .causal = shape.causal,
                                     .seed = 5,
                                     .params = {},
                                     .receives = receives},
                                    subject.given);
    mixer_ = as_carrying(*attention_);
    move_weights(*attention_, 82);
    v_ = Var(make_inputs(*attention_, shape, 81).v, true);
    const Shape handed = mixer_->handed_shape(shape.batch, shape.kv_len);
    by_position_ = mixer_->handed_shape(shape.batch, shape.kv_len + 1) != handed;
    if (receives) received_ = Var(Tensor::normal(handed, rng(83, "received")), true);
    hide_padding(v_.value(), true);
    if (receives) hide_padding(as_matrices(received_.value()), by_position_);
    seed_ = Tensor::normal(v_.shape(), rng(84, "out"));
    seed_of_handed_ = Tensor::normal(handed, rng(84, "handed"));
    for (int64_t b = 0; b < std::ssize(lengths_); ++b) {
      fill_from(seed_, lengths_[static_cast<size_t>(b)], real(0), b);
      if (by_position_)
        fill_from(as_matrices(seed_of_handed_), lengths_[static_cast<size_t>(b)], real(0), b);
    }
  }

  void compare(Verdict& verdict) {
    for (const Weight& weight : attention_->weights()) weight.value.zero_grad();
    const CarryingMixer::Passed passed = pass();
    const Var out = split_heads(passed.out, shape_.heads);
    const ReferenceInputs inputs = reference_inputs();
    expect_rows(out.value(), subject_.info.reference(inputs), true, "the output", verdict);
    expect_rows(as_matrices(passed.handed.value()), subject_.info.handed_on(inputs), by_position_,
                "what is handed on", verdict);
    if (verdict.failed()) return;  // gradients of another function would be said to be wrong
    add(sum(multiply(out, Var(seed_))), sum(multiply(passed.handed, Var(seed_of_handed_))))
        .backward();
    compare_slopes(inputs, verdict);
    if (subject_.info.traits.decode && shape_.causal && lengths_.empty()) compare_steps(verdict);
  }

 private:
  void hide_padding(const Tensor& t, bool by_position) const {
    constexpr real kNaN = std::numeric_limits<real>::quiet_NaN();
    for (int64_t b = 0; b < std::ssize(lengths_) && by_position; ++b)
      fill_from(t, lengths_[static_cast<size_t>(b)], kNaN, b);
  }
  CarryingMixer::Passed pass() const {
    return mixer_->pass(merge_heads(v_), received_, mask_of(shape_, lengths_));
  }
  std::string name() const {
    return fmt::format("{}, {}{}", text(shape_), received_.defined() ? "receives" : "first layer",
                       lengths_.empty() ? "" : ", padded");
  }

  ReferenceInputs reference_inputs() const {
    ReferenceInputs inputs{.q = oracle_array(v_.value()),
                           .k = oracle_array(v_.value()),
                           .v = oracle_array(v_.value()),
                           .weights = {},
                           .config = attention_->config(),
                           .mask = mask_of(shape_, lengths_)};
    if (received_.defined()) inputs.received = oracle_array(as_matrices(received_.value()));
    for (const Weight& weight : attention_->weights())
      inputs.weights.push_back(oracle_array(weight.value.value()));
    return inputs;
  }

  // `got` [batch, heads, rows, dim]; rows of padding are not compared.
  void expect_rows(const Tensor& got, const oracle::Array& wanted, bool by_position,
                   const char* what, Verdict& verdict) const {
    double largest = 0.1, off = 0;
    for (int64_t b = 0; b < wanted.batch; ++b)
      for (int64_t h = 0; h < wanted.heads; ++h)
        for (int64_t i = 0; i < wanted.len; ++i) {
          if (by_position && !lengths_.empty() && i >= lengths_[static_cast<size_t>(b)]) continue;
          for (int64_t c = 0; c < wanted.dim; ++c) {
            const double want = wanted.at(b, h, i, c);
            const int64_t at = ((b * wanted.heads + h) * wanted.len + i) * wanted.dim + c;
            largest = std::max(largest, std::abs(want));
            const double one = std::abs(static_cast<double>(got[at]) - want);
            if (!std::isnan(off) && !(one <= off)) off = one;
          }
        }
    verdict.expect(off / largest, tolerance(shape_.kv_len),
                   "{} is off by {:.1e} against the reference ({})", what, off / largest, name());
  }

  std::vector<ReferencePart> parts() const {
    std::vector<ReferencePart> all = {
        {"x", [](ReferenceInputs& of) -> oracle::Array& { return of.v; }, grad_or_zeros(v_)}};
    if (received_.defined())
      all.push_back({"what was received",
                     [](ReferenceInputs& of) -> oracle::Array& { return of.received; },
                     grad_or_zeros(received_)});
    const std::vector<Weight> weights = attention_->weights();
    for (size_t i = 0; i < weights.size(); ++i)
      if (weights[i].learned)
        all.push_back({weights[i].name,
                       [i](ReferenceInputs& of) -> oracle::Array& { return of.weights[i]; },
                       grad_or_zeros(weights[i].value)});
    return all;
  }

  double answer(const ReferenceInputs& x) const {
    return seeded(seed_, subject_.info.reference(x)) +
           seeded(seed_of_handed_, subject_.info.handed_on(x));
  }
  // How far the gradients of these parts are off along a direction in which each weighs alike.
  double off_along(const ReferenceInputs& inputs,
                   const std::vector<const ReferencePart*>& some) const {
    ReferenceInputs up = inputs, down = inputs;
    double claimed = 0;
    for (const ReferencePart* part : some) {
      std::vector<double>&higher = part->input(up).x, &lower = part->input(down).x;
      const double share = 1 / (length_of(part->gradient) + 0.01 * length_of(seed_));
      Rng random = rng(85, part->name);
      for (int64_t i = 0; i < part->gradient.size(); ++i) {
        const double along = share * random.normal();
        const auto at = static_cast<size_t>(i);
        if (!std::isfinite(higher[at])) continue;  // padding
        higher[at] += kReferenceStep * along;
        lower[at] -= kReferenceStep * along;
        claimed += static_cast<double>(part->gradient[i]) * along;
      }
    }
    return std::abs(claimed - (answer(up) - answer(down)) / (2 * kReferenceStep));
  }
  void compare_slopes(const ReferenceInputs& inputs, Verdict& verdict) const {
    const std::vector<ReferencePart> all = parts();
    std::vector<const ReferencePart*> together;
    for (const ReferencePart& part : all) together.push_back(&part);
    const double off = off_along(inputs, together);
    std::string names;
    for (const ReferencePart& part : all)
      if (!(off <= kReferenceSlope) && !(off_along(inputs, {&part}) <= kReferenceSlope))
        names += (names.empty() ? "" : ", ") + part.name;
    verdict.expect(off, kReferenceSlope,
                   "the gradient of {} is off by {:.1e} of its length against the reference ({})",
                   names.empty() ? "all inputs together" : names, off, name());
  }

  void compare_steps(Verdict& verdict) const {
    const NoGrad no_grad;
    const CarryingMixer::Passed all = pass();
    const Tensor outputs = split_heads(all.out, shape_.heads).value();
    const auto made = attention_->decoder(shape_.batch, shape_.kv_len);
    auto& decoder = dynamic_cast<CarryingDecoder&>(*made);
    double off = 0, off_handed = 0;
    for (int64_t i = 0; i < shape_.kv_len; ++i) {
      const Tensor row = part(v_.value(), 2, i, i + 1), out(row.shape());
      if (received_.defined()) decoder.receive(part(received_.value(), 1, i, i + 1));
      decoder.step(row, row, row, out);
      off = worst({off, gap(out, part(outputs, 2, i, i + 1)).size});
      off_handed = worst({off_handed, gap(as_matrices(decoder.take_handed()),
                                          as_matrices(part(all.handed.value(), 1, i, i + 1)))
                                          .size});
    }
    const double allowed = kAllowedDecoded * subject_.info.rounding;
    verdict.expect(off, allowed, "decoded positions are off by {:.1e} against the pass ({})", off,
                   name());
    verdict.expect(off_handed, allowed,
                   "what decoded positions hand on is off by {:.1e} against the pass ({})",
                   off_handed, name());
  }

  const Subject& subject_;
  AttentionShape shape_;
  std::vector<int64_t> lengths_;
  std::unique_ptr<Attention> attention_;
  const CarryingMixer* mixer_ = nullptr;
  Var v_, received_;
  bool by_position_ = false;  // what is handed on has a row of each position
  Tensor seed_, seed_of_handed_;
};

}  // namespace

void check_carried(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : subject.shapes(ShapeKind::self, kLongestCarried))
    for (const bool receives : {false, true}) {
      CarriedCase(subject, shape, {}, receives).compare(verdict);
      if (shape.kv_len > 2 && subject.info.traits.padding)
        CarriedCase(subject, shape, {shape.kv_len, shape.kv_len / 2}, receives).compare(verdict);
    }
}

}  // namespace attn
