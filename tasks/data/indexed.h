// A source with an index in memory: one small Record per example. An example is read from its file
// on request. Examples whose input is in an earlier split are left out. Memory O(examples).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "tasks/api/task.h"
#include "tasks/data/files.h"

namespace attn::data {

template <class Record>
class Indexed : public Source {
 public:
  int64_t count(Split split) const final { return std::ssize(records(split)); }
  Example example(Split split, int64_t index) const final {
    return read(records(split).at(static_cast<size_t>(index)));
  }
  std::string fingerprint() const final { return contents_.hexadecimal(); }
  int64_t duplicates() const final { return duplicates_; }

 protected:
  // `input` is a checksum of the input; examples with equal checksums count as duplicates.
  void add(Split split, const Record& record, uint64_t input) {
    records_[static_cast<size_t>(split)].push_back(record);
    inputs_[static_cast<size_t>(split)].push_back(input);
  }

  // Call once after all examples are added. Error when a split is empty; it names `where`.
  void finish(const std::string& where) {
    std::vector<uint64_t> seen;  // sorted
    for (const Split split : {Split::train, Split::validation, Split::test}) {
      leave_out(seen, split);
      std::vector<uint64_t>& added = inputs_[static_cast<size_t>(split)];
      seen.insert(seen.end(), added.begin(), added.end());
      std::sort(seen.begin(), seen.end());
      std::vector<uint64_t>().swap(added);
      ATTN_CHECK(count(split) > 0, "{}: the {} split is empty{}", where, to_string(split),
                 duplicates_ ? fmt::format(" ({} duplicates are left out)", duplicates_) : "");
    }
  }

  Digest contents_;

 private:
  virtual Example read(const Record& record) const = 0;

  const std::vector<Record>& records(Split split) const {
    return records_[static_cast<size_t>(split)];
  }

  void leave_out(const std::vector<uint64_t>& seen, Split split) {
    std::vector<Record>& all = records_[static_cast<size_t>(split)];
    const std::vector<uint64_t>& inputs = inputs_[static_cast<size_t>(split)];
    size_t kept = 0;
    for (size_t i = 0; i < all.size(); i++) {
      if (std::binary_search(seen.begin(), seen.end(), inputs[i]))
        duplicates_++;
      else
        all[kept++] = all[i];
    }
    all.resize(kept);
  }

  std::array<std::vector<Record>, 3> records_;
  std::array<std::vector<uint64_t>, 3> inputs_;  // empty after finish()
  int64_t duplicates_ = 0;
};

}  // namespace attn::data
