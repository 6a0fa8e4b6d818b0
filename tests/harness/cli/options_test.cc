// The command line: options, and what `doctor` finds on the machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "core/base/check.h"
#include "core/simd/product.h"
#include "harness/cli/doctor.h"
#include "harness/cli/machine.h"
#include "harness/cli/options.h"
#include "tests/tasks/data/folder.h"
#include "tests/said.h"

namespace attn::options_test {
namespace {

// Config files and what is wrong with them, and messages of Boost.Program_options.

const cli::Verb kVerb = {
    .name = "run",
    .usage = "",
    .summary = "",
    .options = {
        {"variant", 'v', "SPEC", "", true}, {"length", 0, "LIST", ""}, {"quiet", 'q', "", ""}}};

cli::Arguments merged(const std::string& text) {
  cli::Arguments arguments;
  std::istringstream file(text);
  arguments.merge_config(file, "sweep.conf", kVerb);
  return arguments;
}

TEST(Options, AConfigFileIsLinesOfNameAndValue) {
  const cli::Arguments found = merged(
      "# a sweep\r\n\n  variant = full  # "
      "exact\nvariant=linformer[rank=64]\n\tlength=\"64,128\"\nquiet = false");
  EXPECT_EQ(found.all("variant"), (std::vector<std::string>{"full", "linformer[rank=64]"}));
  EXPECT_EQ(found.get("length"), "64,128");
  EXPECT_FALSE(found.has("quiet"));
}

TEST(Options, AByteOrderMarkOfAConfigFileIsSkipped) {
  EXPECT_EQ(merged("\xEF\xBB\xBFlength = 64\n").get("length"), "64");
}

TEST(Options, AnOptionLikeNoneGetsNoSuggestion) {
  EXPECT_EQ(fault_of([] { merged("zzz = 1"); }),
            "sweep.conf: unknown option 'zzz' (attnbench run --help lists them)");
}

TEST(Options, AFaultOfAConfigFileIsNamed) {
  EXPECT_EQ(fault_of([] { merged("length = 64\n[section]\n"); }),
            "sweep.conf: line 2: '[section]' is not name = value");
  EXPECT_EQ(fault_of([] { merged(" = 64"); }), "sweep.conf: line 1: '= 64' is not name = value");
  EXPECT_TRUE(says(fault_of([] { merged("lenght = 64"); }), "nearest is 'length'"));
  EXPECT_TRUE(says(fault_of([] { merged("length = 64\nlength = 5"); }), "given twice"));
  EXPECT_TRUE(says(fault_of([] { merged("quiet = maybe"); }), "expected true or false"));
}

// Boost replaces marks in its messages until none is left.
TEST(Options, AnOptionNamedAsAMarkIsRefused) {
  EXPECT_EQ(fault_of([] { merged("%invalid_line%"); }),
            "sweep.conf: line 1: '%invalid_line%' is not name = value");
  EXPECT_EQ(fault_of([] { parse(kVerb, {"--%canonical_option%="}); }),
            "the argument for option '--%canonical_option%' should follow immediately after the "
            "equal sign");
  EXPECT_EQ(fault_of([] { parse(kVerb, {"--quiet=1"}); }),
            "option '--quiet' does not take any arguments");
}

// What `attnbench doctor` says of a machine, by the texts that the system's files may hold.

using namespace cli;

TEST(Doctor, HugePagesThatAreOffAreToBeTurnedOn) {
  EXPECT_TRUE(huge_pages_finding("always [madvise] never").is_ok);
  EXPECT_TRUE(huge_pages_finding("[always] madvise never").is_ok);
  EXPECT_TRUE(huge_pages_finding("").is_ok);
  const Finding off = huge_pages_finding("always madvise [never]");
  EXPECT_FALSE(off.is_ok);
  EXPECT_TRUE(says(off.text, "echo madvise"));
}

TEST(Doctor, AGovernorThatChangesTheClockIsNamed) {
  EXPECT_TRUE(governor_finding("performance").is_ok);
  EXPECT_TRUE(governor_finding("").is_ok);
  const Finding found = governor_finding("powersave");
  EXPECT_FALSE(found.is_ok);
  EXPECT_TRUE(says(found.text, "powersave"));
}

TEST(Doctor, PerfIsAllowedUpToLevelTwo) {
  EXPECT_TRUE(perf_finding("2").is_ok);
  EXPECT_TRUE(perf_finding("-1").is_ok);
  EXPECT_TRUE(perf_finding("").is_ok);
  EXPECT_FALSE(perf_finding("3").is_ok);
}

TEST(Doctor, ABusyMachineIsNoPlaceForTimes) {
  EXPECT_TRUE(load_finding("0.42 0.30 0.20 1/200 1234", 2).is_ok);
  EXPECT_FALSE(load_finding("0.60 0.30 0.20 1/200 1234", 2).is_ok);
  EXPECT_TRUE(load_finding("0.60 0.30 0.20 1/200 1234", 4).is_ok);
  EXPECT_TRUE(load_finding("", 4).is_ok);
}

TEST(Doctor, ModulesOfPythonThatAreMissingAreNamed) {
  EXPECT_TRUE(
      python_finding("python numpy pandas scipy matplotlib jsonschema plotly torch\n").is_ok);
  EXPECT_TRUE(python_finding("python numpy pandas scipy matplotlib jsonschema plotly\n").is_ok);
  const Finding found = python_finding("python numpy pandas torch\n");
  EXPECT_FALSE(found.is_ok);
  EXPECT_TRUE(says(found.text, "scipy matplotlib jsonschema plotly"));
  EXPECT_TRUE(says(found.text, "pip install 'attnbench[report]'"));
  EXPECT_FALSE(python_finding("").is_ok);
}

// What `list machine` reads off the system, where it is there and where it is not.

TEST(Machine, IsTheOneThatComputes) {
  const cli::Machine found = cli::this_machine("");
  EXPECT_NE(std::count(found.sets.begin(), found.sets.end(), found.selected), 0);
  EXPECT_EQ(found.tile.rows, kTileRows);
  EXPECT_EQ(found.panel, kPanel);
  EXPECT_GE(found.threads, 1);
  EXPECT_GE(found.cores, 1);
  EXPECT_GE(found.page.value(), 512);
  EXPECT_GT(found.memory.value(), found.page.value());
  EXPECT_GE(found.forward.tile_most, found.forward.tile_least);
  EXPECT_GT(found.forward.strip, 0);
  EXPECT_GT(found.forward.piece, 0);
  const Json json = cli::machine_json(found);
  EXPECT_EQ(json["product"]["lanes"], found.tile.lanes);
  EXPECT_EQ(json["kernel_instruction_set"], found.selected);
  EXPECT_EQ(json["softmax_forward"]["tile_queries_most"], found.forward.tile_most);
  const std::string text = cli::machine_text(found);
  EXPECT_TRUE(says(text, fmt::format("{} rows × {} vectors × {} lanes", found.tile.rows,
                                     found.tile.vectors, found.tile.lanes)));
}

TEST(Machine, WhatIsNotKnownIsSaidToBeUnknown) {
  const Json json = cli::machine_json({});
  for (const char* name : {"processor", "cores", "allowed_cpus", "memory_bytes", "page_bytes"})
    EXPECT_TRUE(json[name].is_null()) << name;
  for (const char* level : {"L1d", "L2", "L3"})
    EXPECT_TRUE(json["cache_bytes"][level].is_null()) << level;
  const std::string text = cli::machine_text({});
  EXPECT_TRUE(says(text, "L1d unknown, L2 unknown, L3 unknown"));
  EXPECT_TRUE(says(text, "unknown logical; this process may use unknown"));
}

TEST(Machine, FloorsAreASpan) {
  cli::Machine machine;
  machine.floors = {{.length = 64, .share = 0.031}, {.length = 128, .share = 0.012}};
  EXPECT_TRUE(says(cli::machine_text(machine), "1.2 to 3.1 %"));
  EXPECT_EQ(cli::machine_json(machine)["noise_floor"].size(), 2u);
}

}  // namespace
}  // namespace attn::options_test
