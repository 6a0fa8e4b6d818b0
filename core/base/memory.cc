// The memory pool; see memory.h. One mutex guards the free lists of all size classes. The lists are
// linked through the free blocks, so that freeing needs no memory. Reusing a block takes about 30
// ns. Size classes are multiples of 64 bytes up to 1 KiB, then eight per power of two, so that a
// block wastes at most 12.5 % of address space.
#include "core/base/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "core/base/fork.h"
#include "core/base/poison.h"
#include "core/base/recycled.h"
#include "core/base/spoil.h"

namespace attn {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = 2 * kHugePage;  // below it, rounding to huge pages wastes too much
constexpr int64_t kSpareFreeBytes =
    int64_t{256} << 20;  // free bytes kept beyond the live peak before all are released
constexpr int kClasses = 16 + 8 * 48;

thread_local Purpose current_purpose = Purpose::activations;

struct FreeBlock {
  FreeBlock* next;  // never poisoned: the leak checker follows it
};

struct SizeClass {
  int index;
  size_t bytes;
};

SizeClass size_class(size_t bytes) {
  const size_t units = bytes / kAlignment;
  if (units <= 16) return {static_cast<int>(units) - 1, bytes};
  const int shift = static_cast<int>(std::bit_width(units - 1)) - 4;
  const size_t eighths = ((units - 1) >> shift) + 1;  // 9..16
  return {16 + (shift - 1) * 8 + static_cast<int>(eighths) - 9, (eighths << shift) * kAlignment};
}

size_t bytes_of_class(int index) {
  if (index < 16) return static_cast<size_t>(index + 1) * kAlignment;
  const int shift = (index - 16) / 8 + 1, eighths = (index - 16) % 8 + 9;
  return (static_cast<size_t>(eighths) << shift) * kAlignment;
}

void* system_allocate(size_t bytes) {
  const bool huge = bytes >= kHugeFrom;
  const size_t alignment = huge ? kHugePage : kAlignment;
  void* data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (data && huge) madvise(data, bytes, MADV_HUGEPAGE);  // a hint: refusal is harmless
  return data;
}

class Pool {
 public:
  void* allocate(size_t bytes, Purpose purpose);
  void free(void* data, size_t bytes, Purpose purpose) noexcept;
  std::mutex& mutex() { return mutex_; }
  MemoryUse use() {
    const int64_t fetches = recycled_fetches();  // before the lock: fork() takes one lock at a time
    const std::lock_guard lock(mutex_);
    MemoryUse now = use_;
    now.system_calls += fetches;
    return now;
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    std::copy(std::begin(use_.live), std::end(use_.live), use_.peak);
    use_.peak_total = use_.live_total;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    release_locked();
  }
  void spoil() {
    const std::lock_guard lock(mutex_);
    for (int index = 0; index < kClasses; index++)
      for (FreeBlock* block = free_[index]; block; block = block->next) {
        char* const rest = reinterpret_cast<char*>(block) + sizeof(FreeBlock);
        const size_t size = bytes_of_class(index) - sizeof(FreeBlock);
        ASAN_UNPOISON_MEMORY_REGION(rest, size);
        std::memset(rest, 0xff, size);
        ASAN_POISON_MEMORY_REGION(rest, size);
      }
  }
  void set_limit(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
  }

 private:
  void release_locked() noexcept;

