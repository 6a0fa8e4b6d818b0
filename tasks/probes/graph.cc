// graph: nodes take the majority colour of their neighbours, once or twice. The edges are part of
// the example. After local majority dynamics, Peleg 2002, TCS 282(2). O(length·degree²) per
// example.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/shortcuts/fitted.h"

namespace attn::tasks {
namespace {

using Listens = std::vector<std::vector<int32_t>>;  // of each node, ascending, itself included

class Graph final : public Task {
 public:
  explicit Graph(const Params& p)
      : Task(p),
        nodes_(p.integer("length")),
        degree_(p.integer("degree")),
        hops_(p.integer("hops")),
        given_(p.text("edges") == "given") {
    ATTN_CHECK(degree_ % 2 == 0,
               "graph: degree={} must be even: a node votes too, and no tie is allowed", degree_);
    ATTN_CHECK(degree_ < nodes_, "graph: degree={} needs more nodes than length={}", degree_,
               nodes_);
  }

 private:
  Example do_example(Rng& random) const override {
    Example e;
    std::vector<int32_t> votes;
    for (int64_t i = 0; i < nodes_; i++) votes.push_back(random.coin());
    for (const int32_t vote : votes) e.tokens.push_back(1 + vote);
    Listens listens;
    for (int64_t i = 0; i < nodes_; i++)
      listens.push_back(heard_by(random, static_cast<int32_t>(i)));
    e.slices = {{"second", static_cast<double>(std::accumulate(votes.begin(), votes.end(), 0)) /
                               static_cast<double>(nodes_)}};
    for (int64_t round = 0; round < hops_; round++) votes = majority(listens, votes);
    e.target = votes;
    e.distances = distances(listens);
    if (given_)
      for (int32_t i = 0; i < nodes_; i++)
        for (const int32_t j : listens[static_cast<size_t>(i)]) e.edges.emplace_back(i, j);
    e.evidence = first_positions(votes.size());
    return e;
  }

  // `degree` different others (Floyd's sampling), and itself.
  std::vector<int32_t> heard_by(Rng& random, int32_t node) const {
    std::vector<int32_t> heard;  // counted without the node
    for (int64_t last = nodes_ - 1 - degree_; last < nodes_ - 1; last++) {
      auto chosen = static_cast<int32_t>(random.between(0, last));
      if (std::find(heard.begin(), heard.end(), chosen) != heard.end())
        chosen = static_cast<int32_t>(last);
      heard.push_back(chosen);
    }
    for (int32_t& other : heard) other += other >= node;
    heard.push_back(node);
    std::sort(heard.begin(), heard.end());
    return heard;
  }

  std::vector<int32_t> majority(const Listens& listens, const std::vector<int32_t>& votes) const {
    std::vector<int32_t> result;
    for (const std::vector<int32_t>& heard : listens) {
      int64_t ones = 0;
      for (const int32_t j : heard) ones += votes[static_cast<size_t>(j)];
      result.push_back(2 * ones > degree_ + 1);
    }
    return result;
  }

  // To the farthest node within `hops` edges.
  std::vector<int32_t> distances(const Listens& listens) const {
    std::vector<int32_t> low = first_positions(listens.size()), high = low;
    for (int64_t round = 0; round < hops_; round++) {
      const std::vector<int32_t> lows = low, highs = high;
      for (size_t i = 0; i < low.size(); i++)
        for (const int32_t j : listens[i]) {
          low[i] = std::min(low[i], lows[static_cast<size_t>(j)]);
          high[i] = std::max(high[i], highs[static_cast<size_t>(j)]);
        }
    }
    std::vector<int32_t> result;
    for (size_t i = 0; i < low.size(); i++) {
      const auto here = static_cast<int32_t>(i);
      result.push_back(std::max(here - low[i], high[i] - here));
    }
    return result;
  }

  TaskShape do_shape() const override {
    return {.length = nodes_, .vocab = 3, .classes = 2, .per_token = true, .edges = given_};
  }
  // The token there and how many nodes have token 2: votes amplify the larger share.
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                     const std::vector<Example>& test) const override {
    const auto shares = [](const Example& e, size_t node) {
      return 2 * std::count(e.tokens.begin(), e.tokens.end(), 2) + (e.tokens[node] == 2);
    };
    return {{"shares of the colours", lookup_score(train, test, shares)}};
  }

  std::string do_draw(const Example& e) const override {
    std::string text;
    constexpr int32_t kShown = 12;
    for (int32_t i = 0; i < std::min<int64_t>(kShown, nodes_); i++) {
      text += fmt::format("{:>3} {} ->", i, e.tokens[static_cast<size_t>(i)] == 2 ? '#' : '.');
      for (const auto& [from, to] : e.edges)
        if (from == i) text += fmt::format(" {}", to);
      text += fmt::format("  becomes {}\n", e.target[static_cast<size_t>(i)] ? '#' : '.');
    }
    return text + (nodes_ > kShown ? fmt::format("... {} nodes\n", nodes_) : "");
  }

  int64_t nodes_, degree_, hops_;
  bool given_;
};

}  // namespace

TaskInfo graph() {
  return {
      .name = "graph",
      .summary = "the colour that a node takes after its neighbours have voted, once or twice",
      .source = "local majority as in Peleg 2002, Theoretical Computer Science 282(2)",
      .datasheet =
          "Nodes are positions; a token is a colour, 1 or 2, by a fair coin each. Every node\n"
          "listens to itself and to `degree` other nodes, all sets equally likely; listening is\n"
          "not mutual. In a round every node takes the colour that most of those it listens to\n"
          "had before; their number is odd. There are `hops` rounds.\n"
          "edges=given: the example's edges are (node, whom it listens to), itself included, and\n"
          "the model's attention sees along them alone. edges=hidden: they are not in the\n"
          "example; the token there and the shares of the colours are all that tells anything.\n"
          "Label: of every node its last colour: 0 for token 1, 1 for token 2.\n"
          "Evidence: all nodes; each one's label depends on those within `hops` edges alone.\n"
          "Distance of a label: in positions, to the farthest of those.\n"
          "Slices: second (share of nodes with token 2).",
      .params = {{"length", 64, "nodes; at least 32 so that the splits stay apart", 32, 1e5},
                 {"degree", 4, "others that a node listens to, even", 2, 1000},
                 {"hops", 2, "rounds of voting: as many layers are needed", 1, 2},
                 {"edges", {"given", "hidden"}, "in the example as its mask, or not at all"},
                 {"train_examples", 10000, "training set, repeated over epochs"}},
      .presets = {{"hidden", "nobody sees the edges", {{"edges", std::string("hidden")}}}},
      .make = make_task<Graph>};
}

}  // namespace attn::tasks
