// Where a variant overtakes full attention, by whole intervals; see faster_from.h.
#include "harness/tables/faster_from.h"

namespace attn {

std::string faster_from(const std::vector<std::string>& lengths, const TimesByLength& variant,
                        const TimesByLength& full) {
  std::string from;
  for (auto length = lengths.rbegin(); length != lengths.rend(); ++length) {
    const auto mine = variant.find(*length), theirs = full.find(*length);
    if (mine == variant.end() || theirs == full.end()) break;
    if (!(mine->second.high < theirs->second.low))
      return from.empty() ? "not up to " + *length : from;
    from = *length;
  }
  return from;
}

}  // namespace attn
