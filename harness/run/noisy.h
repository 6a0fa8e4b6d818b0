// The rules by which a visit is made again and a row is marked as noisy. A header of its own,
// because it can change a figure: it is hashed into the cells' ids.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/cell/request.h"

namespace attn {

// A witness fell that reached less than this part of the best rate of the sweep. Clock rates of an
// undisturbed machine vary by a few percent; a neighbour that shares a cache takes a fifth or more.
inline constexpr double kFallen = 0.85;
// Of the machine's time, taken by the hypervisor. Two percent of a time is as much as the intervals
// of most rows are wide.
inline constexpr double kMostStolen = 0.02;
// A second and thread. The system's own work interrupts a thread a few times a second; a process
// that competes for its core, some hundred times.
inline constexpr double kMostSwitches = 50;

// Whether the witness fell of a visit whose time is bound by memory, or by arithmetic.
bool fell(const Witness& seen, const Witness& best, bool is_memory_bound);
// Why the visits of a row are unreliable, but for Noise::stopped.
std::vector<Noise> noise_of(bool witness_fell, const Disturbance& found, int64_t threads,
                            int64_t cores);

}  // namespace attn
