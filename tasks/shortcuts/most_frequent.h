// The most frequent of several values, from a map of counts. O(values).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

namespace attn {

// The value with the largest count; of several the smallest. `counts` must not be empty.
template <class Value>
const Value& most_frequent(const std::map<Value, int64_t>& counts) {
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  return std::max_element(counts.begin(), counts.end(), fewer)->first;  // the first of the largest
}

}  // namespace attn
