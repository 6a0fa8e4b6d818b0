// reformer against sets written out as lists, its limits, and what others get wrong: the scale of
// the logits, keys that several rounds show, and borders of chunks that move with the future.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/base/check.h"
#include "core/base/memory.h"
#include "core/base/recycled.h"
#include "variants/hashing/buckets.h"
#include "variants/reference/reformer.h"
#include "tests/variants/textbook_cases.h"
#include "tests/variants/oracle_bridge.h"
#include "tests/said.h"

namespace attn::reformer_test {
namespace {

using bridge::array_of;

struct Setting {
  int64_t rounds, chunk, buckets, first, second;
};

std::map<std::string, ParamValue> params(const Setting& s) {
  return {{"rounds", s.rounds}, {"chunk", s.chunk}, {"buckets", s.buckets}};
}

// The oracle's own hashing of q, which no gradient passes.
oracle::Hashing hashing_of(const Attention& attention, const Tensor& q, const Setting& s) {
  const Tensor weight = attention.weights()[0].value.value();
  const oracle::Array rotations =
      array_of(weight.reshaped({weight.dim(0), weight.dim(1) * weight.dim(2), weight.dim(3)}));
  const oracle::Array queries = array_of(q);
  return {s.rounds, s.chunk, [=](int64_t b, int64_t h, int64_t round, int64_t i) {
            if (s.buckets == 1) return int64_t{0};
            return oracle::hash(queries.row(b, h, i), rotations, h, round, s.first, s.second);
          }};
}

void expect_oracle(const Setting& s, int64_t length, bool causal,
                   const std::vector<int64_t>& lengths) {
  SCOPED_TRACE(testing::Message() << "rounds " << s.rounds << " buckets " << s.buckets << " length "
                                  << length << (causal ? " causal" : "")
                                  << (lengths.empty() ? "" : " padded"));
  const bridge::TwinCase c{"reformer", params(s), {2, 2, length, length, 5, causal}, lengths};
  bridge::expect_twin(c, [&](const Attention& attention, const Tensor& q) {
    const oracle::Hashing hashing = hashing_of(attention, q, s);
    return [=](const std::vector<oracle::Array>& x) {
      return oracle::reformer(x[0], x[2], hashing, {causal, lengths});
    };
  });
}

TEST(Reformer, EqualsItsOracle) {
  for (const Setting& s : {Setting{3, 4, 4, 2, 0}, {1, 6, 2, 1, 0}, {2, 16, 6, 3, 0}})
    for (const int64_t length : {1, 2, 37})
      for (const bool causal : {false, true}) {
        expect_oracle(s, length, causal, {});
        expect_oracle(s, length, causal, {length / 2, length});
      }
}

TEST(Reformer, ManyBucketsAreHashedInTwoFactors) {
  // 130 buckets: 2·6 times 2·6
  expect_oracle({2, 4, 130, 6, 6}, 41, false, {});
  expect_oracle({2, 4, 130, 6, 6}, 41, true, {});
}

// q and v of one batch entry and head; the output of a reformer with these parameters.
Tensor output(const std::map<std::string, ParamValue>& given, const Tensor& q, const Tensor& v,
              bool causal, const Tensor& rotations = {}) {
  const auto attention =
      find_variant("reformer").build({q.dim(1), q.dim(3), q.dim(2), causal, 3, {}}, given);
  if (rotations.defined()) attention->weights()[0].value.set_value(rotations);
  const NoGrad no_grad;
  return attention->forward(Var(q), Var(q), Var(v), {causal, {}}).value();
}

// Two factors of about √buckets each: no bucket is lost, and the second is no larger than it must
// be.
TEST(Reformer, FactorsHoldEveryBucket) {
  for (const int64_t buckets : {2, 7, 128, 129, 130, 200, 255, 1000, 4096, 65536}) {
    const HashShape shape = HashShape::of(buckets);
    if (buckets <= 128) {
      EXPECT_EQ(shape.first, (buckets + 1) / 2) << buckets;
      EXPECT_EQ(shape.second, 0) << buckets;
      continue;
    }
    EXPECT_GE(2 * shape.first * 2 * shape.second, buckets);
    EXPECT_LT(2 * shape.first * 2 * (shape.second - 1), buckets);
    EXPECT_NEAR(static_cast<double>(2 * shape.first), std::sqrt(static_cast<double>(buckets)), 1.5);
  }
}

TEST(Reformer, OneBucketIsSharedAttentionWithUnitKeysAndNoOtherScale) {
  const Tensor q = bridge::normal({1, 2, 50, 8}, "q"), v = bridge::normal({1, 2, 50, 8}, "v");
  for (const bool causal : {false, true}) {
    const Tensor got = output({{"buckets", int64_t{1}}, {"chunk", int64_t{64}}}, q, v, causal);
    const oracle::Array a = array_of(q);
    const oracle::Visibility others{causal, {}, -1, [](int64_t, int64_t, int64_t i, int64_t j) {
                                      return i != j || i == 0;  // at the start no other is seen
                                    }};
    const oracle::Visibility all{
        causal, {}, -1, [](int64_t, int64_t, int64_t i, int64_t j) { return i != j; }};
    const oracle::Array want = oracle::average(
        a, array_of(v), causal ? others : all, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
          return oracle::dot(a.row(b, h, i), oracle::unit(a.row(b, h, j)));
        });
    EXPECT_LE(bridge::relative_error(got, want.x), 200 * kEpsilon);
  }
}

// What others get wrong: a key that two rounds show counts twice.
TEST(Reformer, ARoundTwiceChangesNothing) {
  const Tensor q = bridge::normal({1, 2, 60, 6}, "q"), v = bridge::normal({1, 2, 60, 6}, "v");
  const Tensor two = bridge::normal({2, 2, 4, 6}, "rotations"), three({2, 3, 4, 6});
  for (int64_t i = 0; i < three.size(); ++i) {
    const int64_t round = std::min<int64_t>(1, i / 24 % 3);  // the second one again
    three[i] = two[(i / 72 * 2 + round) * 24 + i % 24];
  }
  for (const bool causal : {false, true}) {
    const auto given = [](int64_t rounds) {
      return std::map<std::string, ParamValue>{
          {"rounds", rounds}, {"buckets", int64_t{8}}, {"chunk", int64_t{8}}};
    };
    const Tensor want = output(given(2), q, v, causal, two);
    EXPECT_TRUE(bridge::relative_error(output(given(3), q, v, causal, three), array_of(want).x) <=
                40 * kEpsilon);
  }
}

// What others get wrong: tokens that come later fill the buckets and move the borders of chunks, so
// that earlier queries see other keys.
TEST(Reformer, TheFutureMovesNoBorder) {
  const Tensor q = bridge::normal({1, 1, 96, 6}, "q"), v = bridge::normal({1, 1, 96, 6}, "v");
  const Tensor other = q.clone();
  for (int64_t i = 48 * 6; i < 96 * 6; ++i) other[i] = q[i % 6];  // all in one bucket
  const std::map<std::string, ParamValue> given = {{"chunk", int64_t{4}}, {"buckets", int64_t{8}}};
  const Tensor a = output(given, q, v, true), b = output(given, other, v, true);
  for (int64_t i = 0; i < 48 * 6; ++i) ASSERT_NEAR(a[i], b[i], 20 * kEpsilon) << i;
}

TEST(Reformer, AsLraMultipliesByTheRootAndSeesWholeChunks) {
  const int64_t n = 30, dim = 4, buckets = 10;
  const Tensor q = bridge::normal({1, 1, n, dim}, "q", 0.5), v = bridge::normal(q.shape(), "v");
  const std::map<std::string, ParamValue> given = {
      {"as", std::string("lra")}, {"rounds", int64_t{1}}, {"buckets", buckets}};
  const auto attention = find_variant("reformer").build({1, dim, n, false, 3, {}}, given);
  const oracle::Hashing hashing = hashing_of(*attention, q, {1, 3, buckets, 5, 0});
  std::vector<int64_t> order, place(n);
  for (int64_t i = 0; i < n; ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    return hashing.bucket(0, 0, 0, i) < hashing.bucket(0, 0, 0, j);
  });
  for (int64_t s = 0; s < n; ++s) place[static_cast<size_t>(order[static_cast<size_t>(s)])] = s;
  const oracle::Visibility seen{false, {}, -1, [&](int64_t, int64_t, int64_t i, int64_t j) {
                                  const int64_t mine = place[static_cast<size_t>(i)] / 3,
                                                theirs = place[static_cast<size_t>(j)] / 3;
                                  return theirs == mine || theirs == (mine + buckets - 1) % buckets;
                                }};
  const oracle::Array want = oracle::softmax_attention(array_of(q), array_of(q), array_of(v), seen,
                                                       std::sqrt(static_cast<double>(dim)));
  EXPECT_TRUE(bridge::relative_error(output(given, q, v, false), want.x) <= 200 * kEpsilon);
  EXPECT_TRUE(says(find_variant("reformer")
                       .why_not({1, 1, n, n, dim, true},
                                Params("reformer", find_variant("reformer").params, given))
                       .value_or(""),
                   "causal"));
}

