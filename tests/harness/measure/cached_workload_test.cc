// Workloads whose decoder caches keys and values in fewer bits: which can run, what they hold,
// what is verified, and how far they are from exact attention.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/measure/fidelity.h"
#include "harness/measure/workload.h"
#include "harness/verify/verify.h"
#include "variants/catalog.h"
#include "variants/softmax/softmax.h"

namespace attn::typed_cache_workload_test {
namespace {

WorkloadSpec spec_of(const VariantInfo& info, CacheType cache, int64_t length = 300) {
  return {.variant = &info,
          .length = length,
          .heads = 4,
          .head_dim = 32,
          .kv_heads = info.traits.gated ? 0 : 2,
          .cache = cache,
          .mode = Mode::decode,
          .causal = true};
}

// "" where the answers are those of the reference.
std::string refusal_of(const WorkloadSpec& spec) {
  Workload workload(spec);
  for (int i = 0; i < 3; ++i) workload.run();
  try {
    return verify(workload).by == VerifiedBy::reference ? "" : "by no reference";
  } catch (const WrongAnswer& error) {
    return error.what();
  }
}

TEST(TypedCacheWorkload, AnswersOfEveryVariantWithTheTraitAreVerified) {
  int count = 0;
  for (const VariantInfo& info : all_variants()) {
    if (!info.traits.typed_cache) continue;
    ++count;
    for (const CacheType cache : {CacheType::bfloat16, CacheType::int8, CacheType::int4,
                                  CacheType::int8_int4, CacheType::int4_float32})
      for (const int64_t length : {1, 40, 300, 1100}) {
        const WorkloadSpec spec = spec_of(info, cache, length);
        EXPECT_EQ(refusal_of(spec), "") << info.name << " " << name_of(cache) << " " << length;
        if (length != 300) continue;
        const Workload workload(spec);
        EXPECT_EQ(workload.state_bytes(), static_cast<int64_t>(workload.attention().state_bytes(
                                              spec.shape(), spec.key_heads())))
            << info.name;
      }
  }
  EXPECT_GE(count, 4);
}

// A decoder that keeps float32 whatever it is asked for.
class KeepsFloat32 : public Attention {
 public:
  explicit KeepsFloat32(const AttentionConfig& config) : Attention(config) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return softmax_attention(q, k, v, {.causal = mask.causal});
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return softmax_decoder(position, capacity);
  }
  std::unique_ptr<Decoder> do_cached_decoder(const Shape& position, int64_t capacity,
                                             CacheType) const override {
    return softmax_decoder(position, capacity);
  }
};

TEST(TypedCacheWorkload, ACacheOfAnotherTypeIsRefused) {
  VariantInfo info = find_variant("full");
  info.make = make_as<KeepsFloat32>;
  for (const auto& cache : names_of(CacheType())) {
    const CacheNumber keys = keys_of(cache.value), values = values_of(cache.value);
    // What rounding of the weights hides; see cache_rounding.h.
    const bool is_hidden = values == CacheNumber::bfloat16 && keys != CacheNumber::int4;
    if (is_hidden || cache.value == CacheType::float32) continue;
    EXPECT_NE(refusal_of(spec_of(info, cache.value)), "") << cache.name;
  }
}

TEST(TypedCacheWorkload, OthersSayThatTheyHaveNone) {
  const VariantInfo& linear = find_variant("linear");
  EXPECT_EQ(why_not(spec_of(linear, CacheType::int8)), "its decoder has no cache of int8");
  EXPECT_EQ(why_not(spec_of(linear, CacheType::float32)), std::nullopt);
  const VariantInfo& linformer = find_variant("linformer");  // no cache makes it decode
  EXPECT_EQ(why_not(spec_of(linformer, CacheType::int8)),
            why_not(spec_of(linformer, CacheType::float32)));
}

// A cache of fewer bits of one copy of keys for each query head, whatever float32 does.
class SharesNoTypedCache final : public KeepsFloat32 {
 public:
  using KeepsFloat32::KeepsFloat32;

 private:
  std::unique_ptr<Decoder> do_cached_decoder(const Shape& position, int64_t capacity,
                                             CacheType cache) const override {
    if (position[2] > 1) return nullptr;
    return typed_softmax_decoder(position, capacity, cache);
  }
  Cost do_cost(const AttentionShape& shape) const override { return softmax_cost(shape, {}); }
};

TEST(TypedCacheWorkload, ItsStateIsOfTheDecoderWithThatCache) {
  VariantInfo info = find_variant("full");
  info.make = make_as<SharesNoTypedCache>;
  for (const CacheType cache : {CacheType::int8, CacheType::bfloat16, CacheType::float32}) {
    const WorkloadSpec spec = spec_of(info, cache);
    const Workload workload(spec);
    EXPECT_EQ(workload.state_bytes(), static_cast<int64_t>(workload.attention().state_bytes(
                                          spec.shape(), spec.key_heads())))
        << name_of(cache);
  }
}

// Nothing else could tell whether its cache rounds as it should.
TEST(TypedCacheWorkload, TheTraitNeedsAReference) {
  VariantInfo info = find_variant("full");
  info.reference = nullptr;
  try {
    Workload workload(spec_of(info, CacheType::int8));
    ADD_FAILURE() << "was built";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("full has trait typed_cache and no reference"),
              std::string::npos)
        << error.what();
  }
}

TEST(TypedCacheWorkload, FidelityIsThatOfDecoding) {
  const auto figures = [](CacheType cache) {
    WorkloadSpec spec = spec_of(find_variant("full"), cache, 128);
    spec.mode = Mode::forward;
    spec.kv_heads = 0;
    return measure_fidelity(spec, InputKind::random, 1);
  };
  const FidelityFigures exact = figures(CacheType::float32), eight = figures(CacheType::int8),
                        four = figures(CacheType::int4), keys = figures(CacheType::int4_float32);
  EXPECT_LT(exact.relative_error, 1e-5);
  EXPECT_GT(eight.relative_error, 1e-3);
  EXPECT_LT(eight.relative_error, 2e-2);
  EXPECT_GT(four.relative_error, 5 * eight.relative_error);
  EXPECT_LT(four.relative_error, 0.3);
  EXPECT_LT(keys.relative_error, four.relative_error);
  ASSERT_TRUE(eight.weights_kl && four.weights_kl && keys.weights_kl);
  EXPECT_GT(*four.weights_kl, 10 * *eight.weights_kl);
  EXPECT_DOUBLE_EQ(*four.weights_kl, *keys.weights_kl) << "weights are of the keys";
}

}  // namespace
}  // namespace attn::typed_cache_workload_test
