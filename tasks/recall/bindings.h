// Keys that are bound to values, bound again and deleted: what mqar lists where memory changes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/rng.h"

namespace attn::recall {

// What happens to key number `key`: it is bound to value number `value`, or deleted.
struct Binding {
  static constexpr int32_t kDeleted = -1;
  int32_t key = 0, value = 0;
};

// How often each key is bound. With deletions at least twice: else the one value of a key that was
// deleted and bound again would tell it from one that was deleted in the end.
inline int64_t bindings_of_key(int64_t updates, int64_t deletes) {
  return 1 + (deletes > 0 && updates == 0 ? 1 : updates);
}

// The bindings of `keys` keys in an order drawn uniformly. Each key is bound bindings_of_key()
// times, each time to a value drawn uniformly from the `values` values other than its last one.
// With deletes > 0 each key is also deleted once: `deletes` keys, drawn uniformly, after their last
// binding, the others after a binding before that, drawn uniformly. values >= 2.
// O(keys·(1 + updates)).
std::vector<Binding> changing_bindings(Rng& random, int64_t keys, int64_t values, int64_t updates,
                                       int64_t deletes);

}  // namespace attn::recall
