// Seconds = work over a rate, plus what starting a process costs; see forecast.h.
#include "harness/plan/forecast.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "core/base/check.h"
#include "harness/measure/dense_flops.h"
#include "harness/measure/fidelity.h"
#include "harness/measure/reach.h"
#include "harness/measure/served_calls.h"
#include "harness/measure/serving.h"
#include "harness/measure/speed.h"
#include "harness/plan/costs.h"
#include "harness/plan/pilots.h"
#include "harness/plan/rounds.h"
#include "harness/train/mimicry.h"
#include "harness/train/schedule.h"
#include "harness/verify/chosen_rows.h"
#include "tasks/catalog.h"
#include "variants/catalog.h"

namespace attn {
namespace {

constexpr double kRate =
    4e10;  // FLOP/s of one core in the kernels, about half of an AVX2 core's peak
constexpr double kDoubleRate = 2e9;  // of the plain double reference that fidelity compares with
constexpr double kTrainRate =
    5.3e10;  // in the training of small models, by the same formula: the quick profile's cells, on
             // a core of kForecastPeak; a pilot, or the pace of other pilots, replaces it
constexpr double kReadRate = 1e10;      // bytes/s of one core, beyond its caches
constexpr double kNormalRate = 5e7;     // random numbers a second
constexpr double kStart = 0.05;         // seconds to start a cell's process
constexpr double kTrainFactor = 3.5;    // forward and backward over forward
constexpr int64_t kProgram = 24 << 20;  // bytes of the program itself

// Comparing an answer (harness/verify): of each pair of a compared row and a key, for each channel,
// and of each number of the inputs, which become doubles; the means of the catalogue at 4096.
constexpr double kComparePair = 3e-9, kCompareNumber = 2e-8;  // seconds
constexpr double kCompareGradients = 3;                       // evaluations, in place of one

// Seconds of `visits` comparisons, of which one is of gradients too.
double comparing_s(const WorkloadSpec& spec, double visits, double run_s) {
  const int64_t heads = spec.batch * spec.heads, length = spec.length;
  const auto layers = static_cast<double>(spec.scope == ScopeKind::model ? spec.layers : 1);
  const double numbers = static_cast<double>(heads * length * spec.head_dim);
  const int64_t rows = spec.mode == Mode::decode
                           ? 1
                           : std::min(length, positions_to_compare(spec.batch, spec.heads));
  const double once =
      layers * numbers * (static_cast<double>(rows) * kComparePair + 3 * kCompareNumber);
  if (spec.mode == Mode::decode) return (visits + 2) * once;
  const double gradients = spec.mode == Mode::train ? kCompareGradients * once + run_s : 0;
  return visits * once + gradients;
}

// A step of decoding and, once a process, the state that it starts from.
Forecast of_decoding(const CellKey& key, const WorkloadSpec& spec, Costs& costs) {
  AttentionShape shape = spec.shape();
  shape.q_len = 1;  // what the formulas then count is a step of `full`, the whole state of `linear`
  const Cost cost = costs.of(*spec.variant, key.variant.params, shape, spec.kv_heads);
  const int64_t gates =
      spec.heads * total_width(spec.variant->gates_of(spec.heads, spec.head_dim, spec.chosen()));
  const double numbers =
      static_cast<double>(spec.batch * spec.length) *
      static_cast<double>(2 * spec.key_heads() * spec.head_dim + gates);  // keys, values, gates
  const double once = kStart + numbers / kNormalRate + cost.flops / kRate;
  const double step = cost.state_bytes / kReadRate;
  Forecast forecast{once, kProgram + static_cast<int64_t>(cost.state_bytes) + prefill_bytes(spec)};
  if (key.measure != Measure::speed) {
    forecast.seconds += comparing_s(spec, 1, 0);
    return forecast;
  }
  const TimingOptions timing;
  const int64_t repetitions = key.axes.repetitions.value();
  forecast.seconds = static_cast<double>(rounds_of(repetitions)) * (once + timing.warmup_s) +
                     static_cast<double>(repetitions) * std::max(timing.min_sample_s, step) +
                     comparing_s(spec, static_cast<double>(rounds_of(repetitions)), 0);
  return forecast;
}

// Sequences that are served alike.
struct ServedGroup {
  double draw_s = 0, first_s = 0, token_s = 0;  // of inputs, of the first call, of one of a token
  double bytes = 0;                             // of inputs and states
  double round_s() const { return first_s + static_cast<double>(kServedCalls - 1) * token_s; }
};

ServedGroup served_group(const CellKey& key, const WorkloadSpec& spec, const SequenceGroup& group,
                         Costs& costs) {
  AttentionShape shape = spec.shape();
  shape.batch = group.count;
  shape.q_len = shape.kv_len = group.total;
  const Cost cost = costs.of(*spec.variant, key.variant.params, shape, spec.kv_heads);
  const double positions = static_cast<double>(group.count * group.total);
  const double numbers =
      positions * static_cast<double>((2 * spec.key_heads() + spec.heads) * spec.head_dim);
  const double step_s = cost.state_bytes / kReadRate;
  const double call_s = group.is_prompt() ? cost.flops / (kRate * spec.threads)
                                          : static_cast<double>(group.queries) * step_s;
  return {.draw_s = numbers / kNormalRate,
          .first_s = positions * 1e-7 + call_s,  // filling first
          .token_s = step_s,
          .bytes = cost.state_bytes + 2 * numbers * sizeof(float)};
}

// What a queue is simulated on: calls of one group after the other, beside those of the word.
Forecast of_calls(const CellKey& key, const WorkloadSpec& spec, Costs& costs) {
  double seconds = 0, bytes = 0;
  for (const SequenceGroup& group : groups_to_time(spec.served)) {
    const ServedGroup one = served_group(key, spec, group, costs);
    seconds += one.draw_s + (group.is_prompt() ? static_cast<double>(kPromptCalls + 1) * one.first_s
                                               : one.round_s());
    bytes = std::max(bytes, one.bytes);
  }
  return {seconds, static_cast<int64_t>(bytes)};
}

// Rounds of calls, and once a process what the caches hold.
Forecast of_serving(const CellKey& key, const WorkloadSpec& spec, Costs& costs) {
  double draw_s = 0, round_s = 0, bytes = 0, comparing = 0;
  for (const SequenceGroup& group : spec.served) {
    const ServedGroup one = served_group(key, spec, group, costs);
    draw_s += one.draw_s;
    round_s += one.round_s();
    bytes += one.bytes;
    WorkloadSpec alone = spec;
    alone.batch = std::min<int64_t>(group.count, 3);
    alone.length = group.total;
    alone.mode = group.is_prompt() ? Mode::forward : Mode::decode;
    comparing += 2 * comparing_s(alone, 1, 0);
  }
  const int64_t repetitions = key.axes.repetitions.value();
  const auto visits = static_cast<double>(rounds_of(repetitions));
  const Forecast calls = key.axes.arrivals ? of_calls(key, spec, costs) : Forecast{};
  return {visits * (kStart + draw_s + comparing + calls.seconds) +
              (visits + static_cast<double>(repetitions)) * round_s,
          kProgram + static_cast<int64_t>(bytes) + calls.bytes};
}

// What fidelity does with the weights of the variant, beside comparing outputs in `exact_s`:
// `pass_s` for each head_dim columns, their products with the values, and singular values.
void add_weights(const WorkloadSpec& spec, double pass_s, double exact_s, Forecast& forecast) {
  const auto n = static_cast<double>(spec.length);
  const int64_t matrices = spec.batch * spec.heads;
  forecast.seconds += std::ceil(n / static_cast<double>(spec.head_dim)) * pass_s + exact_s / 2;
  forecast.bytes += matrices * spec.length * spec.length * static_cast<int64_t>(sizeof(float));
  if (spec.length > kLongestSpectrum) return;
  const double bidiagonal = 8 * n * n * n / 3;  // FLOPs of most of the work, Golub and Van Loan 8.6
  forecast.seconds +=
      static_cast<double>(std::min(matrices, kMostSpectra)) * bidiagonal / kDoubleRate;
}

// Of the positions of the padded batch, those of packed sequences.
double useful_share(const WorkloadSpec& spec) {
  int64_t positions = 0;
  for (const int64_t length : spec.packed) positions += length;
  return static_cast<double>(positions) / static_cast<double>(spec.batch * spec.length);
}

Forecast of_shape(const CellKey& key, Costs& costs) {
  const WorkloadSpec spec = workload_of(key);
  if (spec.mode == Mode::decode) return of_decoding(key, spec, costs);
  if (spec.mode == Mode::serve) return of_serving(key, spec, costs);
  const Cost cost = costs.of(*spec.variant, key.variant.params, spec.shape());
  const double tokens = static_cast<double>(spec.batch * spec.length);
  const double width = static_cast<double>(spec.heads * spec.head_dim);
  const auto layers = static_cast<double>(spec.scope == ScopeKind::model ? spec.layers : 1);
  // Inputs, output, and keys and values repeated for the query heads that share them.
  const double held = spec.group() > 1 ? 6 : 4;
  double flops = cost.flops * layers,
         bytes = cost.peak_bytes + held * tokens * width * static_cast<double>(size_of(spec.dtype));
  if (spec.scope != ScopeKind::attention) {
    const DenseLayer dense{.tokens = tokens,
                           .heads = spec.heads,
                           .width = spec.heads * spec.head_dim,
                           .feed_forward = 4 * spec.heads * spec.head_dim,
                           .kept = 1 / static_cast<double>(spec.group())};
    flops += layers * dense_flops(*spec.variant, spec.chosen(), dense);
    bytes += 12 * tokens * width * sizeof(float);
  }
  if (spec.mode == Mode::train) flops *= kTrainFactor, bytes *= 2 * layers;
  double timed = 1;            // passes that have samples of their own
  if (!spec.packed.empty()) {  // a share of the padded batch, and, where it takes padding, that too
    const double both = useful_share(spec) + (spec.variant->traits.padding ? 1 : 0);
    flops *= both, bytes *= both;
    if (spec.variant->traits.padding) timed = 2;
  }
  const double run_s = flops / (kRate * spec.threads);
  Forecast forecast{kStart, kProgram + static_cast<int64_t>(bytes)};
  switch (key.measure) {
    case Measure::speed: {
      const TimingOptions timing;
      const int64_t repetitions = key.axes.repetitions.value();
      const auto visits = static_cast<double>(rounds_of(repetitions));
      forecast.seconds =
          visits * (kStart + timed * timing.warmup_s + run_s) +
          static_cast<double>(repetitions) * std::max(timed * timing.min_sample_s, run_s) +
          comparing_s(spec, visits, run_s);
      break;
    }
    case Measure::memory:
      forecast.seconds += 2 * run_s + comparing_s(spec, 1, run_s);
      break;
    case Measure::fidelity: {
      const double exact = 4 * tokens * static_cast<double>(spec.length) * width;
      forecast.seconds += run_s + exact / kDoubleRate;
      if (computes_weights(spec)) add_weights(spec, run_s, exact / kDoubleRate, forecast);
      break;
    }
    case Measure::reach: {
      const auto stacked = static_cast<double>(key.axes.layers.value());
      const double passes = static_cast<double>(kReachPositions) * (kTrainFactor + 1);
      const DenseLayer dense{.tokens = tokens,
                             .heads = spec.heads,
                             .width = spec.heads * spec.head_dim,
                             .feed_forward = 4 * spec.heads * spec.head_dim,
                             .kept = 1};
      forecast.seconds +=
          passes * stacked *
          (run_s + dense_flops(*spec.variant, spec.chosen(), dense) / (kRate * spec.threads));
      forecast.bytes += static_cast<int64_t>(stacked * (cost.peak_bytes + 24 * tokens * width * 4));
      break;
    }
    case Measure::accuracy:
      throw_error("of_training() forecasts accuracy cells");
  }
  return forecast;
}

// One example of a length through the model.
struct Pass {
  double flops = 0, layer_bytes = 0;  // the attention's own, of one layer
};

Pass pass_of(const CellKey& key, int64_t length, Costs& costs) {
  const VariantInfo& info = variant_of(key.variant);
  const Params& training = key.training.value();
  const int64_t heads = training.integer("heads"), width = training.integer("width");
  const AttentionShape shape{1, heads, length, length, width / heads, key.axes.causal.value()};
  const Cost cost = costs.of(info, key.variant.params, shape);
  const int64_t kv_heads = training.integer("kv_heads");
  const double kept =
      kv_heads > 0 ? static_cast<double>(kv_heads) / static_cast<double>(heads) : 1.0;
  const double dense = dense_flops(info, {info.name, info.params, key.variant.params.values()},
                                   {.tokens = static_cast<double>(length),
                                    .heads = heads,
                                    .width = width,
                                    .feed_forward = training.integer("feed_forward"),
                                    .kept = kept});
  return {(cost.flops + dense) * static_cast<double>(training.integer("layers")), cost.peak_bytes};
}

// The lengths of further test splits that are scored, of multiples of the training length and of
// other parameters of the task. A task's sequences grow with its parameter `length`, if it has one.
std::vector<int64_t> other_lengths(const CellKey& key) {
  const Params &training = key.training.value(), &task = key.task.value().params;
  const bool grows = task.values().contains("length"),
             ends = training.text("positions") == "learned" ||
                    variant_of(key.variant).traits.fixed_length;
  const int64_t own = key.axes.length.value();
  std::vector<int64_t> lengths;
  if (grows && !ends)
    for (int64_t times = 2; times <= training.integer("stretch"); times *= 2)
      lengths.push_back(own * times);
  for (const Params& other : key.test_on) {
    const double times = grows ? static_cast<double>(other.integer("length")) /
                                     static_cast<double>(task.integer("length"))
                               : 1.0;
    if (times <= 1 || !ends)
      lengths.push_back(std::max<int64_t>(1, std::lround(times * static_cast<double>(own))));
  }
  return lengths;
}

Forecast of_training(const CellKey& key, const Pilots* pilots, Costs& costs) {
  const Params& training = key.training.value();
  const auto setting = [&](const char* name) {
    return static_cast<double>(training.integer(name));
  };
  const int64_t length = key.axes.length.value();
  const Pass example = pass_of(key, length, costs);
  // Of one layer, kept for the backward pass, and what evaluation holds of them at a time.
  const double activations = 24.0 * static_cast<double>(length) * setting("width") * sizeof(float);
  constexpr double kHeld = 0.25;
  const auto own_steps = static_cast<double>(expected_steps(training));
  double evaluated =
      std::ceil(own_steps / std::max(1.0, setting("eval_every"))) * setting("validation_examples") +
      setting("test_examples") * static_cast<double>(1 + key.test_with.size());
  // in examples of the training length
  double bytes = setting("layers") * (activations + 2 * example.layer_bytes);
  for (const int64_t other : other_lengths(key)) {
    const Pass pass = pass_of(key, other, costs);
    const double times = static_cast<double>(other) / static_cast<double>(length);
    evaluated += setting("test_examples") * pass.flops / example.flops;
    bytes = std::max(bytes, kHeld * activations * times + pass.layer_bytes);
  }
  // a step of a fit takes about as long as one of the training
  const double steps = own_steps + static_cast<double>(mimicry_steps(training));
  const double trained = steps * setting("batch");
  const std::optional<Pilot> pilot = pilots ? pilots->find(key) : std::nullopt;
  const double by_formula =
      kStart + example.flops * (kTrainFactor * trained + evaluated) / kTrainRate;
  const std::optional<double> pace = pilots ? pilots->pace(key.task.value().name) : std::nullopt;
  const double seconds =
      pilot ? kStart + pilot->step_s * steps + pilot->shortcuts_s + pilot->evaluation_s * evaluated
            : by_formula * pace.value_or(1);
  return {seconds, kProgram + static_cast<int64_t>(setting("batch") * bytes), pilot || pace,
          by_formula, own_steps};
}

}  // namespace

Forecast forecast_of(const CellKey& key, const Pilots* pilots, Costs* costs) {
  Costs once;
  Costs& all = costs ? *costs : once;
  return key.measure == Measure::accuracy ? of_training(key, pilots, all) : of_shape(key, all);
}

}  // namespace attn
