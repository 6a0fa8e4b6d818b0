// Reads and writes the IMDb reviews (Maas et al. 2011), one text file per document and one folder
// per label, for the byte-level text task of Long Range Arena (arXiv:2011.04006, 2.2.2). The index
// costs one pass over the files; an example reads its file.
#include <tuple>

#include "tasks/data/bytes.h"
#include "tasks/data/indexed.h"
#include "tasks/data/released.h"
#include "tasks/data/sources.h"

namespace attn::data {
namespace {

constexpr const char* kImdbFolder = "aclImdb";
constexpr const char* kImdbLabels[] = {"neg", "pos"};

struct Review {
  int64_t number;
  int32_t label, rating;
  bool test;  // which of the two folders

  std::string name() const { return fmt::format("{}_{}.txt", number, rating); }
  std::string path(const std::string& root) const {
    return fmt::format("{}/{}/{}/{}", root, test ? "test" : "train", kImdbLabels[label], name());
  }
};

class Imdb final : public Indexed<Review> {
 public:
  Imdb(const std::string& folder, int64_t length)
      : root_(find_root(folder, kImdbFolder, "train/neg", "IMDb reviews")), length_(length) {
    for (const bool test : {false, true})
      for (const Review& review : listed(test)) {
        const Split split = test                      ? Split::test
                            : review.number % 10 == 9 ? Split::validation
                                                      : Split::train;
        const Example e = read(review);
        contents_.add(review.path(""));
        contents_.add(input_checksum(e));
        add(split, review, input_checksum(e));
      }
    finish(root_);
  }

 private:
  std::vector<Review> listed(bool test) const {
    std::vector<Review> all;
    for (const int32_t label : {0, 1}) {
      const std::string folder =
          fmt::format("{}/{}/{}", root_, test ? "test" : "train", kImdbLabels[label]);
      for (const std::string& name : names_in(folder)) {
        if (!name.ends_with(".txt")) continue;
        const size_t bar = name.find('_');
        const int64_t number = whole_number(std::string_view(name).substr(0, bar));
        const int64_t rating =
            bar == std::string::npos
                ? -1
                : whole_number(std::string_view(name).substr(bar + 1, name.size() - bar - 5));
        const Review review = {number, label, static_cast<int32_t>(rating), test};
        ATTN_CHECK(number >= 0 && rating >= 0 && rating <= 10 && review.name() == name,
                   "{}/{}: expected a name such as 12_8.txt, of a number and a rating up to 10, "
                   "without leading zeros",
                   folder, name);
        all.push_back(review);
      }
    }
    std::sort(all.begin(), all.end(), [](const Review& a, const Review& b) {
      return std::tie(a.number, a.label, a.rating) < std::tie(b.number, b.label, b.rating);
    });
    return all;
  }

  Example read(const Review& review) const override {
    const File file(review.path(root_));
    ATTN_CHECK(file.size() > 0, "{}: an empty document", file.path());
    return {.tokens = byte_tokens(file.read(0, std::min(file.size(), length_))),
            .target = {review.label}};
  }

  std::string root_;
  int64_t length_;
};

void write_review(const Example& e, int64_t number, bool test, const std::string& root) {
  const int32_t label = e.target.at(0);
  // Ratings as in the release: up to 4 is negative, from 7 on positive.
  write_file(Review{number, label, label ? 8 : 3, test}.path(root), text_of(e.tokens));
}

void write_imdb(const Task& task, uint64_t seed, int64_t count, const std::string& root) {
  for (const char* split : {"train", "test"})
    for (const char* label : kImdbLabels) make_folder(fmt::format("{}/{}/{}", root, split, label));
  for (int64_t i = 0; i < 9 * count; i++)  // 9 of 10 numbers: those that do not end in 9
    write_review(task.example(seed, Split::train, i), i / 9 * 10 + i % 9, false, root);
  for (int64_t i = 0; i < count; i++) {
    write_review(task.example(seed, Split::validation, i), i * 10 + 9, false, root);
    write_review(task.example(seed, Split::test, i), i, true, root);
  }
}

}  // namespace

std::unique_ptr<Source> imdb(const std::string& folder, int64_t length) {
  return std::make_unique<Imdb>(folder, length);
}

const ReleasedFormat& imdb_format() {
  static const ReleasedFormat format = {
      .name = "IMDb review files",
      .train_share = 9,
      .folder = [](const Task&) { return std::string(kImdbFolder); },
      .write = write_imdb};
  return format;
}

}  // namespace attn::data
