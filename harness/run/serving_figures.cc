// See serving_figures.h. O(calls·log calls).
#include "harness/run/serving_figures.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/check.h"
#include "harness/measure/served_calls.h"

namespace attn {
namespace {

using Tokens = std::vector<std::pair<double, int64_t>>;  // seconds each waited, and how many

// The least time that a share `p` of all tokens did not exceed. `tokens` is sorted.
double quantile(const Tokens& tokens, double p) {
  int64_t all = 0, seen = 0;
  for (const auto& [seconds, count] : tokens) all += count;
  for (const auto& [seconds, count] : tokens) {
    seen += count;
    if (static_cast<double>(seen) >= p * static_cast<double>(all)) return seconds;
  }
  return tokens.back().first;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

ServingFigures serving_figures(const MixedBatch& batch, const std::vector<double>& first_s,
                               const std::vector<double>& later_s) {
  const size_t rounds = first_s.size();
  ATTN_CHECK(rounds > 0 && !later_s.empty() && later_s.size() % rounds == 0,
             "{} later calls are no whole number of calls in each of {} rounds", later_s.size(),
             rounds);
  ServingFigures figures{.calls = static_cast<int64_t>(1 + later_s.size() / rounds),
                         .rounds = static_cast<int64_t>(rounds)};
  Tokens tokens;
  int64_t generated = 0;
  for (const SequenceGroup& group : batch) {
    (group.is_prompt() ? figures.prompts : figures.decoding) += group.count;
    // A prompt's first token is no time between tokens.
    const int64_t in_first = group.count * (group.is_prompt() ? 1 : group.queries);
    generated += figures.rounds * (in_first + group.count * (figures.calls - 1));
    if (!group.is_prompt())
      for (const double seconds : first_s)
        tokens.emplace_back(seconds / static_cast<double>(group.queries), in_first);
  }
  for (const double seconds : later_s)
    tokens.emplace_back(seconds, figures.prompts + figures.decoding);
  std::sort(tokens.begin(), tokens.end());
  if (figures.prompts > 0) figures.first_token_s = median_of(first_s);
  figures.token_p50_s = quantile(tokens, 0.5);
  figures.token_p99_s = quantile(tokens, 0.99);
  const double all_s = std::accumulate(first_s.begin(), first_s.end(), 0.0) +
                       std::accumulate(later_s.begin(), later_s.end(), 0.0);
  figures.generated_per_s = static_cast<double>(generated) / all_s;
  return figures;
}

QueueFigures queue_figures(const MixedBatch& batch,
                           const std::vector<std::vector<ServedCall>>& calls, double rate,
                           uint64_t seed) {
  constexpr int64_t kRequests = 20000;  // of which 200 are beyond the 99 %
  ATTN_CHECK(!calls.empty() && !calls[0].empty(), "no calls were measured for a queue");
  MeasuredCalls measured;
  const ServedRequests requests = requests_of(batch);
  measured.prompts = requests.prompts;
  for (size_t i = 0; i < calls[0].size(); ++i) {
    std::vector<double> seconds;
    for (const std::vector<ServedCall>& visit : calls) {
      ATTN_CHECK(visit.size() == calls[0].size() && visit[i].prompt == calls[0][i].prompt &&
                     visit[i].sequences == calls[0][i].sequences,
                 "visits measured other calls for a queue");
      seconds.push_back(visit[i].seconds);
    }
    measured.calls.push_back(calls[0][i]);
    measured.calls.back().seconds = median_of(seconds);
  }
  return simulate_queue(measured, requests.rule, rate, kRequests, seed);
}

}  // namespace attn
