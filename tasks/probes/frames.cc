// frames: speech-like feature vectors with a class per frame. The frames of a consonant are silent;
// the adjacent frames of the neighbouring vowels determine its class. After the locus of formant
// transitions, Delattre et al. 1955 (Acoustic loci, JASA 27(4)). O(length·channels) per example.
#include <algorithm>
#include <bit>
#include <cmath>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"

namespace attn::tasks {
namespace {

constexpr double kTransition[] = {1, 0.75, 0.5};  // a consonant's share in a vowel, from its border
constexpr int64_t kReach = std::size(kTransition);
constexpr int64_t kShortVowel = 2 * kReach, kLongVowel = 12;  // so that transitions never overlap
constexpr int64_t kShortClosure = 3;

struct Segment {
  bool vowel;
  int64_t name;  // of its kind
  int64_t begin, end;
};

// log x for x in (0, 1), by the series of artanh: the same bits everywhere.
double logarithm(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // exact
  if (m < 0.7071067811865476) {
    m *= 2;
    exponent--;
  }
  const double z = (m - 1) / (m + 1), square = z * z;  // |z| < 0.172: z^25 is below rounding
  double sum = 0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return 2 * z * sum + exponent * 0.6931471805599453;
}

// Two independent N(0, 1) by Marsaglia's polar method.
std::pair<double, double> normals(Rng& random) {
  for (;;) {
    const double u = 2 * random.uniform() - 1, v = 2 * random.uniform() - 1, s = u * u + v * v;
    if (s >= 1 || s == 0) continue;
    const double scale = std::sqrt(-2 * logarithm(s) / s);
    return {u * scale, v * scale};
  }
}

// Walsh's functions: orthogonal rows of 1 and -1.
double walsh(int64_t row, int64_t channel) {
  return std::popcount(static_cast<uint64_t>(row & channel)) % 2 ? -1 : 1;
}

class Frames final : public Task {
 public:
  explicit Frames(const Params& p)
      : Task(p),
        length_(p.integer("length")),
        channels_(p.integer("channels")),
        vowels_(p.integer("vowels")),
        consonants_(p.integer("consonants")),
        closure_(p.integer("closure")),
        noise_(p.number("noise")) {
    ATTN_CHECK(std::has_single_bit(static_cast<uint64_t>(channels_)),
               "frames: channels={} must be a power of two", channels_);
    ATTN_CHECK(vowels_ + consonants_ < channels_,
               "frames: vowels={} and consonants={} need more than {} channels, got channels={}",
               vowels_, consonants_, vowels_ + consonants_, channels_);
    ATTN_CHECK(closure_ < length_, "frames: closure={} must be below length={}: it would hide all",
               closure_, length_);
  }

 private:
  // Vowels and consonants by turns until `length` and one more: the last vowel's border.
  std::vector<Segment> segments(Rng& random) const {
    std::vector<Segment> result;
    bool vowel = random.coin();
    for (int64_t begin = 0, after = 0; after < 2; vowel = !vowel) {
      const int64_t name = random.between(0, (vowel ? vowels_ : consonants_) - 1);
      const int64_t size =
          vowel ? random.between(kShortVowel, kLongVowel) : random.between(kShortClosure, closure_);
      result.push_back({vowel, name, begin, begin + size});
      begin += size;
      after += begin >= length_;
    }
    return result;
  }

  Example do_example(Rng& random) const override {
    const std::vector<Segment> all = segments(random);
    Example e;
    e.values.reserve(static_cast<size_t>(length_ * channels_));
    double closed = 0;
    for (size_t s = 0; s < all.size(); s++)
      for (int64_t t = all[s].begin; t < std::min(all[s].end, length_); t++) {
        const std::vector<double> mean = mean_of(all, s, t);
        for (size_t c = 0; c < mean.size(); c += 2) {
          const auto [one, other] = normals(random);
          e.values.push_back(static_cast<float>(mean[c] + noise_ * one));
          e.values.push_back(static_cast<float>(mean[c + 1] + noise_ * other));
        }
        const bool vowel = all[s].vowel;
        e.target.push_back(static_cast<int32_t>(vowel ? all[s].name : vowels_ + all[s].name));
        e.distances.push_back(vowel ? 0 : to_vowel(all[s], t));
        closed += !vowel;
      }
    e.evidence = first_positions(static_cast<size_t>(length_));
    e.slices = {{"closed", closed / static_cast<double>(length_)}};
    return e;
  }

