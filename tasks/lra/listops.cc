// listops: evaluate nested MIN, MAX, MED and SM (sum modulo 10) of digits to one digit. Nangia and
// Bowman 2018, with the grammar and the rejection rule of Long Range Arena
// (arXiv:2011.04006, 2.2.1). O(draws·length) per example.
#include <algorithm>
#include <array>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/data/released.h"
#include "tasks/data/sources.h"
#include "tasks/shortcuts/fitted.h"

namespace attn::tasks {
namespace {

// Ids: 0 padding, 1..10 the digits 0..9, 11..14 the operators, 15 the closing bracket.
enum ListToken : int32_t { kDigit = 1, kMin = 11, kMax, kMed, kSum, kClose, kVocab };
constexpr const char* kOperatorNames[] = {"[MIN", "[MAX", "[MED", "[SM"};

int apply(int32_t op, std::vector<int>& args) {
  switch (op) {
    case kMin:
      return *std::min_element(args.begin(), args.end());
    case kMax:
      return *std::max_element(args.begin(), args.end());
    case kMed:
      std::sort(args.begin(), args.end());
      return (args[(args.size() - 1) / 2] + args[args.size() / 2]) / 2;
    default:
      break;
  }
  int sum = 0;
  for (const int arg : args) sum += arg;
  return sum % 10;
}

struct Limits {
  int64_t max_depth, max_args, min_length, length;
  double value_p;
};

// One draw of a tree, given up as soon as no completion can be short enough: what is accepted keeps
// its distribution.
class Draw {
 public:
  Draw(const Limits& limits, Rng& random, std::vector<int32_t>& tokens)
      : limits_(limits), random_(random), tokens_(tokens) {}
  bool accepted() { return node(1) && static_cast<int64_t>(tokens_.size()) > limits_.min_length; }

 private:
  bool node(int64_t depth) {
    if (depth >= limits_.max_depth || random_.uniform() > limits_.value_p) {
      tokens_.push_back(kDigit + static_cast<int32_t>(random_.below(10)));
      return true;
    }
    tokens_.push_back(kMin + static_cast<int32_t>(random_.below(4)));
    const int64_t args = random_.between(2, limits_.max_args);
    shortest_ += 1 + args;  // in place of one token: two brackets, and a token or more an argument
    if (shortest_ >= limits_.length) return false;
    for (int64_t i = 0; i < args; i++)
      if (!node(depth + 1)) return false;
    tokens_.push_back(kClose);
    return true;
  }

  const Limits& limits_;
  Rng& random_;
  std::vector<int32_t>& tokens_;
  int64_t shortest_ = 1;
};

// False when `draws` were not enough.
bool draw_tree(const Limits& limits, Rng& random, int64_t draws, std::vector<int32_t>& tokens) {
  for (; draws > 0; draws--) {
    tokens.clear();
    if (Draw(limits, random, tokens).accepted()) return true;
  }
  return false;
}

struct Node {
  int32_t token, position;
  int value;
  std::vector<Node> args;
};

Node parse(const std::vector<int32_t>& tokens, int32_t& at) {
  Node node{tokens[static_cast<size_t>(at)], at, 0, {}};
  at++;
  if (node.token < kMin) {
    node.value = node.token - kDigit;
    return node;
  }
  std::vector<int> values;
  while (tokens[static_cast<size_t>(at)] != kClose) {
    node.args.push_back(parse(tokens, at));
    values.push_back(node.args.back().value);
  }
  at++;
  node.value = apply(node.token, values);
  return node;
}

int64_t operator_depth(const Node& node) {
  if (node.args.empty()) return 0;
  int64_t deepest = 0;
  for (const Node& arg : node.args) deepest = std::max(deepest, operator_depth(arg));
  return deepest + 1;
}

// Collects the leaves under `node` that can change the answer alone; answers[x] is the root's value
// if this node's were x.
void find_evidence(const Node& node, const std::array<int, 10>& answers,
                   std::vector<int32_t>& evidence) {
  if (std::all_of(answers.begin(), answers.end(), [&](int a) { return a == answers[0]; })) return;
  if (node.args.empty()) evidence.push_back(node.position);
  for (const Node& changed : node.args) {
    std::array<int, 10> of_arg;
    for (int x = 0; x < 10; x++) {
      std::vector<int> values;
      for (const Node& arg : node.args) values.push_back(&arg == &changed ? x : arg.value);
      of_arg[static_cast<size_t>(x)] = answers[static_cast<size_t>(apply(node.token, values))];
    }
    find_evidence(changed, of_arg, evidence);
  }
}

class Listops final : public Task {
 public:
  explicit Listops(const Params& p) : Task(p), limits_(limits_of(p)) {
    ATTN_CHECK(limits_.min_length + 1 < limits_.length,
               "listops: no length lies strictly between min_length={} and length={}",
               limits_.min_length, limits_.length);
    if (const std::string& folder = p.text("data"); !folder.empty()) {
      files_ = data::listops_tsv(folder, limits_.length, add_solution);
      return;
    }
    Rng random = rng(0, "listops/construction");
    std::vector<int32_t> tokens;
    ATTN_CHECK(draw_tree(limits_, random, kProbeDraws, tokens),
               "listops: none of {} trees has a length strictly between min_length={} and "
               "length={} with max_depth={}, max_args={}, value_p={}; widen the range or allow "
               "other trees",
               kProbeDraws, limits_.min_length, limits_.length, limits_.max_depth, limits_.max_args,
               limits_.value_p);
  }

