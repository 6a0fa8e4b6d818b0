// Progress of a sweep; see progress.h.
#include "harness/cli/progress.h"

#include "core/base/check.h"
#include "harness/cli/terminal.h"
#include "harness/tables/table.h"

namespace attn::cli {
namespace {

constexpr std::chrono::seconds kSilence{30};  // the longest without a line

std::string failures_text(const Progress& progress) {
  return progress.failures ? fmt::format(", {} failed", progress.failures) : "";
}

// "145 cells"; "" of a phase that counts nothing.
std::string count_text(size_t count, const std::string& phase) {
  if (count == 0) return "";
  const char* const noun = phase == "contract checks" ? "subject" : "cell";
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

ProgressLine::~ProgressLine() { end(); }

void ProgressLine::say(const std::string& line) {
  warn((open_ ? "\r\033[K" : "") + line + "\n");
  open_ = false;
  said_ = Clock::now();
}

void ProgressLine::begin(const Progress& progress) {
  phase_ = progress.phase;
  phase_total_ = progress.phase_total;
  phase_start_ = Clock::now();
  if (kind_ == Kind::rewritten) return;
  const std::string count = count_text(phase_total_, phase_);
  say(fmt::format("{}{}{}", phase_, count.empty() ? "" : ": " + count,
                  progress.done < progress.total && progress.seconds_left > 0
                      ? fmt::format("; about {} left", human_seconds(progress.seconds_left))
                      : ""));
}

void ProgressLine::end() {
  if (kind_ == Kind::rewritten && !phase_.empty()) {
    const double spent = std::chrono::duration<double>(Clock::now() - phase_start_).count();
    const std::string count = count_text(phase_total_, phase_);
    say(fmt::format("{:<16} {:<13} {}", phase_, count, human_seconds(spent)));
  }
  phase_.clear();
}

void ProgressLine::name_cell(const Progress& progress) {
  const Row& row = *progress.row;
  if (!row.is_failure() && !verbose_) return;
  const std::string reason = row.is_ok() ? "" : ": " + row.result.reason;
  say(fmt::format("[{}/{}] {} {}{}", progress.done, progress.total, progress.current,
                  name_of(row.result.status), reason));
}

void ProgressLine::show(const Progress& progress) {
  if (kind_ == Kind::none) return;
  if (progress.phase != phase_) {
    end();
    begin(progress);
  }
  if (progress.row) name_cell(progress);
  const std::string left =
      fmt::format("{}/{}  about {} left{}", progress.done, progress.total,
                  human_seconds(progress.seconds_left), failures_text(progress));
  if (kind_ == Kind::phases) {
    if (!verbose_ && Clock::now() - said_ > kSilence) say(fmt::format("  {} {}", phase_, left));
    return;
  }
  std::string line = left + "  " + progress.current;
  line.resize(std::min(line.size(), terminal_width(Stream::err, 80) - 1));
  const bool red = color_ && progress.failures > 0;
  warn(fmt::format("\r\033[K{}{}{}", red ? "\033[31m" : "", line, red ? "\033[0m" : ""));
  open_ = true;
}

}  // namespace attn::cli
