// mqar: multi-query associative recall. Key-value pairs come first, then each key occurs once more;
// there the label is its value. Arora et al. 2023 (Zoology), arXiv:2312.04927, section 3 and its
// data generator. With updates and deletes, memory changes while the pairs are listed.
// O(pairs·(length + updates) + vocab) per example.
#include <algorithm>
#include <array>
#include <map>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/recall/bindings.h"
#include "tasks/recall/draws.h"
#include "tasks/recall/guesses.h"
#include "tasks/recall/recall_task.h"
#include "tasks/shortcuts/fitted.h"

namespace attn::tasks {
namespace {

// A size of examples; of a mixture, the part of them that its share is of all shares.
struct Setting {
  int64_t length, pairs, share;
  std::vector<double> slot_weights{};  // of the even offsets behind the pairs
};

// Arora et al. 2024 (Based), arXiv:2402.18668: its training examples in thousands.
constexpr std::array<std::array<int64_t, 3>, 5> kZoology = {
    {{64, 4, 100}, {128, 8, 20}, {256, 16, 20}, {256, 32, 20}, {256, 64, 20}}};

class Mqar final : public recall::RecallTask {
 public:
  explicit Mqar(const Params& p)
      : RecallTask(p, p.integer("vocab") + blanks(p) + (p.integer("deletes") > 0),
                   p.integer("vocab") + (p.integer("deletes") > 0 ? blanks(p) + 1 : 0)),
        vocab_(p.integer("vocab")),
        passes_(p.integer("passes")),
        updates_(p.integer("updates")),
        deletes_(p.integer("deletes")),
        mixed_(p.text("mixture") == "zoology"),
        random_non_queries_(p.flag("random_non_queries")) {
    const int64_t pairs = p.integer("pairs");
    ATTN_CHECK(length() % 2 == 0, "mqar: length={} must be even", length());
    ATTN_CHECK(vocab_ / 2 > pairs, "mqar: vocab={} has {} keys, fewer than pairs={}", vocab_,
               vocab_ / 2 - 1, pairs);
    ATTN_CHECK(deletes_ <= pairs, "mqar: deletes={} of pairs={}; at most all of them", deletes_,
               pairs);
    ATTN_CHECK(!changes() || passes_ == 1,
               "mqar: passes={} lists the same pairs again; with updates or deletes it must be 1",
               passes_);
    const double a = p.number("power");
    if (!mixed_) add({length(), pairs, 1}, a);
    for (const auto& [size, fewer, share] : kZoology)
      if (mixed_ && size <= length() && fewer <= pairs) add({size, fewer, share}, a);
    ATTN_CHECK(!settings_.empty(),
               "mqar: mixture=zoology starts at 64 tokens and 4 pairs, got length={} and pairs={}",
               length(), pairs);
  }

 private:
  static int64_t blanks(const Params& p) { return p.flag("random_non_queries") ? 0 : 1; }
  bool changes() const { return updates_ > 0 || deletes_ > 0; }
  // Stands where a deleted key would have its value.
  int32_t deleted() const { return static_cast<int32_t>(vocab_ + (random_non_queries_ ? 0 : 1)); }
  // Keys and values before the questions, in pairs of tokens.
  int64_t listed(int64_t pairs) const {
    if (!changes()) return passes_ * pairs;
    return pairs * (recall::bindings_of_key(updates_, deletes_) + (deletes_ > 0 ? 1 : 0));
  }

  void add(Setting setting, double a) {
    const int64_t before = listed(setting.pairs), least = 2 * (before + setting.pairs);
    ATTN_CHECK(least <= setting.length,
               "mqar: pairs={} with {} need a length of at least {}, got length={}", setting.pairs,
               changes() ? fmt::format("updates={} and deletes={}", updates_, deletes_)
                         : fmt::format("passes={}", passes_),
               least, setting.length);
    setting.slot_weights = recall::power_law(setting.length / 2 - before, a);
    shares_ += setting.share;
    settings_.push_back(std::move(setting));
  }

