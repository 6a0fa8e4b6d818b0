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
  int64_t cache = 0;  // positions of a sequence that takes a token: the word's mean, or a prompt's
};
ServedRequests requests_of(const MixedBatch& batch);
// Why no requests can arrive at the server of this batch; nullopt: they can.
std::optional<std::string> why_no_arrivals(const MixedBatch& batch);

// Medians of each prompt alone, and of a token for 1, 2, 4, ... sequences, up to all of the word's.
std::vector<ServedCall> time_calls(const WorkloadSpec& spec);

}  // namespace attn
