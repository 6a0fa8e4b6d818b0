// A rows file: what is read and written again reads the same, and is refused once a figure of it
// changed.
#include "harness/store/rows.h"

#include "tests/fuzz/oracle.h"
#include "tests/fuzz/targets.h"

namespace attn::fuzz {
namespace {

// As RowWriter writes it.
Json stamped(Json row) {
  const std::string sum = hash_of(row);
  row["checksum"] = sum;
  return row;
}

Json with_another_figure(Json row) {
  Json& figure = row["duration_s"];
  figure = figure == 0 ? 1 : 0;
  return row;
}

}  // namespace

void rows(std::string_view bytes) {
  const bool allow_torn = !bytes.ends_with('\n');
  std::vector<Json> found;
  if (!accepts([&] { found = parse_rows("rows.jsonl", bytes, allow_torn); })) return;
  std::string text;
  for (const Json& row : found) {
    const Json line = stamped(row);
    if (is_cell(row)) {
      const std::string changed = text + with_another_figure(line).dump() + "\n";
      require(!accepts([&] { parse_rows("changed.jsonl", changed); }), "a changed figure is read");
    }
    text += line.dump() + "\n";
  }
  require(parse_rows("again.jsonl", text, allow_torn) == found, "rows change when written");
}

}  // namespace attn::fuzz
