// What `run --breakdown` asks of the visits of a speed cell, and what their row then says.
#include <gtest/gtest.h>

#include "harness/cell/codec.h"
#include "harness/store/schema.h"
#include "tests/harness/run/fake_cell.h"

namespace attn::speed_cell_test {
namespace {

class SpeedCellBreakdown : public FakeSweep {
 protected:
  void SetUp() override {
    FakeSweep::SetUp();
    request_.axes = {{"measure", "speed"}, {"length", "64"}, {"repetitions", "3"}};
    request_.variants = {"full"};
  }
};

TEST_F(SpeedCellBreakdown, IsOfAllVisitsTogether) {
  request_.breakdown = true;
  behave(
      R"(*'"breakdown":true'*) echo '{"status":"ok","reason":null,"samples":[0.5],"flops":1000,)"
      R"("marked":{"marked_s":[0.5,0.3],"plain_s":[0.4,0.3],"part_s":{"products":0.6,"masks":0.2},)"
      R"("passes":2,"marks":10}}';;)");
  const Json row = lines(sweep()).at(0);
  ASSERT_EQ(row["status"], "ok") << row["reason"];
  EXPECT_EQ(requests("measure").size(), 3u);
  const Json& breakdown = row["metrics"]["breakdown"];
  EXPECT_EQ(breakdown["passes"], 6) << "2 of each of 3 visits";
  EXPECT_DOUBLE_EQ(breakdown["pass_s"], 0.4);
  EXPECT_DOUBLE_EQ(breakdown["marks"], 5);
  EXPECT_DOUBLE_EQ(breakdown["overhead"], 0.25) << "three pairs of 5:4 and three of 1:1, the upper";
  EXPECT_EQ(breakdown["shares"].size(), 2u);
  EXPECT_DOUBLE_EQ(breakdown["shares"]["products"], 0.75);
  EXPECT_DOUBLE_EQ(breakdown["shares"]["masks"], 0.25);
  EXPECT_DOUBLE_EQ(row["metrics"]["time_s"]["median"], 0.5) << "of the samples alone";
  EXPECT_EQ(schema_fault(row), "");
  EXPECT_EQ(to_json(row_of(row)), row) << "through JSON and back";
}

TEST_F(SpeedCellBreakdown, IsNotThereUnlessAskedFor) {
  const Json row = lines(sweep()).at(0);
  EXPECT_FALSE(row["metrics"].contains("breakdown"));
  for (const Json& request : requests("measure")) EXPECT_FALSE(request.contains("breakdown"));
}

TEST_F(SpeedCellBreakdown, DoesNotChangeTheCell) {
  const std::string plain = plan(request_).cells.at(0).id;
  request_.breakdown = true;
  EXPECT_EQ(plan(request_).cells.at(0).id, plain);
}

TEST_F(SpeedCellBreakdown, TheSchemaNamesAFault) {
  request_.breakdown = true;
  behave(
      R"(*'"breakdown":true'*) echo '{"status":"ok","reason":null,"samples":[0.5],"flops":1000,)"
      R"("marked":{"marked_s":[1],"plain_s":[1],"part_s":{"other":1},"passes":1,"marks":0}}';;)");
  Json row = lines(sweep()).at(0);
  EXPECT_EQ(schema_fault(row), "");
  row["metrics"]["breakdown"]["shares"]["other"] = 1.5;
  EXPECT_EQ(schema_fault(row), "metrics.breakdown.shares.other: 1.5 is above 1");
  row["metrics"]["breakdown"].erase("shares");
  EXPECT_NE(schema_fault(row), "");
}

}  // namespace
}  // namespace attn::speed_cell_test
