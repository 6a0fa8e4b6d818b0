// Layers of papers with one fault at a time: what the contract checks must catch. A fault stands in
// the block that is built; the reference is that of the right one.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/ops.h"
#include "harness/check/contract.h"
#include "tests/conformance/planted.h"
#include "variants/api/mixer.h"
#include "variants/block/block.h"
#include "variants/catalog.h"

namespace attn::planted_blocks_test {
namespace {

using attn_check::Level;
using Names = std::vector<std::string>;

bool holds(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The block of the variant, built with other data than it declares.
VariantInfo with_wrong_data(const std::string& variant,
                            const std::function<void(LayerBlock&)>& change) {
  static std::deque<VariantInfo> wrong;  // which the entries made of them refer to
  wrong.push_back(find_variant(variant));
  change(*wrong.back().block);
  VariantInfo info = paper_block(find_variant(variant));
  info.make = paper_block(wrong.back()).make;
  return info;
}

TEST(PlantedBlocks, WrongDataIsCaught) {
  using Norm = LayerBlock::Norm;
  const std::vector<std::pair<std::string, std::function<void(LayerBlock&)>>> faults = {
      {"mamba2", [](LayerBlock& b) { b.gate_before_norm = false; }},
      {"mamba2", [](LayerBlock& b) { b.norm = Norm::rms_of_heads, b.norms_each_head = true; }},
      {"hgrn2", [](LayerBlock& b) { b.silu_queries = false; }},
      {"deltanet", [](LayerBlock& b) { b.silu_keys = false; }},
      {"deltanet", [](LayerBlock& b) { b.norm_epsilon = 0.1; }},
      {"gla", [](LayerBlock& b) { b.gate = LayerBlock::Gate::sigmoid; }},
      {"s4d", [](LayerBlock& b) { b.gelu = false; }},
      {"rwkv6", [](LayerBlock& b) { b.tanh_gates.clear(); }},
      {"lightning", [](LayerBlock& b) { b.silu_queries = false; }},
      {"fox", [](LayerBlock& b) { b.norm = Norm::rms; }}};
  for (size_t i = 0; i < faults.size(); ++i) {
    const auto& [variant, change] = faults[i];
    EXPECT_TRUE(
        holds(red(check_variant(with_wrong_data(variant, change), {}, Level::quick, "reference")),
              "reference"))
        << variant << ", fault " << i;
  }
}

enum class Fault {
  none,
  sees_the_next,
  reads_padding,
  forgets_rows,
  no_skip_in_steps,
  no_gain_in_steps
};

// A right block whose pass, or whose decoder, has a fault.
class Planted final : public Mixer {
 public:
  Planted(const AttentionConfig& config, const VariantInfo& of, Fault fault)
      : Mixer(config),
        fault_(fault),
        right_(of.build(config, config.params.values())),
        other_(of.build(config, config.params.values())) {
    adopt_weights("", *right_);
  }

 private:
  Var do_mix(const Var& x, const Mask& mask) const override {
    const Mixer& block = *as_mixer(*right_);
    if (fault_ == Fault::reads_padding) return block.mix(x, {.causal = mask.causal});
    if (fault_ != Fault::sees_the_next || x.dim(1) < 2) return block.mix(x, mask);
    const std::vector<Var> rows = {slice(x, 1, 1, x.dim(1)), slice(x, 1, x.dim(1) - 1, x.dim(1))};
    return block.mix(concat(rows, 1), mask);
  }

  // Of a block with the same weights, but for those that the fault leaves out.
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const std::vector<Weight> from = right_->weights(), to = other_->weights();
    for (size_t i = 0; i < from.size(); ++i) {
      const Tensor value = from[i].value.value().clone();
      const std::string& name = from[i].name;
      if (fault_ == Fault::forgets_rows && name.ends_with(".convolution"))
        std::fill_n(value.data(), value.size() - value.dim(1), real(0));
      if (fault_ == Fault::no_skip_in_steps && name == "D")
        std::ranges::fill(value.values(), real(0));
      if (fault_ == Fault::no_gain_in_steps && name == "norm.gain")
        std::ranges::fill(value.values(), real(1));
      to[i].value.set_value(value);
    }
    return other_->decoder(position[0], capacity);
  }

  Fault fault_;
  std::unique_ptr<Attention> right_, other_;
};

VariantInfo with_fault(Fault fault) {
  static const VariantInfo block = paper_block(find_variant("mamba2"));
  VariantInfo info = block;
  info.make = [fault](const AttentionConfig& config) -> std::unique_ptr<Attention> {
    return std::make_unique<Planted>(config, block, fault);
  };
  return info;
}

TEST(PlantedBlocks, WrongPassesAndDecodersAreCaught) {
  const std::vector<std::pair<Fault, Names>> faults = {
      {Fault::none, {}},
      {Fault::sees_the_next, {"causality", "padding", "decode"}},
      {Fault::reads_padding, {"padding"}},
      {Fault::forgets_rows, {"decode"}},
      {Fault::no_skip_in_steps, {"decode"}},
      {Fault::no_gain_in_steps, {"decode"}}};
  for (const auto& [fault, wanted] : faults)
    for (const std::string check : {"causality", "padding", "decode"})
      EXPECT_EQ(holds(red(check_variant(with_fault(fault), {}, Level::full, check)), check),
                holds(wanted, check))
          << "fault " << static_cast<int>(fault) << ", " << check;
}

}  // namespace
}  // namespace attn::planted_blocks_test
