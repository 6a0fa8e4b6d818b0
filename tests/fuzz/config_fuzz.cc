// A config file: what it sets is as the command line would set it, and its values are read as those
// of options. The same lines are also taken for the words of a command line.
#include <sstream>

#include "harness/cli/options.h"
#include "harness/plan/amounts.h"
#include "tests/fuzz/oracle.h"
#include "tests/fuzz/targets.h"

namespace attn::fuzz {
namespace {

const cli::Verb& verb() {
  static const cli::Verb run = {.name = "run",
                                .usage = "",
                                .summary = "",
                                .options = {{"variant", 'v', "SPEC", "", true},
                                            {"length", 0, "LIST", ""},
                                            {"config", 'c', "FILE", ""},
                                            {"resume", 0, "=BOOL", ""},
                                            {"timeout", 0, "TIME", ""},
                                            {"max-memory", 0, "SIZE", ""},
                                            {"jobs", 'j', "N", ""},
                                            {"color", 0, "WHEN", ""},
                                            {"quiet", 'q', "", ""}}};
  return run;
}

std::vector<std::string> lines_of(std::string_view bytes) {
  std::istringstream text{std::string(bytes)};
  std::vector<std::string> lines;
  // Boost.Program_options takes quadratic time for so many words.
  for (std::string line; lines.size() < 5'000 && std::getline(text, line);) lines.push_back(line);
  return lines;
}

}  // namespace

void config(std::string_view bytes) {
  accepts([&] { cli::parse(verb(), lines_of(bytes)); });

  cli::Arguments arguments;
  std::istringstream file{std::string(bytes)};
  if (!accepts([&] { arguments.merge_config(file, "sweep.conf", verb()); })) return;
  require(arguments.words().empty() && !arguments.has("config"), "a file's words or config");
  accepts([&] { parse_seconds(arguments.get("timeout")); });
  accepts([&] { require(parse_bytes(arguments.get("max-memory")) >= 0, "negative memory"); });
  accepts([&] { require(arguments.integer("jobs", 2, 1, 1000) <= 1000, "too many jobs"); });
  accepts([&] { arguments.one_of("color", {"auto", "always", "never"}); });

  std::vector<std::string> line;
  for (const cli::Option& option : verb().options)
    for (const std::string& value : arguments.all(option.name)) {
      if (value.empty()) return;  // a line has no "--name="
      line.push_back("--" + option.name + (option.value.empty() ? "" : "=" + value));
    }
  const cli::Arguments again = cli::parse(verb(), line);
  for (const cli::Option& option : verb().options)
    require(again.all(option.name) == arguments.all(option.name), "a line means something else");
}

}  // namespace attn::fuzz