 private:
  // Most settings accept one tree in 10 to 10'000. The second limit only stops what cannot end: a
  // setting that passed the probe by luck once in a hundred still fails here with odds of e^-10.
  static constexpr int64_t kProbeDraws = 200'000;
  static constexpr int64_t kMaxDraws = 1000 * kProbeDraws;

  static Limits limits_of(const Params& p) {
    const int64_t length = p.integer("length"), min_length = p.integer("min_length");
    return {p.integer("max_depth"), p.integer("max_args"), min_length > 0 ? min_length : length / 4,
            length, p.number("value_p")};
  }

  Example do_example(Rng& random) const override {
    Example e;
    ATTN_CHECK(draw_tree(limits_, random, kMaxDraws, e.tokens),
               "listops: no tree of the wanted length in {} draws", kMaxDraws);
    add_solution(e);
    return e;
  }

  const Source* do_source() const override { return files_.get(); }

  // The label, unless there is one already, which must be right; evidence and slices.
  static void add_solution(Example& e) {
    int32_t at = 0;
    const Node root = parse(e.tokens, at);
    if (e.target.empty()) e.target = {root.value};
    ATTN_CHECK(e.target[0] == root.value, "label {}; the tree's value is {}", e.target[0],
               root.value);
    find_evidence(root, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, e.evidence);
    e.slices = {{"depth", static_cast<double>(operator_depth(root))},
                {"length", static_cast<double>(e.tokens.size())},
                {"evidence", static_cast<double>(e.evidence.size())}};
  }

  TaskShape do_shape() const override {
    return {.length = limits_.length, .vocab = kVocab, .classes = 10};
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                     const std::vector<Example>& test) const override {
    const auto root = [](const Example& e, size_t) { return e.tokens[0]; };
    return {{"root operator", lookup_score(train, test, root)},
            {"root operator, its digits", lookup_score(train, test, [](const Example& e, size_t) {
               return shallow_key(e.tokens);
             })}};
  }

  // The root's operator, and what it makes of the digits that are its own arguments: the value for
  // one in a few trees, and for MIN and MAX a bound.
  static int64_t shallow_key(const std::vector<int32_t>& tokens) {
    if (tokens[0] < kMin) return tokens[0];
    std::vector<int> digits;
    int depth = 0;
    for (const int32_t token : tokens) {
      if (token < kMin && depth == 1) digits.push_back(token - kDigit);
      depth += token == kClose ? -1 : token >= kMin;
    }
    return 100 * tokens[0] + (digits.empty() ? 10 : apply(tokens[0], digits));
  }

  std::string do_draw(const Example& e) const override {
    std::string text;
    for (const int32_t token : e.tokens) {
      if (token == kClose)
        text += "] ";
      else if (token >= kMin)
        text += fmt::format("{} ", kOperatorNames[token - kMin]);
      else
        text += fmt::format("{} ", token - kDigit);
    }
    return text + fmt::format("= {}\n", e.target[0]);
  }

  Limits limits_;
  std::unique_ptr<Source> files_;
};

}  // namespace

TaskInfo listops() {
  return {
      .name = "listops",
      .summary = "evaluate nested MIN, MAX, MED and sum modulo 10 of digits to one digit",
      .source = "arXiv:2011.04006 (Long Range Arena), 2.2.1; after arXiv:1804.06028 (ListOps)",
      .datasheet =
          "Trees: a node is an operator with probability value_p (a digit at max_depth), one of\n"
          "MIN, MAX, MED (rounded down) and SM (sum modulo 10), with 2..max_args arguments.\n"
          "A tree is kept when its length, counting digits, operators and closing brackets, is\n"
          "strictly between min_length and length. LRA's trees, without its removal of doubles.\n"
          "Label: the value, 0..9. Tokens: 1-10 the digits 0-9; 11-14 MIN, MAX, MED, SM, each\n"
          "with its opening bracket; 15 the closing bracket.\n"
          "Evidence: the digits that can change the answer when they alone are changed.\n"
          "Slices: depth (nested operators), length (tokens), evidence (number of such digits).",
      .params = {{"max_depth", 10, "a node this deep is a digit; the root is at 1", 2, 64},
                 {"max_args", 10, "most arguments of an operator", 2, 100},
                 {"min_length", 0,
                  "trees are longer than this; 0: a quarter of length, 500 at LRA's 2000", 0, 1e6},
                 {"length", 2000, "trees are shorter than this", 6, 1e6},
                 {"value_p", 0.25, "probability of an operator (LRA's name and value)", 0.01, 1.0},
                 {"train_examples", 96000, "training set, repeated over epochs; LRA's size"},
                 {"data", std::vector<std::string>{""},
                  "folder of LRA's released TSV files; empty: generated trees"}},
      .presets = {{"lra", "Long Range Arena's trees", {{"length", 2000}, {"min_length", 500}}},
                  {"standard",
                   "20 to 200 tokens, operators nested 3 deep",
                   {{"length", 200},
                    {"min_length", 20},
                    {"max_depth", 4},
                    {"max_args", 5},
                    {"value_p", 0.4}}},
                  {"small",
                   "over 20 tokens, operators nested 2 deep",
                   {{"length", 100},
                    {"min_length", 20},
                    {"max_depth", 3},
                    {"max_args", 5},
                    {"value_p", 0.5}}}},
      .make = make_task<Listops>,
      .released = &data::listops_tsv_format()};
}

}  // namespace attn::tasks
