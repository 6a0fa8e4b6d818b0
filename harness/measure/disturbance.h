// What else the machine did while a measurement ran, as far as Linux counts it.
#pragma once

#include <cstdint>
#include <optional>

namespace attn {

// Counts add up over the visits of a cell.
struct Disturbance {
  double seconds = 0;                          // that were watched
  int64_t involuntary_switches = 0;            // a thread lost its core to another process
  int64_t minor_faults = 0, major_faults = 0;  // pages made, and pages read from disk
  // Seconds of processor time of the whole machine: taken by the hypervisor for other guests, and
  // used by other processes. nullopt: the system does not say.
  std::optional<double> stolen_s, others_s;
  std::optional<double> load;          // processes that want to run, the last minute's mean
  std::optional<double> frequency_hz;  // of the first processor, at the end

  Disturbance& operator+=(const Disturbance& more);
};

// Counts from its construction.
class DisturbanceMeter {
 public:
  DisturbanceMeter();
  Disturbance read() const;

 private:
  struct Counts {
    double seconds = 0, own_s = 0;
    int64_t switches = 0, minor_faults = 0, major_faults = 0;
    std::optional<double> stolen_s, busy_s;
  };
  static Counts now();
  const Counts before_;
};

}  // namespace attn
