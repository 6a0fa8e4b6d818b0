// A queue of requests before a server that answers them in batches, simulated on measured times of
// calls. A function of these times and a seed; nothing runs here.
#pragma once

#include <cstdint>
#include <vector>

namespace attn {

// A measured call: of one prompt alone, or of `sequences` that take one token each.
struct ServedCall {
  int64_t prompt = 0;  // its positions; 0: tokens
  int64_t sequences = 1;
  double seconds = 0;
  bool operator==(const ServedCall&) const = default;
};

// What a server does: calls, one after the other, as long as there is a request. A call begins with
// at most `prompts` of those that wait, in order of arrival, while fewer than `sequences` are being
// answered; every other sequence takes one token in it. A prompt's call gives its first token. A
// request leaves with its last.
struct BatchingRule {
  int64_t prompts = 1, sequences = 1;
  int64_t tokens = 1;  // of a request
};

// Prompts, each as likely as the others of `prompts`, by length; and times of calls. A call takes
// the sum of its prompts' times and the time of its tokens; that of a number of sequences which was
// not measured is interpolated linearly.
struct MeasuredCalls {
  std::vector<int64_t> prompts;
  std::vector<ServedCall> calls;
};

struct QueueFigures {
  double rate = 0;  // requests a second, a Poisson process
  int64_t requests = 0;
  double first_token_p50_s = 0, first_token_p99_s = 0;  // from the arrival
  double token_p50_s = 0, token_p99_s = 0;  // between tokens of a request; 0 where it has one
  double utilisation = 0;                   // the share of the time in which a call runs
  double wait_s = 0;                        // the mean from the arrival to the call of the prompt
  double sustained_rate = 0;                // requests a second where some always wait
  std::vector<ServedCall> calls;            // the medians behind it
};

// Error where the times of a prompt, or of one sequence, are missing, or the rate is not above 0.
QueueFigures simulate_queue(const MeasuredCalls& measured, const BatchingRule& rule, double rate,
                            int64_t requests, uint64_t seed);

// Seconds of a call of so many sequences that take one token.
double token_call_s(const std::vector<ServedCall>& calls, int64_t sequences);

}  // namespace attn
