// The values that rows are made of: the canonical text and hash of a cell's key, times, and numbers
// that strict JSON can hold. A hash is FNV-1a over the canonical text: 64 bits tell the few
// thousand cells of a sweep apart.
#include <chrono>
#include <cmath>
#include <ctime>
#include <map>
#include <string>
#include <string_view>

#include "core/base/check.h"
#include "harness/store/rows.h"

namespace attn {
namespace {

std::string number_text(double number) {
  ATTN_CHECK(std::isfinite(number), "a key cannot hold NaN or infinity");
  constexpr double kExact =
      9007199254740992.0;  // 2^53: integers below it are exact, so 64 and 64.0 are the same number
  if (std::trunc(number) == number && std::abs(number) < kExact)
    return fmt::format("{}", static_cast<int64_t>(number));
  return fmt::format("{}", number);  // the shortest text that reads back to the same bits
}

void write_canonical(const Json& value, std::string& text) {
  if (value.is_object()) {
    std::map<std::string, const Json*> sorted;
    for (const auto& [key, inner] : value.items()) sorted[key] = &inner;
    const char* before = "{";
    for (const auto& [key, inner] : sorted) {
      text += before;
      text += Json(key).dump();
      text += ':';
      write_canonical(*inner, text);
      before = ",";
    }
    text += sorted.empty() ? "{}" : "}";
  } else if (value.is_array()) {
    text += "[";
    for (size_t i = 0; i < value.size(); ++i) {
      if (i > 0) text += ",";
      write_canonical(value[i], text);
    }
    text += "]";
  } else {
    text += value.is_number_float() ? number_text(value.get<double>()) : value.dump();
  }
}

}  // namespace

std::string hash_of_bytes(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a's offset basis and prime
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

std::string hash_of(const Json& value) {
  std::string text;
  write_canonical(value, text);
  return hash_of_bytes(text);
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string one_line(std::string_view text, size_t most) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const bool cut = text.size() > most;
  if (cut) text.remove_prefix(text.size() - most);
  std::string line = cut ? "... " : "";
  for (const char c : text) {
    const bool plain = c >= 0x20 && c < 0x7f;  // bytes of a cut UTF-8 character would spoil the row
    if (plain)
      line += c;
    else if (c == '\n')
      line += "; ";
    else
      line += ' ';
  }
  return line;
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace attn
