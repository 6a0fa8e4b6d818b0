// Tables as aligned text, Markdown and CSV; see table.h.
#include <algorithm>
#include <map>

#include "core/base/check.h"
#include "harness/plan/labels.h"
#include "harness/tables/table.h"

namespace attn {
namespace {

bool is_status(const std::string& text) {
  return text == "failed" || text == "diverged" || text == "timeout" || text == "oom";
}

// Characters on the screen: UTF-8 continuation bytes take no room.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, size_t width, bool left) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return left ? text + space : space + text;
}

// A bar would end the cell.
std::string markdown_cell(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

void flatten(const Json& value, const std::string& prefix,
             std::map<std::string, std::string>& flat) {
  if (value.is_object()) {
    for (const auto& [name, item] : value.items())
      flatten(item, prefix.empty() ? name : prefix + "." + name, flat);
  } else if (value.is_string()) {
    flat[prefix] = value.get<std::string>();
  } else if (!value.is_null() && !value.is_array()) {
    flat[prefix] = value.dump();
  }
}

}  // namespace

std::vector<std::string> notes_under(const Table& table) {
  const auto is_marked = [](const std::string& text) {
    return text.find(kPythonSign) != std::string::npos;
  };
  const auto any_of = [&](const std::vector<std::string>& texts) {
    return std::any_of(texts.begin(), texts.end(), is_marked);
  };
  std::vector<std::string> notes = table.notes;
  if (any_of(table.notes) || std::any_of(table.rows.begin(), table.rows.end(), any_of))
    notes.emplace_back(kPythonNote);
  return notes;
}

std::string render_text(const Table& table, bool color) {
  std::vector<size_t> widths(table.columns.size());
  for (size_t c = 0; c < widths.size(); c++) {
    widths[c] = width_of(table.columns[c]);
    for (const auto& row : table.rows) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::string text = color ? "\033[1m" + table.title + "\033[0m\n" : table.title + "\n";
  const auto line = [&](const std::vector<std::string>& cells) {
    for (size_t c = 0; c < cells.size(); c++) {
      const std::string cell = padded(cells[c], widths[c], c == 0);
      text += "  ";
      text += color && is_status(cells[c]) ? "\033[1;31m" + cell + "\033[0m" : cell;
    }
    text += '\n';
  };
  line(table.columns);
  for (const auto& row : table.rows) line(row);
  for (const std::string& note : notes_under(table)) text += "  " + note + "\n";
  return text + "\n";
}

std::string render_markdown(const Table& table) {
  std::string text = "**" + table.title + "**\n\n|", rule = "|";
  for (size_t c = 0; c < table.columns.size(); c++) {
    text += " " + markdown_cell(table.columns[c]) + " |";
    rule += c == 0 ? "---|" : "---:|";
  }
  text += "\n" + rule + "\n";
  for (const auto& row : table.rows) {
    text += "|";
    for (const std::string& cell : row) text += " " + markdown_cell(cell) + " |";
    text += "\n";
  }
  for (const std::string& note : notes_under(table)) text += "\n" + note + "\n";
  return text + "\n";
}

std::string render_csv(const std::vector<Json>& objects) {
  std::vector<std::string> names;
  std::vector<std::map<std::string, std::string>> lines;
  for (const Json& object : objects) {
    std::map<std::string, std::string> flat;
    flatten(object, "", flat);
    for (const auto& [name, value] : flat)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    lines.push_back(std::move(flat));
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + csv_field(name);
  text += "\n";
  for (auto& line : lines) {
    std::string row;
    for (const std::string& name : names)
      row += (&name == &names[0] ? "" : ",") + csv_field(line[name]);
    text += row + "\n";
  }
  return text;
}

std::string human_bytes(double bytes) {
  const char* const kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 4) bytes /= 1024, unit++;
  return unit == 0 ? fmt::format("{:.0f} B", bytes)
                   : fmt::format("{:.{}f} {}", bytes, bytes < 10 ? 2 : 1, kUnits[unit]);
}

std::string human_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 60) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  return whole < 3600 ? fmt::format("{} m {:02} s", whole / 60, whole % 60)
                      : fmt::format("{} h {:02} m", whole / 3600, whole % 3600 / 60);
}

}  // namespace attn
