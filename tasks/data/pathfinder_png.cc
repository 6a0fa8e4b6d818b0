// Reads and writes Pathfinder in the release of Long Range Arena (arXiv:2011.04006, 2.2.5): PNG
// files, and text files in `metadata` with their names and labels. The index reads the metadata and
// the end of every picture; an example decodes its picture.
#include <array>
#include <utility>

#include "tasks/data/indexed.h"
#include "tasks/data/png.h"
#include "tasks/data/released.h"
#include "tasks/data/sources.h"

namespace attn::data {
namespace {

// The release has this file empty and lists it all the same.
constexpr std::string_view kKnownEmpty = "curv_baseline/imgs/0/sample_172.png";
constexpr int64_t kPicturesAFolder = 1000;  // as released

std::string level_of(int64_t contour) {
  ATTN_CHECK(contour == 6 || contour == 9 || contour == 14,
             "contour={}; the released pictures have 6, 9 or 14 paddles a contour", contour);
  return contour == 6 ? "curv_baseline" : fmt::format("curv_contour_length_{}", contour);
}

std::string picture_size(int64_t side) {
  ATTN_CHECK(side == 32 || side == 64 || side == 128 || side == 256,
             "side={}; the released pictures have 32, 64, 128 or 256 pixels a side", side);
  return fmt::format("pathfinder{}", side);
}

// The columns of a line of metadata: folder, file, number, label; what follows is not read.
std::vector<std::string_view> words_of(std::string_view line, size_t most) {
  std::vector<std::string_view> words;
  for (size_t at = 0; words.size() < most; at++) {
    at = std::min(line.find_first_not_of(" \t", at), line.size());
    if (at == line.size()) break;
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

struct Listed {
  std::string path;  // below the level's folder
  int32_t label;
};

class PathfinderPng final : public Indexed<int32_t> {
 public:
  PathfinderPng(const std::string& folder, int64_t side, int64_t contour, FromGrey example)
      : side_(side), example_(std::move(example)) {
    const std::string level = level_of(contour);
    root_ = find_root(folder, picture_size(side), level, "Pathfinder pictures") + "/" + level;
    for (const std::string& name : metadata_names()) list(name, level);
    const int64_t total = std::ssize(pictures_);
    for (int64_t i = 0; i < total; i++) {
      const Split split = i < total * 8 / 10   ? Split::train
                          : i < total * 9 / 10 ? Split::validation
                                               : Split::test;
      add(split, static_cast<int32_t>(i), look(pictures_[static_cast<size_t>(i)]));
    }
    finish(root_);
  }

 private:
  // By number: 2.npy before 10.npy.
  std::vector<std::string> metadata_names() const {
    std::vector<std::pair<int64_t, std::string>> numbered;
    for (const std::string& name : names_in(root_ + "/metadata")) {
      if (!name.ends_with(".npy")) continue;
      const int64_t number = whole_number(std::string_view(name).substr(0, name.size() - 4));
      ATTN_CHECK(number >= 0, "{}/metadata/{}: expected a number for a name", root_, name);
      numbered.emplace_back(number, name);
    }
    ATTN_CHECK(!numbered.empty(), "{}/metadata: no .npy file there", root_);
    std::sort(numbered.begin(), numbered.end());
    std::vector<std::string> names;
    for (const auto& [number, name] : numbered) names.push_back(name);
    return names;
  }

  void list(const std::string& name, const std::string& level) {
    const File file(root_ + "/metadata/" + name);
    for_each_line(file, [&](int64_t number, int64_t, std::string_view line) {
      const std::vector<std::string_view> words = words_of(line, 4);
      if (words.empty()) return;
      ATTN_CHECK(words.size() == 4, "{} line {}: {} columns; expected folder, file, number, label",
                 file.path(), number, words.size());
      ATTN_CHECK(words[3] == "0" || words[3] == "1", "{} line {}: label '{}'; expected 0 or 1",
                 file.path(), number, words[3].substr(0, 40));
      contents_.add(line);
      std::string path = fmt::format("{}/{}", words[0], words[1]);
      if (level + "/" + path == kKnownEmpty && is_empty(path)) return;
      pictures_.push_back({std::move(path), words[3] == "1"});
    });
  }

  bool is_empty(const std::string& path) const { return File(root_ + "/" + path).size() == 0; }

  // A checksum of the file without reading all of it: the size and the last bytes, which hold the
  // Adler-32 of the pixels and the CRC-32 of the last data chunk. Equal ones are taken for the same
  // picture; chance makes that of two in 10^14.
  uint64_t look(const Listed& picture) {
    const File file(root_ + "/" + picture.path);
    constexpr int64_t kTail = 20, kSmallest = 67;  // Adler, CRC, the end chunk; the smallest PNG
    constexpr std::string_view kEnd("\0\0\0\0IEND\xae\x42\x60\x82", 12);
    const std::string tail = file.size() < kSmallest ? "" : file.read(file.size() - kTail, kTail);
    ATTN_CHECK(tail.ends_with(kEnd), "{}: no whole PNG picture: {}", file.path(),
               file.size() == 0 ? "the file is empty" : "the file is cut short");
    Digest digest;
    digest.add(static_cast<uint64_t>(file.size()));
    digest.add(tail);
    contents_.add(digest.value());
    return digest.value();
  }

  Example read(const int32_t& index) const override {
    const Listed& listed = pictures_[static_cast<size_t>(index)];
    const std::string path = root_ + "/" + listed.path;
    const Picture picture = read_grey_png(path);
    ATTN_CHECK(picture.width == side_ && picture.height == side_,
               "{}: {} x {} pixels; expected {} x {}", path, picture.width, picture.height, side_,
               side_);
    return example_(picture.grey, listed.label);
  }

  int64_t side_;
  FromGrey example_;
  std::string root_;  // of the level
  std::vector<Listed> pictures_;
};

int64_t contour_of(const Task& task) {
  const auto& values = task.params().values();
  return values.count("contour") ? task.params().integer("contour") : 14;
}

std::string pathfinder_folder(const Task& task) {
  level_of(contour_of(task));
  return picture_size(task.picture_width());
}

void write_pathfinder(const Task& task, uint64_t seed, int64_t count, const std::string& root) {
  const std::string level = root + "/" + level_of(contour_of(task));
  make_folder(level + "/metadata");
  const std::pair<Split, int64_t> parts[] = {
      {Split::train, 8 * count}, {Split::validation, count}, {Split::test, count}};
  int64_t number = 0;
  std::string lines;
  const auto end_folder = [&] {
    if (!lines.empty())
      write_file(fmt::format("{}/metadata/{}.npy", level, (number - 1) / kPicturesAFolder), lines);
    lines.clear();
  };
  for (const auto& [split, wanted] : parts)
    for (int64_t i = 0; i < wanted; i++, number++) {
      const std::string folder = fmt::format("imgs/{}", number / kPicturesAFolder);
      if (number % kPicturesAFolder == 0) {
        end_folder();
        make_folder(level + "/" + folder);
      }
      const std::string name = fmt::format("sample_{}.png", number % kPicturesAFolder);
      const Example e = task.example(seed, split, i);
      const int64_t side = task.picture_width();
      write_grey_png(fmt::format("{}/{}/{}", level, folder, name),
                     {.width = side, .height = side, .grey = task.picture(e)});
      lines +=
          fmt::format("{} {} {} {}\n", folder, name, number % kPicturesAFolder, e.target.at(0));
    }
  end_folder();
}

}  // namespace

std::unique_ptr<Source> pathfinder_png(const std::string& folder, int64_t side, int64_t contour,
                                       FromGrey example) {
  return std::make_unique<PathfinderPng>(folder, side, contour, std::move(example));
}

const ReleasedFormat& pathfinder_png_format() {
  static const ReleasedFormat format = {.name = "Pathfinder PNG folders",
                                        .train_share = 8,
                                        .folder = pathfinder_folder,
                                        .write = write_pathfinder};
  return format;
}

}  // namespace attn::data
