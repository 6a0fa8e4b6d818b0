// Options to requests; see sweep_request.h.
#include "harness/cli/sweep_request.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string_view>

#include "core/base/check.h"
#include "core/base/io_error.h"
#include "harness/cli/run_options.h"
#include "harness/cli/terminal.h"
#include "harness/plan/amounts.h"
#include "harness/plan/axes.h"
#include "harness/plan/grammar.h"
#include "harness/plan/profiles.h"
#include "harness/plan/python_variants.h"
#include "harness/plan/shapes.h"
#include "harness/plan/toml_text.h"
#include "harness/plugin/load.h"
#include "harness/run/run_line.h"
#include "harness/store/parse.h"
#include "harness/store/user_cache.h"

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

std::string text_of_toml(const char* what, const std::string& path) {
  const bool is_stdin = path == kStdoutPath;
  std::error_code unknown;
  std::ifstream file;
  if (!is_stdin) file.open(path);
  std::istream& stream = is_stdin ? std::cin : file;
  std::string text(kMostTomlBytes + 1, '\0');  // one more than it may have
  stream.read(text.data(), std::ssize(text));
  const bool is_read = stream.gcount() > 0 || (stream.eof() && !stream.bad());
  ATTN_IO_CHECK(
      (is_stdin || file.is_open()) && is_read && !std::filesystem::is_directory(path, unknown),
      "cannot read the {} '{}'", what, path);
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

Profile read_sweep_file(const std::string& path) {
  const bool is_stdin = path == kStdoutPath;
  std::error_code unknown;
  ATTN_CHECK(is_stdin || path.ends_with(".toml") || std::filesystem::exists(path, unknown),
             "'{}' is no sweep file (FILE.toml, or - for standard input); a variant is named by "
             "-v, a task by -t, a profile by --profile",
             path);
  const std::string text = text_of_toml("sweep file", path);
  Profile profile = read_profile(is_stdin ? "standard input" : path, text);
  profile.text = as_utf8(text);
  return profile;
}

// Names of shapes, and of files all of whose shapes are meant.
std::vector<ModelShape> asked_shapes(const std::string& list) {
  std::vector<ModelShape> shapes;
  std::set<std::string> seen;
  for (const std::string& word : expand_values("--shape", list)) {
    if (!seen.insert(word).second) continue;
    if (!word.ends_with(".toml")) {
      shapes.push_back(find_shape(word));
      continue;
    }
    for (ModelShape& shape : read_shapes(word, text_of_toml("file of shapes", word)))
      shapes.push_back(shape);
  }
  return shapes;
}

int64_t asked_tokens(const std::string& text) {
  static const ParamSpec kTokens("tokens", 1, "");
  const std::vector<std::string> values = expand_values("--tokens", text);
  ATTN_CHECK(values.size() == 1, "--tokens {} is not one number; give one", text);
  return std::get<int64_t>(kTokens.parse("--tokens", values[0]));
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

// A shard that goes on somewhere else begins another file, rather than being refused.
std::string on_this_machine(std::string output) {
  if (const size_t place = output.find(kMachine); place != std::string::npos)
    output.replace(place, kMachine.size(), machine_id());
  return output;
}

}  // namespace

std::string default_output(const std::string& profile) {
  std::string time;
  for (const char c : utc_now())
    if (c != '-' && c != ':') time += c;
  return fmt::format("results/{}-{}.jsonl", time, profile.empty() ? "sweep" : profile);
}

SweepRequest request_from(const Arguments& arguments) {
  load_plugins(load_python_variants(arguments.all("plugin")));  // a config file's too
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
  if (arguments.has("shape")) request.shapes = asked_shapes(arguments.get("shape"));
  if (arguments.has("tokens")) request.tokens = asked_tokens(arguments.get("tokens"));
  request.block = arguments.get("block");
  request.training = train_settings(arguments.get("train"));
  request.tune = arguments.get("tune");
  if (arguments.has("tune-by")) request.tune_by = arguments.one_of("tune-by", {"grid", "halving"});
  request.test_with = arguments.get("test-with");
  request.test_on = arguments.get("test-on");
  for (const std::string& word : arguments.as_given()) request.argv.push_back(as_utf8(word));
  request.pilots = UserCache::default_file("pilots.json");
  request.noise = UserCache::default_file(kNoiseFile);
  request.passed_checks = UserCache::default_file("checks.json");
  request.output = on_this_machine(arguments.get(
      "output",
      default_output(request.sweep_file ? name_of_file(arguments.words()[0]) : request.profile)));
  request.force = arguments.has("force");
  request.resume = arguments.one_of("resume", {"true", "false"}) == "true";
  request.fail_fast = arguments.has("fail-fast");
  request.held = arguments.all("held");
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
  } else if (arguments.has("max-time")) {
    request.max_time_s = parse_seconds(arguments.get("max-time"));
  }
  request.breakdown = arguments.has("breakdown");
  request.pin = arguments.get("pin", request.pin);
  if (arguments.has("max-memory"))
    request.max_memory_bytes = parse_bytes(arguments.get("max-memory"));
  if (arguments.has("shard"))
    parse_shard(arguments.get("shard"), request, arguments.has("dry-run"));
  return request;
}

}  // namespace attn::cli
