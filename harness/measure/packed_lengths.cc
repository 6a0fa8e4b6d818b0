// See packed_lengths.h.
#include "harness/measure/packed_lengths.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "harness/measure/mixed_batch.h"
#include "harness/measure/statistics.h"

namespace attn {
namespace {

constexpr std::string_view kUniform = "uniform", kLogNormal = "lognormal";
constexpr WordFault kPackedFault = {"packed", "length",
                                    "8q64_q2k: eight sequences of 64, and one of 2,048"};

// Of sequence i of `count`, by length, over the longest.
double share_of(std::string_view word, int64_t i, int64_t count) {
  const auto n = static_cast<double>(count);
  if (word == kUniform) return static_cast<double>(i + 1) / n;
  const auto place = [&](int64_t at) {
    return normal_quantile((static_cast<double>(at) + 0.5) / n);
  };
  return std::exp(place(i) - place(count - 1));
}

}  // namespace

bool is_list_of_lengths(std::string_view word) { return word != kUniform && word != kLogNormal; }

std::string packed_word(std::string_view word) {
  if (!is_list_of_lengths(word)) return std::string(word);
  // What begins with neither a count nor a q is no list with a slip in it.
  ATTN_CHECK(!word.empty() && word.find_first_of("0123456789q") == 0,
             "packed '{}' is no word; expected uniform, lognormal or a list such as 8q64_q2k",
             word);
  const MixedBatch list = parse_mixed_batch(word, kPackedFault);
  for (const SequenceGroup& group : list)
    ATTN_CHECK(group.is_prompt(), "packed '{}': a sequence has no cache; leave out kv{}", word,
               group.total);
  return to_string(list);
}

std::vector<int64_t> packed_lengths(std::string_view word, int64_t count, int64_t longest,
                                    uint64_t seed) {
  std::vector<int64_t> lengths;
  if (is_list_of_lengths(word)) {
    for (const SequenceGroup& group : parse_mixed_batch(word))
      lengths.insert(lengths.end(), static_cast<size_t>(group.count), group.queries);
    return lengths;
  }
  for (int64_t i = 0; i < count; ++i)
    lengths.push_back(std::max<int64_t>(
        1, std::llround(share_of(word, i, count) * static_cast<double>(longest))));
  Rng random = rng(seed, "order of packed sequences");
  for (int64_t i = count - 1; i > 0; --i)
    std::swap(lengths[static_cast<size_t>(i)], lengths[static_cast<size_t>(random.between(0, i))]);
  return lengths;
}

}  // namespace attn
