// How long packed sequences are, from the word of the axis `packed`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

// A word is one of
// - uniform: of `count` sequences the i-th shortest has i / count of the longest.
// - lognormal: quantiles of a log-normal distribution whose logarithm deviates by 1, so that most
//   are much shorter than the longest, as documents are.
// - a list, 8q64_q2k: eight sequences of 64 and one of 2,048, as prompts of a workload are written
//   (mixed_batch.h).
// The shortest spelling of it. Error where it is none.
std::string packed_word(std::string_view word);
bool is_list_of_lengths(std::string_view word);
// Of a list, its lengths in the order in which it names them. Of the others, `count` lengths of
// which the last but for the order is `longest`; the same ones for every seed, which decides their
// order.
std::vector<int64_t> packed_lengths(std::string_view word, int64_t count, int64_t longest,
                                    uint64_t seed);

}  // namespace attn
