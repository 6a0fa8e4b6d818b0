// The projection along the sequence at the borders of its blocks, against the oracle; threads that
// share one head.
#include "variants/lowrank/sequence_projection.h"

#include <gtest/gtest.h>

#include "core/base/parallel.h"
#include "tests/variants/oracle_bridge.h"

namespace attn::sequence_projection_test {
namespace {

using bridge::array_of;

std::vector<Tensor> run(const Tensor& weight, const Tensor& x,
                        const std::vector<int64_t>& lengths) {
  const Var projection(weight, true), rows(x, true);
  const Var out = project_sequence(projection, rows, lengths);
  const Tensor value = out.value();
  out.backward(bridge::normal(value.shape(), "seed"));
  return {value, projection.grad(), rows.grad()};
}

TEST(SequenceProjection, BlockBorders) {
  for (const int64_t len : {1, 5, 63, 64, 65, 127, 128, 129, 300})
    for (const int64_t rank : {1, 6, 13})
      for (const bool shared : {false, true})
        for (const std::vector<int64_t>& lengths :
             {std::vector<int64_t>{}, {len, len / 2}, {0, len - 1}}) {
          SCOPED_TRACE(testing::Message() << "length " << len << ", rank " << rank);
          const Tensor weight = bridge::normal({shared ? 1 : 2, rank, len + 3}, "w"),
                       x = bridge::normal({2, 2, len, 3}, "x");
          bridge::fill_padding(x, lengths, bridge::kNaN);
          const oracle::Visibility seen{false, lengths, -1};
          const auto oracle_of = [&](const std::vector<oracle::Array>& a) {
            return oracle::project(a[0], a[1], seen);
          };
          const std::vector<Tensor> got = run(weight, x, lengths);
          EXPECT_TRUE(bridge::relative_error(
                          got[0], oracle_of({array_of(weight), array_of(x)}).x) <= 40 * kEpsilon);
          bridge::expect_gradients({weight, x}, {got[1], got[2]},
                                   bridge::normal(got[0].shape(), "seed"), oracle_of);
        }
}

TEST(SequenceProjection, ThreadsDoNotChangeABit) {
  const int before = threads();
  const Tensor weight = bridge::normal({1, 20, 700}, "w"), x = bridge::normal({1, 1, 700, 8}, "x");
  set_threads(1);
  const std::vector<Tensor> one = run(weight, x, {});
  for (const int count : {2, 3}) {
    set_threads(count);
    const std::vector<Tensor> many = run(weight, x, {});
    for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(bridge::same_bits(one[i], many[i])) << i;
  }
  set_threads(before);
}

}  // namespace
}  // namespace attn::sequence_projection_test
