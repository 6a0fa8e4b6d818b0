// Sentences of the source language of the task translate: what they are made of, and what can be
// said of all of them. SENTENCE = PHRASE verb PHRASE; PHRASE = determiner adjective* noun, behind
// which a preposition and a PHRASE, or "that", a verb and a PHRASE may hang.
#pragma once

#include <cstdint>
#include <vector>

namespace attn::sequences {

// The first tokens; the words of each kind come after them.
enum Token : int32_t { kSingular = 1, kPlural, kThat };

// A noun with what stands before it, and how the next one hangs on it.
struct Head {
  int32_t determiner = 0, noun = 0;
  std::vector<int32_t> adjectives{};
  int32_t link = 0, verb = 0;  // a preposition; or "that" and its verb; 0: the last head
};
using NounPhrase = std::vector<Head>;

int64_t size_of(const NounPhrase& phrase);  // tokens
void append(const NounPhrase& phrase, std::vector<int32_t>& tokens);

// The sum, over all sentences of at most `length` tokens, of the product of the weights of their
// parts (the verb between the phrases counts 1): all ones give the number of their forms.
struct Weights {
  double head = 1;         // of a determiner and its noun
  double adjective = 1;    // of each
  double last = 1;         // of a noun on which nothing hangs
  double preposition = 1;  // where a preposition follows
  double clause = 1;       // where "that" and a verb follow
};
double sentence_sum(int64_t length, int64_t most_adjectives, const Weights& weights);  // O(length²)

// Tokens of the longest translation of such a sentence; see translate.cc.
int64_t longest_translation(int64_t length, int64_t most_adjectives);

}  // namespace attn::sequences
