// Packed sequences with one fault at a time: what the check `packed` and what compares a measured
// pass must catch.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "harness/check/contract.h"
#include "harness/verify/packed.h"
#include "tests/conformance/planted.h"
#include "tests/said.h"
#include "variants/api/packed_forward.h"
#include "variants/catalog.h"

namespace attn::planted_packed_test {
namespace {

enum class Fault {
  none,
  sees_neighbours,      // all sequences are one
  carries_state,        // the same of causal sequences alone: what stands before a border is kept
  late_border,          // the last sequence begins one position late
  leaves_one_out,       // a sequence of one position is answered by zeros
  neighbours_gradient,  // the last sequence gets a number of the gradient of the first
  lacks_a_gradient,     // the last sequence gets none
  wrong_everywhere,     // packed or alone, by one percent
  ignores_padding,      // of a padded batch alone: keys of padding are read
};

Var block_of(const Packing& packing, const Var& packed, int64_t s) {
  const int64_t heads = packing.heads_of(packed.value()), first = packing.borders()[size_t(s)];
  return reshape(slice(packed, 0, first * heads, (first + packing.length(s)) * heads),
                 {1, heads, packing.length(s), packed.dim(1)});
}

// [1, heads, positions, width] of all sequences.
Var joined(const Packing& packing, const Var& packed) {
  std::vector<Var> blocks;
  for (int64_t s = 0; s < packing.count(); ++s) blocks.push_back(block_of(packing, packed, s));
  return concat(blocks, 2);
}

Var packed_again(const Packing& packing, const Var& all) {
  std::vector<Var> blocks;
  for (int64_t s = 0; s < packing.count(); ++s) {
    const Var block = slice(all, 2, packing.borders()[size_t(s)], packing.borders()[size_t(s) + 1]);
    blocks.push_back(reshape(block, {block.dim(1) * block.dim(2), block.dim(3)}));
  }
  return concat(blocks, 0);
}

class PlantedPacking final : public Attention, public PackedAttention {
 public:
  PlantedPacking(const AttentionConfig& config, const VariantInfo& of, Fault fault)
      : Attention(config), fault_(fault) {
    AttentionConfig longer = config;
    ++longer.max_len;  // of a border that is late
    right_ = of.build(std::move(longer), {});
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    if (fault_ == Fault::ignores_padding) return right_->forward(q, k, v, {mask.causal, {}});
    const Var out = right_->forward(q, k, v, mask);
    return fault_ == Fault::wrong_everywhere ? scale(out, 1.01) : out;
  }

  Var at_once(std::span<const Var> inputs, const Packing& packing) const {
    return right_->forward(joined(packing, inputs[0]), joined(packing, inputs[1]),
                           joined(packing, inputs[2]), {config().causal, {}});
  }

  Var do_packed_forward(std::span<const Var> inputs, const Packing& packing) const override {
    const bool is_one =
        fault_ == Fault::sees_neighbours || (fault_ == Fault::carries_state && config().causal);
    if (is_one) return packed_again(packing, at_once(inputs, packing));
    if (fault_ == Fault::wrong_everywhere)
      return scale(packed_forward(*right_, inputs, packing), 1.01);
    if (fault_ == Fault::late_border) return with_late_border(inputs, packing);
    const Var out = packed_forward(*right_, inputs, packing);
    if (fault_ == Fault::leaves_one_out) return without_short(packing, out);
    const bool lacks = fault_ == Fault::lacks_a_gradient;
    if (!lacks && fault_ != Fault::neighbours_gradient) return out;
    const Var keys = custom_op(inputs[1].value(), {inputs[1]},
                               [lacks, packing](const Tensor& gradient, std::span<Tensor> grads) {
                                 grads[0].add(gradient);
                                 const int64_t last = packing.count() - 1;
                                 const Tensor own = packing.block(grads[0], last);
                                 if (lacks)
                                   own.fill(0);
                                 else
                                   own[0] += packing.block(gradient, 0)[0];
                               });
    return packed_forward(*right_, std::vector<Var>{inputs[0], keys, inputs[2]}, packing);
  }

  Var with_late_border(std::span<const Var> inputs, const Packing& packing) const {
    std::vector<int64_t> lengths = packing.lengths();
    ++lengths[lengths.size() - 2], --lengths.back();
    const Packing late(lengths);
    std::vector<Var> moved;
    for (const Var& input : inputs) moved.push_back(packed_again(late, joined(packing, input)));
    return packed_again(packing, joined(late, packed_forward(*right_, moved, late)));
  }

