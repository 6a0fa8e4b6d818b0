// nsa against its three branches written out, each branch alone against what it must equal, and
// that neither later keys nor a shared choice leak.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/variants/selection/choices.h"

namespace attn::nsa_test {
namespace {

using bridge::array_of;
using choices::Array;
using choices::Choice;

struct Setting {
  int64_t block, blocks, window, shared = 1;
};

std::map<std::string, ParamValue> params(const Setting& s) {
  return {{"block", s.block}, {"blocks", s.blocks}, {"window", s.window}, {"shared_by", s.shared}};
}

int64_t valid_of(const Array& q, const std::vector<int64_t>& lengths, int64_t b) {
  return lengths.empty() ? q.len : lengths[static_cast<size_t>(b)];
}

Array means_of(const Array& x, int64_t block) {
  Array means(x.batch, x.heads, x.len / block, x.dim);
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t h = 0; h < x.heads; ++h)
      for (int64_t i = 0; i < x.len / block * block; ++i)
        for (int64_t c = 0; c < x.dim; ++c)
          means.at(b, h, i / block, c) += x.at(b, h, i, c) / static_cast<double>(block);
  return means;
}

// For each query the means that it sees: of blocks that have ended.
choices::Lists ended_of(const Array& q, int64_t block, const std::vector<int64_t>& lengths) {
  choices::Lists seen;
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t row = 0; row < q.heads * q.len; ++row) {
      std::vector<int64_t> ended;
      const int64_t end = std::min(row % q.len + 1, valid_of(q, lengths, b));
      for (int64_t c = 0; (c + 1) * block <= end; ++c) ended.push_back(c);
      seen.push_back(ended);
    }
  return seen;
}

// The keys of the second branch.
Choice choice_of(const Array& q, const Array& k, const Setting& s,
                 const std::vector<int64_t>& lengths) {
  const Array means = means_of(k, s.block);
  Choice choice;
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t i = 0; i < q.len; ++i) {
        const int64_t own = i / s.block;
        std::vector<int64_t> blocks;
        for (int64_t block = 0; block < std::min(own, s.blocks - 1); ++block)
          blocks.push_back(block);
        if (own >= s.blocks && i < valid_of(q, lengths, b)) {
          std::vector<double> weights(static_cast<size_t>(own));
          for (int64_t head = h / s.shared * s.shared; head < h / s.shared * s.shared + s.shared;
               ++head) {
            std::vector<double> some;
            double total = 0;
            for (int64_t c = 0; c < (i + 1) / s.block; ++c) {
              some.push_back(std::exp(choices::product(q, means, b, head, i, c) /
                                      std::sqrt(static_cast<double>(q.dim))));
              total += some.back();
            }
            for (size_t c = 0; c < weights.size(); ++c) weights[c] += some[c] / total;
          }
          const std::vector<double> between(weights.begin() + 1, weights.end() - 1);
          blocks = {0, own - 1};
          for (const int64_t c : choices::best(between, s.blocks - 3, choice.margin))
            blocks.push_back(c + 1);
        }
        blocks.push_back(own);
        std::vector<int64_t> keys;
        for (const int64_t block : blocks)
          for (int64_t j = block * s.block;
               j < std::min({(block + 1) * s.block, i + 1, valid_of(q, lengths, b)}); ++j)
            keys.push_back(j);
        choice.seen.push_back(keys);
      }
  return choice;
}

struct Case {
  Shape shape;
  Setting setting;
  std::vector<int64_t> lengths;

  choices::Lists ended(const Array& q) const { return ended_of(q, setting.block, lengths); }
  Choice choice(const Array& q, const Array& k) const { return choice_of(q, k, setting, lengths); }
};

// The output from q, k, v and gates where the choice is given.
Array branches_of(const Case& c, const std::vector<Array>& x, const choices::Lists& chosen) {
  const Array means = choices::attend(x[0], means_of(x[1], c.setting.block),
                                      means_of(x[2], c.setting.block), c.ended(x[0]));
  const Array selected = choices::attend(x[0], x[1], x[2], chosen);
  const Array window =
      oracle::softmax_attention(x[0], x[1], x[2], {true, c.lengths, c.setting.window});
  Array out(x[0].batch, x[0].heads, x[0].len, x[0].dim);
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h)
      for (int64_t i = 0; i < valid_of(x[0], c.lengths, b); ++i)
        for (int64_t d = 0; d < out.dim; ++d) {
          const double of[] = {selected.at(b, h, i, d), window.at(b, h, i, d),
                               means.at(b, h, i, d)};
          for (int64_t branch = 0; branch < 3; ++branch)
            out.at(b, h, i, d) += of[branch] / (1 + std::exp(-x[3].at(b, h, i, branch)));
        }
  return out;
}

void expect_oracle(const Case& c) {
  const auto attention = choices::build("nsa", c.shape, true, params(c.setting));
  std::vector<Tensor> inputs = {bridge::normal(c.shape, "q"), bridge::normal(c.shape, "k"),
                                bridge::normal(c.shape, "v"),
                                bridge::normal(c.shape.with(3, 3), "gates")};
  const Choice choice = c.choice(array_of(inputs[0]), array_of(inputs[1]));
  EXPECT_GT(choice.margin, 1e-6);
  for (size_t which = 1; which < 4; ++which)
    bridge::fill_padding(inputs[which], c.lengths, bridge::kNaN);
  std::vector<Var> vars;
  std::vector<Array> arrays;
  for (const Tensor& t : inputs) vars.emplace_back(t, true), arrays.push_back(array_of(t));
  const std::vector<Var> gates = {vars[3]};
  const Var out = attention->forward(vars[0], vars[1], vars[2], {true, c.lengths}, gates);
  const Array want = branches_of(c, arrays, choice.seen);
  EXPECT_LE(bridge::relative_error(out.value(), want.x), 200 * kEpsilon);
  const Tensor seed = bridge::normal(out.shape(), "seed");
  out.backward(seed);
  std::vector<Tensor> grads = bridge::grads_of(vars);
  bridge::expect_gradients(inputs, grads, seed, [&](const std::vector<Array>& x) {
    return branches_of(c, x, choice.seen);
  });
}

