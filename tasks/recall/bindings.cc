// See bindings.h.
#include "tasks/recall/bindings.h"

#include <utility>

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
  // How often each key occurs; the last time of one that is deleted is its deletion.
  std::vector<int64_t> left(static_cast<size_t>(keys), 1 + updates);
  std::vector<bool> is_deleted(static_cast<size_t>(keys));
  for (const int32_t key : distinct(random, keys, deletes)) {
    is_deleted[static_cast<size_t>(key)] = true;
    left[static_cast<size_t>(key)]++;
  }
  std::vector<int32_t> order;
  for (int32_t key = 0; key < keys; key++)
    order.insert(order.end(), static_cast<size_t>(left[static_cast<size_t>(key)]), key);
  const int64_t count = std::ssize(order);
  for (int64_t i = 0; i < count; i++)
    std::swap(order[static_cast<size_t>(i)],
              order[static_cast<size_t>(random.between(i, count - 1))]);
  std::vector<int32_t> held(static_cast<size_t>(keys), -1);
  std::vector<Binding> bindings;
  for (const int32_t key : order) {
    const auto k = static_cast<size_t>(key);
    const bool ends = --left[k] == 0 && is_deleted[k];
    if (!ends) held[k] = other_value(random, values, held[k]);
    bindings.push_back({key, ends ? Binding::kDeleted : held[k]});
  }
  return bindings;
}

}  // namespace attn::recall
