// Structs to JSON and back, by one list of their fields. A struct takes part by a function beside
// it, found by its argument:
//
//   template <class Archive>
//   void fields(Archive& archive, Point& point) {
//     archive("x", point.x);      // always written; required when read, unless it is optional
//     archive.maybe("y", point.y);  // left out where it is empty; may lack or be null when read
//     archive.added("z", point.z);  // always written; may lack or be null in older files
//   }
//
// Enums take part by their names (core/base/enum_names.h). Optional values are null where they are
// empty. What does not fit is an Error of one line with its place: "metrics.flops: expected number,
// got null".
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/enum_names.h"
#include "core/base/params.h"
#include "harness/store/rows.h"

namespace attn {

template <class T>
Json json_of(const T& value);
template <class T>
void read_json(const Json& json, const std::string& place, T& value);

class JsonWriter {
 public:
  static constexpr bool reads = false;

  template <class T>
  void operator()(const char* name, const T& value) {
    object[name] = json_of(value);
  }
  template <class T>
  void maybe(const char* name, const T& value) {
    if (!is_empty(value)) (*this)(name, value);
  }
  // An empty text is null.
  void text_or_null(const char* name, const std::string& text) {
    object[name] = text.empty() ? Json() : Json(text);
  }
  void constant(const char* name, const char* text) { object[name] = text; }
  void null(const char* name) { object[name] = nullptr; }
  void require(const char*) {}
  template <class T>
  void added(const char* name, const T& value) {
    (*this)(name, value);
  }

  Json object = Json::object();

 private:
  template <class T>
  static bool is_empty(const std::optional<T>& value) {
    return !value;
  }
  static bool is_empty(const Json& value) { return value.empty(); }
  static bool is_empty(bool value) { return !value; }
  static bool is_empty(int64_t value) { return value == 0; }
  template <class T>
  requires requires(const T& value) { value.empty(); }
  static bool is_empty(const T& value) { return value.empty(); }
};

class JsonReader {
 public:
  static constexpr bool reads = true;

  JsonReader(const Json& object, std::string place) : object_(object), place_(std::move(place)) {
    ATTN_CHECK(object.is_object(), "{}expected object, got {}", place_.empty() ? "" : place_ + ": ",
               object.type_name());
  }
  template <class T>
  void operator()(const char* name, T& value) {
    const Json* const found = find(name);
    ATTN_CHECK(found, "{}: missing", place_of(name));
    read_json(*found, place_of(name), value);
  }
  template <class T>
  void operator()(const char* name, std::optional<T>& value) {
    maybe(name, value);
  }
  template <class T>
  void maybe(const char* name, T& value) {
    const Json* const found = find(name);
    if (found && !found->is_null())
      read_json(*found, place_of(name), value);
    else
      value = T{};
  }
  void text_or_null(const char* name, std::string& text) {
    require(name);
    maybe(name, text);
  }
  // Also of what may be null.
  void require(const char* name) { ATTN_CHECK(find(name), "{}: missing", place_of(name)); }
  template <class T>
  void added(const char* name, T& value) {
    maybe(name, value);
  }
  void constant(const char*, const char*) {}
  void null(const char*) {}
  bool is_null(const char* name) const {
    const Json* const found = find(name);
    return found && found->is_null();
  }

 private:
  const Json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  std::string place_of(const char* name) const {
    return place_.empty() ? name : place_ + "." + name;
  }

