// Lists that hold each entry once, in the order in which the entries first came.
#pragma once

#include <algorithm>
#include <vector>

namespace attn {

// Linear in the length of the list.
template <class T>
void add_once(std::vector<T>& list, const T& value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

}  // namespace attn
