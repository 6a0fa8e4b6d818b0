// frames against a search for the likeliest segments, written from the datasheet: exact without
// noise, and with it as good on the frames around as on the whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include <cstdint>
#include <limits>
#include <vector>
#include "tasks/api/task.h"
#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"
#include "tests/said.h"

namespace attn::frames_test {
namespace {

// A search for the likeliest vowels and consonants of frames, written from the task's datasheet:
// the exact solver of tests. O(frames · closure · consonants · vowels).

// The likeliest segments of frames [first, last), vowels and consonants by turns, by dynamic
// programming over their ends. Log-likelihoods times the noise's variance, less what all share:
// x·mean − mean·mean/2, where the W are orthogonal.
class FramesSolver {
 public:
  FramesSolver(const Example& e, const Params& p, int64_t first, int64_t last)
      : channels_(p.integer("channels")),
        vowels_(p.integer("vowels")),
        consonants_(p.integer("consonants")),
        closure_(p.integer("closure")),
        size_(last - first) {
    for (int64_t row = 0; row <= vowels_ + consonants_; row++) {
      sums_.emplace_back(1, 0.0);
      for (int64_t t = first; t < last; t++) {
        double product = 0;
        for (int64_t c = 0; c < channels_; c++)
          product += static_cast<double>(e.values[static_cast<size_t>(t * channels_ + c)]) *
                     (std::popcount(static_cast<uint64_t>(row & c)) % 2 ? -1 : 1);
        sums_.back().push_back(sums_.back().back() + product);
      }
    }
  }

  std::vector<int32_t> labels() {
    // best_[t][v]: of frames 0..t, where a vowel v or (at v = vowels) the sequence ends at t.
    best_.assign(static_cast<size_t>(size_ + 1), std::vector<Entry>(names() + 1));
    best_[0][names()].score = 0;
    closed_.assign(static_cast<size_t>(size_), std::vector<Entry>(at(consonants_)));
    for (int64_t t = 0; t < size_; t++) {
      for (const Entry& closure : closed_[at(t)])
        if (closure.score != kNever) vowels_after(closure);
      if (t == 0) closures_from(t, names());
      for (size_t v = 0; v <= names(); v++) {
        if (best_[at(t)][v].score == kNever) continue;
        if (v < names()) closures_from(t, v);
        if (t == 0) vowels_from(t, v, -1);
      }
    }
    return trace();
  }

 private:
  static constexpr double kNever = -std::numeric_limits<double>::infinity();
  struct Entry {
    double score = kNever;
    int64_t from = -1;       // where the vowel before ended
    size_t vowel = 0;        // which it was
    int64_t border = -1;     // where the closure between ended
    int64_t consonant = -1;  // and which it was
  };
  static size_t at(int64_t t) { return static_cast<size_t>(t); }
  size_t names() const { return static_cast<size_t>(vowels_); }
  double half() const { return static_cast<double>(channels_) / 2; }
  double heard(int64_t row, int64_t begin, int64_t end) const {
    return sums_[at(row)][at(end)] - sums_[at(row)][at(begin)];
  }
  double transition(int64_t consonant, int64_t t, double share) const {
    return share * heard(1 + vowels_ + consonant, t, t + 1) - half() * share * share;
  }
  // In frames from `t` on, step by step (1 ahead, -1 back), within [0, size).
  double transitions(int64_t consonant, int64_t t, int64_t step) const {
    double sum = 0;
    for (const double share : {1.0, 0.75, 0.5}) {
      if (t < 0 || t >= size_) break;
      sum += transition(consonant, t, share);
      t += step;
    }
    return sum;
  }
  static void offer(const Entry& entry, Entry& held) {
    if (entry.score > held.score) held = entry;
  }

