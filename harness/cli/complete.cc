// See complete.h.
#include "harness/cli/complete.h"

#include <algorithm>

#include "harness/cli/describe.h"
#include "harness/cli/run_options.h"
#include "harness/cli/topics.h"
#include "harness/cli/variant_filter.h"
#include "harness/plan/profiles.h"
#include "harness/plan/shapes.h"
#include "tasks/catalog.h"
#include "variants/catalog.h"

namespace attn::cli {
namespace {

using Texts = std::vector<std::string>;

std::string up_to(const std::string& text, size_t end) { return text.substr(0, end); }

Texts values_of_param(const ParamSpec& spec) {
  if (std::holds_alternative<bool>(spec.value)) return {"false", "true"};
  return spec.choices == Texts{""} ? Texts{} : spec.choices;
}

// "linformer[rank=64,sh" to "linformer[rank=64,share_heads=" and so on.
Texts inside_brackets(const std::string& typed, const std::vector<ParamSpec>& params) {
  const size_t begin = typed.find_last_of("[,") + 1;
  const size_t equals = typed.find('=', begin);
  Texts found;
  for (const ParamSpec& spec : params) {
    if (equals == std::string::npos) found.push_back(up_to(typed, begin) + spec.name + "=");
    if (equals != std::string::npos && typed.substr(begin, equals - begin) == spec.name)
      for (const std::string& value : values_of_param(spec))
        found.push_back(up_to(typed, equals + 1) + value);
  }
  return found;
}

template <class Infos, class ParamsOf>
Texts specs(const std::string& typed, const Infos& infos, ParamsOf params_of) {
  Texts found;
  const size_t bracket = typed.find('[');
  for (const auto& info : infos) {
    if (bracket == std::string::npos) {
      found.push_back(info.name);
      if (info.name == typed && !params_of(info).empty()) found.push_back(info.name + "[");
    } else if (info.name == up_to(typed, bracket)) {
      found = inside_brackets(typed, params_of(info));
    }
  }
  return found;
}

Texts variant_specs(const std::string& typed) {
  Texts found = specs(typed, all_variants(), [](const VariantInfo& info) { return info.params; });
  if (typed.find('[') == std::string::npos) found.emplace_back("python:");
  return found;
}

Texts task_specs(const std::string& typed) {
  return specs(typed, all_tasks(), [](const TaskInfo& info) { return info.accepted(); });
}

// A list: what follows its last comma.
Texts with_front(const std::string& typed, const Texts& items) {
  Texts found;
  for (const std::string& item : items)
    found.push_back(up_to(typed, typed.find_last_of(',') + 1) + item);
  return found;
}

Texts profile_names() {
  Texts names;
  for (const ProfileInfo& info : all_profiles()) names.push_back(info.name);
  return names;
}

Texts shape_names() {
  Texts names;
  for (const ModelShape& shape : all_shapes()) names.push_back(shape.name);
  return names;
}

Texts values_of_option(const std::string& option, const std::string& typed) {
  if (option == "variant") return variant_specs(typed);
  if (option == "task") return task_specs(typed);
  if (option == "profile") return profile_names();
  if (option == "shape") return with_front(typed, shape_names());
  if (option == "measure") return with_front(typed, {"speed", "memory", "accuracy", "fidelity"});
  if (option == "family") return with_front(typed, all_families());
  if (option == "trait") return with_front(typed, trait_names());
  if (option == "color") return {"auto", "always", "never"};
  for (const AxisInfo& axis : all_axes())
    if (option_of(axis) == option) return with_front(typed, values_of_param(axis.spec));
  return {};
}

// The option that `word` names and that takes the next word as its value; null: none.
const Option* expecting(const Verb& verb, const std::string& word) {
  for (const Option& option : verb.options) {
    const bool is_named =
        word == "--" + option.name || (option.letter && word == std::string("-") + option.letter);
    if (is_named && !option.value.empty() && option.value[0] != '=') return &option;
  }
  return nullptr;
}

Texts option_words(const Verb& verb, const std::string& typed) {
  Texts found;
  const size_t equals = typed.find('=');
  for (const Option& option : verb.options) {
    const std::string word = "--" + option.name;
    if (equals == std::string::npos) {
      found.push_back(word);
    } else if (up_to(typed, equals) == word) {
      for (const std::string& value : values_of_option(option.name, typed.substr(equals + 1)))
        found.push_back(word + "=" + value);
    }
  }
  if (equals == std::string::npos) found.emplace_back("--help");
  return found;
}

Texts joined_lists(Texts a, const Texts& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// What a word without a dash may be.
Texts plain_words(const std::vector<Verb>& verbs, const Texts& words) {
  const std::string &verb = words.front(), &typed = words.back();
  if (verb == "info" || verb == "check")
    return joined_lists(variant_specs(typed), task_specs(typed));
  if (verb == "sample") return task_specs(typed);
  if (verb == "list") return {"variants", "tasks", "profiles", "shapes", "machine"};
  if (verb == "completion") return {"bash", "zsh", "fish"};
  if (verb == "new" && words.size() == 2) return {"variant", "task"};
  if (verb != "help") return {};
  Texts names = topic_names();
  for (const Verb& known : verbs) names.push_back(known.name);
  return names;
}

Texts candidates(const std::vector<Verb>& verbs, const Texts& words) {
  const std::string& typed = words.back();
  if (words.size() == 1) {
    Texts names = {"help", "--help", "--version"};
    for (const Verb& verb : verbs) names.push_back(verb.name);
    return names;
  }
  for (const Verb& verb : verbs) {
    if (verb.name != words.front()) continue;
    if (const Option* const option = expecting(verb, words[words.size() - 2]))
      return values_of_option(option->name, typed);
    if (typed.starts_with('-')) return option_words(verb, typed);
  }
  return plain_words(verbs, words);
}

}  // namespace

std::vector<std::string> completions(const std::vector<Verb>& verbs,
                                     const std::vector<std::string>& words) {
  if (words.empty()) return {};
  Texts found = candidates(verbs, words);
  std::erase_if(found, [&](const std::string& text) { return !text.starts_with(words.back()); });
  return found;
}

}  // namespace attn::cli
