// counter: languages that need counters alone, blocks a^n b^n and shuffled brackets. Which symbols
// may come next? Suzgun et al. 2019, arXiv:1906.03648; Bhattamishra et al. 2020, arXiv:2009.11264.
// O(length) per example, and O(counters) per position of shuffled brackets.
#include <algorithm>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/recall/draws.h"
#include "tasks/shortcuts/fitted.h"

namespace attn::tasks {
namespace {

constexpr int32_t kFirst = 1, kSecond = 2, kBlank = 3;  // the tokens of a, b and a blank

class Counter final : public Task {
 public:
  explicit Counter(const Params& p)
      : Task(p),
        blocks_(p.text("language") == "anbn"),
        counters_(static_cast<int32_t>(p.integer("counters"))),
        longest_(p.integer("longest")),
        length_(p.integer("length")) {
    if (blocks_)
      check_blocks();
    else
      recall::check_inputs("counter", counters_, length_, "length");
  }

 private:
  void check_blocks() const {
    ATTN_CHECK(2 * longest_ < length_,
               "counter: longest={} makes a blank and a block of {} symbols, more than length={}",
               longest_, 2 * longest_, length_);
    const double inputs = different_inputs();
    ATTN_CHECK(inputs >= recall::kFewestInputs,
               "counter: length={} with longest={} makes about {:.0f} different inputs, fewer than "
               "{:.0f}; length must be larger",
               length_, longest_, inputs, recall::kFewestInputs);
  }

  // Rows of blocks are not equally likely. This is the inverse of the odds that two are equal, or a
  // number above kFewestInputs: a longer input is equal to another one no more often.
  double different_inputs() const {
    const auto sizes = static_cast<double>(longest_);
    // Odds of an equal rest by its length, before a blank or none and, for the last, behind that.
    std::vector<double> equal = {1}, sums = {1};  // sums over every second length
    double behind = 1;
    for (int64_t length = 1; length <= length_; length++) {
      // Both begin with the same block that ends here or before; or with blocks that are cut off,
      // of which those without a b are alike.
      const int64_t whole = std::min(longest_, length / 2);
      const int64_t before = length - 2 * whole - 2;  // the last length that is not summed
      double odds = whole == 0 ? 0 : sums[static_cast<size_t>(length - 2)];
      if (whole > 0 && before >= 0) odds -= sums[static_cast<size_t>(before)];
      const auto alike = static_cast<double>(std::max<int64_t>(0, longest_ - length + 1));
      const auto cut = static_cast<double>(std::min(longest_, length - 1) - whole);
      odds = (odds + cut + alike * alike) / (sizes * sizes);
      equal.push_back((odds + behind) / 4);  // both without a blank, or both with one
      behind = odds;
      sums.push_back(equal.back() + (length >= 2 ? sums[static_cast<size_t>(length - 2)] : 0));
      if (equal.back() * recall::kFewestInputs <= 1) break;
    }
    return 1 / equal.back();
  }

  Example do_example(Rng& random) const override {
    Example e;
    e.target.assign(static_cast<size_t>(length_), kIgnoredLabel);
    e.distances.assign(static_cast<size_t>(length_), -1);
    const int64_t largest = blocks_ ? add_blocks(random, e) : add_shuffle(random, e);
    e.evidence = first_positions(e.tokens.size());
    e.slices = {{"largest", static_cast<double>(largest)}};
    return e;
  }

  // Both return the largest count.
  int64_t add_blocks(Rng& random, Example& e) const {
    int64_t largest = 0;
    for (int64_t begin = 0; begin < length_;) {
      if (random.coin()) {
        e.tokens.push_back(kBlank);
        if (++begin == length_) break;
      }
      const int64_t n = random.between(1, longest_), end = begin + 2 * n;
      for (int64_t i = begin; i < std::min(end, length_); i++)
        e.tokens.push_back(i < begin + n ? kFirst : kSecond);
      if (end <= length_) {
        largest = std::max(largest, n);
        set_label(e, end - 1, begin, kEnds);
        if (n > 1) set_label(e, begin + n + random.between(0, n - 2), begin, kGoesOn);
      }
      begin = end;
    }
    return largest;
  }

