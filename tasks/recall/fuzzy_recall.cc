// fuzzy_recall: key-value pairs where keys and values have one to three tokens each. Each example
// has a new map from keys to values. At a repeated key the labels are the tokens of its value. Poli
// et al. 2024 (MAD), arXiv:2403.17844, and its data generator. O(length·log length + vocab·pairs)
// per example.
#include <algorithm>
#include <map>
#include <set>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/recall/draws.h"
#include "tasks/recall/guesses.h"
#include "tasks/recall/recall_task.h"

namespace attn::tasks {
namespace {

using Motif = std::vector<int32_t>;  // tokens that stand for one thing together

class FuzzyRecall final : public recall::RecallTask {
 public:
  explicit FuzzyRecall(const Params& p)
      : RecallTask(p, p.integer("vocab") + 1, p.integer("vocab") + 1),
        vocab_(p.integer("vocab")),
        keys_((vocab_ - 1) / 2),
        values_(vocab_ - 1 - keys_),
        key_motif_(p.integer("key_motif")),
        least_key_motif_(p.integer("least_key_motif")),
        value_motif_(p.integer("value_motif")) {
    ATTN_CHECK(least_key_motif_ <= key_motif_,
               "fuzzy_recall: least_key_motif={} is above key_motif={}", least_key_motif_,
               key_motif_);
    ATTN_CHECK(key_motif_ <= keys_ && value_motif_ <= values_,
               "fuzzy_recall: vocab={} has {} key and {} value tokens, too few for key_motif={} "
               "and value_motif={} different ones",
               vocab_, keys_, values_, key_motif_, value_motif_);
    const int64_t pair = key_motif_ + value_motif_;
    ATTN_CHECK(length() >= 2 * pair,
               "fuzzy_recall: two pairs of key_motif={} and value_motif={} tokens need a length of "
               "at least {}, got length={}",
               key_motif_, value_motif_, 2 * pair, length());
    int64_t longest_keys = 1;
    for (int64_t i = 0; i < key_motif_ && longest_keys < 1'000'000; i++) longest_keys *= keys_ - i;
    recall::check_inputs("fuzzy_recall", longest_keys, length() / pair - 1, "length or vocab");
  }

 private:
  Example do_example(Rng& random) const override {
    std::map<Motif, Motif> values;
    Motif body;
    const int64_t pair = key_motif_ + value_motif_;
    while (length() - std::ssize(body) >= 2 * pair) {
      const Motif key = motif(random, random.between(least_key_motif_, key_motif_), keys_, 1);
      auto known = values.find(key);
      if (known == values.end())
        known = values
                    .emplace(key, motif(random, random.between(1, value_motif_), values_,
                                        1 + static_cast<int32_t>(keys_)))
                    .first;
      append(*known, body);
    }
    append(*std::next(values.begin(), random.between(0, std::ssize(values) - 1)), body);
    Example e;
    e.tokens.assign(static_cast<size_t>(length()) - body.size(), static_cast<int32_t>(vocab_));
    e.tokens.insert(e.tokens.end(), body.begin(), body.end());
    add_labels(e);
    return e;
  }

  // `size` different tokens of first .. first + count − 1.
  static Motif motif(Rng& random, int64_t size, int64_t count, int32_t first) {
    Motif tokens = recall::distinct(random, count, size);
    for (int32_t& token : tokens) token += first;
    return tokens;
  }

  static void append(const std::pair<const Motif, Motif>& pair, Motif& body) {
    body.insert(body.end(), pair.first.begin(), pair.first.end());
    body.insert(body.end(), pair.second.begin(), pair.second.end());
  }

  bool is_key(int32_t token) const { return token <= static_cast<int32_t>(keys_); }

