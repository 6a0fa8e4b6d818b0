// See chosen_rows.h.
#include "harness/verify/chosen_rows.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace attn {
namespace {

constexpr int64_t kLeastPositions = 16, kMostPositions = 64, kRows = 96;

}  // namespace

int64_t positions_to_compare(int64_t batch, int64_t heads) {
  return std::clamp(kRows / std::max<int64_t>(1, batch * heads), kLeastPositions, kMostPositions);
}

std::vector<int64_t> chosen_rows(int64_t length, int64_t count, Rng random) {
  if (length <= count) {
    std::vector<int64_t> all(static_cast<size_t>(length));
    std::iota(all.begin(), all.end(), int64_t{0});
    return all;
  }
  std::set<int64_t> rows = {0, length - 1};
  for (int64_t tile = 32; tile <= 512; tile *= 2) {
    const int64_t edge = (length - 1) / tile * tile;  // where the last tile begins
    if (edge > 0) rows.insert({edge - 1, edge});
  }
  while (std::ssize(rows) < count) rows.insert(random.between(0, length - 1));
  return {rows.begin(), rows.end()};
}

std::vector<int64_t> a_row_of_each_tile(int64_t length, Rng random) {
  constexpr int64_t kTile = 64;
  std::vector<int64_t> rows;
  for (int64_t first = 0; first + kTile <= length; first += kTile)
    rows.push_back(random.between(first, first + kTile - 1));
  if (rows.empty() || rows.back() != length - 1) rows.push_back(length - 1);
  return rows;
}

}  // namespace attn
