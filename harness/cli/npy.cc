// Reading and writing .npy: a magic string, a header that is a Python dict literal, raw values. See
// npy.h.
#include "harness/cli/npy.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/base/io_error.h"

namespace attn::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "the .npy types below are little-endian");

// The text after `'key':` in the header's dict, without leading blanks.
std::string field(const std::string& path, const std::string& header, const std::string& key) {
  const size_t at = header.find("'" + key + "'");
  const size_t colon = at == std::string::npos ? at : header.find(':', at);
  ATTN_CHECK(colon != std::string::npos, "{}: damaged .npy header: no '{}'", path, key);
  const size_t begin = header.find_first_not_of(' ', colon + 1);
  ATTN_CHECK(begin != std::string::npos, "{}: damaged .npy header: no value of '{}'", path, key);
  return header.substr(begin);
}

std::vector<int64_t> parse_shape(const std::string& path, const std::string& text) {
  const size_t end = text.find(')');
  ATTN_CHECK(text[0] == '(' && end != std::string::npos, "{}: damaged .npy header: the shape",
             path);
  std::vector<int64_t> shape;
  int64_t number = -1;
  for (size_t i = 1; i <= end; i++) {
    if (text[i] >= '0' && text[i] <= '9') {
      number = (number < 0 ? 0 : number) * 10 + (text[i] - '0');
      ATTN_CHECK(number < (int64_t{1} << 40), "{}: impossible dimension in the .npy header", path);
    } else if (number >= 0) {
      shape.push_back(number);
      number = -1;
    }
  }
  return shape;
}

template <class T>
void widen(const char* bytes, std::vector<double>& values) {
  for (size_t i = 0; i < values.size(); i++) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
}

using Widen = void (*)(const char*, std::vector<double>&);

Widen widen_for(const std::string& path, const std::string& type, size_t& bytes) {
  const auto is = [&](const char* name, size_t size) { return bytes = size, type == name; };
  if (is("<f4", 4)) return widen<float>;
  if (is("<f8", 8)) return widen<double>;
  if (is("<i4", 4)) return widen<int32_t>;
  if (is("<u4", 4)) return widen<uint32_t>;
  if (is("<i8", 8)) return widen<int64_t>;
  if (is("<u8", 8)) return widen<uint64_t>;
  throw_error(fmt::format(
      "{}: type '{}' is not supported; expected float32 ('<f4'), float64 ('<f8') or, for lengths, "
      "int32 or int64",
      path, type));
}

// To the file `into`, which stands for `path`; a draft is synced, or removed again.
void write_bytes(const std::string& path, const std::string& into, const std::string& bytes) {
  const bool is_draft = into != path;
  std::FILE* const file = std::fopen(into.c_str(), "wb");
  ATTN_IO_CHECK(file, "cannot write '{}': {}", path, std::strerror(errno));
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() &&
                       std::fflush(file) == 0 && (!is_draft || fsync(fileno(file)) == 0);
  const int fault = errno;
  std::fclose(file);
  if (written) return;
  if (is_draft) std::remove(into.c_str());
  throw_io_error(fmt::format("cannot write '{}': {}", path, std::strerror(fault)));
}

}  // namespace

std::string Array::shape_text() const {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); i++) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Array read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  ATTN_IO_CHECK(file.good(), "cannot read '{}': {}", path, std::strerror(errno));
  ATTN_IO_CHECK(!std::filesystem::is_directory(path), "'{}' is a folder; expected a .npy file",
                path);
  const std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ATTN_IO_CHECK(!file.bad(), "cannot read '{}': {}", path, std::strerror(errno));
  return parse_npy(path, all);
}

