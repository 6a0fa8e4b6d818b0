// Windows of bytes of plain text; see plain_text.h. O(bytes · log bytes) to make, and the hashes of
// runs are polynomials (Karp and Rabin 1987).
#include "tasks/data/plain_text.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/data/bytes.h"
#include "tasks/data/files.h"

namespace attn::data {
namespace {

constexpr int64_t kMostText = int64_t{1} << 30;
constexpr int64_t kParts = 100, kDocuments = 10;
// A run of kSharedRun bytes holds a run of kRun that begins at a multiple of kStep.
constexpr int64_t kStep = 16, kRun = kSharedRun - kStep + 1;
constexpr uint64_t kBase = 0x9e3779b97f4a7c15ULL;  // odd, so that no byte's weight vanishes

struct Stretch {  // of the text
  int64_t begin = 0, end = 0;
};

Split split_of_document(int64_t number) {
  const int64_t place = number % kDocuments;
  return place == 8 ? Split::validation : place == 9 ? Split::test : Split::train;
}

// Calls body(place, hash of the kRun bytes from there), for every place of `text`.
template <class Body>
void each_run(std::string_view text, const Body& body) {
  uint64_t hash = 0, first = 1;  // `first`: the weight of the byte that leaves
  for (int64_t i = 0; i < kRun; i++) first *= kBase;
  for (int64_t i = 0; i < std::ssize(text); i++) {
    const auto word = [&](int64_t at) {
      return static_cast<uint64_t>(static_cast<unsigned char>(text[static_cast<size_t>(at)])) + 1;
    };
    hash = hash * kBase + word(i);
    if (i >= kRun) hash -= first * word(i - kRun);
    if (i >= kRun - 1) body(i - kRun + 1, (hash ^ (hash >> 29)) * kBase);
  }
}

class PlainText final : public Source {
 public:
  PlainText(const std::string& path, int64_t length) : length_(length) {
    read_documents(path);
    std::vector<uint64_t> seen;  // sorted
    for (const Split split : {Split::train, Split::validation, Split::test}) {
      std::vector<uint64_t> own;
      for (size_t number = 0; number < documents_.size(); number++) {
        if (split_of_document(static_cast<int64_t>(number)) != split) continue;
        add_examples(documents_[number], split, seen);
        each_run(text_of_stretch(documents_[number]), [&](int64_t place, uint64_t hash) {
          if (place % kStep == 0) own.push_back(hash);
        });
      }
      shuffle(examples_[static_cast<size_t>(split)]);
      seen.insert(seen.end(), own.begin(), own.end());
      std::sort(seen.begin(), seen.end());
      seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
      ATTN_CHECK(count(split) > 0,
                 "data={}: the {} split is empty, of {} bytes in {} documents{}; documents need "
                 "more than {} bytes",
                 path, to_string(split), text_.size(), documents_.size(),
                 duplicates_ ? fmt::format(" ({} examples that share {} bytes with another split "
                                           "are left out)",
                                           duplicates_, kSharedRun)
                             : "",
                 kSharedRun);
    }
  }

  int64_t count(Split split) const override {
    return std::ssize(examples_[static_cast<size_t>(split)]);
  }
  Example example(Split split, int64_t index) const override {
    const Stretch part = examples_[static_cast<size_t>(split)].at(static_cast<size_t>(index));
    Example e = next_bytes(text_of_stretch(part));
    e.target.resize(static_cast<size_t>(length_), kIgnoredLabel);
    e.distances.resize(e.target.size(), -1);
    e.label_slices.at("repeats").resize(e.target.size(), -1);
    return e;
  }
  std::string fingerprint() const override { return contents_.hexadecimal(); }
  int64_t duplicates() const override { return duplicates_; }

 private:
  // So that the first ones are a fair part of all: a book's chapters differ.
  static void shuffle(std::vector<Stretch>& all) {
    Rng random = rng(0, "plain text");
    for (int64_t i = std::ssize(all) - 1; i > 0; i--)
      std::swap(all[static_cast<size_t>(i)], all[static_cast<size_t>(random.between(0, i))]);
  }

