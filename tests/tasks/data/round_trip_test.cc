// Every task that has a released format: generated examples are written in it, read back through
// the task's `data` parameter, and are the same in every split.
#include <gtest/gtest.h>

#include <algorithm>

#include "tasks/catalog.h"
#include "tasks/data/files.h"
#include "tasks/data/released.h"
#include "tests/tasks/data/folder.h"
#include "tests/said.h"

namespace attn::round_trip_test {

void PrintTo(const TaskInfo& info, std::ostream* out) { *out << info.name; }

namespace {

constexpr uint64_t kSeed = 3;
constexpr int64_t kCount = 4;

using Values = std::map<std::string, ParamValue>;

// Quick settings in which the released format exists.
Values setting(const std::string& name) {
  if (name == "listops") return {{"length", int64_t{80}}, {"min_length", int64_t{3}}};
  if (name == "text" || name == "retrieval") return {{"length", int64_t{200}}};
  return {{"preset", std::string("lra")}};
}

std::vector<TaskInfo> with_format() {
  std::vector<TaskInfo> found;
  for (const TaskInfo& info : all_tasks())
    if (info.released) found.push_back(info);
  return found;
}

class RoundTrip : public testing::TestWithParam<TaskInfo> {
 protected:
  // Writes `count` examples and gives the task that reads them.
  std::unique_ptr<Task> written(const Task& task, int64_t count) const {
    const ReleasedFormat& format = *GetParam().released;
    const std::string root = folder_.path() + "/" + format.folder(task);
    data::make_folder(root);
    format.write(task, kSeed, count, root);
    Values values = setting(GetParam().name);
    values["data"] = folder_.path();
    return GetParam().build(values);
  }
  Folder folder_;
};

TEST_P(RoundTrip, ExamplesComeBackAsWritten) {
  const auto task = GetParam().build(setting(GetParam().name));
  const auto back = written(*task, kCount);
  ASSERT_NE(back->source(), nullptr);
  EXPECT_EQ(back->source()->duplicates(), 0);
  const int64_t train = kCount * GetParam().released->train_share;
  EXPECT_EQ(back->count(Split::train), train);
  EXPECT_EQ(back->count(Split::validation), kCount);
  EXPECT_EQ(back->count(Split::test), kCount);
  EXPECT_EQ(back->shape().length, task->shape().length);
  for (const Split split : {Split::train, Split::validation, Split::test})
    for (int64_t i = 0; i < (split == Split::train ? train : kCount); i++) {
      SCOPED_TRACE(fmt::format("{} {}", to_string(split), i));
      const Example a = task->example(kSeed, split, i), b = back->example(0, split, i);
      EXPECT_EQ(a.tokens, b.tokens);
      EXPECT_EQ(a.second, b.second);
      EXPECT_EQ(a.target, b.target);
      EXPECT_EQ(a.values.size(), b.values.size());
      EXPECT_EQ(task->picture(a), back->picture(b));
      EXPECT_FALSE(back->draw(b).empty());
      if (!b.evidence.empty()) {
        EXPECT_EQ(a.evidence, b.evidence);
      }
    }
}

TEST_P(RoundTrip, AMissingFolderIsAnError) {
  Values values = setting(GetParam().name);
  values["data"] = folder_.path() + "/none";
  EXPECT_TRUE(says(fault_of([&] { GetParam().build(values); }), "/none"));
  values["data"] = folder_.path();
  EXPECT_TRUE(says(fault_of([&] { GetParam().build(values); }), "expected"));
}

INSTANTIATE_TEST_SUITE_P(Tasks, RoundTrip, testing::ValuesIn(with_format()),
                         [](const auto& each) { return each.param.name; });

TEST(Released, SettingsOutsideTheFormatAreRefused) {
  const TaskInfo& image = find_task("image");
  const auto small = image.build({{"side", int64_t{16}}});
  EXPECT_TRUE(says(fault_of([&] { image.released->folder(*small); }), "side=32"));
  EXPECT_EQ(find_task("mqar").released, nullptr);
}

}  // namespace
}  // namespace attn::round_trip_test
