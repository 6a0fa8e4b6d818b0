// The kept inputs of every fuzz target (scripts/fuzz), in ordinary builds: each is taken or refused
// by an Error of one line, and what the targets promise holds.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "core/base/io_error.h"
#include "tests/fuzz/folder_of.h"
#include "tests/fuzz/oracle.h"
#include "tests/fuzz/targets.h"
#include "tests/places.h"

namespace attn::fuzz {

void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

}  // namespace attn::fuzz

namespace attn::corpus_test {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Of base64 (RFC 4648, section 4).
std::string decoded(const std::string& text) {
  static const std::string digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(digits.find(c));
    if ((count += 6) < 8) continue;
    bytes += static_cast<char>(bits >> (count -= 8) & 0xff);
  }
  return bytes;
}

class Corpus : public testing::TestWithParam<fuzz::Target> {};

TEST_P(Corpus, EveryKeptInputIsTakenOrRefused) {
  const fuzz::Target target = GetParam();
  int inputs = 0;
  std::ifstream kept(source_folder() / "tests/fuzz/corpus" / (std::string(target.name) + ".txt"));
  for (std::string line; std::getline(kept, line);) {
    SCOPED_TRACE(line);
    EXPECT_NO_THROW(target.run(decoded(line.substr(line.find(' ') + 1))));
    inputs++;
  }
  EXPECT_GE(inputs, 3);
}

TEST_P(Corpus, DeepNestingAndLongTextsAreTakenOrRefused) {
  for (const char* part : {"[", "{\"a\":", "[MAX ", "( ", "a=1,", "\"", "\n", "== a\n"}) {
    std::string text;
    for (int i = 0; i < 100'000; i++) text += part;
    EXPECT_NO_THROW(GetParam().run(text)) << part;
  }
  EXPECT_NO_THROW(GetParam().run(""));
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, testing::ValuesIn(fuzz::kTargets),
                         [](const auto& given) { return std::string(given.param.name); });

TEST(FuzzTargets, EachIsInTheListOfProgramsAndHasInputs) {
  std::set<std::string> targets, listed, corpora;
  for (const fuzz::Target& target : fuzz::kTargets) targets.emplace(target.name);
  const fs::path folder = source_folder() / "tests/fuzz";
  const std::string cmake = bytes_of(folder / "sources.cmake"), begin = "set(fuzz_targets ";
  const size_t at = cmake.find(begin) + begin.size();
  std::istringstream names(cmake.substr(at, cmake.find(')', at) - at));
  for (std::string name; names >> name;) listed.insert(name);
  for (const auto& entry : fs::directory_iterator(folder / "corpus"))
    corpora.insert(entry.path().stem().string());
  EXPECT_EQ(targets, listed);
  EXPECT_EQ(targets, corpora);
}

TEST(FuzzCorpus, IsReadByteForByte) {
  EXPECT_EQ(decoded("AAECfw=="), std::string("\0\1\2\x7f", 4));
  EXPECT_EQ(decoded("//79"), "\xff\xfe\xfd");
  EXPECT_EQ(decoded("YQ=="), "a");
  EXPECT_EQ(decoded(""), "");
}

TEST(FuzzOracle, RefusesNothingButAnErrorOfOneLine) {
  EXPECT_TRUE(fuzz::accepts([] {}));
  EXPECT_FALSE(fuzz::accepts([] { throw_error("a\nb"); })) << "an end of line is escaped";
  EXPECT_FALSE(fuzz::accepts([] { throw_io_error("a\x1b[31m"); }));
  EXPECT_THROW(fuzz::accepts([] { throw Error("a\nb"); }), fuzz::Defect);
  EXPECT_THROW(fuzz::accepts([] { throw Error(""); }), fuzz::Defect);
  EXPECT_THROW(fuzz::accepts([] { throw std::out_of_range("x"); }), std::out_of_range);
  EXPECT_THROW(fuzz::accepts([] { fuzz::require(false, "no"); }), fuzz::Defect);
}

TEST(FuzzFolder, HoldsWhatTheTextSaysAndGoesAgain) {
  std::string path;
  {
    const fuzz::FolderOf folder("== a/b.txt\none\n\n== c/\n== d *5\nxy== e\n== ../f\nout\n== g");
    path = folder.path();
    EXPECT_EQ(bytes_of(path + "/a/b.txt"), "one\n\n");
    EXPECT_TRUE(fs::is_directory(path + "/c"));
    EXPECT_EQ(bytes_of(path + "/d"), "xy== ");
    EXPECT_FALSE(fs::exists(path + "/../f"));
    EXPECT_TRUE(fs::exists(path + "/g"));
  }
  EXPECT_TRUE(fs::is_empty(path));
}

}  // namespace
}  // namespace attn::corpus_test
