// From resolved sub-sweeps to cells: every combination once, with its key, its forecast, or why it
// cannot run.
#include <algorithm>
#include <set>

#include "core/base/check.h"
#include "harness/cell/codec.h"
#include "harness/cell/source_hash.h"
#include "harness/measure/fidelity.h"
#include "harness/plan/axes.h"
#include "harness/plan/costs.h"
#include "harness/plan/filter.h"
#include "harness/plan/forecast.h"
#include "harness/plan/halving.h"
#include "harness/plan/labels.h"
#include "harness/plan/packings.h"
#include "harness/plan/pilots.h"
#include "harness/plan/pinning.h"
#include "harness/plan/plan.h"
#include "harness/plan/profiles.h"
#include "harness/plan/python_variants.h"
#include "harness/plan/resolve.h"
#include "harness/plan/shards.h"
#include "harness/plan/variant_choices.h"
#include "harness/plan/workloads.h"
#include "harness/train/cached_score.h"
#include "harness/train/captured.h"
#include "harness/train/train.h"
#include "variants/catalog.h"

namespace attn {
namespace {

// What says that no heads are shared, or that numbers are float32, is left out, as is a type of
// cache where nothing is decoded: such a cell is one with the cell that says nothing.
Axes axes_of(const Choice& choice, Axes axes = {}) {
  for (const auto& [name, text] : choice)
    set_axis(axes, name, find_axis(name).spec.parse("axis", text));
  decide_by_workload(axes);
  decide_by_packing(axes);
  if (axes.mode == Mode::decode) axes.causal = true;
  if (axes.kv_heads == 0 || axes.kv_heads == axes.heads) axes.kv_heads.reset();
  if (axes.dtype == Dtype::float32) axes.dtype.reset();
  // fidelity has no mode
  const bool is_cached = !axes.mode || decodes(*axes.mode);
  if (!is_cached || axes.kv_dtype == CacheType::float32) axes.kv_dtype.reset();
  if (axes.equal == Equal::width) axes.equal.reset();
  const bool is_plain = axes.scope != ScopeKind::model || axes.layers == kModelLayers;
  if (axes.scope && is_plain) axes.layers.reset();  // reach has no scope, and always layers
  return axes;
}

// A decoder that keeps bfloat16 caches it where numbers are bfloat16: such a cell is one with the
// cell that does not name the type of the cache.
Axes with_own_cache(Axes axes, const VariantInfo& info) {
  const bool keeps_it = axes.mode == Mode::decode && axes.dtype && info.traits.bfloat16;
  if (keeps_it && axes.kv_dtype == CacheType::bfloat16) axes.kv_dtype.reset();
  return axes;
}

// Attention alone has no width to choose, and an encoder-decoder has layers of exact attention too.
std::optional<std::string> why_not_equal(const Axes& axes, int64_t outputs = 0) {
  if (!axes.equal) return std::nullopt;
  if (axes.scope == ScopeKind::attention)
    return "equal chooses widths of layers: add --scope layer or --scope model";
  if (outputs == 0) return std::nullopt;
  return "equal chooses widths of an encoder, and this task is answered by an encoder and a "
         "decoder";
}

Plugin plugin_of(const TaskInfo& info, const Params& params) {
  return {info.name, params.for_key(info.params)};
}

CellKey key_of(Measure measure, const VariantInfo& info, const Params& params, const Axes& axes) {
  CellKey key;
  key.measure = measure;
  key.variant = key_of_variant(info, params);
  key.axes = axes;
  key.source.variant = source_hash("variants", key.variant.name);
  if (axes.equal)  // its sizes decide the widths
    key.source.exact = source_hash("variants", exact_reference().name);
  return key;
}

// A layer of a paper makes its projections itself, which the attention alone leaves out: beside it
// the block would look slow. Decoding is measured at that scope alone: tables say what is in a
// step.
std::optional<std::string> why_no_block(const CellKey& key, const VariantInfo& info) {
  if (inside_paper(info.name).empty()) return std::nullopt;
  if (key.measure == Measure::fidelity)
    return "block=paper: fidelity compares attention alone; leave block out";
  const bool alone =
      key.axes.scope == ScopeKind::attention && !(key.axes.mode && decodes(*key.axes.mode));
  if (!alone) return std::nullopt;
  return "block=paper is a layer: add --scope layer or --scope model";
}

// Appends cells, each once.
class Collector {
 public:
  explicit Collector(const std::string& pilots) : pilots_(pilots) {}
  void add(CellKey key, std::string skip, const std::vector<std::string>& tuned = {},
           bool is_halved = false) {
    Cell cell;
    cell.tuned = tuned;
    cell.is_halved = is_halved;
    cell.id = id_of(key);
    if (!seen_.insert(cell.id).second) return;
    expect(1);
    if (skip.empty()) {
      const Forecast forecast = forecast_of(key, &pilots_, &costs_);
      cell.forecast_s = forecast.seconds;
      cell.formula_s = forecast.is_measured ? forecast.formula_seconds : forecast.seconds;
      cell.forecast_bytes = forecast.bytes;
      cell.is_piloted = forecast.is_measured;
      if (reads_model(key)) add_training(key, cell);
    }
    cell.key = std::move(key);
    cell.skip = std::move(skip);
    cells.push_back(std::move(cell));
  }
  // Before they are planned one by one.
  void expect(size_t more) const {
    ATTN_CHECK(cells.size() + more <= kMostCells, "the sweep has more than {} cells; ask for fewer",
               kMostCells);
  }
  std::vector<Cell> cells;

