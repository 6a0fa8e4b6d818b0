// needle: find the value of a key in a long sequence of other tokens. The sequence ends with the
// key; the label is the value after its first occurrence. After Kamradt 2023 (needle in a haystack)
// and Hsieh et al. 2024 (RULER), arXiv:2404.06654, section 3.1 (NIAH), with tokens instead of
// words. O(length + vocab) per example.
#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/recall/draws.h"
#include "tasks/recall/guesses.h"
#include "tasks/recall/recall_task.h"
#include "tasks/shortcuts/fitted.h"

namespace attn::tasks {
namespace {

class Needle final : public recall::RecallTask {
 public:
  explicit Needle(const Params& p)
      : RecallTask(p, p.integer("vocab") + (p.text("haystack") == "noise" ? kFillers : 0),
                   p.integer("vocab")),
        lengths_(p, "needle", kShortest),
        vocab_(p.integer("vocab")),
        in_noise_(p.text("haystack") == "noise"),
        one_key_(p.text("keys") == "one"),
        depth_(p.number("depth")) {
    pairs_ = in_noise_ ? p.integer("distractors") + 1 : (length() - 1) / 2;
    ATTN_CHECK(depth_ == -1 || depth_ >= 0, "needle: depth={} is neither -1 nor in [0, 1]", depth_);
    ATTN_CHECK(!in_noise_ || 2 * pairs_ < lengths_.least(),
               "needle: {}={} has no room for {} pairs and a question",
               p.integer("min_length") == 0 ? "length" : "min_length", lengths_.least(), pairs_);
    ATTN_CHECK(vocab_ / 2 > pairs_, "needle: {} keys, all different, of the {} that vocab={} has",
               pairs_, vocab_ / 2 - 1, vocab_);
  }

 private:
  static constexpr int64_t kFillers = 32;  // tokens of the noise
  static constexpr int64_t kShortest = 9;  // sequence with enough different inputs

  Example do_example(Rng& random) const override {
    const int64_t length = lengths_.draw(random);
    const int64_t pairs = in_noise_ ? pairs_ : (length - 1) / 2;
    const int64_t last = pairs - 1 + (in_noise_ ? length - 1 - 2 * pairs : 0);
    const auto needle = static_cast<size_t>(
        depth_ < 0 ? random.between(0, last)
                   : static_cast<int64_t>(std::floor(depth_ * static_cast<double>(last) + 0.5)));
    std::vector<bool> is_pair(static_cast<size_t>(last + 1));
    is_pair[needle] = true;
    for (const int32_t other : recall::distinct(random, last, pairs - 1)) {
      const auto item = static_cast<size_t>(other);
      is_pair[item + (item >= needle)] = true;
    }
    std::vector<int32_t> keys = recall::distinct(random, vocab_ / 2 - 1, pairs);
    const auto before =
        std::count(is_pair.begin(), is_pair.begin() + static_cast<ptrdiff_t>(needle), true);
    if (one_key_) ask_for_the_first_key(keys, static_cast<size_t>(before));
    Example e;
    size_t first = 0, used = 0;
    for (size_t item = 0; item < is_pair.size(); item++) {
      if (item == needle) first = e.tokens.size();
      if (is_pair[item]) e.tokens.push_back(keys[used++] + 1);
      const int64_t low = is_pair[item] ? vocab_ / 2 : vocab_;
      const int64_t high = is_pair[item] ? vocab_ - 1 : vocab_ + kFillers - 1;
      e.tokens.push_back(static_cast<int32_t>(random.between(low, high)));
    }
    append_question(e, first);
    e.slices = {
        {"depth", static_cast<double>(needle) / static_cast<double>(std::max<int64_t>(1, last))}};
    return e;
  }

  // Pair number `needle` gets key 0, counted from the first; who had it, the needle's.
  static void ask_for_the_first_key(std::vector<int32_t>& keys, size_t needle) {
    const auto first = std::find(keys.begin(), keys.end(), 0);
    if (first != keys.end()) *first = keys[needle];
    keys[needle] = 0;
  }

