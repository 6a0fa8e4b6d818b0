// NumPy's .npy files, versions 1 to 3: float32, float64 and whole numbers, C order. Format:
// numpy.lib.format.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace attn::cli {

struct Array {
  std::vector<int64_t> shape;
  std::vector<double> values;      // float32 widens without loss
  std::string type = "<f8";        // as in the file: <f4, <f8, <i4, <i8, |u1, …
  std::string shape_text() const;  // "[2, 4, 128, 64]"
  bool is_float() const { return type[1] == 'f'; }
};

// Error names the file and what is wrong with it: not .npy, Fortran order, another type, a cut
// file.
Array read_npy(const std::string& path);
// The array of the bytes of a file; `path` names it in an Error.
Array parse_npy(const std::string& path, const std::string& all);

// The bytes of a file of type <f4, <i4 or <f8.
std::string npy_bytes(const Array& array);

// Files that are written together: each through a temporary file beside its place, and all of them
// take their places, one after the other, when the last one is whole. A failure before leaves every
// place as it was; one of put() itself leaves those that it had filled. No temporary file stays.
class NpyFiles {
 public:
  NpyFiles() = default;
  ~NpyFiles();  // removes what has not taken its place
  NpyFiles(const NpyFiles&) = delete;
  NpyFiles& operator=(const NpyFiles&) = delete;

  void add(const std::string& path, const Array& array);
  void put();

 private:
  struct Draft {
    std::string path, temporary;
  };
  std::vector<Draft> drafts_;
  // What exists and is no regular file, such as /dev/null, is written to, never replaced, and not
  // before all others are whole.
  std::vector<std::pair<std::string, std::string>> in_place_;  // path, bytes
};

void write_npy(const std::string& path, const Array& array);  // one of them

}  // namespace attn::cli
