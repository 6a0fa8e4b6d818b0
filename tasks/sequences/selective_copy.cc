// selective_copy: symbols at random places among blanks, then as many markers. The labels at the
// markers are the symbols in order. Gu and Dao 2023 (Mamba), arXiv:2312.00752, section 4.1.1; Poli
// et al. 2024 (MAD), arXiv:2403.17844. O(length) per example.
#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/recall/draws.h"
#include "tasks/recall/recall_task.h"
#include "tasks/shortcuts/remaining.h"

namespace attn::tasks {
namespace {

// `count` of the places [0, all), in ascending order, each set of them as likely as any other:
// a place is taken with odds of those still wanted among those still open.
std::vector<int64_t> any_places(Rng& random, int64_t count, int64_t all) {
  std::vector<int64_t> places;
  for (int64_t place = 0; count > 0; place++)
    if (random.between(1, all - place) <= count) {
      places.push_back(place);
      count--;
    }
  return places;
}

// As above, but each blank chooses the symbol that it stands before.
std::vector<int64_t> places_behind_blanks(Rng& random, int64_t count, int64_t all) {
  std::vector<int64_t> blanks(static_cast<size_t>(count));
  for (int64_t i = 0; i < all - count; i++)
    blanks[static_cast<size_t>(random.between(0, count - 1))]++;
  std::vector<int64_t> places;
  int64_t next = 0;
  for (const int64_t before : blanks) {
    places.push_back(next + before);
    next = places.back() + 1;
  }
  return places;
}

class SelectiveCopy final : public recall::RecallTask {
 public:
  explicit SelectiveCopy(const Params& p)
      : RecallTask(p, p.integer("symbols") + 3, p.integer("symbols") + 1),
        symbols_(p.integer("symbols")),
        items_(p.integer("items")),
        context_(length() - items_),
        uniform_(p.text("places") == "uniform") {
    ATTN_CHECK(items_ <= context_,
               "selective_copy: items={} symbols and as many markers need a length of at least {}, "
               "got length={}",
               items_, 2 * items_, length());
    double inputs = 1;
    for (int64_t i = 0; i < items_ && inputs < recall::kFewestInputs; i++)
      inputs *= static_cast<double>(symbols_ * (context_ - i)) / static_cast<double>(i + 1);
    ATTN_CHECK(
        inputs >= recall::kFewestInputs,
        "selective_copy: length={} with items={} and symbols={} has {:.0f} different inputs, "
        "fewer than {}",
        length(), items_, symbols_, inputs, recall::kFewestInputs);
  }

 private:
  Example do_example(Rng& random) const override {
    const auto draw = uniform_ ? any_places : places_behind_blanks;
    const std::vector<int64_t> places = draw(random, items_, context_);
    const auto context = static_cast<size_t>(context_);
    Example e;
    e.tokens.assign(context, blank());
    e.tokens.resize(static_cast<size_t>(length()), marker());
    clear_labels(e);
    for (size_t i = 0; i < places.size(); i++) {
      const auto from = static_cast<size_t>(places[i]);
      e.tokens[from] = static_cast<int32_t>(random.between(1, symbols_));
      set_label(e, context + i, from);
      e.evidence.push_back(static_cast<int32_t>(from));
    }
    e.slices = {{"mean_gap", recall::gaps_of(e).mean}};
    return e;
  }

  int32_t blank() const { return static_cast<int32_t>(symbols_ + 1); }
  int32_t marker() const { return static_cast<int32_t>(symbols_ + 2); }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>& test) const override {
    return {{"most frequent symbol left", remaining_score(test)}};
  }

  std::string do_draw(const Example& e) const override {
    std::string text;
    for (const int32_t token : e.tokens)
      text += token == blank() ? "." : token == marker() ? "?" : fmt::format(" {} ", token);
    text += "\nwanted:";
    for (const int32_t label : e.target)
      if (label != kIgnoredLabel) text += fmt::format(" {}", label);
    return text + "\n";
  }

  int64_t symbols_, items_, context_;
  bool uniform_;
};

}  // namespace

TaskInfo selective_copy() {
  return {
      .name = "selective_copy",
      .summary = "repeat in order the symbols that stand at random places among blanks",
      .source = "arXiv:2312.00752 (Mamba), section 4.1.1; arXiv:2403.17844 (MAD)",
      .datasheet =
          "The first length - items positions are the context: `items` symbols in order, each\n"
          "drawn uniformly from 1..symbols, among blanks (token symbols+1). The last `items`\n"
          "positions hold markers (token symbols+2). places=uniform: every set of places in the\n"
          "context is equally likely; gaps: every blank stands before a symbol drawn uniformly,\n"
          "so the last position of the context holds a symbol.\n"
          "Label: at marker i the i-th symbol of the context; nothing else is scored. Causal.\n"
          "Evidence: the places of the symbols.\n"
          "Distance of a label: from its marker back to its symbol; at least items.\n"
          "Slices: mean_gap, the mean of an example's distances.",
      .params = {{"symbols", 14, "different symbols; blank, marker and padding are not among them",
                  2, 1e6},
                 {"items", 16, "symbols to be repeated, and markers"},
                 {"length", 256, "context and markers, at least 2·items", 4, 1e6},
                 {"places", {"uniform", "gaps"}, "where symbols stand among the blanks"},
                 {"train_examples", 100000, "training set, repeated over epochs"}},
      .presets =
          {{"mad",
            "MAD's: a vocabulary of 16 with blank and marker, no blank behind the last symbol",
            {{"symbols", 14},
             {"items", 16},
             {"length", 256},
             {"places", std::string("gaps")},
             {"train_examples", 12800}}},
           {"mamba",
            "Mamba's: a vocabulary of 16 with blank and marker, length 4096 in all",
            {{"symbols", 14}, {"items", 16}, {"length", 4096}}}},
      .make = make_task<SelectiveCopy>};
}

}  // namespace attn::tasks
