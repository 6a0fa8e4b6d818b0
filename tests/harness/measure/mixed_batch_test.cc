// Words of served batches: what they say, the shortest word, and what is none.
#include "harness/measure/mixed_batch.h"

#include <gtest/gtest.h>

#include "tests/said.h"

namespace attn::mixed_batch_test {
namespace {

TEST(MixedBatch, AWordSaysCountQueriesAndCache) {
  const MixedBatch batch = parse_mixed_batch("2q2k_32q1kv1k_q5kv100_q4kkv16k");
  EXPECT_EQ(batch, (MixedBatch{{2, 2048, 2048}, {32, 1, 1024}, {1, 5, 100}, {1, 4096, 16384}}));
  EXPECT_TRUE(batch[0].is_prompt());
  EXPECT_EQ(batch[1].held(), 1023) << "the cache holds the new position too";
  EXPECT_EQ(sequences_of(batch), 36);
  EXPECT_EQ(query_positions_of(batch), 2 * 2048 + 32 + 5 + 4096);
  EXPECT_EQ(longest_of(batch), 16384);
}

TEST(MixedBatch, OneBatchHasOneWord) {
  for (const auto& [given, shortest] : {std::pair("1q2048", "q2k"),
                                        {"2q2kkv2048_32q1kv1024", "2q2k_32q1kv1k"},
                                        {"q1kv1k", "q1kv1k"},
                                        {"q1k", "q1k"},
                                        {"3q1000kv1001", "3q1000kv1001"}}) {
    EXPECT_EQ(to_string(parse_mixed_batch(given)), shortest);
    EXPECT_EQ(parse_mixed_batch(shortest), parse_mixed_batch(given));
  }
}

TEST(MixedBatch, WhatIsNoWordIsNamed) {
  for (const auto& [word, fault] :
       {std::pair("2q", "workload '2q': '2q': a query length is missing"),
        {"", "a count of sequences is missing"},
        {"2", "it has no query length"},
        {"0q1k", "a count of sequences is 1 to 4096, not 0"},
        {"q0", "a query length is 1 to 4194304, not 0"},
        {"3q1kv0", "a cache of 0 cannot hold the 1 of its queries; leave kv out for a prompt"},
        {"q2kkv1k", "a cache of 1024 cannot hold the 2048 of its queries"},
        {"q1kv", "a cache length is missing"},
        {"2q1_", "a count of sequences is missing"},
        {"_2q1", "a count of sequences is missing"},
        {"2q1x", "'x' is left over"},
        {"2q1kkv4kk", "'k' is left over"},
        {"2Q1", "it has no query length"},
        {"-2q1", "a count of sequences is 1 to 4096"},
        {"q-1", "a query length is 1 to 4194304"},
        {"99999q1", "a count of sequences is 1 to 4096"},
        {"99999999999999999999q1", "a count of sequences is 1 to 4096"},
        {"q9999k", "a query length is 1 to 4194304"},
        {"q1kv99999999999999999999k", "a cache length is 1 to 4194304"},
        {"4096q1_q1", "4097 sequences; expected 4096 at most"},
        {"4096q1kv1000k", "positions in all sequences; expected 67108864 at most"}})
    EXPECT_TRUE(says(fault_of([&, text = word] { parse_mixed_batch(text); }), fault)) << word;
}

}  // namespace
}  // namespace attn::mixed_batch_test
