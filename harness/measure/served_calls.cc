// See served_calls.h. Costs a few calls of each prompt, and a round of each number of sequences.
#include "harness/measure/served_calls.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "harness/measure/serving.h"
#include "harness/measure/statistics.h"

namespace attn {
namespace {

WorkloadSpec with_batch(const WorkloadSpec& spec, const SequenceGroup& group) {
  WorkloadSpec own = spec;
  own.served = {group};
  own.batch = group.count;
  own.length = group.total;
  return own;
}

double prompt_alone_s(const WorkloadSpec& spec, const SequenceGroup& prompt) {
  Serving serving(with_batch(spec, prompt));
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

double tokens_s(const WorkloadSpec& spec, const SequenceGroup& sequences) {
  Serving serving(with_batch(spec, sequences));
  return summarize(serving.time_rounds(1).later_s).median;
}

}  // namespace

ServedRequests requests_of(const MixedBatch& batch) {
  ServedRequests found;
  int64_t positions = 0;
  for (const SequenceGroup& group : batch) {
    if (!group.is_prompt()) continue;
    found.prompts.insert(found.prompts.end(), static_cast<size_t>(group.count), group.queries);
    positions += group.count * group.queries;
  }
  const int64_t prompts = std::ssize(found.prompts);
  found.rule = {.prompts = prompts, .sequences = sequences_of(batch), .tokens = kServedCalls};
  found.cache = (prompts > 0 ? positions / prompts : 0) + kServedCalls / 2;
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

std::vector<SequenceGroup> groups_to_time(const MixedBatch& batch) {
  const ServedRequests requests = requests_of(batch);
  std::vector<SequenceGroup> groups;
  for (const int64_t prompt : std::set(requests.prompts.begin(), requests.prompts.end()))
    groups.push_back({.count = 1, .queries = prompt, .total = prompt});
  std::set<int64_t> counts = {requests.rule.sequences};
  for (int64_t n = 1; n < requests.rule.sequences; n *= 2) counts.insert(n);
  for (const int64_t n : counts)
    groups.push_back({.count = n, .queries = 1, .total = requests.cache});
  return groups;
}

std::vector<ServedCall> time_calls(const WorkloadSpec& spec) {
  std::vector<ServedCall> calls;
  for (const SequenceGroup& group : groups_to_time(spec.served)) {
    if (group.is_prompt())
      calls.push_back({.prompt = group.total, .seconds = prompt_alone_s(spec, group)});
    else
      calls.push_back({.sequences = group.count, .seconds = tokens_s(spec, group)});
  }
  return calls;
}

}  // namespace attn
