// Where a variant overtakes full attention, by whole intervals; see faster_from.h.
#include "harness/tables/faster_from.h"

namespace attn {

std::string faster_from(const std::vector<std::string>& lengths, const TimesByLength& variant,
                        const TimesByLength& full, const std::map<std::string, double>& floors) {
  std::string from;
  for (auto length = lengths.rbegin(); length != lengths.rend(); ++length) {
    const auto mine = variant.find(*length), theirs = full.find(*length);
    if (mine == variant.end() || theirs == full.end()) break;
    const auto floor = floors.find(*length);
    const bool is_above_floor =
        floor == floors.end() || theirs->second.median >= (1 + floor->second) * mine->second.median;
    if (!(mine->second.high < theirs->second.low) || !is_above_floor)
      return from.empty() ? "not up to " + *length : from;
    from = *length;
  }
  return from;
}

}  // namespace attn
