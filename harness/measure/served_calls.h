// Times of the calls that a queue before a served workload is simulated on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/measure/queue.h"
#include "harness/measure/workload.h"

namespace attn {

// What a word says of requests and of the server: a request has a prompt of one of the word's
// groups of prompts, and as many tokens as a round has calls. A call takes at most the word's
// prompts, and a server answers at most all of the word's sequences at a time.
struct ServedRequests {
  std::vector<int64_t> prompts;  // of all sequences that are prompts
  BatchingRule rule;
  // Positions of a sequence that takes a token: the mean prompt, and half of a request's tokens.
  // The caches of the word's own sequences are none of a request of the queue.
  int64_t cache = 0;
};
ServedRequests requests_of(const MixedBatch& batch);
// Why no requests can arrive at the server of this batch; nullopt: they can.
std::optional<std::string> why_no_arrivals(const MixedBatch& batch);

// What is timed: each prompt alone, and 1, 2, 4, ... sequences, up to all of the word's, which take
// a token each on the same cache.
std::vector<SequenceGroup> groups_to_time(const MixedBatch& batch);
inline constexpr int64_t kPromptCalls = 3;  // of a prompt, after one that is not counted
// The medians of these.
std::vector<ServedCall> time_calls(const WorkloadSpec& spec);

}  // namespace attn
