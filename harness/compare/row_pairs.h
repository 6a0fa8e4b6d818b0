// Which cells of two rows files measured the same thing. What is the same is the key of a cell
// without the hashes of its sources; the machine and the build stand in the run line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/cell/row.h"

namespace attn {

struct RowsFile {
  std::string path;
  RunLine run;  // the first run line, with the sweeps of all runs
  std::vector<Row>
      rows;          // in the order of its sweeps, which is not that in which they were measured
  std::string find;  // what a run line says that its sweep searched for; "": nothing
  std::vector<Json> protocols;  // of its run lines, each once; empty in rows of earlier versions
};
// Each run of a file; a merged file holds several. Error of one line where a line is no row of this
// version, IoError where the file cannot be read.
std::vector<RowsFile> read_runs(const std::string& path);
// Of several files.
std::vector<RowsFile> read_runs(const std::vector<std::string>& paths);
// All runs of a file as one. Error where they come from several machines or builds.
RowsFile read_rows_file(const std::string& path);

// The same text for cells that measured the same thing.
std::string what_is_measured(const CellKey& key);

struct RowPair {
  const Row* before = nullptr;
  const Row* after = nullptr;
  std::string label;  // "linear train length=512": variant, task and the axes that differ
};

struct LeftOut {  // a pair that is not compared
  Measure measure = Measure::speed;
  std::string label, reason;
};

struct Pairs {
  std::vector<RowPair> usable;
  std::vector<LeftOut> left_out;  // a row failed, was skipped, or its times are unreliable
  int64_t before_only = 0, after_only = 0;  // cells
};
// Cells of `measures` alone. Error where a file holds a cell twice.
Pairs pairs_of(const RowsFile& before, const RowsFile& after, const std::vector<Measure>& measures);

// "full", "linformer[rank=32]": as tables name it, or with all its parameters where this program
// does not know it.
std::string name_of_variant(const Plugin& variant);

}  // namespace attn
