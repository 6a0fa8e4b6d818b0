// A cache of what is made for a key, such as the lists or the graph of one shape: of the last key,
// or of the last few. Thread-safe; a request takes one lock and time for each key that is kept.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace attn {

template <class Key, class Value>
class Cached {
 public:
  // The value of one of the last keys, if it is the same; else the result of make(), a
  // std::shared_ptr<const Value>.
  template <class Make>
  std::shared_ptr<const Value> get(const Key& key, const Make& make) const {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const Kept& kept) { return kept.first == key; });
    if (found != kept_.end()) {
      std::rotate(kept_.begin(), found, found + 1);
      return kept_[0].second;
    }
    std::shared_ptr<const Value> made = make();
    forget(most_ - 1);
    kept_.insert(kept_.begin(), {key, std::move(made)});
    return kept_[0].second;
  }

  // Keeps the values of the last `lengths` keys and of one more, so that packed sequences of so
  // many lengths and a batch beside them are answered in turn and nothing is made again. Without
  // this call the last value alone is kept.
  void keep(int64_t lengths) const {
    const std::lock_guard lock(mutex_);
    most_ = static_cast<size_t>(lengths) + 1;
    forget(most_);
  }

 private:
  using Kept = std::pair<Key, std::shared_ptr<const Value>>;

  void forget(size_t but) const {  // the last `but` ones
    if (kept_.size() > but) kept_.resize(but);
  }

  mutable std::mutex mutex_;
  mutable std::vector<Kept> kept_;  // the last one first
  mutable size_t most_ = 1;
};

}  // namespace attn
