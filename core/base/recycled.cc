// Free lists of pieces of 64·2^c bytes; see recycled.h. One mutex guards the lists, which are
// linked through the free pieces. No memory is returned to the system.
#include "core/base/recycled.h"

#include <bit>
#include <mutex>
#include <new>
#include <utility>

#include "core/base/fork.h"
#include "core/base/poison.h"

namespace attn {
namespace {

constexpr size_t kSmallest = 64;
constexpr int kPieceClasses = 40;

struct Piece {
  Piece* next;  // never poisoned: the leak checker follows it
};

struct Lists {
  std::mutex mutex;
  Piece* free[kPieceClasses] = {};
  int64_t fetches = 0;
};

Lists& lists();
std::mutex& lists_mutex() { return lists().mutex; }

Lists& lists() {
  static Lists* const instance = [] {
    hold_over_fork<lists_mutex>();
    return new Lists;  // never destroyed: static tensors outlive main
  }();
  return *instance;
}

int piece_class(size_t bytes) {
  return bytes <= kSmallest ? 0 : static_cast<int>(std::bit_width((bytes - 1) / kSmallest));
}

}  // namespace

void* recycled_allocate(size_t bytes) {
  const int wanted = piece_class(bytes);
  if (wanted >= kPieceClasses) throw std::bad_alloc();
  Lists& all = lists();
  {
    const std::lock_guard lock(all.mutex);
    if (Piece* const piece = all.free[wanted]) {
      all.free[wanted] = piece->next;
      ASAN_UNPOISON_MEMORY_REGION(piece, kSmallest << wanted);
      return piece;
    }
    ++all.fetches;
  }
  return ::operator new (kSmallest << wanted, std::align_val_t{kSmallest});
}

void recycled_free(void* piece, size_t bytes) noexcept {
  if (!piece) return;
  const int held = piece_class(bytes);
  Lists& all = lists();
  const std::lock_guard lock(all.mutex);
  all.free[held] = new (piece) Piece{all.free[held]};
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(piece) + sizeof(Piece),
                            (kSmallest << held) - sizeof(Piece));
}

int64_t recycled_fetches() {
  Lists& all = lists();
  const std::lock_guard lock(all.mutex);
  return all.fetches;
}

}  // namespace attn
