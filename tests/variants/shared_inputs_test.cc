// Queries, keys and values that are one Var: its gradient is the sum of those that three leaves of
// equal values get. Every variant, one head that several threads share.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/parallel.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/catalog.h"

namespace attn::shared_inputs_test {
namespace {

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
    std::vector<Tensor> grads;
    for (const Var& var : leaves) grads.push_back(var.grad());
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
        if (choice != to_string(spec.value)) some.push_back({info.name, {{spec.name, choice}}});
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

}  // namespace
}  // namespace attn::shared_inputs_test
