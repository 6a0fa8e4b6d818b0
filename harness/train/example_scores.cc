// Packs the scores of examples into hexadecimal digits, and digests the examples by FNV-1a (Fowler,
// Noll and Vo 1991; RFC 9923). O(values of the batches). See example_scores.h.
#include "harness/train/example_scores.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include "core/base/check.h"

namespace attn {
namespace {

constexpr const char* kHexDigits = "0123456789abcdef";

class FowlerNollVo {
 public:
  void add(uint64_t word) {
    for (int byte = 0; byte < 8; byte++) {
      state_ ^= (word >> (8 * byte)) & 0xff;
      state_ *= 0x100000001b3ULL;
    }
  }
  // The size goes first, so that a value does not pass for one of the next list.
  template <class T>
  void add_list(const std::vector<T>& values) {
    add(values.size());
    for (const T value : values) {
      if constexpr (std::is_same_v<T, float>)
        add(std::bit_cast<uint32_t>(value));
      else
        add(static_cast<uint64_t>(value));
    }
  }
  std::string text() const { return fmt::format("{:016x}", state_); }

 private:
  uint64_t state_ = 0xcbf29ce484222325ULL;
};

std::string digest_of(const std::vector<Batch>& batches) {
  FowlerNollVo digest;
  for (const Batch& batch : batches) {
    digest.add(static_cast<uint64_t>(batch.size));
    digest.add_list(batch.tokens);
    digest.add_list(batch.values);
    digest.add_list(batch.lengths);
    digest.add_list(batch.targets);
    if (batch.edges) {
      digest.add_list(batch.edges->first);
      digest.add_list(batch.edges->keys);
    }
  }
  return digest.text();
}

}  // namespace

ExampleScores example_scores(const std::vector<double>& each, const std::vector<Batch>& batches) {
  const bool is_binary =
      std::all_of(each.begin(), each.end(), [](double score) { return score == 0 || score == 1; });
  ExampleScores packed{.count = std::ssize(each),
                       .levels = is_binary ? 2 : 16,
                       .digest = digest_of(batches),
                       .digits = {}};
  const size_t in_digit = is_binary ? 4 : 1;
  for (size_t first = 0; first < each.size(); first += in_digit) {
    unsigned digit = 0;
    for (size_t i = 0; i < in_digit; i++) {
      const double score = first + i < each.size() ? each[first + i] : 0;
      const auto level = static_cast<unsigned>(
          std::lround(score * static_cast<double>(packed.levels - 1)));  // in [0, levels)
      digit = is_binary ? 2 * digit + level : level;
    }
    packed.digits += kHexDigits[digit];
  }
  return packed;
}

}  // namespace attn
