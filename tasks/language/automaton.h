// A random probabilistic finite automaton whose strings are read one after another, and what it is
// uncertain of. After Akyürek et al. 2024, arXiv:2401.12973, section 3. O(1) per token.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/rng.h"

namespace attn::language {

// Of the automata of a task: ranges that hold both ends.
struct AutomatonSizes {
  int64_t least_states = 4, states = 12;
  int64_t least_symbols = 4, symbols = 18;  // of one automaton, out of 1..symbols
  int64_t out_degree = 4;                   // edges of a state: 1 to so many
  int64_t longest = 50;                     // string: 1 to so many symbols
};

// State 0 begins every string. Each edge of a state has a symbol of its own, so that the symbols
// read tell the state, and each is taken with the same probability. A string may end at any state.
struct Automaton {
  struct Edge {
    int32_t symbol = 0;  // 1 ..
    int32_t next = 0;
  };
  std::vector<std::vector<Edge>> edges;  // by state
  int64_t symbols = 0;                   // that edges may have
};

// The number of states and of symbols is uniform; symbols are a uniform subset of 1..symbols. The
// edges of each state: a uniform number of them, at most as many as there are symbols and other
// states, with different symbols, to different other states.
Automaton draw_automaton(const AutomatonSizes& sizes, Rng& random);

// Reads strings of uniform lengths, each followed by `separator`. The probabilities of a reader who
// knows the automaton, the range of lengths and what was read.
class Strings {
 public:
  Strings(const Automaton& automaton, int64_t longest, int32_t separator)
      : automaton_(automaton), longest_(longest), separator_(separator) {}
  int32_t next(Rng& random);  // the next token
  // Of `token` as the next one.
  double probability(int32_t token) const;
  // Bits of the next token: the mean of -log2 of its probability.
  double entropy() const;
  void read(int32_t token);  // of a string of the automaton, instead of next()

 private:
  // That the string ends here, having come so far.
  double ending() const { return read_ == 0 ? 0 : 1 / static_cast<double>(longest_ - read_ + 1); }
  const std::vector<Automaton::Edge>& edges() const {
    return automaton_.edges[static_cast<size_t>(state_)];
  }

  const Automaton& automaton_;
  int64_t longest_;
  int32_t separator_;
  int32_t state_ = 0;
  int64_t read_ = 0;    // symbols of this string
  int64_t wanted_ = 0;  // of this string, where it is drawn
};

}  // namespace attn::language
