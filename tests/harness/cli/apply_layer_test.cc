// `apply --scope layer` in double: the layer that float models have, with its weights by name.
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/ops.h"
#include "harness/check/double_checks.h"
#include "harness/cli/apply_run.h"
#include "harness/model/residual_blocks.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/catalog.h"

namespace attn::apply_layer_test {
namespace {

constexpr int64_t kBatch = 2, kLength = 21, kWidth = 24, kHeads = 3;

attn_apply::Values values_of(const Tensor& t) {
  attn_apply::Values values;
  for (int i = 0; i < t.shape().rank(); i++) values.shape.push_back(t.dim(i));
  values.values.assign(t.data(), t.data() + t.size());
  return values;
}

double largest_error(const Tensor& got, const std::vector<double>& want) {
  double error = got.size() == std::ssize(want) ? 0 : INFINITY, largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double difference = std::abs(got[static_cast<int64_t>(i)] - want[i]);
    if (!(difference <= error)) error = difference;
    largest = std::max(largest, std::abs(want[i]));
  }
  return error / largest;
}

attn_apply::LayerRequest request_of(const AttentionBlock& layer, const std::string& variant,
                                    const Tensor& x, const std::vector<int64_t>& lengths) {
  attn_apply::LayerRequest request = {.variant = variant,
                                      .params = {},
                                      .x = values_of(x),
                                      .heads = kHeads,
                                      .causal = true,
                                      .kv_lengths = lengths,
                                      .weights = {},
                                      .seed = 1,  // other weights, so that all must be set
                                      .grad_out = {}};
  for (const Weight& weight : layer.bare_weights())
    request.weights[weight.name] = values_of(weight.value.value());
  return request;
}

TEST(ApplyLayer, InDoubleItIsTheLayerOfModels) {
  if (!attn_check::checks_in_double()) GTEST_SKIP() << "this build has no double twins";
  const Tensor x = bridge::normal({kBatch, kLength, kWidth}, "x"),
               upstream = bridge::normal({kBatch, kLength, kWidth}, "upstream");
  const std::vector<int64_t> lengths = {kLength, 6};
  for (const std::string variant : {"full", "gla", "mamba", "path", "linear", "mamba2[block=paper]",
                                    "rwkv6[block=paper]", "fox[block=paper]", "s4d[block=paper]"}) {
    const AttentionBlock layer({.variant = &find_variant(variant),
                                .width = kWidth,
                                .heads = kHeads,
                                .max_len = kLength,
                                .causal = true},
                               "");
    const Var rows(x, true);
    const Var out = layer.bare(rows, {.causal = true, .kv_lengths = lengths});
    out.backward(upstream);
    attn_apply::LayerRequest request = request_of(layer, variant, x, lengths);
    request.grad_out = values_of(upstream);
    const attn_apply::LayerOutput found = attn_apply::layer_double(request);
    EXPECT_LE(largest_error(out.value(), found.out), 1e-5) << variant;
    EXPECT_LE(largest_error(rows.grad(), found.grad_x), 1e-4) << variant;
  }
}

TEST(ApplyLayer, RefusesNamesAndShapesOfOtherWeights) {
  if (!attn_check::checks_in_double()) GTEST_SKIP() << "this build has no double twins";
  const Tensor x = bridge::normal({kBatch, kLength, kWidth}, "x");
  attn_apply::LayerRequest request = {
      .variant = "full",
      .params = {},
      .x = values_of(x),
      .heads = kHeads,
      .kv_lengths = {},
      .weights = {{"W_Q", values_of(Tensor::zeros({kWidth, kWidth}))}},
      .grad_out = {}};
  const auto refusal = [&] {
    try {
      attn_apply::layer_double(request);
    } catch (const attn_apply::Refusal& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(refusal(), "--set W_Q: no such weight; nearest is 'W_q'");
  request.weights = {{"W_q", values_of(Tensor::zeros({kWidth, 2}))}};
  EXPECT_EQ(refusal(), "--set W_q: the array is [24, 2], the weight is [24, 24]");
}

}  // namespace
}  // namespace attn::apply_layer_test
