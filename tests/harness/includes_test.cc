// The folder table and the style rules that text can show: who includes whom, where third-party
// headers may stand, sizes, names. A fault is reported as file:line.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "tests/places.h"

namespace attn::includes_test {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

constexpr int64_t kLongestFile = 400;

// What each folder may include of ours, beside itself: a folder with all below it, or a single
// header.
const std::map<std::string, std::vector<std::string>>& table() {
  static const std::map<std::string, std::vector<std::string>> allowed = {
      {"core", {}},
      {"variants", {"core/"}},
      {"tasks", {"core/"}},
      {"harness/model", {"core/", "variants/api/"}},
      {"harness/train", {"core/", "harness/model/", "variants/api/", "tasks/api/"}},
      // The checks ask the catalog of variants who is in it, to find the same variant in the double
      // build.
      {"harness/check",
       {"core/", "harness/model/", "variants/api/", "variants/catalog.h", "tasks/api/"}},
      {"harness/measure", {"core/", "harness/model/", "variants/api/"}},
      {"harness/verify",
       {"core/", "harness/model/", "harness/measure/", "harness/check/", "variants/api/"}},
      {"harness/store", {"core/"}},
      {"harness/plugin", {"core/", "harness/store/", "variants/catalog.h", "tasks/catalog.h"}},
      // The catalogs say which sources and plug-ins stand behind a name.
      {"harness/cell",
       {"core/", "harness/measure/", "harness/store/", "variants/api/", "variants/catalog.h",
        "tasks/catalog.h"}},
      {"harness/process", {"core/", "harness/store/", "harness/cell/"}},
      {"harness/child",
       {"core/", "harness/train/", "harness/measure/", "harness/check/", "harness/verify/",
        "harness/store/", "harness/cell/", "harness/process/", "variants/catalog.h",
        "tasks/catalog.h"}},
      {"harness/plan",
       {"core/", "harness/train/", "harness/measure/", "harness/verify/", "harness/store/",
        "harness/cell/", "harness/process/", "variants/api/", "variants/catalog.h", "tasks/api/",
        "tasks/catalog.h"}},
      // The protocol (protocol.cc) tells the defaults of trainings and of verification.
      {"harness/run",
       {"core/", "harness/measure/", "harness/check/", "harness/store/", "harness/cell/",
        "harness/process/", "harness/plan/", "harness/train/optimizer.h",
        "harness/train/schedule.h", "harness/train/train.h", "harness/verify/verify.h",
        "variants/catalog.h", "tasks/catalog.h"}},
      {"harness/tables",
       {"core/", "harness/store/", "harness/cell/", "harness/plan/grammar.h",
        "harness/plan/labels.h", "harness/plan/model_shape.h", "harness/plan/unlearned.h",
        "harness/measure/", "variants/catalog.h", "tasks/api/"}},
      {"harness/compare",
       {"core/", "harness/store/", "harness/cell/", "harness/plan/labels.h",
        "harness/plan/rounds.h", "harness/measure/", "harness/tables/", "variants/catalog.h",
        "tasks/api/"}},
      {"harness/crossing",
       {"core/", "harness/store/", "harness/cell/", "harness/plan/labels.h", "harness/measure/",
        "harness/compare/", "harness/tables/", "variants/catalog.h"}},
      {"harness/growth",
       {"core/", "harness/store/", "harness/cell/", "harness/plan/labels.h", "harness/measure/",
        "harness/tables/", "variants/catalog.h"}},
      {"harness/export",
       {"core/", "harness/store/", "harness/cell/", "harness/compare/", "harness/measure/"}},
      {"harness/cli", {"core/", "variants/", "tasks/", "harness/"}},
      {"python/extension", {"core/", "variants/", "tasks/", "harness/"}},
  };
  return allowed;
}

bool starts_with_any(std::string_view text, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return text.starts_with(prefix); });
}

std::string folder_of(std::string_view path) {
  for (const auto& [folder, unused] : table())
    if (path.starts_with(folder + "/")) return folder;
  return "";
}

