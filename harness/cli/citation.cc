// BibTeX from CITATION.cff and from run lines; see citation.h. Facts of rows are texts of others:
// they go through latex_text(), and braces, which BibTeX counts, are left out.
#include "harness/cli/citation.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <utility>

#include "core/base/add_once.h"
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

// "attnbench_0_2_0_1a2b3c4", with "_dirty" of local changes: nothing else may stand in a key.
std::string key_of_tool(const Tool& tool) {
  std::string key = "attnbench";
  for (const std::string& part : {tool.version, tool.commit.substr(0, 7)}) {
    if (part.empty()) continue;
    key += '_';
    for (const char c : part) key += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }
  return key + (tool.is_dirty ? "_dirty" : "");
}

// Facts of several runs, each once.
class Facts {
 public:
  void add(const std::string& fact) {
    if (!fact.empty()) add_once(all_, fact);
  }
  std::string joined(const char* between) const {
    return fmt::format("{}", fmt::join(all_, between));
  }

 private:
  std::vector<std::string> all_;
};

std::string entry_of(const Tool& tool, const std::string& protocols) {
  const Citation citation = own_citation();
  std::string authors;
  for (const std::string& author : citation.authors)
    authors += fmt::format("{}{{{}}}", authors.empty() ? "" : " and ", bib_text(author));
  const bool is_known = tool.version == citation.version && !citation.released.empty();
  const std::string note = tool.words() + (protocols.empty() ? "" : ", protocol " + protocols);
  return fields_of_entry("@misc{" + key_of_tool(tool),  // BibTeX's plain styles know no @software
                         {{"author", authors},
                          {"title", bib_text(citation.title)},
                          {"version", bib_text(tool.version)},
                          {"year", is_known ? citation.released.substr(0, 4) : ""},
                          {"note", bib_text(note)}});
}

void collect_protocols(const RowsFile& run, Facts& protocols) {
  for (const Json& protocol : run.protocols) protocols.add(protocol_words(protocol));
}

std::string entries_of_tools(const std::vector<CitedRows>& files) {
  std::vector<std::pair<Tool, Facts>> tools;
  for (const CitedRows& file : files)
    for (const RowsFile& run : file.runs) {
      const Tool tool = tool_of(run.run);
      auto found = std::find_if(tools.begin(), tools.end(),
                                [&](const auto& known) { return known.first == tool; });
      if (found == tools.end()) found = tools.insert(tools.end(), {tool, Facts()});
      collect_protocols(run, found->second);
    }
  std::string text;
  for (const auto& [tool, protocols] : tools) text += entry_of(tool, protocols.joined("; ")) + "\n";
  return text;
}

std::string entry_of_rows(const CitedRows& file) {
  Facts machines, years, measured_by, protocols;
  size_t cells = 0;
  for (const RowsFile& run : file.runs) {
    cells += run.rows.size();
    machines.add(fact_of(run.run, "cpu_model"));
    years.add(run.run.started_at.substr(0, 4));
    collect_protocols(run, protocols);
    const Tool tool = tool_of(run.run);
    measured_by.add(fmt::format("attnbench {}, {}", tool.version, tool.words()));
  }
  const std::string name = std::filesystem::path(file.runs.front().path).filename();
  const std::string on = machines.joined("; "), by = protocols.joined("; ");
  const std::string note =
      fmt::format("{} cells, checksum {}{}", cells, file.checksum,
                  by.empty() ? ", measured before protocols had names" : ", protocol " + by);
  return "% author: whoever measured the rows\n" +
         fields_of_entry("@misc{attnbench_rows_" + file.checksum,
                         {{"title", "Rows of attnbench: " + bib_text(name)},
                          {"year", bib_text(years.joined(", "))},
                          {"howpublished", bib_text(measured_by.joined("; ") + " on " +
                                                    (on.empty() ? "an unknown machine" : on))},
                          {"note", bib_text(note)}});
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

std::string bibtex_of_rows(const std::vector<CitedRows>& files) {
  std::string text = entries_of_tools(files), between;
  std::set<std::string> checksums;  // two files of the same lines are one set of rows
  for (const CitedRows& file : files) {
    if (!checksums.insert(file.checksum).second) continue;
    text += between + entry_of_rows(file);
    between = "\n";
  }
  return text;
}

std::string checksum_of(const std::vector<Json>& lines) {
  std::vector<std::string> hashes;
  for (const Json& line : lines) hashes.push_back(hash_of(line));
  std::sort(hashes.begin(), hashes.end());
  return hash_of(hashes);
}

}  // namespace attn::cli
