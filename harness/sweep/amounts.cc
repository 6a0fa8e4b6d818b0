// A number and a unit; see amounts.h.
#include "harness/sweep/amounts.h"

#include <charconv>
#include <map>
#include <string_view>

#include "core/base/check.h"

namespace attn {
namespace {

// "1.5h" with {'h', 3600} -> 5400.
double parse_scaled(const std::string& text, const std::map<char, double>& units,
                    const char* expected) {
  double number = 0, unit = 1;
  std::string_view digits = text;
  if (!digits.empty()) {
    const auto it = units.find(digits.back());
    if (it != units.end()) unit = it->second, digits.remove_suffix(1);
  }
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  ATTN_CHECK(is_number && number > 0 && number * unit <= 9e18, "'{}' is not {}", text, expected);
  return number * unit;
}

}  // namespace

double parse_seconds(const std::string& text) {
  return parse_scaled(text, {{'s', 1}, {'m', 60}, {'h', 3600}}, "a time; write 90s, 10m or 1.5h");
}

double parse_share(const std::string& text) {
  const char* const what = "a share; write 2% or 0.02";
  const bool has_sign = !text.empty() && text.back() == '%';
  const double share = parse_scaled(text, {{'%', 0.01}}, what);
  ATTN_CHECK(share > 0 && share < 1, "'{}' is not {}, above 0 and below {}", text, what,
             has_sign ? "100%" : "1");
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
