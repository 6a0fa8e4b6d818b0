// Formats of rows and tables; see rendered.h.
#include "harness/cli/rendered.h"

#include <filesystem>

#include "harness/cell/codec.h"
#include "harness/cli/terminal.h"
#include "harness/run/protocol.h"
#include "harness/tables/closing.h"
#include "tasks/data/files.h"

namespace attn::cli {

std::string rendered(const std::string& format, const std::vector<Table>& tables, bool color) {
  std::string text;
  for (const Table& table : tables)
    text += format == "md"      ? render_markdown(table)
            : format == "latex" ? render_latex(table)
                                : render_text(table, color);
  return text;
}

std::string rendered(const std::string& format, const std::vector<Json>& lines) {
  return format == "json" ? Json(lines).dump(2) + "\n" : render_csv(lines);
}

std::string rendered(const std::string& format, const std::vector<Json>& lines,
                     const std::vector<Table>& tables, bool color) {
  return format == "json" || format == "csv" ? rendered(format, lines)
                                             : rendered(format, tables, color);
}

std::vector<Table> every_table(const std::vector<Row>& rows, const NoiseFloor& floors,
                               bool with_ledger) {
  std::vector<Table> tables = tables_of(rows, floors);
  for (Table& table : breakdown_tables(rows)) tables.push_back(std::move(table));
  if (with_ledger)
    for (Table& table : ledger_tables(rows)) tables.push_back(std::move(table));
  if (auto closing = closing_table(rows, floors)) tables.push_back(std::move(*closing));
  return tables;
}

void name_protocols(const std::vector<Json>& protocols, const std::string& format,
                    std::vector<Table>& tables) {
  std::string words;
  for (const Json& protocol : protocols)
    words += (words.empty() ? "protocol " : "; ") + protocol_words(protocol);
  if (words.empty() || tables.empty()) return;
  const bool is_alone = format == "md" || format == "latex";
  for (size_t i = is_alone ? 0 : tables.size() - 1; i < tables.size(); i++)
    tables[i].notes.push_back(words);
}

std::string rendered(const std::string& format, const std::vector<Row>& rows,
                     const NoiseFloor& floors, bool with_ledger, bool color,
                     const std::vector<Json>& protocols) {
  if (format != "json" && format != "csv") {
    std::vector<Table> tables = every_table(rows, floors, with_ledger);
    name_protocols(protocols, format, tables);
    return rendered(format, tables, color);
  }
  std::vector<Json> lines;
  for (const Row& row : rows) lines.push_back(to_json(row));
  return rendered(format, lines);
}

void deliver(const std::string& text, const std::string& path,
             const std::vector<std::string>& inputs) {
  if (path.empty() || path == kStdoutPath) return print(text);
  std::error_code none;  // a file that is not there is no other
  for (const std::string& input : inputs)
    ATTN_CHECK(!std::filesystem::equivalent(path, input, none),
               "--output '{}' is a rows file that is read; name another file", path);
  require_writable(path);
  data::write_file(path, text);
}

}  // namespace attn::cli
