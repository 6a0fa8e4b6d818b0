// Where variants are something simpler: softcap of a small bound is a mean, gated_attention with
// open gates exact attention, short_conv of one tap a product, rg_lru with constant gates a moving
// average, mlstm with constant gates linear attention with a divisor, csa of one position a block
// attention to all keys. What each is by itself, the contract compares with its reference.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "tests/variants/small_sequence.h"

namespace attn::simpler_forms_test {
namespace {

using small_sequence::build;
using small_sequence::kDim;
using small_sequence::kHeads;
using small_sequence::kLen;
using small_sequence::rows_shape;

// Made anew: a tensor that outlives its test would be counted by tests of memory.
Tensor q() { return bridge::normal(rows_shape(), "q"); }
Tensor k() { return bridge::normal(rows_shape(), "k"); }
Tensor v() { return bridge::normal(rows_shape(), "v"); }

Tensor answer(const Attention& attention, std::span<const Var> gates = {}) {
  return attention.forward(Var(q()), Var(k()), Var(v()), {true, {}}, gates).value();
}

void expect_same(const Tensor& got, const Tensor& want) {
  small_sequence::expect_same(got, want, 200);
}

Tensor filled(int64_t width, double value) {
  return Tensor::full(rows_shape().with(3, width), static_cast<real>(value));
}

TEST(Softcap, OfASmallBoundIsTheMeanOfThePast) {
  const Tensor got = answer(*build("softcap", {{"cap", 1e-3}})), values = v();
  for (int64_t i = 0; i < got.size(); ++i) {
    const int64_t t = i / kDim % kLen;
    double sum = 0;
    for (int64_t back = 0; back <= t; ++back) sum += static_cast<double>(values[i - back * kDim]);
    EXPECT_NEAR(static_cast<double>(got[i]), sum / static_cast<double>(t + 1), 4e-3);
  }
}

TEST(GatedAttention, IsExactAttentionTimesItsGate) {
  const Tensor exact = answer(*build("full"));
  for (const char* gate : {"channel", "head"}) {
    const auto attention = build("gated_attention", {{"gate", gate}});
    const int64_t width = std::string(gate) == "head" ? 1 : kDim;
    const std::array open = {Var(filled(width, 100))}, shut = {Var(filled(width, -100))},
                     half = {Var(filled(width, 0))};
    expect_same(answer(*attention, open), exact);
    const Tensor halves = answer(*attention, half), none = answer(*attention, shut);
    for (int64_t i = 0; i < exact.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(halves[i]), static_cast<double>(exact[i]) / 2, 1e-6);
      EXPECT_NEAR(static_cast<double>(none[i]), 0, 1e-30);
    }
  }
}

// Gates of channels that are alike are the gate of a head.
TEST(GatedAttention, OfAHeadIsOfEqualChannels) {
  const Tensor one = bridge::normal(rows_shape().with(3, 1), "gate"), each(rows_shape());
  for (int64_t i = 0; i < each.size(); ++i) each[i] = one[i / kDim];
  const std::array of_head = {Var(one)}, of_channels = {Var(each)};
  expect_same(answer(*build("gated_attention", {{"gate", "head"}}), of_head),
              answer(*build("gated_attention"), of_channels));
}

TEST(ShortConv, OfOneTapIsAProduct) {
  const auto attention = build("short_conv", {{"kernel", 1}});
  attention->weights()[0].value.value().fill(1);
  const Tensor got = answer(*attention);
  for (int64_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(static_cast<double>(got[i]), static_cast<double>(q()[i] * k()[i] * v()[i]), 1e-6);
}

// A change moves the outputs of its own position and of kernel - 1 after it, and no others.
TEST(ShortConv, SeesItsKernelAlone) {
  const auto attention = build("short_conv", {{"kernel", 4}});
  const Tensor before = answer(*attention);
  const Tensor changed = v().clone();
  constexpr int64_t kAt = 20;
  for (int64_t c = 0; c < kDim; ++c) changed[kAt * kDim + c] += 1;
  const Tensor after = attention->forward(Var(q()), Var(k()), Var(changed), {true, {}}).value();
  for (int64_t t = 0; t < kLen; ++t) {
    const bool is_seen = t >= kAt && t < kAt + 4;
    EXPECT_EQ(before[t * kDim] != after[t * kDim], is_seen) << t;
  }
}

TEST(ShortConv, AStepThatIsTakenBackIsReplaced) {
  const auto attention = build("short_conv", {{"kernel", 3}});
  const Tensor want = answer(*attention);
  const auto decoder = attention->decoder(1, kLen);
  const Shape step{1, kHeads, 1, kDim};
  const Tensor wrong = Tensor::full(step, 3), out(step);
  const auto row = [&](const Tensor& of, int64_t t) {
    const Tensor made(step);
    for (int64_t i = 0; i < made.size(); ++i) made[i] = of[(i / kDim * kLen + t) * kDim + i % kDim];
    return made;
  };
  for (int64_t t = 0; t < kLen; ++t) {
    decoder->step(wrong, wrong, wrong, out);
    decoder->step_back();
    decoder->step(row(q(), t), row(k(), t), row(v(), t), out);
    const Tensor wanted = row(want, t);
    for (int64_t i = 0; i < out.size(); ++i)
      EXPECT_NEAR(static_cast<double>(out[i]), static_cast<double>(wanted[i]), 1e-5);
  }
}

// a = exp(-8·softplus(Λ)·σ(r)) of constant gates; the first position is written whole.
TEST(RgLru, OfConstantGatesIsAMovingAverage) {
  const auto attention = build("rg_lru");
  const Tensor lambda = attention->weights()[0].value.value();
  const std::array gates = {Var(filled(kDim, 0.4)), Var(filled(kDim, -0.3))};
  const Tensor got = answer(*attention, gates);
  const double open = 1 / (1 + std::exp(-0.4)), written = 1 / (1 + std::exp(0.3));
  for (int64_t channel = 0; channel < kHeads * kDim; ++channel) {
    const double rate = std::log1p(std::exp(static_cast<double>(lambda[channel]))),
                 a = std::exp(-8 * rate * open);
    double state = 0;
    for (int64_t t = 0; t < kLen; ++t) {
      const int64_t at = (channel / kDim * kLen + t) * kDim + channel % kDim;
      const double kept = t == 0 ? 1 : std::sqrt(1 - a * a);
      state = a * state + kept * written * static_cast<double>(v()[at]);
      EXPECT_NEAR(static_cast<double>(got[at]), state, 1e-5 * (1 + std::fabs(state)));
    }
  }
}

TEST(RgLru, AShutRecurrenceGateKeepsTheFirstPosition) {
  const auto attention = build("rg_lru");
  const std::array gates = {Var(filled(kDim, -200)), Var(filled(kDim, 200))};
  const Tensor got = answer(*attention, gates);
  for (int64_t i = 0; i < got.size(); ++i) {
    const int64_t first = i - i / kDim % kLen * kDim;
    EXPECT_NEAR(static_cast<double>(got[i]), static_cast<double>(v()[first]), 1e-5);
  }
}

TEST(RgLru, FactorsOfOpenGatesStartInThePapersRange) {
  const Tensor lambda = build("rg_lru")->weights()[0].value.value();
  for (const real value : lambda.values()) {
    const double a = std::exp(-8 * std::log1p(std::exp(static_cast<double>(value))));
    EXPECT_GE(a, 0.9 - 1e-6);
    EXPECT_LE(a, 0.999 + 1e-6);
  }
}

// A forget gate that stays open and strengths of e^0.
TEST(Mlstm, OfOpenGatesIsLinearAttentionOverItsSum) {
  const auto attention = build("mlstm", {{"cap", 30.0}});
  const std::array gates = {Var(filled(1, 0)), Var(filled(1, 1000))};
  const Tensor got = answer(*attention, gates), queries = q(), keys = k(), values = v();
  for (int64_t head = 0; head < kHeads; ++head)
    for (int64_t i = 0; i < kLen; ++i) {
      std::array<double, kDim> sums = {};
      double total = 0;
      for (int64_t j = 0; j <= i; ++j) {
        double weight = 0;
        for (int64_t c = 0; c < kDim; ++c)
          weight += static_cast<double>(queries[(head * kLen + i) * kDim + c] *
                                        keys[(head * kLen + j) * kDim + c]);
        weight /= std::sqrt(static_cast<double>(kDim));
        total += weight;
        for (int64_t c = 0; c < kDim; ++c)
          sums[static_cast<size_t>(c)] +=
              weight * static_cast<double>(values[(head * kLen + j) * kDim + c]);
      }
      for (int64_t c = 0; c < kDim; ++c)
        EXPECT_NEAR(static_cast<double>(got[(head * kLen + i) * kDim + c]),
                    sums[static_cast<size_t>(c)] / std::fmax(std::fabs(total), 1), 2e-4);
    }
}

// Capped strengths stay numbers, however large a gate.
TEST(Mlstm, LargeGatesStayFinite) {
  const auto attention = build("mlstm");
  const std::array gates = {Var(filled(1, 1e6)), Var(filled(1, 1e6))};
  const Tensor got = answer(*attention, gates);
  for (const real value : got.values()) EXPECT_TRUE(std::isfinite(value));
}

Tensor csa_answer(const Attention& csa, const Tensor& logits, const Tensor& keys = k(),
                  const Tensor& values = v()) {
  const std::array gates = {Var(logits)};
  return csa.forward(Var(q()), Var(keys), Var(values), {true, {}}, gates).value();
}

const std::map<std::string, ParamValue> kPlainRows = {
    {"overlap", false}, {"scorer", std::string("none")}, {"window", 0}, {"sink", false}};

std::unique_ptr<Attention> csa_of(std::map<std::string, ParamValue> params) {
  for (const auto& [name, value] : kPlainRows) params.emplace(name, value);
  return build("csa", params);
}

// Rows of one position are its key and value over their root mean squares. With those a window of
// the own key counts that key twice.
TEST(Csa, OfOnePositionABlockIsAttentionToAllKeys) {
  const auto unit = [](const Tensor& x) {
    const Tensor made(x.shape());
    for (int64_t row = 0; row < x.size() / kDim; ++row) {
      double square = 0;
      for (int64_t c = 0; c < kDim; ++c) square += std::pow(x[row * kDim + c], 2) / kDim;
      for (int64_t c = 0; c < kDim; ++c)
        made[row * kDim + c] = static_cast<real>(x[row * kDim + c] / std::sqrt(square + 1e-6));
    }
    return made;
  };
  const Tensor keys = unit(k()), values = unit(v()), want(rows_shape());
  const Tensor row_keys = unit(keys), row_values = unit(values);
  for (int64_t row = 0; row < kHeads * kLen; ++row) {
    const int64_t first = row / kLen * kLen;
    double total = 0;
    std::array<double, kDim> sums{};
    const auto see = [&](const Tensor& key, const Tensor& value, int64_t j) {
      double logit = 0;
      for (int64_t c = 0; c < kDim; ++c)
        logit += static_cast<double>(q()[row * kDim + c]) * static_cast<double>(key[j * kDim + c]);
      const double weight = std::exp(logit / std::sqrt(double{kDim}));
      total += weight;
      for (int64_t c = 0; c < kDim; ++c)
        sums[static_cast<size_t>(c)] += weight * static_cast<double>(value[j * kDim + c]);
    };
    for (int64_t j = first; j <= row; ++j) see(row_keys, row_values, j);
    see(keys, values, row);
    for (int64_t c = 0; c < kDim; ++c)
      want[row * kDim + c] = static_cast<real>(sums[static_cast<size_t>(c)] / total);
  }
  const Tensor logits = bridge::normal(rows_shape(), "logits");
  expect_same(csa_answer(*csa_of({{"stride", 1}}), logits, keys, values), want);
}

TEST(Csa, WithoutABlockIsExactAttention) {
  const auto attention = csa_of({{"stride", kLen + 1}, {"window", kLen}});
  expect_same(csa_answer(*attention, filled(kDim, 0)), answer(*build("full")));
}

TEST(Csa, ChoosesNothingWhereAllRowsAreKept) {
  const Tensor logits = bridge::normal(rows_shape().with(3, 2 * kDim), "logits");
  const Tensor all = csa_answer(*build("csa", {{"scorer", std::string("none")}}), logits);
  expect_same(csa_answer(*build("csa", {{"keys", 17}}), logits), all);
  const Tensor fewer = csa_answer(*build("csa", {{"keys", 16}}), logits);
  EXPECT_NE(fewer[fewer.size() - 1], all[all.size() - 1]);  // of the last query, which sees 17
}

// Logits of one position move the rows of its own block and, those that are for it, of the next,
// each from the end of the block on.
TEST(Csa, ARowIsSeenFromTheEndOfItsBlockOn) {
  const auto attention = build("csa", {{"window", 2}});
  const Tensor logits = bridge::normal(rows_shape().with(3, 2 * kDim), "logits");
  const Tensor before = csa_answer(*attention, logits);
  const auto first_moved = [&](int64_t channel) {
    const Tensor moved = logits.clone();
    moved[5 * 2 * kDim + channel] += 1;  // of head 0, in the block of positions 4 to 7
    const Tensor after = csa_answer(*attention, moved);
    int64_t t = 0;
    while (t < kLen && after[t * kDim] == before[t * kDim]) ++t;
    return t;
  };
  EXPECT_EQ(first_moved(0), 7);
  EXPECT_EQ(first_moved(kDim), 11);
}

// Rows of equal keys have equal scores, whatever the logits: the first row is chosen.
TEST(Csa, OfEqualRowsTheFirstIsChosen) {
  const auto attention = build("csa", {{"keys", 1}, {"window", 0}});
  const Tensor logits = bridge::normal(rows_shape().with(3, 2 * kDim), "logits");
  const Tensor keys = k().clone(), moved = v().clone();
  for (int64_t i = kDim; i < keys.size(); ++i) keys[i] = keys[i % kDim];
  for (int64_t c = 0; c < kDim; ++c) moved[9 * kDim + c] += 1;  // of rows 2 and 3
  const Tensor before = csa_answer(*attention, logits, keys),
               after = csa_answer(*attention, logits, keys, moved);
  for (int64_t i = 12 * kDim; i < kLen * kDim; ++i) EXPECT_EQ(after[i], before[i]);
}

TEST(Csa, ASinkTakesItsShareOfEachRow) {
  const auto with = build("csa"), without = build("csa", {{"sink", false}});
  const Tensor logits = bridge::normal(rows_shape().with(3, 2 * kDim), "logits");
  const auto sinks = [&](double value) {
    for (const Weight& weight : with->weights())
      if (weight.name == "sinks") weight.value.set_value(Tensor::full({kHeads}, real(value)));
    return csa_answer(*with, logits);
  };
  expect_same(sinks(-100), csa_answer(*without, logits));
  const Tensor none = sinks(100);
  for (int64_t i = 0; i < none.size(); ++i) EXPECT_NEAR(static_cast<double>(none[i]), 0, 1e-30);
}

}  // namespace
}  // namespace attn::simpler_forms_test