TEST(ReformerDecoder, EqualsTheCausalForward) {
  for (const Setting& s : {Setting{3, 4, 4, 2, 0},
                           {1, 6, 2, 1, 0},
                           {2, 16, 6, 3, 0},
                           {2, 3, 130, 6, 6},
                           {2, 5, 1, 0, 0}})
    for (const int64_t length : {1, 2, 37, 97})
      for (const int64_t prefill : std::set<int64_t>{0, length / 2, length - 1}) {
        SCOPED_TRACE(testing::Message()
                     << "buckets " << s.buckets << " length " << length << " after " << prefill);
        textbook_cases::expect_decoding("reformer", params(s), 1, length, prefill);
        textbook_cases::expect_decoding("reformer", params(s), 6, length, prefill);
      }
}

// Position `i` of x [batch, heads, len, dim].
Tensor row(const Tensor& x, int64_t i) {
  const Tensor one(x.shape().with(2, 1));
  for (int64_t h = 0; h < x.dim(0) * x.dim(1); ++h)
    std::copy_n(x.data() + (h * x.dim(2) + i) * x.dim(3), x.dim(3), one.data() + h * x.dim(3));
  return one;
}

std::unique_ptr<Attention> causal_reformer(const std::map<std::string, ParamValue>& given,
                                           const Tensor& q) {
  return find_variant("reformer").build({q.dim(1), q.dim(3), q.dim(2), true, 3, {}}, given);
}

