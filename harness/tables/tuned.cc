// Groups of rows by everything but seed and tuned settings; see tuned.h. O(rows · log rows).
#include "harness/tables/tuned.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "harness/cell/codec.h"
#include "harness/plan/grammar.h"
#include "harness/tables/grid.h"

namespace attn {
namespace {

struct Candidate {
  double sum = 0;
  int rows = 0;
  bool operator<(const Candidate& other) const {
    return rows != other.rows ? rows < other.rows : sum < other.sum;
  }
};

using Contest = std::map<std::vector<ParamValue>, Candidate>;  // by the tuned settings

const std::vector<ParamValue>& winner(const Contest& contest) {
  return std::max_element(contest.begin(), contest.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

struct Place {
  std::string contest;
  std::vector<ParamValue> values;
};

Place place_of(const Row& row) {
  CellKey shared = row.key;
  shared.axes.seed.reset();
  shared.source = {};
  shared.training = row.key.training.value().without(row.tuned);
  Place place;
  for (const std::string& name : row.tuned)
    place.values.push_back(row.key.training->values().at(name));
  place.contest = to_json(shared).dump() + join(row.tuned);
  return place;
}

// In (0, 1]; more is better, and a cell that failed has 0.
double merit(const Row& row) {
  const double score = row.accuracy().validation;
  return lower_is_better(row) ? 1 / (1 + score) : score;
}

bool is_tuned(const Row& row) { return !row.tuned.empty() && row.key.training; }

std::map<std::string, Contest> contests_of(const std::vector<Row>& rows) {
  std::map<std::string, Contest> contests;
  for (const Row& row : rows) {
    if (!is_tuned(row) || row.trial) continue;
    const Place place = place_of(row);
    Candidate& candidate = contests[place.contest][place.values];
    candidate.rows++;
    if (row.is_ok()) candidate.sum += merit(row);
  }
  return contests;
}

}  // namespace

std::vector<Row> chosen_on_validation(const std::vector<Row>& rows) {
  const auto contests = contests_of(rows);
  std::vector<Row> kept;
  for (const Row& row : rows) {
    if (row.trial) continue;
    if (is_tuned(row)) {
      const Place place = place_of(row);
      if (winner(contests.at(place.contest)) != place.values) continue;
    }
    kept.push_back(row);
  }
  return kept;
}

size_t choices_beside(const Row& row, const std::vector<Row>& rows) {
  if (row.search) return static_cast<size_t>(row.search->choices);
  return contests_of(rows).at(place_of(row).contest).size();
}

}  // namespace attn
