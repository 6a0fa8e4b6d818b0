// The words of batches; see mixed_batch.h.
#include "harness/measure/mixed_batch.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "core/base/check.h"

namespace attn {
namespace {

constexpr int64_t kKilo = 1024;
// As the axes batch and length have them, far beyond what fits, so that a slip of the finger is an
// error; and of all sequences together.
constexpr int64_t kMostSequences = 4096, kLongestSequence = 1 << 22, kMostPositions = 1 << 26;

// Reads one group; a fault names the word, the group and what would be right.
class GroupReader {
 public:
  GroupReader(std::string_view word, std::string_view group, const WordFault& said)
      : word_(word), group_(group), rest_(group), said_(said) {}

  SequenceGroup read() {
    SequenceGroup found;
    if (!rest_.starts_with('q')) found.count = number("a count of sequences", kMostSequences);
    if (!rest_.starts_with('q')) refuse(fmt::format("it has no {}", said_.length));
    rest_.remove_prefix(1);
    found.queries = size(fmt::format("a {}", said_.length));
    found.total = found.queries;
    if (rest_.starts_with("kv")) {
      rest_.remove_prefix(2);
      found.total = size("a cache length");
    }
    if (!rest_.empty()) refuse(fmt::format("'{}' is left over", rest_));
    if (found.total < found.queries)
      refuse(
          fmt::format("a cache of {} cannot hold the {} of its queries; leave kv out for a "
                      "prompt",
                      found.total, found.queries));
    return found;
  }

 private:
  // A number, and a k that is not the k of kv.
  int64_t size(const std::string& what) {
    int64_t value = number(what, kLongestSequence);
    if (rest_.starts_with('k') && !rest_.starts_with("kv")) {
      rest_.remove_prefix(1);
      value *= kKilo;
    }
    if (value > kLongestSequence) refuse(fmt::format("{} is 1 to {}", what, kLongestSequence));
    return value;
  }

  int64_t number(const std::string& what, int64_t most) {
    int64_t value = 0;
    const auto [end, fault] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (fault == std::errc::invalid_argument) refuse(fmt::format("{} is missing", what));
    if (fault != std::errc() || value < 0 || value > most)
      refuse(fmt::format("{} is 1 to {}", what, most));
    // A cache of 0 has a clearer fault of its own.
    if (value == 0 && what != "a cache length")
      refuse(fmt::format("{} is 1 to {}, not 0", what, most));
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }

  [[noreturn]] void refuse(const std::string& fault) const {
    throw_error(fmt::format("{} '{}': '{}': {}; expected such as {}", said_.axis, word_, group_,
                            fault, said_.example));
  }

  std::string_view word_, group_, rest_;
  const WordFault& said_;
};

std::string short_size(int64_t value) {
  return value % kKilo == 0 ? fmt::format("{}k", value / kKilo) : std::to_string(value);
}

}  // namespace

MixedBatch parse_mixed_batch(std::string_view word, const WordFault& said) {
  MixedBatch batch;
  for (size_t begin = 0; begin <= word.size();) {
    const size_t end = std::min(word.find('_', begin), word.size());
    batch.push_back(GroupReader(word, word.substr(begin, end - begin), said).read());
    begin = end + 1;
  }
  ATTN_CHECK(sequences_of(batch) <= kMostSequences, "{} '{}' has {} sequences; expected {} at most",
             said.axis, word, sequences_of(batch), kMostSequences);
  int64_t positions = 0;
  for (const SequenceGroup& group : batch) positions += group.count * group.total;
  ATTN_CHECK(positions <= kMostPositions,
             "{} '{}' has {} positions in all sequences; expected {} at most", said.axis, word,
             positions, kMostPositions);
  return batch;
}

std::string to_string(const MixedBatch& batch) {
  std::string word;
  for (const SequenceGroup& group : batch) {
    if (!word.empty()) word += '_';
    if (group.count > 1) word += std::to_string(group.count);
    word += 'q';
    word += short_size(group.queries);
    if (group.is_prompt()) continue;
    word += "kv";
    word += short_size(group.total);
  }
  return word;
}

int64_t sequences_of(const MixedBatch& batch) {
  return std::accumulate(batch.begin(), batch.end(), int64_t{0},
                         [](int64_t sum, const auto& group) { return sum + group.count; });
}

int64_t query_positions_of(const MixedBatch& batch) {
  return std::accumulate(
      batch.begin(), batch.end(), int64_t{0},
      [](int64_t sum, const auto& group) { return sum + group.count * group.queries; });
}

int64_t longest_of(const MixedBatch& batch) {
  int64_t longest = 0;
  for (const SequenceGroup& group : batch) longest = std::max(longest, group.total);
  return longest;
}

}  // namespace attn
