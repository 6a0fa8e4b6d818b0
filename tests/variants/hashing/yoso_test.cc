// yoso against an oracle of its own: the matrix of weights, from codes of signs that are made anew
// or from angles; its gradients in closed form, surrogates included; its expectation by Monte
// Carlo.
#include <gtest/gtest.h>

#include <numbers>

#include "core/simd/row_ops.h"
#include "tests/variants/pattern_check.h"
#include "variants/hashing/hashing.h"

namespace attn::yoso_test {
namespace {

using bridge::Given;
using oracle::Array;

struct Case {
  int64_t q_len, kv_len, hashes, bits;
  Mask mask = {};
  bool alike = false;  // all rows have one direction: a bucket holds them all
};

Given given(const Case& c) { return {{"hashes", c.hashes}, {"bits", c.bits}}; }

// One head: codes of row x as texts, one for each hash.
std::vector<std::string> texts(oracle::Row x, const Tensor& planes, int64_t head, const Case& c) {
  std::vector<std::string> codes(static_cast<size_t>(c.hashes));
  for (int64_t row = 0; row < c.hashes * c.bits; ++row) {
    double product = 0;
    for (size_t i = 0; i < x.size(); ++i)
      product +=
          x[i] *
          static_cast<double>(
              planes[(head * c.hashes * c.bits + row) * std::ssize(x) + static_cast<int64_t>(i)]);
    codes[static_cast<size_t>(row / c.bits)] += product > 0 ? '+' : '-';
  }
  return codes;
}

bool visible(const Case& c, int64_t b, int64_t i, int64_t j) {
  if (!c.mask.kv_lengths.empty() && j >= c.mask.kv_lengths[static_cast<size_t>(b)]) return false;
  return !c.mask.causal || j - (c.kv_len - c.q_len) <= i;
}

// weights [batch, heads, q_len, kv_len]
Array sampled_weights(const Array& q, const Array& k, const Tensor& planes, const Case& c) {
  Array w(q.batch, q.heads, q.len, k.len);
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t i = 0; i < q.len; ++i)
        for (int64_t j = 0; j < k.len; ++j) {
          if (!visible(c, b, i, j)) continue;
          const auto a = texts(q.row(b, h, i), planes, h, c),
                     e = texts(k.row(b, h, j), planes, h, c);
          for (size_t s = 0; s < a.size(); ++s)
            w.at(b, h, i, j) += (a[s] == e[s] ? 1.0 : 0.0) / static_cast<double>(c.hashes);
        }
  return w;
}

double length(oracle::Row x) { return std::sqrt(oracle::dot(x, x) + 1e-24); }

Array at_length_one(const Array& x) {
  Array y = x;
  for (int64_t r = 0; r < std::ssize(x.x) / x.dim; ++r) {
    double square = 1e-24;
    for (int64_t c = 0; c < x.dim; ++c)
      square += x.x[static_cast<size_t>(r * x.dim + c)] * x.x[static_cast<size_t>(r * x.dim + c)];
    for (int64_t c = 0; c < x.dim; ++c)
      y.x[static_cast<size_t>(r * x.dim + c)] /= std::sqrt(square);
  }
  return y;
}

// The gradient of x, given that of x at length one.
Array through_length(const Array& x, const Array& grad) {
  Array to = grad;
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t h = 0; h < x.heads; ++h)
      for (int64_t i = 0; i < x.len; ++i) {
        const double size = length(x.row(b, h, i));
        const double along = oracle::dot(x.row(b, h, i), grad.row(b, h, i)) / size / size;
        for (int64_t c = 0; c < x.dim; ++c)
          to.at(b, h, i, c) = (grad.at(b, h, i, c) - along * x.at(b, h, i, c)) / size;
      }
  return to;
}

Array times(const Array& w, const Array& v) {
  Array out(w.batch, w.heads, w.len, v.dim);
  for (int64_t b = 0; b < w.batch; ++b)
    for (int64_t h = 0; h < w.heads; ++h)
      for (int64_t i = 0; i < w.len; ++i)
        for (int64_t j = 0; j < w.dim; ++j)
          for (int64_t c = 0; w.at(b, h, i, j) != 0 && c < v.dim; ++c)
            out.at(b, h, i, c) += w.at(b, h, i, j) * v.at(b, h, j, c);
  return out;
}

struct Inputs {
  Tensor q, k, v;
};

