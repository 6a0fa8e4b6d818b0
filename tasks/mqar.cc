// mqar: multi-query associative recall: key-value pairs first, then each key once more; there its
// value is the label. Arora et al. 2023 (Zoology), arXiv:2312.04927, section 3 and its data
// generator. O(pairs·length + vocab) an example.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"
#include "core/rng.h"
#include "tasks/shortcuts/fitted.h"
#include "tasks/task.h"

namespace attn::tasks {
namespace {

// x^y for y >= 0 from products and square roots alone, so that every platform draws the same gaps:
// the binary digits of y after the point select x^(1/2), x^(1/4), and so on.
double power(double x, double y) {
  double result = 1;
  for (; y >= 1; y -= 1) result *= x;
  for (int digit = 0; digit < 53; digit++) {
    x = std::sqrt(x);
    y *= 2;
    if (y >= 1) {
      result *= x;
      y -= 1;
    }
  }
  return result;
}

// `count` different integers of [0, n) in random order (Fisher and Yates, stopped early).
std::vector<int32_t> distinct(Rng& random, int64_t n, int64_t count) {
  std::vector<int32_t> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  for (int64_t i = 0; i < count; i++)
    std::swap(all[static_cast<size_t>(i)], all[static_cast<size_t>(random.between(i, n - 1))]);
  all.resize(static_cast<size_t>(count));
  return all;
}

// `count` different indices in the order drawn, each with probability proportional to its weight
// among those left.
std::vector<size_t> weighted_distinct(Rng& random, std::vector<double> weights, int64_t count) {
  std::vector<size_t> result;
  while (static_cast<int64_t>(result.size()) < count) {
    double left = random.uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
    size_t chosen = weights.size();
    for (size_t i = 0; i < weights.size() && !(left < 0); i++) {
      if (weights[i] == 0) continue;
      chosen = i;  // the last one left stays chosen should rounding leave a rest
      left -= weights[i];
    }
    weights[chosen] = 0;
    result.push_back(chosen);
  }
  return result;
}

class Mqar final : public Task {
 public:
  explicit Mqar(const Params& p)
      : Task(p),
        vocab_(p.integer("vocab")),
        pairs_(p.integer("pairs")),
        length_(p.integer("length")),
        random_non_queries_(p.flag("random_non_queries")) {
    ATTN_CHECK(length_ % 2 == 0, "mqar: length={} must be even", length_);
    ATTN_CHECK(4 * pairs_ <= length_, "mqar: pairs={} need a length of at least {}, got length={}",
               pairs_, 4 * pairs_, length_);
    ATTN_CHECK(vocab_ / 2 > pairs_, "mqar: vocab={} has {} keys, fewer than pairs={}", vocab_,
               vocab_ / 2 - 1, pairs_);
    const double a = p.number("power");
    for (int64_t x = 1; x <= length_ / 2 - pairs_; x++) {
      const auto gap = static_cast<double>(x);
      slot_weights_.push_back(a * power(gap, a) / gap);  // a·x^(a−1)
    }
  }

 private:
  Example do_example(Rng& random) const override {
    const int64_t half = vocab_ / 2;
    // Counted from the first key, 1, and from the first value, vocab/2.
    const std::vector<int32_t> keys = distinct(random, half - 1, pairs_);
    const std::vector<int32_t> values = distinct(random, vocab_ - half, pairs_);
    const std::vector<size_t> slots = weighted_distinct(random, slot_weights_, pairs_);
    Example e;
    const auto context = static_cast<size_t>(2 * pairs_);
    e.tokens.assign(static_cast<size_t>(length_), kPadToken);
    e.target.assign(static_cast<size_t>(length_), kIgnoredLabel);
    e.distances.assign(static_cast<size_t>(length_), -1);
    double sum = 0, nearest_gap = static_cast<double>(length_), farthest = 0;
    for (size_t i = 0; i < keys.size(); i++) {
      const size_t query = context + 2 * slots[i];
      e.tokens[2 * i] = e.tokens[query] = keys[i] + 1;
      e.tokens[2 * i + 1] = e.target[query] = values[i] + static_cast<int32_t>(half);
      e.distances[query] = static_cast<int32_t>(query - (2 * i + 1));
      const double gap = e.distances[query];
      sum += gap;
      nearest_gap = std::min(nearest_gap, gap);
      farthest = std::max(farthest, gap);
    }
    for (int32_t& token : e.tokens)
      if (token == kPadToken) token = filler(random);
    e.evidence.resize(context);
    std::iota(e.evidence.begin(), e.evidence.end(), 0);
    e.slices = {{"mean_gap", sum / static_cast<double>(pairs_)},
                {"min_gap", nearest_gap},
                {"max_gap", farthest}};
    return e;
  }

