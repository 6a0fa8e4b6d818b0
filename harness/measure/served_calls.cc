// See served_calls.h. Costs a few calls of each prompt, and a round of each number of sequences.
#include "harness/measure/served_calls.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "harness/measure/serving.h"
#include "harness/measure/statistics.h"

namespace attn {
namespace {

constexpr int64_t kPromptCalls = 3;

WorkloadSpec with_batch(const WorkloadSpec& spec, const SequenceGroup& group) {
  WorkloadSpec own = spec;
  own.served = {group};
  own.batch = group.count;
  own.length = group.total;
  return own;
}

double prompt_alone_s(const WorkloadSpec& spec, int64_t prompt) {
  Serving serving(with_batch(spec, {.count = 1, .queries = prompt, .total = prompt}));
  std::vector<double> seconds;
  for (int64_t i = 0; i <= kPromptCalls; ++i) {  // the first one is not counted
    serving.begin();
    const auto start = std::chrono::steady_clock::now();
    serving.call();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (i > 0) seconds.push_back(taken.count());
  }
  return summarize(seconds).median;
}

// A cache has at least the position of the token itself.
double tokens_s(const WorkloadSpec& spec, int64_t sequences, int64_t cache) {
  Serving serving(with_batch(spec, {.count = sequences, .queries = 1, .total = cache}));
  return summarize(serving.time_rounds(1).later_s).median;
}

}  // namespace

ServedRequests requests_of(const MixedBatch& batch) {
  ServedRequests found;
  int64_t decoding = 0, cached = 0;
  for (const SequenceGroup& group : batch) {
    if (group.is_prompt()) {
      found.prompts.insert(found.prompts.end(), static_cast<size_t>(group.count), group.queries);
    } else {
      decoding += group.count;
      cached += group.count * group.total;
    }
  }
  found.rule = {.prompts = std::ssize(found.prompts),
                .sequences = sequences_of(batch),
                .tokens = kServedCalls};
  found.cache = decoding > 0 ? std::max<int64_t>(2, cached / decoding) : longest_of(batch) + 1;
  return found;
}

std::optional<std::string> why_no_arrivals(const MixedBatch& batch) {
  if (std::none_of(batch.begin(), batch.end(), [](const auto& one) { return one.is_prompt(); }))
    return "it has no prompts, and requests arrive with one, such as q1k";
  for (const SequenceGroup& group : batch)
    if (!group.is_prompt() && group.queries > 1)
      return fmt::format("its sequences take {} positions at once; of a queue they take one token",
                         group.queries);
  return std::nullopt;
}

std::vector<ServedCall> time_calls(const WorkloadSpec& spec) {
  const ServedRequests requests = requests_of(spec.served);
  std::vector<ServedCall> calls;
  for (const int64_t prompt : std::set(requests.prompts.begin(), requests.prompts.end()))
    calls.push_back({.prompt = prompt, .seconds = prompt_alone_s(spec, prompt)});
  std::set<int64_t> counts = {requests.rule.sequences};
  for (int64_t n = 1; n < requests.rule.sequences; n *= 2) counts.insert(n);
  for (const int64_t n : counts)
    calls.push_back({.sequences = n, .seconds = tokens_s(spec, n, requests.cache)});
  return calls;
}

}  // namespace attn