  const Setting& draw_setting(Rng& random) const {
    if (settings_.size() == 1) return settings_[0];
    int64_t left = random.between(0, shares_ - 1);
    size_t i = 0;
    while (left >= settings_[i].share) left -= settings_[i++].share;
    return settings_[i];
  }

  Example do_example(Rng& random) const override {
    const Setting& setting = draw_setting(random);
    const int64_t half = vocab_ / 2, pairs = setting.pairs;
    // Counted from the first key, 1, and from the first value, vocab/2.
    const std::vector<int32_t> keys = recall::distinct(random, half - 1, pairs);
    Example e;
    clear_labels(e);
    // Where the value of each key stands that counts.
    const std::vector<size_t> sources =
        changes() ? list_changes(random, keys, e) : list_passes(random, keys, e);
    const size_t context = e.tokens.size();
    const std::vector<size_t> slots =
        recall::weighted_distinct(random, setting.slot_weights, pairs);
    e.tokens.resize(static_cast<size_t>(setting.length), kPadToken);
    for (size_t i = 0; i < keys.size(); i++) {
      const size_t query = context + 2 * slots[i];
      e.tokens[query] = keys[i] + 1;
      set_label(e, query, sources[i]);
    }
    for (int32_t& token : e.tokens)
      if (token == kPadToken) token = filler(random);
    e.evidence = first_positions(context);
    add_slices(setting, e);
    return e;
  }

  std::vector<size_t> list_passes(Rng& random, const std::vector<int32_t>& keys, Example& e) const {
    const int64_t half = vocab_ / 2;
    const std::vector<int32_t> values = recall::distinct(random, vocab_ - half, std::ssize(keys));
    std::vector<size_t> sources(keys.size());
    for (int64_t pass = 0; pass < passes_; pass++)
      for (size_t i = 0; i < keys.size(); i++) {
        e.tokens.push_back(keys[i] + 1);
        sources[i] = e.tokens.size();
        e.tokens.push_back(values[i] + static_cast<int32_t>(half));
      }
    return sources;
  }

  std::vector<size_t> list_changes(Rng& random, const std::vector<int32_t>& keys,
                                   Example& e) const {
    const int64_t half = vocab_ / 2;
    std::vector<size_t> sources(keys.size());
    for (const auto& [key, value] :
         recall::changing_bindings(random, std::ssize(keys), vocab_ - half, updates_, deletes_)) {
      e.tokens.push_back(keys[static_cast<size_t>(key)] + 1);
      sources[static_cast<size_t>(key)] = e.tokens.size();
      e.tokens.push_back(value == recall::Binding::kDeleted ? deleted()
                                                            : value + static_cast<int32_t>(half));
    }
    return sources;
  }

  void add_slices(const Setting& setting, Example& e) const {
    const recall::Gaps gaps = recall::gaps_of(e);
    e.slices = {{"mean_gap", gaps.mean}, {"min_gap", gaps.least}, {"max_gap", gaps.most}};
    if (changes()) {
      std::vector<int32_t>& later = e.label_slices["later"];
      later.assign(e.target.size(), -1);
      double sum = 0;
      for (size_t i = 0; i < later.size(); i++) {
        if (e.target[i] == kIgnoredLabel) continue;
        const auto source = static_cast<int32_t>(i) - e.distances[i];
        later[i] = (static_cast<int32_t>(e.evidence.size()) - 1 - source) / 2;
        sum += later[i];
      }
      e.slices["mean_later"] = sum / gaps.labels;
    }
    if (!mixed_) return;
    e.slices["length"] = static_cast<double>(setting.length);
    e.slices["pairs"] = static_cast<double>(setting.pairs);
  }

  // Any token but padding; or a blank with an id of its own, since id 0 would be masked.
  int32_t filler(Rng& random) const {
    return static_cast<int32_t>(random_non_queries_ ? random.between(1, vocab_ - 1) : vocab_);
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                     const std::vector<Example>& test) const override {
    if (changes()) return changing_shortcuts(test);
    // Early pairs get the likeliest slots, so the place of a query hints at its pair.
    const auto place = [this](const Example& e, size_t position) {
      return pairs_of(e) * length() + static_cast<int64_t>(position);
    };
    return {{"random context value", recall::random_listed_value_score(test)},
            {"likeliest pair", lookup_score(train, test, place, pair_of)}};
  }

