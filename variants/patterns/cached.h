// A cache of one value, such as the lists or the graph of one shape. Thread-safe; a request takes
// one lock.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace attn {

template <class Key, class Value>
class Cached {
 public:
  // The value of the last call, if it had the same key; else the result of make(), a
  // std::shared_ptr<const Value>.
  template <class Make>
  std::shared_ptr<const Value> get(const Key& key, const Make& make) const {
    const std::lock_guard lock(mutex_);
    if (!value_ || !(key == key_)) {
      value_ = make();
      key_ = key;
    }
    return value_;
  }

 private:
  mutable std::mutex mutex_;
  mutable Key key_{};
  mutable std::shared_ptr<const Value> value_;
};

}  // namespace attn