  void add_labels(Example& e) const {
    clear_labels(e);
    std::map<Motif, size_t> latest;  // of a key, where it began
    std::set<int32_t> evidence;
    double queries = 0, pairs = 0;
    size_t begin = 0;
    while (e.tokens[begin] == static_cast<int32_t>(vocab_)) begin++;
    for (size_t value = begin, end = begin; begin < e.tokens.size(); begin = end) {
      for (value = begin; is_key(e.tokens[value]);) value++;
      for (end = value; end < e.tokens.size() && !is_key(e.tokens[end]);) end++;
      const Motif key(e.tokens.begin() + static_cast<ptrdiff_t>(begin),
                      e.tokens.begin() + static_cast<ptrdiff_t>(value));
      if (const auto before = latest.find(key); before != latest.end()) {
        const size_t back = begin - before->second;
        // Each token of the value is the label of the position before it.
        for (size_t i = value; i < end; i++) set_label(e, i - 1, i - back);
        for (size_t i = begin; i < end; i++) evidence.insert(static_cast<int32_t>(i - back));
        for (size_t i = begin; i < value; i++) evidence.insert(static_cast<int32_t>(i));
        queries++;
      }
      latest[key] = begin;
      pairs++;
    }
    e.evidence.assign(evidence.begin(), evidence.end());
    e.slices = {{"queries", queries}, {"pairs", pairs}};
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>& test) const override {
    const auto after = [](size_t run) {
      return [run](const Example& e, size_t position) {
        return recall::after_latest(e.tokens, position, run);
      };
    };
    return {{"after the latest same token", recall::rule_score(test, after(1))},
            {"after the latest same two tokens", recall::rule_score(test, after(2))},
            {"commonest value token before",
             recall::commonest_token_score(test, keys_ + 1, vocab_ - 1)}};
  }

  std::string do_draw(const Example& e) const override {
    std::string text;
    for (size_t i = 0; i < e.tokens.size(); i++) {
      if (e.tokens[i] == static_cast<int32_t>(vocab_)) continue;
      const bool key = is_key(e.tokens[i]), first = i == 0 || is_key(e.tokens[i - 1]) != key;
      const bool asked = i > 0 && e.target[i - 1] != kIgnoredLabel;
      text += fmt::format("{}{}", !first ? "." : key ? " " : asked ? "=" : ":", e.tokens[i]);
    }
    return text + "\n: a pair, = a pair whose value is asked for, . within a key or value\n";
  }

  int64_t vocab_, keys_, values_, key_motif_, least_key_motif_, value_motif_;
};

}  // namespace

TaskInfo fuzzy_recall() {
  return {
      .name = "fuzzy_recall",
      .summary = "recall values by their keys where both are one to three tokens long",
      .source = "arXiv:2403.17844 (MAD), fuzzy in-context recall, and its data generator",
      .datasheet =
          "Tokens: 1..K the keys' tokens, K = (vocab - 1)/2 rounded down; K+1..vocab-1 the "
          "values';\n"
          "vocab a blank. A key is least_key_motif..key_motif different tokens, a value\n"
          "1..value_motif different ones; the number is uniform, then the tokens are. A key's "
          "value\n"
          "is drawn when it comes first and holds for the example; (a) and (a, b) are two keys.\n"
          "Pairs are drawn while 2*(key_motif + value_motif) tokens are left; the last pair is "
          "one\n"
          "of the keys so far, uniform, and its value. Blanks stand in front, up to length.\n"
          "Label: where a key came before, each token of its value, at the position before it;\n"
          "nothing else is scored (MAD trains on the next token everywhere and scores this).\n"
          "MAD tests on keys of key_motif tokens alone, here all splits are drawn alike:\n"
          "least_key_motif = key_motif is MAD's test set. Causal.\n"
          "Evidence: each key asked for, with the pair where it stood last.\n"
          "Distance of a label: back to the same token of the value where the key stood last.\n"
          "Slices: queries (keys asked for), pairs.",
      .params = {{"vocab", 16, "tokens but padding: keys', values' and a blank", 3, 1e6},
                 {"length", 128, "sequence length", 4, 1e6},
                 {"key_motif", 3, "most tokens of a key", 1, 16},
                 {"least_key_motif", 1, "fewest tokens of a key", 1, 16},
                 {"value_motif", 3, "most tokens of a value", 1, 16},
                 {"train_examples", 12800, "training set, repeated over epochs; MAD's size"}},
      .presets = {{"mad", "MAD's baseline", {{"vocab", 16}, {"length", 128}}},
                  {"mad-test",
                   "MAD's test set: every key has three tokens",
                   {{"least_key_motif", 3}}},
                  {"mad-wide", "MAD's largest vocabulary", {{"vocab", 128}}},
                  {"mad-long", "MAD's longest", {{"length", 1024}}},
                  {"small",
                   "keys and values of one or two tokens",
                   {{"length", 64}, {"key_motif", 2}, {"value_motif", 2}}}},
      .make = make_task<FuzzyRecall>};
}

}  // namespace attn::tasks
