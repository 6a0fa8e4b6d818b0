// Mutexes that fork() waits for: a child has one thread, and a mutex that another thread of its
// parent held would be held in the child for ever.
#pragma once

#include <pthread.h>

namespace attn {

// For mutex_of(), a std::mutex&, from now on; once a mutex. No thread may ask for a second one of
// these mutexes while it holds one: the order in which fork() takes them is not said.
template <auto mutex_of>
void hold_over_fork() {
  const auto unlock = [] { mutex_of().unlock(); };
  pthread_atfork([] { mutex_of().lock(); }, unlock, unlock);
}

}  // namespace attn
