// frames against a search for the likeliest segments, written from the datasheet: exact without
// noise, and with it as good on the frames around as on the whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/probes/frames_solver.h"
#include "tests/tasks/score_of.h"

namespace attn::frames_test {
namespace {

using Given = std::map<std::string, ParamValue>;
std::unique_ptr<Task> make(const Given& given) { return find_task("frames").build(given); }

TEST(Frames, WithoutNoiseTheSegmentsAreFoundExactly) {
  const std::vector<Given> settings = {
      {{"noise", 0.0}, {"length", int64_t{96}}},
      {{"noise", 0.0}, {"length", int64_t{64}}, {"closure", int64_t{3}}, {"vowels", int64_t{2}}},
      {{"noise", 0.0},
       {"length", int64_t{80}},
       {"closure", int64_t{20}},
       {"consonants", int64_t{9}}},
      {{"noise", 0.0},
       {"length", int64_t{64}},
       {"channels", int64_t{32}},
       {"vowels", int64_t{20}}}};
  for (const Given& given : settings) {
    const auto task = make(given);
    for (int64_t i = 0; i < 100; i++) {
      const Example e = task->example(5, Split::test, i);
      const auto found = FramesSolver(e, task->params(), 0, task->shape().length).labels();
      ASSERT_EQ(found, e.target) << task->params().str() << " example " << i;
    }
  }
}

// Of the frames in the middle, with all frames and with those within the documented context.
TEST(Frames, TheContextDecidesAsWellAsTheWhole) {
  const auto task = make({{"length", int64_t{128}}});
  const int64_t length = 128, context = task->params().integer("closure") + 2;
  double whole = 0, around = 0, scored = 0;
  for (int64_t i = 0; i < 60; i++) {
    const Example e = task->example(6, Split::test, i);
    const auto all = FramesSolver(e, task->params(), 0, length).labels();
    for (int64_t t = 3 + i % 5; t < length; t += 7, scored++) {
      const int64_t first = std::max<int64_t>(0, t - context - 2),
                    last = std::min(length, t + context + 3);
      const auto few = FramesSolver(e, task->params(), first, last).labels();
      whole += all[static_cast<size_t>(t)] == e.target[static_cast<size_t>(t)];
      around += few[static_cast<size_t>(t - first)] == e.target[static_cast<size_t>(t)];
    }
  }
  EXPECT_GT(whole / scored, 0.97);
  EXPECT_NEAR(around / scored, whole / scored, 0.02);
}

// Without noise every frame is the mean that its label and the borders around ask for; the last
// segment apart, whose other border is cut off.
TEST(Frames, MeansFollowTheDatasheet) {
  const auto task = make({{"length", int64_t{256}}, {"noise", 0.0}});
  for (int64_t i = 0; i < 20; i++) {
    const Example e = task->example(7, Split::test, i);
    const std::vector<int32_t>& label = e.target;
    for (size_t t = 0, begin = 0, end = 0; t < 256; t++) {
      if (t == end) {
        begin = t;
        while (end < 256 && label[end] == label[begin]) end++;
      }
      if (end == 256) break;
      for (size_t c = 0; c < 16; c++) {
        const auto walsh = [&](size_t row) { return std::popcount(row & c) % 2 ? -1.0 : 1.0; };
        const double shares[] = {1, 0.75, 0.5};
        const auto row = static_cast<size_t>(label[t]) + 1;
        double mean = walsh(row > 6 ? 0 : row);
        if (row <= 6 && t - begin < 3 && begin > 0)
          mean += shares[t - begin] * walsh(static_cast<size_t>(label[begin - 1]) + 1);
        if (row <= 6 && end - 1 - t < 3)
          mean += shares[end - 1 - t] * walsh(static_cast<size_t>(label[end]) + 1);
        ASSERT_EQ(e.values[t * 16 + c], static_cast<float>(mean)) << t << ' ' << c;
      }
    }
  }
}

// Vowels, consonants and lasting times are uniform: within five deviations.
TEST(Frames, SegmentsFollowTheDatasheet) {
  const auto task = make({{"length", int64_t{512}}, {"noise", 0.0}});
  std::map<int64_t, double> vowels, closures, labels;
  for (int64_t i = 0; i < 100; i++) {
    const Example e = task->example(4, Split::train, i);
    size_t begin = 0, segment = 0;
    for (size_t t = 1; t < e.target.size(); t++) {
      if (e.target[t] == e.target[t - 1]) continue;
      ASSERT_NE(e.target[t] < 6, e.target[t - 1] < 6);  // by turns
      if (segment++ > 0 && begin < 480) {               // none that the end could cut
        (e.target[t - 1] < 6 ? vowels : closures)[static_cast<int64_t>(t - begin)]++;
        labels[e.target[t - 1]]++;
      }
      begin = t;
    }
  }
  EXPECT_EQ(vowels.begin()->first, 6);
  EXPECT_EQ(closures.begin()->first, 3);
  EXPECT_EQ(closures.rbegin()->first, 16);
  EXPECT_EQ(labels.size(), 12u);
  for (const auto& [counts, kinds] :
       {std::pair{vowels, 7.0}, std::pair{closures, 14.0}, std::pair{labels, 12.0}}) {
    EXPECT_EQ(static_cast<double>(counts.size()), kinds);
    double total = 0;
    for (const auto& [what, count] : counts) total += count;
    for (const auto& [what, count] : counts)
      EXPECT_NEAR(count, total / kinds, 5 * std::sqrt(total / kinds)) << what;
  }
}

// The noise is the difference to the same draw without any.
TEST(Frames, NoiseIsNormal) {
  const auto with = make({{"noise", 2.0}}), without = make({{"noise", 0.0}});
  double square = 0, fourth = 0, sum = 0, count = 0;
  for (int64_t i = 0; i < 20; i++) {
    const Example a = with->any_example(7, Split::train, i),
                  b = without->any_example(7, Split::train, i);
    ASSERT_EQ(a.target, b.target);
    for (size_t k = 0; k < a.values.size(); k++, count++) {
      const double x = (static_cast<double>(a.values[k]) - static_cast<double>(b.values[k])) / 2;
      sum += x;
      square += x * x;
      fourth += x * x * x * x;
    }
  }
  EXPECT_NEAR(sum / count, 0, 5 / std::sqrt(count));
  EXPECT_NEAR(square / count, 1, 5 * std::sqrt(2 / count));
  EXPECT_NEAR(fourth / count, 3, 5 * std::sqrt(96 / count));
}

// A consonant's frames are the same whichever it is; another consonant changes its vowels' borders,
// and nothing farther away than the context.
TEST(Frames, DistancesLeadToTheNearestVowel) {
  const auto task = make({});
  for (int64_t i = 0; i < 20; i++) {
    const Example e = task->example(1, Split::test, i);
    ASSERT_EQ(e.evidence.size(), e.target.size());
    for (int64_t t = 0; t < 512; t++) {
      int64_t nearest = 512;
      for (int64_t other = 0; other < 512; other++)
        if (e.target[static_cast<size_t>(other)] < 6)
          nearest = std::min(nearest, std::abs(other - t));
      ASSERT_EQ(e.distances[static_cast<size_t>(t)], nearest) << t;
    }
  }
}

TEST(Frames, AFrameAloneCannotTellTheConsonants) {
  const auto task = make({});
  const TaskShape shape = task->shape();
  EXPECT_EQ(shape.channels, 16);
  EXPECT_EQ(shape.classes, 12);
  EXPECT_FALSE(shape.causal);
  EXPECT_DOUBLE_EQ(task->chance(), 1.0 / 12);
  const std::vector<Shortcut> shortcuts = task->shortcuts(1, 1000, 1000);
  // Every vowel right and a sixth of the consonants: 9 and 9.5 frames on average.
  EXPECT_LT(score_of(shortcuts, "values there"), (9 + 9.5 / 6) / 18.5 + 0.02);
  EXPECT_GT(score_of(shortcuts, "values there"), 0.5);
  // A window of 16 does not reach across the longer consonants: a line through it is no solution.
  EXPECT_GT(score_of(shortcuts, "window of 16 (best)"), 0.8);
  EXPECT_LT(score_of(shortcuts, "window of 16 (best)"), 0.92);
}

TEST(Frames, BadParametersAreClearErrors) {
  const auto message = [](const Given& given) -> std::string {
    try {
      make(given);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message({{"closure", int64_t{64}}, {"length", int64_t{64}}}).find("closure=64"),
            std::string::npos);
  EXPECT_NE(message({{"channels", int64_t{12}}}).find("channels=12"), std::string::npos);
  EXPECT_NE(message({{"vowels", int64_t{10}}}).find("more than 16 channels"), std::string::npos);
  EXPECT_EQ(message({{"vowels", int64_t{9}}}), "");
}

}  // namespace
}  // namespace attn::frames_test
