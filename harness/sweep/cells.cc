// From resolved sub-sweeps to cells: every combination once, with its key, its forecast, or why it
// cannot run.
#include <map>
#include <set>

#include "core/base/check.h"
#include "harness/measure/fidelity.h"
#include "harness/sweep/axes.h"
#include "harness/sweep/forecast.h"
#include "harness/sweep/key.h"
#include "harness/sweep/labels.h"
#include "harness/sweep/pilots.h"
#include "harness/sweep/resolve.h"
#include "harness/sweep/sweep.h"
#include "harness/train/train.h"
#include "variants/catalog.h"

namespace attn {
namespace {

Json axes_json(const Choice& choice) {
  Json axes = Json::object();
  for (const auto& [name, text] : choice)
    axes[name] = to_json(find_axis(name).spec.parse("axis", text));
  if (axes.value("mode", "") == "decode") axes["causal"] = true;
  return axes;
}

Json key_json(const std::string& measure, const VariantInfo& info, const Params& params,
              Json axes) {
  return {{"protocol", kProtocol},
          {"measure", measure},
          {"variant", plugin_json(info.name, params)},
          {"task", nullptr},
          {"axes", std::move(axes)},
          {"training", nullptr},
          {"source", {{"variant", source_hash("variants", info.name)}}}};
}

// Appends cells, each once.
class Collector {
 public:
  explicit Collector(const std::string& pilots) : pilots_(pilots) {}
  void add(Json key, std::string skip, const std::vector<std::string>& tuned = {}) {
    Cell cell;
    cell.tuned = tuned;
    cell.id = hash_of(key);
    if (!seen_.insert(cell.id).second) return;
    if (skip.empty()) {
      const Forecast forecast = forecast_of(key, &pilots_);
      cell.forecast_s = forecast.seconds;
      cell.forecast_bytes = forecast.bytes;
      cell.is_piloted = forecast.is_measured;
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
  Pilots pilots_;
  std::set<std::string> seen_;
};

void add_shaped(const Resolved& sweep, Collector& collector) {
  const std::vector<Choice> choices = cross_product(sweep.axes);
  collector.expect(choices.size() * sweep.variants.size());
  for (const Choice& choice : choices) {
    const Json axes = axes_json(choice);
    for (const auto& [info, params] : sweep.variants) {
      Json key = key_json(sweep.measure, *info, params, axes);
      auto why = why_not(workload_of(key));
      if (!why && sweep.measure == "fidelity") why = why_no_fidelity(workload_of(key));
      collector.add(std::move(key), why.value_or(""));
    }
  }
}

void add_training(const Resolved& sweep, Collector& collector) {
  const std::vector<Choice> choices = cross_product(sweep.axes);
  collector.expect(sweep.tasks.size() * sweep.training.size() * choices.size() *
                   sweep.variants.size());
  for (const auto& [task, task_params] : sweep.tasks) {
    const auto built = task->make(task_params);
    const TaskShape shape = built->shape();
    for (const Params& training : sweep.training)
      for (const Choice& choice : choices)
        for (const auto& [info, params] : sweep.variants) {
          Json axes = {{"length", shape.length}, {"causal", shape.causal}};
          axes.update(axes_json(choice));
          Json key = key_json(sweep.measure, *info, params, std::move(axes));
          key["task"] = plugin_json(task->name, task_params);
          key["training"] = to_json(training);
          key["source"]["task"] = source_hash("tasks", task->name);
          if (shape.outputs > 0)  // it stands where the variant cannot
            key["source"]["exact"] = source_hash("variants", exact_reference().name);
          if (built->source()) key["source"]["data"] = built->source()->fingerprint();
          const auto why = why_not_trainable(task->name, *built, *info, params.values(), training);
          collector.add(std::move(key), why.value_or(""), sweep.tuned);
        }
  }
}

Json config_json(const Resolved& sweep) {
  Json variants = Json::array(), tasks = Json::array(), training = Json::array(),
       axes = Json::object();
  for (const auto& [info, params] : sweep.variants)
    variants.push_back(plugin_text(plugin_json(info->name, params)));
  for (const auto& [info, params] : sweep.tasks)
    tasks.push_back(plugin_text(plugin_json(info->name, params)));
  for (const Params& params : sweep.training) training.push_back(to_json(params));
  for (const Setting& axis : sweep.axes) {
    axes[axis.name] = Json::array();
    for (const std::string& value : axis.values)
      axes[axis.name].push_back(axes_json({{axis.name, value}})[axis.name]);
  }
  return {{"measure", sweep.measure}, {"variants", variants}, {"tasks", tasks}, {"axes", axes},
          {"training", training},     {"tuned", sweep.tuned}};
}

// What stays together in a shard: speed cells that are compared with each other, and of tuned cells
// all choices and seeds, of which one choice will stand for the variant.
std::string unit_of(const Cell& cell) {
  if (cell.key["measure"] == "speed") return group_of(cell.key).dump();
  if (cell.tuned.empty()) return cell.id;
  Json key = cell.key;
  key["axes"].erase("seed");
  for (const std::string& setting : cell.tuned) key["training"].erase(setting);
  return key.dump();
}

std::vector<Cell> shard_of(std::vector<Cell> cells, int shard, int shards) {
  std::vector<Cell> kept;
  std::map<std::string, int> units;
  for (Cell& cell : cells) {
    const auto it = units.emplace(unit_of(cell), static_cast<int>(units.size())).first;
    if (it->second % shards == shard) kept.push_back(std::move(cell));
  }
  return kept;
}

}  // namespace

Plan plan(const SweepRequest& request) {
  ATTN_CHECK(request.shards >= 1 && request.shard >= 0 && request.shard < request.shards,
             "shard {}/{} is not valid; expected i/n with 0 <= i < n", request.shard,
             request.shards);
  const std::vector<Resolved> sweeps = resolve(request);
  Plan result;
  Collector collector(request.pilots);
  Json resolved = Json::array();
  for (const Resolved& sweep : sweeps) {
    resolved.push_back(config_json(sweep));
    if (sweep.measure == "accuracy")
      add_training(sweep, collector);
    else
      add_shaped(sweep, collector);
  }
  Json version = nullptr;
  for (const ProfileInfo& info : all_profiles())
    if (info.name == request.profile) version = info.version;
  result.config = {{"profile", request.profile.empty() ? Json(nullptr) : Json(request.profile)},
                   {"profile_version", version},
                   {"protocol", kProtocol},
                   {"sweeps", resolved},
                   {"jobs", request.jobs},
                   {"timeout_s", timeout_of(request)},
                   {"max_memory_bytes", request.max_memory_bytes},
                   {"shard", fmt::format("{}/{}", request.shard, request.shards)}};
  result.cells = shard_of(std::move(collector.cells), request.shard, request.shards);
  std::vector<std::string> labels = cell_labels(result.cells);
  for (size_t i = 0; i < labels.size(); i++) result.cells[i].label = std::move(labels[i]);
  return result;
}

}  // namespace attn
