// The check of bfloat16 catches planted faults of one line each: truncation in place of rounding,
// keys that are read with 6 significant bits, padding that is read, memory that is not declared.
#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "harness/check/contract.h"
#include "tests/conformance/planted.h"
#include "variants/softmax/softmax.h"

namespace attn::planted_bfloat16_test {
namespace {

using attn_check::Level;

struct Fault {
  const char* name = "none";
  std::function<BFloat16(float)> store = [](float x) { return to_bfloat16(x); };
  std::function<BFloat16(BFloat16)> key = [](BFloat16 x) { return x; };
  bool reads_padding = false, holds_more = false;
};

// Exact attention in float32, which it enters and leaves by itself.
class Planted final : public Attention {
 public:
  Planted(const AttentionConfig& config, const Fault& fault) : Attention(config), fault_(fault) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return softmax_attention(q, k, v, {.causal = mask.causal, .kv_lengths = mask.kv_lengths});
  }
  BFloat16Tensor do_bfloat16_forward(const BFloat16Tensor& q, const BFloat16Tensor& k,
                                     const BFloat16Tensor& v, const Mask& mask) const override {
    Tensor keys = widened(k);
    for (int64_t i = 0; i < k.size(); i++) keys[i] = to_float(fault_.key(k.data()[i]));
    Mask seen = mask;
    if (fault_.reads_padding) seen.kv_lengths.clear();
    const Tensor more = fault_.holds_more ? Tensor(q.shape()) : Tensor();
    const Tensor out = do_forward(Var(widened(q)), Var(keys), Var(widened(v)), seen).value();
    BFloat16Tensor result(q.shape());
    for (int64_t i = 0; i < out.size(); i++)
      result.data()[i] = fault_.store(static_cast<float>(out[i]));
    return result;
  }
  Cost do_cost(const AttentionShape& shape) const override {
    AttentionShape wide = shape;
    wide.dtype = Dtype::float32;
    Cost cost = softmax_cost(wide);
    const double keys = sizeof(real) * static_cast<double>(shape.batch * shape.heads *
                                                           shape.kv_len * shape.head_dim);
    const double queries =
        keys / static_cast<double>(shape.kv_len) * static_cast<double>(shape.q_len);
    if (shape.dtype == Dtype::bfloat16) cost.peak_bytes += queries + 2 * keys;
    return cost;
  }

  Fault fault_;
};

VariantInfo planted(const Fault& fault) {
  return {.name = fault.name,
          .traits = {.causal = true, .cross = true, .bfloat16 = true},
          .params = {},
          .make = [fault](const AttentionConfig& config) -> std::unique_ptr<Attention> {
            return std::make_unique<Planted>(config, fault);
          },
          .reference =
              [](const ReferenceInputs& x) {
                return oracle::softmax_attention(x.q, x.k, x.v, x.visible());
              }};
}

BFloat16 truncated(float x) { return {static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16)}; }

TEST(PlantedBFloat16, WithoutAFaultTheCheckPasses) {
  const auto results = check_variant(planted({}), {}, Level::quick, "bfloat16");
  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(all_passed(results)) << lines(results);
  EXPECT_EQ(results[0].outcome, attn_check::Outcome::passed);
}

TEST(PlantedBFloat16, FaultsAreCaught) {
  std::vector<Fault> faults(5);
  faults[0].name = "truncates", faults[0].store = truncated;
  faults[1].name = "coarse_keys",
  faults[1].key = [](BFloat16 x) { return BFloat16{static_cast<uint16_t>(x.bits & 0xfffc)}; };
  faults[2].name = "reads_padding", faults[2].reads_padding = true;
  faults[3].name = "holds_more", faults[3].holds_more = true;
  faults[4].name = "drops_nothing_but_the_sign",
  faults[4].store = [](float x) { return to_bfloat16(std::abs(x)); };
  for (const Fault& fault : faults) {
    const auto results = check_variant(planted(fault), {}, Level::quick, "bfloat16");
    EXPECT_FALSE(all_passed(results)) << fault.name << "\n" << lines(results);
  }
}

TEST(PlantedBFloat16, WhatIsNotFiniteIsSaid) {
  Fault fault;
  fault.name = "nan", fault.store = [](float) { return BFloat16{0x7fc0}; };
  const auto results = check_variant(planted(fault), {}, Level::quick, "bfloat16");
  EXPECT_TRUE(results.at(0).detail.starts_with("row 0 is not finite (")) << lines(results);

  VariantInfo own = planted(fault);  // is compared with its own pass in float32
  own.reference = nullptr;
  EXPECT_EQ(check_variant(own, {}, Level::quick, "bfloat16").at(0).detail, results[0].detail);
}

TEST(PlantedBFloat16, IsCaughtAtThePublishedShapeInBFloat16Alone) {
  Fault fault;
  fault.name = "truncates", fault.store = truncated;
  AttentionShape shape{.heads = 2, .head_dim = 16};
  EXPECT_TRUE(all_passed(check_variant_at(planted(fault), {}, shape, 1)));
  shape.dtype = Dtype::bfloat16;
  const auto results = check_variant_at(planted(fault), {}, shape, 1);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].name, "bfloat16");
  EXPECT_FALSE(all_passed(results));
  EXPECT_TRUE(all_passed(check_variant_at(planted({}), {}, shape, 1)));
}

}  // namespace
}  // namespace attn::planted_bfloat16_test
