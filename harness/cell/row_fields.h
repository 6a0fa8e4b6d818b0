// The lists of fields of keys, figures and rows, in the order of a row; see store/fields.h. Private
// to harness/cell.
#pragma once

#include <string>
#include <variant>

#include "harness/cell/each_axis.h"
#include "harness/cell/given_fields.h"
#include "harness/cell/row.h"
#include "harness/cell/speed_fields.h"
#include "harness/store/fields.h"

namespace attn {

template <class Archive>
void fields(Archive& archive, Plugin& plugin) {
  archive("name", plugin.name);
  archive("params", plugin.params);
}

template <class Archive>
void fields(Archive& archive, Axes& axes) {
  each_axis(axes, [&](const char* name, auto& value) { archive.maybe(name, value); });
}

template <class Archive>
void fields(Archive& archive, Sources& source) {
  archive.maybe("variant", source.variant);
  archive.maybe("task", source.task);
  archive.maybe("exact", source.exact);
  archive.maybe("data", source.data);
}

template <class Archive>
void fields(Archive& archive, CellKey& key) {
  archive("protocol", key.protocol);
  archive("measure", key.measure);
  archive("variant", key.variant);
  archive("task", key.task);
  archive("axes", key.axes);
  archive("training", key.training);
  archive.maybe("test_with", key.test_with);
  archive.maybe("test_on", key.test_on);
  archive("source", key.source);
}

template <class Archive>
void fields(Archive& archive, MemoryMetrics& metrics) {
  archive("peak_bytes", metrics.peak_bytes);
  archive("weights_bytes", metrics.weights_bytes);
  archive("activations_bytes", metrics.activations_bytes);
  archive("workspace_bytes", metrics.workspace_bytes);
  archive.maybe("extra_bytes", metrics.extra_bytes);
  archive("declared_extra_bytes", metrics.declared_extra_bytes);
  archive("state_bytes", metrics.state_bytes);
  archive("rss_peak_bytes", metrics.rss_peak_bytes);
}

template <class Archive>
void fields(Archive& archive, DistanceScore& bin) {
  archive("from", bin.from);
  archive("to", bin.to);
  archive("labels", bin.labels);
  archive("accuracy", bin.accuracy);
  archive("stderr", bin.standard_error);
}

template <class Archive>
void fields(Archive& archive, SliceScore& bin) {
  archive("from", bin.from);
  archive("to", bin.to);
  archive("labels", bin.labels);
  archive("examples", bin.examples);
  archive("test", bin.test);
  archive("stderr", bin.standard_error);
}

template <class Archive>
void fields(Archive& archive, ScoresByExample& packed) {
  archive("count", packed.count);
  archive("levels", packed.levels);
  archive("digest", packed.digest);
  archive("scores", packed.scores);
}

template <class Archive>
void fields(Archive& archive, ScoreAtLength& at) {
  archive("factor", at.factor);
  archive("length", at.length);
  archive("test", at.test);
  archive("stderr", at.standard_error);
  archive("chance", at.chance);
  archive.text_or_null("reason", at.reason);
}

template <class Archive>
void fields(Archive& archive, ScoreWithParams& with) {
  archive("params", with.params);
  archive("test", with.test);
  archive("stderr", with.standard_error);
  archive.maybe("by_distance", with.by_distance);
  archive.maybe("state_bytes", with.state_bytes);
  archive.text_or_null("reason", with.reason);
}

template <class Archive>
void fields(Archive& archive, ScoreOnTask& on) {
  archive("params", on.params);
  archive("length", on.length);
  archive("test", on.test);
  archive("stderr", on.standard_error);
  archive("chance", on.chance);
  archive.text_or_null("reason", on.reason);
}

template <class Archive>
void fields(Archive& archive, DecodingFigures& decoding) {
  archive("sequences", decoding.sequences);
  archive("tokens", decoding.tokens);
  archive("tokens_per_s", decoding.tokens_per_s);
  archive("recompute_tokens_per_s", decoding.recompute_tokens_per_s);
  archive("speedup", decoding.speedup);
  archive("same", decoding.same);
}

template <class Archive>
void fields(Archive& archive, AccuracyMetrics& metrics) {
  archive("metric", metrics.metric);
  archive("test", metrics.test);
  archive.maybe("test_stderr", metrics.test_stderr);
  archive.added("by_distance", metrics.by_distance);
  archive.maybe("slices", metrics.slices);
  archive.maybe("by_example", metrics.by_example);
  archive("validation", metrics.validation);
  archive("chance", metrics.chance);
  archive("shortcuts", metrics.shortcuts);
  archive("lift", metrics.lift);
  archive("steps", metrics.steps);
  archive.maybe("best_step", metrics.best_step);
  archive.maybe("ended_by", metrics.ended_by);
  archive.maybe("stopped_by", metrics.stopped_by);
  archive("examples", metrics.examples);
  archive("train_s", metrics.train_s);
  archive("data_wait_share", metrics.data_wait_share);
  archive("examples_per_s", metrics.examples_per_s);
  archive("parameters", metrics.parameters);
  archive("flops", metrics.flops);
  archive("final_train_loss", metrics.final_train_loss);
  archive.maybe("control", metrics.control);
  archive.maybe("solver", metrics.solver);
  archive("state_bytes", metrics.state_bytes);
  archive.maybe("by_length", metrics.by_length);
  archive.maybe("by_params", metrics.by_params);
  archive.maybe("by_task", metrics.by_task);
  archive.maybe("token_accuracy", metrics.token_accuracy);
  archive.maybe("places", metrics.places);
  if (Archive::reads || !metrics.places.empty()) archive("decoding", metrics.decoding);
}

template <class Archive>
void fields(Archive& archive, LayerFidelityMetrics& layer) {
  archive("relative_error", layer.relative_error);
  archive("weights_kl", layer.weights_kl);
  archive("mass_kept", layer.mass_kept);
  archive.maybe("keys_read", layer.keys_read);
  archive.maybe("weights_rank", layer.weights_rank);
  archive("effective_rank", layer.effective_rank);
}

template <class Archive>
void fields(Archive& archive, FidelityMetrics& metrics) {
  archive("relative_error", metrics.relative_error);
  archive("cosine", metrics.cosine);
  archive("weights_kl", metrics.weights_kl);
  archive.maybe("rounded_inputs_error", metrics.rounded_inputs_error);
  archive.maybe("keys_read", metrics.keys_read);
  archive.maybe("weights_rank", metrics.weights_rank);
  archive.maybe("flops", metrics.flops);
  archive.maybe("mass_kept", metrics.mass_kept);
  archive.maybe("model_test", metrics.model_test);
  archive.maybe("model_chance", metrics.model_chance);
  archive.maybe("layers", metrics.layers);
}

template <class Archive>
void fields(Archive& archive, ReachDistances& reach) {
  archive("past", reach.past);
  archive("future", reach.future);
}

template <class Archive>
void fields(Archive& archive, Influence& influence) {
  archive("distance", influence.distance);
  archive("gradient", influence.gradient);
  archive("perturbation", influence.perturbation);
}

template <class Archive>
void fields(Archive& archive, ReachMetrics& metrics) {
  archive("floor", metrics.floor);
  archive("positions", metrics.positions);
  archive("gradient", metrics.gradient);
  archive("perturbation", metrics.perturbation);
  archive("connected", metrics.connected);
  archive("by_distance", metrics.by_distance);
}

template <class Archive>
void fields(Archive& archive, LearningPoint& point) {
  archive("step", point.step);
  archive("train_loss", point.train_loss);
  archive("validation", point.validation);
  archive("seconds", point.seconds);
}

template <class Archive>
void fields(Archive& archive, Ledger& ledger) {
  archive("parameters", ledger.parameters);
  archive("flops", ledger.flops);
  archive("precision", ledger.precision);
  archive("threads", ledger.threads);
  archive("kernel", ledger.kernel);
  archive.maybe("loops", ledger.loops);
  archive.maybe("cost", ledger.cost);
}

template <class Archive>
void fields(Archive& archive, Verified& verified) {
  archive("by", verified.by);
  archive("shape", verified.shape);
  archive("rows", verified.rows);
  archive("error", verified.error);
  archive("bound", verified.bound);
  archive.maybe("gradient_error", verified.gradient_error);
  archive.maybe("gradient_bound", verified.gradient_bound);
  archive.maybe("identities", verified.identities);
  archive("seconds", verified.seconds);
}

template <class Archive>
void fields(Archive& archive, StoredDtype& dtype) {
  archive("name", dtype.name);
  archive("path", dtype.path);
}

template <class Archive>
void fields(Archive& archive, Calibration& calibration) {
  archive("fma_flops_per_s_one", calibration.fma_flops_per_s_one);
  archive("fma_flops_per_s_all", calibration.fma_flops_per_s_all);
  archive.added("copy_bytes_per_s_one", calibration.copy_bytes_per_s_one);
  archive("copy_bytes_per_s", calibration.copy_bytes_per_s);
  // A run line from before it was measured: as all threads together.
  if constexpr (Archive::reads)
    if (calibration.copy_bytes_per_s_one == 0)
      calibration.copy_bytes_per_s_one = calibration.copy_bytes_per_s;
  archive("threads", calibration.threads);
}

template <class Archive>
void fields(Archive& archive, Witnessed& witness) {
  archive("flops_per_s", witness.flops_per_s);
  archive("copy_bytes_per_s", witness.copy_bytes_per_s);
}

template <class Archive>
void fields(Archive& archive, Disturbance& found) {
  archive("seconds", found.seconds);
  archive("involuntary_switches", found.involuntary_switches);
  archive("minor_faults", found.minor_faults);
  archive("major_faults", found.major_faults);
  archive("stolen_s", found.stolen_s);
  archive("others_s", found.others_s);
  archive("load", found.load);
  archive("frequency_hz", found.frequency_hz);
}

// Metrics and samples of a measure, null where the status has none.
template <class Archive>
void figures(Archive& archive, Measure measure, CellResult& result) {
  const auto metrics = [&]<class T>(T) {
    if constexpr (Archive::reads) result.metrics.emplace<T>();
    if (T* const held = std::get_if<T>(&result.metrics)) archive("metrics", *held);
  };
  const bool is_ok = result.status == Status::ok;
  if (!is_ok) archive.null("metrics");
  if (is_ok) switch (measure) {
      case Measure::speed:
        metrics(SpeedMetrics{});
        break;
      case Measure::memory:
        metrics(MemoryMetrics{});
        break;
      case Measure::accuracy:
        metrics(AccuracyMetrics{});
        break;
      case Measure::fidelity:
        metrics(FidelityMetrics{});
        break;
      case Measure::reach:
        metrics(ReachMetrics{});
        break;
    }

  if (measure == Measure::speed && is_ok)
    archive("samples", result.times);
  else if (measure == Measure::accuracy && (is_ok || result.status == Status::diverged))
    archive("samples", result.curve);
  else
    archive.null("samples");
  if (measure == Measure::speed && is_ok) archive.maybe("padded_samples", result.padded_times);
}

template <class Archive>
void fields(Archive& archive, Row& row) {
  CellResult& result = row.result;
  archive.constant("schema", kSchema);
  archive.constant("kind", "cell");
  archive("run", row.run);
  archive("cell", row.cell);
  archive("status", result.status);
  archive.text_or_null("reason", result.reason);
  archive("measure", row.key.measure);
  archive("variant", row.key.variant);
  archive("task", row.key.task);
  archive("axes", row.key.axes);
  figures(archive, row.key.measure, result);
  archive("started_at", row.started_at);
  archive("duration_s", row.duration_s);
  archive.maybe("source", row.key.source);
  archive.maybe("dtype", result.dtype);
  archive.maybe("ledger", row.ledger);
  archive.maybe("referenced", row.referenced);
  archive.maybe("sizes", result.sizes);
  archive.maybe("verified", result.verified);
  archive.maybe("provided_by", row.provided_by);
  archive.maybe("plugin", row.plugin);
  if constexpr (Archive::reads)
    if (row.ledger) result.cost = row.ledger->cost;
  archive.maybe("training", row.key.training);
  archive.maybe("test_with", row.key.test_with);
  archive.maybe("test_on", row.key.test_on);
  archive.maybe("tuned", row.tuned);
  archive.maybe("trial", row.trial);
  archive.maybe("search", row.search);
  std::string gate = result.is_gated ? "red" : "";
  archive.maybe("gate", gate);
  if constexpr (Archive::reads) result.is_gated = gate == "red";
  archive.maybe("rounds", result.rounds);
  archive.maybe("visits", result.visits);
  archive.maybe("visits_ended_by", result.visits_ended_by);
  archive.maybe("noisy", result.noisy);
  archive.maybe("witness", result.witness);
  archive.maybe("disturbance", result.disturbance);
  archive.maybe("pinned", result.pinned);
  archive.maybe("repeats", result.repeats);
  archive.maybe("order_seed", result.order_seed);
}

}  // namespace attn
