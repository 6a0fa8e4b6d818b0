// noisy_recall: key-value pairs with pairs of noise between them. Each example has a new map from
// keys to values. At a repeated key the label is its value. Poli et al. 2024 (MAD),
// arXiv:2403.17844, and its data generator. O(length) per example.
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

class NoisyRecall final : public recall::RecallTask {
 public:
  explicit NoisyRecall(const Params& p)
      : RecallTask(p, p.integer("vocab") + 1, p.integer("vocab") + 1),
        vocab_(p.integer("vocab")),
        noise_vocab_(p.integer("noise_vocab")),
        keys_((vocab_ - noise_vocab_) / 2),
        noise_(p.number("noise")) {
    ATTN_CHECK(length() % 2 == 0, "noisy_recall: length={} must be even", length());
    ATTN_CHECK(keys_ >= 2, "noisy_recall: vocab={} less noise_vocab={} leaves {} keys, at least 2",
               vocab_, noise_vocab_, std::max<int64_t>(keys_, 0));
    recall::check_inputs("noisy_recall", keys_, length() / 2 - 1, "length or vocab");
  }

 private:
  Example do_example(Rng& random) const override {
    const int64_t slots = length() / 2, sure = random.between(0, slots - 2);
    std::map<int32_t, int32_t> values;
    Example e;
    for (int64_t slot = 0; slot + 1 < slots; slot++) {
      if (slot != sure && random.uniform() < noise_) {
        for (int i = 0; i < 2; i++)
          e.tokens.push_back(token(random.between(vocab_ - noise_vocab_, vocab_ - 1)));
        continue;
      }
      const int32_t key = token(random.between(0, keys_ - 1));
      if (!values.count(key)) values[key] = token(random.between(keys_, vocab_ - noise_vocab_ - 1));
      e.tokens.insert(e.tokens.end(), {key, values[key]});
    }
    const auto last = std::next(values.begin(), random.between(0, std::ssize(values) - 1));
    e.tokens.insert(e.tokens.end(), {last->first, last->second});
    add_labels(e);
    return e;
  }

  static int32_t token(int64_t number) { return static_cast<int32_t>(number + 1); }

  void add_labels(Example& e) const {
    clear_labels(e);
    std::map<int32_t, int32_t> latest;  // of a key, where it stood
    std::set<int32_t> evidence;
    for (int32_t at = 0; at < static_cast<int32_t>(length()); at += 2) {
      const auto i = static_cast<size_t>(at);
      const int32_t key = e.tokens[i];
      if (key > static_cast<int32_t>(keys_)) continue;
      if (const auto before = latest.find(key); before != latest.end()) {
        set_label(e, i, static_cast<size_t>(before->second + 1));
        evidence.insert({before->second, before->second + 1, at});
      }
      latest[key] = at;
    }
    e.evidence.assign(evidence.begin(), evidence.end());
    const recall::Gaps gaps = recall::gaps_of(e);
    e.slices = {{"queries", gaps.labels},
                {"keys", static_cast<double>(latest.size())},
                {"mean_gap", gaps.mean}};
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>& test) const override {
    const int64_t low = keys_ + 1, high = vocab_ - noise_vocab_;  // the values
    return {{"random value before", recall::random_token_score(test, low, high)},
            {"commonest value before", recall::commonest_token_score(test, low, high)}};
  }

  std::string do_draw(const Example& e) const override {
    std::string text;
    for (size_t i = 0; i < e.tokens.size(); i += 2) {
      const bool noise = e.tokens[i] > static_cast<int32_t>(keys_);
      const char* const mark = e.target[i] == kIgnoredLabel ? ":" : "=";
      text += noise ? "~ " : fmt::format("{}{}{} ", e.tokens[i], mark, e.tokens[i + 1]);
    }
    return text + "\n~ noise, : a pair, = a pair whose value is asked for\n";
  }

  int64_t vocab_, noise_vocab_, keys_;
  double noise_;
};

}  // namespace

TaskInfo noisy_recall() {
  return {
      .name = "noisy_recall",
      .summary = "recall values by their keys from a context with noise between the pairs",
      .source = "arXiv:2403.17844 (MAD), noisy in-context recall, and its data generator",
      .datasheet =
          "Tokens: 1..K the keys, K = (vocab - noise_vocab)/2 rounded down; "
          "K+1..vocab-noise_vocab\n"
          "the values; the rest of 1..vocab is noise. An example is length/2 slots of two tokens.\n"
          "Each but the last is, with probability `noise`, two noise tokens, uniform; else a\n"
          "uniform key and its value. One slot, uniform, never is noise. A key's value is drawn\n"
          "when it comes first, uniform, so that keys may share one; it then holds for the "
          "example.\n"
          "The last slot is one of the keys so far, uniform, and its value.\n"
          "Label: at a key that came before, its value; nothing else is scored (MAD trains on the\n"
          "next token everywhere and scores this). Causal.\n"
          "Evidence: each such key, with the pair where it stood last.\n"
          "Distance of a label: from the key back to its value where it stood last.\n"
          "Slices: queries (labels), keys (different ones), mean_gap (mean distance).",
      .params = {{"vocab", 32, "tokens but padding: keys, as many values, and noise", 4, 1e6},
                 {"noise_vocab", 16, "how many of them are noise", 1, 1e6},
                 {"length", 128, "sequence length, even", 4, 1e6},
                 {"noise", 0.2, "share of noise among the slots", 0.0, 0.9},
                 {"train_examples", 12800, "training set, repeated over epochs; MAD's size"}},
      .presets = {{"mad", "MAD's baseline", {{"vocab", 32}, {"length", 128}, {"noise", 0.2}}},
                  {"mad-noise", "MAD's most noise", {{"noise", 0.8}}},
                  {"mad-wide", "MAD's largest vocabulary: 64 keys", {{"vocab", 144}}},
                  {"mad-long", "MAD's longest", {{"length", 1024}}},
                  {"small", "8 keys in 64 tokens", {{"length", 64}}}},
      .make = make_task<NoisyRecall>};
}

}  // namespace attn::tasks
