// Reads and writes pairs of papers of the ACL Anthology Network in the release of Long Range Arena
// (tsv_data; arXiv:2011.04006, 2.2.3). A line has a label, two ids and two texts; there are no
// quotes and no header. The index costs one pass over the files; an example reads its two texts.
#include <array>
#include <utility>

#include "tasks/data/bytes.h"
#include "tasks/data/indexed.h"
#include "tasks/data/released.h"
#include "tasks/data/sources.h"

namespace attn::data {
namespace {

constexpr std::pair<Split, const char*> kFiles[] = {{Split::train, "new_aan_pairs.train.tsv"},
                                                    {Split::validation, "new_aan_pairs.eval.tsv"},
                                                    {Split::test, "new_aan_pairs.test.tsv"}};
constexpr int64_t kMostCharacters = 10'000;  // of a text; LRA encodes no more

struct Pair {
  int64_t first, second;  // offsets of the texts
  int32_t first_size, second_size, file, label;
};

int32_t label_of(std::string_view text) {
  if (text == "1" || text == "1.0") return 1;
  return text == "0" || text == "0.0" ? 0 : -1;
}

// The bytes of the first kMostCharacters characters of UTF-8, `length` at most.
std::string_view shortened(std::string_view text, int64_t length) {
  int64_t characters = 0;
  size_t end = 0;
  for (; end < text.size() && std::cmp_less(end, length); end++) {
    const bool continues = (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80;
    if (!continues && ++characters > kMostCharacters) break;
  }
  return text.substr(0, end);
}

class AanTsv final : public Indexed<Pair> {
 public:
  AanTsv(const std::string& folder, int64_t length) : length_(length) {
    const std::string root = find_root(folder, "tsv_data", kFiles[0].second, "AAN pair files");
    for (const auto& [split, name] : kFiles) {
      files_.emplace_back(root + "/" + name);
      contents_.add(name);
      for_each_line(files_.back(),
                    [&, split = split](int64_t number, int64_t offset, std::string_view text) {
                      contents_.add(text);
                      index(split, number, offset, text);
                    });
    }
    finish(root);
  }

 private:
  void index(Split split, int64_t number, int64_t offset, std::string_view line) {
    const std::string& path = files_.back().path();
    std::array<std::string_view, 5> columns;
    size_t count = 0;
    for (size_t begin = 0; begin <= line.size(); count++) {
      const size_t end = std::min(line.find('\t', begin), line.size());
      if (count < columns.size()) columns[count] = line.substr(begin, end - begin);
      begin = end + 1;
    }
    ATTN_CHECK(count == columns.size(),
               "{} line {}: {} columns; expected 5: label, two ids, two texts, with tabs between",
               path, number, count);
    const int32_t label = label_of(columns[0]);
    ATTN_CHECK(label >= 0, "{} line {}: label '{}'; expected 0 or 1 (or 0.0, 1.0)", path, number,
               columns[0].substr(0, 40));
    const std::string_view first = shortened(columns[3], length_);
    const std::string_view second = shortened(columns[4], length_);
    ATTN_CHECK(!first.empty() && !second.empty(), "{} line {}: an empty text", path, number);
    // The label holds either way round, so a pair and its mirror image are the same input.
    const Example e = {.tokens = byte_tokens(std::min(first, second)),
                       .second = byte_tokens(std::max(first, second))};
    add(split,
        {offset + (first.data() - line.data()), offset + (second.data() - line.data()),
         static_cast<int32_t>(first.size()), static_cast<int32_t>(second.size()),
         static_cast<int32_t>(files_.size()) - 1, label},
        input_checksum(e));
  }

  Example read(const Pair& pair) const override {
    const File& file = files_[static_cast<size_t>(pair.file)];
    return {.tokens = byte_tokens(file.read(pair.first, pair.first_size)),
            .second = byte_tokens(file.read(pair.second, pair.second_size)),
            .target = {pair.label}};
  }

  int64_t length_;
  std::vector<File> files_;
};

std::string column(const std::vector<int32_t>& tokens) {
  const std::string text = text_of(tokens);
  ATTN_CHECK(text.find_first_of("\t\n") == std::string::npos && !text.ends_with('\r'),
             "AAN pair files cannot hold a text with tabs or ends of lines");
  return text;
}

std::string aan_folder(const Task& task) {
  ATTN_CHECK(task.shape().length <= kMostCharacters,
             "AAN pair files: of a text the first {} characters are read; length={} is more",
             kMostCharacters, task.shape().length);
  return "tsv_data";
}

void write_aan(const Task& task, uint64_t seed, int64_t count, const std::string& root) {
  int64_t id = 0;
  for (const auto& [split, name] : kFiles) {
    Output file(fmt::format("{}/{}", root, name));
    for (int64_t i = 0; i < count; i++, id += 2) {
      const Example e = task.example(seed, split, i);
      file.append(fmt::format("{}.0\tD{}\tD{}\t{}\t{}\n", e.target.at(0), id, id + 1,
                              column(e.tokens), column(e.second)));
    }
    file.close();
  }
}

}  // namespace

std::unique_ptr<Source> aan_tsv(const std::string& folder, int64_t length) {
  return std::make_unique<AanTsv>(folder, length);
}

const ReleasedFormat& aan_tsv_format() {
  static const ReleasedFormat format = {
      .name = "AAN pair files", .folder = aan_folder, .write = write_aan};
  return format;
}

}  // namespace attn::data
