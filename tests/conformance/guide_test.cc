// The variant of CONTRIBUTING.md's guide, compiled from the page itself: it has to be right word by word.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "harness/check/check.h"

namespace attn {
namespace variants {
VariantInfo relu();  // taken from CONTRIBUTING.md by tests/conformance/guide.cmake
}
namespace {

TEST(Guide, ItsVariantPassesEveryCheck) {
  const auto results = check_variant(variants::relu(), {}, attn_check::Level::full);
  EXPECT_GE(results.size(), 15U);
  for (const attn_check::Result& result : results)
    EXPECT_NE(result.outcome, attn_check::Outcome::failed) << result.name << ": " << result.detail;
}

TEST(Guide, ItsVariantIsShort) {
  std::ifstream file(ATTN_GUIDE_VARIANT);
  int lines = 0;
  for (std::string line; std::getline(file, line); lines++) EXPECT_LE(line.size(), 125U) << line;
  EXPECT_GE(lines, 20);
  EXPECT_LE(lines, 60);
}

}  // namespace
}  // namespace attn
