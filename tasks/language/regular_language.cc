// regular_language: predict each token of strings of a random automaton, which no other sequence
// has. Akyürek et al. 2024, arXiv:2401.12973 (in-context language learning), section 3. O(length)
// per example.
#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/language/automaton.h"

namespace attn::tasks {
namespace {

class RegularLanguage final : public Task {
 public:
  explicit RegularLanguage(const Params& p)
      : Task(p),
        length_(p.integer("length")),
        sizes_{.least_states = p.integer("min_states"),
               .states = p.integer("states"),
               .least_symbols = p.integer("min_symbols"),
               .symbols = p.integer("symbols"),
               .out_degree = p.integer("out_degree"),
               .longest = p.integer("longest")} {
    const auto check_range = [](const char* least, int64_t low, const char* most, int64_t high) {
      ATTN_CHECK(low <= high, "regular_language: {}={} must be at most {}={}", least, low, most,
                 high);
    };
    check_range("min_states", sizes_.least_states, "states", sizes_.states);
    check_range("min_symbols", sizes_.least_symbols, "symbols", sizes_.symbols);
  }

 private:
  int32_t separator() const { return static_cast<int32_t>(sizes_.symbols + 1); }

  Example do_example(Rng& random) const override {
    const language::Automaton automaton = language::draw_automaton(sizes_, random);
    language::Strings strings(automaton, sizes_.longest, separator());
    Example e;
    double entropy = 0;
    int32_t token = strings.next(random);
    for (int32_t i = 0; i < static_cast<int32_t>(length_); i++) {
      e.tokens.push_back(token);
      entropy += strings.entropy();
      token = strings.next(random);
      e.target.push_back(token - 1);
      e.distances.push_back(i);
    }
    e.slices = {{"states", static_cast<double>(automaton.edges.size())},
                {"symbols", static_cast<double>(automaton.symbols)},
                {"entropy", entropy / static_cast<double>(length_)}};
    return e;
  }

  TaskShape do_shape() const override {
    return {.length = length_,
            .vocab = sizes_.symbols + 2,
            .classes = sizes_.symbols + 1,
            .per_token = true,
            .causal = true,
            .bits = true};
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>&) const override {
    return {};  // the n-grams of all tasks that are scored in bits
  }

  std::string do_draw(const Example& e) const override {
    std::string text;
    for (const int32_t token : e.tokens)
      text += token == separator() ? "| " : fmt::format("{} ", token);
    return text + fmt::format("...\nthe automaton has {} states and {} symbols\n",
                              e.slices.at("states"), e.slices.at("symbols"));
  }

  int64_t length_;
  language::AutomatonSizes sizes_;
};

}  // namespace

TaskInfo regular_language() {
  return {
      .name = "regular_language",
      .summary = "the next token of strings from a random automaton, new in every sequence",
      .source = "arXiv:2401.12973 (in-context language learning), section 3, and its generator",
      .datasheet =
          "A sequence is strings of one automaton, each followed by the separator, token\n"
          "symbols+1, and is cut after `length` tokens. No other sequence has its automaton but\n"
          "by chance. An automaton has min_states..states states, and min_symbols..symbols "
          "symbols\n"
          "out of 1..symbols, both uniform. Each state has a uniform number of edges, from 1 to\n"
          "out_degree, or as many as there are symbols or other states. Their symbols differ, and\n"
          "so do the states they lead to, which are other ones: all uniform. A string begins in\n"
          "state 0, takes each edge of its state with the same probability and has a uniform\n"
          "number of symbols, 1..longest. Here a sequence has `length` tokens, there 10 to 20\n"
          "strings; two states may do the same here, there automata are minimal; there, training\n"
          "and test have different automata, here different sequences, of automata so many that\n"
          "hardly two are equal.\n"
          "Label: at every position, the next token. Tokens are 1 more than their class. Causal.\n"
          "Metric: bits a token, the mean of -log2 of the probability of the label.\n"
          "Evidence: none is named, because nothing determines the next token.\n"
          "Distance of a label: the number of tokens before its position, so that the score by\n"
          "distance shows how much is learned from the context.\n"
          "Slices: states, symbols (of the automaton), entropy (mean bits of the next token for a\n"
          "reader who knows the automaton and `longest`). Who has to learn the automaton from the\n"
          "sequence cannot score less in the mean, so that the mean of entropy is a bound, and "
          "one\n"
          "that is not reached: 1.31 bits at standard, 1.28 at paper, 1.08 at small. It is no\n"
          "shortcut. Exact Bayes over all automata would be the best score: too many to sum over.",
      .metric = "bits_per_token",
      .params = {{"length", 512, "tokens of a sequence", 8, 1e6},
                 {"states", 12, "most states of an automaton", 2, 1000},
                 {"min_states", 4, "fewest states", 2, 1000},
                 {"symbols", 18, "different symbols of all automata", 2, 1e6},
                 {"min_symbols", 4, "fewest symbols of an automaton", 1, 1e6},
                 {"out_degree", 4, "most edges of a state", 1, 1000},
                 {"longest", 50, "most symbols of a string", 1, 1e6},
                 {"train_examples", 100000, "training set, repeated over epochs"}},
      .presets = {{"paper", "the paper's automata and strings", {{"length", 512}}},
                  {"standard",
                   "smaller automata, shorter strings",
                   {{"length", 256}, {"states", 6}, {"symbols", 8}, {"longest", 20}}},
                  {"small",
                   "a quarter of that length",
                   {{"length", 64},
                    {"states", 4},
                    {"min_states", 3},
                    {"symbols", 6},
                    {"min_symbols", 3},
                    {"longest", 10}}}},
      .make = make_task<RegularLanguage>};
}

}  // namespace attn::tasks
