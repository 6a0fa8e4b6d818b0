// "Faster than full from": the cases that tables and pictures answer alike, in
// tests/data/faster_from.json.
#include "harness/tables/faster_from.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/store/rows.h"
#include "tests/places.h"

namespace attn::faster_from_test {
namespace {

TimesByLength times_of(const Json& by_length) {
  TimesByLength times;
  for (const auto& [length, ends] : by_length.items())
    times[length] = {ends.at(0).get<double>(), ends.at(1).get<double>(),
                     ends.size() > 2 ? ends.at(2).get<double>() : 0};
  return times;
}

TEST(FasterFrom, AnswersTheSharedCases) {
  std::ifstream file(source_folder() / "tests" / "data" / "faster_from.json");
  const Json cases = Json::parse(file).at("cases");
  ASSERT_GE(cases.size(), 15u);
  for (const Json& one : cases) {
    std::vector<std::string> lengths;
    for (const Json& length : one.at("lengths"))
      lengths.push_back(std::to_string(length.get<int64_t>()));
    const auto floors = one.value("floors", std::map<std::string, double>());
    EXPECT_EQ(faster_from(lengths, times_of(one.at("variant")), times_of(one.at("full")), floors),
              one.at("answer").get<std::string>())
        << one.at("name");
  }
}

}  // namespace
}  // namespace attn::faster_from_test
