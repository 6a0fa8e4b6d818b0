// The rule of "faster than full from", in tables and in pictures
// (python/attnbench/plots/rows/crossing.py): both are held to the cases of
// tests/data/faster_from.json.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace attn {

struct TimeInterval {
  double low = 0, high = 0;  // seconds, ends of a 95 % interval
  double median = 0;         // of use where there is a noise floor
};
using TimesByLength = std::map<std::string, TimeInterval>;

// The first of the measured lengths, which ascend, from which on the variant's whole interval lies
// below that of full attention, up to the last; "not up to N", the last one, where there is none;
// empty where one of the two was not measured at the last. `floors` are shares by length: where
// there is one, full's median is at least 1 + floor times the variant's.
std::string faster_from(const std::vector<std::string>& lengths, const TimesByLength& variant,
                        const TimesByLength& full,
                        const std::map<std::string, double>& floors = {});

}  // namespace attn