  // Values that the key at `position` was bound to, in order.
  std::vector<int32_t> values_of(const Example& e, size_t position) const {
    std::vector<int32_t> values;
    for (size_t i = 0; i < e.evidence.size(); i += 2)
      if (e.tokens[i] == e.tokens[position] && e.tokens[i + 1] < vocab_)
        values.push_back(e.tokens[i + 1]);
    return values;
  }

  // The best of a memory that holds everything bound to a key, but not in which order.
  std::vector<Shortcut> changing_shortcuts(const std::vector<Example>& test) const {
    const auto first = [this](const Example& e, size_t p) { return values_of(e, p).front(); };
    const auto commonest = [this](const Example& e, size_t p) {
      const std::vector<int32_t> values = values_of(e, p);
      return most_frequent_of(values);
    };
    const auto last = [this](const Example& e, size_t p) { return values_of(e, p).back(); };
    std::vector<Shortcut> all = {{"random context value", recall::random_listed_value_score(test)}};
    all.push_back({"first value of the key", recall::rule_score(test, first)});
    all.push_back({"most frequent value of the key", recall::random_choice_score(test, commonest)});
    if (deletes_ > 0)
      all.push_back({"last value of the key, as if never deleted", recall::rule_score(test, last)});
    return all;
  }

  // Those that stand most often in `values`.
  static std::vector<int32_t> most_frequent_of(const std::vector<int32_t>& values) {
    std::map<int32_t, int64_t> counts;
    int64_t most = 0;
    for (const int32_t value : values) most = std::max(most, ++counts[value]);
    std::vector<int32_t> found;
    for (const auto& [value, count] : counts)
      if (count == most) found.push_back(value);
    return found;
  }

  int64_t pairs_of(const Example& e) const { return std::ssize(e.evidence) / (2 * passes_); }

  // The number of the pair whose value is the label of `position`.
  static int32_t pair_of(const Example& e, size_t position) {
    int32_t pair = 0;
    while (e.tokens[static_cast<size_t>(2 * pair + 1)] != e.target[position]) pair++;
    return pair;
  }

  std::string do_draw(const Example& e) const override {
    std::string text = "pairs   ";
    const auto shown = [this](int32_t token) {
      return deletes_ > 0 && token == deleted() ? std::string("-") : fmt::format("{}", token);
    };
    for (size_t i = 0; i < static_cast<size_t>(pairs_of(e)); i++)
      text += fmt::format(" {}:{}", e.tokens[2 * i], shown(e.tokens[2 * i + 1]));
    text += "\nqueries ";
    for (size_t i = 0; i < e.target.size(); i++)
      if (e.target[i] != kIgnoredLabel)
        text += fmt::format(" @{} {}:{}", i, e.tokens[i], shown(e.target[i]));
    return text + "\n";
  }

