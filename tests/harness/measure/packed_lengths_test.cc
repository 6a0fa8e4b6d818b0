// Words of packed lengths: drawn ones are the same for every seed but for their order, and a slip
// is one clear line.
#include "harness/measure/packed_lengths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/said.h"

namespace attn::packed_lengths_test {
namespace {

using Lengths = std::vector<int64_t>;

Lengths sorted(Lengths lengths) {
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

TEST(PackedLengths, UniformOnesAreEvenlySpaced) {
  EXPECT_EQ(sorted(packed_lengths("uniform", 4, 1000, 3)), (Lengths{250, 500, 750, 1000}));
  EXPECT_EQ(packed_lengths("uniform", 1, 77, 3), Lengths{77});
}

TEST(PackedLengths, LogNormalOnesAreMostlyShort) {
  const Lengths lengths = sorted(packed_lengths("lognormal", 33, 4096, 0));
  EXPECT_EQ(lengths.back(), 4096);
  double mean = 0, deviation = 0;
  for (const int64_t length : lengths) mean += std::log(double(length)) / 33;
  for (const int64_t length : lengths)
    deviation += std::pow(std::log(double(length)) - mean, 2) / 33;
  EXPECT_NEAR(std::sqrt(deviation), 1, 0.05);
  EXPECT_NEAR(std::log(double(lengths[16])), mean, 0.01) << "the median is the mean of logarithms";
  EXPECT_EQ(sorted(packed_lengths("lognormal", 500, 8, 0)).front(), 1) << "none is empty";
}

TEST(PackedLengths, ASeedDecidesTheOrderAlone) {
  const Lengths one = packed_lengths("uniform", 16, 1024, 1),
                two = packed_lengths("uniform", 16, 1024, 2);
  EXPECT_EQ(sorted(one), sorted(two));
  EXPECT_NE(one, two);
  EXPECT_FALSE(std::is_sorted(one.begin(), one.end()));
  EXPECT_EQ(one, packed_lengths("uniform", 16, 1024, 1));
}

TEST(PackedLengths, AListIsAsItSays) {
  EXPECT_EQ(packed_lengths("3q64_q2k_q5", 9, 9, 9), (Lengths{64, 64, 64, 2048, 5}));
  EXPECT_EQ(packed_word("3q64_1q2048"), "3q64_q2k");
  EXPECT_EQ(packed_word("lognormal"), "lognormal");
  EXPECT_TRUE(is_list_of_lengths("q8"));
  EXPECT_FALSE(is_list_of_lengths("uniform"));
}

TEST(PackedLengths, ASlipIsNamed) {
  EXPECT_TRUE(says(fault_of([] { packed_word("gamma"); }),
                   "packed 'gamma' is no word; expected uniform, lognormal or a list"));
  EXPECT_TRUE(says(fault_of([] { packed_word(""); }), "packed ''"));
  EXPECT_TRUE(says(fault_of([] { packed_word("3q64_q1kv8"); }), "leave out kv8"));
  EXPECT_TRUE(says(fault_of([] { packed_word("3x64"); }), "3x64"));
}

}  // namespace
}  // namespace attn::packed_lengths_test
