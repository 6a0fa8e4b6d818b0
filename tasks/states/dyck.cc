// dyck: which type has the bracket that closes next, in well-nested brackets of bounded depth?
// Hewitt et al. 2020, arXiv:2010.07515 (Dyck-(k,m)); Yao et al. 2021, arXiv:2105.11115.
// O(length) per example.
#include <algorithm>
#include <map>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/recall/draws.h"
#include "tasks/shortcuts/fitted.h"
#include "tasks/shortcuts/most_frequent.h"

namespace attn::tasks {
namespace {

class Dyck final : public Task {
 public:
  explicit Dyck(const Params& p)
      : Task(p),
        brackets_(static_cast<int32_t>(p.integer("brackets"))),
        depth_(p.integer("depth")),
        length_(p.integer("length")) {
    ATTN_CHECK(depth_ + 2 <= length_,
               "dyck: depth={} is above length={} less 2, and brackets may all stay open", depth_,
               length_);
    const double inputs = different_inputs();
    ATTN_CHECK(inputs >= recall::kFewestInputs,
               "dyck: length={} with brackets={} and depth={} makes about {:.0f} different inputs, "
               "fewer than {:.0f}; length or brackets must be larger",
               length_, brackets_, depth_, inputs, recall::kFewestInputs);
  }

 private:
  // Inputs are not equally likely. This is the inverse of the odds that two are equal, or a number
  // above kFewestInputs: a longer input is equal to another one no more often.
  double different_inputs() const {
    std::vector<double> equal(static_cast<size_t>(depth_ + 1));  // odds by the depth reached
    equal[0] = 1;
    double inputs = 1;
    for (int64_t i = 0; i < length_ && inputs < recall::kFewestInputs; i++) {
      std::vector<double> next(equal.size());
      for (size_t d = 0; d < equal.size(); d++) {
        const bool free = d > 0 && d + 1 < equal.size();
        const double each = equal[d] * (free ? 0.25 : 1.0);  // both words make the same choice
        if (d + 1 < equal.size()) next[d + 1] += each / brackets_;
        if (d > 0) next[d - 1] += each;
      }
      equal = next;
      double sum = 0;
      for (const double odds : equal) sum += odds;
      inputs = 1 / sum;
    }
    return inputs;
  }

  struct Open {
    int32_t type;
    size_t position;
  };

  // Short words may hold no two closing brackets in a row, and then no label.
  Example do_example(Rng& random) const override {
    for (;;)
      if (Example e = draw_word(random); !e.slices.empty()) return e;
  }

  Example draw_word(Rng& random) const {
    Example e;
    const auto length = static_cast<size_t>(length_);
    e.target.assign(length, kIgnoredLabel);
    e.distances.assign(length, -1);
    std::vector<Open> stack;
    size_t deepest = 0;
    int32_t farthest = -1;
    for (size_t i = 0; i < length; i++) {
      const bool empty = stack.empty(), full = std::ssize(stack) == depth_;
      if (empty || (!full && random.coin())) {
        const auto type = static_cast<int32_t>(random.between(0, brackets_ - 1));
        stack.push_back({type, i});
        e.tokens.push_back(opening(type));
        deepest = std::max(deepest, stack.size());
        continue;
      }
      const Open last = stack.back();
      stack.pop_back();
      if (!opens(e.tokens.back())) {
        e.target[i - 1] = last.type;
        e.distances[i - 1] = static_cast<int32_t>(i - 1 - last.position);
        farthest = std::max(farthest, e.distances[i - 1]);
      }
      e.tokens.push_back(opening(last.type) + brackets_);
    }
    e.evidence = first_positions(length);
    if (farthest >= 0)
      e.slices = {{"depth", static_cast<double>(deepest)},
                  {"max_gap", static_cast<double>(farthest)}};
    return e;
  }

  static int32_t opening(int32_t type) { return type + 1; }
  bool opens(int32_t token) const { return token <= brackets_; }
  int32_t type_of(int32_t token) const { return (token - 1) % brackets_; }

