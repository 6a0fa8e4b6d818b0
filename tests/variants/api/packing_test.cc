// Packed arrays: where sequences begin, how they are shared out over threads, shared keys,
// gradients of weights, and wrong use.
#include "variants/api/packed_forward.h"

#include <gtest/gtest.h>

#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "core/base/parallel.h"
#include "core/base/recycled.h"
#include "core/ops/ops.h"
#include "core/ops/ops_heads.h"
#include "tests/core/base/allocations.h"
#include "tests/said.h"
#include "variants/catalog.h"

namespace attn::packing_test {
namespace {

TEST(Packing, BlocksFollowOneAnother) {
  const Packing packing({3, 1, 4});
  EXPECT_EQ(packing.borders(), (std::vector<int64_t>{0, 3, 4, 8}));
  EXPECT_EQ(packing.positions(), 8);
  EXPECT_EQ(packing.longest(), 4);
  const Tensor packed({16, 5});
  std::iota(packed.data(), packed.data() + packed.size(), real{0});
  EXPECT_EQ(packing.heads_of(packed), 2);
  const Tensor block = packing.block(packed, 1);
  EXPECT_EQ(block.shape(), (Shape{1, 2, 1, 5}));
  EXPECT_EQ(block[0], 3 * 2 * 5);
  block.fill(-1);
  EXPECT_EQ(packed[3 * 2 * 5], -1) << "the memory is shared";
  EXPECT_EQ(packed[4 * 2 * 5], 4 * 2 * 5);
}

TEST(Packing, WrongUseIsRefused) {
  EXPECT_TRUE(says(fault_of([] { Packing({}); }), "needs a sequence"));
  EXPECT_TRUE(says(fault_of([] { Packing({3, 0}); }), "sequence of 0 positions"));
  EXPECT_TRUE(says(fault_of([] { Packing({3}).heads_of(Tensor({4, 5})); }), "got [4, 5]"));
  const auto full = find_variant("full").build({.heads = 2, .head_dim = 4, .max_len = 8}, {});
  const Var x(Tensor::zeros({16, 4}));
  const Packing packing({3, 5});
  EXPECT_TRUE(says(fault_of([&] {
                     packed_forward(*full, std::vector<Var>{x, x}, packing);
                   }),
                   "3 arrays of this variant, got 2"));
  EXPECT_TRUE(says(fault_of([] { Packing({3, 5}, {1}); }), "the work of 1 sequences for 2"));
  EXPECT_TRUE(says(fault_of([&] {
                     packed_forward(*full, std::vector<Var>{x, x, x}, Packing({16}));
                   }),
                   "16 positions; the variant was built for 8"));
  const Var wide(Tensor::zeros({24, 4}));
  EXPECT_TRUE(says(fault_of([&] {
                     packed_forward(*full, std::vector<Var>{x, wide, x}, packing);
                   }),
                   "3 heads; the variant has 2"));
}

// Each sequence once, and no thread more than the rest by more than its last one.
TEST(Packing, SequencesAreSharedOutEvenly) {
  const std::vector<double> work = {1, 9, 2, 8, 3, 7, 4, 6, 5, 5, 100};
  for (const int threads : {1, 2, 3, 4}) {
    const SequenceShares shares = share_sequences(work, threads, 8);
    std::multiset<int64_t> seen(shares.together.begin(), shares.together.end());
    double most = 0, least = 1e9;
    for (const std::vector<int64_t>& of_thread : shares.alone) {
      double sum = 0;
      for (const int64_t s : of_thread) sum += work[size_t(s)];
      most = std::max(most, sum), least = std::min(least, sum);
      seen.insert(of_thread.begin(), of_thread.end());
    }
    EXPECT_EQ(seen.size(), work.size());
    EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), work.size());
    EXPECT_EQ(shares.together.size(), threads > 1 ? 1u : 0u) << threads;
    EXPECT_LE(most, threads == 1 ? 150 : 1.15 * 50 / threads) << threads;
    EXPECT_GE(least, threads == 1 ? 150 : 0.8 * 50 / threads) << threads;
  }
}

