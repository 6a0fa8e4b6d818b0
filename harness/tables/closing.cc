// The closing table; see closing.h.
#include "harness/tables/closing.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "core/base/check.h"
#include "harness/plan/labels.h"
#include "harness/tables/floors.h"
#include "harness/tables/learned.h"
#include "harness/tables/scope_notes.h"
#include "harness/tables/tuned.h"
#include "variants/catalog.h"

namespace attn {
namespace {

// Its variant, with the layer of its paper where it has that: a mixer and a layer are two.
std::string name_of(const Row& row) {
  const Plugin& variant = row.key.variant;
  return has_paper_block(variant) ? variant_of(variant).name : marked_name(variant.name);
}

// Exact attention, by its name: the baseline of every line.
const std::string& baseline() { return exact_reference().name; }

// Of rows of one set of axes: each variant with one set of parameters, that of most rows.
Grid of_most_lengths(const std::vector<const Row*>& rows) {
  std::map<std::string, std::map<std::string, size_t>> counts;  // by name and label
  for (const Row* row : rows) counts[name_of(*row)][label_of(*row)]++;
  std::map<std::string, std::string> chosen;  // label by name
  for (const Row* row : rows) {
    const std::string name = name_of(*row), label = label_of(*row);
    const auto held = chosen.try_emplace(name, label).first;
    if (counts[name][label] > counts[name][held->second]) held->second = label;
  }
  Grid grid;
  for (const Row* row : rows) {
    const std::string name = name_of(*row);
    if (label_of(*row) == chosen[name]) grid.add(name, length_text(*row), *row);
  }
  return grid;
}

// The cells of one measure by length, of the set of axes that has most cells of attention's forward
// pass or of decoding, of equals that in float32; exact attention as it is by default, other
// variants by the parameters with which they were measured at most lengths, of equals the first.
Grid by_length(const std::vector<Row>& rows, Measure measure, Mode mode = Mode::forward) {
  std::map<std::string, std::vector<const Row*>> groups;
  for (const Row& row : rows) {
    const Axes& axes = row.key.axes;
    // A decoded token of a layer has the layer's projections, which the others leave out.
    if (mode == Mode::decode && has_paper_block(row.key.variant)) continue;
    if (row.key.measure != measure || axes.packed || axes.mode.value_or(Mode::forward) != mode ||
        axes.scope.value_or(ScopeKind::attention) != ScopeKind::attention ||
        axes.causal.value_or(false) != (mode == Mode::decode))
      continue;
    if (row.key.variant.name != baseline() || label_of(row) == baseline())
      groups[axes_text(row, {"length", "repetitions"})].push_back(&row);
  }
  Grid largest;
  const auto rank = [](const Grid& grid) {
    const Row* const first = grid.cells.empty() ? nullptr : grid.cells.begin()->second;
    const bool is_float32 = first && !first->key.axes.dtype && !first->key.axes.kv_dtype;
    return std::pair(grid.cells.size(), is_float32);
  };
  for (const auto& [axes, members] : groups)
    if (Grid grid = of_most_lengths(members); rank(grid) > rank(largest)) largest = std::move(grid);
  if (!largest.cells.empty()) largest.sort_columns_as_numbers();
  return largest;
}

using Figure = std::optional<double> (*)(const Row& row);  // of a row that is ok
std::optional<double> median_s(const Row& row) { return row.speed().time.median; }
std::optional<double> state_bytes(const Row& row) { return row.speed().state_bytes; }
std::optional<double> peak_bytes(const Row& row) { return row.memory().peak_bytes; }

// A figure at the longest length over that of exact attention there; "" where one lacks.
std::string beside_full(const Grid& grid, const std::string& name, Figure figure) {
  if (grid.columns.empty() || name == baseline()) return "";
  const Row *own = grid.find(name, grid.columns.back()),
            *full = grid.find(baseline(), grid.columns.back());
  if (!own || !full || !full->is_ok()) return "";
  if (!own->is_ok()) return status_of(*own);
  const std::optional<double> mine = figure(*own), theirs = figure(*full);
  return mine && theirs ? fmt::format("{:.3g}", *mine / *theirs) : "";
}

// Of one variant on one task.
struct Score {
  double test = 0, lift = 0;  // means over the seeds
  bool is_control = false, lower_is_better = false;
  bool is_unfinished = false;  // a training was cut off: the score is shown and not ranked
  std::string longer;  // "0.31 at 4096": at the longest tested length, where there are several
};

// "0.310 at 4096": the mean over the seeds at the longest length that all of them were tested at.
std::string longest_tested(const Seeds& ok) {
  std::map<int64_t, std::pair<double, size_t>> scores;  // by length: sum, count
  for (const Row* row : ok)
    for (const ScoreAtLength& at : row->accuracy().by_length)
      if (at.test) {
        auto& [sum, count] = scores[at.length];
        sum += *at.test;
        count++;
      }
  std::string text;
  for (const auto& [length, score] : scores)
    if (score.second == ok.size())
      text = fmt::format("{:.3f} at {}", score.first / static_cast<double>(ok.size()), length);
  return text;
}

std::optional<Score> score_of(const Seeds& cells) {
  const Seeds ok = ok_ones(cells);
  if (ok.empty()) return std::nullopt;
  return Score{.test = mean_test(ok),
               .lift = mean_lift(ok),
               .is_control = !ok[0]->accuracy().control.empty(),
               .lower_is_better = attn::lower_is_better(*ok[0]),
               .is_unfinished = has_unfinished(ok),
               .longer = longest_tested(ok)};
}

// "0.991 (+0.412)": score and lift; parameters where they are not `label`'s.
std::string score_text(const Seeds& cells, const std::string& label) {
  const std::optional<Score> score = score_of(cells);
  if (!score) return cells.empty() ? "" : status_of(*cells[0]);
  std::string text =
      fmt::format("{:.3f}{}", score->test, score->is_unfinished ? kUnfinishedSign : "");
  text += score->is_control ? std::string(" (control)") : fmt::format(" ({:+.3f})", score->lift);
  const std::string own = label_of(*cells[0]);
  const size_t bracket = own.find('[');
  if (own != label && bracket != std::string::npos) text += " " + own.substr(bracket);
  return text;
}

// Whether two accuracy rows of one task differ in nothing but their seed.
bool differ_in_seed_alone(const Row& one, const Row& other) {
  CellKey key = one.key;
  key.axes.seed = other.key.axes.seed;
  key.source = other.key.source;
  return key == other.key;
}

// What the rows hold of each variant, by its name: of several parameters or settings the first.
struct Closing {
  std::vector<Row> trained;  // the accuracy rows; the scores below point to them
  Grid speed, memory, decoding;
  std::vector<std::string> names, tasks;
  SeedsByPlace scores;
  std::map<std::string, std::string> labels;   // of the first row of a name
  bool leaves_out = false;                     // accuracy rows of further parameters or settings
  std::vector<std::string> left_out;           // a note for each task that was not learned
  std::map<std::string, std::string> without;  // the control that has no row, by task