  // The key at `first` once more, at the end.
  void append_question(Example& e, size_t first) const {
    const size_t query = e.tokens.size();
    e.tokens.push_back(e.tokens[first]);
    clear_labels(e);
    set_label(e, query, first + 1);
    for (const size_t position : {first, first + 1, query})
      e.evidence.push_back(static_cast<int32_t>(position));
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                     const std::vector<Example>& test) const override {
    // The value at the position that training asked for most: right in pairs at a fixed depth.
    const auto always = [](const Example&, size_t) { return 0; };
    const auto position = [](const Example& e, size_t) { return e.evidence[0]; };
    return {
        {"random value of the context", recall::random_token_score(test, vocab_ / 2, vocab_ - 1)},
        {"likeliest position", lookup_score(train, test, always, position)}};
  }

  std::string do_draw(const Example& e) const override {
    std::string text;
    for (size_t i = 0; i + 1 < e.tokens.size(); i++) {
      const bool filler = e.tokens[i] >= vocab_, key = e.tokens[i] < vocab_ / 2;
      text += filler ? "." : fmt::format("{}{}", e.tokens[i], key ? ":" : " ");
    }
    const auto query = static_cast<size_t>(e.evidence[2]);
    return text + fmt::format("\nasked for {}:{}, {} positions back\n", e.tokens[query],
                              e.target[query], e.distances[query]);
  }

  recall::LengthRange lengths_;
  int64_t vocab_, pairs_ = 0;
  bool in_noise_, one_key_;
  double depth_;
};

}  // namespace

TaskInfo needle() {
  return {
      .name = "needle",
      .summary = "find one fact at a controlled depth of a haystack: the value of a key",
      .source = "after arXiv:2404.06654 (RULER), section 3.1, and Kamradt's needle in a haystack",
      .datasheet =
          "Keys are tokens from [1, vocab/2), all different and in random order, values from\n"
          "[vocab/2, vocab), with repetition. keys=one: the needle's key is token 1 in every\n"
          "example, as Kamradt's question is always the same; many: any key (RULER).\n"
          "The haystack is a row of N items: pairs of a key and its value, and fillers drawn\n"
          "uniformly from the 32 tokens [vocab, vocab+32). haystack=noise: 1 + distractors pairs,\n"
          "and fillers up to length-1 positions (RULER's multikey_1 has 3 distractors, its\n"
          "single_1 none). haystack=pairs: (length-1)/2 pairs (rounded down) and no fillers\n"
          "(multikey_2). One key again, the question, ends the sequence; in pairs an even length\n"
          "leaves its last position to padding. With min_length an example's length is drawn\n"
          "uniformly from min_length..length.\n"
          "The needle is item number p, which is uniform, or depth*(N-1) rounded half up: 0 is\n"
          "the beginning, 1 before the question. Every set of places of the other pairs is\n"
          "equally likely.\n"
          "Label: at the last key, its value; nothing else is scored. Causal. Without\n"
          "distractors no key need be compared: a bag of tokens knows the value.\n"
          "Evidence: the needle's key and value, and the key at the end.\n"
          "Distance: from the end back to the value. Slices: depth, which is p/(N-1).",
      .params = {{"vocab", 256, "tokens: half keys, half values; id 0 is padding", 4, 1e6},
                 {"length", 127, "sequence length, the question included", 9, 1e6},
                 {"min_length", 0,
                  "shortest sequence; 0: as length. Short ones teach to compare keys", 0, 1e6},
                 {"haystack", {"noise", "pairs"}, "what the needle lies in"},
                 {"distractors", 7, "other pairs in the noise", 0, 1e6},
                 {"keys",
                  {"one", "many"},
                  "asked for: always token 1, or a key of the example's own"},
                 {"depth", -1.0, "where it lies, 0 (beginning) to 1 (end); -1: anywhere", -1, 1.0},
                 {"train_examples", 100000, "training set, repeated over epochs"}},
      .presets = {{"small", "64 tokens: one key, 7 distractors", {{"vocab", 64}}},
                  {"ruler",
                   "RULER's multikey_1: a key of its own, 3 distractors",
                   {{"keys", "many"}, {"distractors", 3}}}},
      .make = make_task<Needle>};
}

}  // namespace attn::tasks
