// What was made for the last key, kept for the next request of the same: lists and graphs that
// follow from a shape alone. One lock a request; for any number of threads.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace attn {

template <class Key, class Value>
class Cached {
 public:
  // make() returns a std::shared_ptr<const Value>; called where the key is another than the last.
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
