// Decoders whose query heads share keys: one cache or state for each head of keys, and the answers
// of an oracle to which every query head's keys are given. Shazeer 2019, arXiv:1911.02150; Ainslie
// et al. 2023, arXiv:2305.13245.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/base/counters.h"
#include "core/ops/ops_heads.h"
#include "tests/core/simd/on_every_isa.h"
#include "variants/reference/scores.h"
#include "tests/variants/api/decoder_steps.h"
#include "variants/catalog.h"
#include "variants/features/linear_decoder.h"
#include "variants/patterns/pattern_decoder.h"
#include "variants/scores/relu_attention.h"
#include "variants/softmax/softmax_decoder.h"
#include "variants/synthetic/synthetic_decoder.h"

namespace attn::shared_decoder_test {
namespace {

struct Sharing {
  int64_t batch, kv_heads, group, dim;

  Shape position() const { return {batch, kv_heads, group, dim}; }
  StepInputs inputs(int64_t len, double scale = 1) const {
    const StepInputs x = attn::inputs({batch, kv_heads * group, len, dim}, scale);
    const Shape keys{batch, kv_heads, len, dim};
    return {x.q, bridge::normal(keys, "few k", scale), bridge::normal(keys, "few v")};
  }
};
constexpr Sharing kSharings[] = {{2, 1, 6, 5}, {2, 2, 3, 5}, {1, 3, 2, 8}, {1, 1, 13, 7}};

PlainAnswer softmax(int64_t window = -1) {
  return [window](const oracle::Array& q, const oracle::Array& k, const oracle::Array& v) {
    return oracle::softmax_attention(q, k, v, {.causal = true, .lengths = {}, .window = window});
  };
}

// The popular bug: keys tiled (head h uses h % kv_heads), not repeated. The answer of head h is the
// only one that equals h's value where each head of keys holds a number of its own.
TEST(SharedDecoder, QueryHeadHFindsKeyHeadHOverGroup) {
  const Shape position{1, 3, 2, 4};
  const std::unique_ptr<Decoder> decoders[] = {
      softmax_decoder(position, 8), linear_decoder(position, 8, elu_plus_one()),
      synthetic_decoder(position, 8, matrix_logits(Tensor::zeros({6, 8, 8})))};
  const Tensor q = Tensor::full({1, 6, 1, 4}, 1), k = Tensor::full({1, 3, 1, 4}, 1), v(k.shape()),
               out(q.shape());
  for (int64_t i = 0; i < v.size(); ++i) v[i] = static_cast<real>(i / 4);
  for (const auto& decoder : decoders)
    for (int step = 0; step < 3; ++step) {
      decoder->step(q, k, v, out);
      for (int64_t i = 0; i < out.size(); ++i)
        EXPECT_NEAR(static_cast<double>(out[i]), static_cast<double>(i / 4 / 2), 1e-6);
    }
}

TEST(SharedDecoder, SoftmaxOfAllAndOfARing) {
  for (const Sharing& s : kSharings)
    for (const int64_t window : {-1, 0, 5, 66})
      for (const int64_t prefill : {0, 61}) {
        SCOPED_TRACE(testing::Message() << s.group << " for one, window " << window);
        expect_steps(*softmax_decoder(s.position(), 70, window), s.inputs(70, 2), prefill,
                     softmax(window));
      }
}

PlainAnswer band(int64_t window, int64_t first) {
  return [=](const oracle::Array& q, const oracle::Array& k, const oracle::Array& v) {
    return oracle::average(q, v, {}, [&](int64_t b, int64_t h, int64_t, int64_t j) {
      if (j >= first && j < k.len - 1 - window) return -double{INFINITY};
      return oracle::dot(q.row(b, h, 0), k.row(b, h, j)) / std::sqrt(static_cast<double>(q.dim));
    });
  };
}

// More first positions than a panel holds, or than there are; a prompt that overwrites the ring.
TEST(SharedDecoder, SoftmaxOfFirstPositionsAndARing) {
  for (const int64_t first : {0, 3, 66, 200})
    for (const int64_t window : {0, 5, 66})
      for (const Sharing& s : kSharings)
        for (const int64_t prefill : {0, 150}) {
          SCOPED_TRACE(testing::Message() << first << " first, window " << window);
          const auto decoder = band_softmax_decoder(s.position(), 160, window, first);
          const int64_t slots = std::min<int64_t>(160, first + window + 1);
          EXPECT_EQ(decoder->state_bytes(),
                    slots * s.batch * s.kv_heads * 2 * s.dim * static_cast<int64_t>(sizeof(real)));
          expect_steps(*decoder, s.inputs(160, 2), prefill, band(window, first));
        }
}

// Parts of one cache, merged for each query.
TEST(SharedDecoder, SoftmaxSplitOverThreads) {
  for (const Sharing s : {Sharing{1, 1, 4, 4}, Sharing{1, 3, 7, 4}})
    for (const int count : {2, 4}) {
      const Threads threads(count);
      expect_steps(*softmax_decoder(s.position(), 2600), s.inputs(2600, 3), 2598, softmax());
      // The new position lies in another part than its number modulo the slots.
      expect_steps(*band_softmax_decoder(s.position(), 2600, 1500, 700), s.inputs(2600, 3), 2598,
                   band(1500, 700));
    }
}

TEST(SharedDecoder, Relu) {
  const PlainAnswer relu = [](const oracle::Array& q, const oracle::Array& k,
                              const oracle::Array& v) {
    return oracle::relu_attention(q, k, v, {.causal = true});
  };
  for (const Sharing& s : kSharings)
    for (const int64_t prefill : {0, 61, 130})
      expect_steps(*relu_decoder(s.position(), 133), s.inputs(133), prefill, relu);
}

TEST(SharedDecoder, LinearByOneMapForAllHeads) {
  const auto kernel = [](const oracle::LogFeatures& phi) -> PlainAnswer {
    return [phi](const oracle::Array& q, const oracle::Array& k, const oracle::Array& v) {
      return oracle::kernel_attention(q, k, v, {.causal = true}, phi);
    };
  };
  for (const Sharing& s : kSharings) {
    const Tensor omega = random_directions(1, 97, s.dim, true, rng(3, "omega"));
    const Tensor own = random_directions(s.kv_heads * s.group, 97, s.dim, true, rng(3, "omega"));
    oracle::Array directions = bridge::array_of(omega);
    const std::vector<double> one = directions.x;
    for (directions.heads = 1; directions.heads < s.kv_heads * s.group; ++directions.heads)
      directions.x.insert(directions.x.end(), one.begin(), one.end());
    for (const int64_t prefill : {0, 9}) {
      expect_steps(*linear_decoder(s.position(), 24, elu_plus_one()), s.inputs(24), prefill,
                   kernel(oracle::elu_plus_one()));
      const double scale = std::pow(static_cast<double>(s.dim), -0.25);
      expect_steps(*linear_decoder(s.position(), 24, positive_random(omega, scale)),
                   s.inputs(24, 2), prefill, kernel(oracle::positive_random(directions)),
                   1600 * kEpsilon);
    }
    EXPECT_EQ(linear_decoder(s.position(), 24, relu_random(own, 1e-3)), nullptr);
  }
}

// What query head `head` of all batch entries sees of positions before its own.
bool sees(int64_t head, int64_t i, int64_t j) { return i == j || (i + j + head / 2) % 3 > 0; }

TEST(SharedDecoder, PatternsThatDifferBetweenQueryHeads) {
  const PlainAnswer answer = [](const oracle::Array& q, const oracle::Array& k,
                                const oracle::Array& v) {
    return oracle::average(q, v, {}, [&](int64_t b, int64_t h, int64_t, int64_t j) {
      if (!sees(b * q.heads + h, k.len - 1, j)) return -double{INFINITY};
      return oracle::dot(q.row(b, h, 0), k.row(b, h, j)) / std::sqrt(static_cast<double>(q.dim));
    });
  };
  const CacheLayout layout{.slots = 70,
                           .slot_of = [](int64_t at) { return 69 - at; },
                           .visible_slots =
                               [](int64_t head, int64_t at) {
                                 std::vector<Slots> slots;
                                 for (int64_t j = 0; j <= at; ++j)
                                   if (sees(head, at, j)) slots.push_back({69 - j, 70 - j});
                                 return slots;
                               }};
  for (const Sharing& s : kSharings)
    for (const int64_t prefill : {0, 61})
      expect_steps(*pattern_decoder(s.position(), 70, layout), s.inputs(70, 2), prefill, answer);
}

TEST(SharedDecoder, PatternsOfLongSpans) {
  const CacheLayout layout{.slots = 150,
                           .slot_of = [](int64_t at) { return at; },
                           .visible_slots =
                               [](int64_t, int64_t at) {
                                 return std::vector<Slots>{{std::max<int64_t>(0, at - 99), at + 1}};
                               }};
  for (const Sharing& s : kSharings)
    expect_steps(*pattern_decoder(s.position(), 150, layout), s.inputs(150, 2), 60, softmax(99));
}

// Every third position from the last one back, more than are scored at once, and one beside them.
TEST(SharedDecoder, PatternsOfSlotsFarApart) {
  constexpr int64_t kLength = 250;
  const PlainAnswer answer = [](const oracle::Array& q, const oracle::Array& k,
                                const oracle::Array& v) {
    return oracle::average(q, v, {}, [&](int64_t b, int64_t h, int64_t, int64_t j) {
      const int64_t back = k.len - 1 - j;
      if (back % 3 > 0 && back != 1) return -double{INFINITY};
      return oracle::dot(q.row(b, h, 0), k.row(b, h, j)) / std::sqrt(static_cast<double>(q.dim));
    });
  };
  const CacheLayout layout{.slots = kLength,
                           .visible_slots =
                               [](int64_t, int64_t at) {
                                 const int64_t before = std::max<int64_t>(0, at - 1);
                                 return std::vector<Slots>{{at % 3, at + 1, 3}, {before, at}};
                               },
                           .by_head = false};
  for (const Sharing& s : kSharings)
    expect_steps(*pattern_decoder(s.position(), kLength, layout), s.inputs(kLength, 2), 230,
                 answer);
}

TEST(SharedDecoder, SyntheticWeightsOfEachQueryHead) {
  for (const Sharing& s : kSharings) {
    const int64_t heads = s.kv_heads * s.group;
    const Tensor matrix = Tensor::normal({heads, 40, 40}, rng(3, "matrix"));
    const PlainAnswer answer = [&](const oracle::Array& q, const oracle::Array&,
                                   const oracle::Array& v) {
      return oracle::average(q, v, {}, [&](int64_t, int64_t h, int64_t, int64_t j) {
        return static_cast<double>(matrix[(h * 40 + v.len - 1) * 40 + j]);
      });
    };
    expect_steps(*synthetic_decoder(s.position(), 40, matrix_logits(matrix)), s.inputs(40), 7,
                 answer);
  }
}

std::vector<std::unique_ptr<Decoder>> decoders_of(const Shape& position, int64_t capacity) {
  std::vector<std::unique_ptr<Decoder>> all;
  all.push_back(softmax_decoder(position, capacity));
  all.push_back(softmax_decoder(position, capacity, 9));
  all.push_back(relu_decoder(position, capacity));
  all.push_back(linear_decoder(position, capacity, elu_plus_one()));
  const auto seen = [](int64_t, int64_t at) { return std::vector<Slots>{{0, at + 1}}; };
  all.push_back(pattern_decoder(
      position, capacity,
      {.slots = capacity, .slot_of = [](int64_t at) { return at; }, .visible_slots = seen}));
  const Tensor matrix =
      Tensor::normal({position[1] * position[2], capacity, capacity}, rng(3, "m"));
  all.push_back(synthetic_decoder(position, capacity, matrix_logits(matrix)));
  all.push_back(band_softmax_decoder(position, capacity, 9, 3));
  return all;
}

TEST(SharedDecoder, HoldsAndReadsAsMuchAsItsHeadsOfKeys) {
  const auto alone = decoders_of({2, 8, 1, 16}, 300), shared = decoders_of({2, 2, 4, 16}, 300);
  for (size_t i = 0; i < alone.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(shared[i]->state_bytes() * 4, alone[i]->state_bytes());
    if (i != 5) {  // the matrix of a synthesizer is each query head's own
      EXPECT_EQ(shared[i]->step_bytes() * 4, alone[i]->step_bytes());
    }
    if (i != 3) {  // a state is updated once
      EXPECT_EQ(shared[i]->step_flops(), alone[i]->step_flops());
    }
  }
  EXPECT_EQ(shared[3]->step_flops(), 2 * 2 * (1 + 4) * 2 * 16 * 17);
}

TEST(SharedDecoder, CountsWhatItDeclaresAndTakesStepsBack) {
  const Sharing s{1, 2, 3, 8};
  const StepInputs x = s.inputs(40);
  size_t index = 0;
  for (const auto& decoder : decoders_of(s.position(), 40)) {
    SCOPED_TRACE(index);
    for (int64_t i = 0; i < 30; ++i) {
      const double flops = decoder->step_flops(), bytes = decoder->step_bytes();
      const Counters before = counters();
      const Tensor first = step(*decoder, x, i);
      EXPECT_DOUBLE_EQ(counters().flops - before.flops, flops) << i;
      EXPECT_DOUBLE_EQ(counters().bytes - before.bytes, bytes) << i;
      if (index == 3) continue;  // a sum cannot take back
      decoder->step_back();
      step(*decoder, x, 35);  // another position in its place
      decoder->step_back();
      EXPECT_TRUE(bridge::same_bits(step(*decoder, x, i), first)) << i;
    }
    ++index;
  }
}

using SharedDecodersByIsa = OnEveryIsa;
TEST_F(SharedDecodersByIsa, MatchTheOracle) {
  const Sharing s{1, 2, 8, 20};
  each([&] {
    expect_steps(*softmax_decoder(s.position(), 70), s.inputs(70), 60, softmax());
    expect_steps(*linear_decoder(s.position(), 70, elu_plus_one()), s.inputs(70), 60,
                 [](const oracle::Array& q, const oracle::Array& k, const oracle::Array& v) {
                   return oracle::kernel_attention(q, k, v, {.causal = true},
                                                   oracle::elu_plus_one());
                 });
  });
}

std::unique_ptr<Attention> built(const std::string& name) {
  AttentionConfig config;
  config.heads = 4, config.head_dim = 8, config.max_len = 20, config.causal = true;
  return find_variant(name).build(config, {});
}

// Weights of each head, or no heads at all: as many states as query heads, and the same answers as
// with keys repeated by the caller.
TEST(RepeatingDecoder, AnswersAsWithRepeatedKeys) {
  const Sharing s{2, 2, 2, 8};
  const StepInputs x = s.inputs(20);
  const auto repeated = [](const Tensor& t) { return repeat_heads(Var(t), 2).value(); };
  const StepInputs all{x.q, repeated(x.k), repeated(x.v)};
  for (const char* name : {"additive", "performer", "mean", "conv", "recurrent"}) {
    SCOPED_TRACE(name);
    const auto attention = built(name);
    const auto few = attention->decoder(2, 20, 2), many = attention->decoder(2, 20);
    EXPECT_EQ(few->state_bytes(), many->state_bytes());
    few->extend(positions(x.k, 0, 6), positions(x.v, 0, 6));
    many->extend(positions(all.k, 0, 6), positions(all.v, 0, 6));
    for (int64_t i = 6; i < 20; ++i) {
      EXPECT_TRUE(bridge::same_bits(step(*few, x, i), step(*many, all, i))) << i;
      EXPECT_EQ(few->step_bytes(), many->step_bytes());
      if (i != 12) continue;
      few->step_back(), many->step_back();
      EXPECT_EQ(few->step_flops(), many->step_flops());
      EXPECT_TRUE(bridge::same_bits(step(*few, x, i), step(*many, all, i)));
    }
  }
}

TEST(KvHeads, OfADecoderMustDivideHeads) {
  const auto full = built("full");
  EXPECT_THROW(full->decoder(1, 8, 3), Error);
  EXPECT_THROW(full->decoder(1, 8, 8), Error);
  EXPECT_THROW(full->decoder(1, 8, -1), Error);
  const auto decoder = full->decoder(1, 8, 2);
  const Tensor q({1, 4, 1, 8}), k({1, 2, 1, 8});
  EXPECT_THROW(decoder->step(q, q, q, q.clone()), Error);
  EXPECT_THROW(decoder->step(k, k, k, k.clone()), Error);
  EXPECT_THROW(decoder->extend(q, q), Error);
}

TEST(KvHeads, DivideTheStateWhereItIsShared) {
  const AttentionShape shape{
      .batch = 3, .heads = 4, .q_len = 20, .kv_len = 20, .head_dim = 8, .causal = true};
  for (const char* name : {"full", "truncated", "relu", "linear", "local", "sparse", "longformer",
                           "bigbird", "graph", "synthesizer", "additive", "performer"}) {
    const auto attention = built(name);
    const bool own = std::string(name) == "additive" || std::string(name) == "performer";
    const double whole = attention->state_bytes(shape);
    EXPECT_EQ(whole, attention->cost(shape).state_bytes);
    for (const int64_t kv_heads : {1, 2, 4}) {
      const double kept = attention->state_bytes(shape, kv_heads);
      EXPECT_EQ(kept, own ? whole : whole * static_cast<double>(kv_heads) / 4) << name;
      EXPECT_EQ(kept, static_cast<double>(attention->decoder(3, 20, kv_heads)->state_bytes()))
          << name;
    }
  }
}

}  // namespace
}  // namespace attn::shared_decoder_test
