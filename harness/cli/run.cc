// attnbench run: a sweep from axes, profile or config file to rows on disk and tables on stdout.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string_view>

#include "core/base/cgroup.h"
#include "core/base/check.h"
#include "core/base/io_error.h"
#include "core/base/parallel.h"
#include "harness/cli/dry_run.h"
#include "harness/cli/find.h"
#include "harness/cli/progress.h"
#include "harness/cli/rendered.h"
#include "harness/cli/run_options.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/crossing/report.h"
#include "harness/store/parse.h"
#include "harness/sweep/amounts.h"
#include "harness/sweep/axes.h"
#include "harness/sweep/grammar.h"
#include "harness/sweep/pilots.h"
#include "harness/sweep/profiles.h"
#include "harness/sweep/run_line.h"
#include "harness/sweep/toml_text.h"
#include "harness/tables/closing.h"
#include "harness/tables/table.h"

namespace attn::cli {
namespace {

constexpr const char* kMaxTime = "60s";  // of a cell measured to a precision, unless told

constexpr std::string_view kMachine = "{machine}";  // in the name of an output file

void parse_shard(const std::string& text, SweepRequest& request, bool is_dry) {
  char slash = 0, rest = 0;
  if (std::sscanf(text.c_str(), "*/%d%c", &request.shards, &rest) == 1 && request.shards >= 1) {
    ATTN_CHECK(is_dry, "--shard {} goes with --dry-run; a run is of one part", text);
    request.shard = kEveryShard;
    return;
  }
  const int found =
      std::sscanf(text.c_str(), "%d%c%d%c", &request.shard, &slash, &request.shards, &rest);
  ATTN_CHECK(found == 3 && slash == '/' && request.shards >= 1 && request.shard >= 0 &&
                 request.shard < request.shards,
             "--shard {} is not valid; expected i/n with 0 <= i < n", text);
}

// "steps=500,width=64", or the `training` object of a row, whose members become such settings.
std::string train_settings(const std::string& given) {
  if (given.find_first_not_of(' ') == std::string::npos ||
      given[given.find_first_not_of(' ')] != '{')
    return given;
  const Parsed parsed = parse_json(given);
  ATTN_CHECK(parsed.fault.empty() && parsed.value.is_object(),
             "--train '{}' is neither settings such as steps=500,width=64 nor a row's training "
             "object",
             given);
  std::string text;
  for (const auto& [name, value] : parsed.value.items())
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, text_of(value));
  return text;
}

// A path or a comment may hold any bytes, a row only UTF-8.
std::string as_utf8(const std::string& text) {
  const std::string json = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  return parse_json(json).value.get<std::string>();
}

// What the words of an Error and the default name of the rows call a sweep file.
std::string name_of_file(const std::string& path) {
  return path == kStdoutPath ? "stdin" : std::filesystem::path(path).stem().string();
}

Profile read_sweep_file(const std::string& path) {
  const bool is_stdin = path == kStdoutPath;
  std::error_code unknown;
  ATTN_CHECK(is_stdin || path.ends_with(".toml") || std::filesystem::exists(path, unknown),
             "'{}' is no sweep file (FILE.toml, or - for standard input); a variant is named by "
             "-v, a task by -t, a profile by --profile",
             path);
  std::ifstream file;
  if (!is_stdin) file.open(path);
  std::istream& stream = is_stdin ? std::cin : file;
  std::string text(kMostTomlBytes + 1, '\0');  // one more than it may have
  stream.read(text.data(), std::ssize(text));
  const bool is_read = stream.gcount() > 0 || (stream.eof() && !stream.bad());
  ATTN_IO_CHECK(
      (is_stdin || file.is_open()) && is_read && !std::filesystem::is_directory(path, unknown),
      "cannot read the sweep file '{}'", path);
  text.resize(static_cast<size_t>(stream.gcount()));
  Profile profile = read_profile(is_stdin ? "standard input" : path, text);
  profile.text = as_utf8(text);
  return profile;
}

std::set<std::string> retried(const std::string& list) {
  const std::vector<std::string> known = {"failed", "diverged", "timeout",
                                          "oom",    "skipped",  "noisy"};
  std::set<std::string> retry;
  for (const std::string& word : expand_values("--retry", list)) {
    ATTN_CHECK(std::count(known.begin(), known.end(), word), "--retry {} is unknown; expected {}",
               word, join(known));
    retry.insert(word);
  }
  return retry;
}

std::string default_output(const std::string& profile) {
  std::string time;
  for (const char c : utc_now())
    if (c != '-' && c != ':') time += c;
  return fmt::format("results/{}-{}.jsonl", time, profile.empty() ? "sweep" : profile);
}

// A shard that goes on somewhere else begins another file, rather than being refused.
std::string on_this_machine(std::string output) {
  if (const size_t place = output.find(kMachine); place != std::string::npos)
    output.replace(place, kMachine.size(), machine_id());
  return output;
}

SweepRequest request_from(const Arguments& arguments) {
  SweepRequest request;
  request.profile = arguments.get("profile");
  if (!arguments.words().empty()) {
    const std::string& path = arguments.words()[0];
    ATTN_CHECK(request.profile.empty(),
               "the sweep file '{}' and --profile {} are both given; a file takes a profile's "
               "sweeps by extends = \"{}\"",
               path, request.profile, request.profile);
    request.sweep_file = std::make_shared<const Profile>(read_sweep_file(path));
  }
  request.variants = arguments.all("variant");
  request.tasks = arguments.all("task");
  if (arguments.has("measure")) request.axes["measure"] = arguments.get("measure");
  for (const AxisInfo& axis : all_axes())
    if (const std::string option = option_of(axis); arguments.has(option))
      request.axes[axis.spec.name] = arguments.get(option);
  request.training = train_settings(arguments.get("train"));
  request.tune = arguments.get("tune");
  request.pilots = UserCache::default_file("pilots.json");
  request.passed_checks = UserCache::default_file("checks.json");
  request.output = on_this_machine(arguments.get(
      "output",
      default_output(request.sweep_file ? name_of_file(arguments.words()[0]) : request.profile)));
  request.force = arguments.has("force");
  request.resume = arguments.one_of("resume", {"true", "false"}) == "true";
  request.fail_fast = arguments.has("fail-fast");
  if (arguments.has("retry")) request.retry = retried(arguments.get("retry"));
  ATTN_CHECK(request.retry.empty() || request.output != kStdoutPath,
             "--retry takes rows out of a file, and standard output is none");
  request.jobs = static_cast<int>(arguments.integer("jobs", 0, 1, 4096));
  if (arguments.has("timeout")) request.timeout_s = parse_seconds(arguments.get("timeout"));
  if (arguments.has("precision")) {
    request.precision = parse_share("precision", arguments.get("precision"));
    ATTN_CHECK(request.precision > 0, "--precision {} would never be reached; expected such as 2%",
               arguments.get("precision"));
    request.max_time_s = parse_seconds(arguments.get("max-time", kMaxTime));
  }
  ATTN_CHECK(request.precision > 0 || !arguments.has("max-time"),
             "--max-time bounds --precision, which is not given; --timeout bounds a cell");
  request.pin = arguments.get("pin", request.pin);
  if (arguments.has("max-memory"))
    request.max_memory_bytes = parse_bytes(arguments.get("max-memory"));
  if (arguments.has("shard"))
    parse_shard(arguments.get("shard"), request, arguments.has("dry-run"));
  return request;
}

// The command that goes on with this sweep, with what the config file said; without --force, which
// would throw the rows away.
std::string resume_hint(const Arguments& arguments, const std::string& output) {
  std::error_code unknown;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  std::string text = shell_word(unknown ? "attnbench" : program.string()) + " run";
  for (const Option& option : run_verb().options) {
    if (option.name == "config" || option.name == "force" || option.name == "output") continue;
    for (const std::string& value : arguments.all(option.name)) {
      text += " --" + option.name;
      if (!option.value.empty()) text += "=" + shell_word(value);
    }
  }
  for (const std::string& word : arguments.words()) text += " " + shell_word(word);
  return text + " --output=" + shell_word(output);
}

// With more threads than cores, times are longer than with a core for each thread.
void warn_of_shared_cores(const Plan& sweep) {
  int64_t most = 0;
  for (const Cell& cell : sweep.cells) most = std::max(most, cell.key.axes.threads.value_or(1));
  const int cores = hardware_threads();
  if (most <= cores) return;
  const std::optional<double> quota = cpu_quota();
  warn(fmt::format(
      "attnbench: {} threads run on {} core{}{}: times are longer than with a core for each "
      "thread\n",
      most, cores, cores == 1 ? "" : "s",
      quota ? fmt::format(" (the CPU quota is {:g})", *quota) : ""));
}

void require_output(const SweepRequest& request) {
  if (request.output == kStdoutPath) return;
  require_writable(request.output);
  ATTN_CHECK(request.resume || request.force || !std::filesystem::exists(request.output),
             "'{}' exists; --resume continues it, --force starts over", request.output);
}

struct Shown {  // how a run is shown
  std::string format, color, progress;
  bool quiet = false, verbose = false;
  ProgressLine line() const {
    const auto kind = quiet || progress == "none" ? ProgressLine::Kind::none
                      : is_terminal(Stream::err)  ? ProgressLine::Kind::rewritten
                                                  : ProgressLine::Kind::phases;
    return {kind, verbose, wants_color(color, Stream::err)};
  }
};

int nothing_matched() {
  warn("attnbench: nothing matched: no cell has these variants, tasks and axes\n");
  return kNothingMatched;
}

void say_rows(const Arguments& arguments, const SweepRequest& request, const SweepResult& result,
              bool quiet) {
  if (!quiet && result.reused > 0)
    warn(fmt::format("{} of {} cells reused\n", result.reused, result.rows.size()));
  if (!quiet) warn(fmt::format("rows: {}\n", request.output));
  if (result.signal)
    warn(fmt::format("interrupted; every finished cell is in the rows. To go on: {}\n",
                     resume_hint(arguments, request.output)));
}

int run_find(const Arguments& arguments, SweepRequest request, const Shown& shown) {
  check_find_options(arguments, request);
  request.find = arguments.get("find");
  CrossingSearch search(request);
  Plan first = search.next();
  if (first.cells.empty()) return nothing_matched();
  if (arguments.has("dry-run")) {
    const int code = dry_run(request, first, {shown.format, false, shown.quiet});
    warn(fmt::format("this is the first step of the search; all steps have at most {} cells\n",
                     search.most_cells()));
    return code;
  }
  if (!shown.quiet && !arguments.has("yes") && !agrees_to_long_run(request, first)) return kOk;
  if (!shown.quiet) warn_of_shared_cores(first);
  require_output(request);
  while (!search.next().cells.empty()) {
    if (!shown.quiet && shown.progress != "none")
      warn(fmt::format("step {}: {} cells\n", search.number(), search.next().cells.size()));
    ProgressLine line = shown.line();
    search.take_step([&](const Progress& now) { line.show(now); });
  }
  const std::string& format = shown.format;
  const std::vector<Json> lines = crossing_lines(search.contests(), search.found());
  print(format == "json"  ? Json(lines).dump(2) + "\n"
        : format == "csv" ? render_csv(lines)
                          : rendered(format, crossing_tables(search.contests(), search.found()),
                                     wants_color(shown.color, Stream::out)));
  say_rows(arguments, request, search.result(), shown.quiet);
  return exit_code(search.result());
}

int run_run(const Arguments& given) {
  Arguments arguments = given;
  if (arguments.has("config")) arguments.merge_config(arguments.get("config"), run_verb());
  SweepRequest request = request_from(arguments);
  for (const std::string& word : given.as_given()) request.argv.push_back(as_utf8(word));
  const Shown shown{.format = arguments.one_of("format", {"table", "json", "csv", "md"}),
                    .color = arguments.one_of("color", {"auto", "always", "never"}),
                    .progress = arguments.one_of("progress", {"auto", "none"}),
                    .quiet = arguments.has("quiet"),
                    .verbose = arguments.has("verbose")};
  ATTN_CHECK(arguments.has("dry-run") || !arguments.has("pilots"),
             "--pilots goes with --dry-run; a sweep needs no forecast");
  if (arguments.has("find")) return run_find(arguments, request, shown);

  Plan sweep = plan(request);
  if (sweep.cells.empty()) return nothing_matched();
  if (arguments.has("dry-run"))
    return dry_run(request, sweep, {shown.format, arguments.has("pilots"), shown.quiet});
  if (!shown.quiet && !arguments.has("yes") && !agrees_to_long_run(request, sweep)) return kOk;

  if (!shown.quiet) warn_of_shared_cores(sweep);
  require_output(request);
  SweepResult result;
  {
    ProgressLine line = shown.line();
    result = run_sweep(request, sweep, [&](const Progress& now) { line.show(now); });
  }
  const auto tables = [&](Stream stream) {
    return rendered(shown.format, result.rows, arguments.has("ledger"),
                    wants_color(shown.color, stream));
  };
  if (request.output == kStdoutPath) {  // the rows are the data; tables are for the person
    if (!shown.quiet) warn(tables(Stream::err));
    if (result.signal) warn("interrupted; rows on standard output cannot be resumed\n");
    return exit_code(result);
  }
  print(tables(Stream::out));
  say_rows(arguments, request, result, shown.quiet);
  return exit_code(result);
}

}  // namespace

Verb run_verb() {
  return {.name = "run",
          .usage = "[FILE.toml | -] [OPTION...]",
          .summary = "runs a sweep and writes rows",
          .options = run_options(),
          .max_words = 1,
          .run = run_run};
}

}  // namespace attn::cli
