// See bindings.h.
#include "tasks/recall/bindings.h"

#include "tasks/recall/draws.h"

namespace attn::recall {
namespace {

// `value` is the one that a key has; -1: none.
int32_t other_value(Rng& random, int64_t values, int32_t value) {
  if (value < 0) return static_cast<int32_t>(random.between(0, values - 1));
  const auto drawn = static_cast<int32_t>(random.between(0, values - 2));
  return drawn + (drawn >= value);
}

}  // namespace

std::vector<Binding> changing_bindings(Rng& random, int64_t keys, int64_t values, int64_t updates,
                                       int64_t deletes) {
  const int64_t bound = bindings_of_key(updates, deletes), events = bound + (deletes > 0 ? 1 : 0);
  // After how many of its bindings a key is deleted.
  std::vector<int64_t> deleted_after(static_cast<size_t>(keys), -1);
  if (deletes > 0) {
    for (int64_t& after : deleted_after) after = random.between(1, bound - 1);
    for (const int32_t key : distinct(random, keys, deletes))
      deleted_after[static_cast<size_t>(key)] = bound;
  }
  std::vector<int32_t> held(static_cast<size_t>(keys), -1);
  std::vector<int64_t> seen(static_cast<size_t>(keys));
  std::vector<Binding> bindings;
  for (const int32_t event : distinct(random, keys * events, keys * events)) {
    const auto key = static_cast<int32_t>(event / events);
    const auto k = static_cast<size_t>(key);
    const bool deletion = seen[k]++ == deleted_after[k];
    if (!deletion) held[k] = other_value(random, values, held[k]);
    bindings.push_back({key, deletion ? Binding::kDeleted : held[k]});
  }
  return bindings;
}

}  // namespace attn::recall
