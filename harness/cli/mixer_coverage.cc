// A table for each library, and what no variant here does; see mixer_coverage.h.
#include "harness/cli/mixer_coverage.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "core/base/check.h"
#include "harness/plan/mixers.h"

namespace attn::cli {
namespace {

struct KindWords {
  MixerKind kind;
  const char* before;  // what stands before `by` on the line of a mixer
  const char* total;
};
constexpr KindWords kWords[] = {{MixerKind::variant, "", "a variant here"},
                                {MixerKind::stack, "stack ", "a stack of variants"},
                                {MixerKind::option, "option: ", "an option"},
                                {MixerKind::none, "no mixer: ", "no mixer"},
                                {MixerKind::missing, "missing: ", "missing"}};

const char* word_before(MixerKind kind) {
  return std::find_if(std::begin(kWords), std::end(kWords),
                      [kind](const KindWords& words) { return words.kind == kind; })
      ->before;
}

std::map<MixerKind, size_t> kind_totals() {
  std::map<MixerKind, size_t> count;
  for (const MixerLibrary& library : all_mixers().libraries)
    for (const ShippedMixer& mixer : library.mixers) ++count[mixer.kind];
  return count;
}

std::string library_text(const MixerLibrary& library) {
  std::string text = fmt::format("{} {} ({})\n", library.name, library.version, library.source);
  size_t width = 0;
  for (const ShippedMixer& mixer : library.mixers) width = std::max(width, mixer.name.size());
  for (const ShippedMixer& mixer : library.mixers)
    text += fmt::format("  {:<{}}  {}{}{}\n", mixer.name, width, word_before(mixer.kind), mixer.by,
                        mixer.note.empty() ? "" : "; " + mixer.note);
  return text + "\n";
}

std::string missing_text(const MissingMixer& mixer) {
  const size_t threads = mixer.asked.size();
  return fmt::format("  {}: {}; {}; shipped by {}{}\n", mixer.name, mixer.summary, mixer.paper,
                     join(mixer.libraries, ", "),
                     threads == 0   ? ""
                     : threads == 1 ? "; asked for in " + mixer.asked[0]
                                    : fmt::format("; asked for in {} threads", threads));
}

}  // namespace

std::string mixer_coverage_text() {
  const MixerSurvey& survey = all_mixers();
  std::string text;
  for (const MixerLibrary& library : survey.libraries) text += library_text(library);
  size_t total = 0;
  std::vector<std::string> parts;
  const std::map<MixerKind, size_t> count = kind_totals();
  for (const KindWords& words : kWords) {
    const auto found = count.find(words.kind);
    if (found == count.end()) continue;
    total += found->second;
    parts.push_back(fmt::format("{} {}", found->second, words.total));
  }
  text += fmt::format("{} mixers of {} libraries: {}\n", total, survey.libraries.size(),
                      join(parts, ", "));
  if (!survey.missing.empty()) text += "\nmissing here, the most asked first\n";
  for (const MissingMixer& mixer : survey.missing) text += missing_text(mixer);
  return text + "\nhere alone\n  " + join(survey.ours_alone, " ") + "\n";
}

Json mixer_coverage_json() {
  const MixerSurvey& survey = all_mixers();
  Json libraries = Json::array(), missing = Json::array(), total = Json::object();
  for (const MixerLibrary& library : survey.libraries) {
    Json mixers = Json::array();
    for (const ShippedMixer& mixer : library.mixers)
      mixers.push_back({{"name", mixer.name},
                        {"kind", name_of(mixer.kind)},
                        {"by", mixer.by},
                        {"note", mixer.note}});
    libraries.push_back({{"name", library.name},
                         {"version", library.version},
                         {"source", library.source},
                         {"mixers", std::move(mixers)}});
  }
  for (const MissingMixer& mixer : survey.missing)
    missing.push_back({{"name", mixer.name},
                       {"summary", mixer.summary},
                       {"paper", mixer.paper},
                       {"libraries", mixer.libraries},
                       {"asked", mixer.asked}});
  for (const auto& [kind, count] : kind_totals()) total[name_of(kind)] = count;
  return {{"libraries", std::move(libraries)},
          {"totals", std::move(total)},
          {"missing", std::move(missing)},
          {"ours_alone", survey.ours_alone}};
}

}  // namespace attn::cli
