// Reads and writes ListOps in the release of Long Range Arena (listops-1000). A line has a tree in
// left-nested binary form and its value. Tokens as in LRA since its commit c209b2a: parentheses are
// dropped, closing brackets are kept. The index costs one pass over the files.
#include <array>
#include <utility>

#include "tasks/data/indexed.h"
#include "tasks/data/released.h"
#include "tasks/data/sources.h"

namespace attn::data {
namespace {

// The ids of the task: digits 0..9 are 1..10.
constexpr std::array<std::string_view, 16> kTokenWords = {
    "", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "[MIN", "[MAX", "[MED", "[SM", "]"};
constexpr int32_t kFirstOperator = 11, kCloseText = 15;
constexpr const char* kTreesFolder = "listops-1000";
constexpr std::pair<Split, const char*> kTreeFiles[] = {{Split::train, "basic_train.tsv"},
                                                        {Split::validation, "basic_val.tsv"},
                                                        {Split::test, "basic_test.tsv"}};
constexpr std::string_view kHeader = "Source\tTarget";

int32_t token_of(std::string_view word) {
  for (size_t id = 1; id < kTokenWords.size(); id++)
    if (kTokenWords[id] == word) return static_cast<int32_t>(id);
  return 0;
}

// Follows the nesting of a tree: exactly one root, and an argument in every operator. LRA's trees
// have 9 levels of operators; what evaluates them recurses, so a limit keeps it off the stack's
// end.
class Nesting {
 public:
  // False when `token` cannot stand here.
  bool take(int32_t token) {
    if (started_ && depth_ == 0) return false;
    started_ = true;
    if (token == kCloseText && (depth_ == 0 || last_ >= kFirstOperator) && last_ != kCloseText)
      return false;
    if (token >= kFirstOperator) depth_ += token == kCloseText ? -1 : 1;
    last_ = token;
    return depth_ <= kDeepest;
  }
  bool complete() const { return started_ && depth_ == 0; }

 private:
  static constexpr int64_t kDeepest = 1000;
  int64_t depth_ = 0;
  bool started_ = false;
  int32_t last_ = 0;
};

struct Tree {
  Example example;    // tokens, cut to the wanted length, and the target
  bool whole = true;  // nothing was cut
};

std::vector<int32_t> read_tokens(std::string_view source, const std::string& where) {
  std::vector<int32_t> tokens;
  Nesting nesting;
  for (size_t at = 0; at < source.size();) {
    const size_t end = std::min(source.find(' ', at), source.size());
    const std::string_view word = source.substr(at, end - at);
    at = end + 1;
    if (word.empty() || word == "(" || word == ")") continue;
    const int32_t token = token_of(word);
    ATTN_CHECK(token > 0, "{}: unknown token '{}'; expected digits, [MIN [MAX [MED [SM ] ( )",
               where, word.substr(0, 40));
    ATTN_CHECK(nesting.take(token), "{}: '{}' (token {}) does not fit the tree before it", where,
               word, tokens.size() + 1);
    tokens.push_back(token);
  }
  ATTN_CHECK(nesting.complete(), "{}: the tree is not complete", where);
  return tokens;
}

Tree read_line(std::string_view line, int64_t length, const std::string& where) {
  const size_t tab = line.find('\t');
  ATTN_CHECK(tab != std::string_view::npos && line.find('\t', tab + 1) == std::string_view::npos,
             "{}: expected two columns, Source and Target, with a tab between them", where);
  const std::string_view target = line.substr(tab + 1);
  ATTN_CHECK(target.size() == 1 && target[0] >= '0' && target[0] <= '9',
             "{}: label '{}'; expected 0 to 9", where, target.substr(0, 40));
  Tree tree;
  tree.example.tokens = read_tokens(line.substr(0, tab), where);
  tree.example.target = {target[0] - '0'};
  tree.whole = std::ssize(tree.example.tokens) <= length;
  if (!tree.whole) tree.example.tokens.resize(static_cast<size_t>(length));
  return tree;
}

struct Line {
  int64_t offset, number;
  int32_t file, size;
};

class ListopsTsv final : public Indexed<Line> {
 public:
  ListopsTsv(const std::string& folder, int64_t length, std::function<void(Example&)> solve)
      : length_(length), solve_(std::move(solve)) {
    const std::string root =
        find_root(folder, kTreesFolder, kTreeFiles[0].second, "ListOps TSV files");
    for (const auto& [split, name] : kTreeFiles) {
      files_.emplace_back(root + "/" + name);
      index(split);
    }
    finish(root);
  }

