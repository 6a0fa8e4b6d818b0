// What papers write of their blocks, one position after the other, in double: with nothing of the
// library or of its references but the weights.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "variants/api/mixer.h"
#include "variants/catalog.h"

namespace attn::written_block {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

constexpr int64_t kHeads = 2, kDim = 4, kWidth = kHeads * kDim, kLength = 21;
constexpr double kClose = kIsDouble ? 1e-12 : 2e-5;

// Of one sequence, [1, len, width].
inline Rows rows_in_double(const Tensor& t) {
  Rows all;
  for (int64_t i = 0; i < t.dim(1); ++i) {
    all.emplace_back();
    for (int64_t c = 0; c < t.dim(2); ++c)
      all.back().push_back(static_cast<double>(t[i * t.dim(2) + c]));
  }
  return all;
}
inline void expect_rows(const Tensor& found, const Rows& wanted) {
  ASSERT_EQ(found.dim(1), std::ssize(wanted));
  for (int64_t t = 0; t < found.dim(1); ++t)
    for (int64_t c = 0; c < found.dim(2); ++c)
      ASSERT_NEAR(static_cast<double>(found[t * found.dim(2) + c]),
                  wanted[static_cast<size_t>(t)][static_cast<size_t>(c)], kClose)
          << "row " << t << ", channel " << c;
}

struct Built {
  std::unique_ptr<Attention> attention;
  std::map<std::string, Tensor> weights;
  Rows x;
  Tensor rows;

  // `receives`: a layer that is given what another hands on, and not causal unless it can be.
  explicit Built(const std::string& variant, const std::map<std::string, ParamValue>& params = {},
                 bool receives = false) {
    const VariantInfo& info = with_paper_block(find_variant(variant));
    attention = info.build({.heads = kHeads,
                            .head_dim = kDim,
                            .max_len = kLength,
                            .causal = info.traits.causal,
                            .seed = 3,
                            .params = {},
                            .receives = receives},
                           params);
    for (const Weight& weight : attention->weights()) {
      // Away from zeros and ones, which would hide that they are not read.
      const Tensor start = weight.value.value();
      const Tensor moved = Tensor::normal(start.shape(), rng(5, weight.name), 0.2);
      for (int64_t i = 0; i < moved.size(); ++i) moved[i] += start[i];
      weight.value.set_value(moved);
      weights[weight.name] = moved;
    }
    rows = Tensor::normal({1, kLength, kWidth}, rng(7, "x"));
    x = rows_in_double(rows);
  }
  double at(const std::string& name, int64_t i) const {
    return static_cast<double>(weights.at(name)[i]);
  }
  // x·W of one row, W [in, out].
  Row times(const Row& row, const std::string& name) const {
    const int64_t out = weights.at(name).dim(1);
    Row sums(static_cast<size_t>(out), 0);
    for (size_t i = 0; i < row.size(); ++i)
      for (int64_t j = 0; j < out; ++j)
        sums[static_cast<size_t>(j)] += row[i] * at(name, static_cast<int64_t>(i) * out + j);
    return sums;
  }
  // silu(bias + Σ taps ⊙ rows) of the projections of four positions, the last one at t.
  Row convolved(int64_t t, const std::string& matrix, const std::string& taps, bool biased) const {
    const int64_t wide = weights.at(taps).dim(1);
    Row sums(static_cast<size_t>(wide), 0);
    for (int64_t c = 0; c < wide && biased; ++c)
      sums[static_cast<size_t>(c)] = at(taps + ".bias", c);
    for (int64_t j = 0; j < 4; ++j) {
      if (t - 3 + j < 0) continue;
      const Row from = times(x[static_cast<size_t>(t - 3 + j)], matrix);
      for (int64_t c = 0; c < wide; ++c)
        sums[static_cast<size_t>(c)] += at(taps, j * wide + c) * from[static_cast<size_t>(c)];
    }
    for (double& sum : sums) sum /= 1 + std::exp(-sum);
    return sums;
  }
  void expect(const Rows& wanted) const {
    expect_rows(as_mixer(*attention)->mix(Var(rows), {.causal = true}).value(), wanted);
  }
};

inline double silu(double x) { return x / (1 + std::exp(-x)); }
inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }
inline double softplus(double x) { return std::log1p(std::exp(x)); }
inline double size_of(const double* x, int64_t count, double epsilon, bool mean) {
  double squares = 0;
  for (int64_t c = 0; c < count; ++c) squares += x[c] * x[c];
  return std::sqrt((mean ? squares / static_cast<double>(count) : squares) + epsilon);
}

// Peng et al. 2025, time mixing.
struct WrittenRwkv7 {
  const Built& b;

