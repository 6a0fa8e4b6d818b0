// Reads and writes CIFAR-10's binary batches (Krizhevsky 2009). A record is a label and 32 × 32
// pixels, all red, then green, then blue. Pictures become grey as in arXiv:2011.04006, 2.2.4. The
// index costs one pass over the files.
#include <utility>

#include "tasks/data/grey.h"
#include "tasks/data/indexed.h"
#include "tasks/data/released.h"
#include "tasks/data/sources.h"

namespace attn::data {
namespace {

constexpr int64_t kSide = 32, kPixels = kSide * kSide, kRecord = 1 + 3 * kPixels, kBatches = 5;
constexpr const char* kCifarFolder = "cifar-10-batches-bin";

std::string batch_name(int64_t batch) { return fmt::format("data_batch_{}.bin", batch + 1); }

struct Place {
  int32_t file, record;
};

class Cifar10 final : public Indexed<Place> {
 public:
  Cifar10(const std::string& folder, FromGrey example) : example_(std::move(example)) {
    const std::string root =
        find_root(folder, kCifarFolder, batch_name(0), "CIFAR-10 binary batches");
    int64_t total = 0;
    for (int64_t batch = 0; batch < kBatches; batch++) total += open(root, batch_name(batch));
    open(root, "test_batch.bin");
    const int64_t train = total * 9 / 10;
    int64_t before = 0;
    for (size_t file = 0; file < files_.size(); file++) {
      const int64_t records = files_[file].size() / kRecord;
      contents_.add(files_[file].path().substr(root.size()));
      for (int64_t i = 0; i < records; i++) {
        const Split split = file == kBatches     ? Split::test
                            : before + i < train ? Split::train
                                                 : Split::validation;
        const Place place = {static_cast<int32_t>(file), static_cast<int32_t>(i)};
        const std::string bytes = record(place);
        contents_.add(bytes);
        add(split, place, input_checksum(picture(place, bytes)));
      }
      before += records;
    }
    finish(root);
  }

 private:
  int64_t open(const std::string& root, const std::string& name) {
    files_.emplace_back(root + "/" + name);
    const int64_t size = files_.back().size();
    ATTN_CHECK(size > 0 && size % kRecord == 0,
               "{}: {} bytes; expected records of {} bytes, so record {} is cut short or missing",
               files_.back().path(), size, kRecord, size / kRecord);
    return size / kRecord;
  }

  std::string record(const Place& place) const {
    return files_[static_cast<size_t>(place.file)].read(place.record * kRecord, kRecord);
  }

  Example picture(const Place& place, const std::string& bytes) const {
    const auto* const data = reinterpret_cast<const uint8_t*>(bytes.data());
    ATTN_CHECK(data[0] < 10, "{} record {}: label {}; expected 0 to 9",
               files_[static_cast<size_t>(place.file)].path(), place.record, data[0]);
    std::vector<uint8_t> grey(kPixels);
    const uint8_t* const red = data + 1;
    for (size_t p = 0; p < kPixels; p++)
      grey[p] = grey_of(red[p], red[kPixels + p], red[2 * kPixels + p]);
    return example_(grey, data[0]);
  }

  Example read(const Place& place) const override { return picture(place, record(place)); }

  FromGrey example_;
  std::vector<File> files_;  // five batches, then the test batch
};

std::string record_of(const Task& task, const Example& e) {
  std::string bytes(1, static_cast<char>(e.target.at(0)));
  const std::vector<uint8_t> grey = task.picture(e);
  for (int channel = 0; channel < 3; channel++) bytes.append(grey.begin(), grey.end());
  return bytes;
}

std::string cifar_folder(const Task& task) {
  ATTN_CHECK(task.picture_width() == kSide,
             "CIFAR-10 batches hold pictures of 32 x 32 pixels, these are {} wide; set side=32",
             task.picture_width());
  return kCifarFolder;
}

void write_cifar(const Task& task, uint64_t seed, int64_t count, const std::string& root) {
  const int64_t each = 2 * count;  // nine tenths of five batches train, the last tenth validates
  for (int64_t batch = 0; batch < kBatches; batch++) {
    Output file(root + "/" + batch_name(batch));
    for (int64_t i = batch * each; i < (batch + 1) * each; i++)
      file.append(record_of(task, i < 9 * count
                                      ? task.example(seed, Split::train, i)
                                      : task.example(seed, Split::validation, i - 9 * count)));
    file.close();
  }
  Output file(root + "/test_batch.bin");
  for (int64_t i = 0; i < count; i++)
    file.append(record_of(task, task.example(seed, Split::test, i)));
  file.close();
}

}  // namespace

std::unique_ptr<Source> cifar10(const std::string& folder, FromGrey example) {
  return std::make_unique<Cifar10>(folder, std::move(example));
}

const ReleasedFormat& cifar10_format() {
  static const ReleasedFormat format = {.name = "CIFAR-10 binary batches",
                                        .train_share = 9,
                                        .folder = cifar_folder,
                                        .write = write_cifar};
  return format;
}

}  // namespace attn::data
