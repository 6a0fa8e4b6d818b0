// One line of a rows file: what keeps the schema is read as a struct or refused; a struct that is
// written keeps the schema and reads the same.
#include "harness/cell/codec.h"
#include "harness/store/parse.h"
#include "harness/store/schema.h"
#include "tests/fuzz/oracle.h"
#include "tests/fuzz/targets.h"

namespace attn::fuzz {
namespace {

template <class Read>
void check_struct(const Json& line, const Read& read) {
  Json written;
  if (!accepts([&] { written = to_json(read(line)); })) return;
  require(schema_fault(written).empty(), "written against the schema: " + schema_fault(written));
  require(to_json(read(written)) == written, "a struct changes when written: " + written.dump());
}

}  // namespace

void schema(std::string_view bytes) {
  const Parsed parsed = parse_json(bytes);
  if (!parsed.fault.empty()) {
    require(is_one_line(parsed.fault), "a fault of several lines");
    return;
  }
  const std::string text = parsed.value.dump();
  require(parse_json(text).value == parsed.value, "JSON changes when written");
  require(hash_of(parse_json(text).value) == hash_of(parsed.value), "its hash changes");
  if (!schema_fault(parsed.value).empty()) return;
  if (is_cell(parsed.value))
    check_struct(parsed.value, row_of);
  else
    check_struct(parsed.value, run_line_of);
}

}  // namespace attn::fuzz
