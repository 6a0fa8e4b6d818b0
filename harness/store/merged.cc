// See merged.h. One pass over the lines, with a table of cells.
#include "harness/store/merged.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/check.h"

namespace attn {
namespace {

struct LinePlace {
  const NamedRows* file = nullptr;
  size_t line = 0;  // from 0
  const Json& row() const { return file->lines[line]; }
  std::string text() const { return fmt::format("{}:{}", file->path, line + 1); }
};

struct Run {
  std::string id;
  std::string machine;  // and build: what makes two measurements of a cell comparable
  std::vector<LinePlace> heads, cells;
};

// Load and calibration differ whenever the same machine runs the same program.
std::string machine_of(const Json& head) {
  Json environment = head["environment"];
  for (const char* moment : {"load_before", "calibration", "calibration_fault"})
    environment.erase(moment);
  return hash_of(environment);
}

Run& run_of(std::vector<Run>& runs, const Json& line) {
  const std::string id = line["run"];
  for (Run& run : runs)
    if (run.id == id) return run;
  runs.push_back({.id = id, .machine = machine_of(line), .heads = {}, .cells = {}});
  return runs.back();
}

Json without_mark(Json head) {
  head.erase("merged");
  return head;
}

void add_head(Run& run, const LinePlace& place) {
  for (const LinePlace& held : run.heads)
    if (without_mark(held.row()) == without_mark(place.row())) return;
  run.heads.push_back(place);
}

}  // namespace

MergedRows merge_rows(const std::vector<NamedRows>& files, Keep keep) {
  std::vector<Run> runs;
  std::map<std::pair<std::string, std::string>, LinePlace> of_run;  // by run and cell
  MergedRows merged;
  for (const NamedRows& file : files)
    for (size_t i = 0; i < file.lines.size(); i++) {
      const LinePlace place{&file, i};
      Run& run = run_of(runs, place.row());
      if (!is_cell(place.row())) {
        add_head(run, place);
        continue;
      }
      const auto [it, is_new] = of_run.try_emplace({run.id, place.row()["cell"]}, place);
      if (is_new) {
        run.cells.push_back(place);
        continue;
      }
      ATTN_CHECK(it->second.row() == place.row(),
                 "{} and {} are rows of the same run and cell and differ: one was changed",
                 it->second.text(), place.text());
      merged.doubles++;
    }

  std::map<std::pair<std::string, std::string>, LinePlace> of_machine;  // by machine and cell
  std::map<std::pair<const NamedRows*, size_t>, bool> left_out;
  for (const Run& run : runs)
    for (const LinePlace& place : run.cells) {
      const auto [it, is_new] = of_machine.try_emplace({run.machine, place.row()["cell"]}, place);
      if (is_new) continue;
      ATTN_CHECK(keep != Keep::none,
                 "{} and {} measured the same cell in two runs of one machine and build; --keep "
                 "first or --keep last says which one stands",
                 it->second.text(), place.text());
      const LinePlace& out = keep == Keep::first ? place : it->second;
      left_out[{out.file, out.line}] = true;
      merged.replaced++;
      if (keep == Keep::last) it->second = place;
    }

  for (const Run& run : runs) {
    for (const LinePlace& head : run.heads) {
      Json line = head.row();
      line["merged"] = true;
      merged.lines.push_back(std::move(line));
    }
    for (const LinePlace& cell : run.cells) {
      if (left_out.count({cell.file, cell.line})) continue;
      merged.lines.push_back(cell.row());
      merged.cells++;
    }
  }
  merged.runs = runs.size();
  return merged;
}

}  // namespace attn
