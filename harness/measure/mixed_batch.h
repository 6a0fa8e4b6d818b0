// A batch as it is served: prompts, and sequences that go on from a cache, in one call. A word says
// it, as in vLLM's benchmark of attention: 2q2k_32q1kv1k is two prompts of 2,048 positions and 32
// sequences that take one token each, with which their caches hold 1,024 positions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

// Sequences alike. A call appends `queries` positions to each; then `total` are in its cache.
struct SequenceGroup {
  int64_t count = 1, queries = 1, total = 1;
  int64_t held() const { return total - queries; }  // positions before the call
  bool is_prompt() const { return held() == 0; }
  bool operator==(const SequenceGroup&) const = default;
};
using MixedBatch = std::vector<SequenceGroup>;

// What a fault in a word says: whose word it is, what follows q, and what would be right.
struct WordFault {
  std::string_view axis, length, example;
};
inline constexpr WordFault kWorkloadFault = {
    "workload", "query length",
    "2q2k_32q1kv1k: two prompts of 2,048, and 32 sequences of one token each on caches of 1,024"};

// Groups, joined by '_', each [count]q<queries>[k][kv<total>[k]]; k: times 1,024. Error where the
// word is none, or a size is beyond what an axis takes.
MixedBatch parse_mixed_batch(std::string_view word, const WordFault& said = kWorkloadFault);
std::string to_string(const MixedBatch& batch);  // the shortest word of this batch

int64_t sequences_of(const MixedBatch& batch);
int64_t query_positions_of(const MixedBatch& batch);  // of one call, of all sequences
int64_t longest_of(const MixedBatch& batch);          // the largest total

}  // namespace attn
