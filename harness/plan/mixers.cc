// Text of TOML to libraries and their mixers; see mixers.h.
#include "harness/plan/mixers.h"

#include <algorithm>
#include <map>

#include "core/base/check.h"
#include "harness/plan/toml_reader.h"
#include "harness/plan/variant_choices.h"
#include "variants/catalog.h"

namespace attn {

extern const char* const kMixersText;

namespace {

class MixersFile {
 public:
  explicit MixersFile(const std::string& file) : reader_(file), file_(file) {}

  MixerSurvey read(std::string_view text) {
    const TomlValue top = parse_toml(file_, text);
    reader_.require_keys(top, "a survey of mixers", {"missing", "ours_alone", "library"});
    MixerSurvey survey;
    for (const TomlValue* const item : items(top, "missing")) add_missing(*item);
    for (const TomlValue* const item : items(top, "ours_alone")) {
      survey.ours_alone.push_back(reader_.text_of("ours_alone", *item));
      require_variants(*item, survey.ours_alone.back());
    }
    for (const TomlValue* const item : items(top, "library"))
      survey.libraries.push_back(library_of(*item));
    for (auto& [name, mixer] : missing_) survey.missing.push_back(std::move(mixer));
    std::stable_sort(survey.missing.begin(), survey.missing.end(),
                     [](const MissingMixer& a, const MissingMixer& b) {
                       return a.libraries.size() + a.asked.size() >
                              b.libraries.size() + b.asked.size();
                     });
    return survey;
  }

 private:
  std::vector<const TomlValue*> items(const TomlValue& table, const char* key) const {
    const TomlValue* const value = table.find(key);
    if (!value) reader_.refuse(table.line, fmt::format("there is no {}", key));
    return reader_.items_of(key, *value);
  }

  std::string text(const TomlValue& table, const char* key, bool is_needed = true) const {
    const TomlValue* const value = table.find(key);
    if (!value && is_needed) reader_.refuse(table.line, fmt::format("there is no {}", key));
    return value ? reader_.text_of(key, *value) : "";
  }

  void require_variants(const TomlValue& place, const std::string& spec) const {
    reader_.at(place, [&] { return resolve_variants({parse_spec(spec)}); });
  }

  void add_missing(const TomlValue& table) {
    reader_.require_keys(table, "a missing mixer", {"name", "summary", "paper", "asked"});
    MissingMixer mixer{.name = text(table, "name"),
                       .summary = text(table, "summary"),
                       .paper = text(table, "paper"),
                       .asked = {},
                       .libraries = {}};
    if (table.find("asked"))
      for (const TomlValue* const thread : items(table, "asked"))
        mixer.asked.push_back(reader_.text_of("asked", *thread));
    if (!variant_named(mixer.name)) missing_.emplace(mixer.name, mixer);
  }

  MixerLibrary library_of(const TomlValue& table) {
    reader_.require_keys(table, "[[library]]", {"name", "version", "source", "mixers"});
    MixerLibrary library{.name = text(table, "name"),
                         .version = text(table, "version"),
                         .source = text(table, "source"),
                         .mixers = {}};
    for (const TomlValue* const item : items(table, "mixers"))
      library.mixers.push_back(mixer_of(*item, library.name));
    return library;
  }

  ShippedMixer mixer_of(const TomlValue& table, const std::string& library) {
    reader_.require_keys(table, "a mixer", {"name", "variant", "stack", "option", "none", "note"});
    ShippedMixer mixer{.name = text(table, "name"), .note = text(table, "note", false)};
    int kinds = 0;
    for (const auto& [kind, name] : names_of(MixerKind{})) {  // `missing` is no key of a mixer
      if (!table.find(name)) continue;
      mixer.kind = kind;
      mixer.by = text(table, name);
      ++kinds;
    }
    if (kinds != 1)
      reader_.refuse(table.line,
                     fmt::format("mixer '{}' of {} has {} of variant, stack, option and none; "
                                 "write one of them",
                                 mixer.name, library, kinds));
    const auto found = missing_.find(mixer.by);
    if (mixer.kind == MixerKind::variant && found != missing_.end()) {
      mixer.kind = MixerKind::missing;
      std::vector<std::string>& named = found->second.libraries;
      if (named.empty() || named.back() != library) named.push_back(library);
    } else if (mixer.kind == MixerKind::variant || mixer.kind == MixerKind::stack) {
      require_variants(table, mixer.by);
    }
    return mixer;
  }

  TomlReader reader_;
  const std::string& file_;
  std::map<std::string, MissingMixer> missing_;
};

}  // namespace

MixerSurvey read_mixers(const std::string& file, std::string_view text) {
  return MixersFile(file).read(text);
}

const MixerSurvey& all_mixers() {
  static const MixerSurvey survey = read_mixers("profiles/mixers.toml", kMixersText);
  return survey;
}

}  // namespace attn
