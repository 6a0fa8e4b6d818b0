// The lists of fields of the figures of a speed row. Private to harness/cell; see row_fields.h.
#pragma once

#include "harness/cell/row.h"

namespace attn {

template <class Archive>
void fields(Archive& archive, Summary& time) {
  archive("median", time.median);
  archive("mean", time.mean);
  archive("min", time.min);
  archive("mad", time.mad);
  archive("ci_low", time.ci_low);
  archive("ci_high", time.ci_high);
  archive("n", time.n);
}

template <class Archive>
void fields(Archive& archive, Breakdown& breakdown) {
  archive("passes", breakdown.passes);
  archive("pass_s", breakdown.pass_s);
  archive("marks", breakdown.marks);
  archive("overhead", breakdown.overhead);
  archive("shares", breakdown.shares);
}

template <class Archive>
void fields(Archive& archive, ServingFigures& serving) {
  archive("prompts", serving.prompts);
  archive("decoding", serving.decoding);
  archive("calls", serving.calls);
  archive("rounds", serving.rounds);
  archive("first_token_s", serving.first_token_s);
  archive("token_p50_s", serving.token_p50_s);
  archive("token_p99_s", serving.token_p99_s);
  archive("generated_per_s", serving.generated_per_s);
}

template <class Archive>
void fields(Archive& archive, ServedCall& call) {
  archive("prompt", call.prompt);
  archive("sequences", call.sequences);
  archive("seconds", call.seconds);
}

template <class Archive>
void fields(Archive& archive, QueueFigures& queue) {
  archive("rate", queue.rate);
  archive("requests", queue.requests);
  archive("first_token_p50_s", queue.first_token_p50_s);
  archive("first_token_p99_s", queue.first_token_p99_s);
  archive("token_p50_s", queue.token_p50_s);
  archive("token_p99_s", queue.token_p99_s);
  archive("utilisation", queue.utilisation);
  archive("wait_s", queue.wait_s);
  archive("sustained_rate", queue.sustained_rate);
  archive("calls", queue.calls);
}

template <class Archive>
void fields(Archive& archive, PackedFigures& packed) {
  archive("sequences", packed.sequences);
  archive("tokens", packed.tokens);
  archive("useful", packed.useful);
  archive.maybe("padded_time_s", packed.padded_time);
  archive.maybe("padded_tokens_per_s", packed.padded_tokens_per_s);
  archive.maybe("speedup", packed.speedup);
  archive.maybe("speedup_ci_low", packed.speedup_ci_low);
  archive.maybe("speedup_ci_high", packed.speedup_ci_high);
}

template <class Archive>
void fields(Archive& archive, SpeedMetrics& metrics) {
  archive("time_s", metrics.time);
  archive("tokens_per_s", metrics.tokens_per_s);
  archive("flops", metrics.flops);
  archive("flops_per_s", metrics.flops_per_s);
  archive("peak_fraction", metrics.peak_fraction);
  archive.maybe("witness_fraction", metrics.witness_fraction);
  if constexpr (Archive::reads) metrics.declares_cost = !archive.is_null("bytes");
  if (Archive::reads || metrics.bytes || !metrics.declares_cost) {
    archive("bytes", metrics.bytes);
    archive("roofline_s", metrics.roofline_s);
  }
  archive.maybe("state_bytes", metrics.state_bytes);
  archive.maybe("breakdown", metrics.breakdown);
  archive.maybe("serving", metrics.serving);
  archive.maybe("queue", metrics.queue);
  archive.maybe("packed", metrics.packed);
}

}  // namespace attn
