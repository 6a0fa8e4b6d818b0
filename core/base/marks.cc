// Sums of ticks by part, one set a thread; see marks.h. A thread holds the part that its time goes
// to and when that began: a mark adds what has passed to the part that it ends. So nested marks
// share out the time between them without a stack.
#include "core/base/marks.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/check.h"
#include "core/base/parallel.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace attn {
namespace {

using Clock = std::chrono::steady_clock;

// A counter of constant rate. Its unit cancels: ticks are shares of a pass that a clock times.
uint64_t ticks_now() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<uint64_t>(Clock::now().time_since_epoch().count());
#endif
}

struct TickSums {
  std::array<uint64_t, kParts> ticks = {};
  int64_t marks = 0;
};

struct ThreadMarks {
  bool is_counted = false;  // the thread works for the pass that is timed
  Part part = Part::other;
  uint64_t since = 0;
  TickSums sums;

  void go_to(Part next) {
    const uint64_t now = ticks_now();
    // Counters of two processors may differ by a little when a thread moves.
    if (now > since) sums.ticks[static_cast<size_t>(part)] += now - since;
    since = now;
    part = next;
  }
};

thread_local ThreadMarks this_thread;

// Of threads that have ended their share of a loop.
std::array<std::atomic<uint64_t>, kParts> ended_ticks;
std::atomic<int64_t> ended_marks = 0;

TickSums taken_ended() {
  TickSums taken;
  for (size_t i = 0; i < kParts; ++i) taken.ticks[i] = ended_ticks[i].exchange(0);
  taken.marks = ended_marks.exchange(0);
  return taken;
}

void begin_thread(Part part) {
  this_thread = {.is_counted = true, .part = part, .since = ticks_now(), .sums = {}};
}

TickSums end_thread() {
  this_thread.go_to(Part::other);
  this_thread.is_counted = false;
  return this_thread.sums;
}

// Marks are on, and this thread is counted, during its lifetime.
struct MarkedPass {
  MarkedPass() {
    ATTN_CHECK(!marks_detail::are_on.exchange(true), "time_parts inside another time_parts");
    taken_ended();
    begin_thread(Part::other);
  }
  ~MarkedPass() {
    this_thread.is_counted = false;
    marks_detail::are_on = false;
  }
  MarkedPass(const MarkedPass&) = delete;
  MarkedPass& operator=(const MarkedPass&) = delete;
};

}  // namespace

namespace marks_detail {

int enter(Part part) {
  if (!this_thread.is_counted) return kOff;
  const Part before = this_thread.part;
  this_thread.go_to(part);
  ++this_thread.sums.marks;
  return static_cast<int>(before);
}

int enter_unmarked(Part part) { return this_thread.part == Part::other ? enter(part) : kOff; }

void leave(int before) { this_thread.go_to(static_cast<Part>(before)); }

}  // namespace marks_detail

Part current_part() {
  return marks_are_on() && this_thread.is_counted ? this_thread.part : Part::other;
}

MarkedThread::MarkedThread(Part part) {
  if (!marks_are_on()) return;
  if (this_thread.is_counted) {  // the thread that started the loop
    before_ = marks_detail::enter(part);
    return;
  }
  is_counted_ = true;
  begin_thread(part);
}

MarkedThread::~MarkedThread() {
  if (before_ != marks_detail::kOff) marks_detail::leave(before_);
  if (!is_counted_) return;
  const TickSums sums = end_thread();
  for (size_t i = 0; i < kParts; ++i) ended_ticks[i] += sums.ticks[i];
  ended_marks += sums.marks;
}

PartTimes time_parts(FunctionRef<void()> pass) {
  const MarkedPass marked;
  const Clock::time_point start = Clock::now();
  pass();
  TickSums sums = end_thread();
  PartTimes times;
  times.pass_s = std::chrono::duration<double>(Clock::now() - start).count();
  uint64_t own = 0;
  for (const uint64_t ticks : sums.ticks) own += ticks;
  const double tick_s = times.pass_s / static_cast<double>(std::max<uint64_t>(1, own));
  const TickSums others = taken_ended();
  times.marks = sums.marks + others.marks;
  double busy = 0;
  for (size_t i = 0; i < kParts; ++i) {
    times.seconds[i] = tick_s * static_cast<double>(sums.ticks[i] + others.ticks[i]);
    busy += times.seconds[i];
  }
  // A thread of the pass that no loop gave a share to has waited.
  times.seconds[static_cast<size_t>(Part::waiting)] +=
      std::max(0.0, times.pass_s * threads() - busy);
  return times;
}

}  // namespace attn
