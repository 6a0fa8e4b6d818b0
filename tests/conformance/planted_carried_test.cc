// Layers that hand something on, with one fault at a time: what the contract check and what
// compares a measured model must catch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/ops.h"
#include "core/ops/ops_block.h"
#include "harness/check/contract.h"
#include "harness/verify/verify.h"
#include "tests/conformance/planted.h"
#include "tests/said.h"
#include "variants/api/carrying.h"
#include "variants/catalog.h"

namespace attn::planted_carried_test {
namespace {

enum class Fault {
  none,
  hands_on_its_own,        // values: those of the layer before, not of the first
  hands_on_what_it_got,    // packed rows: the first P of all layers
  ignores_what_it_got,     // values: its own alone
  leaves_sigmoid_out,      // of the share
  leaves_norm_out,         // packed rows: of half the size, as if they were summed
  gives_no_gradient,       // to the layer before
  steps_with_the_previous  // position's values
};

class PlantedDecoder final : public CarryingDecoder {
 public:
  PlantedDecoder(const Shape& position, int64_t capacity, std::unique_ptr<Decoder> right,
                 Fault fault)
      : CarryingDecoder(position, capacity), right_(std::move(right)), fault_(fault) {}

 private:
  void do_next(const real* x, real* out) override {
    auto& right = dynamic_cast<CarryingDecoder&>(*right_);
    const Tensor received = take_received();
    if (received.defined()) {
      const bool is_late = fault_ == Fault::steps_with_the_previous && previous_.defined();
      right.receive(is_late ? previous_ : received);
      previous_ = received;
    }
    const Tensor row({batch(), heads() / batch(), 1, head_dim()}), found(row.shape());
    std::copy_n(x, row.size(), row.data());
    right.step(row, row, row, found);
    if (out) std::copy_n(found.data(), found.size(), out);
    hand_on(right.take_handed());
  }
  int64_t do_state_bytes() const override { return right_->state_bytes(); }
  double do_step_flops() const override { return right_->step_flops(); }
  double do_step_bytes() const override { return right_->step_bytes(); }

  std::unique_ptr<Decoder> right_;
  Fault fault_;
  Tensor previous_;
};

class PlantedLayer final : public CarryingMixer {
 public:
  PlantedLayer(const AttentionConfig& config, const VariantInfo& of, Fault fault)
      : CarryingMixer(config), fault_(fault), right_(of.build(config, config.params.values())) {
    adopt_weights("", *right_);
    AttentionConfig alone = config;
    alone.receives = false;
    first_ = of.build(alone, config.params.values());
  }
  Shape handed_shape(int64_t batch, int64_t len) const override {
    return right().handed_shape(batch, len);
  }

 private:
  const CarryingMixer& right() const { return *as_carrying(*right_); }
  Var named(const std::string& name) const {
    for (const Weight& weight : right_->weights())
      if (weight.name == name) return weight.value;
    return {};
  }
  // What this layer would hand on if it were the first.
  Var own(const Var& x, const Mask& mask) const {
    for (const Weight& weight : first_->weights())
      if (const Var same = named(weight.name); same.defined())
        weight.value.set_value(same.value().clone());
    return as_carrying(*first_)->pass(x, {}, mask).handed;
  }
  // What to receive so that σ(share) of it is `share` of the right one.
  Var without_sigmoid(const Var& x, const Var& received, const Mask& mask) const {
    const Var before = short_convolution(x, previous_taps(x.dim(2)), {}, false);
    const Var from = mix_rows(x, before, named("v.mix"), {});
    const Var share =
        linear(linear(from, named("first.down"), {}), named("first.up"), named("first.bias"));
    const Var values = own(x, mask), apart = subtract(received, values);
    Tensor times(share.shape());
    for (int64_t i = 0; i < times.size(); ++i)
      times[i] = share.value()[i] * (1 + std::exp(-share.value()[i]));
    return add(values, multiply(apart, Var(times)));
  }

  Passed do_pass(const Var& x, const Var& received, const Mask& mask) const override {
    if (!received.defined()) return right().pass(x, {}, mask);
    Var given = received;
    if (fault_ == Fault::gives_no_gradient) given = Var(received.value());
    if (fault_ == Fault::ignores_what_it_got) given = own(x, mask);
    if (fault_ == Fault::leaves_sigmoid_out) given = without_sigmoid(x, received, mask);
    Passed passed = right().pass(x, given, mask);
    if (fault_ == Fault::ignores_what_it_got || fault_ == Fault::leaves_sigmoid_out ||
        fault_ == Fault::hands_on_what_it_got)
      passed.handed = received;
    if (fault_ == Fault::hands_on_its_own) passed.handed = own(x, mask);
    if (fault_ == Fault::leaves_norm_out)
      passed.handed = add(subtract(passed.handed, layer_norm(received, named("packed_norm.gain"),
                                                             named("packed_norm.shift"))),
                          received);
    return passed;
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return std::make_unique<PlantedDecoder>(position, capacity,
                                            right_->decoder(position[0], capacity), fault_);
  }