  std::mutex mutex_;
  MemoryUse use_;
  int64_t limit_ = 0;
  int64_t free_bytes_ = 0;
  int64_t highest_ = 0;  // of live_total, never reset
  FreeBlock* free_[kClasses] = {};
};

void* Pool::allocate(size_t bytes, Purpose purpose) {
  const SizeClass wanted = size_class(bytes);
  const std::lock_guard lock(mutex_);
  const int64_t live = use_.live_total + static_cast<int64_t>(bytes);
  if (wanted.index >= kClasses || (limit_ > 0 && live > limit_))
    throw OutOfMemory(fmt::format("out of memory: {} bytes asked for, {} live, limit {}", bytes,
                                  use_.live_total, limit_));
  void* data = free_[wanted.index];
  if (data) {
    free_[wanted.index] = free_[wanted.index]->next;
    free_bytes_ -= static_cast<int64_t>(wanted.bytes);
  } else {
    data = system_allocate(wanted.bytes);
    if (!data) {
      release_locked();
      data = system_allocate(wanted.bytes);
    }
    if (!data)
      throw OutOfMemory(fmt::format("out of memory: the system refused {} bytes, {} live", bytes,
                                    use_.live_total));
    use_.system_calls++;
  }
  int64_t& live_here = use_.live[static_cast<int>(purpose)];
  int64_t& peak_here = use_.peak[static_cast<int>(purpose)];
  live_here += static_cast<int64_t>(bytes);
  use_.live_total = live;
  peak_here = std::max(peak_here, live_here);
  use_.peak_total = std::max(use_.peak_total, live);
  highest_ = std::max(highest_, live);
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(data) + bytes, wanted.bytes - bytes);
  return data;
}

void Pool::free(void* data, size_t bytes, Purpose purpose) noexcept {
  const SizeClass held = size_class(bytes);
  const std::lock_guard lock(mutex_);
  free_[held.index] = new (data) FreeBlock{free_[held.index]};
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(data) + sizeof(FreeBlock),
                            held.bytes - sizeof(FreeBlock));
  free_bytes_ += static_cast<int64_t>(held.bytes);
  use_.live[static_cast<int>(purpose)] -= static_cast<int64_t>(bytes);
  use_.live_total -= static_cast<int64_t>(bytes);
  if (free_bytes_ > highest_ + kSpareFreeBytes) release_locked();
}

void Pool::release_locked() noexcept {
  for (FreeBlock*& first : free_)
    while (FreeBlock* const block = first) {
      first = block->next;
      ASAN_UNPOISON_MEMORY_REGION(block, kAlignment);
      std::free(block);
    }
  free_bytes_ = 0;
}

Pool& pool();
std::mutex& pool_mutex() { return pool().mutex(); }

Pool& pool() {
  static Pool* const instance = [] {
    hold_over_fork<pool_mutex>();
    return new Pool;  // never destroyed: static tensors may be freed after main
  }();
  return *instance;
}

}  // namespace

MemoryUse memory_use() { return pool().use(); }
void reset_memory_peak() { pool().reset_peak(); }
void release_free_memory() { pool().release(); }
void spoil_free_memory() { pool().spoil(); }
void set_memory_limit(int64_t bytes) { pool().set_limit(bytes); }

MemoryScope::MemoryScope(Purpose purpose) : before_(std::exchange(current_purpose, purpose)) {}
MemoryScope::~MemoryScope() { current_purpose = before_; }
Purpose MemoryScope::current() { return current_purpose; }

Block::Block(size_t bytes, Purpose purpose)
    : bytes_((std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment),
      purpose_(purpose) {
  data_ = pool().allocate(bytes_, purpose_);
#ifdef ATTN_DEBUG
  std::memset(data_, 0xff, bytes_);  // every number NaN: reading before writing shows
#endif
}

Block::Block(void* data, size_t bytes, std::shared_ptr<const void> owner)
    : data_(data), bytes_(bytes), owner_(std::move(owner)) {
  ATTN_CHECK(data_ && owner_, "a block of memory outside the pool needs an address and an owner");
}

Block::~Block() {
  if (data_ && !owner_) pool().free(data_, bytes_, purpose_);
}

Block::Block(Block&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      purpose_(other.purpose_),
      owner_(std::move(other.owner_)) {}

Block& Block::operator=(Block&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(purpose_, other.purpose_);
  std::swap(owner_, other.owner_);
  return *this;
}

}  // namespace attn