  explicit Closing(const std::vector<Row>& rows)
      : speed(by_length(rows, Measure::speed)),
        memory(by_length(rows, Measure::memory)),
        decoding(by_length(rows, Measure::speed, Mode::decode)) {
    const auto note = [](std::vector<std::string>& list, const std::string& name) {
      if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
    };
    for (const Grid* grid : {&speed, &memory}) {
      for (const std::string& name : grid->labels) note(names, name);
      // A shard or a sweep that was stopped holds not every variant at every length.
      for (const auto& [place, row] : grid->cells) labels.emplace(place.first, label_of(*row));
    }
    // Times and memory here are of attention at the width that was asked for: scores of models of
    // other widths do not stand beside them.
    for (Row& row : chosen_on_validation(rows))
      if (row.key.measure == Measure::accuracy && !row.key.axes.equal)
        trained.push_back(std::move(row));
    for (const Row& row : trained) {
      const std::string task = task_heading(row, trained), name = name_of(row);
      note(names, name);
      note(tasks, task);
      Seeds& seeds = scores[{name, task}];
      if (seeds.empty() || differ_in_seed_alone(*seeds[0], row))
        seeds.push_back(&row);
      else
        leaves_out = true;
    }
    leave_out_unlearned();
  }
  // Tasks that the control has not learned are no columns; others are marked where it is missing.
  void leave_out_unlearned() {
    std::vector<std::string> learned;
    for (const std::string& task : tasks) {
      const TaskSetting setting = judged_setting(members_of(scores, task));
      const bool is_learned = setting.learned != TaskSetting::Learned::no;
      if (!is_learned) left_out.push_back(left_out_note(task, setting));
      if (is_learned) learned.push_back(task);
      if (setting.learned == TaskSetting::Learned::unknown) without.emplace(task, setting.control);
    }
    tasks = learned;
  }
  std::optional<Score> score(const std::string& name, const std::string& task) const {
    const auto found = scores.find({name, task});
    return found == scores.end() ? std::nullopt : score_of(found->second);
  }
};

constexpr double kKeeps = 0.05;  // a score this much below full's still keeps up

// Whether a variant scores as full does, to within kKeeps; nullopt: it or full was not scored, or
// was cut off.
std::optional<bool> keeps_up(const Closing& closing, const std::string& name,
                             const std::string& task) {
  const auto own = closing.score(name, task), full = closing.score(baseline(), task);
  if (!own || !full || own->is_unfinished || full->is_unfinished) return std::nullopt;
  return own->lower_is_better ? own->test <= full->test + kKeeps : own->test >= full->test - kKeeps;
}

std::string listed(const std::vector<std::string>& words) {
  return words.empty() ? "none" : fmt::to_string(fmt::join(words, ", "));
}

// "; of that time: linear 0.02, performer 0.04": every variant's figure at the longest length over
// that of full; "" where there is none.
std::string shares_of_full(const std::string& what, const Grid& grid, Figure figure) {
  std::vector<std::string> parts;
  for (const std::string& name : grid.labels)
    if (const std::string ratio = beside_full(grid, name, figure); !ratio.empty())
      parts.push_back(name + " " + ratio);
  return parts.empty() ? "" : fmt::format("; of {}: {}", what, listed(parts));
}

// Full's row at the longest length; null where it was not measured.
const Row* longest_of_full(const Grid& grid) {
  const Row* full = grid.cells.empty() ? nullptr : grid.find(baseline(), grid.columns.back());
  return full && full->is_ok() ? full : nullptr;
}

void add_times(const Closing& closing, std::vector<std::string>& sentences) {
  if (const Row* full = longest_of_full(closing.speed))
    sentences.push_back(fmt::format("at {} tokens a pass of full takes {}{}",
                                    closing.speed.columns.back(),
                                    human_seconds(full->speed().time.median),
                                    shares_of_full("that time", closing.speed, median_s)));
  if (const Row* full = longest_of_full(closing.decoding)) {
    sentences.push_back(fmt::format("decoding, token {} takes full {}{}",
                                    closing.decoding.columns.back(),
                                    human_seconds(full->speed().time.median),
                                    shares_of_full("that time", closing.decoding, median_s)));
    if (const std::optional<double> bytes = state_bytes(*full))
      sentences.push_back(
          fmt::format("its state takes full {}{}", human_bytes(*bytes),
                      shares_of_full("those bytes", closing.decoding, state_bytes)));
  }
}

// "; cut off, and not judged: linear": those whose training did not end by itself.
std::string cut_off(const Closing& closing, const std::string& task) {
  std::vector<std::string> names;
  for (const std::string& name : closing.names)
    if (const auto own = closing.score(name, task); own && own->is_unfinished)
      names.push_back(name);
  return names.empty() ? "" : "; cut off by its steps, not judged: " + listed(names);
}

void add_scores(const Closing& closing, std::vector<std::string>& sentences) {
  sentences.insert(sentences.end(), closing.left_out.begin(), closing.left_out.end());
  for (const std::string& task : closing.tasks) {
    const auto full = closing.score(baseline(), task);
    if (!full || full->is_control) continue;
    if (full->is_unfinished) {
      sentences.push_back(
          fmt::format("{}: the training of full was cut off by its steps: no yardstick", task));
      continue;
    }
    std::vector<std::string> keep, fall, longer;
    for (const std::string& name : closing.names) {
      const auto kept = keeps_up(closing, name, task);
      if (!kept) continue;
      if (name != baseline()) (*kept ? keep : fall).push_back(name);
      if (const auto own = closing.score(name, task); !own->longer.empty())
        longer.push_back(name + " " + own->longer);
    }
    sentences.push_back(fmt::format(
        "{}: full scores {:.3f}, {:.2f} {} the best shortcut; within {} of it: {}; not: {}{}", task,
        full->test, std::abs(full->lift), full->lift >= 0 ? "above" : "below", kKeeps, listed(keep),
        listed(fall), cut_off(closing, task)));
    if (!longer.empty())
      sentences.push_back(
          fmt::format("{}, at the longest sequences tested: {}", task, listed(longer)));
  }
}

// The highest share of full's time at the longest length that counts as faster.
double most_of_full(const Grid& speed, const NoiseFloor& floors) {
  const Axes& axes = speed.cells.begin()->second->key.axes;
  const FloorAt* floor =
      axes.mode && axes.threads
          ? nearest_floor(floors, *axes.mode, *axes.threads, std::stoll(speed.columns.back()))
          : nullptr;
  return floor ? 1 / (1 + floor->share) : 1;
}

void add_choice(const Closing& closing, const NoiseFloor& floors,
                std::vector<std::string>& sentences) {
  std::vector<std::string> judging;             // the tasks that tell who keeps full's score
  bool leaves_out = !closing.left_out.empty();  // or full has no score: a stopped sweep
  for (const std::string& task : closing.tasks) {
    const auto full = closing.score(baseline(), task);
    const bool judges = full && !full->is_control && !full->is_unfinished;
    if (judges) judging.push_back(task);
    leaves_out |= !judges && !(full && full->is_control);
  }
  if (closing.speed.cells.empty() || judging.empty()) return;
  std::string fastest;
  double least = most_of_full(closing.speed, floors);
  for (const std::string& name : closing.speed.labels) {
    const bool keeps = std::all_of(judging.begin(), judging.end(), [&](const auto& task) {
      return keeps_up(closing, name, task).value_or(false);
    });
    const std::string ratio = beside_full(closing.speed, name, median_s);
    if (!keeps || ratio.empty() || !std::isdigit(static_cast<unsigned char>(ratio[0]))) continue;
    if (std::stod(ratio) < least) fastest = name, least = std::stod(ratio);
  }
  const std::string& length = closing.speed.columns.back();
  const std::string where =
      leaves_out ? fmt::format("the tasks that full learned ({})", listed(judging)) : "every task";
  sentences.push_back(
      fastest.empty()
          ? fmt::format("no variant is faster than full at {} tokens and keeps its score on {}",
                        length, where)
          : fmt::format("fastest at {} tokens of those that keep full's score on {}: {} ({:.3g} "
                        "of its time)",
                        length, where, fastest, least));
}

}  // namespace

std::optional<Table> closing_table(const std::vector<Row>& rows, const NoiseFloor& floors) {
  Closing closing(rows);
  const size_t measures =
      !closing.speed.cells.empty() + !closing.memory.cells.empty() + !closing.trained.empty();
  const bool has_full =
      std::find(closing.names.begin(), closing.names.end(), baseline()) != closing.names.end();
  if (measures < 2 || !has_full || closing.names.size() < 2) return std::nullopt;
  Table table{.title = "in short: forward pass of attention, not causal; score (lift) by task",
              .columns = {"variant"},
              .rows = {},
              .notes = {}};
  if (!closing.speed.cells.empty()) {
    table.columns.push_back("faster than full from");
    table.columns.push_back(fmt::format("time at {}, full = 1", closing.speed.columns.back()));
  }
  if (!closing.memory.cells.empty())
    table.columns.push_back(fmt::format("memory at {}, full = 1", closing.memory.columns.back()));
  for (const std::string& task : closing.tasks)
    table.columns.push_back(task + (closing.without.contains(task) ? kNoControlSign : ""));
  std::vector<const Row*> alone;  // rows of attention alone
  std::set<std::string> gated;    // names
  for (const Grid* grid : {&closing.speed, &closing.memory})
    for (const auto& [place, row] : grid->cells) {
      alone.push_back(row);
      if (leaves_out_gates(*row)) gated.insert(place.first);
    }
  for (const std::string& name : closing.names) {
    std::vector<std::string> line = {closing.labels.count(name) ? closing.labels[name] : name};
    if (!closing.speed.cells.empty()) {
      line.push_back(name == baseline() ? "" : wins_from(closing.speed, name, floors));
      line.push_back(beside_full(closing.speed, name, median_s));
    }
    if (!closing.memory.cells.empty())
      line.push_back(beside_full(closing.memory, name, peak_bytes));
    for (const std::string& task : closing.tasks)
      line.push_back(score_text(closing.scores[{name, task}], line[0]));
    if (gated.count(name)) line[0] += kGatesSign;
    table.rows.push_back(std::move(line));
  }
  if (closing.leaves_out)
    table.notes.push_back(
        "of a variant's parameters and training settings the first are shown; the tables above "
        "hold all");
  for (std::string& note : scope_notes(alone, rows, label_of))
    table.notes.push_back(std::move(note));
  const auto is_cut = [&](const auto& scored) {
    return std::count(closing.tasks.begin(), closing.tasks.end(), scored.first.second) > 0 &&
           has_unfinished(ok_ones(scored.second));
  };
  if (std::any_of(closing.scores.begin(), closing.scores.end(), is_cut))
    table.notes.emplace_back(kUnfinishedNote);
  std::set<std::string> missing;
  for (const auto& [task, control] : closing.without) missing.insert(control);
  for (const std::string& control : missing) table.notes.push_back(no_control_note(control));
  add_times(closing, table.notes);
  add_scores(closing, table.notes);
  add_choice(closing, floors, table.notes);
  return table;
}

}  // namespace attn
