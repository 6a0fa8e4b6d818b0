// A rows file: what is read and written again reads the same.
#include "harness/store/rows.h"

#include "tests/fuzz/oracle.h"
#include "tests/fuzz/targets.h"

namespace attn::fuzz {

void rows(std::string_view bytes) {
  const bool allow_torn = !bytes.ends_with('\n');
  std::vector<Json> found;
  if (!accepts([&] { found = parse_rows("rows.jsonl", bytes, allow_torn); })) return;
  std::string text;
  for (const Json& row : found) text += row.dump() + "\n";
  require(parse_rows("again.jsonl", text, allow_torn) == found, "rows change when written");
}

}  // namespace attn::fuzz
