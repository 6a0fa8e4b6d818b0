// Documents of words separated by blanks: the given words in random order among filler words, as
// byte tokens, exactly `length` bytes long. O(length).
#pragma once

#include <cstdint>
#include <array>
#include <string_view>
#include <vector>

#include "core/base/rng.h"

namespace attn {

inline constexpr int64_t kByteVocab = 257;  // byte + 1; 0 is padding

// The subjects of the documents of text and retrieval.
inline constexpr std::array<std::string_view, 2> kSubjects = {"film", "quartet"};

// A word, or several words that stay together, and the role that its task gives it (>= 0).
struct Phrase {
  std::string_view text;
  int32_t role = 0;
};

struct PlacedPhrase {
  int32_t begin = 0, size = 0;  // bytes
  int32_t role = 0;
};

struct Document {
  std::vector<int32_t> tokens;       // [length], each byte + 1
  std::vector<PlacedPhrase> placed;  // the given phrases, in the order of the document
};

// Error when the phrases need more than `length` bytes.
Document compose(const std::vector<Phrase>& phrases, int64_t length, Rng& random);

// Appends the sorted byte positions, each plus `offset`, of the phrases for which wanted(role) is
// true.
template <class Wanted>
void append_positions(const Document& document, int64_t offset, std::vector<int32_t>& positions,
                      const Wanted& wanted) {
  for (const PlacedPhrase& phrase : document.placed) {
    if (!wanted(phrase.role)) continue;
    for (int32_t i = 0; i < phrase.size; i++)
      positions.push_back(static_cast<int32_t>(offset) + phrase.begin + i);
  }
}

}  // namespace attn
