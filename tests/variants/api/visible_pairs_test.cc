// The mask as numbers, against the sentence in attention.h that defines it.
#include "variants/api/visible_pairs.h"

#include <gtest/gtest.h>

namespace attn::visible_pairs_test {
namespace {

TEST(VisiblePairs, FollowTheDefinition) {
  for (const bool causal : {false, true}) {
    for (const std::vector<int64_t>& lengths :
         {std::vector<int64_t>{}, std::vector<int64_t>{3, 0}}) {
      for (const int64_t q_len : {2, 5, 7}) {
        const Tensor pairs = visible_pairs({causal, lengths}, {2, 3, q_len, 4}, {2, 3, 5, 4});
        ASSERT_EQ(pairs.shape(), Shape({2, 3, q_len, 5}));
        for (int64_t b = 0, at = 0; b < 2; b++)
          for (int64_t h = 0; h < 3; h++)
            for (int64_t i = 0; i < q_len; i++)
              for (int64_t j = 0; j < 5; j++, at++) {
                const bool valid = lengths.empty() || j < lengths[static_cast<size_t>(b)];
                ASSERT_EQ(pairs[at], valid && (!causal || j <= i + 5 - q_len) ? 1 : 0);
              }
      }
    }
  }
}

}  // namespace
}  // namespace attn::visible_pairs_test
