// Contract checks that passed are not repeated, until something that they depend on changes.
#include <gtest/gtest.h>

#include <fstream>

#include "harness/store/user_cache.h"
#include "tests/harness/run/fake_cell.h"

namespace attn::passed_checks_test {
namespace {

class PassedChecks : public FakeSweep {
 protected:
  void SetUp() override {
    FakeSweep::SetUp();
    request_.axes = {{"measure", "memory"}, {"length", "64"}};
    request_.variants = {"full", "linear"};
    request_.passed_checks = folder_ + "/cache/checks.json";
  }
  // How many subjects a further sweep checks, into a file of its own.
  size_t checked() {
    const size_t before = requests("check").size();
    request_.output = folder_ + "/rows" + std::to_string(sweeps_++) + ".jsonl";
    sweep();
    return requests("check").size() - before;
  }
  int sweeps_ = 0;
};

TEST_F(PassedChecks, AreNotRepeated) {
  EXPECT_EQ(checked(), 2u);
  EXPECT_EQ(checked(), 0u);
  request_.axes["length"] = "128,256";
  EXPECT_EQ(checked(), 0u) << "checks have lengths of their own";
  request_.variants.emplace_back("linformer");
  EXPECT_EQ(checked(), 1u);
}

TEST_F(PassedChecks, AreRepeatedForAnotherShapeOrParameter) {
  checked();
  for (const auto& [axis, values] :
       {std::pair{"head_dim", "40"}, {"heads", "3"}, {"causal", "true"}}) {
    request_.axes[axis] = values;
    EXPECT_EQ(checked(), 2u) << axis;
    EXPECT_EQ(checked(), 0u) << axis;
  }
  request_.variants = {"truncated"};
  EXPECT_EQ(checked(), 1u);
  request_.variants = {"truncated[window=7]"};
  EXPECT_EQ(checked(), 1u);
}

TEST_F(PassedChecks, OfSeveralShapesCountForEach) {
  request_.axes["head_dim"] = "16,40";
  EXPECT_EQ(checked(), 2u);
  request_.axes["head_dim"] = "40";
  EXPECT_EQ(checked(), 0u);
  request_.axes["head_dim"] = "40,48";
  EXPECT_EQ(checked(), 2u);
  EXPECT_EQ(requests("check").back().at("shapes").size(), 1u) << "the other one passed";
}

TEST(UserCache, KeepsWhatTwoProgramsFound) {
  const std::string file = testing::TempDir() + "/two_programs.json";
  std::remove(file.c_str());
  UserCache one(file), other(file);
  one.keep("a", 1);
  other.keep("b", 2);
  one.keep("c", 3);
  const UserCache all(file);
  for (const char* hash : {"a", "b", "c"}) EXPECT_NE(all.find(hash), nullptr) << hash;
}

TEST_F(PassedChecks, AreRepeatedByForceAndWithoutAFileOrAfterItIsDamaged) {
  checked();
  request_.force = true;
  EXPECT_EQ(checked(), 2u);
  request_.force = false;
  std::ofstream(request_.passed_checks) << "{\"torn";
  EXPECT_EQ(checked(), 2u);
  EXPECT_EQ(checked(), 0u);
  request_.passed_checks = "";
  EXPECT_EQ(checked(), 2u);
  EXPECT_EQ(checked(), 2u);
}

TEST_F(PassedChecks, RedOnesAreNotKept) {
  behave(
      R"(*'"do":"check"'*'"full"'*) echo '{"status":"ok","reason":null,"red":"padding","detail":"0.3"}';;)");
  EXPECT_EQ(checked(), 2u);
  EXPECT_EQ(checked(), 1u);
  behave("");
  EXPECT_EQ(checked(), 1u);
  EXPECT_EQ(checked(), 0u);
}

}  // namespace
}  // namespace attn::passed_checks_test
