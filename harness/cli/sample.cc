// attnbench sample TASK: generated examples for use elsewhere, as JSON Lines or in the format that
// Long Range Arena's own data is released in.
#include "core/base/check.h"
#include "harness/cli/sample_output.h"
#include "harness/cli/specs.h"
#include "harness/cli/verbs.h"

namespace attn::cli {
namespace {

Split parse_split(const std::string& name) {
  for (const Split split : {Split::train, Split::validation, Split::test})
    if (to_string(split) == name) return split;
  throw_error(fmt::format("--split {} is not valid; expected train, validation or test", name));
}

int run_sample(const Arguments& arguments) {
  ATTN_CHECK(!arguments.words().empty(),
             "sample needs the name of a task (attnbench list tasks shows them)");
  const std::string& spec = arguments.words()[0];
  const Chosen chosen = choose_task(spec);
  const bool released = arguments.one_of("format", {"jsonl", "released"}) == "released";
  const Split split = parse_split(arguments.get("split", "train"));
  const int64_t count = arguments.integer("count", 10, 1, 1'000'000'000);
  const uint64_t seed = static_cast<uint64_t>(arguments.integer("seed", 0, 0, INT64_MAX));
  const std::string path = arguments.get("output", "-");
  ATTN_CHECK(!released || !arguments.has("split"),
             "--split does not go with --format released, which writes all three splits");
  ATTN_CHECK(!released || path != "-", "--format released writes a folder; name it with -o");
  ATTN_CHECK(released || !arguments.has("force"), "--force goes with --format released alone");
  const auto task = chosen.task->build(chosen.params);
  if (released)
    sample_released(*chosen.task, *task, seed, count, path, spec, arguments.has("force"));
  else
    sample_lines(*task, seed, split, count, path);
  return kOk;
}

}  // namespace

Verb sample_verb() {
  return {.name = "sample",
          .usage = "TASK [--split SPLIT] [--count N] [--format jsonl|released] [-o PATH]",
          .summary = "writes generated examples for use elsewhere",
          .options = {{"split", 0, "SPLIT", "train (default), validation or test"},
                      {"count", 0, "N", "how many, from index 0 on; default 10"},
                      {"format", 0, "F",
                       "jsonl (default): a line an example; released: the files of Long Range "
                       "Arena's own data, all splits, N of validation and of test each"},
                      {"seed", 0, "N", "default 0"},
                      {"output", 'o', "PATH", "file, or folder; default: standard output"},
                      {"force", 'f', "", "replaces an earlier sample in the folder"},
                      plugin_option()},
          .max_words = 1,
          .run = run_sample};
}

}  // namespace attn::cli
