// Parsing with Boost.Program_options; errors are rewritten to name the nearest known option. See
// options.h.
#include "harness/cli/options.h"

#include <boost/program_options.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "core/base/byte_order_mark.h"
#include "core/base/io_error.h"
#include "core/base/nearest.h"

namespace attn::cli {
namespace {

namespace po = boost::program_options;

bool may_stand_alone(const Option& option) { return option.value.starts_with('='); }

po::options_description describe_options(const Verb& verb) {
  po::options_description description;
  for (const Option& option : verb.options) {
    const std::string names = option.letter ? option.name + "," + option.letter : option.name;
    if (option.value.empty())
      description.add_options()(names.c_str(), po::bool_switch(), "");
    else if (may_stand_alone(option))
      description.add_options()(names.c_str(), po::value<std::string>()->implicit_value("true"),
                                "");
    else
      description.add_options()(names.c_str(), po::value<std::string>(), "");
  }
  return description;
}

const Option* find_option(const Verb& verb, const std::string& name) {
  for (const Option& option : verb.options)
    if (option.name == name) return &option;
  return nullptr;
}

std::string unknown_option(const Verb& verb, const std::string& name) {
  if (name == "device" || name == "gpu" || name == "cuda")
    return fmt::format("unknown option '{}'; attnbench measures this machine's processor alone",
                       name);
  std::vector<std::string> names;
  for (const Option& option : verb.options) names.push_back(option.name);
  return fmt::format("unknown option '{}'{} (attnbench {} --help lists them)", name,
                     nearest_note(name, names), verb.name);
}

std::string without_dashes(std::string name) {
  name.erase(0, name.find_first_not_of('-'));
  return name.substr(0, name.find('='));
}

// What Boost says of an option. Its own what() puts the name in until no mark is left, which never
// ends for an option that is named as the mark.
std::string message_of(const po::error_with_option_name& error) {
  std::string text = error.std::logic_error::what();
  constexpr std::string_view kMark = "%canonical_option%";
  const size_t at = text.find(kMark);
  return at == std::string::npos ? text : text.replace(at, kMark.size(), error.get_option_name());
}

std::string_view without_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

// "name = value" lines of a config file; '#' begins a comment.
std::vector<po::option> config_lines(std::istream& file) {
  std::vector<po::option> options;
  std::string line;
  for (int64_t number = 1; std::getline(file, line); number++) {
    const std::string_view all = number == 1 ? past_byte_order_mark(line) : std::string_view(line);
    const std::string_view text = without_blanks(all.substr(0, all.find('#')));
    if (text.empty()) continue;
    const size_t equals = text.find('=');
    ATTN_CHECK(equals != std::string_view::npos && equals > 0, "line {}: '{}' is not name = value",
               number, text);
    const std::string name(without_blanks(text.substr(0, equals)));
    options.emplace_back(
        name, std::vector<std::string>{std::string(without_blanks(text.substr(equals + 1)))});
  }
  return options;
}

using GivenValues = std::map<std::string, std::vector<std::string>>;

void collect(const Verb& verb, const std::vector<po::option>& options, GivenValues& values,
             std::vector<std::string>& words) {
  for (const po::option& option : options) {
    if (option.position_key >= 0) {
      words.push_back(option.value.at(0));
      continue;
    }
    const Option* known = find_option(verb, option.string_key);
    ATTN_CHECK(known, "{}", unknown_option(verb, option.string_key));
    std::vector<std::string>& list = values[known->name];
    const std::string value = option.value.empty() ? "true" : option.value[0];
    ATTN_CHECK(known->repeated || list.empty(), "option '{}' is given twice: '{}' and '{}'",
               known->name, list.empty() ? "" : list[0], value);
    list.push_back(value);
  }
}

template <class T>
bool read_all(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Arguments parse(const Verb& verb, const std::vector<std::string>& arguments) {
  const po::options_description description = describe_options(verb);
  Arguments result;
  result.as_given_ = arguments;
  try {
    using namespace po::command_line_style;
    const auto parsed = po::command_line_parser(arguments)
                            .options(description)
                            .style(unix_style & ~allow_guessing)
                            .run();
    collect(verb, parsed.options, result.values_, result.words_);
  } catch (const po::unknown_option& error) {
    throw_error(unknown_option(verb, without_dashes(error.get_option_name())));
  } catch (const po::error_with_option_name& error) {
    throw_error(message_of(error));
  } catch (const po::error& error) {
    throw_error(error.what());
  }
  ATTN_CHECK(result.words_.size() <= verb.max_words,
             "unexpected argument '{}'; usage: attnbench {} {}", result.words_[verb.max_words],
             verb.name, verb.usage);
  return result;
}

void Arguments::merge_config(const std::string& path, const Verb& verb) {
  std::ifstream file(path);
  ATTN_IO_CHECK(file.good() && !std::filesystem::is_directory(path),
                "cannot read the config file '{}'", path);
  merge_config(file, path, verb);
}

void Arguments::merge_config(std::istream& file, const std::string& path, const Verb& verb) {
  GivenValues from_file;
  std::vector<std::string> words;
  try {
    collect(verb, config_lines(file), from_file, words);
  } catch (const Error& error) {
    throw_error(fmt::format("{}: {}", path, error.what()));
  }
  for (auto& [name, list] : from_file) {
    ATTN_CHECK(name != "config", "{}: a config file cannot name another", path);
    for (std::string& value : list)  // quotes as a shell would take them away
      if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
        value = value.substr(1, value.size() - 2);
    const bool flag = find_option(verb, name)->value.empty();
    ATTN_CHECK(!flag || list[0] == "true" || list[0] == "false",
               "{}: {} = {} is not valid; expected true or false", path, name, list[0]);
    if (has(name) || (flag && list[0] == "false")) continue;
    values_[name] = std::move(list);
  }
}

std::string Arguments::get(const std::string& name, const std::string& fallback) const {
  const auto it = values_.find(name);
  return it == values_.end() ? fallback : it->second.front();
}

std::vector<std::string> Arguments::all(const std::string& name) const {
  const auto it = values_.find(name);
  return it == values_.end() ? std::vector<std::string>() : it->second;
}

int64_t Arguments::integer(const std::string& name, int64_t fallback, int64_t min,
                           int64_t max) const {
  if (!has(name)) return fallback;
  int64_t value = 0;
  ATTN_CHECK(read_all(get(name), value) && value >= min && value <= max,
             "--{} {} is not valid; expected a whole number in {}..{}", name, get(name), min, max);
  return value;
}

std::string Arguments::one_of(const std::string& name,
                              const std::vector<std::string>& choices) const {
  const std::string value = get(name, choices.front());
  std::string list;
  for (const std::string& choice : choices) list += (list.empty() ? "" : ", ") + choice;
  ATTN_CHECK(std::find(choices.begin(), choices.end(), value) != choices.end(),
             "--{} {} is not valid; expected one of {}", name, value, list);
  return value;
}

Option plugin_option() {
  return {"plugin", 0, "FILE.so",
          "load a plug-in's variants and tasks, or python:FILE.py:NAME (attnbench help plugins, "
          "python); repeatable",
          true};
}

std::string help_of(const Verb& verb) {
  std::string text =
      fmt::format("usage: attnbench {} {}\n\n{}\n\n", verb.name, verb.usage, verb.summary);
  for (const Option& option : verb.options) {
    std::string left = option.letter ? fmt::format("  -{}, --{}", option.letter, option.name)
                                     : fmt::format("      --{}", option.name);
    if (may_stand_alone(option))
      left += "[" + option.value + "]";
    else if (!option.value.empty())
      left += " " + option.value;
    text += left.size() < 33 ? fmt::format("{:<33} {}\n", left, option.help)
                             : fmt::format("{}\n{:<33} {}\n", left, "", option.help);
  }
  return text;
}

}  // namespace attn::cli
