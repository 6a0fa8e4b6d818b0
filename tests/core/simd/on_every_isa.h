// A fixture that runs a body on each instruction set of this machine, or compares their results.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/real.h"
#include "core/base/rng.h"
#include "core/simd/isa.h"

namespace attn {

// Standard normal numbers of a stream of its own.
inline std::vector<real> normals(int64_t count, const char* name) {
  Rng random = rng(3, name);
  std::vector<real> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<real>(random.normal()));
  return numbers;
}

class OnEveryIsa : public testing::Test {
 protected:
  void TearDown() override { hold_isa(before_); }
  template <class Body>
  void each(const Body& body) {
    for (const std::string& name : isas()) {
      SCOPED_TRACE(name);
      hold_isa(name);
      body();
    }
  }

  // `results()` runs every kernel that sums, or multiplies and adds, on one fixed input and returns
  // pairs of the kernel's name and its numbers. Vector code fuses operations and sums in another
  // order, so its bits differ from those of scalar code, and only its bits do.
  template <class Results>
  void expect_that_each_switches(const Results& results) {
    const std::vector<std::string> sets = isas();
    if (sets.front() == "scalar") GTEST_SKIP() << "this machine has scalar code alone";
    hold_isa(sets.front());
    const auto best = results(), again = results();
    hold_isa("scalar");
    const auto scalar = results();
    for (size_t k = 0; k < best.size(); ++k) {
      const auto& [name, row] = best[k];
      EXPECT_NE(row, scalar[k].second) << name;
      EXPECT_EQ(row, again[k].second) << name;
      for (size_t j = 0; j < row.size(); ++j)
        ASSERT_NEAR(row[j], scalar[k].second[j], 2000 * static_cast<double>(kEpsilon)) << name;
    }
  }

 private:
  std::string before_ = isa();
};

}  // namespace attn
