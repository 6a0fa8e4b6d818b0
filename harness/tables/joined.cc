// See joined.h.
#include "harness/tables/joined.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "core/base/add_once.h"
#include "harness/plan/labels.h"
#include "harness/tables/learned.h"
#include "harness/tables/scope_notes.h"
#include "harness/tables/tuned.h"
#include "harness/tables/verified_notes.h"

namespace attn {
namespace {

// Where a model attends that this row trained. nullopt: its layers have a width of their own.
std::optional<ScoredShape> shape_of_training(const Row& row) {
  const Axes& axes = row.key.axes;
  if (axes.equal || !axes.length || !row.key.training) return std::nullopt;
  const int64_t heads = row.key.training->integer("heads"),
                shared = row.key.training->integer("kv_heads");
  return ScoredShape{.length = *axes.length,
                     .causal = axes.causal.value_or(false),
                     .heads = heads,
                     .kv_heads = shared > 0 ? shared : heads,
                     .head_dim = row.key.training->integer("width") / heads,
                     .layers = row.key.training->integer("layers")};
}

// Of a row that is not trained: attention and a layer are the same in a model of any `layers`.
// nullopt: of a shape or number type that no training has.
std::optional<ScoredShape> shape_of_pass(const Row& row, int64_t layers) {
  const Axes& axes = row.key.axes;
  if (axes.equal || axes.dtype || axes.kv_dtype || row.key.task || !axes.length || !axes.heads ||
      !axes.head_dim)
    return std::nullopt;
  const bool is_model = scope_of(row) == ScopeKind::model;
  return ScoredShape{.length = *axes.length,
                     .causal = axes.causal.value_or(false),
                     .heads = *axes.heads,
                     .kv_heads = key_heads(axes).value_or(*axes.heads),
                     .head_dim = *axes.head_dim,
                     .layers = is_model ? axes.layers.value_or(kModelLayers) : layers};
}

struct Scored {
  std::vector<std::string> tasks, labels;
  std::map<std::string, Plugin> plugins;  // by label
  SeedsByPlace cells;
};

// `chosen`: accuracy rows; `rows` of the result point into it.
std::map<ScoredShape, Scored> scores_by_shape(const std::vector<const Row*>& chosen) {
  std::vector<Row> all;
  for (const Row* row : chosen) all.push_back(*row);
  std::map<ScoredShape, Scored> places;
  for (const Row* row : chosen) {
    const std::optional<ScoredShape> place = shape_of_training(*row);
    if (!place) continue;
    std::string task = task_heading(*row, all);
    if (const std::string training = training_text(*row, all); !training.empty())
      task += ", " + training;
    Scored& scored = places[*place];
    add_once(scored.tasks, task);
    add_once(scored.labels, label_of(*row));
    scored.plugins[label_of(*row)] = row->key.variant;
    scored.cells[{label_of(*row), task}].push_back(row);
  }
  return places;
}

// Tasks that the control has learned stay; what is said of the others.
std::vector<std::string> without_unlearned(Scored& scored) {
  std::vector<std::string> notes, kept;
  for (const std::string& task : scored.tasks) {
    const TaskSetting setting = judged_setting(members_of(scored.cells, task));
    if (setting.learned == TaskSetting::Learned::no)
      notes.push_back(left_out_note(task, setting));
    else
      kept.push_back(task);
  }
  scored.tasks = kept;
  return notes;
}

// The place in a line for a row of this measure and mode; null: none.
const Row** slot(JoinedLine& line, const Row& row) {
  switch (row.key.measure) {
    case Measure::speed:
      if (row.key.axes.packed) return nullptr;
      switch (row.key.axes.mode.value_or(Mode::forward)) {
        case Mode::forward:
          return &line.forward;
        case Mode::train:
          return &line.train;
        case Mode::decode:
          return &line.decode;
        case Mode::serve:
          return nullptr;
      }
      return nullptr;
    case Measure::memory:
      return row.key.axes.mode.value_or(Mode::forward) == Mode::forward ? &line.memory : nullptr;
    case Measure::fidelity:
      return &line.fidelity;
    default:
      return nullptr;
  }
}

// The least batch, then the fewest threads, then the first.
bool stands_before(const Row& one, const Row* other) {
  const auto rank = [](const Row& row) {
    return std::pair(row.key.axes.batch.value_or(1), row.key.axes.threads.value_or(1));
  };
  return !other || rank(one) < rank(*other);
}

// Errors of one kind of input stand in a record: of the first.
bool is_of_input(const Row& row, std::string& inputs) {
  const std::string own =
      fmt::format("{} x{:g}", to_string(row.key.axes.input.value_or(InputKind::random)),
                  row.key.axes.input_scale.value_or(1));
  if (inputs.empty()) inputs = own;
  return inputs == own;
}

std::string time_text(const Row* row) {
  if (!row) return "";
  return human_seconds(row->speed().time.median) + (row->result.noisy.empty() ? "" : "*") +
         verified_mark(*row);
}

// Of all layers of the model that was scored.
std::optional<int64_t> state_of(const JoinedLine& line) {
  for (const auto& seeds : line.scores)
    if (const Seeds ok = ok_ones(seeds); !ok.empty()) return ok[0]->accuracy().state_bytes;
  return std::nullopt;
}

std::string seeds_text(const Seeds& all) {
  if (all.empty()) return "";
  const Seeds ok = ok_ones(all);
  if (ok.empty()) return status_of(*all[0]);
  return mean_text(ok) + failures_text(all, ok);
}

struct Column {
  std::string title;
  std::string (*text)(const JoinedLine& line);
};
const Column kColumns[] = {
    {"forward", [](const JoinedLine& line) { return time_text(line.forward); }},
    {"train", [](const JoinedLine& line) { return time_text(line.train); }},
    {"decode a token", [](const JoinedLine& line) { return time_text(line.decode); }},
    {"peak memory",
     [](const JoinedLine& line) {
       return !line.memory ? std::string()
                           : human_bytes(static_cast<double>(line.memory->memory().peak_bytes)) +
                                 verified_mark(*line.memory);
     }},
    {"state of the model",
     [](const JoinedLine& line) {
       const std::optional<int64_t> state = state_of(line);
       return state ? human_bytes(static_cast<double>(*state)) : std::string();
     }},
    {"error", [](const JoinedLine& line) {
       return line.fidelity ? fmt::format("{:.2g}", line.fidelity->fidelity().relative_error)
                            : std::string();
     }}};

// `measured`: passes and errors at this shape, in any scope.
JoinedRecord record_of(const ScoredShape& shape, ScopeKind scope, Scored& scored,
                       const std::vector<std::string>& left_out,
                       const std::vector<const Row*>& measured) {
  JoinedRecord record{.shape = shape,
                      .inputs = {},
                      .scope = scope,
                      .tasks = scored.tasks,
                      .left_out = left_out,
                      .lines = {}};
  std::map<std::string, size_t> places;  // of lines, by label
  for (const std::string& label : scored.labels) {
    JoinedLine line{.variant = label, .plugin = scored.plugins.at(label), .scores = {}};
    for (const std::string& task : scored.tasks) line.scores.push_back(scored.cells[{label, task}]);
    places[label] = record.lines.size();
    record.lines.push_back(std::move(line));
  }
  for (const Row* row : measured) {
    const auto place = places.find(label_of(*row));
    const bool is_error = row->key.measure == Measure::fidelity;  // of attention, in every scope
    if (place == places.end() || (!is_error && scope_of(*row) != scope) ||
        (is_error && !is_of_input(*row, record.inputs)))
      continue;
    if (const Row** const held = slot(record.lines[place->second], *row);
        held && stands_before(*row, *held))
      *held = row;
  }
  return record;
}

std::string title_of(const JoinedRecord& record) {
  const std::string shared = record.shape.kv_heads == record.shape.heads
                                 ? ""
                                 : fmt::format(" over {}", record.shape.kv_heads);
  return fmt::format("one record: length {}, {}, {} layers, {} heads{} of {}, scope {}",
                     record.shape.length, record.shape.causal ? "causal" : "not causal",
                     record.shape.layers, record.shape.heads, shared, record.shape.head_dim,
                     name_of(record.scope));
}

std::vector<const Row*> measured_of(const JoinedRecord& record) {
  std::vector<const Row*> rows;
  for (const JoinedLine& line : record.lines)
    for (const Row* row : {line.forward, line.train, line.decode, line.memory})
      if (row) rows.push_back(row);
  return rows;
}

}  // namespace

std::vector<JoinedRecord> joined_records(const std::vector<Row>& rows) {
  std::set<std::string> kept;  // ids of cells
  for (const Row& row : chosen_on_validation(rows)) kept.insert(row.run + row.cell);
  std::vector<const Row*> trained;
  for (const Row& row : rows)
    if (row.key.measure == Measure::accuracy && kept.count(row.run + row.cell))
      trained.push_back(&row);
  std::vector<JoinedRecord> records;
  for (auto& [shape, scored] : scores_by_shape(trained)) {
    const std::vector<std::string> left_out = without_unlearned(scored);
    std::vector<const Row*> measured;
    std::vector<ScopeKind> scopes;
    for (const Row& row : rows) {
      if (!row.is_ok() || shape_of_pass(row, shape.layers) != shape) continue;
      measured.push_back(&row);
      if (row.key.measure == Measure::speed) add_once(scopes, scope_of(row));
    }
    if (scopes.empty()) scopes.push_back(ScopeKind::attention);
    for (const ScopeKind scope : scopes)
      records.push_back(record_of(shape, scope, scored, left_out, measured));
  }
  return records;
}

std::vector<Table> joined_tables(const std::vector<JoinedRecord>& records) {
  std::vector<Table> tables;
  for (const JoinedRecord& record : records) {
    Table table{.title = title_of(record), .columns = {"variant"}, .rows = {}, .notes = {}};
    for (const JoinedLine& line : record.lines) table.rows.push_back({line.variant});
    for (const Column& column : kColumns) {
      const bool has_one =
          std::any_of(record.lines.begin(), record.lines.end(),
                      [&](const JoinedLine& line) { return !column.text(line).empty(); });
      if (!has_one) continue;
      table.columns.push_back(column.title);
      for (size_t i = 0; i < record.lines.size(); i++)
        table.rows[i].push_back(column.text(record.lines[i]));
    }
    for (size_t task = 0; task < record.tasks.size(); task++) {
      table.columns.push_back(record.tasks[task]);
      for (size_t i = 0; i < record.lines.size(); i++)
        table.rows[i].push_back(seeds_text(record.lines[i].scores[task]));
    }
    const std::vector<const Row*> measured = measured_of(record);
    bool cut = false, noisy = false;
    for (const JoinedLine& line : record.lines)
      for (const auto& seeds : line.scores) cut = cut || has_unfinished(ok_ones(seeds));
    for (const Row* row : measured) noisy = noisy || !row->result.noisy.empty();
    if (measured.empty())
      table.notes.emplace_back("nothing was timed at this shape: measure speed and memory there");
    else
      table.notes.emplace_back("times are medians of the least batch and the fewest threads");
    if (!record.inputs.empty())
      table.notes.push_back("error: relative, of inputs " + record.inputs);
    if (noisy) table.notes.emplace_back("*: measured on a disturbed machine");
    if (cut) table.notes.emplace_back(kUnfinishedNote);
    for (std::string& note : verified_notes(measured)) table.notes.push_back(std::move(note));
    table.notes.insert(table.notes.end(), record.left_out.begin(), record.left_out.end());
    tables.push_back(std::move(table));
  }
  return tables;
}

std::vector<Json> joined_lines(const std::vector<JoinedRecord>& records) {
  std::vector<Json> lines;
  for (const JoinedRecord& record : records)
    for (const JoinedLine& line : record.lines) {
      Json object = {{"length", record.shape.length},
                     {"causal", record.shape.causal},
                     {"heads", record.shape.heads},
                     {"kv_heads", record.shape.kv_heads},
                     {"head_dim", record.shape.head_dim},
                     {"layers", record.shape.layers},
                     {"inputs", record.inputs},
                     {"scope", name_of(record.scope)},
                     {"variant", line.variant},
                     {"name", line.plugin.name},
                     {"params", to_json(line.plugin.params)}};
      for (const auto& [name, row] :
           {std::pair("forward_s", line.forward), std::pair("train_s", line.train),
            std::pair("decode_s", line.decode)}) {
        object[name] = row ? Json(row->speed().time.median) : Json();
        object[std::string(name) + "_cell"] = row ? Json(row->cell) : Json();
      }
      object["peak_bytes"] = line.memory ? Json(line.memory->memory().peak_bytes) : Json();
      const std::optional<int64_t> state = state_of(line);
      object["state_bytes"] = state ? Json(*state) : Json();
      object["relative_error"] =
          line.fidelity ? Json(line.fidelity->fidelity().relative_error) : Json();
      for (size_t task = 0; task < record.tasks.size(); task++) {
        const Seeds ok = ok_ones(line.scores[task]);
        if (ok.empty()) continue;
        object["scores"][record.tasks[task]] = {
            {"test", mean_test(ok)}, {"seeds", ok.size()}, {"is_unfinished", has_unfinished(ok)}};
      }
      lines.push_back(std::move(object));
    }
  return lines;
}

}  // namespace attn