  const Json& object_;
  std::string place_;
};

namespace fields_detail {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;
// A map by name, or pairs of a name and a value in an order of their own.
template <class T>
inline constexpr bool is_named = false;
template <class T>
inline constexpr bool is_named<std::map<std::string, T>> = true;
template <class T>
inline constexpr bool is_named<std::vector<std::pair<std::string, T>>> = true;

inline void expect(bool fits, const std::string& place, const char* kind, const Json& json) {
  ATTN_CHECK(fits, "{}: expected {}, got {}", place, kind, json.type_name());
}

// 64.0 is a whole number too, as other writers of JSON have it.
template <class T>
T whole_number(const Json& json, const std::string& place) {
  if (json.is_number_unsigned()) {
    const auto number = json.get<uint64_t>();
    ATTN_CHECK(std::in_range<T>(number), "{}: {} is too large", place, number);
    return static_cast<T>(number);
  }
  const bool is_whole = json.is_number_float() &&
                        std::trunc(json.get<double>()) == json.get<double>() &&
                        std::abs(json.get<double>()) < 9e15;
  expect(json.is_number_integer() || is_whole, place, "integer", json);
  const auto number = json.get<int64_t>();
  ATTN_CHECK(std::in_range<T>(number), "{}: {} is out of range", place, number);
  return static_cast<T>(number);
}

}  // namespace fields_detail

template <class T>
Json json_of(const T& value) {
  using namespace fields_detail;
  if constexpr (std::is_same_v<T, Json> || std::is_arithmetic_v<T> ||
                std::is_same_v<T, std::string>) {
    return Json(value);
  } else if constexpr (std::is_enum_v<T>) {
    return Json(name_of(value));
  } else if constexpr (std::is_same_v<T, ParamValue>) {
    return std::visit([](const auto& held) { return Json(held); }, value);
  } else if constexpr (std::is_same_v<T, Params>) {
    return json_of(value.values());
  } else if constexpr (is_optional<T>) {
    return value ? json_of(*value) : Json();
  } else if constexpr (is_named<T>) {
    Json object = Json::object();
    for (const auto& [name, item] : value) object[name] = json_of(item);
    return object;
  } else if constexpr (is_list<T>) {
    Json list = Json::array();
    for (const auto& item : value) list.push_back(json_of(item));
    return list;
  } else {
    JsonWriter archive;
    T copy = value;  // one list of fields for both ways, and reading changes what it is given
    fields(archive, copy);
    return std::move(archive.object);
  }
}

template <class T>
void read_json(const Json& json, const std::string& place, T& value) {
  using namespace fields_detail;
  if constexpr (std::is_same_v<T, Json>) {
    value = json;
  } else if constexpr (std::is_same_v<T, bool>) {
    expect(json.is_boolean(), place, "boolean", json);
    value = json.get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    value = whole_number<T>(json, place);
  } else if constexpr (std::is_floating_point_v<T>) {
    expect(json.is_number(), place, "number", json);
    value = json.get<T>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    expect(json.is_string(), place, "string", json);
    value = json.get<std::string>();
  } else if constexpr (std::is_enum_v<T>) {
    expect(json.is_string(), place, "string", json);
    const std::optional<T> found = value_named<T>(json.get<std::string>());
    ATTN_CHECK(found, "{}: {} is unknown", place, one_line(json.dump(-1, ' ', true), 60));
    value = *found;
  } else if constexpr (std::is_same_v<T, ParamValue>) {
    if (json.is_boolean())
      value = json.get<bool>();
    else if (json.is_number_integer())
      value = json.get<int64_t>();
    else if (json.is_number())
      value = json.get<double>();
    else
      expect(json.is_string(), place, "number, boolean or string", json),
          value = json.get<std::string>();
  } else if constexpr (std::is_same_v<T, Params>) {
    std::map<std::string, ParamValue> values;
    read_json(json, place, values);
    value = Params::unchecked(std::move(values));
  } else if constexpr (is_optional<T>) {
    value.reset();
    if (!json.is_null()) read_json(json, place, value.emplace());
  } else if constexpr (is_named<T>) {
    expect(json.is_object(), place, "object", json);
    value.clear();
    for (const auto& [name, item] : json.items()) {
      typename T::value_type entry{name, {}};
      read_json(item, place + "." + name, entry.second);
      value.insert(value.end(), std::move(entry));
    }
  } else if constexpr (is_list<T>) {
    expect(json.is_array(), place, "array", json);
    value.clear();
    for (const Json& item : json) {
      const std::string inside = fmt::format("{}[{}]", place, value.size());
      read_json(item, inside, value.emplace_back());
    }
  } else {
    JsonReader archive(json, place);
    fields(archive, value);
  }
}

template <class T>
T read_json(const Json& json) {
  T value{};
  read_json(json, "", value);
  return value;
}

}  // namespace attn