  static constexpr int32_t kGoesOn = 0, kEnds = 1;  // b must come next, or may not

  static void set_label(Example& e, int64_t position, int64_t from, int32_t label) {
    e.target[static_cast<size_t>(position)] = label;
    e.distances[static_cast<size_t>(position)] = static_cast<int32_t>(position - from);
  }

  int64_t add_shuffle(Rng& random, Example& e) const {
    std::vector<int64_t> counts(static_cast<size_t>(counters_)), left_zero(counts.size(), -1);
    int64_t largest = 0;
    int32_t label = 0;
    for (int64_t i = 0; i < length_; i++) {
      const auto c = static_cast<size_t>(random.between(0, counters_ - 1));
      const bool up = counts[c] == 0 || random.below(kOutOf) < kUp;
      if (counts[c] == 0) left_zero[c] = i;
      counts[c] += up ? 1 : -1;
      largest = std::max(largest, counts[c]);
      const int32_t bit = 1 << c;
      label = counts[c] > 0 ? label | bit : label & ~bit;
      e.tokens.push_back(static_cast<int32_t>(c) + 1 + (up ? 0 : counters_));
      int64_t from = i;
      for (const int64_t start : left_zero)
        if (start >= 0) from = std::min(from, start);
      set_label(e, i, from, label);
    }
    return largest;
  }

  // A bracket opens with odds 2/5 where its type may also close: a count is zero in one place of
  // six, and above four in as many.
  static constexpr uint64_t kUp = 2, kOutOf = 5;

  TaskShape do_shape() const override {
    return {.length = length_,
            .vocab = blocks_ ? 4 : 2 * int64_t{counters_} + 1,
            .classes = blocks_ ? 2 : int64_t{1} << counters_,
            .per_token = true,
            .causal = true};
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                     const std::vector<Example>& test) const override {
    const auto run = [](const Example& e, size_t i) {
      int64_t same = 1;
      while (i >= static_cast<size_t>(same) && e.tokens[i - static_cast<size_t>(same)] == kSecond)
        same++;
      return same;
    };
    if (blocks_) return {{"b's since the last a", lookup_score(train, test, run)}};
    const auto moves = [this](const Example& e, size_t i) { return last_moves(e, i); };
    return {{"last bracket of each type", lookup_score(train, test, moves)},
            {"last 8 brackets of each type", by_latest(train, test)}};
  }

  static constexpr int32_t kLatest = 8;

  // Adds a bracket to the last kLatest of its type, which are the bits below the highest one.
  void move(int32_t token, std::vector<uint32_t>& latest) const {
    uint32_t& bits = latest[static_cast<size_t>((token - 1) % counters_)];
    bits = 2 * bits + (token <= counters_);
    if (bits >= 2U << kLatest) bits = bits % (1U << kLatest) + (1U << kLatest);
  }

  // The set of the types of which, after the same latest brackets of the type, more than half of
  // the training labels say that one may close.
  double by_latest(const std::vector<Example>& train, const std::vector<Example>& test) const {
    std::vector<int64_t> may_close(2U << kLatest);  // less the labels that say it may not
    const auto each = [this](const std::vector<Example>& examples, const auto& label) {
      for (const Example& e : examples) {
        std::vector<uint32_t> latest(static_cast<size_t>(counters_), 1);
        for (size_t i = 0; i < e.tokens.size(); i++) {
          move(e.tokens[i], latest);
          if (e.target[i] != kIgnoredLabel) label(e.target[i], latest);
        }
      }
    };
    each(train, [&](int32_t set, const std::vector<uint32_t>& latest) {
      for (size_t type = 0; type < latest.size(); type++)
        may_close[latest[type]] += ((set >> type) & 1) ? 1 : -1;
    });
    int64_t right = 0, labels = 0;
    each(test, [&](int32_t set, const std::vector<uint32_t>& latest) {
      int32_t guess = 0;
      for (size_t type = 0; type < latest.size(); type++)
        guess |= int32_t{may_close[latest[type]] > 0} << type;
      right += guess == set;
      labels++;
    });
    return static_cast<double>(right) / static_cast<double>(labels);
  }

