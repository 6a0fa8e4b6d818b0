// states: word problems over finite groups, the product of all elements so far at each position.
// Merrill et al. 2024 (The Illusion of State), arXiv:2404.08819, section 5; Grazzi et al. 2024,
// arXiv:2411.12537, section 5. O(length) per example.
#include <string>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/recall/draws.h"
#include "tasks/shortcuts/fitted.h"
#include "tasks/states/group.h"

namespace attn::tasks {
namespace {

class States final : public Task {
 public:
  explicit States(const Params& p)
      : Task(p),
        name_(p.text("group")),
        group_(states::Group::named(name_)),
        length_(p.integer("length")) {
    const int64_t moves = p.integer("moves");
    for (int32_t element = 0; element < group_.order(); element++)
      if (moves == 0 || group_.moved(element) <= moves) factors_.push_back(element);
    ATTN_CHECK(group_.generated_by(factors_),
               "states: moves={} leaves {} of {}, whose products are not all {} elements; take "
               "more, or 0 for no limit",
               moves, factors_.size(), name_, group_.order());
    recall::check_inputs("states", std::ssize(factors_), length_, "length");
  }

 private:
  Example do_example(Rng& random) const override {
    Example e;
    int32_t state = 0;
    for (int32_t i = 0; i < length_; i++) {
      const int32_t factor = factors_[static_cast<size_t>(random.below(factors_.size()))];
      state = group_.product(state, factor);
      e.tokens.push_back(token_of(factor));
      e.target.push_back(state);
      e.evidence.push_back(i);
      e.distances.push_back(i);
    }
    return e;
  }

  static int32_t token_of(int32_t element) { return element + 1; }
  static int32_t element_of(int32_t token) { return token - 1; }

  TaskShape do_shape() const override {
    return {.length = length_,
            .vocab = group_.order() + 1,
            .classes = group_.order(),
            .per_token = true,
            .causal = true};
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                     const std::vector<Example>& test) const override {
    const auto of_two = [this](const Example& e, size_t i) {
      const int32_t before = i == 0 ? 0 : element_of(e.tokens[i - 1]);
      return static_cast<int64_t>(group_.product(before, element_of(e.tokens[i])));
    };
    std::vector<Shortcut> result = {{"product of the last two", lookup_score(train, test, of_two)}};
    // Counts tell the class of a product, and leave a guess within it. Where there is one class
    // they tell nothing, and in an abelian group the class is the answer.
    const int32_t classes = group_.commutative_classes();
    if (classes == 1 || classes == group_.order()) return result;
    const auto counted = [this](const Example& e, size_t i) {
      return static_cast<int64_t>(group_.commutative_class(e.target[i]));
    };
    result.push_back({"counts of the elements", lookup_score(train, test, counted)});
    return result;
  }

  std::string do_draw(const Example& e) const override {
    std::string factors, products;
    for (size_t i = 0; i < e.tokens.size(); i++) {
      factors += fmt::format(" {:3}", element_of(e.tokens[i]));
      products += fmt::format(" {:3}", e.target[i]);
    }
    return fmt::format("{} elements{}\n{} products{}\n", name_, factors,
                       std::string(name_.size(), ' '), products);
  }

  std::string name_;
  states::Group group_;
  int64_t length_;
  std::vector<int32_t> factors_;  // the elements that tokens stand for
};

}  // namespace

TaskInfo states() {
  return {
      .name = "states",
      .summary = "the product of all elements of a group so far: a state that must be kept",
      .source = "arXiv:2404.08819 (word problems); arXiv:2411.12537 (few points moved)",
      .datasheet =
          "Every position holds an element of the group, drawn uniformly: the numbers modulo 2\n"
          "or 60 (z2, z60), permutations of 3 or 5 points (s3, s5), even ones (a5), or pairs of\n"
          "an even permutation of 4 points and a number modulo 5 (a4_z5). As in the papers all\n"
          "elements occur, not a few generators; with `moves` those permutations that move at\n"
          "most so many points, and the identity. An example is `length` long.\n"
          "Tokens: 1 + the number of the element. Permutations are numbered from 0 in the\n"
          "lexicographic order of their images, a pair (a, b) of a4_z5 as 5*a + b, so that the\n"
          "identity is 0.\n"
          "Label: at every position, the number of the product of all elements up to and with\n"
          "it. Of permutations the leftmost is applied first. Causal.\n"
          "z2 is parity. z60, s3 and a4_z5 are solvable. a5 and s5 are not: their word problem\n"
          "is complete for NC1, which layers of a fixed number that have no state, or a diagonal\n"
          "one, are believed not to reach for every length.\n"
          "Without moves every label is uniform, even if all elements up to it but one are known.\n"
          "The product of the last two is right at two positions and else with odds 1/order. The\n"
          "counts of the elements tell the product up to commutators: of s3 and s5 the sign,\n"
          "odds 2/order; of a4_z5 one of 15 classes; of a5 nothing.\n"
          "Evidence: all positions; a label depends on those up to its own.\n"
          "Distance: from a position back to the first one.\n"
          "Slices: none; scores by distance tell how far a state is kept.",
      .solver = "recurrent",  // one layer with a nonlinear state suffices: arXiv:2404.08819
      .params = {{"group",
                  {"s3", "z2", "z60", "a4_z5", "a5", "s5"},
                  "cyclic (z), symmetric (s), alternating (a)"},
                 {"length", 32, "elements", 4, 1e6},
                 ParamSpec("moves", 0, "points that a permutation may move; 0: all", 0, 5)
                     .when("group", "s3")
                     .when("group", "a5")
                     .when("group", "s5"),
                 {"train_examples", 100000, "training set, repeated over epochs"}},
      .presets = {{"standard",
                   "even permutations of five points: no solvable group",
                   {{"group", std::string("a5")}, {"length", 64}}},
                  {"small",
                   "permutations of three points, the least group that is not abelian",
                   {{"group", std::string("s3")}, {"length", 16}}},
                  {"swaps",
                   "permutations of five points by swaps of two, and the identity",
                   {{"group", std::string("s5")}, {"length", 128}, {"moves", 2}}}},
      .make = make_task<States>};
}

}  // namespace attn::tasks
