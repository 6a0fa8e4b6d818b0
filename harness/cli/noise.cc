// attnbench noise: speed cells, each measured twice in turns, or two rows files of such cells;
// prints what this machine can tell from noise, and keeps that with the machine.
#include <algorithm>
#include <filesystem>
#include <set>

#include "core/base/check.h"
#include "harness/cli/dry_run.h"
#include "harness/cli/progress.h"
#include "harness/cli/rendered.h"
#include "harness/cli/run_options.h"
#include "harness/cli/sweep_request.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/compare/noise_report.h"
#include "harness/run/noise_floors.h"
#include "harness/run/run.h"
#include "harness/store/user_cache.h"

namespace attn::cli {
namespace {

// What is measured where nothing is chosen: some three minutes on a machine of 2026.
const std::vector<std::string> kNoiseVariants = {"full", "truncated", "linformer", "performer",
                                                 "linear"};
constexpr const char *kNoiseLengths = "64:4096:*2", *kNoiseModes = "forward,train";

// Options that say how to print, and go with rows files too.
const std::set<std::string> kOfPrinting = {"format", "color", "quiet"};

bool is_of_speed(const Option& option) {
  static const std::set<std::string> shared = {"variant",  "plugin",   "profile",    "config",
                                               "dry-run",  "yes",      "timeout",    "precision",
                                               "max-time", "pin",      "max-memory", "fail-fast",
                                               "color",    "progress", "verbose",    "quiet"};
  if (shared.count(option.name)) return true;
  return std::any_of(all_axes().begin(), all_axes().end(), [&](const AxisInfo& axis) {
    return option_of(axis) == option.name && axis.applies_to(Measure::speed);
  });
}

std::vector<Option> noise_options() {
  std::vector<Option> options;
  for (const Option& option : run_options())
    if (is_of_speed(option)) options.push_back(option);
  options.push_back({"output", 'o', "PREFIX",
                     "rows go to PREFIX-a.jsonl and PREFIX-b.jsonl, two new files; default "
                     "results/<UTC time>-noise"});
  options.push_back({"format", 0, "KIND", "table (default), md, csv, json or latex"});
  return options;
}

SweepRequest noise_request(const Arguments& arguments) {
  SweepRequest request = request_from(arguments);
  if (!request.sweep_file && request.profile.empty()) {
    if (request.variants.empty()) request.variants = kNoiseVariants;
    request.axes.try_emplace("length", kNoiseLengths);
    request.axes.try_emplace("mode", kNoiseModes);
  }
  request.axes["measure"] = name_of(Measure::speed);
  request.noise.clear();  // what is measured anew is quoted by none
  std::string prefix = arguments.get("output", default_output("noise"));
  ATTN_CHECK(prefix != kStdoutPath,
             "--output - is standard output, and noise writes two files; expected such as "
             "results/noise");
  const std::string ending = ".jsonl";
  if (prefix.ends_with(ending)) prefix.resize(prefix.size() - ending.size());
  request.output = prefix + "-a.jsonl";
  request.twin = prefix + "-b.jsonl";
  return request;
}

void require_visits(const Plan& sweep) {
  for (const Cell& cell : sweep.cells)
    ATTN_CHECK(
        cell.key.axes.repetitions.value() > 1,
        "--repetitions {} makes a single visit to a cell, which does not scatter; expected 2 "
        "or more",
        cell.key.axes.repetitions.value());
}

void require_new(const std::string& path) {
  std::error_code unknown;
  ATTN_CHECK(!std::filesystem::exists(path, unknown),
             "'{}' exists; noise starts two new files: name another prefix with --output, or give "
             "two rows files to compute it again",
             path);
  require_writable(path);
}

std::string shown(const NoiseReport& report, const std::string& format, bool color) {
  return rendered(format, noise_lines(report), {noise_table(report)}, color);
}

std::string format_of(const Arguments& arguments) {
  return arguments.one_of("format", {"table", "md", "csv", "json", "latex"});
}

bool color_of(const Arguments& arguments) {
  return wants_color(arguments.one_of("color", {"auto", "always", "never"}), Stream::out);
}

int noise_of_files(const Arguments& arguments) {
  const std::string &one = arguments.words()[0], &other = arguments.words()[1];
  for (const Option& option : noise_options())
    ATTN_CHECK(!arguments.has(option.name) || kOfPrinting.count(option.name),
               "--{} is about a measurement, and '{}' and '{}' are measured already", option.name,
               one, other);
  const std::string format = format_of(arguments);
  const bool color = color_of(arguments);
  const NoiseReport report = noise_of(read_rows_file(one), read_rows_file(other));
  if (report.groups.empty()) {
    warn(
        fmt::format("attnbench: nothing matched: '{}' and '{}' have no speed cell in common whose "
                    "times scatter\n",
                    one, other));
    return kNothingMatched;
  }
  print(shown(report, format, color));
  return kOk;
}

SweepResult measured(const Arguments& arguments, const SweepRequest& request, const Plan& sweep) {
  const std::string progress = arguments.one_of("progress", {"auto", "none"});
  const auto kind = arguments.has("quiet") || progress == "none" ? ProgressLine::Kind::none
                    : is_terminal(Stream::err)                   ? ProgressLine::Kind::rewritten
                                                                 : ProgressLine::Kind::phases;
  const std::string color = arguments.one_of("color", {"auto", "always", "never"});
  ProgressLine line(kind, arguments.has("verbose"), wants_color(color, Stream::err));
  return run_sweep(request, sweep, [&](const Progress& now) { line.show(now); });
}

int run_noise(const Arguments& given) {
  if (given.words().size() == 2) return noise_of_files(given);
  ATTN_CHECK(given.words().empty() || !given.words()[0].ends_with(".jsonl"),
             "'{}' is one rows file; noise compares two, or measures what a sweep file names",
             given.words()[0]);
  Arguments arguments = given;
  if (arguments.has("config")) arguments.merge_config(arguments.get("config"), noise_verb());
  const SweepRequest request = noise_request(arguments);
  const std::string format = format_of(arguments);
  const bool color = color_of(arguments), quiet = arguments.has("quiet");
  Plan sweep = plan(request);
  if (sweep.cells.empty()) {
    warn("attnbench: nothing matched: no speed cell has these variants and axes\n");
    return kNothingMatched;
  }
  require_visits(sweep);
  add_twins(sweep);
  if (arguments.has("dry-run")) return dry_run(request, sweep, {.format = format, .quiet = quiet});
  if (!quiet && !arguments.has("yes") && !agrees_to_long_run(request, sweep)) return kOk;
  for (const std::string& path : {request.output, request.twin}) require_new(path);

  const SweepResult result = measured(arguments, request, sweep);
  if (result.rows.empty()) {
    warn("interrupted; no cell was done\n");
    return exit_code(result);
  }
  const NoiseReport report = noise_of(read_rows_file(request.output), read_rows_file(request.twin));
  if (!report.groups.empty()) print(shown(report, format, color));
  const std::string file = UserCache::default_file(kNoiseFile);
  const NoiseFloor floors = floors_of(report);
  const bool is_kept = !result.signal && !floors.empty() && !file.empty();
  if (is_kept) keep_floors(file, floors);
  if (!quiet) {
    warn(fmt::format("rows: {} and {}\n", request.output, request.twin));
    if (is_kept) warn(fmt::format("kept for this machine and build: {}\n", file));
  }
  if (result.signal)
    warn("interrupted; the table is of the cells that were done, and is not kept\n");
  return exit_code(result);
}

}  // namespace

Verb noise_verb() {
  return {.name = "noise",
          .usage = "[FILE.toml | A.jsonl B.jsonl] [OPTION...]",
          .summary = "measures each cell twice: the smallest difference that this machine can tell",
          .options = noise_options(),
          .max_words = 2,
          .run = run_noise};
}

}  // namespace attn::cli
