// The products with listed rows against sums in long double, on each instruction set, at borders of
// whole vectors; and that the switch between the sets reaches each.
#include "core/simd/listed_rows.h"

#include <cmath>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"
#include "tests/core/simd/on_every_isa.h"

namespace attn::listed_rows_test {
namespace {

using Real = long double;
using Row = std::vector<real>;

constexpr double kClose = 30 * static_cast<double>(kEpsilon);

Row normal_numbers(int64_t n, const char* name) {
  const Tensor t = Tensor::normal({n}, rng(19, name), 1);
  return {t.values().begin(), t.values().end()};
}

class ListedRowsKernels : public OnEveryIsa {};

// Row e of the list is row 2 + 7·e % from of a matrix of from + 2: none is row 0 or 1.
void expect_rows(int64_t count, int64_t from, int64_t n, bool in_memory = false) {
  std::vector<int32_t> at;
  for (int64_t e = 0; e < count; ++e) at.push_back(static_cast<int32_t>(2 + 7 * e % from));
  const Row matrix = normal_numbers((from + 2) * n, "matrix"), x = normal_numbers(n, "x"),
            factors = normal_numbers(count, "factors");
  const ListedRows rows = {count, n, at.data(), in_memory};
  const Real close = (8 + std::sqrt(static_cast<Real>(count))) * kClose;
  Row out(x.size()), dots(at.size()), same(at.size()), sum(x.size(), real(1)),
      to(matrix.size(), real(1)), also = to;
  weighted_rows(rows, factors.data(), matrix.data(), out.data());
  dots_with_rows(rows, x.data(), matrix.data(), same.data());
  dots_and_add(rows, x.data(), matrix.data(), factors.data(), dots.data(), to.data());
  sum_and_add(rows, x.data(), matrix.data(), factors.data(), sum.data(), also.data());
  EXPECT_EQ(to, also);
  EXPECT_EQ(dots, same);
  for (size_t j = 0; j < x.size(); ++j) {
    Real want = 0;
    for (size_t e = 0; e < at.size(); ++e) {
      const size_t entry = static_cast<size_t>(at[e] * n) + j;
      want += Real(factors[e]) * matrix[entry];
      EXPECT_NEAR(to[entry], 1 + Real(factors[e]) * x[j], kClose);
    }
    EXPECT_NEAR(out[j], want, close);
    EXPECT_NEAR(sum[j], 1 + want, close);
    EXPECT_EQ(to[static_cast<size_t>(n) + j], 1) << "row 1 is not listed";
  }
  for (size_t e = 0; e < at.size(); ++e) {
    Real want = 0;
    for (size_t j = 0; j < x.size(); ++j)
      want += Real(x[j]) * matrix[static_cast<size_t>(at[e] * n) + j];
    EXPECT_NEAR(dots[e], want, close);
  }
}

// Columns and rows at the borders of the groups that the kernels take at a time.
TEST_F(ListedRowsKernels, FewRows) {
  each([] {
    for (const int64_t n : {1, 8, 21, 64, 79, 133})
      for (const int64_t count : {0, 1, 4, 7, 8, 9, 20}) expect_rows(count, 20, n);
  });
}

// Rows that are fetched ahead; 109 columns take every width of a group of them.
TEST_F(ListedRowsKernels, RowsInMemory) {
  each([] {
    for (const int64_t n : {8, 96, 109})
      for (const int64_t count : {0, 1, 8, 9, 803}) expect_rows(count, 811, n, true);
  });
}

std::vector<std::pair<const char*, Row>> results() {
  const Row x = normal_numbers(203, "x"), before = normal_numbers(203, "before");
  const std::vector<int32_t> at = {0, 1, 2, 3, 4, 5, 6};
  std::vector<std::pair<const char*, Row>> all;
  Row dots(7), sum(29), of_dots(7);
  const ListedRows rows = {7, 29, at.data()};
  weighted_rows(rows, x.data(), before.data(), sum.data());
  all.push_back({"weighted_rows", sum});
  dots_with_rows(rows, x.data(), before.data(), of_dots.data());
  all.push_back({"dots_with_rows", of_dots});
  dots_and_add(rows, x.data(), before.data(), x.data(), dots.data(), nullptr);
  all.push_back({"dots_and_add", dots});
  sum_and_add(rows, x.data(), before.data(), x.data(), sum.data(), nullptr);
  all.push_back({"sum_and_add", sum});
  return all;
}

TEST_F(ListedRowsKernels, TheSwitchReachesEveryKernel) { expect_that_each_switches(results); }

}  // namespace
}  // namespace attn::listed_rows_test
