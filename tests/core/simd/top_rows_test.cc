// The choice of the largest scores of a row against a stable sort, on each instruction set: rows
// that rise, fall, tie, or hold infinities and NaN, in pieces of any size.
#include "core/simd/top_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/tensor/tensor.h"
#include "tests/core/simd/on_every_isa.h"

namespace attn::top_rows_test {
namespace {

using Row = std::vector<real>;

// NaN is larger than all.
double key(real x) { return std::isnan(x) ? INFINITY : static_cast<double>(x); }

std::vector<int64_t> wanted(const Row& row, int64_t most) {
  std::vector<int64_t> places(row.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
    return key(row[static_cast<size_t>(a)]) > key(row[static_cast<size_t>(b)]);
  });
  places.resize(static_cast<size_t>(std::min(most, std::ssize(row))));
  std::sort(places.begin(), places.end());
  return places;
}

std::vector<int64_t> chosen(const Row& row, int64_t most, int64_t piece) {
  std::vector<real> work(static_cast<size_t>(TopList::reals(most)), real(-77));
  TopList list = TopList::in(work.data(), most);
  for (int64_t at = 0; at < std::ssize(row); at += piece)
    add_to_top(std::min(piece, std::ssize(row) - at), row.data() + at, at, list);
  finish_top(list);
  std::vector<int64_t> places;
  for (int64_t e = 0; e < list.size; ++e) places.push_back(static_cast<int64_t>(list.places[e]));
  return places;
}

std::vector<int64_t> chosen_whole(const Row& row, int64_t most) {
  std::vector<real> work(static_cast<size_t>(TopList::reals(most)), real(-77));
  std::vector<int32_t> places(row.size());
  places.resize(static_cast<size_t>(
      top_places(std::ssize(row), row.data(), most, places.data(), work.data())));
  return {places.begin(), places.end()};
}

std::vector<int64_t> chosen_few(Row row, int64_t most) {
  std::vector<int32_t> places(static_cast<size_t>(most));
  places.resize(static_cast<size_t>(top_few(std::ssize(row), row.data(), most, places.data())));
  return {places.begin(), places.end()};
}

std::vector<Row> rows_of(int64_t n) {
  const Tensor normal = Tensor::normal({n}, rng(23, "scores"));
  Row random(normal.values().begin(), normal.values().end());
  std::vector<Row> all = {random};
  std::sort(random.begin(), random.end());
  all.push_back(random);
  std::reverse(random.begin(), random.end());
  all.push_back(random);
  all.emplace_back(n, real(0.5));
  Row few = all[0], infinite = all[0], holes = all[0], least(static_cast<size_t>(n), -kInfinity);
  for (real& x : few) x = std::round(x);
  for (size_t j = 0; j < infinite.size(); ++j) {
    if (j % 3 == 1) infinite[j] = -kInfinity;
    if (j % 50 == 7) infinite[j] = kInfinity;
    if (j % 17 == 4) holes[j] = std::numeric_limits<real>::quiet_NaN();
    if (j % 41 == 40) least[j] = real(j);
  }
  for (const Row& row : {few, infinite, holes, least}) all.push_back(row);
  return all;
}

class TopRows : public OnEveryIsa {};

TEST_F(TopRows, AreThoseOfAStableSort) {
  each([] {
    for (const int64_t n : {1, 2, 15, 16, 17, 64, 127, 129, 300, 1000, 2500})
      for (const Row& row : rows_of(n))
        for (const int64_t most : {1, 2, 7, 32, 100, 130, 700})
          for (const int64_t piece : {int64_t{64}, int64_t{384}, n})
            ASSERT_EQ(chosen(row, most, piece), wanted(row, most))
                << most << " of " << n << " in pieces of " << piece;
  });
}

TEST_F(TopRows, OfAWholeRowAreThoseOfAStableSort) {
  each([] {
    for (const int64_t n : {1, 15, 64, 129, 1000})
      for (const Row& row : rows_of(n))
        for (const int64_t most : {1, 7, 130})
          ASSERT_EQ(chosen_whole(row, most), wanted(row, most)) << most << " of " << n;
  });
}

TEST_F(TopRows, FewAreThoseOfAStableSort) {
  each([] {
    for (const int64_t n : {1, 2, 15, 16, 17, 64, 129, 300})
      for (const Row& row : rows_of(n))
        for (const int64_t most : {1, 2, 3, 16, 50})
          ASSERT_EQ(chosen_few(row, most), wanted(row, most)) << most << " of " << n;
  });
}

}  // namespace
}  // namespace attn::top_rows_test
