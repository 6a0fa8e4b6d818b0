// attnbench run: a sweep from axes, profile or config file to rows on disk and tables on stdout.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/check.h"
#include "harness/cli/progress.h"
#include "harness/cli/table.h"
#include "harness/cli/verbs.h"
#include "harness/sweep/pilots.h"

namespace attn::cli {
namespace {

// Options that are axes: the option's name, and the axis's.
constexpr std::pair<const char*, const char*> kAxes[] = {{"measure", "measure"},
                                                         {"length", "length"},
                                                         {"batch", "batch"},
                                                         {"heads", "heads"},
                                                         {"head-dim", "head_dim"},
                                                         {"mode", "mode"},
                                                         {"scope", "scope"},
                                                         {"causal", "causal"},
                                                         {"threads", "threads"},
                                                         {"seed", "seed"},
                                                         {"input", "input"},
                                                         {"input-scale", "input_scale"},
                                                         {"repetitions", "repetitions"}};

void parse_shard(const std::string& text, SweepRequest& request) {
  char slash = 0, rest = 0;
  const int found =
      std::sscanf(text.c_str(), "%d%c%d%c", &request.shard, &slash, &request.shards, &rest);
  ATTN_CHECK(found == 3 && slash == '/' && request.shards >= 1 && request.shard >= 0 &&
                 request.shard < request.shards,
             "--shard {} is not valid; expected i/n with 0 <= i < n", text);
}

std::string default_output(const std::string& profile) {
  std::string time;
  for (const char c : utc_now())
    if (c != '-' && c != ':') time += c;
  return fmt::format("results/{}-{}.jsonl", time, profile.empty() ? "sweep" : profile);
}

SweepRequest request_from(const Arguments& arguments) {
  SweepRequest request;
  request.profile = arguments.get("profile");
  request.variants = arguments.all("variant");
  request.tasks = arguments.all("task");
  for (const auto& [option, axis] : kAxes)
    if (arguments.has(option)) request.axes[axis] = arguments.get(option);
  request.training = arguments.get("train");
  request.tune = arguments.get("tune");
  request.pilots = Pilots::default_file();
  request.output = arguments.get("output", default_output(request.profile));
  request.force = arguments.has("force");
  request.resume = arguments.one_of("resume", {"true", "false"}) == "true";
  request.fail_fast = arguments.has("fail-fast");
  request.jobs = static_cast<int>(arguments.integer("jobs", 0, 1, 4096));
  if (arguments.has("timeout")) request.timeout_s = parse_seconds(arguments.get("timeout"));
  if (arguments.has("max-memory"))
    request.max_memory_bytes = parse_bytes(arguments.get("max-memory"));
  if (arguments.has("shard")) parse_shard(arguments.get("shard"), request);
  return request;
}

// By formula, and by the pilots that are kept; those that are lacking are run when asked for.
int dry_run(const SweepRequest& request, Plan& plan, bool with_pilots, bool quiet) {
  const int signal = !with_pilots ? 0 : run_pilots(request, plan, [&](const std::string& line) {
    if (!quiet) warn(line + "\n");
  });
  if (signal) {
    warn("interrupted; the pilots that were measured are kept\n");
    return 128 + signal;
  }
  size_t runnable = 0;
  for (const Cell& cell : plan.cells) {
    const std::string what = cell_text(cell.key);
    if (!cell.skip.empty()) {
      print(fmt::format("{} {} skipped: {}\n", cell.id, what, cell.skip));
      continue;
    }
    print(fmt::format("{} {} about {}, {}\n", cell.id, what, human_seconds(cell.forecast_s),
                      human_bytes(static_cast<double>(cell.forecast_bytes))));
    runnable++;
  }
  warn(fmt::format("{} cell{}, {} skipped; about {} in all; {} was run\n", plan.cells.size(),
                   plan.cells.size() == 1 ? "" : "s", plan.cells.size() - runnable,
                   human_seconds(forecast_total(request, plan)),
                   with_pilots ? "nothing but pilots" : "nothing"));
  return kOk;
}

std::string rendered(const std::string& format, const std::vector<Json>& rows, bool color) {
  if (format == "json") return Json(rows).dump(2) + "\n";
  if (format == "csv") return render_csv(rows);
  std::string text;
  for (const Table& table : tables_of(rows))
    text += format == "md" ? render_markdown(table) : render_text(table, color);
  return text;
}

std::string shell_word(const std::string& word) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_-+=:,./%@", c);
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
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
  return text + " --output=" + shell_word(output);
}

int run_run(const Arguments& given) {
  Arguments arguments = given;
  if (arguments.has("config")) arguments.merge_config(arguments.get("config"), run_verb());
  SweepRequest request = request_from(arguments);
  request.argv = given.as_given();
  const std::string format = arguments.one_of("format", {"table", "json", "csv", "md"});
  const std::string color = arguments.one_of("color", {"auto", "always", "never"});
  const std::string progress = arguments.one_of("progress", {"auto", "none"});
  const bool quiet = arguments.has("quiet");

  Plan sweep = plan(request);
  if (sweep.cells.empty()) {
    warn("attnbench: nothing matched: no cell has these variants, tasks and axes\n");
    return kNothingMatched;
  }
  ATTN_CHECK(arguments.has("dry-run") || !arguments.has("pilots"),
             "--pilots goes with --dry-run; a sweep needs no forecast");
  if (arguments.has("dry-run")) return dry_run(request, sweep, arguments.has("pilots"), quiet);
  const bool to_stdout = request.output == kStdoutPath;
  if (!to_stdout) {
    require_writable(request.output);
    ATTN_CHECK(request.resume || request.force || !std::filesystem::exists(request.output),
               "'{}' exists; --resume continues it, --force starts over", request.output);
  }

  SweepResult result;
  {
    const auto kind = quiet || progress == "none" ? ProgressLine::Kind::none
                      : is_terminal(Stream::err)  ? ProgressLine::Kind::rewritten
                                                  : ProgressLine::Kind::lines;
    ProgressLine line(kind, wants_color(color, Stream::err));
    result = run_sweep(request, sweep, [&](const Progress& now) { line.show(now); });
  }
  if (to_stdout) {  // the rows are the data; tables are for the person beside them
    if (!quiet) warn(rendered(format, result.rows, wants_color(color, Stream::err)));
    if (result.signal) warn("interrupted; rows on standard output cannot be resumed\n");
    return exit_code(result);
  }
  print(rendered(format, result.rows, wants_color(color, Stream::out)));
  if (!quiet) warn(fmt::format("rows: {}\n", request.output));
  if (result.signal)
    warn(fmt::format("interrupted; every finished cell is in the rows. To go on: {}\n",
                     resume_hint(arguments, request.output)));
  return exit_code(result);
}

}  // namespace

