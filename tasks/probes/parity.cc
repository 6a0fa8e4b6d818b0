// parity: is the number of ones odd? The answer depends on every bit. Deletang et al. 2022,
// arXiv:2207.02098 (parity check); Hahn 2020, arXiv:1906.06755, shows why attention of fixed size
// fails for long sequences. O(length) per example.
#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"

namespace attn::tasks {
namespace {

constexpr int32_t kZeroBit = 1, kOneBit = 2;  // the tokens of the bits

class Parity final : public Task {
 public:
  explicit Parity(const Params& p)
      : Task(p),
        length_(p.integer("length")),
        shortest_(p.integer("min_length") == 0 ? length_ : p.integer("min_length")),
        per_token_(p.flag("per_token")) {
    ATTN_CHECK(kFewestBits <= shortest_ && shortest_ <= length_,
               "parity: min_length={} is neither 0 nor from {} (fewer bits have too few different "
               "inputs) to length={}",
               shortest_, kFewestBits, length_);
  }

 private:
  static constexpr int64_t kFewestBits = 12;  // a thousand of 2^12 inputs belong to the test split

  Example do_example(Rng& random) const override {
    const int64_t n = random.between(shortest_, length_);
    Example e;
    if (per_token_) {
      e.target.assign(static_cast<size_t>(length_), kIgnoredLabel);
      e.distances.assign(static_cast<size_t>(length_), -1);
    }
    int32_t ones = 0;
    for (int32_t i = 0; i < n; i++) {
      const bool bit = random.coin();
      ones += bit;
      e.tokens.push_back(bit ? kOneBit : kZeroBit);
      e.evidence.push_back(i);
      if (!per_token_) continue;
      e.target[static_cast<size_t>(i)] = ones % 2;
      e.distances[static_cast<size_t>(i)] = i;
    }
    if (!per_token_) e.target = {ones % 2};
    e.slices = {{"length", static_cast<double>(n)}, {"ones", static_cast<double>(ones)}};
    return e;
  }

  TaskShape do_shape() const override {
    return {
        .length = length_, .vocab = 3, .classes = 2, .per_token = per_token_, .causal = per_token_};
  }

  // Of a label for each prefix nothing but its position and its last bits is left to look at.
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                     const std::vector<Example>& test) const override {
    if (per_token_) return {};
    return {{"threshold on the ones", threshold_score(train, test)}};
  }

  struct Threshold {
    int64_t least;  // so many ones, or more
    int32_t above;  // are answered by this, fewer by the other

    int64_t hits(const std::vector<Example>& examples) const {
      int64_t right = 0;
      for (const Example& e : examples)
        right +=
            e.target[0] == (e.slices.at("ones") >= static_cast<double>(least) ? above : 1 - above);
      return right;
    }
  };

  // Of the threshold that fits training best: more than a guess, since the terms of an alternating
  // sum of binomials do not quite cancel.
  double threshold_score(const std::vector<Example>& train,
                         const std::vector<Example>& test) const {
    Threshold chosen{0, 0};
    for (int64_t least = 0; least <= length_; least++)
      for (const int32_t above : {0, 1})
        if (const Threshold tried{least, above}; tried.hits(train) > chosen.hits(train))
          chosen = tried;
    return static_cast<double>(chosen.hits(test)) / static_cast<double>(test.size());
  }

  std::string do_draw(const Example& e) const override {
    std::string text;
    for (const int32_t token : e.tokens) text += token == kOneBit ? '1' : '0';
    text += fmt::format("\n{:.0f} ones; labels ", e.slices.at("ones"));
    for (const int32_t label : e.target)
      if (label != kIgnoredLabel) text += fmt::format("{}", label);
    return text + "\n";
  }

  int64_t length_, shortest_;
  bool per_token_;
};

}  // namespace

TaskInfo parity() {
  return {
      .name = "parity",
      .summary = "is the number of ones odd? what averaging cannot do",
      .source = "arXiv:2207.02098, parity check; theory: arXiv:1906.06755",
      .datasheet =
          "Tokens: 1 for a zero and 2 for a one, n of them, each with equal odds on its own; n\n"
          "is length, or, with min_length, drawn uniformly between the two, ends included; the\n"
          "rest is padding.\n"
          "Label: the number of ones modulo 2; with per_token, at every position, of the bits\n"
          "up to and with it, causal; there the first few are easy. A part of the bits tells\n"
          "nothing. A threshold on the number of ones is right with odds\n"
          "1/2 + C(n-1, (n-1)/2)/2^n at best (0.57 at 32 bits), a table over it always.\n"
          "Evidence: all n positions; with per_token a label depends on those up to its own, and\n"
          "its distance is that to the first.\n"
          "Slices: length (n), ones (how many).",
      .solver = "recurrent",  // attention of a fixed depth cannot: arXiv:1906.06755
      .params = {{"length", 32, "bits at most", 12, 1e6},
                 {"min_length", 0, "bits at least; 0: always `length`", 0, 1e6},
                 {"per_token", false, "a label at every position: the running parity"},
                 {"train_examples", 100000, "training set, repeated over epochs"}},
      .make = make_task<Parity>};
}

}  // namespace attn::tasks