  TaskShape do_shape() const override {
    return {.length = length_,
            .vocab = 2 * int64_t{brackets_} + 1,
            .classes = brackets_,
            .per_token = true,
            .causal = true};
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                     const std::vector<Example>& test) const override {
    const auto latest = [this](const Example& e, size_t i) {
      while (!opens(e.tokens[i])) i--;
      return int64_t{type_of(e.tokens[i])};
    };
    const auto commonest = [this](const Example& e, size_t i) { return most_common(e, i, 0); };
    const auto stacked = [this](const Example& e, size_t i) { return open_in_window(e, i); };
    const auto open = [this](const Example& e, size_t i) { return most_common(e, i, -1); };
    return {{"latest opening bracket", lookup_score(train, test, latest)},
            {"most frequent opening bracket", lookup_score(train, test, commonest)},
            {"type most often left open", lookup_score(train, test, open)},
            {"stack of the last 16 tokens", lookup_score(train, test, stacked)}};
  }

  // The type that the last 16 tokens leave open; -1 where it opened before them.
  int64_t open_in_window(const Example& e, size_t position) const {
    constexpr size_t kWindow = 16;
    int64_t closed = 0;
    for (size_t i = position + 1; i-- > 0 && i + kWindow > position;) {
      if (!opens(e.tokens[i]))
        closed++;
      else if (closed-- == 0)
        return type_of(e.tokens[i]);
    }
    return -1;
  }

  // The type with the largest count up to a position, where a closing bracket counts `closed`.
  int64_t most_common(const Example& e, size_t position, int64_t closed) const {
    std::map<int64_t, int64_t> counts;
    for (size_t i = 0; i <= position; i++)
      counts[type_of(e.tokens[i])] += opens(e.tokens[i]) ? 1 : closed;
    return most_frequent(counts);
  }

  // Letters for the first 26 types, small where they open; numbers for more.
  std::string do_draw(const Example& e) const override {
    std::string text, labels;
    const bool letters = brackets_ <= 26;
    for (size_t i = 0; i < e.tokens.size(); i++) {
      const int32_t type = type_of(e.tokens[i]), label = e.target[i];
      if (letters) {
        text += static_cast<char>((opens(e.tokens[i]) ? 'a' : 'A') + type);
        labels += label == kIgnoredLabel ? ' ' : static_cast<char>('A' + label);
      } else {
        text += fmt::format("{}{} ", opens(e.tokens[i]) ? '+' : '-', type);
        if (label != kIgnoredLabel) labels += fmt::format("@{} {} ", i, label);
      }
    }
    return text + "\n" + labels + "\n";
  }

  int32_t brackets_;
  int64_t depth_, length_;
};

}  // namespace

TaskInfo dyck() {
  return {
      .name = "dyck",
      .summary = "the type of the bracket that closes next: a stack of bounded depth",
      .source = "arXiv:2010.07515 (Dyck-(k,m)); arXiv:2105.11115 (attention)",
      .datasheet =
          "The first `length` symbols of an endless row of well-nested words over `brackets`\n"
          "types of brackets, of which at most `depth` are open at any place. Where none is open\n"
          "one opens; where `depth` are open one closes; elsewhere either has even odds. The type\n"
          "of an opening bracket is uniform.\n"
          "Tokens: 1..brackets open a bracket, brackets+1..2*brackets close one of the same type,\n"
          "in the same order.\n"
          "Label: at a closing bracket before another one, the type of that other one, in\n"
          "0..brackets-1, which is the type of the latest bracket that is open there. Causal. The\n"
          "papers score the prediction of every closing bracket; but behind an opening one that\n"
          "type is the opening one's, which no stack is needed for. Before an opening bracket\n"
          "nothing can be predicted. A word without a label is drawn again.\n"
          "Two layers of attention suffice: one for the depth, one for the latest bracket of that\n"
          "depth. The latest opening bracket has been closed, and tells nothing.\n"
          "Evidence: all positions; a label depends on those up to its own.\n"
          "Distance: from a position back to the bracket that is closed behind it.\n"
          "Slices: depth (the most brackets open at once), max_gap (the largest distance).",
      .params = {{"brackets", 8, "types of brackets: k of Dyck-(k,m)", 2, 10000},
                 {"depth", 10, "brackets that may be open at once: m of Dyck-(k,m)", 2, 10000},
                 {"length", 128, "symbols, brackets that stay open included", 4, 1e6},
                 {"train_examples", 100000, "training set, repeated over epochs"}},
      .presets =
          {{"standard", "eight types, ten deep", {{"brackets", 8}, {"depth", 10}, {"length", 128}}},
           {"small", "eight types, five deep", {{"brackets", 8}, {"depth", 5}, {"length", 64}}}},
      .make = make_task<Dyck>};
}

}  // namespace attn::tasks