Verb run_verb() {
  return {.name = "run",
          .usage = "[OPTION...]",
          .summary = "runs a sweep and writes rows",
          .options =
              {{"variant", 'v', "SPEC", "repeatable; name or name[param=value,param=[value,value]]",
                true},
               {"task", 't', "SPEC", "repeatable; for example listops[length=128:512:*2]", true},
               {"measure", 0, "LIST", "speed,memory,accuracy,fidelity"},
               {"length", 0, "LIST", "values and ranges: 256,512 or 256:4096:*2 or 100:500:+100"},
               {"batch", 0, "LIST", "sequences at a time"},
               {"heads", 0, "LIST", "attention heads"},
               {"head-dim", 0, "LIST", "width of a head"},
               {"mode", 0, "LIST",
                "forward,train,decode (train: forward and backward; decode: one token, causal)"},
               {"scope", 0, "LIST", "attention,layer,model"},
               {"causal", 0, "LIST", "false,true"},
               {"threads", 0, "LIST", "threads of a cell"},
               {"seed", 0, "LIST", "seeds"},
               {"input", 0, "LIST", "fidelity: random,needle"},
               {"input-scale", 0, "LIST", "fidelity: standard deviation of queries and keys"},
               {"repetitions", 0, "N", "speed: samples a cell"},
               {"train", 0, "LIST",
                "accuracy: training settings, steps=500,width=64 (recorded in the rows)"},
               {"tune", 0, "LIST",
                "accuracy: choose among settings on validation, 'learning_rate=[1e-3,3e-3]'"},
               {"profile", 0, "NAME",
                "a named sweep (attnbench list profiles); flags override its axes"},
               {"config", 'c', "FILE", "the same options as 'name = value' lines; flags win"},
               {"output", 'o', "FILE",
                "default results/<UTC time>-<profile>.jsonl; -: standard output"},
               {"dry-run", 'n', "", "print the cells with forecast time and memory; run nothing"},
               {"pilots", 0, "",
                "with --dry-run: run a few steps of each training, to forecast better"},
               {"resume", 0, "=BOOL", "go on with an existing file; default true"},
               {"force", 'f', "", "start over, dropping an existing file"},
               {"jobs", 'j', "N", "accuracy cells at a time; default: one a core"},
               {"timeout", 0, "TIME",
                "of a cell; 90s, 10m (default, unless the profile allows more), 1h"},
               {"max-memory", 0, "SIZE", "of a cell; 512M, 8G; default: what is free"},
               {"shard", 0, "i/n", "only the cells of this part, 0 <= i < n"},
               {"fail-fast", 0, "", "stop at the first cell that fails"},
               {"format", 0, "KIND", "table (default), json, csv or md"},
               {"color", 0, "WHEN", "auto (default), always or never"},
               {"progress", 0, "WHEN", "auto (default) or none"},
               {"quiet", 'q', "", "no progress and no closing lines"}},
          .run = run_run};
}

}  // namespace attn::cli
