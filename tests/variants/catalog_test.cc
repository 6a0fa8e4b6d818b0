// Every variant of the folders is in the catalogue, and says of itself what the catalogue promises.
#include "variants/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
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

// What is wrong with a copy of `full` after the change; "": nothing would be.
std::string refusal(const std::function<void(VariantInfo&)>& change) {
  VariantInfo info = find_variant("full");
  info.name = "own";
  change(info);
  const size_t before = all_variants().size();
  try {
    add_variant(info, "0123456789abcdef");
  } catch (const Error& error) {
    EXPECT_EQ(all_variants().size(), before);
    return error.what();
  }
  return "";
}

TEST(Catalog, AVariantOfAPluginThatDoesNotFitIsRefused) {
  const auto says = [](const std::string& text, const char* word) {
    EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  says(refusal([](VariantInfo& info) { info.name = "linear"; }), "'linear' already");
  for (const std::string name : {"", "Own", "9th", "own-one", "own.so"})
    says(refusal([&](VariantInfo& info) { info.name = name; }), "small letter");
  says(refusal([](VariantInfo& info) { info.family = "patern"; }), "'pattern'");
  says(refusal([](VariantInfo& info) { info.make = nullptr; }), "make");
  says(refusal([](VariantInfo& info) { info.name = "python_own"; }), "in Python");
  says(refusal([](VariantInfo& info) { info.family = kPythonFamily; }), "in Python");
  EXPECT_EQ(variant_plugin("full"), "");
  EXPECT_EQ(variant_named("own"), nullptr);
  EXPECT_EQ(variant_named("full"), &find_variant("full"));
}

}  // namespace
}  // namespace attn::variants_catalog_test
