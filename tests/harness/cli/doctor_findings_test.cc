// What `attnbench doctor` says of a machine, by the texts that the system's files may hold.
#include <gtest/gtest.h>

#include "harness/cli/doctor.h"

namespace attn::doctor_findings_test {
namespace {

using namespace cli;

TEST(Doctor, HugePagesThatAreOffAreToBeTurnedOn) {
  EXPECT_TRUE(huge_pages_finding("always [madvise] never").is_ok);
  EXPECT_TRUE(huge_pages_finding("[always] madvise never").is_ok);
  EXPECT_TRUE(huge_pages_finding("").is_ok);
  const Finding off = huge_pages_finding("always madvise [never]");
  EXPECT_FALSE(off.is_ok);
  EXPECT_NE(off.text.find("echo madvise"), std::string::npos);
}

TEST(Doctor, AGovernorThatChangesTheClockIsNamed) {
  EXPECT_TRUE(governor_finding("performance").is_ok);
  EXPECT_TRUE(governor_finding("").is_ok);
  const Finding found = governor_finding("powersave");
  EXPECT_FALSE(found.is_ok);
  EXPECT_NE(found.text.find("powersave"), std::string::npos);
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
  EXPECT_TRUE(python_finding("python numpy pandas matplotlib plotly torch\n").is_ok);
  EXPECT_TRUE(python_finding("python numpy pandas matplotlib plotly\n").is_ok);
  const Finding found = python_finding("python numpy pandas torch\n");
  EXPECT_FALSE(found.is_ok);
  EXPECT_NE(found.text.find("matplotlib plotly"), std::string::npos);
  EXPECT_FALSE(python_finding("").is_ok);
}

}  // namespace
}  // namespace attn::doctor_findings_test
