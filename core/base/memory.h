// The counted memory pool behind every tensor and workspace: 64-byte aligned, reusing, with live
// and peak bytes by purpose. Bytes are as asked for, rounded up to 64; a freed block is kept for
// the next request of its size, so a steady loop calls neither malloc nor mmap. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

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
  // Blocks, and pieces of recycled.h, fetched from the system so far: none more in a steady loop
  int64_t system_calls = 0;
};

MemoryUse memory_use();
void reset_memory_peak();              // peak := live
void release_free_memory();            // hands every cached free block back to the system
void set_memory_limit(int64_t bytes);  // live bytes above it throw OutOfMemory; 0: none

class OutOfMemory : public Error {
 public:
  using Error::Error;
};

// Allocations of this thread (and of parallel_for bodies it starts) count as `purpose` while the
// scope lives.
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

// A block of the pool; uninitialised. Moves, does not copy.
class Block {
 public:
  Block() = default;
  Block(size_t bytes, Purpose purpose);
  ~Block();
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  Purpose purpose_ = Purpose::activations;
};

inline int64_t padded_reals(int64_t reals) {  // to the next cache line
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(real));
  return (reals + kLine - 1) / kLine * kLine;
}

}  // namespace attn
