// A library for LD_PRELOAD that makes chosen children of a sweep misbehave before their main()
// runs. ATTN_TEST_FAULTS holds lines "PATTERN<tab>ACTION"; the first whose pattern the request
// holds acts. ATTN_TEST_LOG names a file to which each request is appended. faults.py builds and
// uses it.
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace {

std::string request() {
  std::string text;
  char chunk[65536];  // pread leaves the offset, so that the program reads the request too
  for (ssize_t got = 0; (got = pread(0, chunk, sizeof chunk, static_cast<off_t>(text.size()))) > 0;)
    text.append(chunk, static_cast<size_t>(got));
  return text;
}

bool is_cell() {
  std::ifstream file("/proc/self/cmdline");
  std::string program, verb;
  return std::getline(file, program, '\0') && std::getline(file, verb, '\0') && verb == "cell";
}

[[noreturn]] void say(const std::string& text) {
  if (write(1, text.data(), text.size()) < 0) _exit(1);
  _exit(0);
}

[[noreturn]] void flood() {
  const std::string text(4096, 'y');
  while (write(1, text.data(), text.size()) > 0 && write(2, text.data(), text.size()) > 0) {
  }
  _exit(0);
}

// A daemon: in a session of its own, with a parent that is gone. The child itself goes on.
void fork_away(const std::string& pid_file) {
  const pid_t between = fork();
  if (between == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    std::ofstream(pid_file + ".new") << getpid() << std::endl;
    rename((pid_file + ".new").c_str(), pid_file.c_str());
    while (true) sleep(1);
  }
  waitpid(between, nullptr, 0);
  while (access(pid_file.c_str(), R_OK) != 0) usleep(1000);
}

bool is_stopped(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/stat";
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char text[512];
  const ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
  close(file);
  text[got < 0 ? 0 : got] = 0;
  const char* state = strrchr(text, ')');
  return !state || state[2] == 'T';
}

// A process of its own lets this one go on after a while.
void stop_now(int) {
  const pid_t target = getpid();
  if (_Fork() == 0) {
    while (!is_stopped(target)) usleep(1000);
    usleep(100'000);
    kill(target, SIGCONT);
    _exit(0);
  }
  raise(SIGSTOP);
}

// This process stops itself once it has computed for 20 ms. `count_file` counts the stops, up to
// `most`.
void stop_soon(int most, const std::string& count_file) {
  int count = 0;
  std::ifstream(count_file) >> count;
  if (count >= most) return;
  std::ofstream(count_file) << count + 1;
  signal(SIGPROF, stop_now);
  const itimerval once{{0, 0}, {0, 20'000}};
  setitimer(ITIMER_PROF, &once, nullptr);
}

void act(const std::string& action) {
  const size_t colon = action.find(':');
  const std::string name = action.substr(0, colon);
  const std::string value = colon == std::string::npos ? "" : action.substr(colon + 1);
  if (name == "say") say(value);
  if (name == "exit") _exit(std::atoi(value.c_str()));
  if (name == "flood") flood();
  if (name == "sleep") usleep(static_cast<useconds_t>(std::atoi(value.c_str())) * 1000);
  if (name == "daemon") fork_away(value);
  if (name == "stop") stop_soon(std::atoi(value.c_str()), std::getenv("ATTN_TEST_STOPS"));
  if (name == "hang")
    while (true) sleep(1);
}

__attribute__((constructor)) void misbehave() {
  const char* faults = std::getenv("ATTN_TEST_FAULTS");
  if (!faults || !is_cell()) return;
  const std::string asked = request();
  if (const char* log = std::getenv("ATTN_TEST_LOG")) {
    const std::string line = asked + "\n";
    const int file = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || write(file, line.data(), line.size()) < 0) _exit(98);
    close(file);
  }
  std::istringstream lines(faults);
  for (std::string line; std::getline(lines, line);) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos || asked.find(line.substr(0, tab)) == std::string::npos) continue;
    return act(line.substr(tab + 1));
  }
}

}  // namespace