// The text between the marks of an #include line; empty for other lines.
std::string included(std::string_view line) {
  if (!line.starts_with("#include ")) return "";
  const size_t end = line.find_last_of("\">");
  return end <= 10 ? "" : std::string(line.substr(10, end - 10));
}

bool is_header(std::string_view path) { return path.ends_with(".h"); }

// The command line, and the child process of a cell, which is spoken to over its standard streams.
bool may_print(std::string_view path) {
  return path.starts_with("harness/cli/") || path == "harness/child/one_cell.cc";
}

// Whether a header of a family of variants is included from outside that family, and is not the one
// that is named as the family is.
bool passes_front_door(std::string_view path, const std::string& header) {
  const fs::path included_path(header), family = included_path.parent_path();
  return family.parent_path() == "variants" && family != "variants/api" &&
         family != "variants/reference" && !path.starts_with(family.string() + "/") &&
         included_path.stem() != family.filename();
}

std::string include_fault(std::string_view path, std::string_view line) {
  const std::string header = included(line), folder = folder_of(path);
  if (header.empty() || folder.empty()) return "";
  const bool ours = line[9] == '"';
  if (passes_front_door(path, header)) return "enter a family of variants by its front door";
  if (ours && !header.starts_with(folder + "/") && !starts_with_any(header, table().at(folder)))
    return folder + " may not include it";
  const auto only_in = [&](std::string_view prefix, const std::vector<std::string>& places) {
    return header.starts_with(prefix) && !starts_with_any(path, places);
  };
  if (is_header(path) && header.starts_with("Eigen/"))
    return "Eigen costs seconds a file: not in headers";
  if (only_in("boost/", {"harness/cli/", "harness/measure/statistics.cc"}))
    return "Boost stays in harness/cli and harness/measure/statistics.cc";
  if (only_in("hwy/", {"core/simd/"})) return "Highway stays in core/simd";
  if (only_in("png.h", {"tasks/data/"})) return "libpng stays in tasks/data";
  if (only_in("nanobind/", {"python/extension/"})) return "nanobind stays in python/extension";
  if (only_in("toml++/", {"harness/plan/toml_text.cc"}))
    return "toml++ stays in harness/plan/toml_text.cc";
  if (only_in("benchmark/", {"harness/measure/"}))
    return "Google Benchmark stays in harness/measure";
  if (only_in("nlohmann/", {"harness/store/"})) return "JSON comes by harness/store/rows.h";
  if (header == "iostream" && !may_print(path)) return "nothing prints below harness/cli";
  return "";
}

bool calls(std::string_view line, std::string_view name) {
  for (size_t at = line.find(name); at != std::string_view::npos; at = line.find(name, at + 1)) {
    const char before = at == 0 ? ' ' : line[at - 1];
    if (!std::isalnum(static_cast<unsigned char>(before)) && before != '_') return true;
  }
  return false;
}

std::string line_fault(std::string_view path, std::string_view line) {
  const std::string_view code = line.substr(0, line.find("//"));
  if (const std::string fault = include_fault(path, line); !fault.empty()) return fault;
  if (folder_of(path).empty()) return "";
  if (code.find("#pragma omp") != std::string_view::npos && path != "core/base/parallel.cc")
    return "threads start in core/base/parallel.cc alone";
  if (!may_print(path))
    for (const char* name : {"std::cout", "std::cerr", "printf(", "fprintf(", "fmt::print(",
                             "puts(", "abort(", "exit("})
      if (calls(code, name))
        return fmt::format("{} below harness/cli: nothing there prints or ends the program", name);
  return "";
}

std::string file_fault(const fs::path& path, const Lines& lines) {
  const std::string stem = path.stem().string();
  for (const char* name : {"util", "utils", "helper", "helpers", "common", "misc"})
    if (stem == name || stem.ends_with(std::string("_") + name)) return "a catch-all name";
  if (std::ssize(lines) > kLongestFile)
    return fmt::format("{} lines, at most {}", lines.size(), kLongestFile);
  if (lines.empty() || !lines[0].starts_with("// "))
    return "the first line does not say what the file is";
  return "";
}

