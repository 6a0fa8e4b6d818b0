// The interface of variants: what it checks, and what variants share between calls and threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/counters.h"
#include "core/base/parallel.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/api/mixer.h"
#include "variants/api/variant_info.h"
#include "variants/catalog.h"
#include "variants/patterns/cached.h"

namespace attn::attention_test {
namespace {

// What Attention::forward and VariantInfo refuse before a variant sees it, and what a variant
// declares it costs.

Var zeros(Shape shape) { return Var(Tensor::zeros(shape)); }

TEST(Attention, RefusesWhatDoesNotFit) {
  const auto full = find_variant("full").build({2, 4, 8, false, 1, {}}, {});
  const Var x = zeros({1, 2, 8, 4});
  EXPECT_NO_THROW(full->forward(x, x, x, {false, {8}}));
  EXPECT_NO_THROW(full->forward(zeros({1, 2, 3, 4}), x, x));      // cross
  EXPECT_THROW(full->forward(Var(), x, x), Error);                // undefined
  EXPECT_THROW(full->forward(zeros({2, 8, 4}), x, x), Error);     // rank
  EXPECT_THROW(full->forward(x, x, zeros({1, 2, 7, 4})), Error);  // k and v differ
  EXPECT_THROW(full->forward(zeros({2, 2, 8, 4}), x, x), Error);  // batch
  const Var heads = zeros({1, 3, 8, 4}), dims = zeros({1, 2, 8, 5});
  EXPECT_THROW(full->forward(heads, heads, heads), Error);  // not what it was built for
  EXPECT_THROW(full->forward(dims, dims, dims), Error);
  EXPECT_THROW(full->forward(x, x, x, {true, {}}), Error);       // built not causal
  EXPECT_THROW(full->forward(x, x, x, {false, {8, 8}}), Error);  // a length too many
  EXPECT_THROW(full->forward(x, x, x, {false, {9}}), Error);
  EXPECT_THROW(full->forward(x, x, x, {false, {-1}}), Error);
}

// A variant that promises nothing and returns what it likes.
class Narrow final : public Attention {
 public:
  explicit Narrow(const AttentionConfig& config) : Attention(config) {}

