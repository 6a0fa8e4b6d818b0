// Writing of generated examples, see sample_output.h. One example is held in memory at a time.
#include "harness/cli/sample_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "core/base/io_error.h"
#include "harness/cli/terminal.h"
#include "harness/store/fields.h"
#include "tasks/data/files.h"
#include "tasks/data/released.h"

namespace attn::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNote = "attnbench-sample.txt";

Json labels_json(const std::vector<int32_t>& labels) {
  return labels.size() == 1 ? Json(labels[0]) : Json(labels);
}

// `values` lists the channels of one position after those of another.
std::string line_of(const Example& example, bool outputs) {
  JsonWriter line;
  if (!example.tokens.empty())
    line("tokens", example.tokens);
  else
    line("values", example.values);
  line.maybe("second", Json(example.second));
  line.maybe("edges", Json(example.edges));
  if (!example.wanted.empty())
    line("target", example.wanted[0]);
  else
    line("target", outputs ? Json(example.target) : labels_json(example.target));
  line("evidence", Json(example.evidence));
  line("distances", Json(example.distances));
  line("slices", example.slices);
  line.maybe("label_slices", example.label_slices);
  return line.object.dump() + "\n";
}

// Generated examples have no end; those of files do.
void require_count(const Task& task, Split split, int64_t count) {
  ATTN_CHECK(!task.source() || count <= task.source()->count(split),
             "the {} split has {} examples, fewer than the {} wanted", to_string(split),
             task.source()->count(split), count);
}

// The folder for the data, empty: what an earlier sample left in it is gone.
std::string prepared(const std::string& path, const std::string& inner, bool force) {
  data::make_folder(path);
  const std::string root = path + "/" + inner;
  if (!data::names_in(path).empty()) {
    ATTN_CHECK(force, "'{}' is not empty; --force replaces an earlier sample in it", path);
    ATTN_CHECK(
        fs::exists(path + "/" + kNote),
        "'{}' is not empty and no earlier sample ({} is missing), so --force replaces nothing "
        "there; choose another folder",
        path, kNote);
    std::error_code fault;
    fs::remove_all(root, fault);
    ATTN_IO_CHECK(!fault, "cannot remove '{}': {}", root, fault.message());
  }
  return root;
}

}  // namespace

void sample_lines(const Task& task, uint64_t seed, Split split, int64_t count,
                  const std::string& path) {
  require_count(task, split, count);
  const bool outputs = task.shape().outputs > 0;
  if (path == "-") {
    for (int64_t i = 0; i < count; i++) print(line_of(task.example(seed, split, i), outputs));
    return;
  }
  require_writable(path);
  data::Output file(path);
  for (int64_t i = 0; i < count; i++) file.append(line_of(task.example(seed, split, i), outputs));
  file.close();
}

void sample_released(const TaskInfo& info, const Task& task, uint64_t seed, int64_t count,
                     const std::string& path, const std::string& what, bool force) {
  ATTN_CHECK(info.released, "{} has no released format; write it with --format jsonl", info.name);
  const ReleasedFormat& format = *info.released;
  const int64_t train = count * format.train_share;
  require_count(task, Split::train, train);
  require_count(task, Split::validation, count);
  require_count(task, Split::test, count);
  const std::string root = prepared(path, format.folder(task), force);
  const std::string note =
      fmt::format("{} in {}: {} train, {} validation, {} test examples of {}, seed {}", format.name,
                  root, train, count, count, what, seed);
  data::write_file(path + "/" + kNote, note + "\n");
  data::make_folder(root);
  format.write(task, seed, count, root);
  warn("wrote " + note + "\n");
}

}  // namespace attn::cli
