// A short causal sequence of two heads, on which variants are compared with what they are made of.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/variants/oracle_bridge.h"

namespace attn::small_sequence {

constexpr int64_t kHeads = 2, kLen = 70, kDim = 5;  // two chunks and a part, no whole vector
// Of all inputs.
inline Shape rows_shape() { return {1, kHeads, kLen, kDim}; }

inline std::unique_ptr<Attention> build(const char* name,
                                        std::map<std::string, ParamValue> params = {}) {
  return find_variant(name).build({kHeads, kDim, kLen, true, 3, {}}, params);
}

// Numbers within so many roundings of each other, relative to the largest.
inline void expect_same(const Tensor& got, const Tensor& want, int roundings = 100) {
  ASSERT_EQ(got.shape(), want.shape());
  std::vector<double> wanted(want.values().begin(), want.values().end());
  EXPECT_LE(bridge::relative_error(got, wanted), roundings * kEpsilon);
}

}  // namespace attn::small_sequence
