// Packed sequences with one fault at a time: what the check `packed` and what compares a measured
// pass must catch.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "harness/check/contract.h"
#include "harness/verify/packed.h"
#include "tests/conformance/planted.h"
#include "tests/said.h"
#include "variants/api/expecting.h"
#include "variants/api/packing.h"
#include "variants/catalog.h"

namespace attn::planted_packed_test {
namespace {

enum class Fault {
  none,
  sees_neighbours,      // the first value of the last sequence is the one before its border
  carries_state,        // causal: each answer has a number of the sequence before it
  late_border,          // the values of the first sequence are read one position late
  leaves_one_out,       // a sequence of one position is answered by zeros
  state_of_length,      // a sequence of the first one's length has the number kept for that one
  neighbours_gradient,  // the last sequence gets a number of the gradient before it
  lacks_a_gradient,     // the values of the last sequence get none
  wrong_everywhere,     // packed or alone, by one percent
  ignores_padding,      // of a padded batch alone: keys of padding are read
};

// Values that are read `numbers` behind where they are, beyond their block of a packed array.
Var read_at(const Var& v, int64_t numbers, int64_t rows) {
  const Tensor read = v.value().clone();
  std::copy_n(v.value().data() + numbers, rows * v.dim(3), read.data());
  return custom_op(read, {v},
                   [](const Tensor& gradient, std::span<Tensor> grads) { grads[0].add(gradient); });
}

// Right, but in a packed pass for the fault. A sequence is known by its length.
class PlantedPacking final : public Attention, public ExpectsSequences {
 public:
  PlantedPacking(const AttentionConfig& config, const VariantInfo& of, Fault fault)
      : Attention(config), fault_(fault), right_(of.build(AttentionConfig(config), {})) {}

 private:
  void do_expect(const Packing& packing) const override {
    first_ = packing.lengths().front();
    last_ = packing.lengths().back();
    coming_ = packing.count();
    of_first_->reset();
    before_->reset();
  }

  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    if (fault_ == Fault::ignores_padding) return right_->forward(q, k, v, {mask.causal, {}});
    const bool is_packed = coming_ > 0 && coming_-- > 0;
    const Var out = right_->forward(q, k, is_packed ? read_of(v) : v, mask);
    if (fault_ == Fault::wrong_everywhere) return scale(out, 1.01);
    if (!is_packed) return out;
    if (fault_ == Fault::leaves_one_out && q.dim(2) == 1) return scale(out, 0);
    if (fault_ == Fault::state_of_length && q.dim(2) == first_)
      return add(out, Var(Tensor::full(out.shape(), of_first_->keep(v.value()[0]))));
    if (fault_ == Fault::carries_state && mask.causal)
      return add(out, Var(Tensor::full(out.shape(), before_->exchange(v.value()[0]))));
    return out;
  }

  Var read_of(const Var& v) const {
    const int64_t length = v.dim(2), width = v.dim(3);
    if (fault_ == Fault::late_border && length == first_)
      return read_at(v, width, v.dim(1) * length);
    if (fault_ == Fault::sees_neighbours && length == last_) return read_at(v, -width, 1);
    if (fault_ == Fault::lacks_a_gradient && length == last_)
      return custom_op(v.value(), {v}, [](const Tensor&, std::span<Tensor>) {});
    if (fault_ != Fault::neighbours_gradient) return v;
    return custom_op(v.value(), {v},
                     [before = before_, is_last = length == last_](const Tensor& gradient,
                                                                   std::span<Tensor> grads) {
                       const real carried = before->exchange(gradient[0]);
                       grads[0].add(gradient);
                       if (is_last) grads[0][0] += carried;
                     });
  }

  // A number of the sequence before, in whatever order threads answer them.
  struct Before {
    std::mutex mutex;
    real number = 0;
    real exchange(real next) {
      const std::lock_guard lock(mutex);
      return std::exchange(number, next);
    }
    // What was kept before; where that is nothing, `number` is kept, and 0 is returned.
    real keep(real fresh) {
      const std::lock_guard lock(mutex);
      return number == 0 ? (number = fresh, real(0)) : number;
    }
    void reset() { exchange(0); }
  };

  const Fault fault_;
  const std::unique_ptr<Attention> right_;
  const std::shared_ptr<Before> before_ = std::make_shared<Before>();
  const std::shared_ptr<Before> of_first_ = std::make_shared<Before>();
  mutable std::atomic<int64_t> first_ = 0, last_ = 0, coming_ = 0;
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
      {"full", Fault::neighbours_gradient}, {"linear", Fault::lacks_a_gradient},
      {"full", Fault::state_of_length},     {"linear", Fault::state_of_length}};
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
  const std::vector<int64_t> lengths = {40, 1, 70, 40, 33};
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
      EXPECT_TRUE(says(refusal(with_fault(variant, fault), budget_s), "of 5 packed ones"))
          << variant << ", fault " << static_cast<int>(fault) << ", budget " << budget_s;
  }
}

// What is wrong of a sequence alone too is found by the reference of its first positions.
TEST(PlantedPacked, AWrongKernelIsRefusedWithoutTimeForReferences) {
  const ScopedThreads as_before(threads());
  for (const std::string variant : {"full", "linear"})
    for (const double budget_s : {60.0, 0.0})
      EXPECT_TRUE(
          says(refusal(with_fault(variant, Fault::wrong_everywhere), budget_s), "of 5 packed ones"))
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