TEST(ReformerDecoder, EqualsItsOracle) {
  const Setting s{3, 4, 8, 4, 0};
  const Tensor q = bridge::normal({2, 3, 61, 5}, "q"), v = bridge::normal(q.shape(), "v");
  const auto attention = causal_reformer(params(s), q);
  const oracle::Array want =
      oracle::reformer(array_of(q), array_of(v), hashing_of(*attention, q, s), {true, {}});
  const auto decoder = attention->decoder(2, 61);
  Tensor all(q.shape()), out(row(q, 0).shape());
  for (int64_t i = 0; i < 61; ++i) {
    decoder->step(row(q, i), row(v, i), row(v, i), out);
    for (int64_t h = 0; h < 6; ++h)
      std::copy_n(out.data() + h * 5, 5, all.data() + (h * 61 + i) * 5);
  }
  EXPECT_LE(bridge::relative_error(all, want.x), 200 * kEpsilon);
}

// What others get wrong: the whole bucket stays visible, however many came since. Equal queries
// share one bucket and weigh all that they see alike.
TEST(ReformerDecoder, RegressionABucketOfMoreThanAChunkForgetsTheOldest) {
  const int64_t chunk = 3, n = 20;
  const Tensor q = Tensor::full({1, 1, n, 4}, real(0.5)), v = bridge::normal(q.shape(), "v");
  const auto attention =
      causal_reformer({{"rounds", int64_t{2}}, {"chunk", chunk}, {"buckets", int64_t{8}}}, q);
  const auto decoder = attention->decoder(1, n);
  const Tensor out({1, 1, 1, 4});
  for (int64_t i = 0; i < n; ++i) {
    decoder->step(row(q, i), row(q, i), row(v, i), out);
    const int64_t first = std::max<int64_t>(0, i - chunk), count = std::max<int64_t>(1, i - first);
    for (int64_t c = 0; c < 4; ++c) {
      double mean = 0;
      for (int64_t j = first; j < first + count; ++j) mean += v[j * 4 + c];
      EXPECT_NEAR(out[c], mean / static_cast<double>(count), 20 * kEpsilon) << i;
    }
  }
}

