// JSON from outside: deep nesting is refused in one line, wherever it comes in.
#include "harness/store/parse.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <iterator>

#include "core/base/check.h"
#include "harness/plan/pilots.h"
#include "harness/process/outcome.h"
#include "tests/harness/store/sample_rows.h"
#include "tests/places.h"
#include "tests/said.h"

namespace attn::parse_test {
namespace {

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; i++) all += text;
  return all;
}

std::string nested_arrays(int levels) { return repeated("[", levels) + repeated("]", levels); }

std::string nested_objects(int levels) {
  return repeated("{\"a\":", levels) + "0" + repeated("}", levels);
}

const std::string kTooDeep = "nested deeper than 64 levels";

TEST(ParseJson, TakesWhatIsAsDeepAsTheLimit) {
  EXPECT_EQ(parse_json(nested_arrays(kMostLevels)).fault, "");
  EXPECT_EQ(parse_json(nested_objects(kMostLevels)).fault, "");
  EXPECT_EQ(parse_json(nested_arrays(kMostLevels + 1)).fault, kTooDeep);
  EXPECT_EQ(parse_json(nested_objects(kMostLevels + 1)).fault, kTooDeep);
}

TEST(ParseJson, RefusesAnyDepthWithoutGoingThere) {
  for (const int levels : {1000, 100'000, 200'000, 2'000'000}) {
    EXPECT_EQ(parse_json(nested_arrays(levels)).fault, kTooDeep);
    EXPECT_EQ(parse_json(nested_objects(levels)).fault, kTooDeep);
    EXPECT_EQ(parse_json(repeated("[", levels)).fault, kTooDeep) << "without an end";
    EXPECT_EQ(parse_json(repeated("[{\"a\":", levels)).fault, kTooDeep);
  }
}

TEST(ParseJson, CountsNoBracketsInsideStrings) {
  const std::string many = repeated("[{", 100'000);
  EXPECT_EQ(parse_json("[\"" + many + "\"]").value.at(0), many);
  EXPECT_EQ(parse_json("{\"" + many + "\": 1}").fault, "");
  EXPECT_EQ(parse_json("[\"\\\"" + many + "\"]").value.at(0), "\"" + many) << "an escaped quote";
  EXPECT_EQ(parse_json("[\"\\\\\", " + many + "]").fault, kTooDeep) << "an escaped backslash";
}

TEST(ParseJson, CountsLevelsNotBrackets) {
  EXPECT_EQ(parse_json("[" + repeated("[],", 100'000) + "{}]").fault, "");
}

TEST(ParseJson, SaysWhatIsNotJson) {
  for (const char* text : {"", "{", "]", "nul", "[1,]", "{\"a\"}", "\"", "\"\\", "NaN", "[1] 2"})
    EXPECT_EQ(parse_json(text).fault, "not JSON") << text;
}

class DeepFile : public testing::Test {
 protected:
  DeepFile() : path_(testing::TempDir() + "deep." + std::to_string(getpid()) + ".json") {}
  ~DeepFile() override { std::filesystem::remove(path_); }
  void put(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }
  std::string path_;
};

TEST_F(DeepFile, OfRowsIsRefusedByItsLine) {
  const std::string start = R"({"schema":"attnbench/1","kind":"run","x":)";
  for (const int levels : {100'000, 200'000})
    for (const std::string& deep : {nested_arrays(levels), nested_objects(levels)}) {
      std::filesystem::remove(path_);
      put(sample_run().dump() + "\n" + start + deep + "}\n");
      for (const bool open : {false, true}) {
        try {
          if (open)
            RowWriter{path_};
          else
            read_rows(path_);
          ADD_FAILURE() << "no Error";
        } catch (const Error& error) {
          const std::string said = error.what();
          EXPECT_TRUE(said.starts_with(path_ + ":2: " + kTooDeep)) << said;
          EXPECT_FALSE(says(said, "\n"));
        }
      }
    }
}

TEST_F(DeepFile, OfPilotsHoldsNothing) {
  put("{\"x\":" + nested_objects(200'000) + "}");
  const Pilots pilots(path_);
  CellKey key;
  key.training = Params::unchecked({{"test_examples", int64_t{4}}});
  EXPECT_FALSE(pilots.holds(PilotOf::shortcuts, key));
}

TEST(DeepReply, IsAFailedCell) {
  ChildResult result;
  result.output = R"({"status":"ok","reason":null,"x":)" + nested_arrays(200'000) + "}";
  const Reply reply = outcome_of(result, 1);
  EXPECT_EQ(reply.status, Status::failed);
  EXPECT_TRUE(says(reply.reason, kTooDeep));
}

// The first other way from text to JSON in a source; "" where there is none.
std::string other_way_in(const std::string& text) {
  static const std::regex other(
      R"(json::(parse|accept|sax_parse|from_\w+) *\(|"_json\b|>> *\w*json\b)", std::regex::icase);
  std::smatch found;
  return std::regex_search(text, found, other) ? found.str() : "";
}

TEST(ParseJson, OtherWaysInAreSeen) {
  for (const char* const text : {"Json::parse(line)", "nlohmann::ordered_json::parse(line)",
                                 "Json::accept (x)", "nlohmann::json::from_cbor(x)", "in >> json"})
    EXPECT_NE(other_way_in(text), "") << text;
  EXPECT_EQ(other_way_in("parse_json(line, path)"), "");
}

// The schema is a part of the program, and cmake writes it there.
TEST(ParseJson, IsTheOnlyWayIn) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(source_folder() / "harness")) {
    const std::string name = entry.path().filename().string();
    if ((entry.path().extension() != ".cc" && entry.path().extension() != ".h") ||
        name == "parse.cc" || name == "schema.cc")
      continue;
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_EQ(other_way_in(text), "") << entry.path();
    files++;
  }
  EXPECT_GT(files, 50);
}

}  // namespace
}  // namespace attn::parse_test
