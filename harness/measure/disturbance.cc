// From getrusage, /proc/stat (in ticks of 10 ms) and /sys; see disturbance.h.
#include "harness/measure/disturbance.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

namespace attn {
namespace {

double seconds_in(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

std::optional<double> sum(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return *a + *b;
}

std::optional<double> difference_of(std::optional<double> now, std::optional<double> before) {
  if (!now || !before) return std::nullopt;
  return std::max(0.0, *now - *before);
}

std::optional<double> frequency_now() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq");
  double kilohertz = 0;
  if (!(file >> kilohertz) || kilohertz <= 0) return std::nullopt;
  return kilohertz * 1e3;
}

}  // namespace

Disturbance& Disturbance::operator+=(const Disturbance& more) {
  seconds += more.seconds;
  involuntary_switches += more.involuntary_switches;
  minor_faults += more.minor_faults;
  major_faults += more.major_faults;
  stolen_s = sum(stolen_s, more.stolen_s);
  others_s = sum(others_s, more.others_s);
  if (more.load) load = std::max(load.value_or(0), *more.load);
  if (more.frequency_hz)
    frequency_hz = std::min(frequency_hz.value_or(*more.frequency_hz), *more.frequency_hz);
  return *this;
}

DisturbanceMeter::Counts DisturbanceMeter::now() {
  Counts counts;
  counts.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) == 0) {
    counts.own_s = seconds_in(used.ru_utime) + seconds_in(used.ru_stime);
    counts.switches = used.ru_nivcsw;
    counts.minor_faults = used.ru_minflt;
    counts.major_faults = used.ru_majflt;
  }
  // "cpu  user nice system idle iowait irq softirq steal"
  std::ifstream stat("/proc/stat");
  std::string word;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, softirq = 0, steal = 0;
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  if (stat >> word >> user >> nice >> system >> idle >> waiting >> irq >> softirq >> steal &&
      word == "cpu" && ticks > 0) {
    counts.stolen_s = steal / ticks;
    counts.busy_s = (user + nice + system + irq + softirq) / ticks;
  }
  return counts;
}

DisturbanceMeter::DisturbanceMeter() : before_(now()) {}

Disturbance DisturbanceMeter::read() const {
  const Counts after = now();
  Disturbance found{.seconds = after.seconds - before_.seconds,
                    .involuntary_switches = after.switches - before_.switches,
                    .minor_faults = after.minor_faults - before_.minor_faults,
                    .major_faults = after.major_faults - before_.major_faults,
                    .stolen_s = difference_of(after.stolen_s, before_.stolen_s),
                    .others_s = std::nullopt,
                    .load = std::nullopt,
                    .frequency_hz = frequency_now()};
  if (const auto busy = difference_of(after.busy_s, before_.busy_s))
    found.others_s = std::max(0.0, *busy - (after.own_s - before_.own_s));
  if (double load = 0; ::getloadavg(&load, 1) == 1) found.load = load;
  return found;
}

}  // namespace attn
