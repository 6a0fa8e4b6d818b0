// Reads TOML with toml++; see toml_text.h. Debian 12 has toml++ 3.3, which has undefined behaviour
// for most characters from U+00A1 to U+0499 and some others, and nests tables as deep as a key has
// dots. So the text is looked through first, and toml++ reads ASCII with few dots alone.

// toml++ asserts, or lets the compiler assume, what does not hold in a text such as "[[[", which it
// refuses a line later. Without NDEBUG an assumption is an assertion, and assertions are empty.
#undef NDEBUG
#define TOML_ASSERT(...) static_assert(true)
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <algorithm>

#include "core/base/byte_order_mark.h"
#include "core/base/check.h"
#include "harness/plan/toml_text.h"

namespace attn {
namespace {

constexpr int kMostDots = 16;  // of a key

// The bytes of the character at the beginning of `text`, at most four.
std::string_view character_of(std::string_view text) {
  size_t size = 1;
  while (size < std::min<size_t>(text.size(), 4) &&
         (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80)
    size++;
  return text.substr(0, size);
}

// Follows comments and strings of a text. Where toml++ sees other ones than this class does, the
// text is still ASCII.
class Scan {
 public:
  Scan(const std::string& file, std::string_view text) : file_(file), text_(text) {}

  // The text, with a question mark for each byte beyond ASCII in a comment.
  std::string ascii() {
    std::string result(text_);
    for (; at_ < text_.size(); at_++) {
      const auto byte = static_cast<unsigned char>(text_[at_]);
      refuse_control(byte);
      if (byte >= 0x80) {
        refuse_outside_comments();
        result[at_] = '?';
      } else {
        step(text_[at_]);
      }
    }
    return result;
  }

 private:
  enum class Inside { nothing, comment, text, literal, long_text, long_literal };

  template <class... Values>
  void require(bool holds, fmt::format_string<Values...> format, Values&&... values) const {
    if (!holds)
      throw_error(fmt::format("{}:{}: {}", file_, line_,
                              fmt::format(format, std::forward<Values>(values)...)));
  }

  void refuse_control(unsigned char byte) const {
    const bool ends_a_line =
        byte == '\n' || (byte == '\r' && text_.substr(at_).starts_with("\r\n"));
    require(byte >= 0x20 ? byte != 0x7f : byte == '\t' || ends_a_line,
            "the control character \\x{:02x} may not stand in a sweep file", byte);
  }

  void refuse_outside_comments() const {
    const std::string_view character = character_of(text_.substr(at_));
    const bool is_whole = character.size() > 1;
    require(inside_ == Inside::comment,
            "'{}' stands outside a comment; names and values of a sweep file are ASCII",
            is_whole ? std::string(character)
                     : fmt::format("\\x{:02x}", static_cast<unsigned char>(character[0])));
  }

  bool skips(std::string_view mark) {
    if (!text_.substr(at_).starts_with(mark)) return false;
    at_ += mark.size() - 1;
    return true;
  }

  void step(char c) {
    const bool has_escapes = inside_ == Inside::text || inside_ == Inside::long_text;
    if (c == '\n') line_++, dots_ = 0;
    if (inside_ == Inside::nothing) return step_outside(c);
    if (has_escapes && c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n' &&
        text_[at_ + 1] != '\r' && static_cast<unsigned char>(text_[at_ + 1]) < 0x80)
      at_++;
    else if (inside_ == Inside::long_text || inside_ == Inside::long_literal)
      step_long(inside_ == Inside::long_text ? '"' : '\'');
    else if (c == '\n' || (c == '"' && inside_ == Inside::text) ||
             (c == '\'' && inside_ == Inside::literal))
      inside_ = Inside::nothing;
  }

  // Up to two quotes may stand before the three that end the string.
  void step_long(char quote) {
    if (!skips(std::string(3, quote))) return;
    for (int i = 0; i < 2 && at_ + 1 < text_.size() && text_[at_ + 1] == quote; i++) at_++;
    inside_ = Inside::nothing;
  }

  void step_outside(char c) {
    if (c == '#')
      inside_ = Inside::comment;
    else if (c == '"')
      inside_ = skips("\"\"\"") ? Inside::long_text : Inside::text;
    else if (c == '\'')
      inside_ = skips("'''") ? Inside::long_literal : Inside::literal;
    else if (c == '.')
      require(++dots_ <= kMostDots, "a key has more than {} dots", kMostDots);
    else if (std::string_view(",=[]{}").find(c) != std::string_view::npos)
      dots_ = 0;
  }

  const std::string& file_;
  std::string_view text_;
  size_t at_ = 0;
  int64_t line_ = 1;
  int dots_ = 0;  // of the key that may stand here
  Inside inside_ = Inside::nothing;
};

TomlValue value_of(const toml::node& node, int64_t line) {
  using Kind = TomlValue::Kind;
  TomlValue value;
  value.line = node.source().begin.line > 0 ? node.source().begin.line : line;
  if (const toml::table* const table = node.as_table()) {
    std::vector<std::pair<toml::source_position, std::string>> keys;
    for (const auto& [key, unused] : *table)
      keys.emplace_back(key.source().begin, std::string(key.str()));
    std::sort(keys.begin(), keys.end());  // toml++ has them in the alphabet's order
    for (const auto& [place, key] : keys) {
      value.keys.push_back(key);
      value.items.push_back(value_of(*table->get(key), value.line));
    }
  } else if (const toml::array* const array = node.as_array()) {
    value.kind = Kind::list;
    for (const toml::node& item : *array) value.items.push_back(value_of(item, value.line));
  } else if (const auto* const text = node.as_string()) {
    value.kind = Kind::text;
    value.text = text->get();
  } else if (const auto* const whole = node.as_integer()) {
    value.kind = Kind::whole;
    value.text = fmt::format("{}", whole->get());
  } else if (const auto* const number = node.as_floating_point()) {
    value.kind = Kind::number;
    value.text = fmt::format("{}", number->get());
  } else if (const auto* const flag = node.as_boolean()) {
    value.kind = Kind::flag;
    value.text = flag->get() ? "true" : "false";
  } else {
    value.kind = Kind::date;
  }
  return value;
}

}  // namespace

const TomlValue* TomlValue::find(std::string_view name) const {
  for (size_t i = 0; i < keys.size(); i++)
    if (keys[i] == name) return &items[i];
  return nullptr;
}

const char* name_of(TomlValue::Kind kind) {
  switch (kind) {
    case TomlValue::Kind::text:
      return "a text";
    case TomlValue::Kind::whole:
    case TomlValue::Kind::number:
      return "a number";
    case TomlValue::Kind::flag:
      return "a truth value";
    case TomlValue::Kind::date:
      return "a date or a time";
    case TomlValue::Kind::list:
      return "a list";
    case TomlValue::Kind::table:
      return "a table";
  }
  return "";
}

TomlValue parse_toml(const std::string& file, std::string_view text) {
  ATTN_CHECK(text.size() <= kMostTomlBytes, "{}: a sweep file has at most {} bytes", file,
             kMostTomlBytes);
  text = past_byte_order_mark(text);
  try {
    return value_of(toml::parse(Scan(file, text).ascii()), 1);
  } catch (const toml::parse_error& error) {
    throw_error(fmt::format("{}:{}: {}", file, error.source().begin.line, error.description()));
  }
}

}  // namespace attn
