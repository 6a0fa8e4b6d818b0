// A training step in its steady state asks nobody for memory: no block from the system, no operator
// new anywhere in the program (which this file counts), no page fault.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "core/memory.h"
#include "core/ops.h"
#include "core/parallel.h"
#include "harness/model/encoder.h"
#include "harness/train/optimizer.h"
#include "variants/catalog.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ATTN_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ATTN_SANITIZED 1
#endif
#endif

namespace {
std::atomic<int64_t> allocations = 0;
}  // namespace

#ifndef ATTN_SANITIZED  // which replace operator new themselves
namespace {
void* allocated(size_t bytes, size_t alignment) {
  ++allocations;
  const size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* const data = alignment > alignof(std::max_align_t) ? std::aligned_alloc(alignment, whole)
                                                           : std::malloc(bytes > 0 ? bytes : 1);
  if (!data) throw std::bad_alloc();
  return data;
}
}  // namespace
void* operator new(size_t bytes) { return allocated(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return allocated(bytes, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* data) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, size_t) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, size_t, std::align_val_t) noexcept {
  std::free(data);
}
#endif

namespace attn::steady_step_test {
namespace {

constexpr int64_t kBatch = 8, kLength = 64, kClasses = 5;

struct Taken {
  int64_t system_calls, allocations, faults;
};

Taken taken() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return {memory_use().system_calls, allocations, use.ru_minflt};
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

TEST(SteadyStep, TakesNothingFromTheSystem) {
  constexpr int kWarmUp = 4, kSteps = 6;
  for (const VariantInfo& variant : all_variants())
    for (const int count : {1, 2})
      for (const double dropout : {0.0, 0.1})
        for (const bool padded : {false, true}) {
          if (padded && !variant.traits.padding) continue;
          SCOPED_TRACE(::testing::Message() << variant.name << ", " << count << " threads, dropout "
                                            << dropout << ", padded " << padded);
          set_threads(count);
          Training training(variant, dropout, padded);
          for (int i = 0; i < kWarmUp; ++i) training.step();
          const Taken before = taken();
          for (int i = 0; i < kSteps; ++i) training.step();
          const Taken after = taken();
          set_threads(1);
          EXPECT_EQ(after.system_calls, before.system_calls);
          // The lengths of a padded batch are a std::vector in Mask: each op that keeps them copies
          // these few numbers.
          EXPECT_LE(after.allocations - before.allocations, padded ? 20 * kSteps : 0);
#ifndef ATTN_SANITIZED
          // A step touches hundreds of pages of activations; the kernel may move a few under us.
          EXPECT_LE(after.faults - before.faults, 20);
#endif
        }
}

TEST(SteadyStep, TheCountersCount) {
  const Taken before = taken();
  { const Block block((size_t{1} << 22) + 64 * 1001, Purpose::workspace); }
  delete new Training(find_variant("full"), 0, false);
  const Taken after = taken();
  EXPECT_GT(after.system_calls, before.system_calls);
#ifndef ATTN_SANITIZED
  EXPECT_GT(after.allocations, before.allocations);
#endif
}

}  // namespace
}  // namespace attn::steady_step_test