// Where equal sequences leave some threads without one, the first are answered by all threads
// together, but not where threads cannot split them into enough parts.
TEST(Packing, WhatIsOverOfEqualSequencesIsSplit) {
  const auto together = [](int64_t count, int threads, int64_t parts) {
    const SequenceShares shares =
        share_sequences(std::vector<double>(size_t(count), 1), threads, parts);
    size_t most = 0;
    for (const std::vector<int64_t>& of_thread : shares.alone)
      most = std::max(most, of_thread.size());
    return std::pair(std::ssize(shares.together), int64_t(most));
  };
  using Found = std::pair<int64_t, int64_t>;
  EXPECT_EQ(together(3, 2, 8), Found(1, 1));
  EXPECT_EQ(together(4, 3, 8), Found(1, 1));
  EXPECT_EQ(together(5, 3, 8), Found(2, 1));
  EXPECT_EQ(together(6, 3, 8), Found(0, 2));
  EXPECT_EQ(together(7, 3, 8), Found(1, 2));
  EXPECT_EQ(together(4, 3, 1), Found(0, 2)) << "a head is one thread's";
  EXPECT_EQ(together(20, 16, 8), Found(4, 1));
  EXPECT_EQ(together(28, 16, 8), Found(0, 2)) << "eight threads would answer twelve";
  EXPECT_EQ(together(101, 2, 8), Found(0, 51)) << "threads hardly wait";
}

struct PackedInputs {
  std::vector<Var> all;
  Var out;
};

PackedInputs run(const Attention& attention, const Packing& packing, int64_t kv_heads) {
  PackedInputs found;
  for (const int64_t heads : {int64_t{4}, kv_heads, kv_heads})
    found.all.emplace_back(Tensor::normal({packing.positions() * heads, 8},
                                          rng(3, "packed", uint64_t(found.all.size()))),
                           true);
  found.out = packed_forward(attention, found.all, packing);
  found.out.backward(Tensor::normal(found.out.shape(), rng(4, "packed")));
  return found;
}

TEST(Packing, SharedKeysAreThoseOfTheirGroup) {
  const Packing packing({5, 30, 1});
  for (const bool causal : {false, true}) {
    const auto attention = find_variant("full").build(
        {.heads = 4, .head_dim = 8, .max_len = 30, .causal = causal}, {});
    const PackedInputs found = run(*attention, packing, 2);
    for (int64_t s = 0; s < packing.count(); ++s) {
      std::vector<Var> own;
      for (const Var& x : found.all) own.emplace_back(packing.block(x.value(), s).clone(), true);
      const Var out = attention->forward(own[0], repeat_heads(own[1], 2), repeat_heads(own[2], 2),
                                         {causal, {}});
      const Tensor seed = Tensor::normal(found.out.shape(), rng(4, "packed"));
      out.backward(packing.block(seed, s).clone());
      const Tensor got = packing.block(found.out.value(), s);
      for (int64_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], out.value()[i], 1e-6) << s;
      for (size_t x = 0; x < own.size(); ++x) {
        const Tensor gradient = packing.block(found.all[x].grad(), s);
        for (int64_t i = 0; i < gradient.size(); ++i)
          ASSERT_NEAR(gradient[i], own[x].grad()[i], 1e-5) << s << " " << x;
      }
    }
  }
}

TEST(Packing, ThreadsGiveTheSameAnswers) {
  const Packing packing({3, 50, 7, 7, 1, 20, 64});
  const auto attention =
      find_variant("full").build({.heads = 4, .head_dim = 8, .max_len = 64, .causal = true}, {});
  const PackedInputs one = run(*attention, packing, 4);
  for (const int count : {2, 3}) {
    const ScopedThreads scoped(count);
    const PackedInputs more = run(*attention, packing, 4);
    for (int64_t i = 0; i < one.out.value().size(); ++i)
      ASSERT_NEAR(more.out.value()[i], one.out.value()[i], 1e-6);
    for (size_t x = 0; x < one.all.size(); ++x)
      for (int64_t i = 0; i < one.all[x].grad().size(); ++i)
        ASSERT_NEAR(more.all[x].grad()[i], one.all[x].grad()[i], 1e-5);
  }
}

// Weights are not among the inputs: their gradients come from the tapes of the sequences, also
// where no input needs one, and add to what they have.
TEST(Packing, WeightsGetTheGradientsOfAllSequences) {
  const Packing packing({2, 3});
  const Var weight(Tensor::full({1}, 2), true);
  const Tensor x = Tensor::full({5, 1}, 3);
  const auto scaled = [&](std::span<const Var> blocks) { return multiply(blocks[0], weight); };
  for (const bool needed : {false, true}) {
    const std::vector<Var> inputs = {Var(x, needed)};
    weight.zero_grad();
    for (const double times : {1.0, 2.0}) {
      const Var out = answer_each(packing, inputs, 1, AtATime::forward, true, scaled);
      out.backward(Tensor::full(out.shape(), 1));
      EXPECT_NEAR(weight.grad()[0], times * 15, 1e-5);
    }
    if (needed) {
      EXPECT_NEAR(inputs[0].grad()[4], 4, 1e-6) << "two passes add";
    }
  }
  const NoGrad no_grad;
  EXPECT_FALSE(
      answer_each(packing, std::vector<Var>{Var(x, true)}, 1, AtATime::forward, true, scaled)
          .requires_grad());
}

