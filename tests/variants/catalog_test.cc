// Every variant of the folders is in the catalogue, and says of itself what the catalogue promises.
#include "variants/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "tests/places.h"
#include "tests/plugins_on_disk.h"

namespace attn::variants_catalog_test {
namespace {

namespace fs = std::filesystem;

TEST(Catalog, ListsEveryVariantOfTheFolder) {
  std::set<std::string> listed;
  for (const VariantInfo& info : all_variants()) listed.insert(info.name);
  EXPECT_EQ(names_of(plugins_on_disk(source_folder() / "variants", "VariantInfo")), listed);
}

TEST(Catalog, AFamilyIsAFolder) {
  std::map<std::string, std::set<std::string>> families_in;  // by folder
  for (const std::string& plugin : plugins_on_disk(source_folder() / "variants", "VariantInfo")) {
    const size_t slash = plugin.rfind('/');
    ASSERT_NE(slash, std::string::npos) << plugin << " is in no family's folder";
    families_in[plugin.substr(0, slash)].insert(find_variant(plugin.substr(slash + 1)).family);
  }
  for (const auto& [folder, names] : families_in) EXPECT_EQ(names.size(), 1u) << folder;
}

TEST(Catalog, AFileThatIsNotListedIsFound) {
  const fs::path folder = fs::path(testing::TempDir()) / "catalog_test";
  fs::create_directories(folder / "family");
  std::ofstream(folder / "family/own.cc") << "namespace attn {\nVariantInfo own() {\n";
  std::ofstream(folder / "family/engine.cc") << "namespace attn {\nint engine() {\n";
  EXPECT_EQ(plugins_on_disk(folder, "VariantInfo"), std::set<std::string>{"family/own"});
  fs::remove_all(folder);
}

TEST(Catalog, IsCompleteAndConsistent) {
  std::set<std::string> names;
  for (const VariantInfo& info : all_variants()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
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