Inputs inputs(const Case& c, int64_t dim = 5) {
  Inputs x{bridge::normal({2, 2, c.q_len, dim}, "q"), bridge::normal({2, 2, c.kv_len, dim}, "k"),
           bridge::normal({2, 2, c.kv_len, dim}, "v")};
  if (c.alike)
    for (const Tensor& t : {x.q, x.k})
      for (int64_t i = 0; i < t.size(); ++i)
        t[i] = real(0.1) * t[i] + static_cast<real>(i % dim + 1);
  bridge::fill_padding(x.k, c.mask.kv_lengths, bridge::kNaN);
  bridge::fill_padding(x.v, c.mask.kv_lengths, bridge::kNaN);
  return x;
}

// `size`: of what was summed, some of which cancels.
void expect_near(const Tensor& got, const Array& want, const char* what, double size = 0) {
  std::vector<double> off;
  for (int64_t i = 0; i < got.size(); ++i)
    off.push_back(static_cast<double>(got[i]) - want.x[static_cast<size_t>(i)]);
  EXPECT_TRUE(bridge::norm(off) <= 100 * kEpsilon * (bridge::norm(want.x) + size))
      << what << " is off by " << bridge::norm(off) << " of " << bridge::norm(want.x);
}

std::unique_ptr<Attention> build(const Given& params, const Case& c, int64_t dim = 5) {
  return bridge::build("yoso", params, std::max(c.q_len, c.kv_len), c.mask.causal, 3, dim);
}

void expect_sampled(const Case& c) {
  SCOPED_TRACE(testing::Message() << c.q_len << " of " << c.kv_len << ", " << c.hashes << " of "
                                  << c.bits << (c.mask.causal ? ", causal" : "")
                                  << (c.mask.kv_lengths.empty() ? "" : ", padded")
                                  << (c.alike ? ", alike" : ""));
  const auto attention = build(given(c), c);
  const Inputs x = inputs(c);
  const Var q(x.q, true), k(x.k, true), v(x.v, true);
  const Var out = attention->forward(q, k, v, c.mask);
  const Array aq = bridge::array_of(x.q), ak = bridge::array_of(x.k), av = bridge::array_of(x.v);
  const Array w = sampled_weights(aq, ak, attention->weights()[0].value.value(), c),
              sums = times(w, av);
  expect_near(out.value(), at_length_one(sums), "output");
  const Tensor seed = bridge::normal(out.shape(), "seed");
  out.backward(seed);
  const Array g = through_length(sums, bridge::array_of(seed)), uq = at_length_one(aq),
              uk = at_length_one(ak);
  Array of_q(aq.batch, aq.heads, aq.len, aq.dim), of_k = Array(ak.batch, ak.heads, ak.len, ak.dim),
                                                  of_v = of_k;
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t i = 0; i < c.q_len; ++i)
        for (int64_t j = 0; j < c.kv_len; ++j) {
          const double weight = w.at(b, h, i, j);
          if (weight == 0) continue;
          const double slope = static_cast<double>(c.bits) / 2 * weight *
                               oracle::dot(g.row(b, h, i), av.row(b, h, j));
          for (int64_t d = 0; d < 5; ++d) {
            of_q.at(b, h, i, d) += slope * uk.at(b, h, j, d);
            of_k.at(b, h, j, d) += slope * uq.at(b, h, i, d);
            of_v.at(b, h, j, d) += weight * g.at(b, h, i, d);
          }
        }
  const double summed = bridge::norm(bridge::array_of(seed).x);
  Array keys = ak;  // padding has no gradient
  for (double& value : keys.x) value = std::isfinite(value) ? value : 1;
  expect_near(q.grad(), through_length(aq, of_q), "gradient of q", summed + bridge::norm(of_q.x));
  expect_near(k.grad(), through_length(keys, of_k), "gradient of k", summed + bridge::norm(of_k.x));
  expect_near(v.grad(), of_v, "gradient of v");
}

TEST(Yoso, EqualsItsMatrixOfWeightsAndTheSurrogateInClosedForm) {
  for (const int64_t n : {1, 2, 47, 48, 49})
    for (const bool causal : {false, true})
      for (const bool padded : {false, true}) {
        Case c{n, n, 12, 4, {causal, {}}};
        if (padded) c.mask.kv_lengths = {n / 2, n - n / 8};
        expect_sampled(c);
        c.alike = true;  // buckets so large that outer products are summed
        expect_sampled(c);
      }
  expect_sampled({7, 33, 24, 3, {true, {}}});
  expect_sampled({33, 7, 24, 3, {true, {}}});
  expect_sampled({33, 7, 70, 2, {false, {7, 3}}, true});
}

