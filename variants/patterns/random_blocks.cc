// Neighbouring, global and random blocks; see random_blocks.h. A random draw is a rank among the
// blocks that are not visible yet, so that no block is drawn twice.
#include "variants/patterns/random_blocks.h"

#include <algorithm>

#include "core/base/rng.h"
#include "variants/patterns/block_lists.h"

namespace attn {

void RandomBlocks::append(int64_t head, int64_t b, int64_t count, IndexList& seen) const {
  const auto start = std::ssize(seen);
  const auto listed = [&] { return std::ssize(seen) - start; };
  const auto add = [&](int64_t begin, int64_t end) {  // of what comes behind all that is listed
    begin = std::max(begin, listed() > 0 ? seen.back() + 1 : 0);
    for (int64_t key = begin; key < std::min(end, count); ++key) seen.push_back(key);
  };
  const bool global = b < first || (b >= count - last && b < count);
  if (global) return add(0, causal ? b + 1 : count);
  add(0, causal ? std::min(first, b + 1) : first);
  add(b - before, std::min(b + after + 1, count - last));
  add(count - last, count);
  const int64_t choice = std::min(causal ? std::min(b + 1, count) : count, pool / size);
  Rng draws = rng(seed, "bigbird.blocks", static_cast<uint64_t>(head << 32 | b));
  int64_t left = choice - (std::lower_bound(seen.begin() + start, seen.end(), choice) -
                           (seen.begin() + start));
  for (int64_t i = 0; i < random && left > 0; ++i, --left) {
    auto key = static_cast<int64_t>(draws.below(static_cast<uint64_t>(left)));
    auto at = seen.begin() + start;
    for (; at != seen.end() && *at <= key; ++at) ++key;
    seen.insert(at, key);
  }
}

std::shared_ptr<const BlockPattern> RandomBlocks::pattern(int64_t heads, int64_t len,
                                                          std::span<const int64_t> lengths) const {
  return block_lists(len, size, std::ssize(lengths) * heads,
                     [&](int64_t set, int64_t b, IndexList& seen) {
                       const int64_t keys = lengths[static_cast<size_t>(set / heads)];
                       append(set % heads, b, (keys + size - 1) / size, seen);
                     });
}

CacheLayout RandomBlocks::cache(int64_t heads, int64_t capacity) const {
  const auto seen = [*this, heads](int64_t head, int64_t at) {
    IndexList blocks;
    append(head % heads, at / size, at / size + 1, blocks);
    std::vector<Slots> slots;
    for (const int64_t b : blocks) slots.push_back({b * size, std::min((b + 1) * size, at + 1)});
    return slots;
  };
  return {.slots = capacity, .visible_slots = seen};
}

}  // namespace attn
