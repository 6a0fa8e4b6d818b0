// The run-time choice of instruction set; ATTN_ISA in the environment holds every test to one.
#include "core/simd/isa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/check.h"

namespace attn::isa_test {
namespace {

class HeldIsa final : public testing::Environment {
  void SetUp() override {
    if (const char* name = std::getenv("ATTN_ISA")) hold_isa(name);
  }
};
[[maybe_unused]] const testing::Environment* const held =
    testing::AddGlobalTestEnvironment(new HeldIsa);

TEST(Isa, HoldsToWhatIsNamed) {
  const std::string before = isa();
  const std::vector<std::string> all = isas();
  ASSERT_EQ(std::count(all.begin(), all.end(), "scalar"), 1);
  EXPECT_EQ(isa(), before) << "asking changes nothing";
  for (const std::string& name : all) {
    hold_isa(name);
    EXPECT_EQ(isa(), name);
  }
  const std::string compiled = compiled_isa();
  hold_isa("best");
  EXPECT_EQ(compiled_isa(), compiled) << "what is compiled does not follow the switch";
  EXPECT_FALSE(compiled.empty());
  EXPECT_EQ(isa(), all.front());
  try {
    hold_isa("sse9");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("scalar"), std::string::npos) << error.what();
  }
  EXPECT_EQ(isa(), all.front()) << "a refusal changes nothing";
  hold_isa("scalar");
  EXPECT_THROW(hold_isa("sse9"), Error);
  EXPECT_EQ(isa(), "scalar") << "nor what is held";
  EXPECT_EQ(isas(), all);
  EXPECT_EQ(isa(), "scalar");
  hold_isa(before);
}

}  // namespace
}  // namespace attn::isa_test
