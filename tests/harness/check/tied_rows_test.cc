// Which rows of a reference a tie of two candidates leaves open, and what they may be.
#include "harness/check/tied_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
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

Wanted with_ties(const Reference& reference, int64_t ties) {
  const ReferenceInputs x = queries(ties);
  Wanted wanted{reference(x), {}, {}};
  find_ties(reference, x, kAllowed, wanted);
  return wanted;
}

TEST(TiedRows, AreThoseThatRoundingMoves) {
  const Wanted found = with_ties(nearest_of_two, 2);
  ASSERT_EQ(found.tied.size(), kRows);
  for (int64_t row = 0; row < kRows; ++row) EXPECT_EQ(found.is_tied(row), row < 2) << "row " << row;
}

TEST(TiedRows, AreNoneWhereChoicesAreClear) {
  EXPECT_TRUE(with_ties(nearest_of_two, 0).tied.empty());
}

TEST(TiedRows, ExcuseNothingWhereManyTie) {
  EXPECT_TRUE(with_ties(nearest_of_two, 5).tied.empty());
}

TEST(TiedRows, AreNoneOfASmoothFunction) {
  EXPECT_TRUE(with_ties([](const ReferenceInputs& x) { return x.q; }, 2).tied.empty());
}

TEST(TiedRows, MayBeEitherChoiceAndNothingElse) {
  const Wanted wanted = with_ties(nearest_of_two, 2);
  const Tensor got = Tensor::full({1, 1, kRows, 1}, 1);
  for (const real choice : {1, -1}) {
    got[1] = choice;
    EXPECT_EQ(gap_to(got, wanted).size, 0) << choice;
  }
  got[1] = real(0.5);
  EXPECT_EQ(gap_to(got, wanted).size, 0.5);
  EXPECT_EQ(gap_to(got, wanted).row, 1);
  got[1] = std::numeric_limits<real>::quiet_NaN();
  EXPECT_TRUE(std::isnan(gap_to(got, wanted).size));
  got[1] = 1;
  got[3] = -1;  // a clear choice
  EXPECT_EQ(gap_to(got, wanted).size, 2);
  EXPECT_EQ(gap_to(got, wanted).row, 3);
}

}  // namespace
}  // namespace attn::tied_rows_test