  std::string_view text_of_stretch(Stretch part) const {
    return std::string_view(text_).substr(static_cast<size_t>(part.begin),
                                          static_cast<size_t>(part.end - part.begin));
  }

  void read_documents(const std::string& path) {
    std::error_code unreadable;
    if (!std::filesystem::is_directory(path, unreadable)) {
      append(path);
      const int64_t size = std::ssize(text_) / kParts;
      for (int64_t i = 0; i < kParts; i++)
        documents_.push_back({i * size, i + 1 < kParts ? (i + 1) * size : std::ssize(text_)});
      return;
    }
    for (const std::string& name : names_in(path)) {
      const std::string file = path + "/" + name;
      if (name.starts_with('.') || std::filesystem::is_directory(file, unreadable)) continue;
      const int64_t begin = std::ssize(text_);
      contents_.add(name);
      append(file);
      documents_.push_back({begin, std::ssize(text_)});
    }
    ATTN_CHECK(std::ssize(documents_) >= kDocuments,
               "data={}: {} files; of a folder every file is a document, and the three splits need "
               "at least {}. One file is cut into documents",
               path, documents_.size(), kDocuments);
  }

  void append(const std::string& path) {
    const File file(path);
    ATTN_CHECK(file.size() + std::ssize(text_) <= kMostText,
               "{}: with it the text has {} bytes, more than the {} that are read", path,
               file.size() + std::ssize(text_), kMostText);
    text_ += file.read(0, file.size());
    contents_.add(std::string_view(text_).substr(text_.size() - static_cast<size_t>(file.size())));
  }

  void add_examples(Stretch document, Split split, const std::vector<uint64_t>& seen) {
    for (int64_t begin = document.begin; begin + kSharedRun < document.end; begin += length_) {
      const Stretch part = {begin, std::min(begin + length_ + 1, document.end)};
      bool shared = false;
      if (!seen.empty())
        each_run(text_of_stretch(part), [&](int64_t, uint64_t hash) {
          shared = shared || std::binary_search(seen.begin(), seen.end(), hash);
        });
      if (shared)
        duplicates_++;
      else
        examples_[static_cast<size_t>(split)].push_back(part);
    }
  }

  int64_t length_;
  std::string text_;
  std::vector<Stretch> documents_;
  std::array<std::vector<Stretch>, 3> examples_;
  int64_t duplicates_ = 0;
  Digest contents_;
};

// Of each byte but the first, whether it and the kRepeatedBytes bytes before it stand earlier too.
std::vector<int32_t> repeats_of(std::string_view text) {
  constexpr uint64_t kBits = 8 * (kRepeatedBytes + 1);
  static_assert(kBits < 64);
  std::vector<int32_t> repeats;
  std::unordered_set<uint64_t> seen;
  seen.reserve(text.size());
  uint64_t run = 0;  // the last bytes, that of the label included
  for (size_t i = 0; i < text.size(); i++) {
    run = (run << 8 | static_cast<unsigned char>(text[i])) & ((uint64_t{1} << kBits) - 1);
    const bool is_whole = i >= kRepeatedBytes;
    const bool is_new = !is_whole || seen.insert(run).second;
    if (i > 0) repeats.push_back(is_new ? 0 : 1);
  }
  return repeats;
}

}  // namespace

Example next_bytes(std::string_view text) {
  Example e;
  e.tokens = byte_tokens(text.substr(0, text.size() - 1));
  for (const char c : text.substr(1)) e.target.push_back(static_cast<unsigned char>(c));
  e.distances = first_positions(e.target.size());
  e.label_slices = {{"repeats", repeats_of(text)}};
  return e;
}

std::unique_ptr<Source> plain_text(const std::string& path, int64_t length) {
  return std::make_unique<PlainText>(path, length);
}

}  // namespace attn::data
