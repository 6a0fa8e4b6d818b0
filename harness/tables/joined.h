// One record: a line a variant, with its time, memory, state and error at the very parameters,
// heads, head_dim and length of its scores.
#pragma once

#include <compare>
#include <vector>

#include "harness/cell/codec.h"
#include "harness/tables/table.h"

namespace attn {

// Where a model attends.
struct ScoredShape {
  int64_t length = 0;
  bool causal = false;
  int64_t heads = 0, kv_heads = 0, head_dim = 0, layers = 0;
  auto operator<=>(const ScoredShape&) const = default;
};

// What was measured of one variant at one shape.
struct JoinedLine {
  std::string variant;  // label of `plugin`
  Plugin plugin;
  // Rows that are ok, of one thread and the smallest batch; null: there is none.
  const Row *forward = nullptr, *train = nullptr, *decode = nullptr, *memory = nullptr,
            *fidelity = nullptr;
  std::vector<std::vector<const Row*>> scores;  // a list of seeds for each task of the record
};

// The variants whose scores are of one shape, beside what was measured there in one scope.
struct JoinedRecord {
  ScoredShape shape;
  std::string inputs;  // of the errors; "": there is none
  ScopeKind scope = ScopeKind::attention;
  std::vector<std::string> tasks;     // with what tells settings of training apart
  std::vector<std::string> left_out;  // settings that their control has not learned, and why
  std::vector<JoinedLine> lines;
};

// A record for each shape that has scores and for each scope that was measured there; of the scope
// attention where none was. Of tuned settings those chosen on validation. The rows of the result
// are those of `rows`.
std::vector<JoinedRecord> joined_records(const std::vector<Row>& rows);

std::vector<Table> joined_tables(const std::vector<JoinedRecord>& records);
std::vector<Json> joined_lines(const std::vector<JoinedRecord>& records);

}  // namespace attn