  // A digit for each type: it has not occurred, it opened last, it closed last.
  int64_t last_moves(const Example& e, size_t position) const {
    std::vector<int64_t> last(static_cast<size_t>(counters_));
    for (size_t i = 0; i <= position; i++) {
      const int32_t type = (e.tokens[i] - 1) % counters_;
      last[static_cast<size_t>(type)] = e.tokens[i] <= counters_ ? 1 : 2;
    }
    int64_t key = 0;
    for (const int64_t digit : last) key = 3 * key + digit;
    return key;
  }

  std::string do_draw(const Example& e) const override {
    std::string text, labels;
    for (size_t i = 0; i < e.tokens.size(); i++) {
      const int32_t token = e.tokens[i] - 1, label = e.target[i];
      if (blocks_) {
        text += "ab."[token];
        labels += label == kIgnoredLabel ? ' ' : label == kEnds ? '|' : 'b';
      } else {
        text += static_cast<char>((token < counters_ ? 'a' : 'A') + token % counters_);
        labels += fmt::format("{} ", label);
      }
    }
    return text + (blocks_ ? "\n" : "\nsets ") + labels + "\n";
  }

  bool blocks_;
  int32_t counters_;
  int64_t longest_, length_;
};

}  // namespace

TaskInfo counter() {
  return {
      .name = "counter",
      .summary = "which symbols may come next where only counts matter: a^n b^n, mixed brackets",
      .source = "arXiv:1906.03648 (shuffled brackets); arXiv:2009.11264 (next symbols)",
      .datasheet =
          "language=shuffle: brackets of `counters` types, each well nested for itself, whatever\n"
          "stands between them. The type of each symbol is uniform; it opens where none of the\n"
          "type is open, else with odds 2/5. Tokens: 1..counters open a bracket of a type,\n"
          "counters+1..2*counters close one, in the same order.\n"
          "Label: at every position, the set of types that may be closed next, as the number that\n"
          "has bit t (0, 1, ...) where a bracket of type t is open; any type may be opened.\n"
          "language=anbn: blocks of n a's and n b's, n uniform in 1..longest for each block, and\n"
          "before each block with even odds a blank, so that a position does not tell whether a\n"
          "block of even length may end there. The last block may be cut off. Tokens: 1 for a, 2\n"
          "for b, 3 for a blank.\n"
          "Label: at the last b of a block 1, no b may come next; at one other of the block's "
          "b's,\n"
          "drawn uniformly, 0, only b may. Nothing else is scored. The papers score all "
          "positions;\n"
          "but at an a both may come next, and most b's are not the last.\n"
          "Both: causal, and `length` symbols long.\n"
          "Attention can count by averaging. Of shuffled brackets, the last symbol of each type\n"
          "tells that the type is open where it opens, and else nothing certain; of blocks, the\n"
          "number of b's alone tells a little, as blocks end at longest.\n"
          "Evidence: all positions; a label depends on those up to its own.\n"
          "Distance: of blocks, from a position back to the first a of its block; of shuffled\n"
          "brackets, back to the earliest of the places where types left zero for the last time.\n"
          "Slices: largest (the largest n of a whole block; the most open brackets of a type).",
      .params =
          {{"language", {"shuffle", "anbn"}, "brackets of several types, or blocks"},
           ParamSpec("counters", 3, "types of brackets", 2, 6).when("language", "shuffle"),
           ParamSpec("longest", 24, "a's of a block at most", 2, 1e6).when("language", "anbn"),
           {"length", 128, "symbols", 4, 1e6},
           {"train_examples", 100000, "training set, repeated over epochs"}},
      .presets = {{"standard",
                   "shuffled brackets of three types",
                   {{"language", std::string("shuffle")}, {"length", 128}}},
                  {"small",
                   "blocks of up to 24 a's and as many b's",
                   {{"language", std::string("anbn")}, {"length", 128}}}},
      .make = make_task<Counter>};
}

}  // namespace attn::tasks
