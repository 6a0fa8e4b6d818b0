// The protocol stands still: under one name there is one definition, and profiles keep their text
// while they keep their version.
#include "harness/run/protocol.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/train/optimizer.h"
#include "tests/harness/run/fake_cell.h"
#include "tests/places.h"
#include "tests/said.h"

namespace attn::protocol_test {
namespace {

std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The definitions that were printed by `attnbench protocol --json`, one a name.
std::vector<Json> held_definitions() {
  std::vector<Json> all;
  const auto folder = source_folder() / "tests/data/protocols";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    all.push_back(Json::parse(text_of_file(file.path())));
    EXPECT_EQ(file.path().filename(), all.back()["name"].get<std::string>() + ".json");
  }
  return all;
}

// Every value that differs, by its place.
std::string differences(const Json& held, const Json& now) {
  std::string text;
  for (const auto& change : nlohmann::json::diff(nlohmann::json(held), nlohmann::json(now)))
    text += change.dump() + "\n";
  return text;
}

TEST(Protocol, OneNameHasOneDefinition) {
  bool is_held = false;
  for (const Json& held : held_definitions()) {
    EXPECT_EQ(held["hash"], hash_of(held["definition"])) << held["name"];
    if (held["name"] != kProtocolName) continue;
    is_held = true;
    EXPECT_EQ(held["hash"].get<std::string>(), protocol_hash())
        << "a default that is part of " << kProtocolName << " is another now:\n"
        << differences(held["definition"], protocol_definition())
        << "a released protocol never changes: give it the next name in harness/run/protocol.h, "
           "and keep both definitions in tests/data/protocols";
  }
  EXPECT_TRUE(is_held) << "tests/data/protocols lacks " << kProtocolName;
}

TEST(Protocol, AProfileKeepsItsTextWhileItKeepsItsVersion) {
  const Json now = protocol_definition()["profiles"];
  for (const Json& held : held_definitions())
    for (const auto& [name, profile] : held["definition"]["profiles"].items())
      if (now.contains(name) && now[name]["version"] == profile["version"]) {
        EXPECT_EQ(now[name]["text"], profile["text"])
            << "profiles/" << name << ".toml was changed: raise its version";
      }
}

// Constants that their sources keep to themselves are written twice.
TEST(Protocol, TellsTheConstantsOfTheSources) {
  const Json definition = protocol_definition();
  const auto holds = [](const char* file, const std::string& text) {
    return says(text_of_file(source_folder() / "harness" / file), "constexpr " + text);
  };
  const auto number = [&](const char* section, const char* name) {
    return fmt::format("{};", definition[section][name].get<double>());
  };
  EXPECT_TRUE(
      holds("measure/statistics.cc", "int kResamples = " + number("speed", "bootstrap_resamples")));
  EXPECT_TRUE(holds("measure/statistics.cc", "double kTail = 0.025;"));
  EXPECT_DOUBLE_EQ(definition["confidence_level"].get<double>(), 1 - 2 * 0.025);
  const Json& optimizer = definition["accuracy"]["optimizer"];
  EXPECT_EQ(optimizer["beta1"], AdamWConfig().beta1);
  EXPECT_EQ(optimizer["beta2"], AdamWConfig().beta2);
  EXPECT_EQ(optimizer["epsilon"], AdamWConfig().epsilon);
  EXPECT_TRUE(holds("verify/slopes.cc", "double kAllowed = 1e-3;"));
  EXPECT_EQ(definition["verification"]["gradient_bound"], 1e-3);
  EXPECT_TRUE(holds("verify/differences.cc", "double kAllowedDifference = 1e-2;"));
  EXPECT_EQ(definition["verification"]["gradient_bound_by_differences"], 1e-2);
  EXPECT_TRUE(holds("run/sweeper_rounds.cc", "int kMostRepeats = 3;"));
  EXPECT_EQ(definition["speed"]["marked_as_disturbed"]["repeats_of_a_stopped_visit"], 3);
}

TEST(Protocol, TellsEveryProfileWithItsPresets) {
  const Json profiles = protocol_definition()["profiles"];
  EXPECT_EQ(profiles.size(), 7u);
  const Json& names = profiles["quick"]["names"];
  EXPECT_TRUE(says(names["mqar[preset=small]"].dump(), "length=64"));
  EXPECT_EQ(names["truncated[window=16]"], Json::array({"truncated[window=16]"}));
  EXPECT_FALSE(profiles["baselines"]["names"].contains("yoso")) << "of *, which names nothing";
  EXPECT_TRUE(profiles["baselines"]["names"].contains("local[block=16]"));
}

TEST(Protocol, ThePageHasEveryValue) {
  const std::string page = protocol_page();
  EXPECT_TRUE(says(page, fmt::format("attnbench-2, hash {}\n", protocol_hash())));
  for (const char* line : {"  visits  3\n", "    steps  2000\n", "  by  reference, pieces, ident"})
    EXPECT_TRUE(says(page, line));
}

TEST(Protocol, WordsOfARunLine) {
  EXPECT_EQ(protocol_words(Json()), "");
  const Json plain = {{"name", kProtocolName}, {"hash", "0123"}, {"departs", Json::array()}};
  EXPECT_EQ(protocol_words(plain), "attnbench-2 (0123)");
  Json other = plain;
  other["departs"] = {"length", "timeout", "pin"};
  EXPECT_EQ(protocol_words(other), "attnbench-2 (0123), departs in length, timeout, pin");
}

using ProtocolOfRows = FakeSweep;

TEST_F(ProtocolOfRows, TheRunLineNamesItAndWhatDeparts) {
  request_.axes = {{"measure", "memory"}, {"length", "64"}};
  request_.variants = {"full"};
  request_.timeout_s = 0;
  sweep();
  Json wanted = {{"name", kProtocolName}, {"hash", protocol_hash()}, {"departs", Json::array()}};
  EXPECT_EQ(read_rows(request_.output)[0]["protocol"], wanted);
  const auto with_the_run_line_alone = [&] {
    const Json head = read_rows(request_.output)[0];
    RowWriter(request_.output, true).append(head);
  };
  with_the_run_line_alone();
  sweep();
  EXPECT_EQ(read_rows(request_.output).size(), 2u) << "the same question adds no run line";
  with_the_run_line_alone();
  request_.max_memory_bytes = int64_t{1} << 30;
  sweep();
  const std::vector<Json> rows = read_rows(request_.output);
  ASSERT_EQ(rows.size(), 3u) << "the limit is another, and a further run line says so";
  wanted["departs"] = Json::array({"max_memory"});
  EXPECT_EQ(rows[1]["protocol"], wanted);
}

}  // namespace
}  // namespace attn::protocol_test
