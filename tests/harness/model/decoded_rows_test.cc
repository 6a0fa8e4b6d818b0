// Rows that a decoder answers behind a prompt: those of the prompt beside the causal forward pass,
// the steps beside the reference in double, to which the prompt comes at once too.
#include "harness/model/decoded_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "core/ops/ops_heads.h"
#include "tests/said.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/api/forgetting.h"
#include "variants/catalog.h"

namespace attn::decoded_rows_test {
namespace {

using Given = std::map<std::string, ParamValue>;

constexpr int64_t kBatch = 2, kHeads = 4, kLength = 40, kDim = 8;

struct Case {
  std::unique_ptr<Attention> attention;
  Tensor q, k, v;  // of k and v, kv_heads heads
  std::vector<Var> gates;

  Tensor rows(int64_t prompt, CacheType cache = CacheType::float32) const {
    return decoded_rows(*attention, cache, q, k, v, gates, prompt);
  }
  Tensor repeated(const Tensor& x) const { return repeat_heads(Var(x), kHeads / x.dim(1)).value(); }
  Tensor forward() const {
    const NoGrad no_grad;
    return attention->forward(Var(q), Var(repeated(k)), Var(repeated(v)), {.causal = true}, gates)
        .value();
  }
};

Case made(const std::string& variant, const Given& given = {}, int64_t kv_heads = kHeads,
          int64_t length = kLength) {
  Case c;
  c.attention = find_variant(variant).build(
      {.heads = kHeads, .head_dim = kDim, .max_len = length, .causal = true, .params = {}}, given);
  c.q = Tensor::normal({kBatch, kHeads, length, kDim}, rng(3, "q"));
  c.k = Tensor::normal({kBatch, kv_heads, length, kDim}, rng(3, "k"));
  c.v = Tensor::normal(c.k.shape(), rng(3, "v"));
  c.gates = leaves_of(random_gates(c.attention->gates(), kBatch, kHeads, length, 3));
  return c;
}

// The largest difference of the rows [begin, end).
double apart(const Tensor& a, const Tensor& b, int64_t begin, int64_t end) {
  double most = 0;
  for (int64_t m = 0; m < a.dim(0) * a.dim(1); ++m)
    for (int64_t i = (m * a.dim(2) + begin) * kDim; i < (m * a.dim(2) + end) * kDim; ++i)
      most = std::max(most, std::abs(static_cast<double>(a[i] - b[i])));
  return most;
}

// What another choice of positions moves is far above.
constexpr double kRounding = 1e-5;

void expect_the_reference(const Given& given, int64_t kv_heads, int64_t prompt) {
  const Case c = made("full", given, kv_heads);
  const Forgetting* const forgetting = as_forgetting(*c.attention);
  ASSERT_TRUE(forgetting);
  ReferenceInputs x;
  x.q = bridge::array_of(c.q);
  x.k = bridge::array_of(c.repeated(c.k));
  x.v = bridge::array_of(c.repeated(c.v));
  x.config = c.attention->config();
  x.mask.causal = true;
  const auto wanted = [&](int64_t appended) {
    return Tensor::of(
        c.q.shape(),
        forgetting->step_answers(x, DecodeSteps::after(appended, kLength, kv_heads)).x);
  };
  const std::string text = Params("full", find_variant("full").params, given).str() +
                           fmt::format(", {} heads of keys, prompt {}", kv_heads, prompt);
  const Tensor rows = c.rows(prompt);
  EXPECT_LT(apart(rows, wanted(prompt), prompt, kLength), kRounding) << text;
  EXPECT_EQ(apart(rows, c.forward(), 0, prompt), 0) << text;
}

TEST(DecodedRows, BehindAPromptAreThoseOfTheReference) {
  for (const int64_t kv_heads : {kHeads, kHeads / 2})
    for (const int64_t prompt : {1, 7, 24, 39}) {
      for (const char* method : {"h2o", "tova", "norm", "random", "recent", "sinks"})
        for (const char* when : {"always", "prompt"})
          expect_the_reference(
              {{"evict", std::string(method)}, {"budget", 6.0}, {"when", std::string(when)}},
              kv_heads, prompt);
      expect_the_reference({{"evict", std::string("snapkv")}, {"budget", 6.0}}, kv_heads, prompt);
      expect_the_reference({{"evict", std::string("quest")}, {"budget", 16.0}}, kv_heads, prompt);
    }
}

// Else the test above would not see whether the prompt came at once.
TEST(DecodedRows, DependOnThePrompt) {
  for (const char* method : {"h2o", "snapkv", "tova"}) {
    const Case c = made("full", {{"evict", std::string(method)}, {"budget", 6.0}});
    EXPECT_GT(apart(c.rows(24), c.rows(0), 24, kLength), 0.01) << method;
    EXPECT_GT(apart(c.rows(24), c.rows(12), 24, kLength), 0.01) << method;
  }
}

TEST(DecodedRows, OfACacheOfAllAreThoseOfTheForwardPassBehindAnyPrompt) {
  for (const char* variant : {"full", "truncated", "fox", "softmax_one"})
    for (const int64_t kv_heads : {kHeads, int64_t{1}})
      for (const int64_t prompt : {0, 1, 24, 39}) {
        const Case c = made(variant, {}, kv_heads);
        EXPECT_LT(apart(c.rows(prompt), c.forward(), 0, kLength), kRounding)
            << variant << ", " << kv_heads << " heads of keys, prompt " << prompt;
      }
}

// Steps read what is older than the newest positions as the cache holds it; the prompt was answered
// before.
TEST(DecodedRows, OfATypedCacheRoundWhatThePromptLeft) {
  constexpr int64_t kLonger = 72, kPrompt = 48;
  const Case c = made("full", {}, kHeads, kLonger);
  const Tensor exact = c.forward();
  double before = 0;
  for (const CacheType type : {CacheType::bfloat16, CacheType::int8, CacheType::int4}) {
    const Tensor rows = c.rows(kPrompt, type);
    EXPECT_EQ(apart(rows, exact, 0, kPrompt), 0) << name_of(type);
    const double off = apart(rows, exact, kPrompt, kLonger);
    EXPECT_GT(off, 10 * kRounding) << name_of(type);
    EXPECT_LT(off, 1) << name_of(type);
    EXPECT_NE(off, before) << name_of(type);
    before = off;
  }
}

TEST(DecodedRows, NeedAStep) {
  const Case c = made("full");
  for (const int64_t prompt : {int64_t{-1}, kLength, kLength + 1})
    EXPECT_TRUE(says(fault_of([&] { c.rows(prompt); }),
                     fmt::format("a prompt of {} leaves no step of 40 positions", prompt)));
}

// At the end of the prompt six positions are kept, and there is room for the steps that follow.
TEST(DecodedRows, StateBehindAPromptHasRoomForAllSteps) {
  const auto bytes = [](const Given& given, int64_t prompt) {
    return state_bytes_behind(prompt, *made("full", given).attention, kLength, 0);
  };
  const Given snapkv = {{"evict", std::string("snapkv")}, {"budget", 6.0}},
              always = {{"evict", std::string("recent")}, {"budget", 6.0}};
  EXPECT_EQ(bytes(snapkv, 20) * (6 + 10), bytes(snapkv, 30) * (6 + 20));
  EXPECT_EQ(bytes(snapkv, 4) * (6 + 10), bytes(snapkv, 30) * kLength) << "less than the budget";
  EXPECT_EQ(bytes(always, 20), bytes(always, 30));
  EXPECT_EQ(bytes(always, 20) * (6 + 10), bytes(snapkv, 30) * (6 + 1));
}

}  // namespace
}  // namespace attn::decoded_rows_test
