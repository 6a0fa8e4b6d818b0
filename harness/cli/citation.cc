// BibTeX from CITATION.cff and from run lines; see citation.h. Facts of rows are texts of others:
// they go through latex_text(), and braces, which BibTeX counts, are left out.
#include "harness/cli/citation.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include "core/base/check.h"
#include "harness/measure/build_info.h"
#include "harness/run/protocol.h"
#include "harness/tables/table.h"

namespace attn::cli {

extern const std::vector<std::pair<const char*, const char*>> kCitationTexts;

namespace {

constexpr size_t kLongestFact = 4000;  // what is longer is not meant to be cited

std::string unquoted(std::string text) {
  const bool is_quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

std::string bib_text(const std::string& text) {
  std::string plain = attn::one_line(text, kLongestFact);
  std::erase_if(plain, [](char c) { return c == '{' || c == '}'; });
  return latex_text(plain);
}

std::string fields_of_entry(const std::string& head,
                            const std::vector<std::pair<const char*, std::string>>& fields) {
  std::string text = head + ",\n";
  for (const auto& [name, value] : fields)
    if (!value.empty()) text += fmt::format("  {:<12} = {{{}}},\n", name, value);
  return text + "}\n";
}

struct Tool {
  std::string version, commit;
  bool is_dirty = false;
  bool operator==(const Tool&) const = default;
  std::string words() const {
    return fmt::format("commit {}{}", commit.empty() ? "unknown" : commit.substr(0, 12),
                       is_dirty ? " with local changes" : "");
  }
};

std::string fact_of(const RunLine& run, const char* name) {
  const auto found = run.environment.find(name);
  return found == run.environment.end() || found->is_null() ? "" : text_of(*found);
}

Tool tool_of(const RunLine& run) {
  return {.version = fact_of(run, "version"),
          .commit = fact_of(run, "commit"),
          .is_dirty = fact_of(run, "dirty") == "true"};
}

// "attnbench_0_2_0_1a2b3c4": nothing else may stand in a key.
std::string key_of_tool(const Tool& tool) {
  std::string key = "attnbench";
  for (const std::string& part : {tool.version, tool.commit.substr(0, 7)}) {
    if (part.empty()) continue;
    key += '_';
    for (const char c : part) key += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }
  return key;
}

std::string entry_of(const Tool& tool, const std::string& protocols) {
  const Citation citation = own_citation();
  std::string authors;
  for (const std::string& author : citation.authors)
    authors += fmt::format("{}{{{}}}", authors.empty() ? "" : " and ", bib_text(author));
  const bool is_known = tool.version == citation.version && !citation.released.empty();
  const std::string note = tool.words() + (protocols.empty() ? "" : ", protocol " + protocols);
  return fields_of_entry("@software{" + key_of_tool(tool),
                         {{"author", authors},
                          {"title", bib_text(citation.title)},
                          {"version", bib_text(tool.version)},
                          {"year", is_known ? citation.released.substr(0, 4) : ""},
                          {"note", bib_text(note)}});
}

void add_new(const std::string& text, const char* between, std::string& to) {
  if (text.empty() || to.find(text) != std::string::npos) return;
  to += (to.empty() ? "" : between) + text;
}

}  // namespace

Citation read_citation(const std::string& cff) {
  Citation citation;
  std::istringstream lines(cff);
  for (std::string line; std::getline(lines, line);) {
    const auto value = [&](std::string_view name) {
      return line.starts_with(name) ? unquoted(line.substr(name.size())) : std::string();
    };
    if (const std::string text = value("title: "); !text.empty()) citation.title = text;
    if (const std::string text = value("version: "); !text.empty()) citation.version = text;
    if (const std::string text = value("date-released: "); !text.empty()) citation.released = text;
    if (const std::string text = value("  - name: "); !text.empty())
      citation.authors.push_back(text);
  }
  return citation;
}

Citation own_citation() { return read_citation(kCitationTexts.front().second); }

std::string bibtex_of_program() {
  return entry_of({.version = kBuildInfo.version,
                   .commit = kCommit,
                   .is_dirty = std::string_view(kDirty) == "true"},
                  fmt::format("{} ({})", kProtocolName, protocol_hash()));
}

std::string bibtex_of_rows(const std::vector<RowsFile>& runs, const std::string& checksum) {
  std::vector<Tool> tools;
  std::string text, machines, years, measured_by, all_protocols;
  size_t cells = 0;
  for (const RowsFile& run : runs) {
    cells += run.rows.size();
    add_new(fact_of(run.run, "cpu_model"), "; ", machines);
    add_new(run.run.started_at.substr(0, 4), ", ", years);
    for (const Json& protocol : run.protocols)
      add_new(protocol_words(protocol), "; ", all_protocols);
    const Tool tool = tool_of(run.run);
    if (std::find(tools.begin(), tools.end(), tool) == tools.end()) tools.push_back(tool);
  }
  for (const Tool& tool : tools) {
    std::string protocols;
    for (const RowsFile& run : runs)
      if (tool_of(run.run) == tool)
        for (const Json& protocol : run.protocols)
          add_new(protocol_words(protocol), "; ", protocols);
    text += entry_of(tool, protocols) + "\n";
    add_new(fmt::format("attnbench {}, {}", tool.version, tool.words()), "; ", measured_by);
  }
  const std::string file = std::filesystem::path(runs.front().path).filename();
  const std::string note =
      fmt::format("{} cells, checksum {}{}", cells, checksum,
                  all_protocols.empty() ? ", measured before protocols had names"
                                        : ", protocol " + all_protocols);
  text += "% author: whoever measured the rows\n";
  return text + fields_of_entry("@misc{attnbench_rows_" + checksum,
                                {{"title", "Rows of attnbench: " + bib_text(file)},
                                 {"year", bib_text(years)},
                                 {"howpublished",
                                  bib_text(measured_by + " on " +
                                           (machines.empty() ? "an unknown machine" : machines))},
                                 {"note", bib_text(note)}});
}

std::string checksum_of(const std::vector<Json>& lines) {
  std::vector<std::string> hashes;
  for (const Json& line : lines) hashes.push_back(hash_of(line));
  std::sort(hashes.begin(), hashes.end());
  return hash_of(hashes);
}

}  // namespace attn::cli