  static Var without_short(const Packing& packing, const Var& out) {
    const Tensor kept = Tensor::full(out.shape(), 1);
    for (int64_t s = 0; s < packing.count(); ++s)
      if (packing.length(s) == 1) packing.block(kept, s).fill(0);
    return multiply(out, Var(kept));
  }

  Fault fault_;
  std::unique_ptr<Attention> right_;
};

VariantInfo with_fault(const std::string& variant, Fault fault) {
  const VariantInfo& right = find_variant(variant);
  VariantInfo info = right;
  info.no_decoder = [](const Params&) { return std::optional<std::string>("none is planted"); };
  info.make = [fault, &right](const AttentionConfig& config) -> std::unique_ptr<Attention> {
    return std::make_unique<PlantedPacking>(config, right, fault);
  };
  return info;
}

struct Planted {
  std::string variant;
  Fault fault;
};

const std::vector<Planted>& planted() {
  static const std::vector<Planted> all = {
      {"full", Fault::sees_neighbours},     {"linear", Fault::sees_neighbours},
      {"linear", Fault::carries_state},     {"full", Fault::late_border},
      {"linear", Fault::late_border},       {"full", Fault::leaves_one_out},
      {"full", Fault::neighbours_gradient}, {"linear", Fault::lacks_a_gradient}};
  return all;
}

TEST(PlantedPacked, TheContractCatchesEach) {
  const auto checked = [](const std::string& variant, Fault fault) {
    const auto results =
        check_variant(with_fault(variant, fault), {}, attn_check::Level::quick, "packed");
    EXPECT_EQ(results.size(), 1u);
    return results.at(0);
  };
  for (const std::string variant : {"full", "linear"})
    EXPECT_EQ(checked(variant, Fault::none).outcome, attn_check::Outcome::passed)
        << checked(variant, Fault::none).detail;
  for (const auto& [variant, fault] : planted()) {
    const auto result = checked(variant, fault);
    EXPECT_EQ(result.outcome, attn_check::Outcome::failed)
        << variant << ", fault " << static_cast<int>(fault) << ": " << result.detail;
    EXPECT_TRUE(says(result.detail, "packed sequence")) << variant << static_cast<int>(fault);
  }
}

// "" where the timed pass is right.
std::string refusal(const VariantInfo& info, double budget_s) {
  const std::vector<int64_t> lengths = {40, 1, 70, 33};
  PackedPass pass({.variant = &info,
                   .length = 70,
                   .batch = std::ssize(lengths),
                   .heads = 2,
                   .head_dim = 8,
                   .mode = Mode::train,
                   .causal = true,
                   .packed = lengths});
  pass.run();
  return fault_of([&] { verify_packed(pass, {.budget_s = budget_s}); });
}

TEST(PlantedPacked, AMeasuredPassIsRefused) {
  const ScopedThreads as_before(threads());
  for (const double budget_s : {60.0, 0.0}) {  // by the reference, and by each sequence alone
    for (const std::string variant : {"full", "linear"})
      EXPECT_EQ(refusal(with_fault(variant, Fault::none), budget_s), "") << variant;
    for (const auto& [variant, fault] : planted())
      EXPECT_TRUE(says(refusal(with_fault(variant, fault), budget_s), "of 4 packed ones"))
          << variant << ", fault " << static_cast<int>(fault) << ", budget " << budget_s;
  }
}

// What is wrong of a sequence alone too is found by the reference of its first positions.
TEST(PlantedPacked, AWrongKernelIsRefusedWithoutTimeForReferences) {
  const ScopedThreads as_before(threads());
  for (const std::string variant : {"full", "linear"})
    for (const double budget_s : {60.0, 0.0})
      EXPECT_TRUE(
          says(refusal(with_fault(variant, Fault::wrong_everywhere), budget_s), "of 4 packed ones"))
          << variant << ", budget " << budget_s;
}

TEST(PlantedPacked, AWrongPaddedPassIsRefused) {
  const ScopedThreads as_before(threads());
  const auto refused = [](Fault fault, Mode mode) {
    const VariantInfo info = with_fault("full", fault);
    const std::vector<int64_t> lengths = {40, 1, 70, 33};
    PackedPass pass({.variant = &info,
                     .length = 70,
                     .batch = std::ssize(lengths),
                     .heads = 2,
                     .head_dim = 8,
                     .mode = mode,
                     .packed = lengths});
    pass.run_both();
    return fault_of([&] { verify_packed(pass); });
  };
  for (const Mode mode : {Mode::forward, Mode::train}) {
    EXPECT_EQ(refused(Fault::none, mode), "");
    EXPECT_TRUE(says(refused(Fault::ignores_padding, mode), "in the padded batch, "));
  }
}

}  // namespace
}  // namespace attn::planted_packed_test
