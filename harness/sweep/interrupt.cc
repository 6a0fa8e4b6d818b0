// SIGINT and SIGTERM while children run; see process.h. The handler only notes
// the number or ends the process.
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "core/base/check.h"
#include "harness/sweep/process.h"

namespace attn {
namespace {

volatile sig_atomic_t seen_signal = 0;
struct sigaction interrupt_before, terminate_before;

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

std::string signal_name(int signal) {
  return fmt::format("signal {} ({})", signal, strsignal(signal));
}

}  // namespace attn
