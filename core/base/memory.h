// The memory pool of all tensors and workspaces. Blocks are aligned to 64 bytes. The pool counts
// live and peak bytes by purpose; a count is the requested size, rounded up to 64 bytes. The pool
// keeps freed blocks for later requests of the same size, so a loop in its steady state calls
// neither malloc nor mmap. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/check.h"
#include "core/base/real.h"

namespace attn {

enum class Purpose { weights, activations, workspace };
inline constexpr int kPurposes = 3;

struct MemoryUse {
  int64_t live[kPurposes] = {};  // bytes held now, by purpose
  int64_t peak[kPurposes] = {};  // highest of each since the last reset
  int64_t live_total = 0;
  int64_t peak_total = 0;  // highest sum (not the sum of the peaks)
  // Blocks, and pieces of recycled.h, that were requested from the system so far.
  int64_t system_calls = 0;
};

MemoryUse memory_use();
void reset_memory_peak();              // sets the peaks to the live bytes
void release_free_memory();            // returns all free blocks to the system
void set_memory_limit(int64_t bytes);  // more live bytes throw OutOfMemory; 0: no limit

class OutOfMemory : public Error {
 public:
  using Error::Error;
};

// While an object of this class exists, allocations of its thread, and of parallel_for bodies that
// the thread starts, count as `purpose`.
class MemoryScope {
 public:
  explicit MemoryScope(Purpose purpose);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;
  static Purpose current();  // activations where no scope is open

 private:
  Purpose before_;
};

// An uninitialised block of the pool. It can be moved, not copied.
class Block {
 public:
  Block() = default;
  Block(size_t bytes, Purpose purpose);
  // Memory that belongs to `owner`, as an array of another library: the pool neither counts nor
  // frees it. The block keeps `owner`, which must not be null.
  Block(void* data, size_t bytes, std::shared_ptr<const void> owner);
  ~Block();
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  Purpose purpose_ = Purpose::activations;
  std::shared_ptr<const void> owner_;  // null: the pool
};

inline int64_t padded_reals(int64_t reals) {  // rounded up to whole cache lines
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(real));
  return (reals + kLine - 1) / kLine * kLine;
}

}  // namespace attn