 private:
  Var do_forward(const Var&, const Var& k, const Var&, const Mask&) const override { return k; }
  Cost do_cost(const AttentionShape&) const override { return {}; }
};

TEST(Attention, HoldsAVariantToItsTraits) {
  VariantInfo info;
  info.name = "narrow";
  info.traits = {.padding = false};
  info.make = make_as<Narrow>;
  const AttentionConfig config{1, 2, 8, false, 1, {}};
  const auto narrow = info.build(config, {});
  const Var x = zeros({1, 1, 8, 2});
  EXPECT_NO_THROW(narrow->forward(x, x, x));
  EXPECT_THROW(narrow->forward(x, x, x, {false, {8}}), Error);      // no padding
  EXPECT_THROW(narrow->forward(zeros({1, 1, 4, 2}), x, x), Error);  // no cross-attention
  info.traits = {.cross = true};
  EXPECT_THROW(info.build(config, {})->forward(zeros({1, 1, 4, 2}), x, x),
               Error);                                          // returns k's shape
  EXPECT_THROW(info.build({1, 2, 8, true, 1, {}}, {}), Error);  // not causal
  EXPECT_THROW(info.build({0, 2, 8, false, 1, {}}, {}), Error);
  EXPECT_THROW(info.build(config, {{"colour", int64_t{1}}}), Error);
}

TEST(Attention, SaysWhyNot) {
  VariantInfo info;
  info.name = "narrow";
  const AttentionShape self{.q_len = 4, .kv_len = 4}, cross{.q_len = 3, .kv_len = 4};
  const AttentionShape causal{.q_len = 4, .kv_len = 4, .causal = true};
  EXPECT_FALSE(info.why_not(self, {}));
  EXPECT_TRUE(info.why_not(cross, {}));
  EXPECT_TRUE(info.why_not(causal, {}));
  info.skip_reason = [](const AttentionShape&, const Params&) {
    return std::optional<std::string>("no");
  };
  EXPECT_EQ(info.why_not(self, {}), "no");
  EXPECT_EQ(find_variant("linformer").why_not(causal, {}), "cannot be causal");
}

struct Use {
  double flops = 0, peak_bytes = 0;
};

Use measure(const Attention& attention, const AttentionShape& s) {
  const NoGrad no_grad;
  const Mixer* const mixer = as_mixer(attention);
  const Var q = zeros({s.batch, s.heads, s.q_len, s.head_dim}),
            k = zeros({s.batch, s.heads, s.kv_len, s.head_dim}),
            rows = zeros({s.batch, s.kv_len, s.heads * s.head_dim});
  const std::vector<Var> gates =
      leaves_of(random_gates(attention.gates(), s.batch, s.heads, s.kv_len, 1));
  const double flops = counters().flops;
  reset_memory_peak();
  const int64_t live = memory_use().live_total;
  if (mixer)
    mixer->mix(rows, {s.causal, {}});
  else
    attention.forward(q, k, k, {s.causal, {}}, gates);
  return {counters().flops - flops, static_cast<double>(memory_use().peak_total - live)};
}

// Bytes are exact but for rounding of blocks to cache lines.
TEST(Attention, DeclaredCostIsMeasuredCost) {
  const int before = threads();
  std::map<std::string, ParamValue> textbook = {{"kernel", std::string("materialized")}};
  for (const VariantInfo& info : all_variants())
    for (const auto& params : {std::map<std::string, ParamValue>{}, textbook})
      for (const bool causal : {false, true})
        for (const auto& [batch, heads, q_len, kv_len] : {std::array<int64_t, 4>{1, 1, 1024, 1024},
                                                          {2, 3, 300, 300},
                                                          {1, 2, 100, 700},
                                                          {1, 1, 2500, 2500},
                                                          {1, 1, 192, 192}}) {
          if (!params.empty() && info.name != "full") continue;
          const AttentionShape shape{batch, heads, q_len, kv_len, 16, causal};
          if (info.why_not(shape, Params(info.name, info.params, params))) continue;
          for (const int count : {1, 2, 4}) {
            set_threads(count);
            const auto attention = info.build({heads, 16, kv_len, causal, 1, {}}, params);
            const Use got = measure(*attention, shape);
            const Cost want = attention->cost(shape);
            // Declared is what one thread does. Prefix sums (a linear time without a window) are
            // made once more, for the pieces, where heads are too few for the threads.
            const bool has_sums = info.traits.permutable || info.family == "kernel";
            const bool sums_again = info.traits.linear_time && has_sums && causal && heads < count;
            EXPECT_GE(got.flops / want.flops, 1 - 1e-9)
                << info.name << " " << q_len << "x" << kv_len << " causal " << causal;
            EXPECT_LE(got.flops / want.flops, sums_again ? (count == 2 ? 1.2 : 1.6) : 1 + 1e-9)
                << info.name << " " << q_len << "x" << kv_len << " causal " << causal;
            EXPECT_NEAR(got.peak_bytes / want.peak_bytes, 1, 0.01)
                << info.name << " " << q_len << "x" << kv_len << " causal " << causal << " threads "
                << count;
          }
        }
  set_threads(before);
}

TEST(Attention, ASharedProjectionIsReadOnce) {
  const auto bytes = [](bool shared) {
    const auto attention =
        find_variant("linformer")
            .build({2, 16, 128, false, 1, {}}, {{"share_kv", shared}, {"rank", int64_t{32}}});
    return attention->cost({1, 2, 128, 128, 16, false}).bytes;
  };
  EXPECT_EQ(bytes(false) - bytes(true), 32 * 128 * sizeof(real));
}

TEST(Attention, PeakMemoryGrowsAsDeclared) {
  const auto exponent = [](const std::map<std::string, ParamValue>& params, int64_t longest) {
    const auto attention = find_variant("full").build({1, 16, longest, true, 1, {}}, params);
    const AttentionShape low{1, 1, 1024, 1024, 16, true}, high{1, 1, longest, longest, 16, true};
    return std::log(measure(*attention, high).peak_bytes / measure(*attention, low).peak_bytes) /
           std::log(static_cast<double>(longest) / 1024);
  };
  EXPECT_LE(exponent({}, 4096), 1.05);
  EXPECT_GE(exponent({{"kernel", std::string("materialized")}}, 2048), 1.9);
  const auto attention = find_variant("full").build({1, 64, 16384, false, 1, {}}, {});
  const AttentionShape low{1, 1, 1024, 1024, 64, false}, high{1, 1, 16384, 16384, 64, false};
  EXPECT_LE(
      std::log(attention->cost(high).peak_bytes / attention->cost(low).peak_bytes) / std::log(16.0),
      1.05);
}

// Queries, keys and values that are one Var: its gradient is the sum of those that three leaves of
// equal values get. Every variant, one head that several threads share.

#ifdef ATTN_SANITIZED  // which see what threads share without waiting for them to meet
constexpr int64_t kLen = 150, kDim = 64;
#else
constexpr int64_t kLen = 600, kDim = 64;
#endif

using Inputs = std::array<int, 3>;  // which leaf is the queries, the keys, the values

struct Given {
  std::string variant;
  std::map<std::string, ParamValue> params = {};
};

void PrintTo(const Given& given, std::ostream* out) {
  *out << given.variant;
  for (const auto& [name, value] : given.params) *out << " " << name << "=" << to_string(value);
}

class SharedInputs : public testing::TestWithParam<Given> {
 protected:
  void TearDown() override { set_threads(before_); }

