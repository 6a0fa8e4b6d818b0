// Progress of a sweep; see progress.h.
#include "harness/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "core/check.h"
#include "harness/cli/table.h"
#include "harness/cli/verbs.h"

namespace attn::cli {
namespace {

size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

std::string failures_text(const Progress& progress) {
  return progress.failures ? fmt::format(", {} failed", progress.failures) : "";
}

}  // namespace

std::string cell_text(const Json& row) {
  std::string text = row.at("measure").get<std::string>() + " " + label_of(row);
  if (row.at("task").is_object()) text += " on " + row.at("task").at("name").get<std::string>();
  for (const auto& [name, value] : row.at("axes").items())
    if (name != "seed" && name != "threads" && !value.is_null())
      text += " " + (value.is_string() ? value.get<std::string>() : name + "=" + value.dump());
  return text;
}

ProgressLine::~ProgressLine() {
  if (open_) warn("\n");
}

void ProgressLine::show(const Progress& progress) {
  if (kind_ == Kind::none) return;
  if (kind_ == Kind::lines) {
    if (!progress.row) return;
    const std::string status = progress.row->at("status");
    const std::string reason =
        status == "ok" ? "" : ": " + progress.row->at("reason").get<std::string>();
    warn(fmt::format("[{}/{}] {} {}{}{}\n", progress.done, progress.total, cell_text(*progress.row),
                     status, reason,
                     progress.done < progress.total
                         ? fmt::format(" ({} left{})", human_seconds(progress.seconds_left),
                                       failures_text(progress))
                         : ""));
    return;
  }
  const std::string left =
      fmt::format("{}/{}  {} left{}", progress.done, progress.total,
                  human_seconds(progress.seconds_left), failures_text(progress));
  std::string line = left + "  " + progress.current;
  line.resize(std::min(line.size(), terminal_width() - 1));
  const bool red = color_ && progress.failures > 0;
  warn(fmt::format("\r\033[K{}{}{}", red ? "\033[31m" : "", line, red ? "\033[0m" : ""));
  open_ = true;
}

}  // namespace attn::cli
