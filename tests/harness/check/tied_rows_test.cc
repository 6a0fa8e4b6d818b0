// Which rows of a reference a tie of two candidates excuses, and which it does not.
#include "harness/check/tied_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace attn::tied_rows_test {
namespace {

constexpr int64_t kRows = 64;
constexpr double kAllowed = 1e-3;

// Each query takes the value 1 of the first of two keys or the value -1 of the second: the one that
// is nearer to it.
oracle::Array nearest_of_two(const ReferenceInputs& x) {
  oracle::Array out(1, 1, x.q.len, 1);
  for (int64_t i = 0; i < x.q.len; ++i) {
    const double query = x.q.at(0, 0, i, 0);
    out.at(0, 0, i, 0) =
        std::abs(query - x.k.at(0, 0, 0, 0)) < std::abs(query - x.k.at(0, 0, 1, 0)) ? 1 : -1;
  }
  return out;
}

// Queries of which the first `ties` lie in the middle between the keys, but for less than
// rounding, and the others 0.1 from there.
ReferenceInputs queries(int64_t ties) {
  ReferenceInputs x{.q = {1, 1, kRows, 1},
                    .k = {1, 1, 2, 1},
                    .v = {1, 1, 2, 1},
                    .weights = {},
                    .config = {},
                    .mask = {}};
  x.k.at(0, 0, 0, 0) = 1;
  x.k.at(0, 0, 1, 0) = -1;
  for (int64_t i = 0; i < kRows; ++i) x.q.at(0, 0, i, 0) = i < ties ? 1e-22 : 0.1;
  return x;
}

std::vector<bool> tied(const Reference& reference, int64_t ties) {
  const ReferenceInputs x = queries(ties);
  return tied_rows(reference, x, reference(x), kAllowed);
}

TEST(TiedRows, AreThoseThatRoundingMoves) {
  const std::vector<bool> found = tied(nearest_of_two, 2);
  ASSERT_EQ(found.size(), kRows);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], i < 2) << "row " << i;
}

TEST(TiedRows, AreNoneWhereChoicesAreClear) { EXPECT_TRUE(tied(nearest_of_two, 0).empty()); }

TEST(TiedRows, ExcuseNothingWhereManyTie) { EXPECT_TRUE(tied(nearest_of_two, 5).empty()); }

TEST(TiedRows, AreNoneOfASmoothFunction) {
  EXPECT_TRUE(tied([](const ReferenceInputs& x) { return x.q; }, 2).empty());
}

TEST(TiedRows, AreLeftOutOfTheGap) {
  const ReferenceInputs x = queries(0);
  const oracle::Array wanted = nearest_of_two(x);
  const Tensor got = Tensor::full({1, 1, kRows, 1}, 1);
  got[3] = -1;
  EXPECT_EQ(gap_to(got, wanted, {}).size, 2);
  EXPECT_EQ(gap_to(got, wanted, {}).row, 3);
  std::vector<bool> left_out(kRows, false);
  left_out[3] = true;
  EXPECT_EQ(gap_to(got, wanted, left_out).size, 0);
}

}  // namespace
}  // namespace attn::tied_rows_test
