// The products with listed rows against sums in long double, on each instruction set, at borders of
// whole vectors; and that the switch between the sets reaches each.
#include "core/simd/listed_rows.h"

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

// Up to 20 rows, out of order; none is row 0 or 1.
std::vector<int32_t> listed_rows(int64_t count) {
  std::vector<int32_t> at;
  for (int32_t e = 0; e < count; ++e) at.push_back(2 + 7 * e % 20);
  return at;
}

void expect_listed_rows(int64_t count, int64_t n) {
  const std::vector<int32_t> at = listed_rows(count);
  const Row matrix = normal_numbers(22 * n, "matrix"), x = normal_numbers(n, "x"),
            factors = normal_numbers(count, "factors");
  const ListedRows rows = {count, n, at.data()};
  const Real close = 8 * kClose;
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

// Lists whose rows outgrow a core's own cache are fetched ahead.
TEST_F(ListedRowsKernels, ManyRows) {
  each([] {
    for (const int64_t n : {96, 133}) {
      constexpr int64_t kCount = 803;
      std::vector<int32_t> at;
      for (int32_t e = 0; e < kCount; ++e) at.push_back(7 * e % 811);
      const Row matrix = normal_numbers(811 * n, "matrix"), x = normal_numbers(n, "x"),
                factors = normal_numbers(kCount, "factors");
      const ListedRows rows = {kCount, n, at.data()};
      Row out(x.size()), dots(at.size());
      weighted_rows(rows, factors.data(), matrix.data(), out.data());
      dots_with_rows(rows, x.data(), matrix.data(), dots.data());
      std::vector<Real> sums(x.size());
      for (size_t e = 0; e < at.size(); ++e) {
        Real dot = 0;
        for (size_t j = 0; j < x.size(); ++j) {
          const Real entry = matrix[static_cast<size_t>(at[e] * n) + j];
          sums[j] += Real(factors[e]) * entry;
          dot += Real(x[j]) * entry;
        }
        EXPECT_NEAR(dots[e], dot, 16 * kClose);
      }
      for (size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(out[j], sums[j], 64 * kClose);
    }
  });
}

// Columns and rows at the borders of the groups that the kernels take at a time.
TEST_F(ListedRowsKernels, FewRows) {
  each([] {
    for (const int64_t n : {1, 8, 21, 64, 79, 133})
      for (const int64_t count : {0, 1, 4, 7, 8, 9, 20}) expect_listed_rows(count, n);
  });
}

std::vector<std::pair<const char*, Row>> results() {
  const Row x = normal_numbers(203, "x"), before = normal_numbers(203, "before");
  const std::vector<int32_t> at = {0, 1, 2, 3, 4, 5, 6};
  std::vector<std::pair<const char*, Row>> all;
  Row dots(7), sum(29);
  const ListedRows rows = {7, 29, at.data()};
  weighted_rows(rows, x.data(), before.data(), sum.data());
  all.push_back({"weighted_rows", sum});
  dots_and_add(rows, x.data(), before.data(), x.data(), dots.data(), nullptr);
  all.push_back({"dots_and_add", dots});
  sum_and_add(rows, x.data(), before.data(), x.data(), sum.data(), nullptr);
  all.push_back({"sum_and_add", sum});
  return all;
}

TEST_F(ListedRowsKernels, TheSwitchReachesEveryKernel) { expect_that_each_switches(results); }

}  // namespace
}  // namespace attn::listed_rows_test
