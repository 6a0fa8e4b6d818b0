// compose: the value of each key is the key of another pair, and a question asks for the value
// after several such steps. After the k-hop task of Sanford, Hsu and Telgarsky 2024,
// arXiv:2402.09268, section 5, with listed pairs in place of a random string.
// O(pairs·hops + length + symbols) per example.
#include <algorithm>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/recall/draws.h"
#include "tasks/recall/guesses.h"
#include "tasks/recall/recall_task.h"

namespace attn::tasks {
namespace {

class Compose final : public recall::RecallTask {
 public:
  explicit Compose(const Params& p)
      : RecallTask(p, p.integer("symbols") + 2 + p.integer("hops"), p.integer("symbols") + 1),
        symbols_(p.integer("symbols")),
        pairs_(p.integer("pairs")),
        hops_(p.integer("hops")),
        fewest_(p.integer("min_hops") == 0 ? hops_ : p.integer("min_hops")) {
    ATTN_CHECK(length() % 2 == 0, "compose: length={} must be even", length());
    ATTN_CHECK(symbols_ >= pairs_, "compose: symbols={} are fewer than pairs={}", symbols_, pairs_);
    ATTN_CHECK(4 * pairs_ <= length(),
               "compose: pairs={} need a length of at least {}, got length={}", pairs_, 4 * pairs_,
               length());
    ATTN_CHECK(2 * hops_ < pairs_,
               "compose: hops={} with pairs={}: as few steps back along the cycle reach the label; "
               "expected at most {} hops, or more pairs",
               hops_, pairs_, (pairs_ - 1) / 2);
    ATTN_CHECK(fewest_ <= hops_, "compose: min_hops={} is neither 0 nor from 1 to hops={}", fewest_,
               hops_);
    ATTN_CHECK(inputs() >= recall::kFewestInputs,
               "compose: {} of {} symbols in {} tokens make only {:.0f} different inputs; symbols, "
               "pairs or length must be larger",
               pairs_, symbols_, length(), inputs());
  }

 private:
  // Cycles, orders of the pairs and places of the questions.
  double inputs() const {
    double count = 1 / static_cast<double>(pairs_);
    for (int64_t i = 0; i < pairs_; i++)
      count *= static_cast<double>((symbols_ - i) * (i + 1) * (length() / 2 - pairs_ - i));
    return count;
  }

  Example do_example(Rng& random) const override {
    // Keys in the order of one cycle: the value of each is the next one.
    const std::vector<int32_t> cycle = recall::distinct(random, symbols_, pairs_);
    const std::vector<int32_t> listing = recall::distinct(random, pairs_, pairs_);
    const int64_t hops = fewest_ < hops_ ? random.between(fewest_, hops_) : hops_;
    const auto count = static_cast<size_t>(pairs_), context = 2 * count;
    Example e;
    e.tokens.assign(static_cast<size_t>(length()), blank());
    clear_labels(e);
    std::vector<size_t> listed_at(count);
    for (size_t i = 0; i < count; i++) {
      const auto key = static_cast<size_t>(listing[i]);
      listed_at[key] = 2 * i;
      e.tokens[2 * i] = cycle[key] + 1;
      e.tokens[2 * i + 1] = cycle[(key + 1) % count] + 1;
    }
    const std::vector<int32_t> slots = recall::distinct(random, length() / 2 - pairs_, pairs_);
    for (size_t key = 0; key < count; key++) {
      const size_t query = context + 2 * static_cast<size_t>(slots[key]) + 1;
      e.tokens[query - 1] = blank() + static_cast<int32_t>(hops);
      e.tokens[query] = cycle[key] + 1;
      size_t earliest = query;
      for (size_t hop = 0; hop < static_cast<size_t>(hops); hop++)
        earliest = std::min(earliest, listed_at[(key + hop) % count]);
      const size_t final_pair = (key + static_cast<size_t>(hops) - 1) % count;
      set_label(e, query, listed_at[final_pair] + 1);
      e.distances[query] = static_cast<int32_t>(query - earliest);
    }
    e.evidence = first_positions(context);
    e.slices = {{"hops", static_cast<double>(hops)}};
    return e;
  }

  // Fills the rest; the ids after it stand for 1, 2, ... hops.
  int32_t blank() const { return static_cast<int32_t>(symbols_ + 1); }