// Two that went at a time would add to one gradient, or call an interpreter that one thread holds.
TEST(Packing, SequencesGoAtATimeWhereTheyMay) {
  const ScopedThreads scoped(2);
  const Packing packing({2, 3, 2, 3});
  for (const AtATime at_a_time : {AtATime::all, AtATime::forward, AtATime::nothing}) {
    std::set<std::thread::id> forward, by;
    std::mutex mutex;
    const auto watched = [&](std::span<const Var> blocks) {
      {
        const std::lock_guard lock(mutex);
        forward.insert(std::this_thread::get_id());
      }
      return custom_op(blocks[0].value(), {blocks[0]},
                       [&](const Tensor& gradient, std::span<Tensor> grads) {
                         grads[0].add(gradient);
                         const std::lock_guard lock(mutex);
                         by.insert(std::this_thread::get_id());
                       });
    };
    const std::vector<Var> inputs = {Var(Tensor::full({10, 1}, 3), true)};
    const Var out = answer_each(packing, inputs, 1, at_a_time, false, watched);
    out.backward(Tensor::full(out.shape(), 1));
    EXPECT_EQ(forward.size(), at_a_time == AtATime::nothing ? 1u : 2u);
    EXPECT_EQ(by.size(), at_a_time == AtATime::all ? 2u : 1u);
  }
}

// The seed of a backward is the caller's: nothing writes into it.
TEST(Packing, TheSeedStaysAsItIs) {
  const Packing packing({2, 3});
  const Tensor seed = Tensor::full({5, 1}, 1), before = seed.clone();
  const Var out =
      answer_each(packing, std::vector<Var>{Var(Tensor::full({5, 1}, 3), true)}, 1, AtATime::all,
                  false, [](std::span<const Var> x) { return scale(x[0], 7); });
  out.backward(seed);
  for (int64_t i = 0; i < seed.size(); ++i) EXPECT_EQ(seed[i], before[i]);
}

// Pieces of recycled memory that no request can have while it lives, of the sizes of lists of
// patterns: what makes one asks the system for memory.
class Drained {
 public:
  Drained() {
    for (size_t bytes = 2048; bytes <= 1 << 17; bytes *= 2)
      for (int64_t before = recycled_fetches(); recycled_fetches() == before;)
        held_.emplace_back(recycled_allocate(bytes), bytes);
  }
  ~Drained() {
    for (const auto& [piece, bytes] : held_) recycled_free(piece, bytes);
  }
  Drained(const Drained&) = delete;
  Drained& operator=(const Drained&) = delete;

 private:
  std::vector<std::pair<void*, size_t>> held_;
};

// Those of a call's lengths are kept, and that of a batch between two calls.
TEST(Packing, PatternsAreMadeOnce) {
  if (!allocations_are_ours()) GTEST_SKIP() << "a sanitizer counts allocations";
  const ScopedThreads one(1);
  const NoGrad no_grad;
  const Packing packing({512, 300, 512, 450, 77});
  EXPECT_EQ(packing.distinct(), 4);
  const auto random = [](const Shape& shape) { return Var(Tensor::normal(shape, rng(5, "x"))); };
  const Var x = random({packing.positions() * 4, 8}), all = random({2, 4, 512, 8});
  const std::vector<Var> inputs = {x, x, x};
  const Mask padded{false, {512, 400}};
  const std::pair<const char*, std::map<std::string, ParamValue>> variants[] = {
      {"local", {{"block", int64_t{1}}}}, {"bigbird", {{"block", int64_t{16}}}}, {"graph", {}}};
  for (const auto& [name, params] : variants) {
    const auto attention =
        find_variant(name).build({.heads = 4, .head_dim = 8, .max_len = 512}, params);
    const auto pass = [&] {
      packed_forward(*attention, inputs, packing);
      attention->forward(all, all, all, padded);
    };
    for (int i = 0; i < 2; ++i) pass();
    const Drained drained;
    const int64_t fetched = recycled_fetches(), allocated = allocations();
    pass();
    EXPECT_EQ(recycled_fetches() - fetched, 0) << name;
    EXPECT_LT(allocations() - allocated, 20) << name << ": a graph has some for each position";
  }
}

}  // namespace
}  // namespace attn::packing_test
