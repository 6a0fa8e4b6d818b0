// memorization: predict the values of keys from a map that is the same in all examples. The values
// never occur in the input. Poli et al. 2024 (MAD), arXiv:2403.17844, and its data generator.
// O(length) per example.
#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/recall/draws.h"
#include "tasks/recall/recall_task.h"
#include "tasks/shortcuts/fitted.h"

namespace attn::tasks {
namespace {

class Memorization final : public recall::RecallTask {
 public:
  explicit Memorization(const Params& p)
      : RecallTask(p, p.integer("vocab") + 1, p.integer("vocab") + 1),
        vocab_(p.integer("vocab")),
        keys_((vocab_ - 1) / 2) {
    ATTN_CHECK(length() % 2 == 0, "memorization: length={} must be even", length());
    recall::check_inputs("memorization", keys_, length() / 2, "length or vocab");
    Rng random = rng(static_cast<uint64_t>(p.integer("map_seed")), "memorization/map");
    values_ = recall::distinct(random, vocab_ - 1 - keys_, keys_);
    for (int32_t& value : values_) value += static_cast<int32_t>(keys_) + 1;
  }

 private:
  Example do_example(Rng& random) const override {
    Example e;
    for (int32_t at = 0; at < static_cast<int32_t>(length()); at += 2) {
      const int64_t key = random.between(0, keys_ - 1);
      e.tokens.insert(e.tokens.end(),
                      {static_cast<int32_t>(key) + 1, static_cast<int32_t>(vocab_)});
      e.target.insert(e.target.end(), {kIgnoredLabel, values_[static_cast<size_t>(key)]});
      e.distances.insert(e.distances.end(), {-1, 1});
      e.evidence.push_back(at);
    }
    return e;
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                     const std::vector<Example>& test) const override {
    return {{"look-up of the key", lookup_score(train, test, [](const Example& e, size_t position) {
               return e.tokens[position - 1];
             })}};
  }

  std::string do_draw(const Example& e) const override {
    std::string text = "from memory";
    for (size_t i = 0; i < e.tokens.size(); i += 2)
      text += fmt::format(" {}:{}", e.tokens[i], e.target[i + 1]);
    return text + "\n";
  }

  int64_t vocab_, keys_;
  std::vector<int32_t> values_;  // of key 1, 2, ...
};

}  // namespace

TaskInfo memorization() {
  return {
      .name = "memorization",
      .summary = "values learned by heart: one map of keys to values for all examples",
      .source = "arXiv:2403.17844 (MAD), memorization, and its data generator",
      .datasheet =
          "Tokens: 1..K the keys, K = (vocab - 1)/2 rounded down; K+1..vocab-1 the values; vocab\n"
          "the insert token. The map gives every key a value of its own, uniform among all such\n"
          "maps, from map_seed: the same in all splits and for all other seeds. An example is\n"
          "length/2 times a uniform key and the insert token; the splits differ in their "
          "sequences\n"
          "of keys, not in the keys. Causal, as MAD's models are: nothing to come is of use.\n"
          "Label: at an insert token, the value of the key before it; nothing else is scored.\n"
          "Evidence: the keys, each for the label behind it.\n"
          "Distance of a label: 1.\n"
          "What is measured is how well weights store a map, a control for the tasks that ask the\n"
          "context: a look-up of the key answers whatever training showed.\n"
          "Slices: none.",
      .control = "a look-up of the key",
      .params = {{"vocab", 256, "tokens but padding: keys, values and the insert token", 5, 1e6},
                 {"length", 32, "sequence length, even", 2, 1e6},
                 {"map_seed", 0, "names the map", 0, 1e9},
                 {"train_examples", 12800, "training set, repeated over epochs"}},
      .presets = {{"mad", "MAD's baseline: 256 examples", {{"train_examples", 256}}},
                  {"mad-wide",
                   "MAD's largest vocabulary: 256 examples hold 0.6 of the 4095 keys",
                   {{"vocab", 8192}, {"train_examples", 256}}},
                  {"small", "31 keys", {{"vocab", 64}, {"length", 16}}}},
      .make = make_task<Memorization>};
}

}  // namespace attn::tasks
