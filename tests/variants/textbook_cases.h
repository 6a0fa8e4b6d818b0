// The masks and lengths that the textbook's variants are compared with their oracles at.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/variants/oracle_bridge.h"
#include "variants/catalog.h"

namespace attn::textbook_cases {

// twin(x, seen) of q, k, v and the variant's weights.
using Twin =
    std::function<oracle::Array(const std::vector<oracle::Array>&, const oracle::Visibility&)>;

// Forward and all gradients: causal or not, padded (with NaN) or not, odd lengths, tiles cut.
inline void expect_oracle(const std::string& name, const std::map<std::string, ParamValue>& params,
                          int64_t dim, double scale, const Twin& twin) {
  for (const bool causal : {false, true})
    for (const bool padded : {false, true})
      for (const auto& [q_len, kv_len] :
           {std::pair<int64_t, int64_t>{37, 37}, {5, 33}, {34, 9}, {1, 1}, {101, 263}}) {
        SCOPED_TRACE(testing::Message() << name << " " << q_len << "x" << kv_len << " causal "
                                        << causal << " padded " << padded);
        const auto attention = find_variant(name).build({2, dim, kv_len, causal, 3, {}}, params);
        Mask mask{causal, {}};
        if (padded) mask.kv_lengths = {kv_len / 2, kv_len - 1};
        const oracle::Visibility seen{causal, mask.kv_lengths};
        std::vector<Tensor> inputs = {bridge::normal({2, 2, q_len, dim}, "q", scale),
                                      bridge::normal({2, 2, kv_len, dim}, "k", scale),
                                      bridge::normal({2, 2, kv_len, dim}, "v")};
        for (const size_t which : {1, 2})
          bridge::fill_padding(inputs[which], mask.kv_lengths, bridge::kNaN);
        std::vector<Var> vars;
        for (const Tensor& t : inputs) vars.emplace_back(t, true);
        for (const Weight& weight : attention->weights()) {
          vars.push_back(weight.value);
          inputs.push_back(weight.value.value());
        }
        std::vector<oracle::Array> arrays = bridge::arrays_of(inputs);
        const Var out = attention->forward(vars[0], vars[1], vars[2], mask);
        // Rounding of dot products, exp and ratios of some 300 terms: some tens of epsilons.
        EXPECT_LE(bridge::relative_error(out.value(), twin(arrays, seen).x),
                  100 * scale * kEpsilon);
        const Tensor seed = bridge::normal(out.shape(), "seed");
        out.backward(seed);
        std::vector<Tensor> grads = bridge::grads_of(vars);
        if (kv_len < 100)
          bridge::expect_gradients(
              inputs, grads, seed,
              [&](const std::vector<oracle::Array>& x) { return twin(x, seen); }, 1e-7);
      }
}

// Row i of the last of x's positions, decoded one by one after `prefill`, against the forward.
inline void expect_decoding(const std::string& name,
                            const std::map<std::string, ParamValue>& params, double scale,
                            int64_t length = 70, int64_t prefill = 3) {
  constexpr int64_t kDim = 6;
  const auto attention = find_variant(name).build({2, kDim, length, true, 3, {}}, params);
  const NoGrad no_grad;
  const Tensor q = bridge::normal({2, 2, length, kDim}, "q", scale),
               k = bridge::normal({2, 2, length, kDim}, "k", scale),
               v = bridge::normal({2, 2, length, kDim}, "v");
  const Tensor want = attention->forward(Var(q), Var(k), Var(v), {.causal = true}).value();
  const auto decoder = attention->decoder(2, length);
  const auto rows = [&](const Tensor& t, int64_t from, int64_t to) {
    const Tensor part({2, 2, to - from, kDim});
    for (int64_t h = 0; h < 4; ++h)
      std::copy_n(t.data() + (h * length + from) * kDim, (to - from) * kDim,
                  part.data() + h * (to - from) * kDim);
    return part;
  };
  decoder->extend(rows(k, 0, prefill), rows(v, 0, prefill), rows(q, 0, prefill));
  for (int64_t i = prefill; i < length; ++i) {
    const Tensor out({2, 2, 1, kDim});
    decoder->step(rows(q, i, i + 1), rows(k, i, i + 1), rows(v, i, i + 1), out);
    ASSERT_TRUE(bridge::relative_error(out, bridge::array_of(rows(want, i, i + 1)).x) <=
                200 * scale * kEpsilon)
        << i;
  }
}

}  // namespace attn::textbook_cases
