// nsa against its three branches written out, with means and with learned rows; each branch alone
// against what it must equal; and that neither later keys nor a shared choice leak.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/variants/selection/choices.h"
#include "variants/selection/selection.h"

namespace attn::nsa_test {
namespace {

using bridge::array_of;
using choices::Array;
using choices::Choice;

struct Setting {
  int64_t block, blocks, window, shared = 1;
  int64_t size = 0, stride = 0;  // of compressed blocks; 0: means of `block`

  bool is_learned() const { return size > 0; }
  int64_t ended(int64_t len) const {
    const int64_t of = is_learned() ? size : block, step = is_learned() ? stride : block;
    return len < of ? 0 : (len - of) / step + 1;
  }
};

std::map<std::string, ParamValue> params(const Setting& s) {
  std::map<std::string, ParamValue> given = {
      {"block", s.block}, {"blocks", s.blocks}, {"window", s.window}, {"shared_by", s.shared}};
  given["compression"] = std::string(s.is_learned() ? "learned" : "mean");
  if (s.is_learned()) given["compress_block"] = s.size, given["compress_stride"] = s.stride;
  return given;
}

int64_t valid_of(const Array& q, const std::vector<int64_t>& lengths, int64_t b) {
  return lengths.empty() ? q.len : lengths[static_cast<size_t>(b)];
}

// One row of each whole compressed block. w: position, up and down of the network.
Array rows_of(const Array& x, const Setting& s, const Array* w) {
  const int64_t count = s.ended(x.len), size = s.is_learned() ? s.size : s.block,
                step = s.is_learned() ? s.stride : s.block;
  Array rows(x.batch, x.heads, count, x.dim);
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t h = 0; h < x.heads; ++h)
      for (int64_t at = 0; at < count; ++at) {
        if (!s.is_learned()) {
          for (int64_t t = 0; t < size; ++t)
            for (int64_t c = 0; c < x.dim; ++c)
              rows.at(b, h, at, c) += x.at(b, h, at * step + t, c) / static_cast<double>(size);
          continue;
        }
        for (int64_t m = 0; m < w[1].dim; ++m) {
          double z = 0;
          for (int64_t t = 0; t < size; ++t)
            for (int64_t c = 0; c < x.dim; ++c)
              z += (x.at(b, h, at * step + t, c) + w[0].at(0, 0, t, c)) *
                   w[1].at(0, 0, t * x.dim + c, m);
          z *= std::erfc(-z / std::sqrt(2.0)) / 2;
          for (int64_t c = 0; c < x.dim; ++c) rows.at(b, h, at, c) += z * w[2].at(0, 0, m, c);
        }
      }
  return rows;
}

// For each query the rows that it sees: of blocks that have ended.
choices::Lists ended_of(const Array& q, const Setting& s, const std::vector<int64_t>& lengths) {
  choices::Lists seen;
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t row = 0; row < q.heads * q.len; ++row) {
      std::vector<int64_t> ended;
      const int64_t end = std::min(row % q.len + 1, valid_of(q, lengths, b));
      for (int64_t c = 0; c < s.ended(end); ++c) ended.push_back(c);
      seen.push_back(ended);
    }
  return seen;
}

// The keys of the second branch.
Choice choice_of(const Array& q, const Array& k, const Setting& s,
                 const std::vector<int64_t>& lengths, const std::vector<Array>& w = {}) {
  const Array rows = rows_of(k, s, w.data());
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
            for (int64_t c = 0; c < s.ended(i + 1); ++c) {
              some.push_back(std::exp(choices::product(q, rows, b, head, i, c) /
                                      std::sqrt(static_cast<double>(q.dim))));
              total += some.back();
            }
            // Each row counts once for every stride of its positions.
            const int64_t step = s.is_learned() ? s.stride : s.block;
            for (size_t c = 0; c < some.size(); ++c)
              for (int64_t at = 0; at < (s.is_learned() ? s.size : s.block); at += step) {
                const auto block =
                    static_cast<size_t>((static_cast<int64_t>(c) * step + at) / s.block);
                if (block < weights.size()) weights[block] += some[c] / total;
              }
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

  choices::Lists ended(const Array& q) const { return ended_of(q, setting, lengths); }
};