  // The gradient of each leaf; undefined where none arrived.
  std::vector<Tensor> gradients(const std::vector<Var>& leaves, const Inputs& which) const {
    const auto leaf = [&](size_t i) { return leaves[static_cast<size_t>(which[i])]; };
    const auto attention =
        find_variant(GetParam().variant).build({1, kDim, kLen, false, 3, {}}, GetParam().params);
    const std::vector<Var> gates = leaves_of(random_gates(attention->gates(), 1, 1, kLen, 3));
    const Var out = attention->forward(leaf(0), leaf(1), leaf(2), {}, gates);
    out.backward(bridge::normal(out.shape(), "seed"));
    std::vector<Tensor> grads = bridge::grads_of(leaves);
    return grads;
  }

 private:
  int before_ = threads();
};

TEST_P(SharedInputs, GradientsAddUp) {
  const Tensor x = bridge::normal({1, 1, kLen, kDim}, "x");
  for (const int count : {1, 2}) {
    set_threads(count);
    const std::vector<Var> three = {Var(x, true), Var(x, true), Var(x, true)};
    const std::vector<Tensor> apart = gradients(three, {0, 1, 2});
    for (const Inputs& which : {Inputs{0, 0, 0}, {0, 0, 1}, {1, 0, 0}, {0, 1, 0}}) {
      SCOPED_TRACE(testing::Message()
                   << count << " threads, leaves " << which[0] << which[1] << which[2]);
      const std::vector<Var> leaves = {Var(x, true), Var(x, true)};
      const std::vector<Tensor> shared = gradients(leaves, which);
      double largest = 0, worst = 0;
      for (int leaf = 0; leaf < 2; ++leaf)
        for (int64_t i = 0; i < x.size(); ++i) {
          double want = 0, size = 0;
          for (size_t input = 0; input < 3; ++input) {
            if (which[input] != leaf || !apart[input].defined()) continue;
            want += static_cast<double>(apart[input][i]);
            size += std::fabs(static_cast<double>(apart[input][i]));
          }
          const Tensor& held = shared[static_cast<size_t>(leaf)];
          const double got = held.defined() ? static_cast<double>(held[i]) : 0;
          ASSERT_TRUE(std::isfinite(got));
          largest = std::max(largest, size);
          worst = std::max(worst, std::fabs(got - want));
        }
      // Ops that come one after the other add their tiles of at least 24 positions into one buffer
      // in another order: each addition rounds by half an epsilon of what is there.
      const double additions = static_cast<double>(3 * kLen) / 24;
      EXPECT_GT(largest, 0);
      EXPECT_TRUE(worst <= additions * static_cast<double>(kEpsilon) / 2 * largest)
          << worst << " of " << largest;
    }
  }
}

// With their defaults, and with each choice of a parameter that names some.
std::vector<Given> everything() {
  std::vector<Given> all;
  const AttentionShape shape{
      .batch = 1, .heads = 1, .q_len = kLen, .kv_len = kLen, .head_dim = kDim, .causal = false};
  for (const VariantInfo& info : all_variants()) {
    std::vector<Given> some = {{info.name}};
    for (const ParamSpec& spec : info.params)
      for (const std::string& choice : spec.choices)
        if (choice != to_string(spec.value) &&
            !effective(info.params, {{spec.name, choice}}).empty())
          some.push_back({info.name, {{spec.name, choice}}});
    for (const Given& given : some)
      if (!info.why_not(shape, Params(info.name, info.params, given.params))) all.push_back(given);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Catalog, SharedInputs, testing::ValuesIn(everything()),
                         [](const auto& test) {
                           std::string name = test.param.variant;
                           for (const auto& [key, value] : test.param.params)
                             name += "_" + key + "_" + to_string(value);
                           return name;
                         });

// The cache of the last value: made once for a key, anew for another, by one of several threads.

TEST(Cached, MakesAValueOnceForEachKeyInARow) {
  const Cached<int64_t, int64_t> cached;
  int made = 0;
  const auto get = [&](int64_t key) {
    return cached.get(key, [&] {
      ++made;
      return std::make_shared<const int64_t>(10 * key);
    });
  };
  const auto first = get(0);  // the default of a key is no key yet
  EXPECT_EQ(*first, 0);
  EXPECT_EQ(get(0), first);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(*get(7), 70);
  EXPECT_EQ(*first, 0) << "who holds a value keeps it";
  EXPECT_EQ(*get(0), 0);
  EXPECT_EQ(made, 3);
}

// Of packed sequences: values of so many lengths, and of one batch beside them.
TEST(Cached, KeepsAsManyAsAreAskedFor) {
  const Cached<int64_t, int64_t> cached;
  int made = 0;
  const auto get = [&](int64_t key) {
    return *cached.get(key, [&] {
      ++made;
      return std::make_shared<const int64_t>(10 * key);
    });
  };
  cached.keep(3);
  for (int round = 0; round < 3; ++round)
    for (const int64_t key : {5, 6, 7, 100}) EXPECT_EQ(get(key), 10 * key);
  EXPECT_EQ(made, 4);
  EXPECT_EQ(get(8), 80);  // the oldest goes: 5
  EXPECT_EQ(get(6), 60);
  EXPECT_EQ(made, 5);
  EXPECT_EQ(get(5), 50);
  EXPECT_EQ(made, 6);
  cached.keep(1);  // 5 and 6 stay
  get(6), get(5);
  EXPECT_EQ(made, 6);
  get(8);
  EXPECT_EQ(made, 7);
}

TEST(Cached, ServesSeveralThreads) {
  const Cached<int64_t, int64_t> cached;
  set_threads(4);
  parallel_for(400, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      EXPECT_EQ(*cached.get(i % 3, [&] { return std::make_shared<const int64_t>(i % 3); }), i % 3);
  });
  set_threads(1);
}

}  // namespace
}  // namespace attn::attention_test