  // x + μ ⊙ (x_{t-1} - x)
  Row shifted(int64_t t, const std::string& mix) const {
    Row row = b.x[static_cast<size_t>(t)];
    for (int64_t c = 0; c < kWidth; ++c) {
      const auto at = static_cast<size_t>(c);
      const double before = t > 0 ? b.x[static_cast<size_t>(t - 1)][at] : 0;
      row[at] += b.at(mix, c) * (before - row[at]);
    }
    return row;
  }
  // bias + f(x·down)·up
  template <class F>
  Row stepped(int64_t t, const std::string& name, bool biased, const F& f) const {
    Row hidden = b.times(shifted(t, name + ".mix"), name + ".down");
    for (double& x : hidden) x = f(x);
    Row y = b.times(hidden, name + ".up");
    for (int64_t c = 0; biased && c < kWidth; ++c)
      y[static_cast<size_t>(c)] += b.at(name + ".bias", c);
    return y;
  }
  // S ← S·diag(w) - (S·κ̂)·(a⊙κ̂) + v·k̃, then o = S·r, a norm of the head, and the bonus.
  void head(int64_t h, Rows& state, const Row& r, const Row& k, const Row& v, const Row& decay,
            const Row& rate, Row& y) const {
    const auto first = static_cast<size_t>(h * kDim);
    double removed[kDim], a[kDim], written[kDim], square = 1e-6, bonus = 0;
    for (size_t c = 0; c < kDim; ++c) {
      const auto all = static_cast<int64_t>(first + c);
      a[c] = logistic(rate[first + c]);
      removed[c] = k[first + c] * b.at("mixer.k_k", all);
      written[c] = k[first + c] * (1 + (a[c] - 1) * b.at("mixer.k_a", all));
      square += removed[c] * removed[c];
      bonus += r[first + c] * written[c] * b.at("bonus", all);
    }
    for (double& x : removed) x /= std::sqrt(square);
    double mean = 0, spread = 0;
    for (size_t p = 0; p < kDim; ++p) {
      double held = 0;
      for (size_t c = 0; c < kDim; ++c) held += state[p][c] * removed[c];
      double& out = y[first + p];
      for (size_t c = 0; c < kDim; ++c) {
        state[p][c] = state[p][c] * std::exp(-std::exp(-0.5) * logistic(decay[first + c])) -
                      held * a[c] * removed[c] + v[first + p] * written[c];
        out += state[p][c] * r[first + c];
      }
      mean += out / kDim;
    }
    for (size_t p = 0; p < kDim; ++p) spread += std::pow(y[first + p] - mean, 2) / kDim;
    for (size_t p = 0; p < kDim; ++p) {
      const auto all = static_cast<int64_t>(first + p);
      y[first + p] = (y[first + p] - mean) / std::sqrt(spread + 64e-5) * b.at("norm.gain", all) +
                     b.at("norm.shift", all) + bonus * v[first + p];
    }
  }

  // v + (v_1 - v) ⊙ σ(bias + (x_v·A)·B), where `first` are the values of the first layer.
  Row mixed_values(int64_t t, Row v, const Row& first) const {
    const Row hidden = b.times(shifted(t, "v.mix"), "first.down"),
              share = b.times(hidden, "first.up");
    for (size_t c = 0; c < v.size(); ++c)
      v[c] += (first[c] - v[c]) * logistic(share[c] + b.at("first.bias", static_cast<int64_t>(c)));
    return v;
  }
  Row values(int64_t t) const { return b.times(shifted(t, "v.mix"), "W_v"); }

  // The layer's rows. `first`: what it received; empty: it is the first layer.
  Rows answer(const Rows& first) const {
    const auto same = [](double x) { return x; };
    const auto squashed = [](double x) { return std::tanh(x); };
    std::vector<Rows> state(kHeads, Rows(kDim, Row(kDim, 0)));
    Rows all;
    for (int64_t t = 0; t < kLength; ++t) {
      Row v = values(t);
      if (!first.empty()) v = mixed_values(t, v, first[static_cast<size_t>(t)]);
      const Row r = b.times(shifted(t, "q.mix"), "W_q"), k = b.times(shifted(t, "k.mix"), "W_k"),
                decay = stepped(t, "gate.decay", true, squashed),
                rate = stepped(t, "gate.rate", true, same),
                gate = stepped(t, "gate", false, logistic);
      Row y(kWidth, 0);
      for (int64_t h = 0; h < kHeads; ++h)
        head(h, state[static_cast<size_t>(h)], r, k, v, decay, rate, y);
      for (size_t c = 0; c < kWidth; ++c) y[c] *= gate[c];
      all.push_back(b.times(y, "W_o"));
    }
    return all;
  }
};

}  // namespace attn::written_block
