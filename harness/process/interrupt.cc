// SIGINT and SIGTERM while children run, and stops of this process; see process.h. The handlers
// only note the number or end the process.
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "core/base/check.h"
#include "harness/process/process.h"

namespace attn {
namespace {

volatile sig_atomic_t seen_signal = 0;
struct sigaction interrupt_before, terminate_before;

volatile sig_atomic_t stops_seen = 0;

// A process cannot handle SIGSTOP, but it receives SIGCONT when it goes on.
extern "C" void note_continue(int) { stops_seen = stops_seen + 1; }

extern "C" void note_signal(int number) {
  if (seen_signal != 0) _exit(128 + number);
  seen_signal = number;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  seen_signal = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;  // no SA_RESTART: poll returns, and the loop looks
  sigaction(SIGINT, &action, &interrupt_before);
  sigaction(SIGTERM, &action, &terminate_before);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &interrupt_before, nullptr);
  sigaction(SIGTERM, &terminate_before, nullptr);
  seen_signal = 0;
}

int InterruptGuard::signal() { return seen_signal; }

void count_stops() {
  struct sigaction action {};
  action.sa_handler = note_continue;
  action.sa_flags = SA_RESTART;
  sigaction(SIGCONT, &action, nullptr);
}

int stops() { return stops_seen; }

std::string signal_name(int signal) {
  return fmt::format("signal {} ({})", signal, strsignal(signal));
}

}  // namespace attn