double weight_of(oracle::Row q, oracle::Row k, int64_t bits) {
  const double product = oracle::dot(q, k) / length(q) / length(k);
  return std::pow(1 - std::acos(std::clamp(product, -1.0, 1.0)) / std::numbers::pi,
                  static_cast<double>(bits));
}

TEST(Yoso, TheExpectationEqualsItsOracle) {
  for (const int64_t bits : {2, 7})
    for (const bool causal : {false, true}) {
      Case c{33, 33, 1, bits, {causal, {33, 20}}};
      const auto attention = build({{"form", std::string("expected")}, {"bits", bits}}, c);
      const Inputs x = inputs(c);
      const Var q(x.q, true), k(x.k, true), v(x.v, true);
      const Var out = attention->forward(q, k, v, c.mask);
      const bridge::Twin twin = [&](const std::vector<Array>& in) {
        Array w(2, 2, 33, 33);
        for (int64_t b = 0; b < 2; ++b)
          for (int64_t h = 0; h < 2; ++h)
            for (int64_t i = 0; i < 33; ++i)
              for (int64_t j = 0; j < 33; ++j)
                if (visible(c, b, i, j))
                  w.at(b, h, i, j) = weight_of(in[0].row(b, h, i), in[1].row(b, h, j), bits);
        return at_length_one(times(w, in[2]));
      };
      const Array want =
          twin({bridge::array_of(x.q), bridge::array_of(x.k), bridge::array_of(x.v)});
      EXPECT_TRUE(bridge::relative_error(out.value(), want.x) <= 100 * kEpsilon);
      const Tensor seed = bridge::normal(out.shape(), "seed");
      out.backward(seed);
      bridge::expect_gradients({x.q, x.k, x.v}, {q.grad(), k.grad(), v.grad()}, seed, twin, 1e-6);
    }
}

// The sums before they are divided by their length.
Tensor sums(const Inputs& x, const Tensor& planes, int64_t bits) {
  return collision_attention(x.q, x.k, Var(x.q), Var(x.k), Var(x.v), planes,
                             {bits, SignHashes::longest_of(planes)}, {})
      .value();
}

TEST(Yoso, TheErrorOfSamplingFallsWithTheRootOfTheHashes) {
  constexpr int64_t n = 96, bits = 8, dim = 16;
  const Inputs x = inputs({n, n, 1, bits}, dim);
  const Array q = bridge::array_of(x.q), k = bridge::array_of(x.k);
  Array w(2, 2, n, n);
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
          w.at(b, h, i, j) = weight_of(q.row(b, h, i), k.row(b, h, j), bits);
  const Array want = times(w, bridge::array_of(x.v));
  double before = 0;
  for (const int64_t hashes : {16, 64, 256, 1024}) {
    const Tensor planes = Tensor::normal({2, hashes * bits, dim}, rng(4, "planes"));
    const double error = bridge::relative_error(sums(x, planes, bits), want.x);
    if (before > 0) {
      EXPECT_NEAR(error / before, 0.5, 0.08) << hashes;
    }
    before = error;
  }
  EXPECT_LT(before, 0.35);
}

TEST(Yoso, ParallelRowsCollideAlwaysAndOppositeOnesNever) {
  Inputs x = inputs({9, 9, 1, 8}, 6);
  const Tensor planes = Tensor::normal({2, 320, 6}, rng(4, "planes"));
  for (const real factor : {real(3), real(-0.5)}) {
    // Key 0 is parallel or opposite to all queries; the others are not there.
    for (int64_t i = 0; i < x.q.size(); ++i) {
      x.q[i] = x.q[i / 54 * 54 + i % 6];
      x.k[i] = factor * x.q[i];
    }
    for (const std::string form : {"sampled", "expected"}) {
      const Mask first{false, {1, 1}};
      const Tensor out = build({{"form", form}}, {9, 9, 1, 1}, 6)
                             ->forward(Var(x.q), Var(x.k), Var(x.v), first)
                             .value();
      for (int64_t row = 0; row < out.size() / 6; ++row) {
        const real* const value = x.v.data() + row / 9 * 54;
        const real size = std::sqrt(row_dot(value, value, 6));
        for (int64_t c = 0; c < 6; ++c)
          EXPECT_NEAR(out[row * 6 + c], factor > 0 ? value[c] / size : 0, 10 * kEpsilon) << form;
      }
    }
    const Tensor all = sums(x, planes, 8);
    for (int64_t at = 0; at < all.size(); ++at) {
      real total = 0;
      for (int64_t j = 0; j < 9; ++j) total += x.v[at / 54 * 54 + j * 6 + at % 6];
      EXPECT_NEAR(all[at], factor > 0 ? total : 0, 100 * kEpsilon);
    }
  }
}

