// Groups of rows by everything but seed and tuned settings; see tuned.h. O(rows · log rows).
#include "harness/tables/tuned.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

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

using Contest = std::map<Json, Candidate>;  // by the values of the tuned settings

const Json& winner(const Contest& contest) {
  return std::max_element(contest.begin(), contest.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

struct Place {
  std::string contest;
  Json values;
};

Place place_of(const Json& row) {
  Json axes = row.at("axes"), training = row.at("training"), values = Json::array();
  axes.erase("seed");
  for (const Json& name : row.at("tuned")) {
    values.push_back(training.at(name.get<std::string>()));
    training.erase(name.get<std::string>());
  }
  const Json shared = {row.at("variant"), row.at("task"), axes, training, row.at("tuned")};
  return {shared.dump(), values};
}

// In (0, 1]; more is better, and a cell that failed has 0.
double merit(const Json& row) {
  const double score = row.at("metrics").at("validation").get<double>();
  return lower_is_better(row) ? 1 / (1 + score) : score;
}

bool is_tuned(const Json& row) {
  return row.contains("tuned") && !row["tuned"].empty() && row.contains("training");
}

std::map<std::string, Contest> contests_of(const std::vector<Json>& rows) {
  std::map<std::string, Contest> contests;
  for (const Json& row : rows) {
    if (!is_tuned(row)) continue;
    const Place place = place_of(row);
    Candidate& candidate = contests[place.contest][place.values];
    candidate.rows++;
    if (row.at("status") == "ok") candidate.sum += merit(row);
  }
  return contests;
}

}  // namespace

std::vector<Json> chosen_on_validation(const std::vector<Json>& rows) {
  const auto contests = contests_of(rows);
  std::vector<Json> kept;
  for (const Json& row : rows) {
    if (is_tuned(row)) {
      const Place place = place_of(row);
      if (winner(contests.at(place.contest)) != place.values) continue;
    }
    kept.push_back(row);
  }
  return kept;
}

size_t choices_beside(const Json& row, const std::vector<Json>& rows) {
  return contests_of(rows).at(place_of(row).contest).size();
}

}  // namespace attn
