// Static division of loops over threads; see parallel.h. Starting threads takes a few microseconds;
// a loop on the calling thread has no overhead.
#include "core/base/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/cgroup.h"
#include "core/base/check.h"
#include "core/base/marks.h"
#include "core/base/memory.h"
#include "core/base/no_grad.h"

namespace attn {
namespace {

thread_local int thread_count = 1;
thread_local bool inside = false;  // a body of parallel_for is running on this thread

// What the caller's thread-local state was, for the bodies.
struct Inherited {
  Purpose purpose = MemoryScope::current();
  bool no_grad = NoGrad::active();
  Part part = current_part();
};

void run_piece(const Inherited& inherited, FunctionRef<void()> piece) {
  const MemoryScope scope(inherited.purpose);
  std::optional<NoGrad> unrecorded;
  if (inherited.no_grad) unrecorded.emplace();
  const MarkedThread marked(inherited.part);
  struct Inside {
    bool before = std::exchange(inside, true);
    ~Inside() { inside = before; }
  } const guard;
  piece();
}

// Whether each loop starts threads of its own. libgomp keeps its threads for the next loop; a child
// of fork() has none of them, and its first loop would wait for them for ever.
#ifdef ATTN_STD_THREADS
constexpr bool starts_threads = true;
#else
bool starts_threads = false;
[[maybe_unused]] const int watched =
    pthread_atfork(nullptr, nullptr, [] { starts_threads = true; });
#endif

// Calls run(p) for each p in [0, pieces), each on a thread of its own.
template <class Run>
void on_threads(int pieces, const Run& run) {
  if (starts_threads) {
    std::vector<std::thread> others;
    for (int p = 1; p < pieces; p++) others.emplace_back([&run, p] { run(p); });
    run(0);
    for (std::thread& other : others) other.join();
    return;
  }
#ifndef ATTN_STD_THREADS
#pragma omp parallel for schedule(static, 1) num_threads(pieces)
  for (int p = 0; p < pieces; p++) run(p);
#endif
}

}  // namespace

void set_threads(int count) {
  ATTN_CHECK(count >= 1, "threads must be at least 1, got {}", count);
  thread_count = count;
}

int threads() { return thread_count; }

int hardware_threads() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int cores = sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 0
                        ? CPU_COUNT(&allowed)
                        : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  // A machine may show 64 cores to a container that has the time of two.
  return std::clamp(static_cast<int>(std::ceil(cpu_quota().value_or(cores))), 1, cores);
}

void pin_threads(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  std::atomic<int> refused = -1;
  const auto pin_to = [&](const std::vector<int>& list) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : list) CPU_SET(static_cast<size_t>(cpu), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) refused = list[0];  // 0: this thread
  };
  if (starts_threads)
    pin_to(cpus);  // which the threads inherit
  else
    on_threads(static_cast<int>(cpus.size()),
               [&](int p) { pin_to({cpus[static_cast<size_t>(p)]}); });
  ATTN_CHECK(refused < 0, "the system does not let a thread stay on processor {}", refused.load());
}

void parallel_for(int64_t count, int64_t grain,
                  FunctionRef<void(int64_t begin, int64_t end)> body) {
  ATTN_CHECK(grain >= 1, "parallel_for needs a grain of at least 1, got {}", grain);
  if (count <= 0) return;
  const int64_t grains = (count + grain - 1) / grain;
  const int pieces = static_cast<int>(std::min<int64_t>(inside ? 1 : thread_count, grains));
  if (pieces == 1) return body(0, count);
  const Inherited inherited;
  const Mark waiting(Part::waiting);  // but for this thread's own share
  std::vector<std::exception_ptr, Recycled<std::exception_ptr>> errors(static_cast<size_t>(pieces));
  on_threads(pieces, [&](int p) {
    try {
      const int64_t begin = grains * p / pieces * grain;
      const int64_t end = std::min(count, grains * (p + 1) / pieces * grain);
      run_piece(inherited, [&] { body(begin, end); });
    } catch (...) {
      errors[static_cast<size_t>(p)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace attn
