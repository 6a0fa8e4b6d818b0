// The variant of CONTRIBUTING.md's guide, compiled from the page itself: it has to be right word by
// word.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "harness/check/contract.h"
#include "tests/places.h"

namespace attn::variants {
VariantInfo softplus();  // taken from CONTRIBUTING.md by tests/conformance/guide.cmake
}

namespace attn::guide_test {
namespace {

// Characters: UTF-8's continuation bytes take no room.
int columns(const std::string& line) {
  return static_cast<int>(
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

TEST(Guide, ItsVariantPassesEveryCheck) {
  const auto results = check_variant(
      variants::softplus(), {}, kIsDouble ? attn_check::Level::quick : attn_check::Level::full);
  EXPECT_GE(results.size(), 12U);
  for (const attn_check::Result& result : results) {
    EXPECT_NE(result.outcome, attn_check::Outcome::failed) << result.name << ": " << result.detail;
  }
}

TEST(Guide, ItsVariantIsShort) {
  std::ifstream file(guide_variant_file());
  int lines = 0;
  for (std::string line; std::getline(file, line); lines++) EXPECT_LE(columns(line), 100) << line;
  EXPECT_GE(lines, 20);
  EXPECT_LE(lines, 50);
}

}  // namespace
}  // namespace attn::guide_test
