// Validation of rows: a small interpreter of JSON Schema over the embedded results/schema.json,
// plus what no schema can say (finite numbers). Costs about 90 microseconds a row. Python's
// jsonschema reads the same file, so both sides agree.
#include "harness/store/schema.h"

#include <cmath>
#include <map>
#include <optional>
#include <regex>
#include <string_view>
#include <utility>

#include "core/base/check.h"

namespace attn {

extern const char* const kSchemaText;

namespace {

constexpr std::string_view kAnnotations[] = {"$schema", "$id", "$comment", "title", "description"};
constexpr std::string_view kAssertions[] = {"type",       "enum",
                                            "const",      "required",
                                            "properties", "additionalProperties",
                                            "items",      "minItems",
                                            "pattern",    "minLength",
                                            "maxLength",  "minimum",
                                            "maximum",    "exclusiveMinimum",
                                            "allOf",      "if",
                                            "then",       "else",
                                            "$ref",       "$defs"};

template <size_t N>
bool contains(const std::string_view (&names)[N], std::string_view name) {
  for (const std::string_view known : names) {
    if (known == name) return true;
  }
  return false;
}

// A keyword that is not interpreted would be a rule that Python enforces and the program does not.
void refuse_unknown_keywords(const Json& schema) {
  for (const auto& [key, part] : schema.items()) {
    ATTN_CHECK(contains(kAnnotations, key) || contains(kAssertions, key),
               "schema: keyword {} is not supported", key);
    if (key == "properties" || key == "$defs" || key == "allOf") {
      for (const Json& inner : part) refuse_unknown_keywords(inner);
    } else if (key == "items" || key == "additionalProperties" || key == "if" || key == "then" ||
               key == "else") {
      ATTN_CHECK(part.is_object(), "schema: {} must be an object", key);
      refuse_unknown_keywords(part);
    }
  }
}

bool is_integer(const Json& value) {
  if (value.is_number_integer()) return true;
  return value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>();
}

bool has_type(const Json& value, const std::string& type) {
  if (type == "integer") return is_integer(value);
  if (type == "number") return value.is_number();
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "string") return value.is_string();
  if (type == "array") return value.is_array();
  ATTN_CHECK(type == "object", "schema: no such type: {}", type);
  return value.is_object();
}

std::string joined(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

std::string at(const std::string& path, const std::string& what) {
  return path.empty() ? what : path + ": " + what;
}

// Where a value stands, from the inside out: its text is made for a fault alone.
struct Place {
  const Place* above = nullptr;
  std::string_view key{};  // of an object; or
  size_t index = 0;        // of an array

  std::string text() const {
    if (!above) return {};
    return key.empty() ? fmt::format("{}[{}]", above->text(), index)
                       : joined(above->text(), std::string(key));
  }
};

// A pattern is compiled once: compiling takes longer than all else that a row costs.
const std::regex& compiled(const std::string& pattern) {
  thread_local std::map<std::string, std::regex> known;
  const auto found = known.find(pattern);
  return found != known.end() ? found->second : known.emplace(pattern, pattern).first->second;
}

class Validator {
 public:
  explicit Validator(const Json& root) : root_(root) {}

  std::string fault(const Json& schema, const Json& value, const Place& place) const {
    for (const auto part :
         {&Validator::type_fault, &Validator::value_fault, &Validator::number_fault,
          &Validator::string_fault, &Validator::array_fault, &Validator::object_fault,
          &Validator::combined_fault}) {
      std::string found = (this->*part)(schema, value, place);
      if (!found.empty()) return found;
    }
    return {};
  }

 private:
  std::string type_fault(const Json& schema, const Json& value, const Place& place) const {
    const auto type = schema.find("type");
    if (type == schema.end()) return {};
    if (!type->is_array()) {
      const auto& name = type->get_ref<const std::string&>();
      return has_type(value, name)
                 ? std::string()
                 : at(place.text(), fmt::format("expected {}, got {}", name, shown(value)));
    }
    std::string names;
    for (const Json& name : *type) {
      if (has_type(value, name.get_ref<const std::string&>())) return {};
      names += (names.empty() ? "" : " or ") + name.get<std::string>();
    }
    return at(place.text(), fmt::format("expected {}, got {}", names, shown(value)));
  }

  std::string value_fault(const Json& schema, const Json& value, const Place& place) const {
    if (const auto wanted = schema.find("const"); wanted != schema.end() && *wanted != value) {
      return at(place.text(), fmt::format("expected {}, got {}", wanted->dump(), shown(value)));
    }
    const auto choices = schema.find("enum");
    if (choices == schema.end()) return {};
    for (const Json& choice : *choices) {
      if (choice == value) return {};
    }
    return at(place.text(),
              fmt::format("expected one of {}, got {}", choices->dump(), shown(value)));
  }

  std::string number_fault(const Json& schema, const Json& value, const Place& place) const {
    if (!value.is_number()) return {};
    const double number = value.get<double>();
    if (const auto low = schema.find("minimum");
        low != schema.end() && !(number >= low->get<double>())) {
      return at(place.text(), fmt::format("{} is below {}", shown(value), low->dump()));
    }
    if (const auto high = schema.find("maximum");
        high != schema.end() && !(number <= high->get<double>())) {
      return at(place.text(), fmt::format("{} is above {}", shown(value), high->dump()));
    }
    if (const auto low = schema.find("exclusiveMinimum");
        low != schema.end() && !(number > low->get<double>())) {
      return at(place.text(), fmt::format("{} is not above {}", shown(value), low->dump()));
    }
    return {};
  }

  std::string string_fault(const Json& schema, const Json& value, const Place& place) const {
    if (!value.is_string()) return {};
    const auto& text = value.get_ref<const std::string&>();
    // Bytes stand in for code points: the two differ only for lengths above 1, which the schema
    // does not ask for.
    if (const auto least = schema.find("minLength");
        least != schema.end() && text.size() < least->get<size_t>()) {
      return at(place.text(), "is empty");
    }
    // Before the pattern: std::regex takes a stack frame a character.
    if (const auto most = schema.find("maxLength");
        most != schema.end() && text.size() > most->get<size_t>()) {
      return at(place.text(),
                fmt::format("{} bytes, expected at most {}", text.size(), most->dump()));
    }
    const auto pattern = schema.find("pattern");
    if (pattern == schema.end()) return {};
    const auto& expected = pattern->get_ref<const std::string&>();
    if (std::regex_search(text, compiled(expected))) return {};
    return at(place.text(), fmt::format("{} does not match {}", shown(value), expected));
  }

  std::string array_fault(const Json& schema, const Json& value, const Place& place) const {
    if (!value.is_array()) return {};
    if (const auto least = schema.find("minItems");
        least != schema.end() && value.size() < least->get<size_t>()) {
      return at(place.text(),
                fmt::format("{} entries, expected at least {}", value.size(), least->dump()));
    }
    const auto items = schema.find("items");
    if (items == schema.end()) return {};
    for (size_t i = 0; i < value.size(); ++i) {
      std::string found = fault(*items, value[i], {.above = &place, .index = i});
      if (!found.empty()) return found;
    }
    return {};
  }

  std::string object_fault(const Json& schema, const Json& value, const Place& place) const {
    if (!value.is_object()) return {};
    if (const auto required = schema.find("required"); required != schema.end()) {
      for (const Json& key : *required) {
        const auto& name = key.get_ref<const std::string&>();
        if (!value.contains(name)) return at(joined(place.text(), name), "missing");
      }
    }
    const auto properties = schema.find("properties");
    const auto others = schema.find("additionalProperties");
    for (const auto& [key, inner] : value.items()) {
      const Json* rule = others != schema.end() ? &*others : nullptr;
      if (properties != schema.end())
        if (const auto own = properties->find(key); own != properties->end()) rule = &*own;
      std::string found = rule ? fault(*rule, inner, {.above = &place, .key = key}) : std::string();
      if (!found.empty()) return found;
    }
    return {};
  }

  std::string combined_fault(const Json& schema, const Json& value, const Place& place) const {
    if (const auto ref = schema.find("$ref"); ref != schema.end()) {
      std::string found = fault(target(ref->get_ref<const std::string&>()), value, place);
      if (!found.empty()) return found;
    }
    if (const auto all = schema.find("allOf"); all != schema.end()) {
      for (const Json& part : *all) {
        std::string found = fault(part, value, place);
        if (!found.empty()) return found;
      }
    }
    const auto condition = schema.find("if");
    if (condition == schema.end()) return {};
    const auto branch = schema.find(fault(*condition, value, place).empty() ? "then" : "else");
    return branch == schema.end() ? std::string() : fault(*branch, value, place);
  }

  // Of "#/$defs/axes", a pointer without its '#'.
  const Json& target(const std::string& reference) const {
    const auto found = targets_.find(reference);
    if (found != targets_.end()) return *found->second;
    const Json& named = root_.at(Json::json_pointer(reference.substr(1)));
    targets_.emplace(reference, &named);
    return named;
  }

  static std::string shown(const Json& value) {
    if (value.is_structured()) return value.is_array() ? "an array" : "an object";
    const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return text.size() <= 60 ? text : text.substr(0, 57) + "...";
  }

  const Json& root_;
  mutable std::map<std::string, const Json*> targets_;
};

// The path of the first, below `path`; nothing where there is none.
std::optional<std::string> find_non_finite(const Json& value, const std::string& path) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) return path;
  if (!value.is_structured()) return {};
  size_t index = 0;
  for (const auto& [key, inner] : value.items()) {
    const std::string place =
        value.is_array() ? fmt::format("{}[{}]", path, index++) : joined(path, key);
    std::optional<std::string> found = find_non_finite(inner, place);
    if (found) return found;
  }
  return {};
}

}  // namespace

std::string json_schema_fault(const Json& schema, const Json& value) {
  refuse_unknown_keywords(schema);
  return Validator(schema).fault(schema, value, {});
}

const Json& row_schema() {
  static const Json schema = [] {
    Json parsed = Json::parse(kSchemaText);
    refuse_unknown_keywords(parsed);
    return parsed;
  }();
  return schema;
}

std::string non_finite_place(const Json& value) {
  const std::optional<std::string> found = find_non_finite(value, "");
  return found && found->empty() ? "the value" : found.value_or("");
}

// Neither JSON Schema nor nlohmann's writer, which prints null, refuses what is not finite.
std::string schema_fault(const Json& row) {
  const std::string place = non_finite_place(row);
  if (!place.empty()) return at(place, "NaN and infinity are not JSON");
  thread_local const Validator validator(row_schema());
  return validator.fault(row_schema(), row, {});
}

}  // namespace attn
