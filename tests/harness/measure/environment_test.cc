// Every field of the contract is there, in its type, and nothing names the machine.
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "harness/measure/environment.h"
#include "harness/store/schema.h"
#include "tests/harness/store/sample_rows.h"

namespace attn::environment_test {
namespace {

TEST(Environment, KeepsTheSchema) {
  Json run = sample_run();
  Json object = {{"calibration", nullptr}};
  for (const EnvironmentField& field : environment()) {
    EXPECT_FALSE(object.contains(field.name)) << field.name;
    Json value = field.value;
    if (field.value.empty())
      value = nullptr;
    else if (field.is_number || field.is_flag)
      value = Json::parse(field.value);
    object[field.name] = value;
  }
  run["environment"] = object;
  EXPECT_EQ(schema_fault(run), "") << object.dump(1);
}

TEST(Environment, SaysHowItWasBuilt) {
  std::map<std::string, std::string> fields;
  for (const EnvironmentField& field : environment()) fields[field.name] = field.value;
  EXPECT_TRUE(fields["benchmark_library_build"] == "debug" ||
              fields["benchmark_library_build"] == "release");
  for (const char* library :
       {"Eigen 3.", "Google Benchmark 1.", "fmt ", "Boost 1.", "nlohmann-json 3."}) {
    EXPECT_NE(fields["libraries"].find(library), std::string::npos) << library;
  }
  EXPECT_NE(fields["flags"].find("-O"), std::string::npos);
  EXPECT_EQ(fields["flags"].find('$'), std::string::npos);
  const bool no_commit = fields["commit"].empty();
  EXPECT_TRUE(no_commit || fields["commit"].size() == 40) << fields["commit"];
  EXPECT_EQ(fields["dirty"].empty(), no_commit);
#ifdef __AVX512F__
  EXPECT_EQ(fields["instruction_set"], "avx512");
#endif
}

TEST(Environment, NamesNoHost) {
  char host[256] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  if (std::string(host).size() < 4) GTEST_SKIP() << "the host's name is too short to look for";
  for (const EnvironmentField& field : environment()) {
    EXPECT_EQ(field.value.find(host), std::string::npos) << field.name;
  }
}

}  // namespace
}  // namespace attn::environment_test
