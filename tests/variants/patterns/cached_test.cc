// The cache of the last value: made once for a key, anew for another, by one of several threads.
#include "variants/patterns/cached.h"

#include <gtest/gtest.h>

#include "core/base/parallel.h"

namespace attn::cached_test {
namespace {

TEST(Cached, MakesAValueOnceForEachKeyInARow) {
  const Cached<int64_t, int64_t> cached;
  int made = 0;
  const auto get = [&](int64_t key) {
    return cached.get(key, [&] {
      ++made;
      return std::make_shared<const int64_t>(10 * key);
    });
  };
  const auto first = get(0);  // the default of a key is no key yet
  EXPECT_EQ(*first, 0);
  EXPECT_EQ(get(0), first);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(*get(7), 70);
  EXPECT_EQ(*first, 0) << "who holds a value keeps it";
  EXPECT_EQ(*get(0), 0);
  EXPECT_EQ(made, 3);
}

TEST(Cached, ServesSeveralThreads) {
  const Cached<int64_t, int64_t> cached;
  set_threads(4);
  parallel_for(400, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      EXPECT_EQ(*cached.get(i % 3, [&] { return std::make_shared<const int64_t>(i % 3); }), i % 3);
  });
  set_threads(1);
}

}  // namespace
}  // namespace attn::cached_test
