// Marks say which part of a pass the time of a thread goes to: packing, products, softmax, ... They
// are off but during time_parts(); a mark that is off is one branch on a global. On, a mark reads
// the time-stamp counter when it begins and when it ends, some 7 ns together. Marks stand around
// tiles, panels and strips, never in an inner loop.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/enum_names.h"
#include "core/base/function.h"

namespace attn {

enum class Part : uint8_t {
  packing,        // copies of operands in the order that the product reads
  products,       // matrix products, but those inside another part
  softmax,        // exponentials, maxima, sums, rescaling and merging of partial results
  scores,         // scores that are no plain products: relu, tanh, learned or synthesised ones
  masks,          // scores that are hidden
  features,       // feature maps, their projections included
  normalisation,  // sums of weights and divisions without a softmax
  hashing,        // products with random rotations, and buckets
  sorting,        // sorting of positions, learned or by bucket
  selection,      // scores of keys or blocks by which some are chosen, and the choice
  gathering,      // rows copied to where a kernel reads them, and back
  edges,          // attention along the edges of a graph: dots, softmax and sums in one pass
  projections,    // linear layers and projections along the sequence, all that they do
  feed_forward,   // the two linear layers of a Transformer's block, all that they do
  recurrence,     // gates and states of a recurrent cell or a scan, but its products
  convolution,    // a short convolution over positions, with its activation
  norms,          // of rows, with the skip and the gate that the same pass adds and multiplies
  sums,           // running and block sums
  elementwise,    // one pass over memory: scale, add, fill, activation functions
  waiting,        // threads that start, wait for others or have nothing to do
  other,          // all that no mark names
};
inline constexpr size_t kParts = static_cast<size_t>(Part::other) + 1;

constexpr std::array<EnumName<Part>, kParts> names_of(Part) {
  return {{{Part::packing, "packing"},
           {Part::products, "products"},
           {Part::softmax, "softmax"},
           {Part::scores, "scores"},
           {Part::masks, "masks"},
           {Part::features, "features"},
           {Part::normalisation, "normalisation"},
           {Part::hashing, "hashing"},
           {Part::sorting, "sorting"},
           {Part::selection, "selection"},
           {Part::gathering, "gathering"},
           {Part::edges, "edges"},
           {Part::projections, "projections"},
           {Part::feed_forward, "feed_forward"},
           {Part::recurrence, "recurrence"},
           {Part::convolution, "convolution"},
           {Part::norms, "norms"},
           {Part::sums, "sums"},
           {Part::elementwise, "elementwise"},
           {Part::waiting, "waiting"},
           {Part::other, "other"}}};
}

namespace marks_detail {

inline constexpr int kOff = -1;  // the mark changed nothing
inline constinit std::atomic<bool> are_on = false;

// Return the part that the thread's time went to before, or kOff.
int enter(Part part);
int enter_unmarked(Part part);  // changes nothing where the time goes to a part already
void leave(int before);

}  // namespace marks_detail

inline bool marks_are_on() { return marks_detail::are_on.load(std::memory_order_relaxed); }

// From here to the end of the scope, the time of this thread, and of the threads of loops that it
// starts, goes to `part`. The time of a Mark inside goes to the inner one's part alone.
class Mark {
 public:
  explicit Mark(Part part) {
    if (marks_are_on()) [[unlikely]]
      before_ = marks_detail::enter(part);
  }
  ~Mark() {
    if (before_ != marks_detail::kOff) [[unlikely]]
      marks_detail::leave(before_);
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

 private:
  int before_ = marks_detail::kOff;
};

// The mark of a kernel that many parts use: it counts only outside of every Mark, so that the
// product of a feature map is time of the features.
class KernelMark {
 public:
  explicit KernelMark(Part part) {
    if (marks_are_on()) [[unlikely]]
      before_ = marks_detail::enter_unmarked(part);
  }
  ~KernelMark() {
    if (before_ != marks_detail::kOff) [[unlikely]]
      marks_detail::leave(before_);
  }
  KernelMark(const KernelMark&) = delete;
  KernelMark& operator=(const KernelMark&) = delete;

 private:
  int before_ = marks_detail::kOff;
};

// The part that the time of this thread goes to; `other` where marks are off.
Part current_part();

// A loop's share on one thread, which begins in the part of the thread that started the loop.
// parallel_for alone makes them.
class MarkedThread {
 public:
  explicit MarkedThread(Part part);
  ~MarkedThread();
  MarkedThread(const MarkedThread&) = delete;
  MarkedThread& operator=(const MarkedThread&) = delete;

 private:
  bool is_counted_ = false;  // this thread's time is counted from here on
  int before_ = marks_detail::kOff;
};

struct PartTimes {
  std::array<double, kParts> seconds = {};  // of all threads together, by Part
  double pass_s = 0;                        // of the pass, by the clock
  int64_t marks = 0;                        // that began

  double of(Part part) const { return seconds[static_cast<size_t>(part)]; }
};

// Runs `pass` once with marks on. The parts add up to pass_s times threads(). Error inside another
// time_parts(); `pass` may throw.
PartTimes time_parts(FunctionRef<void()> pass);

}  // namespace attn
