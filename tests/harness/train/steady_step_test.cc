// A training step in its steady state asks nobody for memory: no block from the system, no operator
// new anywhere in the program (which allocations.h counts), no page fault.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "harness/model/encoder.h"
#include "harness/train/optimizer.h"
#include "tests/core/base/allocations.h"
#include "variants/catalog.h"

namespace attn::steady_step_test {
namespace {

constexpr int64_t kBatch = 8, kLength = 64, kClasses = 5;

struct Taken {
  int64_t system_calls, allocations, faults;
};

Taken taken() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return {memory_use().system_calls, attn::allocations(), use.ru_minflt};
}

class Training {
 public:
  Training(const VariantInfo& variant, double dropout, bool padded)
      : model_(config(variant, dropout)) {
    Rng stream = rng(3, "steady step");
    batch_.size = kBatch;
    batch_.length = kLength;
    for (int64_t i = 0; i < kBatch * kLength; ++i)
      batch_.tokens.push_back(static_cast<int32_t>(stream.between(0, 99)));
    for (int64_t i = 0; i < kBatch; ++i)
      batch_.targets.push_back(static_cast<int32_t>(stream.between(0, kClasses - 1)));
    for (int64_t i = 0; padded && i < kBatch; ++i) batch_.lengths.push_back(kLength - 3 * i);
  }
  void step() {
    // Other lengths in every batch: a list that follows from them is no constant.
    std::rotate(batch_.lengths.begin(), batch_.lengths.begin() + !batch_.lengths.empty(),
                batch_.lengths.end());
    cross_entropy(model_.forward(batch_, &dropout_), batch_.targets).backward();
    optimizer_.step(1e-3);
  }

 private:
  static ModelConfig config(const VariantInfo& variant, double dropout) {
    ModelConfig model;
    model.layer.variant = &variant;
    model.layer.width = 48;
    model.layer.heads = 3;
    model.layer.dropout = dropout;
    model.vocab = 100;
    model.length = kLength;
    model.classes = kClasses;
    return model;
  }
  static std::vector<Var> learned(const Encoder& model) {
    std::vector<Var> all;
    for (const Weight& weight : model.weights())
      if (weight.learned) all.push_back(weight.value);
    return all;
  }

  Encoder model_;
  AdamW optimizer_{learned(model_), {.weight_decay = 0.01, .clip = 1}};
  Batch batch_;
  Rng dropout_ = rng(3, "dropout");
};

// Under a sanitizer, which replaces the allocator and takes a hundred times as long, one step after
// another at two threads is all that is looked at, by the sanitizer.
#ifdef ATTN_SANITIZED
constexpr bool kCounts = false;
#else
constexpr bool kCounts = true;
#endif

struct Case {
  int threads;
  double dropout;
  bool padded;
};
// Each pair of choices is met in one of these.
constexpr Case kCases[] = {{1, 0, false}, {1, 0.1, true}, {2, 0, true}, {2, 0.1, false}};

TEST(SteadyStep, TakesNothingFromTheSystem) {
  constexpr int kWarmUp = kCounts ? 4 : 1, kSteps = kCounts ? 4 : 1;
  for (const VariantInfo& variant : all_variants())
    for (const auto& [count, dropout, wants_padding] : kCases) {
      if (!kCounts && count == 1) continue;
      const bool padded = wants_padding && variant.traits.padding;
      SCOPED_TRACE(::testing::Message() << variant.name << ", " << count << " threads, dropout "
                                        << dropout << ", padded " << padded);
      set_threads(count);
      Training training(variant, dropout, padded);
      for (int i = 0; i < kWarmUp; ++i) training.step();
      const Taken before = taken();
      for (int i = 0; i < kSteps; ++i) training.step();
      const Taken after = taken();
      set_threads(1);
      if (!kCounts) continue;
      EXPECT_EQ(after.system_calls, before.system_calls);
      // The lengths of a padded batch are a std::vector in Mask: each op that keeps them copies
      // these few numbers.
      EXPECT_LE(after.allocations - before.allocations, padded ? 20 * kSteps : 0);
      // A step touches hundreds of pages of activations; the kernel may move a few under us.
      if (allocations_are_ours()) {
        EXPECT_LE(after.faults - before.faults, 20);
      }
    }
}

TEST(SteadyStep, TheCountersCount) {
  const Taken before = taken();
  { const Block block((size_t{1} << 22) + 64 * 1001, Purpose::workspace); }
  delete new Training(find_variant("full"), 0, false);
  const Taken after = taken();
  EXPECT_GT(after.system_calls, before.system_calls);
  if (allocations_are_ours()) {
    EXPECT_GT(after.allocations, before.allocations);
  }
}

}  // namespace
}  // namespace attn::steady_step_test
