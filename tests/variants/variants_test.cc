// Every variant against its twin in tests/oracle: forward and gradients, causal or not, padded
// (with NaN) or not, self or cross.
#include <gtest/gtest.h>

#include <set>

#include "tests/variants/oracle_bridge.h"
#include "variants/api/distance_bias.h"
#include "variants/api/mimicry.h"
#include "variants/catalog.h"

namespace attn::variants_test {
namespace {

using bridge::array_of;

struct Case {
  std::string variant;
  std::map<std::string, ParamValue> params;
  bool causal = false, padded = false;
  int64_t q_len = 0, kv_len = 0;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.variant << (c.causal ? " causal" : "") << (c.padded ? " padded " : " ") << c.q_len
       << "x" << c.kv_len;
  for (const auto& [name, value] : c.params) *out << " " << name << "=" << to_string(value);
}

// What the oracle computes for this variant; `weights` are its arrays, in the order of
// Attention::weights().
oracle::Array twin_of(const Case& c, const std::vector<oracle::Array>& x,
                      const oracle::Visibility& seen) {
  if (c.variant == "linformer")
    return oracle::linformer(x[0], x[1], x[2], x[3], x.size() > 4 ? x[4] : x[3], seen);
  if (c.variant == "linear")
    return oracle::kernel_attention(x[0], x[1], x[2], seen, oracle::elu_plus_one());
  if (c.variant == "performer" && c.params.count("as"))
    return oracle::kernel_attention(x[0], x[1], x[2], seen, oracle::relu_plain(1e-3));
  if (c.variant == "performer")
    return oracle::kernel_attention(
        x[0], x[1], x[2], seen,
        c.params.count("kernel") ? oracle::relu_random(x[3], 1e-3) : oracle::positive_random(x[3]));
  return oracle::softmax_attention(x[0], x[1], x[2], seen);
}

class VariantOracle : public testing::TestWithParam<Case> {};

TEST_P(VariantOracle, ForwardAndGradients) {
  const Case& c = GetParam();
  constexpr int64_t kBatch = 2, kHeads = 2, kDim = 5;
  AttentionConfig config{kHeads, kDim, c.kv_len + 3, c.causal, 3, {}};
  const auto attention = find_variant(c.variant).build(config, c.params);
  Mask mask{c.causal, {}};
  if (c.padded) mask.kv_lengths = {c.kv_len / 2, c.kv_len - 1};
  oracle::Visibility seen{c.causal, mask.kv_lengths, -1};
  if (c.params.count("window")) seen.window = std::get<int64_t>(c.params.at("window"));

  std::vector<Tensor> inputs = {bridge::normal({kBatch, kHeads, c.q_len, kDim}, "q"),
                                bridge::normal({kBatch, kHeads, c.kv_len, kDim}, "k"),
                                bridge::normal({kBatch, kHeads, c.kv_len, kDim}, "v")};
  for (const int which : {1, 2})
    bridge::fill_padding(inputs[static_cast<size_t>(which)], mask.kv_lengths, bridge::kNaN);
  std::vector<Var> vars;
  for (const Tensor& t : inputs) vars.emplace_back(t, true);
  size_t learned = 3;
  for (const Weight& weight : attention->weights()) {
    inputs.push_back(weight.value.value());
    vars.push_back(weight.value);
    learned += weight.learned;
  }
  const oracle::Array want = twin_of(c,
                                     {array_of(inputs[0]), array_of(inputs[1]), array_of(inputs[2]),
                                      array_of(inputs.size() > 3 ? inputs[3] : inputs[0]),
                                      array_of(inputs.size() > 4 ? inputs[4] : inputs.back())},
                                     seen);
  const Var out = attention->forward(vars[0], vars[1], vars[2], mask);
  // Rounding of dot products, exp and ratios of about 300 terms: some tens of epsilons.
  EXPECT_LE(bridge::relative_error(out.value(), want.x), 100 * kEpsilon);

  const Tensor seed = bridge::normal(out.shape(), "seed");
  out.backward(seed);
  std::vector<Tensor> grads,
      moved(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(learned));
  for (size_t i = 0; i < learned; ++i) grads.push_back(vars[i].grad());
  bridge::expect_gradients(moved, grads, seed, [&](const std::vector<oracle::Array>& x) {
    std::vector<oracle::Array> all = x;
    for (size_t i = learned; i < inputs.size(); ++i) all.push_back(array_of(inputs[i]));
    return twin_of(c, all, seen);
  });
}

std::vector<Case> cases() {
  const std::vector<std::pair<std::string, std::map<std::string, ParamValue>>> variants = {
      {"full", {}},
      {"full", {{"kernel", std::string("materialized")}}},
      {"truncated", {{"window", int64_t{7}}}},
      {"linformer", {{"rank", int64_t{6}}}},
      {"linformer", {{"rank", int64_t{6}}, {"share_heads", false}, {"share_kv", true}}},
      {"performer", {{"features", int64_t{12}}}},
      {"performer", {{"features", int64_t{12}}, {"orthogonal", false}}},
      {"performer", {{"features", int64_t{12}}, {"kernel", std::string("relu")}}},
      {"performer", {{"as", std::string("lra")}}},
      {"linear", {}}};
  std::vector<Case> result;
  for (const auto& [name, params] : variants)
    for (const bool causal : {false, true})
      for (const bool padded : {false, true})
        for (const auto& [q_len, kv_len] :
             {std::pair<int64_t, int64_t>{37, 37}, {5, 33}, {34, 9}, {1, 1}}) {
          if (causal && !find_variant(name).traits.causal) continue;
          result.push_back({name, params, causal, padded, q_len, kv_len});
        }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Catalog, VariantOracle, testing::ValuesIn(cases()));

TEST(Variants, EmptyHeadsGiveZerosForwardAndBackward) {
  for (const VariantInfo& info : all_variants()) {
    const auto attention = info.build({2, 4, 6, false, 1, {}}, {});
    const Tensor garbage = Tensor::full({2, 2, 6, 4}, bridge::kNaN);
    const Var q(bridge::normal({2, 2, 6, 4}, "q"), true), k(garbage, true), v(garbage, true);
    std::vector<Tensor> gates = random_gates(attention->gates(), 2, 2, 6, 1);
    for (const Tensor& gate : gates) gate.fill(bridge::kNaN);
    const std::vector<Var> of_keys = leaves_of(gates, true);
    const Var out = attention->forward(q, k, v, {false, {0, 0}}, of_keys);
    for (const real value : out.value().values()) ASSERT_EQ(value, 0) << info.name;
    out.backward(bridge::normal(out.shape(), "seed"));
    std::vector<Var> all = {q, k, v};
    all.insert(all.end(), of_keys.begin(), of_keys.end());
    for (const Var& x : all) {
      if (!x.grad().defined()) continue;  // a variant may ignore queries or keys
      for (const real value : x.grad().values()) ASSERT_EQ(value, 0) << info.name;
    }
  }
}

TEST(Variants, LimitsReproduceSoftmaxAttention) {
  const AttentionShape square{
      .batch = 1, .heads = 2, .q_len = 40, .kv_len = 40, .head_dim = 8, .causal = false};
  const std::set<std::string> without_limit = {// what each equals instead is in its own test
                                               "linear",       "relu",
                                               "conv",         "recurrent",
                                               "window_mlp",   "mean",
                                               "additive",     "reformer",
                                               "gla",          "mamba2",
                                               "retention",    "deltanet",
                                               "kda",          "gated_deltanet",
                                               "lightning",    "hgrn2",
                                               "rwkv6",        "rwkv7",
                                               "long_conv",    "hyena",
                                               "fnet",         "gmlp",
                                               "h3",           "gau",
                                               "mamba",        "s4d",
                                               "lru",          "aft",
                                               "mega",         "log_linear",
                                               "ttt_linear",   "mesa",
                                               "path",         "fox",
                                               "nsa",          "csa",
                                               "sigmoid",      "qk_norm",
                                               "differential", "cosformer",
                                               "rfa",          "gated_rfa",
                                               "hedgehog",     "routing",
                                               "latent",       "luna",
                                               "induced",      "mla",
                                               "yoso",         "base_conv",
                                               "short_conv",   "rg_lru",
                                               "mlstm",        "gated_attention"};
  for (const VariantInfo& info : all_variants()) {
    AttentionShape shape = square;
    auto limit = info.limit ? info.limit(shape) : std::nullopt;
    if (info.limit && !limit) {  // of what never sees the future
      shape.causal = true;
      limit = info.limit(shape);
    }
    EXPECT_EQ(limit.has_value(), !info.traits.exact && without_limit.count(info.name) == 0)
        << info.name;
    if (!limit) continue;
    // Some can run under a causal mask alone.
    const bool causal =
        shape.causal ||
        info.why_not(shape, Params(info.name, info.params, limit->params)).has_value();
    const auto attention = info.build({2, 8, 45, causal, 1, {}}, limit->params);
    if (limit->prepare) limit->prepare(*attention);
    const Tensor q = bridge::normal({1, 2, 40, 8}, "q", limit->input_scale);
    const Tensor k = bridge::normal({1, 2, 40, 8}, "k", limit->input_scale),
                 v = bridge::normal({1, 2, 40, 8}, "v");
    const oracle::Array want =
        oracle::softmax_attention(array_of(q), array_of(k), array_of(v), {.causal = causal});
    const NoGrad no_grad;
    const double error = bridge::relative_error(
        attention->forward(Var(q), Var(k), Var(v), {causal, {}}).value(), want.x);
    EXPECT_TRUE(error <= (kIsDouble && limit->tolerance <= 1e-5 ? 1e-10 : limit->tolerance))
        << info.name << " " << error;
  }
}

// A trait that says what else a class derives from says it of every variant, whatever its
// parameters are.
TEST(Variants, TraitsOfFurtherInterfacesAreTheirs) {
  std::set<std::string> biased, mimicking;
  for (const VariantInfo& info : all_variants()) {
    const auto attention = info.build({2, 8, 6, info.traits.causal, 1, {}}, {});
    EXPECT_EQ(as_distance_biased(*attention) != nullptr, info.traits.distance_bias) << info.name;
    EXPECT_EQ(as_mimicking(*attention) != nullptr, info.traits.mimicry) << info.name;
    if (info.traits.distance_bias) biased.insert(info.name);
    if (info.traits.mimicry) mimicking.insert(info.name);
  }
  EXPECT_EQ(biased, (std::set<std::string>{"full", "truncated"}));
  EXPECT_EQ(mimicking, (std::set<std::string>{"dsa", "hedgehog"}));
}

TEST(Variants, LinformerRefusesLongerSequences) {
  const auto attention = find_variant("linformer").build({1, 4, 8, false, 1, {}}, {});
  const Var x(Tensor::zeros({1, 1, 9, 4}));
  EXPECT_THROW(attention->forward(x, x, x), Error);
}

}  // namespace
}  // namespace attn::variants_test