  Fault fault_;
  std::unique_ptr<Attention> right_, first_;
};

VariantInfo with_fault(const std::string& variant, Fault fault) {
  const VariantInfo& block = find_variant(variant + "[block=paper]");
  VariantInfo info = block;
  info.make = [fault, &block](const AttentionConfig& config) -> std::unique_ptr<Attention> {
    return std::make_unique<PlantedLayer>(config, block, fault);
  };
  return info;
}

struct Planted {
  std::string variant;
  Fault fault;
  std::string part;  // of what the check says
};

TEST(PlantedCarried, TheContractCatchesEach) {
  const std::vector<Planted> faults = {
      {"rwkv7", Fault::none, ""},
      {"rwkv7", Fault::hands_on_its_own, "what is handed on"},
      {"rwkv7", Fault::ignores_what_it_got, "the output"},
      {"rwkv7", Fault::leaves_sigmoid_out, "the output"},
      {"rwkv7", Fault::gives_no_gradient, "the gradient of what was received"},
      {"rwkv7", Fault::steps_with_the_previous, "decoded positions"},
      {"luna", Fault::none, ""},
      {"luna", Fault::hands_on_what_it_got, "what is handed on"},
      {"luna", Fault::leaves_norm_out, "what is handed on"},
      {"luna", Fault::gives_no_gradient, "the gradient of what was received"}};
  for (const auto& [variant, fault, part] : faults) {
    const auto results =
        check_variant(with_fault(variant, fault), {}, attn_check::Level::quick, "carried");
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].outcome,
              fault == Fault::none ? attn_check::Outcome::passed : attn_check::Outcome::failed)
        << variant << ", fault " << static_cast<int>(fault) << ": " << results[0].detail;
    EXPECT_TRUE(says(results[0].detail, part)) << variant << ", " << static_cast<int>(fault);
  }
}

// "" where a model of three layers passes. `budget_s` as in VerifyOptions.
std::string refusal(const VariantInfo& info, Mode mode, int64_t length = 40, double budget_s = 60) {
  Workload workload({.variant = &info,
                     .length = length,
                     .heads = 2,
                     .head_dim = 8,
                     .mode = mode,
                     .scope = ScopeKind::model,
                     .layers = 3,
                     .causal = info.traits.causal});
  for (int i = 0; i < 2; ++i) workload.run();
  return fault_of([&] { verify(workload, {.budget_s = budget_s}); });
}

TEST(PlantedCarried, AMeasuredModelIsRefused) {
  const auto refused = [](const std::string& variant, Fault fault, Mode mode) {
    const VariantInfo info = with_fault(variant, fault);
    return refusal(info, mode);
  };
  for (const std::string variant : {"rwkv7", "luna"})
    for (const Mode mode : {Mode::forward, Mode::train})
      EXPECT_EQ(refused(variant, Fault::none, mode), "") << variant;
  EXPECT_TRUE(says(refused("rwkv7", Fault::hands_on_its_own, Mode::forward), "hands on"));
  EXPECT_TRUE(says(refused("rwkv7", Fault::ignores_what_it_got, Mode::forward), "row"));
  EXPECT_TRUE(says(refused("rwkv7", Fault::leaves_sigmoid_out, Mode::forward), "row"));
  EXPECT_TRUE(says(refused("rwkv7", Fault::gives_no_gradient, Mode::train), "received"));
  EXPECT_TRUE(says(refused("luna", Fault::hands_on_what_it_got, Mode::forward), "hands on"));
  EXPECT_TRUE(says(refused("luna", Fault::gives_no_gradient, Mode::train), "received"));
}

// Where references would take too long: the first positions beside the reference or, where all
// positions meet, the reference nevertheless. Gradients are compared with differences then, but
// where these disagree at a short length too, which the contract sees.
TEST(PlantedCarried, ALongModelIsRefusedToo) {
  const auto refused = [&](const std::string& variant, Fault fault) {
    const VariantInfo info = with_fault(variant, fault);
    return refusal(info, Mode::train, 2048, 0);
  };
  EXPECT_EQ(refused("rwkv7", Fault::none), "");
  EXPECT_EQ(refused("luna", Fault::none), "");
  EXPECT_TRUE(says(refused("rwkv7", Fault::hands_on_its_own), "hands on"));
  EXPECT_TRUE(says(refused("rwkv7", Fault::ignores_what_it_got), "row"));
  EXPECT_TRUE(says(refused("luna", Fault::hands_on_what_it_got), "hands on"));
  EXPECT_TRUE(says(refused("luna", Fault::gives_no_gradient), "received"));
}

}  // namespace
}  // namespace attn::planted_carried_test
