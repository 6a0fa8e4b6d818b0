// A number and a unit; see amounts.h.
#include "harness/plan/amounts.h"

#include <charconv>
#include <map>
#include <string_view>

#include "core/base/check.h"

namespace attn {
namespace {

bool read_all(std::string_view digits, double& number) {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size();
}

// "1.5h" with {'h', 3600} -> 5400.
double parse_scaled(const std::string& text, const std::map<char, double>& units,
                    const char* expected) {
  double number = 0, unit = 1;
  std::string_view digits = text;
  if (!digits.empty()) {
    const auto it = units.find(digits.back());
    if (it != units.end()) unit = it->second, digits.remove_suffix(1);
  }
  ATTN_CHECK(read_all(digits, number) && number > 0 && number * unit <= 9e18, "'{}' is not {}",
             text, expected);
  return number * unit;
}

}  // namespace

double parse_seconds(const std::string& text) {
  return parse_scaled(text, {{'s', 1}, {'m', 60}, {'h', 3600}}, "a time; write 90s, 10m or 1.5h");
}

double parse_share(const std::string& option, const std::string& text) {
  std::string_view digits = text;
  const bool is_percent = digits.ends_with('%');
  if (is_percent) digits.remove_suffix(1);
  double share = 0;
  const bool is_number = read_all(digits, share);
  if (is_percent) share /= 100;
  ATTN_CHECK(is_number && share >= 0 && share < 1,
             "--{} {} is not valid; expected a share below 1, such as 5% or 0.05", option, text);
  return share;
}

int64_t parse_bytes(const std::string& text) {
  constexpr double kKibi = 1024;
  ATTN_CHECK(text.empty() || text.back() < '0' || text.back() > '9',
             "'{0}' has no unit; write {0}M or {0}G", text);
  return static_cast<int64_t>(parse_scaled(text,
                                           {{'K', kKibi},
                                            {'M', kKibi * kKibi},
                                            {'G', kKibi * kKibi * kKibi},
                                            {'T', kKibi * kKibi * kKibi * kKibi}},
                                           "an amount of memory; write 512M or 8G"));
}

}  // namespace attn
