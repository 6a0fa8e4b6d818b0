// Every variant of the catalog against every check its traits call for, in float and double, with
// its default parameters and with each other choice of its switches; and every task against every
// check.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "harness/check/contract.h"
#include "harness/check/double_checks.h"
#include "tasks/catalog.h"
#include "variants/api/forgetting.h"
#include "variants/catalog.h"

namespace attn::conformance_test {
namespace {

using attn_check::Level;
using attn_check::Outcome;
using attn_check::Result;
using Given = std::map<std::string, ParamValue>;

struct Case {
  std::string subject, check;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.subject << ' ' << one.check; }

std::vector<Case> variant_cases() {
  std::vector<Case> cases;
  for (const VariantInfo& info : all_variants())
    for (const std::string& check : variant_check_names(info)) cases.push_back({info.name, check});
  return cases;
}

// Variants with the layer of their paper around them.
std::vector<Case> block_cases() {
  std::vector<Case> cases;
  for (const VariantInfo& info : all_variants())
    if (info.block)
      for (const std::string& check : variant_check_names(with_paper_block(info)))
        cases.push_back({info.name, check});
  return cases;
}

std::vector<Case> task_cases() {
  std::vector<Case> cases;
  for (const TaskInfo& info : all_tasks())
    for (const std::string& check : task_check_names()) cases.push_back({info.name, check});
  return cases;
}

bool everything_is_asked() {  // by ATTN_CONFORMANCE=full
  const char* const wanted = std::getenv("ATTN_CONFORMANCE");
  return wanted && std::string_view(wanted) == "full";
}

bool is_shortened() {  // sanitizers slow the checks tenfold: there less is tried
#ifdef ATTN_SANITIZED
  return !everything_is_asked();
#else
  return false;
#endif
}

// The defaults, and one switch at a time at each of its other values; each of these again with
// every size at 3, or windows, blocks and ranks would span the short sequences of the checks.
// Where less is tried, other values than those of `kernel`, which chooses a loop, have small sizes
// alone.
std::vector<Given> configurations(const std::vector<ParamSpec>& specs) {
  std::vector<Given> result = {{}};
  for (const ParamSpec& spec : specs) {
    if (const bool* flag = std::get_if<bool>(&spec.value)) result.push_back({{spec.name, !*flag}});
    for (size_t i = 1; i < spec.choices.size(); i++) {
      const Given given = {{spec.name, spec.choices[i]}};
      if (effective(specs, given) == given) result.push_back(given);
    }
  }
  const std::vector<Given> large = result;
  if (is_shortened())
    std::erase_if(result, [](const Given& one) { return !one.empty() && !one.contains("kernel"); });
  for (const Given& given : large) {
    Given small = given;
    for (const ParamSpec& spec : specs)
      if (std::holds_alternative<int64_t>(spec.value))
        small[spec.name] = std::max(int64_t{3}, static_cast<int64_t>(spec.min));
    small = effective(specs, small);
    if (small != given) result.push_back(small);
  }
  return result;
}

// Where less is tried, a check is run at its quick level, if it has one.
template <class Check>
std::vector<Result> at_level_of_build(const Check& check) {
  if (is_shortened()) {
    auto results = check(Level::quick);
    if (!results.empty()) return results;
  }
  return check(Level::full);
}

void expect_green(const std::vector<Result>& results) {
  for (const Result& result : results)
    EXPECT_NE(result.outcome, Outcome::failed)
        << result.subject << ' ' << result.name << ": " << result.detail;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return info.param.subject + "_" + info.param.check;
}

class VariantConformance : public testing::TestWithParam<Case> {};
TEST_P(VariantConformance, Holds) {
  const auto& [subject, check] = GetParam();
  const VariantInfo& info = find_variant(subject);
  for (const Given& given : configurations(info.params)) {
    // What a decoder forgets changes decoding alone, and the default has passed the other checks.
    const bool decodes = check == "decode" || check == "bfloat16";
    if (!decodes && forgets_of(info, Params(info.name, info.params, given))) continue;
    const auto checked = [&, name = check](Level level) {
      return check_variant(info, given, level, name);
    };
    // References are slow: in full, outputs and decode steps are compared with them at the defaults
    // alone, and not where a reference takes n³ operations, or n² for each of many hashes.
    const bool compares = check == "reference" || check == "decode";
    const bool is_slow = !given.empty() || subject == "oracle_rank" || subject == "yoso";
    const bool in_full = !compares || !is_slow || everything_is_asked();
    const auto results = in_full ? at_level_of_build(checked) : checked(Level::quick);
    EXPECT_FALSE(results.empty());
    expect_green(results);
  }
}
INSTANTIATE_TEST_SUITE_P(Catalog, VariantConformance, testing::ValuesIn(variant_cases()), name_of);

// At the quick level: the mixer inside is checked in full, and the engine is one for all blocks.
class BlockConformance : public testing::TestWithParam<Case> {};
TEST_P(BlockConformance, Holds) {
  const VariantInfo& block = with_paper_block(find_variant(GetParam().subject));
  const bool in_full = everything_is_asked() || (GetParam().subject == "mamba2" && !is_shortened());
  Given given;  // keys that fit into the narrowest heads of the checks
  const std::string key_dim = find_variant(GetParam().subject).block->key_dim;
  if (!key_dim.empty()) given[key_dim] = int64_t{3};
  auto results =
      check_variant(block, given, in_full ? Level::full : Level::quick, GetParam().check);
  if (results.empty()) results = check_variant(block, given, Level::full, GetParam().check);
  EXPECT_FALSE(results.empty());
  expect_green(results);
}
INSTANTIATE_TEST_SUITE_P(Catalog, BlockConformance, testing::ValuesIn(block_cases()), name_of);

class TaskConformance : public testing::TestWithParam<Case> {};
TEST_P(TaskConformance, Holds) {
  const auto results = at_level_of_build([](Level level) {
    return check_task(find_task(GetParam().subject), {}, level, GetParam().check);
  });
  EXPECT_EQ(results.size(), 1U);
  expect_green(results);
}
INSTANTIATE_TEST_SUITE_P(Catalog, TaskConformance, testing::ValuesIn(task_cases()), name_of);

// The float program reaches the double checks, and with the parameters given.
TEST(DoubleBridge, RunsGradientsInDouble) {
  if (!attn_check::checks_in_double()) GTEST_SKIP() << "built without the double twins";
  for (const VariantInfo& info : all_variants()) {
    const auto results = check_variant(info, {}, Level::quick, "gradients");
    ASSERT_EQ(results.size(), 1U) << info.name;
    EXPECT_EQ(results[0].name, "gradients (double)");
    EXPECT_EQ(results[0].outcome, Outcome::passed) << info.name << ": " << results[0].detail;
  }
}

}  // namespace
}  // namespace attn::conformance_test
