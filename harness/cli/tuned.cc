// Groups of rows by everything but seed and tuned settings; see tuned.h. O(rows · log rows).
#include "harness/cli/tuned.h"

#include <map>
#include <string>
#include <vector>

namespace attn::cli {
namespace {

struct Candidate {
  double sum = 0;
  int rows = 0;
  double mean() const { return sum / rows; }
};

struct Contest {
  std::vector<std::string> order;  // candidates as they first appear
  std::map<std::string, Candidate> candidates;

  const std::string& winner() const {
    const std::string* best = &order[0];
    for (const std::string& name : order)
      if (candidates.at(name).mean() > candidates.at(*best).mean()) best = &name;
    return *best;
  }
};

// What the rows of one contest share, and which candidate a row is of.
std::pair<std::string, std::string> place_of(const Json& row) {
  Json axes = row.at("axes"), training = row.at("training"), chosen = Json::object();
  axes.erase("seed");
  for (const Json& name : row.at("tuned")) {
    chosen[name.get<std::string>()] = training.at(name.get<std::string>());
    training.erase(name.get<std::string>());
  }
  const Json shared = {row.at("variant"), row.at("task"), axes, training};
  return {shared.dump(), chosen.dump()};
}

bool is_tuned(const Json& row) {
  return row.contains("tuned") && !row["tuned"].empty() && row.contains("training");
}

}  // namespace

std::vector<Json> chosen_on_validation(const std::vector<Json>& rows) {
  std::map<std::string, Contest> contests;
  for (const Json& row : rows) {
    if (!is_tuned(row)) continue;
    const auto [shared, name] = place_of(row);
    Contest& contest = contests[shared];
    if (!contest.candidates.count(name)) contest.order.push_back(name);
    Candidate& candidate = contest.candidates[name];
    candidate.rows++;
    if (row.at("status") == "ok") candidate.sum += row.at("metrics").at("validation").get<double>();
  }
  std::vector<Json> kept;
  for (const Json& row : rows) {
    if (is_tuned(row)) {
      const auto [shared, name] = place_of(row);
      if (contests.at(shared).winner() != name) continue;
    }
    kept.push_back(row);
  }
  return kept;
}

}  // namespace attn::cli
