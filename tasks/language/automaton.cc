// Random automata and their strings; see automaton.h.
#include "tasks/language/automaton.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/log2.h"
#include "tasks/recall/draws.h"

namespace attn::language {
namespace {

std::vector<int32_t> alphabet(const AutomatonSizes& sizes, Rng& random) {
  const int64_t count = random.between(sizes.least_symbols, sizes.symbols);
  std::vector<int32_t> symbols = recall::distinct(random, sizes.symbols, count);
  for (int32_t& symbol : symbols) symbol++;
  return symbols;
}

}  // namespace

Automaton draw_automaton(const AutomatonSizes& sizes, Rng& random) {
  const int64_t states = random.between(sizes.least_states, sizes.states);
  const std::vector<int32_t> symbols = alphabet(sizes, random);
  const int64_t most = std::min({sizes.out_degree, std::ssize(symbols), states - 1});
  Automaton automaton{.edges = {}, .symbols = std::ssize(symbols)};
  for (int32_t state = 0; state < static_cast<int32_t>(states); state++) {
    const int64_t count = random.between(1, most);
    const std::vector<int32_t> on = recall::distinct(random, std::ssize(symbols), count),
                               to = recall::distinct(random, states - 1, count);
    std::vector<Automaton::Edge>& edges = automaton.edges.emplace_back();
    for (size_t i = 0; i < on.size(); i++)
      edges.push_back({.symbol = symbols[static_cast<size_t>(on[i])],
                       .next = to[i] < state ? to[i] : to[i] + 1});  // no state leads to itself
  }
  return automaton;
}

int32_t Strings::next(Rng& random) {
  if (read_ == 0) wanted_ = random.between(1, longest_);
  const int32_t token =
      read_ == wanted_ ? separator_ : edges()[random.below(edges().size())].symbol;
  read(token);
  return token;
}

double Strings::probability(int32_t token) const {
  if (token == separator_) return ending();
  const bool leads = std::any_of(edges().begin(), edges().end(),
                                 [&](const Automaton::Edge& e) { return e.symbol == token; });
  return leads ? (1 - ending()) / static_cast<double>(edges().size()) : 0;
}

double Strings::entropy() const {
  const double ends = ending(), goes_on = 1 - ends;
  double bits = 0;
  if (ends > 0) bits -= ends * same_log2(ends);
  if (goes_on > 0) bits -= goes_on * same_log2(goes_on / static_cast<double>(edges().size()));
  return bits;
}

void Strings::read(int32_t token) {
  if (token == separator_) {
    state_ = 0;
    read_ = 0;
    return;
  }
  for (const Automaton::Edge& edge : edges())
    if (edge.symbol == token) {
      state_ = edge.next;
      read_++;
      return;
    }
  throw_error(fmt::format("no edge of state {} has the symbol {}", state_, token));
}

}  // namespace attn::language
