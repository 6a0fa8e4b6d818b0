// Steps of a decoder against an oracle that sees the whole sequence. Costs an oracle's row a step.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/base/parallel.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/api/decoder.h"

namespace attn {

struct StepInputs {
  Tensor q, k, v;  // of k and v as many heads as keys have
};

inline StepInputs inputs(const Shape& shape, double scale = 1) {
  return {bridge::normal(shape, "q", scale), bridge::normal(shape, "k", scale),
          bridge::normal(shape, "v")};
}

// Positions [begin, end) of x = [batch, heads, len, dim].
inline Tensor positions(const Tensor& x, int64_t begin, int64_t end) {
  const Tensor result(x.shape().with(2, end - begin));
  const int64_t len = x.dim(2), dim = x.dim(3), run = (end - begin) * dim;
  for (int64_t head = 0; head < x.dim(0) * x.dim(1); ++head)
    std::copy_n(x.data() + (head * len + begin) * dim, run, result.data() + head * run);
  return result;
}

inline Tensor step(Decoder& decoder, const StepInputs& x, int64_t i) {
  const Tensor out = Tensor::full(x.q.shape().with(2, 1), bridge::kNaN);
  decoder.step(positions(x.q, i, i + 1), positions(x.k, i, i + 1), positions(x.v, i, i + 1), out);
  return out;
}

using PlainAnswer = std::function<oracle::Array(const oracle::Array& q, const oracle::Array& k,
                                                const oracle::Array& v)>;

// Appends `prefill` positions at once, in two parts, then one by one; the answer to each against
// that of the oracle to the same query and the keys so far, each for all its query heads.
inline void expect_steps(Decoder& decoder, const StepInputs& x, int64_t prefill,
                         const PlainAnswer& answer, double allowed = 40 * kEpsilon) {
  const int64_t half = prefill / 2;
  decoder.extend(positions(x.k, 0, half), positions(x.v, 0, half));
  decoder.extend(positions(x.k, half, prefill), positions(x.v, half, prefill));
  const auto seen = [&](const Tensor& keys, int64_t end) {
    oracle::Array all = bridge::array_of(positions(keys, 0, end)), each = all;
    all.heads = x.q.dim(1), all.x.clear();
    for (int64_t head = 0; head < x.q.dim(0) * x.q.dim(1); ++head) {
      const auto from = each.x.begin() + head / (x.q.dim(1) / keys.dim(1)) * end * keys.dim(3);
      all.x.insert(all.x.end(), from, from + end * keys.dim(3));
    }
    return all;
  };
  for (int64_t i = prefill; i < x.q.dim(2); ++i) {
    const Tensor got = step(decoder, x, i);
    EXPECT_EQ(decoder.length(), i + 1);
    const oracle::Array want =
        answer(bridge::array_of(positions(x.q, i, i + 1)), seen(x.k, i + 1), seen(x.v, i + 1));
    const double error = bridge::relative_error(got, want.x);
    ASSERT_TRUE(error <= allowed) << "position " << i << ": " << error;
  }
}

struct Threads {
  explicit Threads(int count) { set_threads(count); }
  ~Threads() { set_threads(1); }
};

}  // namespace attn
