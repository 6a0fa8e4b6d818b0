// Reads the keys of a TOML table, and says where a value is wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/check.h"
#include "harness/cell/names.h"
#include "harness/plan/grammar.h"
#include "harness/plan/toml_text.h"

namespace attn {

// An Error that says where in the file it is.
class PlacedError : public Error {
 public:
  using Error::Error;
};

class TomlReader {
 public:
  explicit TomlReader(const std::string& file) : file_(file) {}

  [[noreturn]] void refuse(int64_t line, std::string_view message) const;
  // Calls `read`; its Error gets the file and the line of `value`.
  template <class Read>
  auto at(const TomlValue& value, const Read& read) const {
    try {
      return read();
    } catch (const PlacedError&) {
      throw;
    } catch (const Error& error) {
      refuse(value.line, error.what());
    }
  }

  // Refuses a value that is no table, and a key that is not in `known`. `what` names the table.
  void require_keys(const TomlValue& table, std::string_view what,
                    const std::vector<std::string>& known) const;
  // A list as its items, anything else as itself. Error where there is none.
  std::vector<const TomlValue*> items_of(std::string_view what, const TomlValue& value) const;
  const std::string& text_of(std::string_view what, const TomlValue& value) const;
  std::vector<Measure> measures_of(std::string_view what, const TomlValue& value) const;
  // Texts and numbers, alone or in a list, in the sweep grammar: "64,128:512:*2".
  std::string values_of(std::string_view what, const TomlValue& value) const;
  // "steps=500,width=64", or a table of settings.
  std::vector<Setting> settings_of(std::string_view what, const TomlValue& value) const;

 private:
  const std::string& file_;
};

}  // namespace attn
