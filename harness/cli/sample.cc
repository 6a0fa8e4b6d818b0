// attnbench sample TASK: generated examples as JSON Lines, for use elsewhere.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "harness/cli/specs.h"
#include "harness/cli/verbs.h"
#include "harness/store/rows.h"

namespace attn::cli {
namespace {

std::string line_of(const Example& example) {
  Json row = Json::object();
  if (!example.tokens.empty())
    row["tokens"] = example.tokens;
  else
    row["values"] = example.values;
  if (example.target.size() == 1)
    row["target"] = example.target[0];
  else
    row["target"] = example.target;
  row["evidence"] = example.evidence;
  row["slices"] = Json::object();
  for (const auto& [name, value] : example.slices) row["slices"][name] = value;
  return row.dump() + "\n";
}

Split parse_split(const std::string& name) {
  for (const Split split : {Split::train, Split::validation, Split::test})
    if (to_string(split) == name) return split;
  throw_error(fmt::format("--split {} is not valid; expected train, validation or test", name));
}

int run(const Arguments& arguments) {
  ATTN_CHECK(!arguments.words().empty(),
             "sample needs the name of a task (attnbench list tasks shows them)");
  const Chosen chosen = choose_task(arguments.words()[0]);
  const Split split = parse_split(arguments.get("split", "train"));
  const int64_t count = arguments.integer("count", 10, 1, 1'000'000'000);
  const uint64_t seed = static_cast<uint64_t>(arguments.integer("seed", 0, 0, INT64_MAX));
  const auto task = chosen.task->build(chosen.params);
  const std::string path = arguments.get("output", "-");
  if (path == "-") {
    for (int64_t i = 0; i < count; i++) print(line_of(task->example(seed, split, i)));
    return kOk;
  }
  require_writable(path);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"),
                                                             std::fclose);
  ATTN_CHECK(file, "cannot write '{}': {}", path, std::strerror(errno));
  for (int64_t i = 0; i < count; i++) {
    const std::string line = line_of(task->example(seed, split, i));
    ATTN_CHECK(std::fwrite(line.data(), 1, line.size(), file.get()) == line.size(),
               "cannot write '{}': {}", path, std::strerror(errno));
  }
  ATTN_CHECK(std::fflush(file.get()) == 0, "cannot write '{}': {}", path, std::strerror(errno));
  return kOk;
}

}  // namespace

Verb sample_verb() {
  return {.name = "sample",
          .usage = "TASK [--split SPLIT] [--count N] [-o FILE.jsonl]",
          .summary = "writes generated examples for use elsewhere, a JSON line each",
          .options = {{"split", 0, "SPLIT", "train (default), validation or test"},
                      {"count", 0, "N", "how many, from index 0 on; default 10"},
                      {"seed", 0, "N", "default 0"},
                      {"output", 'o', "FILE", "default: standard output"}},
          .max_words = 1,
          .run = run};
}

}  // namespace attn::cli