  // The key after `hops` steps from the one at `position`.
  static int32_t after(const Example& e, size_t position, int64_t hops) {
    int32_t key = e.tokens[position];
    for (int64_t hop = 0; hop < hops; hop++) {
      size_t pair = 0;
      while (e.tokens[pair] != key) pair += 2;
      key = e.tokens[pair + 1];
    }
    return key;
  }

  // The label where it is at most `most` hops away, else the keys that are farther than that.
  static std::vector<int32_t> candidates(const Example& e, size_t position, int64_t most) {
    const auto hops = static_cast<int64_t>(e.slices.at("hops"));
    if (hops <= most) return {after(e, position, hops)};
    std::vector<int32_t> left;
    for (int64_t far = most + 1; far < std::ssize(e.evidence) / 2; far++)
      left.push_back(after(e, position, far));
    return left;
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>& test) const override {
    std::vector<Shortcut> all = {{"random context value", recall::random_listed_value_score(test)}};
    for (int64_t most = 1; most < hops_; most++)
      all.push_back({fmt::format("{} hop{} at most", most, most == 1 ? "" : "s"),
                     recall::random_choice_score(test, [most](const Example& e, size_t position) {
                       return candidates(e, position, most);
                     })});
    return all;
  }

  std::string do_draw(const Example& e) const override {
    std::string text = "pairs   ";
    for (size_t i = 0; i < e.evidence.size(); i += 2)
      text += fmt::format(" {}:{}", e.tokens[i], e.tokens[i + 1]);
    text +=
        fmt::format("\n{:.0f} hop{} ", e.slices.at("hops"), e.slices.at("hops") == 1 ? " " : "s");
    for (size_t i = 0; i < e.target.size(); i++)
      if (e.target[i] != kIgnoredLabel)
        text += fmt::format(" @{} {}:{}", i, e.tokens[i], e.target[i]);
    return text + "\n";
  }

  int64_t symbols_, pairs_, hops_, fewest_;
};

}  // namespace

TaskInfo compose() {
  return {
      .name = "compose",
      .summary = "follow a chain: the value of a key is another key, several steps on",
      .source = "after arXiv:2402.09268, section 5 (k-hop induction)",
      .datasheet =
          "Keys are `pairs` symbols of 1..symbols, all different, in one cycle drawn uniformly:\n"
          "the value of each key is the next key. Positions 0..2*pairs-1 hold key, value, key,\n"
          "value, ... in an order drawn uniformly. In the rest each key is asked once: a token\n"
          "symbols+1+h, which asks for h hops, and then the key, at two neighbouring positions\n"
          "drawn uniformly without repetition. All questions of an example ask for the same h,\n"
          "drawn uniformly from min_hops..hops. A blank (token symbols+1) fills the rest.\n"
          "Label: at the key of a question, the key that h steps along the cycle reach; nothing\n"
          "else is scored. Causal.\n"
          "Evidence: the positions of the pairs.\n"
          "Distance of a label: from the question back to the earliest of the h pairs that it\n"
          "takes.\n"
          "Slices: hops, which is h.\n"
          "A shortcut that takes k hops at most guesses beyond them, among the keys that it has\n"
          "not passed. Exact attention takes two layers for one hop, and more for more (section 5\n"
          "there: about log2 h + 2): with two layers it learned one hop of small.",
      .params = {{"symbols", 64, "different keys; padding is not among them", 3, 1e6},
                 {"pairs", 8, "pairs, each asked for once", 3, 1e6},
                 {"hops", 2, "steps from the key to the label at most, fewer than half of pairs", 1,
                  1000},
                 {"min_hops", 0, "at least; 0: always hops", 0, 1000},
                 {"length", 64, "sequence length, even and at least 4·pairs", 12, 1e6},
                 {"train_examples", 100000, "training set, repeated over epochs"}},
      .presets = {{"standard",
                   "one to three hops over 16 pairs in 128 tokens",
                   {{"pairs", 16}, {"hops", 3}, {"min_hops", 1}, {"length", 128}}},
                  {"small",
                   "one or two hops over eight pairs in 48 tokens",
                   {{"symbols", 16}, {"pairs", 8}, {"hops", 2}, {"min_hops", 1}, {"length", 48}}}},
      .make = make_task<Compose>};
}

}  // namespace attn::tasks