Array parse_npy(const std::string& path, const std::string& all) {
  ATTN_CHECK(all.size() >= 12 && all.compare(0, 6, "\x93NUMPY") == 0, "{}: not a .npy file", path);
  const auto byte = [&](size_t i) {
    return static_cast<size_t>(static_cast<unsigned char>(all[i]));
  };
  const size_t version = byte(6);
  ATTN_CHECK(version >= 1 && version <= 3, "{}: .npy version {} is unknown; expected 1 to 3", path,
             version);
  const size_t start = version == 1 ? 10 : 12;
  const size_t length = version == 1 ? byte(8) | byte(9) << 8
                                     : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  ATTN_CHECK(start + length <= all.size(), "{}: cut short inside the .npy header", path);
  const std::string header = all.substr(start, length);

  Array array;
  const std::string type = field(path, header, "descr");
  ATTN_CHECK(type[0] == '\'' && type.find('\'', 1) != std::string::npos,
             "{}: structured .npy types are not supported", path);
  array.type = type.substr(1, type.find('\'', 1) - 1);
  size_t item = 0;
  const Widen convert = widen_for(path, array.type, item);
  array.shape = parse_shape(path, field(path, header, "shape"));
  // An array of at most one dimension is both C and Fortran ordered.
  ATTN_CHECK(
      field(path, header, "fortran_order").compare(0, 4, "True") != 0 || array.shape.size() <= 1,
      "{}: Fortran order; expected C order (numpy.ascontiguousarray)", path);
  const bool is_empty = std::count(array.shape.begin(), array.shape.end(), 0) > 0;
  size_t count = is_empty ? 0 : 1;
  const size_t stored = (all.size() - start - length) / item;
  for (const int64_t dim : array.shape) {
    ATTN_CHECK(is_empty || count <= stored / static_cast<size_t>(dim) + 1,
               "{}: shape {} needs more than the {} values stored", path, array.shape_text(),
               stored);
    count *= static_cast<size_t>(dim);
  }
  ATTN_CHECK(stored == count && (all.size() - start - length) % item == 0,
             "{}: shape {} needs {} values, the file holds {}", path, array.shape_text(), count,
             stored);
  array.values.resize(count);
  convert(all.data() + start + length, array.values);
  return array;
}

std::string npy_bytes(const Array& array) {
  std::string shape;
  for (const int64_t dim : array.shape) shape += std::to_string(dim) + ", ";
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", array.type, shape);
  header.append(63 - (10 + header.size()) % 64, ' ') +=
      '\n';  // the data starts at a multiple of 64
  const size_t length = header.size();
  std::string bytes = "\x93NUMPY\x01";
  bytes += '\0';
  bytes += static_cast<char>(length & 255);
  bytes += static_cast<char>(length >> 8);
  bytes += header;
  const auto append = [&](const auto& number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  for (const double value : array.values)
    if (array.type == "<f4")
      append(static_cast<float>(value));
    else if (array.type == "<i4")
      append(static_cast<int32_t>(value));
    else
      append(value);
  return bytes;
}

NpyFiles::~NpyFiles() {
  for (const Draft& draft : drafts_) std::remove(draft.temporary.c_str());
}

void NpyFiles::add(const std::string& path, const Array& array) {
  std::string bytes = npy_bytes(array);
  if (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path)) {
    in_place_.emplace_back(path, std::move(bytes));
    return;
  }
  const std::string temporary = path + ".partial";
  write_bytes(path, temporary, bytes);
  drafts_.push_back({path, temporary});
}

void NpyFiles::put() {
  for (const auto& [path, bytes] : in_place_) write_bytes(path, path, bytes);
  in_place_.clear();
  for (; !drafts_.empty(); drafts_.erase(drafts_.begin())) {
    const Draft& draft = drafts_.front();
    if (std::rename(draft.temporary.c_str(), draft.path.c_str()) != 0)
      throw_io_error(fmt::format("cannot write '{}': {}", draft.path, std::strerror(errno)));
  }
}

void write_npy(const std::string& path, const Array& array) {
  NpyFiles one;
  one.add(path, array);
  one.put();
}

}  // namespace attn::cli