TEST(Nsa, EqualsItsOracle) {
  for (const Setting& s : {Setting{4, 4, 6}, {8, 5, 30, 2}, {16, 3, 1}, {1, 6, 3}, {150, 3, 20}})
    for (const int64_t n : {1, 3, 15, 16, 17, 64, 130})
      for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, {n / 2, n}, {0, n - 1}}) {
        SCOPED_TRACE(testing::Message() << s.blocks << " blocks of " << s.block << " length " << n
                                        << (lengths.empty() ? "" : " padded"));
        expect_oracle({{2, 2, n, 5}, s, lengths});
      }
}

// Gates of one branch alone: σ(1000) = 1, σ(-1000) = 0.
Tensor output_of_branch(int64_t branch, const Setting& s, const Tensor& q, const Tensor& k,
                        const Tensor& v) {
  const Tensor gates = Tensor::full(q.shape().with(3, 3), -1000);
  for (int64_t i = branch; i < gates.size(); i += 3) gates[i] = 1000;
  return choices::forward(*choices::build("nsa", q.shape(), true, params(s)), q, k, v, {}, {gates});
}

TEST(Nsa, EachBranchAloneIsWhatItMustBe) {
  const int64_t n = 100;
  const Shape shape{2, 2, n, 8};
  const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k"),
               v = bridge::normal(shape, "v");
  const auto full = oracle::softmax_attention(array_of(q), array_of(k), array_of(v), {true});
  // The window is truncated, bit for bit; one that holds all keys is full.
  EXPECT_TRUE(bridge::same_bits(
      output_of_branch(1, {16, 3, 21}, q, k, v),
      choices::forward(*choices::build("truncated", shape, true, {{"window", int64_t{21}}}), q, k,
                       v)));
  EXPECT_TRUE(bridge::relative_error(output_of_branch(1, {16, 3, n}, q, k, v), full.x) <=
              100 * kEpsilon);
  // All blocks are full.
  EXPECT_TRUE(bridge::relative_error(output_of_branch(0, {16, 7, 1}, q, k, v), full.x) <=
              100 * kEpsilon);
  // Blocks of one position are full; before the end of the first block there is nothing.
  EXPECT_TRUE(bridge::relative_error(output_of_branch(2, {1, 3, 1}, q, k, v), full.x) <=
              100 * kEpsilon);
  const Tensor early = output_of_branch(2, {16, 3, 1}, q, k, v);
  for (int64_t i = 0; i < early.size(); ++i)
    if (i / 8 % n < 15) {
      ASSERT_EQ(early[i], 0) << i / 8 % n;
    }
  // At the end of the first block it is the mean of its values.
  for (int64_t c = 0; c < 8; ++c) {
    double mean = 0;
    for (int64_t j = 0; j < 16; ++j) mean += static_cast<double>(v[j * 8 + c]) / 16;
    ASSERT_NEAR(early[15 * 8 + c], mean, 20 * kEpsilon);
  }
}

TEST(Nsa, TheFutureMovesNothing) {
  for (const Setting& s : {Setting{16, 3, 20}, {7, 4, 1, 2}}) {
    const Shape shape{1, 2, 150, 8};
    const auto attention = choices::build("nsa", shape, true, params(s));
    choices::expect_future_is_unseen(*attention, 150, {1, 15, 16, 17, 64, 98, 149},
                                     {bridge::normal(shape.with(3, 3), "gates")});
  }
}

// Heads that choose together see the same blocks: those of the larger sum.
TEST(Nsa, HeadsThatShareAChoiceSeeTheSameBlocks) {
  const Setting apart{8, 4, 1}, together{8, 4, 1, 2};
  const Shape shape{1, 2, 120, 8};
  const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k"),
               v = bridge::normal(shape, "v");
  const Choice shared = choice_of(array_of(q), array_of(k), together, {});
  for (size_t i = 0; i < 120; ++i) EXPECT_EQ(shared.seen[i], shared.seen[120 + i]) << i;
  EXPECT_NE(shared.seen, choice_of(array_of(q), array_of(k), apart, {}).seen);
  const Array want = choices::attend(array_of(q), array_of(k), array_of(v), shared.seen);
  EXPECT_TRUE(bridge::relative_error(output_of_branch(0, together, q, k, v), want.x) <=
              100 * kEpsilon);
}

TEST(Nsa, DecodesWhatItAnswersInParallel) {
  for (const int64_t kv_heads : {1, 2, 4})
    for (const Setting& s :
         {Setting{16, 3, 20}, {7, 5, 3, 2}, {8, 4, 200, 4}, {200, 3, 10}, {1, 6, 2}}) {
      const Tensor q = bridge::normal({2, 4, 130, 8}, "q"),
                   k = bridge::normal({2, kv_heads, 130, 8}, "k"),
                   v = bridge::normal({2, kv_heads, 130, 8}, "v");
      const auto attention = choices::build("nsa", q.shape(), true, params(s));
      for (const int64_t prefill : {0, 65, 129})
        choices::expect_decodes(*attention, q, k, v, prefill,
                                {bridge::normal(q.shape().with(3, 3), "gates")});
    }
}

}  // namespace
}  // namespace attn::nsa_test