Lines lines_of(const fs::path& path) {
  std::ifstream file(path);
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<fs::path> sources() {
  std::vector<fs::path> result;
  for (const char* top : {"core", "variants", "tasks", "harness", "python", "tests"})
    for (const auto& entry : fs::recursive_directory_iterator(source_folder() / top))
      if (entry.path().extension() == ".cc" || entry.path().extension() == ".h")
        result.push_back(fs::relative(entry.path(), source_folder()));
  return result;
}

TEST(House, EveryFileKeepsTheRules) {
  const std::vector<fs::path> files = sources();
  EXPECT_GT(files.size(), 50U) << "sources are read from " << source_folder();
  for (const fs::path& path : files) {
    const Lines lines = lines_of(source_folder() / path);
    EXPECT_EQ(file_fault(path, lines), "") << path.string();
    for (size_t i = 0; i < lines.size(); i++)
      EXPECT_EQ(line_fault(path.string(), lines[i]), "")
          << path.string() << ':' << i + 1 << ": " << lines[i];
  }
}

using FolderIncludes = std::map<std::string, std::set<std::string>>;

// A path of folders that include each other in a circle, from a folder back to itself; empty: none.
Lines circle_from(const std::string& folder, const FolderIncludes& graph, Lines path,
                  std::set<std::string>& done) {
  const bool met = std::find(path.begin(), path.end(), folder) != path.end();
  path.push_back(folder);
  if (met) return path;
  if (!done.insert(folder).second || !graph.count(folder)) return {};
  for (const std::string& next : graph.at(folder))
    if (Lines circle = circle_from(next, graph, path, done); !circle.empty()) return circle;
  return {};
}

Lines circle_of(const FolderIncludes& graph) {
  std::set<std::string> done;
  for (const auto& [folder, unused] : graph)
    if (Lines circle = circle_from(folder, graph, {}, done); !circle.empty()) return circle;
  return {};
}

TEST(House, NoFoldersIncludeEachOtherInACircle) {
  FolderIncludes graph;
  for (const fs::path& path : sources()) {
    if (path.string().starts_with("tests/") || path.stem() == "precompiled") continue;
    for (const std::string& line : lines_of(source_folder() / path)) {
      const fs::path header = included(line);
      if (line.find('"') == std::string::npos || header.empty()) continue;
      if (header.parent_path() != path.parent_path())
        graph[path.parent_path().string()].insert(header.parent_path().string());
    }
  }
  EXPECT_GT(graph.size(), 20u);
  EXPECT_EQ(circle_of(graph), Lines{});
  EXPECT_EQ(circle_of({{"a", {"b"}}, {"b", {"c"}}, {"c", {"a"}}}), (Lines{"a", "b", "c", "a"}));
  EXPECT_EQ(circle_of({{"a", {"b", "c"}}, {"b", {"c"}}}), Lines{});
}

// Where the test of a source that has one stands: tests/<path of the source>_test.cc.
TEST(House, ATestStandsWhereItsSourceDoes) {
  std::map<std::string, std::set<std::string>> folders;  // of the sources of a name
  for (const fs::path& path : sources())
    if (!path.string().starts_with("tests/"))
      folders[path.stem().string()].insert("tests/" + path.parent_path().string());
  int beside = 0;
  for (const fs::path& path : sources()) {
    const std::string stem = path.stem().string();
    if (!path.string().starts_with("tests/") || !stem.ends_with("_test")) continue;
    const auto named = folders.find(stem.substr(0, stem.size() - 5));
    if (named == folders.end()) continue;
    EXPECT_TRUE(named->second.count(path.parent_path().string())) << path.string();
    beside++;
  }
  EXPECT_GT(beside, 80);
}

TEST(House, EveryFolderIsInTheTable) {
  for (const fs::path& path : sources()) {
    if (path.string().starts_with("tests/")) continue;
    EXPECT_NE(folder_of(path.string()), "") << path.string();
  }
}

TEST(House, PlantedFaultsAreSeen) {
  const auto seen = [](const char* path, const char* line) {
    return !line_fault(path, line).empty();
  };
  EXPECT_TRUE(seen("core/autograd/var.cc", "#include \"variants/api/attention.h\""));
  EXPECT_TRUE(seen("variants/softmax/full.cc", "#include \"tasks/api/task.h\""));
  EXPECT_TRUE(seen("variants/hashing/buckets.cc", "#include \"variants/softmax/band.h\""));
  EXPECT_FALSE(seen("variants/hashing/buckets.cc", "#include \"variants/softmax/softmax.h\""));
  EXPECT_FALSE(seen("variants/softmax/full.cc", "#include \"variants/softmax/band.h\""));
  EXPECT_TRUE(seen("harness/model/layer.cc", "#include \"variants/catalog.h\""));
  EXPECT_TRUE(seen("harness/store/rows.cc", "#include \"harness/train/train.h\""));
  EXPECT_TRUE(seen("harness/plan/cells.cc", "#include \"harness/run/run.h\""));
  EXPECT_TRUE(seen("harness/child/one_cell.cc", "#include \"harness/plan/plan.h\""));
  EXPECT_TRUE(seen("harness/process/outcome.cc", "#include \"harness/plan/plan.h\""));
  EXPECT_FALSE(seen("harness/run/sweeper.cc", "#include \"harness/plan/plan.h\""));
  EXPECT_TRUE(seen("core/ops/ops.h", "#include <Eigen/Core>"));
  EXPECT_TRUE(seen("harness/plan/cells.cc", "#include <boost/program_options.hpp>"));
  EXPECT_TRUE(seen("harness/plan/cells.cc", "#include <benchmark/benchmark.h>"));
  EXPECT_TRUE(seen("variants/softmax/full.cc", "#include <hwy/highway.h>"));
  EXPECT_FALSE(seen("core/simd/product.cc", "#include <hwy/highway.h>"));
  EXPECT_TRUE(seen("tasks/lra/image.cc", "#include <png.h>"));
  EXPECT_TRUE(seen("harness/cli/main.cc", "#include <nanobind/nanobind.h>"));
  EXPECT_TRUE(seen("harness/cli/main.cc", "#include \"python/extension/pass.h\""));
  EXPECT_FALSE(seen("python/extension/module.cc", "#include <nanobind/nanobind.h>"));
  EXPECT_FALSE(seen("tasks/data/png.cc", "#include <png.h>"));
  EXPECT_TRUE(seen("harness/plan/sweep_file.cc", "#include <toml++/toml.h>"));
  EXPECT_TRUE(seen("harness/train/train.h", "#include <nlohmann/json.hpp>"));
  EXPECT_TRUE(seen("core/autograd/var.cc", "#include <iostream>"));
  EXPECT_TRUE(seen("variants/softmax/full.cc", "#pragma omp parallel for"));
  EXPECT_TRUE(seen("variants/softmax/full.cc", "  std::printf(\"%d\", 1);"));
  EXPECT_FALSE(seen("variants/softmax/full.cc", "#include \"core/autograd/var.h\""));
  EXPECT_FALSE(seen("core/ops/ops_matmul.cc", "#include <Eigen/Core>"));
  EXPECT_FALSE(seen("harness/store/rows.cc", "  std::snprintf(text, 8, \"%d\", 1);"));
  EXPECT_FALSE(seen("harness/cli/run.cc", "#include <boost/program_options.hpp>"));
  EXPECT_NE(file_fault("core/string_util.h", {"// Text."}), "");
  EXPECT_NE(file_fault("core/text.h", {"#pragma once"}), "");
  EXPECT_NE(file_fault("core/text.h", Lines(kLongestFile + 1, "// Text.")), "");
  EXPECT_EQ(file_fault("core/text.h", Lines(kLongestFile, "// Text.")), "");
}

}  // namespace
}  // namespace attn::includes_test