  std::vector<double> mean_of(const std::vector<Segment>& all, size_t s, int64_t t) const {
    std::vector<double> mean(static_cast<size_t>(channels_));
    const auto add = [&](double share, int64_t row) {
      for (int64_t c = 0; c < channels_; c++) mean[static_cast<size_t>(c)] += share * walsh(row, c);
    };
    if (!all[s].vowel) {
      add(1, 0);
      return mean;
    }
    add(1, 1 + all[s].name);
    const int64_t after = t - all[s].begin, before = all[s].end - 1 - t, loci = 1 + vowels_;
    if (after < kReach && s > 0) add(kTransition[after], loci + all[s - 1].name);
    if (before < kReach && s + 1 < all.size()) add(kTransition[before], loci + all[s + 1].name);
    return mean;
  }

  int32_t to_vowel(const Segment& closure, int64_t t) const {
    const int64_t back = closure.begin > 0 ? t - closure.begin + 1 : length_;
    const int64_t ahead = closure.end < length_ ? closure.end - t : length_;
    return static_cast<int32_t>(std::min(back, ahead));
  }

  TaskShape do_shape() const override {
    return {.length = length_,
            .classes = vowels_ + consonants_,
            .per_token = true,
            .channels = channels_};
  }

  // The ladder's "values there" hears one frame alone, its window of 16 the borders around.
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>&) const override {
    return {};
  }

  std::string do_draw(const Example& e) const override {
    std::string text = fmt::format(
        "{} frames of {} numbers; vowels a, b, ..; consonants A, B, ..\n", length_, channels_);
    constexpr size_t kShown = 96;
    for (size_t t = 0; t < std::min(kShown, e.target.size()); t++) {
      const int64_t label = e.target[t];
      text += static_cast<char>(label < vowels_ ? 'a' + label % 26 : 'A' + (label - vowels_) % 26);
    }
    return text + (e.target.size() > kShown ? " ...\n" : "\n");
  }

  int64_t length_, channels_, vowels_, consonants_, closure_;
  double noise_;
};

}  // namespace

TaskInfo frames() {
  return {
      .name = "frames",
      .summary = "speech-like frames, each labelled by what the frames around it tell",
      .source = "after Delattre, Liberman and Cooper 1955, JASA 27(4); Walsh functions as means",
      .datasheet =
          "Vowels and consonants by turns from the first frame on, a coin says which is first,\n"
          "until length frames; the end cuts the last. Each is uniform of its kind. A vowel\n"
          "lasts 6 to 12 frames, a consonant 3 to closure, uniformly. With W(k), channel c,\n"
          "= -1 to the number of ones in the binary digits of k AND c, a frame's mean is\n"
          "- in consonant j: W(0), whichever it is: a closure is silent;\n"
          "- in vowel i (counted from 0): W(1 + i), plus 1, 3/4, 1/2 times W(1 + vowels + j) in\n"
          "  its first three frames, j the consonant before it (none: nothing), and in its last\n"
          "  three, nearest to the border first, with the consonant after it (cut off or not).\n"
          "To every number is added noise times N(0, 1), by the polar method.\n"
          "Label: a class per frame: vowel i is i, consonant j is vowels + j.\n"
          "Context: closure + 2 frames either way hold both transitions of a consonant; farther\n"
          "frames are independent of it. At the ends a consonant has one.\n"
          "Evidence: all frames; each is a label's.\n"
          "Distance of a label: 0 in a vowel; in a consonant, to the nearest frame of a vowel.\n"
          "Slices: closed (share of frames in consonants).",
      .params = {{"length", 512, "frames", 32, 1e6},
                 {"channels", 16, "numbers a frame, a power of two", 4, 1024},
                 {"vowels", 6, "classes heard in every frame of theirs", 1, 512},
                 {"consonants", 6, "classes heard only at the vowels' borders", 2, 512},
                 {"closure", 16, "longest consonant in frames", 3, 256},
                 {"noise", 1.0, "standard deviation; the means' numbers are 1 and -1", 0.0, 100.0},
                 {"train_examples", 5000, "training set, repeated over epochs"}},
      .presets = {{"small", "128 frames", {{"length", 128}}},
                  {"long", "2048 frames", {{"length", 2048}}}},
      .make = make_task<Frames>};
}

}  // namespace attn::tasks