  // Any token but padding; or a blank with an id of its own, since id 0 would be masked.
  int32_t filler(Rng& random) const {
    return static_cast<int32_t>(random_non_queries_ ? random.between(1, vocab_ - 1) : vocab_);
  }

  TaskShape do_shape() const override {
    return {.length = length_,
            .vocab = vocab_ + (random_non_queries_ ? 0 : 1),
            .classes = vocab_,
            .per_token = true,
            .causal = true};
  }
  double do_chance() const override { return 1.0 / static_cast<double>(vocab_); }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                     const std::vector<Example>& test) const override {
    return {{"random context value", context_score(test)},
            {"likeliest pair", slot_score(train, test)}};
  }

  // Expected accuracy of naming one of the context's values at random.
  double context_score(const std::vector<Example>& test) const {
    int64_t hits = 0, guesses = 0;
    for (const Example& e : test)
      for (const int32_t label : e.target) {
        if (label == kIgnoredLabel) continue;
        guesses += pairs_;
        for (size_t i = 0; i < static_cast<size_t>(pairs_); i++)
          hits += e.tokens[2 * i + 1] == label;
      }
    return static_cast<double>(hits) / static_cast<double>(guesses);
  }

  // Early pairs get the likeliest slots, so where a query stands hints at its pair: the labels are
  // relabelled as pair numbers and looked up by position.
  double slot_score(std::vector<Example> train, std::vector<Example> test) const {
    for (std::vector<Example>* split : {&train, &test})
      for (Example& e : *split)
        for (int32_t& label : e.target) {
          if (label == kIgnoredLabel) continue;
          int32_t pair = 0;
          while (e.tokens[static_cast<size_t>(2 * pair + 1)] != label) pair++;
          label = pair;
        }
    return lookup_score(train, test, [](const Example&, size_t position) {
      return static_cast<int64_t>(position);
    });
  }

  std::string do_draw(const Example& e) const override {
    std::string text = "pairs   ";
    for (size_t i = 0; i < static_cast<size_t>(pairs_); i++)
      text += fmt::format(" {}:{}", e.tokens[2 * i], e.tokens[2 * i + 1]);
    text += "\nqueries ";
    for (size_t i = 0; i < e.target.size(); i++)
      if (e.target[i] != kIgnoredLabel)
        text += fmt::format(" @{} {}:{}", i, e.tokens[i], e.target[i]);
    return text + "\n";
  }

  int64_t vocab_, pairs_, length_;
  bool random_non_queries_;
  std::vector<double> slot_weights_;
};

}  // namespace

TaskInfo mqar() {
  return {
      .name = "mqar",
      .summary = "recall the value that came with each key, asked again later in the sequence",
      .source = "arXiv:2312.04927 (Zoology), section 3",
      .datasheet =
          "Positions 0..2*pairs-1 hold key, value, key, value, ...; keys are from [1, vocab/2),\n"
          "values from [vocab/2, vocab), each without repetition. In the rest every key stands\n"
          "once more, at the even offset 2x - 2, where x is drawn without repetition with\n"
          "probability proportional to power*x^(power-1): a small power asks early, 1 is uniform.\n"
          "The other positions hold random tokens, or a blank one (id vocab).\n"
          "Label: at a repeated key, its value's token; nothing else is scored. Causal.\n"
          "Evidence: the positions of the pairs, all of which are asked for.\n"
          "Distance of a label: from the query back to its value; mean_gap, min_gap and max_gap "
          "are\n"
          "those of an example.\n"
          "Slices: mean_gap, min_gap, max_gap.",
      .params = {{"vocab", 8192, "tokens: half keys, half values; id 0 is padding", 4, 1e6},
                 {"pairs", 8, "key-value pairs, each asked for once"},
                 {"length", 64, "sequence length, even and at least 4·pairs", 4, 1e6},
                 {"power", 0.01, "exponent a of the gaps' power law a·x^(a-1)", 0.001, 8.0},
                 {"random_non_queries", true,
                  "fill the rest with random tokens rather than with a blank"},
                 {"train_examples", 6400,
                  "training set, repeated over epochs: small models find recall sooner on a "
                  "repeated set"}},
      .presets = {{"standard",
                   "Zoology's (256, 16) with a smaller vocabulary",
                   {{"vocab", 256}, {"pairs", 16}, {"length", 256}, {"power", 1.0}}},
                  {"small",
                   "four pairs in 64 tokens, asked anywhere",
                   {{"vocab", 64}, {"pairs", 4}, {"length", 64}, {"power", 1.0}}}},
      .make = make_task<Mqar>};
}

}  // namespace attn::tasks
