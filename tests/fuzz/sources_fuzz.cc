// Readers of data sets, each with a folder that a text stands for. Each example of a folder that is
// taken is read again, and is of the shape that the task needs.
#include "core/base/io_error.h"
#include "tasks/api/task.h"
#include "tasks/data/plain_text.h"
#include "tasks/data/sources.h"
#include "tests/fuzz/folder_of.h"
#include "tests/fuzz/oracle.h"
#include "tests/fuzz/targets.h"

namespace attn::tasks {
TaskInfo listops();  // of the catalog, which would bring every task
}

namespace attn::fuzz {
namespace {

// Calls check(example) for each example of each split that can be read.
template <class Check>
void check_examples(const Source& source, const Check& check) {
  require(source.fingerprint().size() == 16, "a fingerprint of another size");
  require(source.duplicates() >= 0, "negative duplicates");
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    const int64_t count = source.count(split);
    require(count >= 1, "an empty split");
    for (int64_t i = 0; i < count; i++) {
      Example example;
      if (accepts([&] { example = source.example(split, i); })) check(example);
    }
  }
}

void require_tokens(const std::vector<int32_t>& tokens, int64_t length, int32_t vocab) {
  require(!tokens.empty() && std::ssize(tokens) <= length, "a length out of range");
  for (const int32_t token : tokens) require(token >= 1 && token < vocab, "a token out of range");
}

void require_label(const Example& example, int32_t classes) {
  require(example.target.size() == 1 && example.target[0] >= 0 && example.target[0] < classes,
          "a label out of range");
}

// An example of a picture's grey levels, as the tasks make one.
Example picture_of(std::span<const uint8_t> grey, int32_t label) {
  Example e{.target = {label}};
  for (const uint8_t level : grey) e.tokens.push_back(level + 1);
  return e;
}

}  // namespace

// The pairs of the ACL Anthology Network: two texts of bytes and a label.
void aan(std::string_view bytes) {
  const FolderOf folder(bytes);
  std::unique_ptr<Source> source;
  if (!accepts([&] { source = data::aan_tsv(folder.path(), 32); })) return;
  check_examples(*source, [](const Example& e) {
    require_tokens(e.tokens, 32, 257);
    require_tokens(e.second, 32, 257);
    require_label(e, 2);
  });
}

// CIFAR-10's binary batches: records of a label and a picture.
void cifar10(std::string_view bytes) {
  const FolderOf folder(bytes);
  std::unique_ptr<Source> source;
  if (!accepts([&] { source = data::cifar10(folder.path(), picture_of); })) return;
  check_examples(*source, [](const Example& e) {
    require(e.tokens.size() == 1024, "a picture of another size");
    require_tokens(e.tokens, 1024, 257);
    require_label(e, 10);
  });
}

// Folders of IMDb reviews: names with a number and a rating, and texts of bytes. Every file is
// there and can be read, so the system has nothing to refuse but a folder in place of a file.
void imdb(std::string_view bytes) {
  const FolderOf folder(bytes);
  std::unique_ptr<Source> source;
  const bool taken = accepts([&] {
    try {
      source = data::imdb(folder.path(), 32);
    } catch (const IoError& error) {
      require(std::string_view(error.what()).find(".txt': No such file") == std::string::npos,
              "reads a file that is not listed: " + std::string(error.what()));
      throw;
    }
  });
  if (!taken) return;
  check_examples(*source, [](const Example& e) {
    require_tokens(e.tokens, 32, 257);
    require_label(e, 2);
  });
}

// LRA's ListOps files: a tree is read with its label and solved, or cut to the length.
void listops(std::string_view bytes) {
  static const TaskInfo info = tasks::listops();
  const FolderOf folder(bytes);
  const std::map<std::string, ParamValue> given = {{"data", folder.path()},
                                                   {"length", int64_t{24}}};
  std::unique_ptr<Task> task;
  if (!accepts([&] { task = info.build(given); })) return;
  check_examples(*task->source(), [](const Example& e) {
    require_tokens(e.tokens, 24, 16);
    require_label(e, 10);
    for (const int32_t position : e.evidence)
      require(position >= 0 && position < std::ssize(e.tokens), "evidence out of range");
  });
}

// Pathfinder's pictures and the metadata that name them.
void pathfinder(std::string_view bytes) {
  const FolderOf folder(bytes);
  std::unique_ptr<Source> source;
  if (!accepts([&] { source = data::pathfinder_png(folder.path(), 32, 6, picture_of); })) return;
  check_examples(*source, [](const Example& e) {
    require(e.tokens.size() == 1024, "a picture of another size");
    require_label(e, 2);
  });
}

// Documents of bytes in windows, whose labels are the bytes behind them.
void plain_text(std::string_view bytes) {
  constexpr int64_t kLength = 80;
  const FolderOf folder(bytes);
  std::unique_ptr<Source> source;
  if (!accepts([&] { source = data::plain_text(folder.path(), kLength); })) return;
  check_examples(*source, [](const Example& e) {
    require_tokens(e.tokens, kLength, 257);
    require(e.tokens.size() >= 64, "a window of less than 65 bytes");
    require(e.target.size() == kLength && e.distances.size() == kLength, "labels of another size");
    for (size_t i = 0; i < kLength; i++) {
      require((e.target[i] == kIgnoredLabel) == (i >= e.tokens.size()), "a label without a token");
      require(i + 1 >= e.tokens.size() || e.target[i] == e.tokens[i + 1] - 1, "not the next byte");
    }
  });
}

}  // namespace attn::fuzz
