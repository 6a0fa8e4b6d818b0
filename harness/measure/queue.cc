// See queue.h. O(requests · tokens / sequences) calls.
#include "harness/measure/queue.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>

#include "core/base/check.h"
#include "core/base/rng.h"

namespace attn {
namespace {

struct Waiting {
  double arrived_s = 0, prompt_s = 0;
};

struct Running {
  int64_t left = 0;     // tokens
  double latest_s = 0;  // when it got its latest token
};

double prompt_call_s(const std::vector<ServedCall>& calls, int64_t prompt) {
  for (const ServedCall& call : calls)
    if (call.prompt == prompt) return call.seconds;
  throw_error(fmt::format("no call of a prompt of {} positions was measured", prompt));
}

// The least value that a share `p` does not exceed; 0 of none.
double nearest_rank(std::vector<double>& values, double p) {
  if (values.empty()) return 0;
  const double rank = std::ceil(p * static_cast<double>(values.size()));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::max(rank, 1.0)) - 1;
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// Requests as they arrive, and calls one after the other.
class Server {
 public:
  Server(const MeasuredCalls& measured, const BatchingRule& rule, uint64_t seed)
      : measured_(measured), rule_(rule), random_(rng(seed, "arrivals")) {}

  // `rate`: of arrivals; nullopt: all wait from the beginning on.
  void serve(std::optional<double> rate, int64_t requests) {
    double next_s = rate ? gap(*rate) : 0;
    int64_t arrived = 0;
    while (served_ < requests) {
      if (waiting_.empty() && running_.empty() && arrived < requests)
        now_s_ = std::max(now_s_, next_s);
      while (arrived < requests && next_s <= now_s_) {
        waiting_.push_back({next_s, drawn_prompt_s()});
        ++arrived;
        next_s += rate ? gap(*rate) : 0;
      }
      call();
    }
  }

  double end_s() const { return now_s_; }
  double busy_s() const { return busy_s_; }
  std::vector<double>& first_tokens() { return first_s_; }
  std::vector<double>& tokens() { return token_s_; }
  double mean_wait_s() const { return waited_s_ / static_cast<double>(first_s_.size()); }

 private:
  double gap(double rate) { return -std::log1p(-random_.uniform()) / rate; }
  double drawn_prompt_s() {
    const auto at = random_.below(measured_.prompts.size());
    return prompt_call_s(measured_.calls, measured_.prompts[at]);
  }

  void call() {
    const auto room = rule_.sequences - std::ssize(running_);
    const int64_t admitted = std::min({rule_.prompts, room, std::ssize(waiting_)});
    double seconds = running_.empty() ? 0 : token_call_s(measured_.calls, std::ssize(running_));
    for (int64_t i = 0; i < admitted; ++i) {
      waited_s_ += now_s_ - waiting_[static_cast<size_t>(i)].arrived_s;
      seconds += waiting_[static_cast<size_t>(i)].prompt_s;
    }
    now_s_ += seconds;
    busy_s_ += seconds;
    for (Running& one : running_) {
      token_s_.push_back(now_s_ - one.latest_s);
      one.latest_s = now_s_;
      --one.left;
    }
    for (int64_t i = 0; i < admitted; ++i) {
      first_s_.push_back(now_s_ - waiting_.front().arrived_s);
      waiting_.pop_front();
      running_.push_back({rule_.tokens - 1, now_s_});
    }
    served_ += static_cast<int64_t>(
        std::erase_if(running_, [](const Running& one) { return one.left == 0; }));
  }

  const MeasuredCalls& measured_;
  const BatchingRule rule_;
  Rng random_;
  std::deque<Waiting> waiting_;
  std::vector<Running> running_;
  double now_s_ = 0, busy_s_ = 0, waited_s_ = 0;
  int64_t served_ = 0;
  std::vector<double> first_s_, token_s_;
};

}  // namespace

double token_call_s(const std::vector<ServedCall>& calls, int64_t sequences) {
  const ServedCall *below = nullptr, *above = nullptr;
  for (const ServedCall& call : calls) {
    if (call.prompt > 0) continue;
    if (call.sequences <= sequences && (!below || call.sequences > below->sequences)) below = &call;
    if (call.sequences >= sequences && (!above || call.sequences < above->sequences)) above = &call;
  }
  ATTN_CHECK(below && above, "no calls of fewer and of more than {} sequences were measured",
             sequences);
  if (below == above) return below->seconds;
  const double share = static_cast<double>(sequences - below->sequences) /
                       static_cast<double>(above->sequences - below->sequences);
  return below->seconds + share * (above->seconds - below->seconds);
}

QueueFigures simulate_queue(const MeasuredCalls& measured, const BatchingRule& rule, double rate,
                            int64_t requests, uint64_t seed) {
  ATTN_CHECK(rate > 0 && std::isfinite(rate), "arrivals of {} requests a second; more than 0",
             rate);
  ATTN_CHECK(!measured.prompts.empty() && requests >= 1 && rule.prompts >= 1 &&
                 rule.sequences >= 1 && rule.tokens >= 1,
             "a queue needs requests with a prompt and a token, and room for one of them");
  Server server(measured, rule, seed), full(measured, rule, seed);
  server.serve(rate, requests);
  full.serve(std::nullopt, requests);
  return {.rate = rate,
          .requests = requests,
          .first_token_p50_s = nearest_rank(server.first_tokens(), 0.5),
          .first_token_p99_s = nearest_rank(server.first_tokens(), 0.99),
          .token_p50_s = nearest_rank(server.tokens(), 0.5),
          .token_p99_s = nearest_rank(server.tokens(), 0.99),
          .utilisation = server.busy_s() / server.end_s(),
          .wait_s = server.mean_wait_s(),
          .sustained_rate = static_cast<double>(requests) / full.end_s(),
          .calls = measured.calls};
}

}  // namespace attn