// What others get wrong: a key that two rounds show counts twice. Here the last two rounds are one.
TEST(ReformerDecoder, RegressionAKeyOfTwoRoundsCountsOnce) {
  const Tensor q = bridge::normal({1, 1, 60, 6}, "q"), v = bridge::normal(q.shape(), "v");
  const Tensor two = bridge::normal({1, 2, 4, 6}, "rotations"), three({1, 3, 4, 6});
  for (int64_t i = 0; i < three.size(); ++i)
    three[i] = two[std::min(i / 24, int64_t{1}) * 24 + i % 24];
  const auto decoded = [&](int64_t rounds, const Tensor& rotations) {
    const auto attention =
        causal_reformer({{"rounds", rounds}, {"buckets", int64_t{8}}, {"chunk", int64_t{8}}}, q);
    attention->weights()[0].value.set_value(rotations);
    const auto decoder = attention->decoder(1, 60);
    const Tensor out({1, 1, 1, 6});
    for (int64_t i = 0; i < 60; ++i) decoder->step(row(q, i), row(q, i), row(v, i), out);
    return std::pair(out, decoder->step_flops());
  };
  const auto [once, flops] = decoded(2, two);
  const auto [twice, more] = decoded(3, three);
  EXPECT_TRUE(bridge::relative_error(twice, array_of(once).x) <= 20 * kEpsilon);
  EXPECT_EQ(more - flops, 2 * 4 * 6);  // of one more hash alone
}

// A step taken back leaves nothing in the bucket that its query fell into.
TEST(ReformerDecoder, RegressionStepsTakenBackAreForgotten) {
  const Tensor q = bridge::normal({1, 2, 40, 6}, "q"), v = bridge::normal(q.shape(), "v");
  const auto attention = causal_reformer({{"chunk", int64_t{4}}, {"buckets", int64_t{8}}}, q);
  const auto decoder = attention->decoder(1, 40), plain = attention->decoder(1, 40);
  const Tensor out(row(q, 0).shape()), want(out.shape());
  for (int64_t i = 0; i < 40; ++i) {
    for (int64_t wrong = 0; wrong < std::min<int64_t>(3, 39 - i); ++wrong)
      decoder->step(row(q, 39 - wrong), row(q, 0), row(v, 39 - wrong), out);
    while (decoder->length() > i) decoder->step_back();
    decoder->step(row(q, i), row(q, i), row(v, i), out);
    plain->step(row(q, i), row(q, i), row(v, i), want);
    ASSERT_TRUE(bridge::same_bits(out, want)) << i;
  }
}

TEST(ReformerDecoder, AsksTheSystemForNothingInASteadyState) {
  const Tensor q = bridge::normal({1, 2, 1000, 8}, "q");
  const auto decoder = causal_reformer({}, q)->decoder(1, 2000);
  decoder->extend(q, q, q);
  const Tensor one = row(q, 0), out(one.shape());
  decoder->step(one, one, one, out);
  const int64_t calls = memory_use().system_calls, fetched = recycled_fetches(),
                live = memory_use().live_total;
  for (int64_t i = 1; i < 50; ++i) decoder->step(one, one, one, out);
  EXPECT_EQ(memory_use().system_calls, calls);
  EXPECT_EQ(recycled_fetches(), fetched);
  EXPECT_EQ(memory_use().live_total, live);
  EXPECT_THROW(decoder->extend(one, one), Error);  // its keys are queries
}

}  // namespace
}  // namespace attn::reformer_test
