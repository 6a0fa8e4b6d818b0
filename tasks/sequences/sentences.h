// Sentences of the source language of the task translate, and sums over all sentences.
// SENTENCE = PHRASE verb PHRASE; PHRASE = determiner adjective* noun [preposition PHRASE |
// "that" verb PHRASE].
#pragma once

#include <cstdint>
#include <vector>

namespace attn::sequences {

// The first token ids. The words of each kind have the ids after them.
enum Token : int32_t { kSingular = 1, kPlural, kThat };

// A noun with its determiner and adjectives, and the link to the next noun of the phrase.
struct Head {
  int32_t determiner = 0, noun = 0;
  std::vector<int32_t> adjectives{};
  int32_t link = 0, verb = 0;  // a preposition; or "that" and its verb; 0 for the last noun
};
using NounPhrase = std::vector<Head>;

int64_t size_of(const NounPhrase& phrase);  // number of tokens
void append(const NounPhrase& phrase, std::vector<int32_t>& tokens);

// Factors for the parts of a sentence. The weight of a sentence is the product of the factors of
// its parts; the verb between the phrases has the factor 1.
struct Weights {
  double head = 1;         // of a determiner and its noun
  double adjective = 1;    // of each adjective
  double last = 1;         // of the last noun of a phrase
  double preposition = 1;  // of a preposition after a noun
  double clause = 1;       // of "that" and a verb after a noun
};
// The sum of the weights of all sentences of at most `length` tokens. O(length²).
double sentence_sum(int64_t length, int64_t most_adjectives, const Weights& weights);

// The number of tokens of the longest translation of such a sentence; see translate.cc.
int64_t longest_translation(int64_t length, int64_t most_adjectives);

}  // namespace attn::sequences
