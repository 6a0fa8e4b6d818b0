// Floors by length; see floors.h.
#include "harness/tables/floors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace attn {
namespace {

constexpr size_t kMostShown = 8;   // floors in a note of one line
constexpr size_t kDateWidth = 10;  // of a time in ISO 8601

std::vector<const FloorAt*> floors_of(const NoiseFloor& floors, Mode mode, int64_t threads) {
  std::vector<const FloorAt*> found;
  for (const FloorAt& floor : floors)
    if (floor.mode == mode && floor.threads == threads) found.push_back(&floor);
  std::sort(found.begin(), found.end(),
            [](const FloorAt* a, const FloorAt* b) { return a->length < b->length; });
  return found;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

}  // namespace

const FloorAt* nearest_floor(const NoiseFloor& floors, Mode mode, int64_t threads, int64_t length) {
  const FloorAt* nearest = nullptr;
  double least = 0;
  for (const FloorAt* floor : floors_of(floors, mode, threads)) {
    const double there = static_cast<double>(floor->length), here = static_cast<double>(length);
    const double ratio = std::max(there / here, here / there);
    if (nearest && (ratio > least || (ratio == least && floor->share <= nearest->share))) continue;
    nearest = floor;
    least = ratio;
  }
  return nearest;
}

std::string floor_note(const NoiseFloor& floors, Mode mode, int64_t threads) {
  const std::vector<const FloorAt*> known = floors_of(floors, mode, threads);
  if (known.empty())
    return fmt::format(
        "no noise floor of this machine is known for {} with {} thread{} (attnbench "
        "noise)",
        name_of(mode), threads, threads == 1 ? "" : "s");
  std::string text, latest;
  double least = known[0]->share, most = least;
  for (const FloorAt* floor : known) {
    text += text.empty() ? fmt::format("{} at length {}", percent(floor->share), floor->length)
                         : fmt::format(", {} at {}", percent(floor->share), floor->length);
    latest = std::max(latest, floor->measured_at.substr(0, kDateWidth));
    least = std::min(least, floor->share);
    most = std::max(most, floor->share);
  }
  if (known.size() > kMostShown)
    text = fmt::format("{} to {} at lengths {} to {}", percent(least), percent(most),
                       known.front()->length, known.back()->length);
  return fmt::format("noise floor of this machine: {} (attnbench noise, {})", text, latest);
}

}  // namespace attn
