// Rows and samples as flat objects; see export.h.
#include "core/base/check.h"
#include "harness/cell/codec.h"
#include "harness/export/export.h"

namespace attn {
namespace {

// Of a run's environment: what tells where its rows come from.
constexpr const char* kOrigin[] = {"version",
                                   "commit",
                                   "dirty",
                                   "cpu_model",
                                   "cores",
                                   "caches",
                                   "memory_bytes",
                                   "kernel",
                                   "compiler",
                                   "build_type",
                                   "kernel_instruction_set"};

Json origin_of(const RunLine& run) {
  Json origin;
  for (const char* name : kOrigin)
    if (run.environment.contains(name)) origin[name] = run.environment[name];
  return origin;
}

}  // namespace

std::vector<Json> row_lines(const std::vector<RowsFile>& runs) {
  std::vector<Json> lines;
  for (const RowsFile& run : runs) {
    const Json origin = origin_of(run.run);
    for (const Row& row : run.rows) {
      Json line = to_json(row);
      line.erase("samples");
      line.erase("padded_samples");
      line["environment"] = origin;
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

std::vector<Json> sample_lines(const std::vector<RowsFile>& runs) {
  std::vector<Json> lines;
  for (const RowsFile& run : runs)
    for (const Row& row : run.rows) {
      if (row.key.measure != Measure::speed || !row.is_ok()) continue;
      const Json whole = to_json(row);
      // Rows of the first versions do not say how many samples each visit gave.
      std::vector<int64_t> visits = row.result.visits;
      size_t visit = 0;
      int64_t of_visit = 0;
      for (size_t i = 0; i < row.result.times.size(); i++, of_visit++) {
        while (visit < visits.size() && of_visit == visits[visit]) visit++, of_visit = 0;
        Json line = {{"run", row.run}, {"cell", row.cell}, {"variant", whole["variant"]}};
        line["axes"] = whole["axes"];
        if (!visits.empty()) line["visit"] = visit;
        line["sample"] = i;
        line["time_s"] = row.result.times[i];
        if (i < row.result.padded_times.size()) line["padded_time_s"] = row.result.padded_times[i];
        lines.push_back(std::move(line));
      }
    }
  return lines;
}

}  // namespace attn
