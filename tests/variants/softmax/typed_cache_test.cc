// Decoding with caches of fewer bits against exact attention over keys and values that are rounded
// one by one: every type, rings, prefills, shared keys, parts of a cache; and what a state takes.
#include <gtest/gtest.h>

#include "tests/core/simd/on_every_isa.h"
#include "tests/variants/api/decoder_steps.h"
#include "variants/api/cache_rounding.h"
#include "variants/reference/cached.h"
#include "variants/softmax/softmax_decoder.h"

namespace attn::typed_cache_test {
namespace {

oracle::Array given_back(const oracle::Array& x, CacheNumber number, CacheType type) {
  const int64_t recent = keeps_recent(type) ? kRecentPositions : 0;
  switch (number) {
    case CacheNumber::float32:
      return x;
    case CacheNumber::bfloat16:
      return oracle::cached(x, recent, oracle::cached_in_bfloat16);
    case CacheNumber::int8:
      return oracle::cached(x, recent, oracle::cached_in_integers<127>);
    case CacheNumber::int4:
      return oracle::cached(x, recent, oracle::cached_in_integers<7>);
  }
  return x;
}

PlainAnswer answer_of(CacheType type, int64_t window = -1) {
  return [=](const oracle::Array& q, const oracle::Array& k, const oracle::Array& v) {
    const bool rounds = keys_of(type) == CacheNumber::bfloat16;
    return oracle::softmax_attention(rounds ? oracle::cached(q, 0, oracle::cached_in_bfloat16) : q,
                                     given_back(k, keys_of(type), type),
                                     given_back(v, values_of(type), type),
                                     {.causal = true, .lengths = {}, .window = window});
  };
}

double allowed(CacheType type) { return 40 * double(kEpsilon) + rounding_beside_cache(type); }

StepInputs shared_inputs(const Shape& position, int64_t len) {
  const Shape keys{position[0], position[1], len, position[3]};
  return {bridge::normal(keys.with(1, position[1] * position[2]), "q"), bridge::normal(keys, "k"),
          bridge::normal(keys, "v")};
}

constexpr CacheType kMost[] = {CacheType::bfloat16, CacheType::int8, CacheType::int4,
                               CacheType::int8_int4, CacheType::int4_bfloat16};

using TypedCache = OnEveryIsa;

TEST(CacheTypes, NamesSayKeysThenValues) {
  for (const auto& each : names_of(CacheType())) {
    const std::string keys = name_of(CacheType(int(keys_of(each.value)))),
                      values = name_of(CacheType(int(values_of(each.value))));
    EXPECT_EQ(each.name, keys == values ? keys : keys + "/" + values);
  }
}

TEST_F(TypedCache, EveryTypeOnEveryInstructionSet) {
  each([] {
    for (const auto& type : names_of(CacheType())) {
      SCOPED_TRACE(type.name);
      const Shape position{1, 2, 3, 40};
      expect_steps(*typed_softmax_decoder(position, 70, type.value), shared_inputs(position, 70),
                   60, answer_of(type.value), allowed(type.value));
    }
  });
}

// Rows so wide that the values of a block are added in several pieces.
TEST_F(TypedCache, WideRows) {
  each([] {
    for (const CacheType type :
         {CacheType::float32, CacheType::bfloat16, CacheType::int8, CacheType::int4}) {
      SCOPED_TRACE(name_of(type));
      const Shape position{1, 1, 2, 128};
      expect_steps(*typed_softmax_decoder(position, 300, type), shared_inputs(position, 300), 297,
                   answer_of(type), allowed(type));
    }
  });
}

// About the 32 newest positions, a panel of 32, a tile of 256, and rings that wrap.
TEST(TypedCaches, Borders) {
  for (const CacheType type : kMost)
    for (const int64_t window : {-1, 0, 5, 30, 31, 32, 40, 270})
      for (const int64_t prefill : {0, 31, 250, 280}) {
        SCOPED_TRACE(testing::Message() << name_of(type) << ", window " << window);
        const Shape position{1, 1, 2, 33};
        const int64_t length = prefill + (prefill == 0 ? 70 : 12);
        const auto decoder =
            typed_softmax_decoder(position, length, type, {.window = window, .sinks = {}});
        expect_steps(*decoder, shared_inputs(position, length), prefill, answer_of(type, window),
                     allowed(type));
      }
}

TEST(TypedCaches, SplitOverThreads) {
  for (const CacheType type : kMost)
    for (const int count : {2, 4}) {
      const Threads threads(count);
      const Shape position{1, 3, 5, 8};
      expect_steps(*typed_softmax_decoder(position, 2600, type), shared_inputs(position, 2600),
                   2598, answer_of(type), allowed(type));
    }
}

TEST(TypedCaches, AStepThatIsTakenBackLeavesNothing) {
  const Shape position{1, 1, 1, 32};
  const StepInputs x = shared_inputs(position, 50), other = {x.q, x.v, x.k};
  for (const CacheType type : kMost) {
    const auto plain = typed_softmax_decoder(position, 50, type),
               turned = typed_softmax_decoder(position, 50, type);
    for (int64_t i = 0; i < 50; ++i) {
      step(*turned, other, i);
      turned->step_back();
      EXPECT_TRUE(bridge::same_bits(step(*plain, x, i), step(*turned, x, i)))
          << name_of(type) << " at " << i;
    }
  }
}

TEST(TypedCaches, StateIsAsSmallAsItsNumbers) {
  if (kIsDouble) GTEST_SKIP() << "the newest positions are held in double";
  const Shape position{1, 2, 4, 128};
  const auto bytes = [&](CacheType type, int64_t length) {
    return static_cast<double>(typed_softmax_decoder(position, length, type)->state_bytes());
  };
  for (const int64_t length : {4096, 16384}) {
    const auto whole = static_cast<double>(2 * 2 * length * 128 * 4);
    EXPECT_EQ(bytes(CacheType::bfloat16, length), whole / 2);
    EXPECT_LE(bytes(CacheType::int8, length), 0.28 * whole);
    EXPECT_LE(bytes(CacheType::int4, length), 0.16 * whole);
  }
}

// What the state says it takes is what was taken from the pool, and what is declared: of an odd
// width and an odd length too. The pool counts cache lines: 64 heads fill whole ones, and in
// float32 and bfloat16 a cache of keys alone, or of values alone, takes one for what it lacks.
TEST(TypedCaches, StateIsWhatWasAllocated) {
  for (const auto& type : names_of(CacheType()))
    for (const auto& [dim, length] : {std::pair<int64_t, int64_t>{64, 1000}, {33, 255}, {1, 1}}) {
      const int64_t before = memory_use().live_total;
      const auto decoder = typed_softmax_decoder({1, 64, 1, dim}, length, type.value);
      const int64_t taken = memory_use().live_total - before;
      const int64_t lines =
          (is_integer(keys_of(type.value)) ? 0 : 1) + (is_integer(values_of(type.value)) ? 0 : 1);
      EXPECT_EQ(taken, decoder->state_bytes() + 64 * lines)
          << type.name << " " << dim << " " << length;
      EXPECT_EQ(decoder->state_bytes(), typed_cache_bytes(type.value, 64, length, dim))
          << type.name << " " << dim << " " << length;
    }
}

// A value 1000 times as large as the others, at a position that the query hardly sees.
TEST_F(TypedCache, ALargeValueOfLittleWeight) {
  each([] {
    for (const CacheType type : kMost)
      for (const double logit : {-6, -12, -20}) {
        SCOPED_TRACE(testing::Message() << name_of(type) << ", logit " << logit);
        const Shape position{1, 1, 1, 64};
        const int64_t length = 300, at = 20;
        const StepInputs x = shared_inputs(position, length);
        real *const key = x.k.data() + at * 64, *const value = x.v.data() + at * 64;
        const real* const q = x.q.data() + (length - 1) * 64;
        double square = 0;
        for (int64_t c = 0; c < 64; ++c) square += double(q[c]) * double(q[c]);
        for (int64_t c = 0; c < 64; ++c) {
          key[c] = static_cast<real>(logit * 8 / square * double(q[c]));
          value[c] *= 1000;
        }
        expect_steps(*typed_softmax_decoder(position, length, type), x, length - 1, answer_of(type),
                     allowed(type));
      }
  });
}

}  // namespace
}  // namespace attn::typed_cache_test
