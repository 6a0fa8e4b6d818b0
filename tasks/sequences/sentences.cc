// Sums over sentences by dynamic programming over the size of a phrase; see sentences.h.
#include "tasks/sequences/sentences.h"

#include <algorithm>
#include <cstddef>

namespace attn::sequences {

namespace {

// Of the phrases of each size up to `length`: 2 + a tokens of a head with a adjectives, then what
// its link and the phrase behind that take.
std::vector<double> phrase_sums(int64_t length, int64_t most_adjectives, const Weights& w) {
  std::vector<double> sums(static_cast<size_t>(length + 1), 0.0);
  const auto sum = [&](int64_t size) { return size < 2 ? 0.0 : sums[static_cast<size_t>(size)]; };
  for (int64_t size = 2; size <= length; size++) {
    double head = w.head;
    for (int64_t a = 0; a <= most_adjectives && 2 + a <= size; a++, head *= w.adjective) {
      const int64_t rest = size - 2 - a;
      const double behind = w.preposition * sum(rest - 1) + w.clause * sum(rest - 2);
      sums[static_cast<size_t>(size)] += head * (rest == 0 ? w.last : behind);
    }
  }
  return sums;
}

}  // namespace

int64_t size_of(const NounPhrase& phrase) {
  int64_t size = 0;
  for (const Head& head : phrase)
    size += 2 + std::ssize(head.adjectives) + (head.link != 0) + (head.verb != 0);
  return size;
}

void append(const NounPhrase& phrase, std::vector<int32_t>& tokens) {
  for (const Head& head : phrase) {
    tokens.push_back(head.determiner);
    tokens.insert(tokens.end(), head.adjectives.begin(), head.adjectives.end());
    tokens.push_back(head.noun);
    if (head.link != 0) tokens.push_back(head.link);
    if (head.verb != 0) tokens.push_back(head.verb);
  }
}

double sentence_sum(int64_t length, int64_t most_adjectives, const Weights& weights) {
  const std::vector<double> sums = phrase_sums(length, most_adjectives, weights);
  double total = 0;
  for (size_t first = 2; first < sums.size(); first++)
    for (size_t second = 2; first + 1 + second < sums.size(); second++)
      total += sums[first] * sums[second];
  return total;
}

// A translation is longer than its source by the adjectives, the clauses and one. Of `heads` nouns,
// all but two hang on another: by a preposition, or by one token more a clause.
int64_t longest_translation(int64_t length, int64_t most_adjectives) {
  int64_t longest = 0;
  for (int64_t heads = 2; 3 * heads - 1 <= length; heads++) {
    const int64_t bare = 3 * heads - 1;
    const int64_t more = std::min(length - bare, most_adjectives * heads + heads - 2);
    longest = std::max(longest, bare + 2 * more + 1);
  }
  return longest;
}

}  // namespace attn::sequences