  int64_t vocab_, passes_, updates_, deletes_;
  bool mixed_, random_non_queries_;
  std::vector<Setting> settings_;
  int64_t shares_ = 0;
};

// One of the settings of Zoology's figure 2.
Preset figure(int64_t length, int64_t pairs) {
  return {fmt::format("zoology-{}", length),
          fmt::format("Zoology's figure 2: {} pairs in {} tokens, the rest blank", pairs, length),
          {{"vocab", int64_t{8192}},
           {"pairs", pairs},
           {"length", length},
           {"power", 0.01},
           {"random_non_queries", false},
           {"train_examples", int64_t{100'000}}}};
}

}  // namespace

TaskInfo mqar() {
  return {
      .name = "mqar",
      .summary = "recall the value that came with each key, asked again later in the sequence",
      .source = "arXiv:2312.04927 (Zoology), section 3; mixture: arXiv:2402.18668 (Based)",
      .datasheet =
          "Positions 0..2*pairs-1 hold key, value, key, value, ...; keys are from [1, vocab/2),\n"
          "values from [vocab/2, vocab), each without repetition; they are listed `passes` times,\n"
          "in the same order. In the rest every key stands once more, at the even offset 2x - 2,\n"
          "where x is drawn without repetition with probability proportional to "
          "power*x^(power-1):\n"
          "a small power asks early, 1 is uniform.\n"
          "The other positions hold random tokens, or a blank one (id vocab).\n"
          "mixture=zoology: an example is of one of the sizes (length, pairs) (64, 4), (128, 8),\n"
          "(256, 16), (256, 32) and (256, 64), those beyond the parameters length and pairs left\n"
          "out, drawn in the ratio 5:1:1:1:1; shorter ones are padded at the end.\n"
          "updates=U: each key is bound 1 + U times, each time to a value drawn uniformly from\n"
          "those other than its last one, in an order drawn uniformly. deletes=D: each key is\n"
          "bound at least twice and deleted once, by the key and a token of its own (the id after\n"
          "all others): D keys after their last binding, the others before it, so that only the\n"
          "order tells which are deleted.\n"
          "Label: at a repeated key, the token of its last value, or that of a deletion; nothing\n"
          "else is scored. Causal.\n"
          "Evidence: the positions of the pairs, all of which are asked for.\n"
          "Distance of a label: from the query back to its value's last listing; mean_gap, "
          "min_gap\n"
          "and max_gap are those of an example.\n"
          "Slices: mean_gap, min_gap, max_gap; of a mixture also length and pairs; with updates\n"
          "or deletes mean_later, how many bindings and deletions follow the one that counts.\n"
          "Of a label, with updates or deletes: later, that number for this label.",
      .params =
          {{"vocab", 8192, "tokens: half keys, half values; id 0 is padding", 4, 1e6},
           {"pairs", 8, "key-value pairs, each asked for once"},
           {"length", 64, "sequence length, even and at least (2·passes + 2)·pairs", 4, 1e6},
           {"passes", 1, "how often the pairs are listed before they are asked for", 1, 100},
           {"power", 0.01, "exponent a of the gaps' power law a·x^(a-1)", 0.001, 8.0},
           {"mixture",
            {"one", "zoology"},
            "examples of one size; or of Based's training sizes up to length and pairs"},
           ParamSpec("updates", 0, "how often each key is bound again", 0, 1000)
               .when("mixture", "one")
               .later(),
           ParamSpec(
               "deletes", 0,
               "keys that are deleted in the end; the others were before they were bound again", 0,
               1e6)
               .when("mixture", "one")
               .later(),
           {"random_non_queries", true,
            "fill the rest with random tokens rather than with a blank"},
           {"train_examples", 6400,
            "training set, repeated over epochs: small models find recall sooner on a "
            "repeated set"}},
      .presets =
          {{"standard",
            "Zoology's (256, 16) with a smaller vocabulary",
            {{"vocab", 256}, {"pairs", 16}, {"length", 256}, {"power", 1.0}}},
           {"small",
            "four pairs in 64 tokens, asked anywhere",
            {{"vocab", 64}, {"pairs", 4}, {"length", 64}, {"power", 1.0}}},
           {"updates",
            "as small, but each key is bound twice more, and the last value counts",
            {{"vocab", 64}, {"pairs", 4}, {"length", 64}, {"power", 1.0}, {"updates", 2}}},
           {"deletes",
            "as small, but each key is bound twice and deleted once, half of them in the end",
            {{"vocab", 64}, {"pairs", 4}, {"length", 64}, {"power", 1.0}, {"deletes", 2}}},
           figure(64, 4),
           figure(128, 8),
           figure(256, 16),
           figure(512, 64),
           {"based",
            "Based's training mixture, up to 64 pairs in 256 tokens",
            {{"mixture", std::string("zoology")},
             {"vocab", 8192},
             {"pairs", 64},
             {"length", 256},
             {"power", 0.01},
             {"train_examples", 180'000}}}},
      .make = make_task<Mqar>};
}

}  // namespace attn::tasks
