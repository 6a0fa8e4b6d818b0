// The figures of a row, a struct a measure. results/schema.json defines each of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/params.h"
#include "harness/measure/queue.h"
#include "harness/measure/reach_figures.h"
#include "harness/measure/statistics.h"

namespace attn {

// A row holds no NaN and no infinity: nullopt stands for them.
inline std::optional<double> finite(std::optional<double> value) {
  return value && std::isfinite(*value) ? value : std::nullopt;
}

// Where the time of a pass goes, from passes with marks on beside the timed ones.
struct Breakdown {
  int64_t passes = 0;   // with marks
  double pass_s = 0;    // seconds of such a pass, the mean
  double marks = 0;     // in a pass
  double overhead = 0;  // how much longer marks make a pass, as a share; the median of pairs
  std::vector<std::pair<std::string, double>> shares;  // of the threads' time by part; sum: 1
};

// Of a workload of serving. A round is its call and those that follow, in which every sequence
// takes one token.
struct ServingFigures {
  int64_t prompts = 0, decoding = 0;    // sequences: on an empty cache, and on a filled one
  int64_t calls = 0, rounds = 0;        // calls of a round
  std::optional<double> first_token_s;  // of the prompts, the median; nullopt: there are none
  // Between tokens, over the tokens of all sequences and rounds: the time of a call over the tokens
  // that a sequence took in it.
  double token_p50_s = 0, token_p99_s = 0;
  double generated_per_s = 0;  // tokens, a prompt's first among them, over the time of all calls
};

// Of packed sequences, beside the same ones padded to the longest of them.
struct PackedFigures {
  int64_t sequences = 0, tokens = 0;  // that are no padding
  double useful = 0;                  // of the positions of the padded batch: tokens among them
  // The padded pass; nullopt: the variant takes no padding.
  std::optional<Summary> padded_time;
  std::optional<double> padded_tokens_per_s;  // useful ones
  std::optional<double> speedup;              // the padded median over the packed one
  // Its 95 % confidence interval; nullopt: of one visit of fewer than 6 pairs of samples, or of an
  // earlier version.
  std::optional<double> speedup_ci_low, speedup_ci_high;
};

struct SpeedMetrics {
  Summary time;  // seconds
  double tokens_per_s = 0, flops = 0, flops_per_s = 0;
  // nullopt: the machine's peak is not known, as that of products in bfloat16.
  std::optional<double> peak_fraction;
  std::optional<double> witness_fraction;   // of the rate that the witness reached beside it
  std::optional<double> bytes, roofline_s;  // nullopt: not declared, or none applies
  bool declares_cost = true;                // false: null bytes in a row say so
  std::optional<int64_t> state_bytes;       // of decoding
  std::optional<Breakdown> breakdown;       // where it was asked for
  std::optional<ServingFigures> serving;    // of mode serve; time is that of its first call
  std::optional<QueueFigures> queue;        // of a workload at whose server requests arrive
  std::optional<PackedFigures> packed;      // of packed sequences, and time is theirs
};

struct MemoryMetrics {
  int64_t peak_bytes = 0, weights_bytes = 0, activations_bytes = 0, workspace_bytes = 0;
  std::optional<int64_t> extra_bytes;
  std::optional<int64_t> declared_extra_bytes;  // nullopt: not declared
  std::optional<int64_t> state_bytes;           // nullopt: cannot decode
  int64_t rss_peak_bytes = 0;
};

struct DistanceScore {  // of labels whose evidence spans `from` to `to` positions
  int64_t from = 0, to = 0, labels = 0;
  double accuracy = 0, standard_error = 0;
};

// Of labels whose slice is `from` to `to`; see harness/train/slices.h.
struct SliceScore {
  double from = 0, to = 0;
  int64_t labels = 0, examples = 0;
  double test = 0, standard_error = 0;
};
using ScoresBySlice = std::vector<std::pair<std::string, std::vector<SliceScore>>>;  // by its name

// The score of each test example, packed; see harness/train/example_scores.h.
struct ScoresByExample {
  int64_t count = 0, levels = 2;
  std::string digest;  // of the examples
  std::string scores;  // hexadecimal digits
};
// Each score, in [0, 1]. Error where `scores` is no text of `count` scores.
std::vector<double> unpacked(const ScoresByExample& packed);

struct ScoreAtLength {  // of the same weights at `factor` times the length of training
  int64_t factor = 1, length = 0;
  std::optional<double> test, standard_error, chance;
  std::string reason;  // why there is no score
};

struct ScoreWithParams {  // of the same weights with other parameters of the variant
  Params params;
  std::optional<double> test, standard_error;
  std::vector<DistanceScore> by_distance;  // empty too in rows of earlier versions
  std::optional<int64_t> state_bytes;      // nullopt too in rows of earlier versions
  std::string reason;                      // why there is no score
};

struct ScoreOnTask {  // of the same weights on the task with other parameters
  Params params;
  int64_t length = 0;  // of the longest sequence there
  std::optional<double> test, standard_error, chance;
  std::string reason;  // why there is no score
};

struct DecodingFigures {  // greedy decoding from states, against recomputing each prefix
  int64_t sequences = 0, tokens = 0;
  std::optional<double> tokens_per_s, recompute_tokens_per_s, speedup;
  double same = 0;  // share of the sequences whose tokens are the same both ways
};

struct AccuracyMetrics {
  std::string metric;  // accuracy, exact_match, mean_squared_error or bits_per_token
  double test = 0;
  std::optional<double> test_stderr;
  std::vector<DistanceScore> by_distance;
  ScoresBySlice slices;  // empty: the task has none, or the row is of an earlier version
  std::optional<ScoresByExample> by_example;  // nullopt: of numbers, or of earlier versions
  double validation = 0, chance = 0;
  std::vector<std::pair<std::string, double>> shortcuts;  // name, score
  std::optional<double> lift;  // nullopt: it has no meaning, as of a control
  int64_t steps = 0;
  std::optional<int64_t> best_step;
  std::string ended_by;    // "target", "plateau", "steps", "patience", "time"
  std::string stopped_by;  // the same of rows from before `ended_by`
  int64_t examples = 0;
  double train_s = 0;
  std::optional<double> data_wait_share, examples_per_s;
  int64_t parameters = 0;
  std::optional<double> flops;  // of training, an example
  std::optional<double> final_train_loss;
  std::string control;  // what solves the task without attention
  std::string solver;   // the variant that must learn it, where that is not exact attention
  std::optional<int64_t> state_bytes;
  std::vector<ScoreAtLength> by_length;
  std::vector<ScoreWithParams> by_params;
  std::vector<ScoreOnTask> by_task;
  // Of output sequences alone:
  std::optional<double> token_accuracy;
  std::vector<std::string> places;  // where the variant stands
  std::optional<DecodingFigures> decoding;
};

// The best of the shortcuts, of equal ones the first; null: there are none. `least`: of an error.
const std::pair<std::string, double>* best_shortcut(const AccuracyMetrics& metrics, bool least);

// Whether the training was cut off: its score is what was learned by then. Tables mark it, and
// neither ranks nor sentences nor trade-offs hold it. Rows from before `ended_by` were published
// without this rule, and are not held to it.
inline bool is_unfinished(const AccuracyMetrics& metrics) {
  return metrics.ended_by == "steps" || metrics.ended_by == "time";
}

// Whether the training ended because validation reached the setting target.
inline bool has_reached_target(const AccuracyMetrics& metrics) {
  return metrics.ended_by == "target";
}

struct LayerFidelityMetrics {  // of one attention layer of a model
  double relative_error = 0;
  std::optional<double> weights_kl, mass_kept;
  std::optional<double> keys_read, weights_rank;
  std::optional<double> effective_rank;  // of exact attention's weights
};

struct FidelityMetrics {
  double relative_error = 0, cosine = 0;
  std::optional<double> weights_kl;
  std::optional<double> rounded_inputs_error;     // in bfloat16
  std::optional<double> keys_read, weights_rank;  // of the variant's weights, where they are known
  std::optional<double> flops;
  // Of inputs captured from a model alone:
  std::optional<double> mass_kept;
  std::optional<double> model_test, model_chance;  // nullopt: the model is not trained
  std::vector<LayerFidelityMetrics> layers;
};

struct ReachMetrics {  // see harness/measure/reach_figures.h
  double floor = 0;    // of an influence that counts
  int64_t positions = 0;
  ReachDistances gradient, perturbation, connected;
  std::vector<Influence> by_distance;
};
// The largest distance at which replacing an input is felt, before or after it.
inline int64_t farthest(const ReachMetrics& metrics) {
  return std::max(metrics.perturbation.past, metrics.perturbation.future);
}

using Metrics = std::variant<std::monostate, SpeedMetrics, MemoryMetrics, AccuracyMetrics,
                             FidelityMetrics, ReachMetrics>;

struct LearningPoint {  // of a learning curve
  int64_t step = 0;
  std::optional<double> train_loss, validation;
  double seconds = 0;
};

}  // namespace attn
