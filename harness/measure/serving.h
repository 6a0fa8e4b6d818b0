// A workload as it is served: prompts and sequences that go on from a cache, in one call, and the
// calls that follow. Every variant with a decoder.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "harness/measure/workload.h"

namespace attn {

// Calls of a round, of which the first is of the batch as its word says. In each of the others
// every sequence takes one token, so that of the tokens of a sequence one in 32 waits for prompts.
inline constexpr int64_t kServedCalls = 32;

// Seconds of calls, round by round.
struct ServedTimes {
  std::vector<double> first_s, later_s;
};

// The sequences of a group are of equal length: they are one tensor and share one decoder, so that
// no position is padding. A prompt is a forward pass that answers all its positions, and fills a
// new state. A sequence on a cache is answered by steps, however many positions it brings
// (variants/api/answer.h).
class Serving {
 public:
  // mode serve. Draws the inputs of all calls, N(0, 1), and what the caches hold.
  explicit Serving(const WorkloadSpec& spec);
  ~Serving();
  // States as they are before the first call. Not part of a call: a server has its memory.
  void begin();
  void call();  // the first of a round, or the next
  // Each of `rounds` begins with one row of each group's queries changed, so that an answer that
  // was kept is wrong.
  ServedTimes time_rounds(int64_t rounds);
  double first_call_flops();  // counted in a round that begins here
  // Of all sequences, when the first call is done.
  int64_t state_bytes() const;
  bool has_run() const;  // the last call of a round

  size_t groups() const;
  // What one sequence of a group read and was answered, in the first call of the last round or in
  // the last; of that call the answers alone. q, k, v [1, heads, positions, head_dim].
  SeenPass seen(size_t group, int64_t sequence, bool in_last_call) const;
  const WorkloadSpec& spec() const;

 private:
  struct Group;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attn
