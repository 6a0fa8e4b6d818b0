// Reach against what is known: patterns by brute force over which key a query sees, gradients by
// small perturbations, and causality of every variant.
#include "harness/measure/reach.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "variants/catalog.h"

namespace attn::reach_test {
namespace {

WorkloadSpec spec_of(const std::string& name, std::map<std::string, ParamValue> params, bool causal,
                     int64_t length = 48) {
  WorkloadSpec spec;
  spec.variant = &find_variant(name);
  spec.params = std::move(params);
  spec.length = length;
  spec.heads = 2;
  spec.head_dim = 8;
  spec.causal = causal;
  spec.seed = 5;
  return spec;
}

using Sees = std::function<bool(int64_t i, int64_t j)>;

// Whether output i depends on input j through so many layers of a pattern.
Sees stacked(const Sees& sees, int64_t length, int64_t layers) {
  const auto at = [length](int64_t i, int64_t j) { return static_cast<size_t>(i * length + j); };
  std::vector<char> reached(static_cast<size_t>(length * length));
  for (int64_t i = 0; i < length; ++i) reached[at(i, i)] = 1;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const std::vector<char> before = reached;
    for (int64_t i = 0; i < length; ++i)
      for (int64_t k = 0; k < length; ++k)
        if (i == k || sees(i, k))
          for (int64_t j = 0; j < length; ++j) reached[at(i, j)] |= before[at(k, j)];
  }
  return [reached, at](int64_t i, int64_t j) { return reached[at(i, j)] != 0; };
}

struct Case {
  std::string name;
  std::map<std::string, ParamValue> params;
  bool causal;
  Sees sees;
};

std::vector<Case> cases() {
  const auto window = [](int64_t w) { return std::map<std::string, ParamValue>{{"window", w}}; };
  const std::map<std::string, ParamValue> blocks = {{"block", int64_t{8}},
                                                    {"look_back", int64_t{1}}};
  return {
      {"truncated", window(3), false, [](auto i, auto j) { return std::abs(i - j) <= 3; }},
      {"truncated", window(3), true, [](auto i, auto j) { return j <= i && i - j <= 3; }},
      {"full", {}, false, [](auto, auto) { return true; }},
      {"full", {}, true, [](auto i, auto j) { return j <= i; }},
      {"conv",
       {{"kernel", int64_t{5}}},
       false,
       [](auto i, auto j) { return std::abs(i - j) <= 2; }},
      {"conv", {{"kernel", int64_t{5}}}, true, [](auto i, auto j) { return j <= i && i - j <= 4; }},
      {"local", blocks, false, [](auto i, auto j) { return j / 8 == i / 8 || j / 8 == i / 8 - 1; }},
      {"local", blocks, true, [](auto i, auto j) { return j <= i && j / 8 >= i / 8 - 1; }}};
}

// The largest distances at which half of the pairs of probed positions are reached, or one is.
ReachDistances expected(const Sees& reached, const std::vector<int64_t>& outputs,
                        const std::vector<int64_t>& inputs, bool half) {
  std::map<int64_t, std::pair<int64_t, int64_t>> counts;  // of all pairs, of the reached
  for (const int64_t i : outputs)
    for (const int64_t j : inputs) {
      auto& [all, own] = counts[i - j];
      ++all;
      own += reached(i, j);
    }
  ReachDistances found;
  for (const auto& [distance, count] : counts)
    if (count.second > 0 && (!half || 2 * count.second >= count.first)) {
      found.past = std::max(found.past, distance);
      found.future = std::max(found.future, -distance);
    }
  return found;
}

void expect_same(const ReachDistances& found, const ReachDistances& wanted) {
  EXPECT_EQ(found.past, wanted.past);
  EXPECT_EQ(found.future, wanted.future);
}

TEST(Reach, IsWhatThePatternAllows) {
  constexpr int64_t kLength = 48;
  const std::vector<int64_t> probed = reach_positions(kLength, 5);
  std::vector<int64_t> all;
  for (int64_t i = 0; i < kLength; ++i) all.push_back(i);
  for (const Case& one : cases())
    for (const int64_t layers : {1, 2}) {
      SCOPED_TRACE(fmt::format("{} causal={} layers={}", one.name, one.causal, layers));
      const Sees reached = stacked(one.sees, kLength, layers);
      const ReachFigures found = measure_reach(spec_of(one.name, one.params, one.causal), layers);
      expect_same(found.connected, expected(reached, probed, all, false));
      expect_same(found.gradient, expected(reached, probed, all, true));
      expect_same(found.perturbation, expected(reached, all, probed, true));
    }
}

// A window of w and L layers reach L·w, causal or not, though a path of L such steps is a product
// of L small weights.
TEST(Reach, OfAWindowIsLayersTimesWindow) {
  for (const bool causal : {false, true})
    for (const int64_t layers : {1, 2, 4})
      for (const int64_t window : {1, 8}) {
        SCOPED_TRACE(fmt::format("window={} layers={} causal={}", window, layers, causal));
        const ReachFigures found =
            measure_reach(spec_of("truncated", {{"window", window}}, causal), layers);
        const ReachDistances wanted = {layers * window, causal ? 0 : layers * window};
        expect_same(found.connected, wanted);
        if (window == 1) expect_same(found.perturbation, wanted);
        EXPECT_LE(found.perturbation.past, wanted.past);
      }
}

// Direction u at output i, change d of input j: (out(x + e·d) - out(x - e·d))·u / 2e is
// gradient·d but for e² and rounding.
TEST(Reach, TheGradientIsWhatASmallPerturbationMoves) {
  constexpr double kStep = 0.02;
  for (const char* name : {"full", "linear", "truncated", "conv"}) {
    const ReachProbe probe(spec_of(name, {}, true, 24), 2);
    const int64_t width = probe.input().dim(2), i = 20;
    const Tensor u = Tensor::normal({width}, rng(1, "u")), d = Tensor::normal({width}, rng(2, "d"));
    const Tensor gradient = probe.gradient(i, u);
    for (const int64_t j : {1, 12, 19, 20, 22}) {
      double moved = 0, told = 0, size = 0;
      for (const double sign : {1.0, -1.0}) {
        const Tensor x = probe.input().clone();
        for (int64_t c = 0; c < width; ++c)
          x[j * width + c] += static_cast<real>(sign * kStep * d[c]);
        const Tensor y = probe.output(x);
        for (int64_t c = 0; c < width; ++c) moved += sign * y[i * width + c] * u[c] / (2 * kStep);
      }
      for (int64_t c = 0; c < width; ++c) {
        told += static_cast<double>(gradient[j * width + c]) * d[c];
        size += std::pow(gradient[j * width + c], 2);
      }
      // e²·(third derivative) is some 1e-3 of the gradient; 1e-6 of an output of norm 4 over 2e.
      EXPECT_NEAR(moved, told, 0.02 * std::sqrt(size * static_cast<double>(width)) + 5e-4)
          << name << " input " << j;
      EXPECT_TRUE(j <= i || size == 0) << name << " input " << j;
      EXPECT_TRUE(size > 0 || (j != i && j != i - 1)) << name << " input " << j;
    }
  }
}

TEST(Reach, OfWhatIsCausalIsNeverForward) {
  for (const VariantInfo& info : all_variants()) {
    const WorkloadSpec spec = spec_of(info.name, {}, true, 20);
    if (why_not(spec)) continue;
    const ReachFigures found = measure_reach(spec, 2);
    EXPECT_EQ(found.connected.future, 0) << info.name;
    EXPECT_EQ(found.gradient.future, 0) << info.name;
    EXPECT_EQ(found.perturbation.future, 0) << info.name;
    // The initial weights of gau are so small that no other input moves an output past the floor.
    EXPECT_GT(info.name == "gau" ? found.connected.past : found.perturbation.past, 0) << info.name;
    for (const Influence& at : found.by_distance)
      EXPECT_TRUE(at.distance >= 0 || at.gradient == 0) << info.name << " at " << at.distance;
  }
}

// Nobody attends: what is left is the residual.
TEST(Reach, AnInputMovesItsOwnOutputMost) {
  const ReachFigures found = measure_reach(spec_of("full", {}, false), 1);
  const auto own = std::find_if(found.by_distance.begin(), found.by_distance.end(),
                                [](const Influence& at) { return at.distance == 0; });
  ASSERT_NE(own, found.by_distance.end());
  EXPECT_NEAR(own->gradient, 1, 0.5) << "a residual connection, then a layer norm";
  for (const Influence& at : found.by_distance)
    if (at.distance != 0) {
      EXPECT_LT(at.gradient, own->gradient / 4);
      EXPECT_LT(at.perturbation, own->perturbation / 4);
      EXPECT_GT(at.perturbation, kReachFloor);
    }
}

TEST(Reach, DistancesAndPositionsSpanTheSequence) {
  EXPECT_EQ(reach_distances(1), std::vector<int64_t>{0});
  EXPECT_EQ(reach_distances(2), (std::vector<int64_t>{-1, 0, 1}));
  EXPECT_EQ(reach_distances(11),
            (std::vector<int64_t>{-10, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 10}));
  for (const int64_t length : {1, 2, 15, 16, 17, 18, 1000}) {
    const std::vector<int64_t> positions = reach_positions(length, 3);
    EXPECT_EQ(std::ssize(positions), std::min(length, kReachPositions)) << length;
    EXPECT_EQ(positions.front(), 0);
    EXPECT_EQ(positions.back(), length - 1);
    EXPECT_TRUE(std::is_sorted(positions.begin(), positions.end()));
    EXPECT_EQ(std::adjacent_find(positions.begin(), positions.end()), positions.end()) << length;
  }
}

}  // namespace
}  // namespace attn::reach_test
