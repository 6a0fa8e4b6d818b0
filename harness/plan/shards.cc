// The longest units first, each to the least loaded shard (Graham 1969, at most 4/3 of the best
// division); see shards.h. Costs a sort.
#include "harness/plan/shards.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

#include "harness/cell/codec.h"

namespace attn {
namespace {

constexpr double kSkipped = 1e-3;  // seconds of a row that says why its cell does not run

struct Unit {
  std::vector<size_t> cells;
  double seconds = 0;
  bool is_alone = false;  // its cells run one at a time, however many jobs there are
};

struct Load {
  double alone = 0, beside = 0;
};

}  // namespace

std::string unit_of(const Cell& cell) {
  if (cell.key.measure == Measure::speed) return group_of(cell.key);
  if (cell.tuned.empty()) return cell.id;
  CellKey key = cell.key;
  key.axes.seed.reset();
  if (key.training) key.training = key.training->without(cell.tuned);
  return to_json(key).dump();
}

std::vector<int> shards_of(const std::vector<Cell>& cells, int shards) {
  std::vector<Unit> units;
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < cells.size(); i++) {
    const Cell& cell = cells[i];
    const size_t place = places.emplace(unit_of(cell), units.size()).first->second;
    if (place == units.size()) units.emplace_back();
    units[place].cells.push_back(i);
    units[place].seconds += cell.skip.empty() ? cell.formula_s : kSkipped;
    units[place].is_alone = runs_alone(cell.key.measure);
  }
  std::vector<size_t> order(units.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return units[a].seconds > units[b].seconds; });
  // What runs alone and what runs beside others is divided by itself: how many cells a job runs at
  // a time is not known here.
  std::vector<Load> loads(std::clamp<size_t>(units.size(), 1, static_cast<size_t>(shards)));
  std::vector<int> shard_of(cells.size(), 0);
  for (const size_t place : order) {
    const Unit& unit = units[place];
    double Load::*const kind = unit.is_alone ? &Load::alone : &Load::beside;
    const auto least =
        std::min_element(loads.begin(), loads.end(), [&](const Load& a, const Load& b) {
          return std::tuple(a.*kind, a.alone + a.beside) < std::tuple(b.*kind, b.alone + b.beside);
        });
    (*least).*kind += unit.seconds;
    for (const size_t cell : unit.cells) shard_of[cell] = static_cast<int>(least - loads.begin());
  }
  return shard_of;
}

}  // namespace attn
