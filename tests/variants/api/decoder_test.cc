// Decoders of softmax and of kernel attention, position by position, against the oracle: at the
// borders of panels, blocks, rings and chunks, with heads split over threads, and at large logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "core/base/counters.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "tests/core/simd/on_every_isa.h"
#include "tests/variants/api/decoder_steps.h"
#include "variants/features/linear_attention.h"
#include "variants/features/linear_decoder.h"
#include "variants/softmax/softmax_attention.h"
#include "variants/softmax/softmax_decoder.h"

namespace attn::decoder_test {
namespace {

using bridge::array_of;

PlainAnswer softmax(int64_t window) {
  return [window](const oracle::Array& q, const oracle::Array& k, const oracle::Array& v) {
    return oracle::softmax_attention(q, k, v, {.causal = true, .lengths = {}, .window = window});
  };
}

PlainAnswer kernel(const oracle::LogFeatures& phi) {
  return [phi](const oracle::Array& q, const oracle::Array& k, const oracle::Array& v) {
    return oracle::kernel_attention(q, k, v, {.causal = true}, phi);
  };
}

TEST(SoftmaxDecoder, EveryLengthUpToTwoPanels) {
  const StepInputs x = inputs({2, 2, 131, 5});
  expect_steps(*softmax_decoder({2, 2, 1, 5}, 131), x, 0, softmax(-1));
}

TEST(SoftmaxDecoder, RingsOfEveryWidth) {
  for (const int64_t window : {0, 1, 2, 62, 63, 64, 65, 127}) {
    SCOPED_TRACE(window);
    const int64_t length = 2 * window + 3;
    const StepInputs x = inputs({1, 2, length, 3});
    for (const int64_t prefill : {int64_t{0}, window / 2, window + 1, window + 2, length - 1})
      expect_steps(*softmax_decoder({1, 2, 1, 3}, length, window), x, prefill, softmax(window));
  }
}

TEST(SoftmaxDecoder, HeadWidthsAroundVectors) {
  for (const int64_t dim : {1, 7, 16, 17, 63, 64, 65, 130}) {
    SCOPED_TRACE(dim);
    const StepInputs x = inputs({1, 1, 70, dim});
    expect_steps(*softmax_decoder({1, 1, 1, dim}, 70), x, 60, softmax(-1));
  }
}

// 1 and 3 heads on 2 and 4 threads: parts of 512 positions, merged.
TEST(SoftmaxDecoder, SplitsTheCacheOverThreads) {
  for (const int64_t heads : {1, 3})
    for (const int count : {2, 4})
      for (const int64_t length : {511, 1024, 1025, 2600}) {
        const Threads threads(count);
        const StepInputs x = inputs({1, heads, length, 4}, 3);
        SCOPED_TRACE(testing::Message() << heads << " heads, " << count << " threads, " << length);
        expect_steps(*softmax_decoder({1, heads, 1, 4}, length), x, length - 1, softmax(-1));
      }
}

TEST(SoftmaxDecoder, LargeLogits) {
  const StepInputs x = inputs({1, 2, 300, 8}, 12);  // logits of up to 1000 or so
  expect_steps(*softmax_decoder({1, 2, 1, 8}, 300), x, 250, softmax(-1), 1000 * kEpsilon);
}

// Steps from `prefill` on against the rows of the causal forward over the same positions.
void expect_forward(Decoder& decoder, const StepInputs& x, int64_t prefill, const Tensor& forward,
                    double allowed = 40 * kEpsilon) {
  decoder.extend(positions(x.k, 0, prefill), positions(x.v, 0, prefill));
  for (int64_t i = prefill; i < x.q.dim(2); ++i) {
    const double error =
        bridge::relative_error(step(decoder, x, i), array_of(positions(forward, i, i + 1)).x);
    ASSERT_TRUE(error <= allowed) << "position " << i << ": " << error;
  }
}

TEST(SoftmaxDecoder, KeysOfWeightZeroAreAsInTheForward) {
  StepInputs x = inputs({1, 2, 2100, 4});
  x.q.fill(1);
  const auto hide = [&](int64_t begin, int64_t end) {
    for (int64_t head = 0; head < 2; ++head)
      std::fill_n(x.k.data() + (head * 2100 + begin) * 4, (end - begin) * 4, -kInfinity);
  };
  hide(0, 3);  // a query that sees nothing gets zeros
  const StepInputs few = {positions(x.q, 0, 6), positions(x.k, 0, 6), positions(x.v, 0, 6)};
  const auto forward = [](const StepInputs& of) {
    return softmax_attention(Var(of.q), Var(of.k), Var(of.v), {.causal = true}).value();
  };
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(forward(few)[i], real(0));
  expect_forward(*softmax_decoder({1, 2, 1, 4}, 6), few, 0, forward(few));
  hide(0, 1024);  // a whole part of the cache, of two and of four
  for (const int count : {1, 4, 8}) {
    const Threads threads(count);
    expect_forward(*softmax_decoder({1, 2, 1, 4}, 2100), x, 2098, forward(x));
  }
  hide(1024, 2100);
  const Threads threads(4);
  const auto decoder = softmax_decoder({1, 2, 1, 4}, 2100);
  decoder->extend(positions(x.k, 0, 2099), positions(x.v, 0, 2099));
  const Tensor last = step(*decoder, x, 2099);
  for (const real value : last.values()) EXPECT_EQ(value, real(0));
}

TEST(SoftmaxDecoder, AStepTakenBackIsTakenAgain) {
  for (const int64_t window : {-1, 4}) {
    const StepInputs x = inputs({1, 2, 21, 3});
    const auto decoder = softmax_decoder({1, 2, 1, 3}, 21, window);
    for (int64_t i = 0; i < 20; ++i) {
      const Tensor first = step(*decoder, x, i);
      decoder->step_back();
      step(*decoder, x, 20);  // another position in its place
      decoder->step_back();
      EXPECT_TRUE(bridge::same_bits(step(*decoder, x, i), first)) << i;
    }
    EXPECT_EQ(decoder->length(), 20);
  }
}

TEST(SoftmaxDecoder, HoldsItsSlotsAndNoMore) {
  const int64_t each = 2 * 6 * 5 * static_cast<int64_t>(sizeof(real));
  EXPECT_EQ(softmax_decoder({2, 3, 1, 5}, 100)->state_bytes(), 100 * each);
  EXPECT_EQ(softmax_decoder({2, 3, 1, 5}, 100, 64)->state_bytes(), 65 * each);
  EXPECT_EQ(softmax_decoder({2, 3, 1, 5}, 100, 200)->state_bytes(), 100 * each);
}

TEST(LinearDecoder, EluAgainstTheOracle) {
  const StepInputs x = inputs({2, 2, 20, 5});
  for (const int64_t prefill : {0, 7, 19})
    expect_steps(*linear_decoder({2, 2, 1, 5}, 20, elu_plus_one()), x, prefill,
                 kernel(oracle::elu_plus_one()));
}

TEST(LinearDecoder, PrefillAtTheBordersOfChunks) {
  for (const int64_t prefill : {127, 128, 129, 256, 259, 513}) {
    SCOPED_TRACE(prefill);
    const StepInputs x = inputs({1, 1, prefill + 2, 3});
    expect_steps(*linear_decoder({1, 1, 1, 3}, prefill + 2, elu_plus_one()), x, prefill,
                 kernel(oracle::elu_plus_one()));
  }
}

TEST(LinearDecoder, RandomFeaturesAgainstTheOracle) {
  for (const int64_t features : {1, 16, 95, 97, 200})
    for (const double scale : {1.0, 4.0}) {  // 4: maxima of one key above another by e^30
      SCOPED_TRACE(testing::Message() << features << " features, scale " << scale);
      const Tensor omega = random_directions(2, features, 4, true, rng(3, "omega"));
      const oracle::Array directions = array_of(omega);
      const StepInputs x = inputs({2, 2, 24, 4}, scale);
      const double allowed = 400 * scale * scale * kEpsilon;  // rounding of exponents
      expect_steps(*linear_decoder({2, 2, 1, 4}, 24, positive_random(omega, std::pow(4, -0.25))), x,
                   9, kernel(oracle::positive_random(directions)), allowed);
      expect_steps(*linear_decoder({2, 2, 1, 4}, 24, relu_random(omega, 1e-3)), x, 9,
                   kernel(oracle::relu_random(directions, 1e-3)), allowed);
    }
}

TEST(LinearDecoder, AHugeKeyIsAsInTheForward) {
  StepInputs x = inputs({1, 2, 9, 4});
  const real huge = kIsDouble ? real(1e160) : real(1e20);  // its square is infinite
  for (const int64_t position : {0, 5})
    for (int64_t head = 0; head < 2; ++head)
      std::fill_n(x.k.data() + (head * 9 + position) * 4, 4, huge);
  const Tensor omega = random_directions(2, 32, 4, true, rng(3, "omega"));
  const FeatureMap map = positive_random(omega, 0.7);
  const Tensor forward =
      linear_attention(Var(x.q), Var(x.k), Var(x.v), {.causal = true, .map = map}).value();
  for (const int64_t prefill : {0, 1, 7})
    expect_forward(*linear_decoder({1, 2, 1, 4}, 9, map), x, prefill, forward, 200 * kEpsilon);
}

TEST(LinearDecoder, SameBitsOnAnyNumberOfThreads) {
  const StepInputs x = inputs({2, 4, 40, 64});
  const Tensor omega = random_directions(4, 128, 64, true, rng(3, "omega"));
  Tensor outs[2];
  for (const int count : {1, 3}) {
    const Threads threads(count);
    const auto decoder = linear_decoder({2, 4, 1, 64}, 40, positive_random(omega, 0.35));
    for (int64_t i = 0; i < 40; ++i) outs[count > 1] = step(*decoder, x, i);
  }
  EXPECT_TRUE(bridge::same_bits(outs[0], outs[1]));
}

TEST(LinearDecoder, HoldsAConstantState) {
  const int64_t size = static_cast<int64_t>(sizeof(real));
  const Tensor omega = random_directions(3, 16, 5, true, rng(3, "omega"));
  for (const int64_t capacity : {1, 1000}) {
    EXPECT_EQ(linear_decoder({2, 3, 1, 5}, capacity, elu_plus_one())->state_bytes(), 6 * 30 * size);
    EXPECT_EQ(linear_decoder({2, 3, 1, 5}, capacity, positive_random(omega, 1))->state_bytes(),
              6 * (16 * 6 + 1) * size);
  }
}

using DecodersByIsa = OnEveryIsa;
TEST_F(DecodersByIsa, MatchTheOracle) {
  const StepInputs x = inputs({1, 2, 70, 20});
  const Tensor omega = random_directions(2, 100, 20, true, rng(3, "omega"));
  const oracle::Array directions = array_of(omega);
  each([&] {
    expect_steps(*softmax_decoder({1, 2, 1, 20}, 70), x, 40, softmax(-1));
    expect_steps(*softmax_decoder({1, 2, 1, 20}, 70, 20), x, 40, softmax(20));
    expect_steps(*linear_decoder({1, 2, 1, 20}, 70, elu_plus_one()), x, 60,
                 kernel(oracle::elu_plus_one()));
    expect_steps(*linear_decoder({1, 2, 1, 20}, 70, positive_random(omega, std::pow(20, -0.25))), x,
                 60, kernel(oracle::positive_random(directions)), 400 * kEpsilon);
  });
}

TEST(Decoders, CountTheFlopsTheyDeclare) {
  const StepInputs x = inputs({1, 2, 100, 8});
  const Tensor omega = random_directions(2, 32, 8, true, rng(3, "omega"));
  const std::unique_ptr<Decoder> decoders[] = {
      softmax_decoder({1, 2, 1, 8}, 100), softmax_decoder({1, 2, 1, 8}, 100, 9),
      linear_decoder({1, 2, 1, 8}, 100, elu_plus_one()),
      linear_decoder({1, 2, 1, 8}, 100, positive_random(omega, 1))};
  for (const auto& decoder : decoders)
    for (int64_t i = 0; i < 12; ++i) {
      const double flops = decoder->step_flops(), bytes = decoder->step_bytes();
      const Counters before = counters();
      step(*decoder, x, i);
      EXPECT_DOUBLE_EQ(counters().flops - before.flops, flops) << i;
      EXPECT_DOUBLE_EQ(counters().bytes - before.bytes, bytes) << i;
    }
  // What the decoders have seen by now: 12 positions.
  const double size = sizeof(real), cached = 2 * 2 * 8 * size;
  EXPECT_EQ(decoders[0]->step_bytes(), (13 + 1) * cached);
  EXPECT_EQ(decoders[1]->step_bytes(), (10 + 1) * cached);
  EXPECT_EQ(decoders[2]->step_bytes(), 2 * 2 * 8 * 9 * size);
  EXPECT_EQ(decoders[3]->step_bytes(), 2 * 2 * (32 * 9 + 1) * size + 2 * 64 * 8 * size);
}

TEST(Decoders, AskTheSystemForNothingInASteadyState) {
  const Threads threads(2);
  const StepInputs x = inputs({1, 2, 3000, 16});
  const Tensor omega = random_directions(2, 32, 16, true, rng(3, "omega"));
  const std::unique_ptr<Decoder> decoders[] = {
      softmax_decoder({1, 2, 1, 16}, 3000),
      linear_decoder({1, 2, 1, 16}, 3000, positive_random(omega, 0.5))};
  for (const auto& decoder : decoders) {
    decoder->extend(positions(x.k, 0, 2000), positions(x.v, 0, 2000));
    const Tensor q = positions(x.q, 0, 1), out(q.shape());
    decoder->step(q, q, q, out);
    const int64_t calls = memory_use().system_calls, live = memory_use().live_total;
    for (int i = 0; i < 50; ++i) decoder->step(q, q, q, out);
    // One thread may have done the whole first step; the other then fetches its scratch, once.
    EXPECT_LE(memory_use().system_calls, calls + 2);
    EXPECT_EQ(memory_use().live_total, live);
  }
}

TEST(Decoders, RefuseWhatDoesNotFit) {
  const StepInputs x = inputs({1, 2, 4, 3});
  const auto decoder = softmax_decoder({1, 2, 1, 3}, 3);
  EXPECT_THROW(decoder->step_back(), Error);
  EXPECT_THROW(decoder->extend(x.k, x.v), Error);  // 4 positions
  EXPECT_THROW(decoder->extend(positions(x.k, 0, 2), positions(x.v, 0, 1)), Error);
  EXPECT_THROW(decoder->step(x.q, x.k, x.v, Tensor(x.q.shape())), Error);
  const Tensor one = positions(x.q, 0, 1);
  EXPECT_THROW(decoder->step(one, one, one, Tensor({1, 2, 1, 4})), Error);
  decoder->extend(positions(x.k, 0, 3), positions(x.v, 0, 3));
  EXPECT_THROW(decoder->step(one, one, one, Tensor(one.shape())), Error);
  EXPECT_EQ(decoder->length(), 3);
}

}  // namespace
}  // namespace attn::decoder_test
