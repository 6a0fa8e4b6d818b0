// Random automata against their definition, and what a reader who knows one is uncertain of against
// sums over all states and against drawn strings.
#include "tasks/language/automaton.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "core/base/check.h"

namespace attn::automaton_test {
namespace {

using language::Automaton;
using language::AutomatonSizes;
using language::Strings;

constexpr AutomatonSizes kSmall = {.least_states = 3,
                                   .states = 6,
                                   .least_symbols = 4,
                                   .symbols = 7,
                                   .out_degree = 4,
                                   .longest = 9};
constexpr int32_t kSeparator = 8;

Automaton drawn(uint64_t index) {
  Rng random = rng(5, "automaton", index);
  return language::draw_automaton(kSmall, random);
}

TEST(Automaton, EdgesAreOfDifferentSymbolsToDifferentOtherStates) {
  std::map<size_t, int> states, degrees;
  std::map<int64_t, int> symbols;
  std::map<int32_t, int> used;
  constexpr int kCount = 4000;
  for (uint64_t i = 0; i < kCount; i++) {
    const Automaton automaton = drawn(i);
    std::set<int32_t> alphabet;
    for (size_t state = 0; state < automaton.edges.size(); state++) {
      std::set<int32_t> on, to;
      for (const Automaton::Edge& edge : automaton.edges[state]) {
        ASSERT_TRUE(edge.symbol >= 1 && edge.symbol <= 7);
        ASSERT_TRUE(edge.next >= 0 && edge.next < std::ssize(automaton.edges));
        ASSERT_NE(edge.next, static_cast<int32_t>(state));
        ASSERT_TRUE(on.insert(edge.symbol).second && to.insert(edge.next).second);
        alphabet.insert(edge.symbol);
        used[edge.symbol]++;
      }
      if (automaton.edges.size() >= 5) degrees[on.size()]++;
    }
    states[automaton.edges.size()]++;
    symbols[automaton.symbols]++;
    ASSERT_LE(std::ssize(alphabet), automaton.symbols);
  }
  const auto about_even = [](const auto& counts, size_t different) {
    double total = 0, chi = 0;
    for (const auto& [value, count] : counts) total += count;
    for (const auto& [value, count] : counts) {
      const double wanted = total / static_cast<double>(different);
      chi += (count - wanted) * (count - wanted) / wanted;
    }
    EXPECT_EQ(counts.size(), different);
    EXPECT_LT(chi, 30) << "of " << different;
  };
  about_even(states, 4);   // 3 to 6
  about_even(symbols, 4);  // 4 to 7
  about_even(degrees, 4);  // of states of automata with enough others: 1 to 4
  about_even(used, 7);
}

TEST(Automaton, EntropyIsThatOfTheProbabilitiesWhichSumToOne) {
  for (uint64_t i = 0; i < 40; i++) {
    const Automaton automaton = drawn(i);
    Rng random = rng(6, "strings", i);
    Strings strings(automaton, kSmall.longest, kSeparator);
    for (int at = 0; at < 200; at++) {
      double sum = 0, bits = 0;
      for (int32_t token = 1; token <= kSeparator; token++) {
        const double p = strings.probability(token);
        sum += p;
        if (p > 0) bits -= p * std::log2(p);
      }
      ASSERT_NEAR(sum, 1, 1e-12);
      ASSERT_NEAR(strings.entropy(), bits, 1e-12);
      ASSERT_GT(strings.probability(strings.next(random)) + 1, 1 - 1e-9);
    }
  }
}

// The bits of one string: log2 of the number of lengths, and of each symbol those of the edges at
// its state; by the distribution of states after k symbols. A string has (1 + longest) / 2 symbols
// and a separator.
double bits_a_token(const Automaton& automaton, int64_t longest) {
  std::vector<double> at(automaton.edges.size(), 0);
  at[0] = 1;
  const auto most = static_cast<double>(longest);
  double bits = std::log2(most);
  for (int64_t k = 0; k < longest; k++) {
    const double longer = 1 - static_cast<double>(k) / most;  // P(more than k symbols)
    std::vector<double> next(at.size(), 0);
    for (size_t state = 0; state < at.size(); state++) {
      const auto& edges = automaton.edges[state];
      const auto degree = static_cast<double>(edges.size());
      bits += longer * at[state] * std::log2(degree);
      for (const Automaton::Edge& edge : edges)
        next[static_cast<size_t>(edge.next)] += at[state] / degree;
    }
    at = next;
  }
  return bits / ((1 + most) / 2 + 1);
}

TEST(Automaton, TheEntropyOfStringsIsThatOfTheirStates) {
  for (const uint64_t i : {1, 2, 3, 4, 5}) {
    const Automaton automaton = drawn(i);
    Rng random = rng(7, "strings", i);
    Strings strings(automaton, kSmall.longest, kSeparator);
    constexpr int kTokens = 400'000;
    double entropy = 0, bits = 0, squares = 0;
    for (int at = 0; at < kTokens; at++) {
      const Strings before = strings;
      const double own = -std::log2(before.probability(strings.next(random)));
      entropy += before.entropy() / kTokens;
      bits += own / kTokens;
      squares += own * own / kTokens;
    }
    const double wanted = bits_a_token(automaton, kSmall.longest);
    const double error = std::sqrt((squares - bits * bits) / kTokens);
    EXPECT_NEAR(entropy, wanted, 10 * error) << i;  // neighbours depend on each other
    EXPECT_NEAR(bits, wanted, 10 * error) << i;
    EXPECT_LT(error, 0.003);
  }
}

TEST(Automaton, ASymbolWithoutAnEdgeIsNoneOfItsStrings) {
  const Automaton automaton = drawn(0);
  Strings strings(automaton, kSmall.longest, kSeparator);
  int32_t none = 1;
  while (strings.probability(none) > 0) none++;
  EXPECT_THROW(strings.read(none), Error);
  EXPECT_EQ(strings.probability(kSeparator), 0) << "a string has a symbol at least";
}

}  // namespace
}  // namespace attn::automaton_test
