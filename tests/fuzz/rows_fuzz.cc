// What cells leave behind: rows files, their lines, and what a child process writes.
#include "harness/cell/codec.h"
#include "harness/process/outcome.h"
#include "harness/store/parse.h"
#include "harness/store/rows.h"
#include "harness/store/schema.h"
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

template <class Read>
void check_struct(const Json& line, const Read& read) {
  Json written;
  if (!accepts([&] { written = to_json(read(line)); })) return;
  require(schema_fault(written).empty(), "written against the schema: " + schema_fault(written));
  require(to_json(read(written)) == written, "a struct changes when written: " + written.dump());
}

// What is read of a reply and sent again is the same.
template <class Read>
void check_found(const Reply& reply, const Read& read) {
  const auto found = found_in(reply, read);
  if (!found) return;
  const Json sent = reply_with(*found);
  require(reply_with(read(reply_of(sent))) == sent, "a reply changes when sent: " + sent.dump());
}

}  // namespace

// A rows file: what is read and written again reads the same, and is refused once a figure of it
// changed.
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

// One line of a rows file: what keeps the schema is read as a struct or refused; a struct that is
// written keeps the schema and reads the same.
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

// What a child process writes: it makes a reply whatever it holds, and of each measure a result.
void reply(std::string_view bytes) {
  ChildResult child;
  child.output = bytes;
  const Reply reply = outcome_of(child, 1);
  require(reply.is_ok() == reply.reason.empty(), "a reply's reason");
  if (bytes.size() < 100'000)  // the tail of standard error, of which a line is kept
    child.error_tail = bytes, child.code = 1, require(is_one_line(outcome_of(child, 1).reason), "");
  check_found(reply, visit_of);
  check_found(reply, verdict_of);
  check_found(reply, calibration_of);
  check_found(reply, pilot_figures_of);
  for (const Measure measure : kMeasures) {
    const CellResult result = result_of(reply, measure);
    require((result.status == Status::ok) == result.reason.empty(), "a result's reason");
    if (result.status != Status::ok) continue;
    const Json sent = reply_with(measure, result);
    require(reply_with(measure, result_of(reply_of(sent), measure)) == sent,
            "a result changes when sent: " + sent.dump());
    const Json finite = with_finite_figures(sent, Status::failed);
    require(non_finite_place(finite).empty(), "a figure that is not finite");
  }
}

}  // namespace attn::fuzz
