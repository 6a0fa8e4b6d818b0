// Every plug-in's file is named in its folder's CMakeLists.txt and catalog, by its stem, and
// nowhere else needs to be.
#include "variants/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/places.h"

namespace attn::variants_catalog_test {
namespace {

namespace fs = std::filesystem;

std::set<std::string> words(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::string content = text.str();
  for (char& c : content)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = ' ';
  std::istringstream in(content);
  std::set<std::string> result;
  for (std::string word; in >> word;) result.insert(word);
  return result;
}

// The stems of the folder's own .cc files that are missing from either list.
std::set<std::string> missing(const fs::path& folder, const std::set<std::string>& not_plugins) {
  const std::set<std::string> build = words(folder / "CMakeLists.txt"),
                              catalog = words(folder / "catalog.cc");
  std::set<std::string> result;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() != ".cc" || not_plugins.count(stem)) continue;
    if (!build.count(stem) || !catalog.count(stem)) result.insert(stem);
  }
  return result;
}

TEST(Catalog, NamesEveryFileOfVariantsAndTasks) {
  const fs::path source = source_folder();
  EXPECT_EQ(missing(source / "variants", {"attention", "catalog", "counted_cost", "mixer"}),
            std::set<std::string>{});
  EXPECT_EQ(missing(source / "tasks", {"task", "catalog"}), std::set<std::string>{});
}

TEST(Catalog, FindsAFileThatIsNotNamed) {
  const fs::path folder = fs::path(testing::TempDir()) / "catalog_test";
  fs::create_directories(folder);
  std::ofstream(folder / "CMakeLists.txt") << "set(variants\n  listed\n  half)\n";
  std::ofstream(folder / "catalog.cc") << "X(listed)\n";
  for (const char* name : {"listed.cc", "half.cc", "absent.cc", "header.h"})
    std::ofstream(folder / name) << "\n";
  EXPECT_EQ(missing(folder, {"catalog"}), (std::set<std::string>{"half", "absent"}));
  fs::remove_all(folder);
}

TEST(Catalog, IsCompleteAndConsistent) {
  std::set<std::string> names;
  for (const VariantInfo& info : all_variants()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_TRUE(fs::exists(source_folder() / "variants" / (info.name + ".cc"))) << info.name;
    EXPECT_FALSE(info.summary.empty() || info.paper.empty() || info.cost_formula.empty())
        << info.name;
    EXPECT_TRUE(info.make) << info.name;
    EXPECT_EQ(std::count(families().begin(), families().end(), info.family), 1) << info.name;
    EXPECT_EQ(&find_variant(info.name), &info);
  }
  try {
    find_variant("linfromer");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'linformer'"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace attn::variants_catalog_test