 private:
  void index(Split split) {
    const File& file = files_.back();
    contents_.add(file.path().substr(file.path().rfind('/')));
    for_each_line(file, [&](int64_t number, int64_t offset, std::string_view text) {
      contents_.add(text);
      if (number == 1) {
        ATTN_CHECK(text == kHeader, "{} line 1: '{}'; expected the header Source, tab, Target",
                   file.path(), text.substr(0, 40));
        return;
      }
      const Line line = {offset, number, static_cast<int32_t>(files_.size()) - 1,
                         static_cast<int32_t>(text.size())};
      add(split, line, input_checksum(read_line(text, length_, where(line)).example));
    });
  }

  Example read(const Line& line) const override {
    const std::string text = files_[static_cast<size_t>(line.file)].read(line.offset, line.size);
    Tree tree = read_line(text, length_, where(line));
    if (!tree.whole) return tree.example;  // what was cut away cannot be evaluated
    try {
      solve_(tree.example);
    } catch (const Error& error) {
      throw_error(fmt::format("{}: {}", where(line), error.what()));
    }
    return tree.example;
  }

  std::string where(const Line& line) const {
    return fmt::format("{} line {}", files_[static_cast<size_t>(line.file)].path(), line.number);
  }

  int64_t length_;
  std::function<void(Example&)> solve_;
  std::vector<File> files_;
};

// `( ( ( [MAX 4 ) 3 ) ] )`: an operator is paired with its first argument, the pair with the next,
// and the last pair with the closing bracket.
std::string binary_form(const std::vector<int32_t>& tokens) {
  std::vector<std::string> open;  // what of each operator is read
  std::string done;
  for (const int32_t token : tokens) {
    const std::string word(kTokenWords.at(static_cast<size_t>(token)));
    if (token >= kFirstOperator && token < kCloseText) {
      open.push_back(word);
      continue;
    }
    done = word;
    if (token == kCloseText) {
      done = fmt::format("( {} ] )", open.back());
      open.pop_back();
    }
    if (!open.empty()) open.back() = fmt::format("( {} {} )", open.back(), done);
  }
  ATTN_CHECK(open.empty(), "a tree that was cut to the task's length cannot be written");
  return done;
}

void write_listops(const Task& task, uint64_t seed, int64_t count, const std::string& root) {
  for (const auto& [split, name] : kTreeFiles) {
    Output file(fmt::format("{}/{}", root, name));
    file.append(fmt::format("{}\n", kHeader));
    for (int64_t i = 0; i < count; i++) {
      const Example e = task.example(seed, split, i);
      file.append(fmt::format("{}\t{}\n", binary_form(e.tokens), e.target.at(0)));
    }
    file.close();
  }
}

}  // namespace

std::unique_ptr<Source> listops_tsv(const std::string& folder, int64_t length,
                                    std::function<void(Example&)> solve) {
  return std::make_unique<ListopsTsv>(folder, length, std::move(solve));
}

const ReleasedFormat& listops_tsv_format() {
  static const ReleasedFormat format = {
      .name = "ListOps TSV files",
      .folder = [](const Task&) { return std::string(kTreesFolder); },
      .write = write_listops};
  return format;
}

}  // namespace attn::data
