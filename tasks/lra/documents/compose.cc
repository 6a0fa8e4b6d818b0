// Draws filler words up to the given size, shuffles all words and writes the bytes; see compose.h.
// O(length).
#include "tasks/lra/documents/compose.h"

#include <array>
#include <utility>

#include "core/base/check.h"

namespace attn {
namespace {

// Words of one to eight letters, so that any rest of two bytes or more can be filled. Neither f nor
// q, and few of j k p v x z, which the tasks give meaning.
constexpr std::array<std::string_view, 64> kFiller = {
    "a",      "i",      "to",     "in",      "it",      "is",       "he",       "we",
    "on",     "as",     "at",     "so",      "me",      "the",      "and",      "was",
    "all",    "one",    "had",    "her",     "but",     "out",      "man",      "you",
    "that",   "with",   "then",   "over",    "just",    "into",     "some",     "size",
    "have",   "like",   "make",   "seen",    "there",   "would",    "about",    "other",
    "under",  "woman",  "house",  "scene",   "people",  "little",   "around",   "before",
    "second", "during", "should", "minutes", "another", "through",  "because",  "started",
    "ending", "camera", "voices", "theatre", "without", "remember", "audience", "director"};
constexpr int32_t kFillerRole = -1;

// Costs are bytes with the blank that follows; the last word has none, so a document is one byte
// shorter than the sum.
int64_t cost(std::string_view text) { return static_cast<int64_t>(text.size()) + 1; }

void append_filler(int64_t rest, Rng& random, std::vector<Phrase>& phrases) {
  while (rest > 0) {
    const std::string_view word = kFiller[random.below(kFiller.size())];
    const int64_t left = rest - cost(word);
    if (left < 0 || left == 1) continue;  // no word costs a single byte
    phrases.push_back({word, kFillerRole});
    rest = left;
  }
}

}  // namespace

Document compose(const std::vector<Phrase>& phrases, int64_t length, Rng& random) {
  int64_t rest = length + 1;
  for (const Phrase& phrase : phrases) rest -= cost(phrase.text);
  ATTN_CHECK(rest == 0 || rest >= 2, "words of {} bytes do not fit a document of {}", length - rest,
             length);
  std::vector<Phrase> all;
  all.reserve(static_cast<size_t>(length / 3));
  all.assign(phrases.begin(), phrases.end());
  append_filler(rest, random, all);
  for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);

  Document document;
  document.tokens.reserve(static_cast<size_t>(length) + 1);
  document.placed.reserve(phrases.size());
  for (const Phrase& phrase : all) {
    if (phrase.role != kFillerRole)
      document.placed.push_back({static_cast<int32_t>(document.tokens.size()),
                                 static_cast<int32_t>(phrase.text.size()), phrase.role});
    for (const char c : phrase.text) document.tokens.push_back(static_cast<unsigned char>(c) + 1);
    document.tokens.push_back(' ' + 1);
  }
  document.tokens.pop_back();
  return document;
}

}  // namespace attn
