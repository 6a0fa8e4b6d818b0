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

// The bindings of `keys` keys in an order drawn uniformly. Each key is bound 1 + updates times,
// each time to a value drawn uniformly from the `values` values other than the one it has.
// `deletes` keys, drawn uniformly, are deleted after their last binding. values >= 2.
// O(keys·(1 + updates)).
std::vector<Binding> changing_bindings(Rng& random, int64_t keys, int64_t values, int64_t updates,
                                       int64_t deletes);

}  // namespace attn::recall
