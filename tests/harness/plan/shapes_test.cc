// Shapes of models: what a file may say, the cells that a shape stands for, and constant tokens.
#include "harness/plan/shapes.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/harness/plan/planned.h"

namespace attn::shapes_test {
namespace {

std::string fault_in(const std::string& text) {
  return fault_of([&] { read_shapes("own.toml", text); });
}

SweepRequest at(const std::string& name, std::map<std::string, std::string> axes) {
  SweepRequest request = request_with(std::move(axes));
  request.shapes = {find_shape(name)};
  return request;
}

TEST(Shapes, EveryLayerCanReadAPromptAndDecode) {
  for (const ModelShape& shape : all_shapes()) {
    const Plan planned = plan(at(shape.name, {{"mode", "forward,decode"}, {"length", "256"}}));
    EXPECT_EQ(planned.cells.size(), 2 * shape.layers.size()) << shape.name;
    for (const Cell& cell : planned.cells) EXPECT_EQ(cell.skip, "") << shape.name;
    EXPECT_NE(shape.source, "") << shape.name;
  }
}

TEST(Shapes, ACellIsThatOfItsAxesByHand) {
  const Plan planned = plan(at("gemma3-4b", {{"length", "256"}}));
  ASSERT_EQ(planned.cells.size(), 2u);
  std::set<std::string> found;
  for (const Cell& cell : planned.cells) found.insert(cell.id);
  EXPECT_EQ(found, ids(request_with({{"length", "256"},
                                     {"causal", "true"},
                                     {"heads", "8"},
                                     {"kv_heads", "4"},
                                     {"head_dim", "256"}},
                                    {"truncated[window=1023]", "full"})));
}

TEST(Shapes, HideTheFutureUnlessTold) {
  EXPECT_TRUE(plan(at("llama3-8b", {{"length", "256"}})).cells.at(0).key.axes.causal.value());
  const SweepRequest both = at("llama3-8b", {{"length", "256"}, {"causal", "false"}});
  EXPECT_FALSE(plan(both).cells.at(0).key.axes.causal.value());
}

// Models share layers, and a variant of one's own has the heads of each kind of layer once.
TEST(Shapes, WhatIsTheSameIsMeasuredOnce) {
  SweepRequest request = at("gemma3-4b", {{"length", "256"}});
  request.variants = {"linear"};
  ASSERT_EQ(plan(request).cells.size(), 1u);
  EXPECT_EQ(plan(request).cells[0].key.variant.name, "linear");
  EXPECT_EQ(plan(request).cells[0].key.axes.heads, 8);
  request.shapes.push_back(find_shape("gemma3-4b"));
  EXPECT_EQ(plan(request).cells.size(), 1u);
}

TEST(Shapes, AnAxisIsGivenOnce) {
  EXPECT_TRUE(says(error_of(at("llama3-8b", {{"heads", "4"}})), "heads=4"));
  EXPECT_TRUE(says(error_of(at("llama3-8b", {{"head_dim", "64"}})), "head_dim=64"));
  SweepRequest trained = at("llama3-8b", {{"measure", "accuracy"}});
  trained.tasks = {"mqar"};
  EXPECT_TRUE(says(error_of(trained), "does not apply to measure accuracy"));
  EXPECT_TRUE(says(fault_of([] { find_shape("lama3-8b"); }), "nearest is 'llama3-8b'"));
}

TEST(Shapes, TokensAreConstant) {
  SweepRequest request = request_with({{"length", "64:256:*2"}}, {"full"});
  request.tokens = 512;
  std::vector<std::pair<int64_t, int64_t>> sizes;
  for (const Cell& cell : plan(request).cells)
    sizes.emplace_back(*cell.key.axes.length, *cell.key.axes.batch);
  EXPECT_EQ(sizes, (std::vector<std::pair<int64_t, int64_t>>{{64, 8}, {128, 4}, {256, 2}}));
  request.axes["length"] = "64,96";
  EXPECT_TRUE(says(error_of(request), "no whole number of sequences of length 96"));
  request.axes = {{"length", "1024"}};
  EXPECT_TRUE(says(error_of(request), "of length 1024")) << "longer than all tokens";
  request.axes = {{"length", "64"}, {"batch", "2"}};
  EXPECT_TRUE(says(error_of(request), "a batch are both given"));
}

TEST(Shapes, AFileSaysWhereItIsWrong) {
  const std::string good =
      "[[shape]]\nname = \"own\"\nlayers = [{ variant = \"full\", heads = 4, head_dim = 32 }]\n";
  const ModelShape own = read_shapes("own.toml", good).at(0);
  EXPECT_EQ(own.layers[0].count, 1);
  EXPECT_EQ(own.layers[0].kv_heads, 0);
  EXPECT_TRUE(says(fault_in(good + good), "own.toml:4: there are two shapes 'own'"));
  EXPECT_TRUE(says(fault_in("name = \"x\""), "own.toml:1: unknown key 'name'"));
  EXPECT_TRUE(says(fault_in(""), "there is no shape"));
  EXPECT_TRUE(says(fault_in("[[shape]]\nname = \"x\""), "shape 'x' has no list of layers"));
  const auto layer = [](const std::string& text) {
    return fault_in("[[shape]]\nname = \"x\"\nlayers = [\n" + text + "]\n");
  };
  EXPECT_TRUE(says(layer("{ variant = \"ful\", heads = 4, head_dim = 32 }"), "own.toml:4: "));
  EXPECT_TRUE(says(layer("{ variant = \"ful\", heads = 4, head_dim = 32 }"), "'full'"));
  EXPECT_TRUE(says(layer("{ variant = \"truncated[window=[7,15]]\", heads = 4, head_dim = 32 }"),
                   "a layer is of one variant"));
  EXPECT_TRUE(says(layer("{ heads = 4, head_dim = 32 }"), "there is no variant"));
  EXPECT_TRUE(says(layer("{ variant = \"full\", head_dim = 32 }"), "there is no heads"));
  EXPECT_TRUE(says(layer("{ variant = \"full\", heads = 0, head_dim = 32 }"), "heads"));
  EXPECT_TRUE(says(layer("{ variant = \"full\", heads = \"4\", head_dim = 32 }"),
                   "expected a whole number"));
  EXPECT_TRUE(says(layer("{ variant = \"full\", heads = 4, head_dim = 32, layers = 2 }"),
                   "unknown key 'layers'"));
}

}  // namespace
}  // namespace attn::shapes_test