TEST(Yoso, BeforeTheNormItIsLinearInTheValues) {
  const Inputs x = inputs({40, 40, 1, 4}, 6);
  const Tensor planes = Tensor::normal({2, 64, 6}, rng(4, "planes")),
               other = bridge::normal(x.v.shape(), "w"), both(x.v.shape());
  for (int64_t i = 0; i < both.size(); ++i) both[i] = 3 * x.v[i] - 2 * other[i];
  const Tensor a = sums(x, planes, 4), b = sums({x.q, x.k, other}, planes, 4),
               c = sums({x.q, x.k, both}, planes, 4);
  double moved = 0;
  for (int64_t i = 0; i < c.size(); ++i) {
    EXPECT_NEAR(c[i], 3 * a[i] - 2 * b[i], 200 * kEpsilon);
    moved = std::max(moved, std::abs(static_cast<double>(c[i])));
  }
  EXPECT_GT(moved, 0.1);
}

TEST(Yoso, DecodingEqualsTheCausalForward) {
  for (const int64_t n : {1, 7, 64}) {
    bridge::expect_decoding("yoso", {{"hashes", int64_t{30}}, {"bits", int64_t{5}}}, n);
    bridge::expect_decoding("yoso", {{"form", std::string("expected")}, {"bits", int64_t{3}}}, n);
  }
}

// A sum in the order of the product loses the 1 between the large terms.
TEST(Yoso, CodesAreSignsOfExactProducts) {
  const real large = kIsDouble ? real(1e17) : real(1e9);
  const Tensor planes({1, 2, 3}), rows({1, 1, 1, 3});
  const real numbers[] = {large, 1, -large, large, -1, -large};
  std::copy_n(numbers, 6, planes.data());
  std::fill_n(rows.data(), 3, real(1));
  const SignHashes hashes(planes, 0, 2, SignHashes::longest_of(planes));
  std::vector<real> room(static_cast<size_t>(SignHashes::room_reals(3)));
  int32_t alone = -1, grouped = -1;
  hashes.row_codes(rows.data(), &alone);
  hashes.group_codes(1, rows.data(), room.data(), &grouped, 1);
  // In double the exact product is itself rounded: only that both ways agree.
  EXPECT_EQ(alone, grouped);
  if (!kIsDouble) {
    EXPECT_EQ(alone, 1);
  }
}

TEST(Yoso, ZerosGiveZeros) {
  const Case c{5, 5, 12, 4};
  const Inputs x = inputs(c);
  for (const bool values : {false, true}) {
    const Tensor zeros = Tensor::zeros(x.q.shape());
    const Var q(values ? x.q : zeros, true), k(x.k, true), v(values ? zeros : x.v, true);
    const Var out = build(given(c), c)->forward(q, k, v, c.mask);
    out.backward(bridge::normal(out.shape(), "seed"));
    for (int64_t i = 0; i < out.value().size(); ++i) {
      if (values) {
        EXPECT_EQ(out.value()[i], 0);
      }
      for (const Var& input : {q, k, v}) EXPECT_TRUE(std::isfinite(input.grad()[i]));
    }
  }
}

TEST(Yoso, TooFewHashesAreRefused) {
  const VariantInfo& info = find_variant("yoso");
  const AttentionShape shape{.q_len = 9, .kv_len = 9, .head_dim = 4};
  const auto reason = [&](Given params) {
    return info.why_not(shape, Params(info.name, info.params, params));
  };
  EXPECT_FALSE(reason({}));
  EXPECT_EQ(reason({{"hashes", int64_t{3}}, {"bits", int64_t{12}}}),
            "3 hashes of 12 bits hardly ever collide; at least 12 do");
  EXPECT_FALSE(reason({{"hashes", int64_t{12}}, {"bits", int64_t{12}}}));
  EXPECT_FALSE(reason({{"form", std::string("expected")}, {"bits", int64_t{12}}}));
  EXPECT_THROW(reason({{"hashes", int64_t{2}}}), Error);
}

}  // namespace
}  // namespace attn::yoso_test