 private:
  // The first cell that reads a trained model waits for its training; the others read what it left.
  void add_training(const CellKey& key, Cell& cell) {
    if (key.axes.input != InputKind::trained) return;
    const CellKey training = training_behind(key);
    const Forecast forecast = forecast_of(training, &pilots_, &costs_);
    cell.forecast_bytes = std::max(cell.forecast_bytes, forecast.bytes);
    if (!trained_.insert(fmt::format("{} {}", id_of(training), *key.axes.batch)).second) return;
    cell.forecast_s += forecast.seconds;
    cell.formula_s += forecast.seconds;
  }

  Pilots pilots_;
  Costs costs_;
  std::set<std::string> seen_, trained_;
};

// What the figures of a cell with a task depend on beside the variant.
void add_task_sources(const Task& task, CellKey& key) {
  key.source.task = source_hash("tasks", key.task.value().name);
  if (task.source()) key.source.data = task.source()->fingerprint();
}

// Cells of a variant on what a model reads: a cell a model, whatever shapes the axes ask for.
void add_captured(const Resolved& sweep, const std::vector<Axes>& asked, const Filter& filter,
                  Collector& collector) {
  for (const auto& [task, task_params] : sweep.tasks) {
    const auto built = task->make(task_params);
    for (const Params& training : sweep.training) {
      const auto no_model = why_not_captured(task->name, *built, exact_reference(), training);
      const CapturedShape shape = captured_shape(built->shape(), training);
      for (Axes axes : asked) {
        axes.length = shape.length;
        axes.heads = shape.heads;
        axes.head_dim = shape.head_dim;
        axes.causal = shape.causal;
        for (const auto& [info, params] : sweep.variants) {
          CellKey key = key_of(sweep.measure, *info, params, axes);
          key.task = plugin_of(*task, task_params);
          key.training = training;
          if (!filter.keeps(key)) continue;
          add_task_sources(*built, key);
          key.source.exact = source_hash("variants", exact_reference().name);
          auto why = no_model;
          if (!why) why = why_not(workload_of(key));
          if (!why) why = why_no_fidelity(workload_of(key));
          if (!why) why = why_not_trainable(task->name, *built, *info, params.values(), training);
          collector.add(std::move(key), why.value_or(""));
        }
      }
    }
  }
}

void add_shaped(const Resolved& sweep, Collector& collector) {
  const std::vector<Choice> choices = combinations(sweep.axes, sweep.rules.zips);
  const Filter filter(sweep.rules);
  if (filter.keeps_all()) collector.expect(choices.size() * sweep.variants.size());
  std::vector<Axes> of_models;
  for (const Choice& choice : choices) {
    const Axes axes = axes_of(choice);
    if (axes.input && is_captured(*axes.input)) {
      of_models.push_back(axes);
      continue;
    }
    for (const auto& [info, params] : sweep.variants) {
      CellKey key = key_of(sweep.measure, *info, params, with_own_cache(axes, *info));
      if (!filter.keeps(key)) continue;
      auto why = why_no_block(key, *info);
      if (!why) why = why_not_equal(axes);
      if (!why && axes.packed && python_variant(key.variant.name))
        why = "torch runs it, on one batch at a time, and packs no sequences";
      if (!why) why = why_not(workload_of(key));
      if (!why && sweep.measure == Measure::fidelity) why = why_no_fidelity(workload_of(key));
      collector.add(std::move(key), why.value_or(""));
    }
  }
  add_captured(sweep, of_models, filter, collector);
}

// Refuses at once what would otherwise be found out after a training.
void check_cached_scores(const CellKey& key, const TaskShape& task, const VariantInfo& info,
                         const Params& training) {
  for (const Params& params : key.test_with) {
    const ScoredWith with = scored_with(params.values());
    const auto why = why_no_cached_score(key.task.value().name, task, info, with, training);
    ATTN_CHECK(!why, "test_with '{}': {}", params.str(), *why);
  }
}

void add_training(const Resolved& sweep, Collector& collector) {
  const std::vector<Choice> choices = combinations(sweep.axes, sweep.rules.zips);
  const Filter filter(sweep.rules);
  if (filter.keeps_all())
    collector.expect(sweep.tasks.size() * sweep.training.size() * choices.size() *
                     sweep.variants.size());
  for (size_t t = 0; t < sweep.tasks.size(); t++) {
    const auto& [task, task_params] = sweep.tasks[t];
    const auto built = task->make(task_params);
    const TaskShape shape = built->shape();
    for (const Params& training : sweep.training)
      for (const Choice& choice : choices)
        for (size_t i = 0; i < sweep.variants.size(); i++) {
          const auto& [info, params] = sweep.variants[i];
          const Axes of_the_task{.length = shape.length, .causal = shape.causal};
          CellKey key = key_of(sweep.measure, *info, params, axes_of(choice, of_the_task));
          key.task = plugin_of(*task, task_params);
          key.training = training;
          key.test_with = sweep.tested[i];
          for (const Params& other : sweep.tested_on[t])
            key.test_on.push_back(other.for_key(task->params));
          if (!filter.keeps(key)) continue;
          add_task_sources(*built, key);
          if (shape.outputs > 0)  // it stands where the variant cannot
            key.source.exact = source_hash("variants", exact_reference().name);
          auto why = why_not_equal(key.axes, shape.outputs);
          if (!why) why = why_not_trainable(task->name, *built, *info, params.values(), training);
          if (!why) check_cached_scores(key, shape, *info, training);
          collector.add(std::move(key), why.value_or(""), sweep.tuned, sweep.is_halved);
        }
  }
}

SweepConfig config_of(const Resolved& sweep) {
  SweepConfig config{.measure = sweep.measure,
                     .training = sweep.training,
                     .tuned = sweep.tuned,
                     .tune_by = sweep.is_halved ? kHalving : "",
                     .test_with = sweep.test_with,
                     .test_on = sweep.test_on};
  for (const auto& [info, params] : sweep.variants)
    config.variants.push_back(plugin_text(key_of_variant(*info, params)));
  for (const auto& [info, params] : sweep.tasks)
    config.tasks.push_back(plugin_text(plugin_of(*info, params)));
  for (const Setting& axis : sweep.axes) {
    auto& [name, values] = config.axes.emplace_back(axis.name, std::vector<ParamValue>());
    for (const std::string& text : axis.values)
      values.push_back(find_axis(name).spec.parse("axis", text));
  }
  return config;
}

void check_visits(const SweepRequest& request, const std::vector<Cell>& cells) {
  int64_t threads = 0;
  for (const Cell& cell : cells)
    if (cell.key.measure == Measure::speed)
      threads = std::max(threads, cell.key.axes.threads.value_or(1));
  ATTN_CHECK(threads > 0 || request.precision == 0 || cells.empty(),
             "--precision is about times, and this sweep has no speed cell");
  ATTN_CHECK(threads > 0 || request.max_time_s == 0 || cells.empty(),
             "--max-time is about times, and this sweep has no speed cell");
  check_pinning(request.pin, static_cast<int>(threads));
}

}  // namespace

Plan plan(const SweepRequest& request) {
  ATTN_CHECK(request.shards >= 1 && request.shard >= kEveryShard && request.shard < request.shards,
             "shard {}/{} is not valid; expected i/n with 0 <= i < n", request.shard,
             request.shards);
  const std::vector<Resolved> sweeps = resolve(request);
  Plan result;
  Collector collector(request.pilots);
  RunConfig& config = result.config;
  for (const Resolved& sweep : sweeps) {
    config.sweeps.push_back(config_of(sweep));
    if (sweep.measure == Measure::accuracy)
      add_training(sweep, collector);
    else
      add_shaped(sweep, collector);
  }
  if (const Profile* const profile = asked_profile(request)) {
    config.profile = profile->info.name;
    config.profile_version = profile->info.version;
  }
  config.jobs = request.jobs;
  config.timeout_s = timeout_of(request);
  config.max_memory_bytes = request.max_memory_bytes;
  config.shard = fmt::format("{}/{}", request.shard, request.shards);
  if (request.precision > 0) config.precision = request.precision;
  if (request.max_time_s > 0) config.max_time_s = request.max_time_s;
  if (request.pin != "none") config.pin = request.pin;
  check_visits(request, collector.cells);  // a part may have no speed cell
  const std::vector<int> shards = shards_of(collector.cells, request.shards);
  for (size_t i = 0; i < shards.size(); i++) {
    Cell& cell = collector.cells[i];
    cell.shard = shards[i];
    if (request.shard == kEveryShard || cell.shard == request.shard)
      result.cells.push_back(std::move(cell));
  }
  std::vector<std::string> labels = cell_labels(result.cells);
  for (size_t i = 0; i < labels.size(); i++) result.cells[i].label = std::move(labels[i]);
  return result;
}

void add_twins(Plan& plan) {
  const size_t count = plan.cells.size();
  plan.cells.reserve(2 * count);
  for (size_t i = 0; i < count; i++) {
    Cell& twin = plan.cells.emplace_back(plan.cells[i]);
    twin.label += " again";
    twin.is_twin = true;
  }
}

}  // namespace attn