// The output from q, k, v, gates and weights where the choice is given.
Array branches_of(const Case& c, const std::vector<Array>& x, const choices::Lists& chosen) {
  const Array means = choices::attend(x[0], rows_of(x[1], c.setting, x.data() + 4),
                                      rows_of(x[2], c.setting, x.data() + 7), c.ended(x[0]));
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
  for (const Weight& weight : attention->weights()) inputs.push_back(weight.value.value());
  std::vector<Array> weights;
  for (size_t which = 4; which < inputs.size(); ++which) weights.push_back(array_of(inputs[which]));
  const Choice choice =
      choice_of(array_of(inputs[0]), array_of(inputs[1]), c.setting, c.lengths, weights);
  EXPECT_GT(choice.margin, 1e-6);
  for (size_t which = 1; which < 4; ++which)
    bridge::fill_padding(inputs[which], c.lengths, bridge::kNaN);
  std::vector<Var> vars;
  std::vector<Array> arrays;
  for (const Tensor& t : inputs) arrays.push_back(array_of(t));
  for (size_t which = 0; which < 4; ++which) vars.emplace_back(inputs[which], true);
  for (const Weight& weight : attention->weights()) vars.push_back(weight.value);
  const std::vector<Var> gates = {vars[3]};
  const Var out = attention->forward(vars[0], vars[1], vars[2], {true, c.lengths}, gates);
  const Array want = branches_of(c, arrays, choice.seen);
  EXPECT_LE(bridge::relative_error(out.value(), want.x), 200 * kEpsilon);
  const Tensor seed = bridge::normal(out.shape(), "seed");
  out.backward(seed);
  std::vector<Tensor> grads;
  for (const Var& var : vars)
    grads.push_back(var.grad().defined() ? var.grad() : Tensor::zeros(var.shape()));
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

TEST(Nsa, LearnedRowsOfBlocksThatOverlapEqualTheirOracle) {
  for (const Setting& s : {Setting{8, 4, 6, 1, 8, 4},
                           {8, 5, 30, 2, 4, 2},
                           {8, 4, 3, 1, 12, 4},
                           {16, 3, 1, 1, 8, 8},
                           {6, 4, 2, 2, 3, 3}})
    for (const int64_t n : {1, 3, 15, 16, 17, 64, 130})
      for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, {n / 2, n}, {0, n - 1}}) {
        SCOPED_TRACE(testing::Message()
                     << s.blocks << " blocks of " << s.block << ", rows of " << s.size << " at "
                     << s.stride << ", length " << n << (lengths.empty() ? "" : " padded"));
        expect_oracle({{2, 2, n, 5}, s, lengths});
      }
}

// The paper's sizes: a block of 64 has the weights of the rows that begin in the stride before it,
// in it, and in its last stride, once, twice, twice, twice and once.
TEST(Nsa, ABlockCountsEachRowByTheStridesThatTheyShare) {
  const real weights[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
  real scores[2] = {};
  add_block_scores({32, 16}, 64, 7, real(0.5), weights, 2, scores);
  EXPECT_EQ(scores[0], real(0.5) * (2 + 20 + 200 + 1000));
  EXPECT_EQ(scores[1], real(0.5) * (1000 + 20000 + 200000 + 2000000));
}

TEST(Nsa, StridesDivideBlocks) {
  const VariantInfo& info = find_variant("nsa");
  const auto why = [&](const Setting& s) {
    return info.why_not({.heads = 2, .causal = true}, Params(info.name, info.params, params(s)));
  };
  EXPECT_FALSE(why({64, 16, 511}));
  EXPECT_FALSE(why({64, 16, 511, 1, 32, 16}));
  EXPECT_TRUE(why({64, 16, 511, 1, 32, 12}));
  EXPECT_TRUE(why({60, 16, 511, 1, 32, 16}));
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
  for (const Setting& s : {Setting{16, 3, 20}, {7, 4, 1, 2}, {16, 3, 20, 1, 8, 4}}) {
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
    for (const Setting& s : {Setting{16, 3, 20},
                             {7, 5, 3, 2},
                             {8, 4, 200, 4},
                             {200, 3, 10},
                             {1, 6, 2},
                             {16, 3, 20, 1, 8, 4},
                             {8, 4, 30, 2, 12, 4},
                             {8, 4, 200, 4, 4, 4}}) {
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