  // A closure from t (after vowel `before`, or the start), then a vowel; either may be cut off.
  void closures_from(int64_t t, size_t before) {
    const double so_far = best_[at(t)][before].score;
    for (int64_t n = 1; n <= closure_ && t + n <= size_; n++) {
      const int64_t end = t + n;
      if (n < 3 && t > 0 && end < size_) continue;
      const double silent = so_far + heard(0, t, end) - half() * static_cast<double>(n);
      for (int64_t c = 0; c < consonants_; c++) {
        const double left = before < names() ? transitions(c, t - 1, -1) : 0;
        const Entry entry{silent + left, t, before, end, c};
        if (end == size_)
          offer(entry, best_[at(size_)][names()]);
        else
          offer(entry, closed_[at(end)][at(c)]);
      }
    }
  }
  void vowels_after(const Entry& closure) {
    const int64_t t = closure.border;
    for (size_t v = 0; v < names(); v++) {
      const double left = transitions(closure.consonant, t, 1);
      for (int64_t n = 1; n <= 12 && t + n <= size_; n++) {
        if (n < 6 && t + n < size_) continue;
        Entry entry = closure;
        entry.score += left + vowel(v, t, n);
        end_vowel(t + n, v, n, entry);
      }
    }
  }
  void vowels_from(int64_t t, size_t before, int64_t border) {
    for (size_t v = 0; v < names(); v++)
      for (int64_t n = 1; n <= 12 && t + n <= size_; n++)
        end_vowel(t + n, v, 6,
                  {best_[at(t)][before].score + vowel(v, t, n), t, before, border, -1});
  }
  double vowel(size_t v, int64_t t, int64_t n) const {
    return heard(1 + static_cast<int64_t>(v), t, t + n) - half() * static_cast<double>(n);
  }
  // The last vowel of all may carry the border of a consonant that is cut off, `cut` frames of its
  // own with it; it has six at least, of which `frames` are there.
  void end_vowel(int64_t end, size_t v, int64_t frames, Entry entry) {
    offer(entry, best_[at(end)][v]);
    if (end < size_) return;
    const double plain = entry.score;
    for (int64_t c = 0; c < consonants_; c++)
      for (int64_t cut = 0; cut < 3; cut++) {
        if (frames + cut < 6) continue;
        const double shares[] = {1.0, 0.75, 0.5};
        double sum = 0;
        for (int64_t i = cut; i < 3 && end - 1 - (i - cut) >= 0; i++)
          sum += transition(c, end - 1 - (i - cut), shares[i]);
        entry.score = plain + sum;
        offer(entry, best_[at(end)][v]);
      }
  }

  std::vector<int32_t> trace() const {
    std::vector<int32_t> labels(at(size_), -1);
    const auto fill = [&](int64_t begin, int64_t end, int64_t label) {
      for (int64_t t = begin; t < end; t++) labels[at(t)] = static_cast<int32_t>(label);
    };
    size_t v = 0;
    for (size_t name = 0; name <= names(); name++)
      if (best_[at(size_)][name].score > best_[at(size_)][v].score) v = name;
    for (int64_t t = size_; t > 0;) {
      const Entry& e = best_[at(t)][v];
      const int64_t border = e.border < 0 ? e.from : e.border;
      if (v < names()) fill(border, t, static_cast<int64_t>(v));
      if (e.border >= 0) fill(e.from, e.border, vowels_ + e.consonant);
      t = e.from;
      v = e.vowel;
    }
    return labels;
  }

  int64_t channels_, vowels_, consonants_, closure_, size_;
  std::vector<std::vector<double>> sums_;  // [row][t]: of products with W(row) before t
  std::vector<std::vector<Entry>> best_;
  std::vector<std::vector<Entry>> closed_;  // [t][c]: where a closure of consonant c ends at t
};

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
    return fault_of([&] { make(given); });
  };
  EXPECT_TRUE(says(message({{"closure", int64_t{64}}, {"length", int64_t{64}}}), "closure=64"));
  EXPECT_TRUE(says(message({{"channels", int64_t{12}}}), "channels=12"));
  EXPECT_TRUE(says(message({{"vowels", int64_t{10}}}), "more than 16 channels"));
  EXPECT_EQ(message({{"vowels", int64_t{9}}}), "");
}

}  // namespace
}  // namespace attn::frames_test
