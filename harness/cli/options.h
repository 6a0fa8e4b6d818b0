// Command-line and config-file options of a verb. Boost.Program_options works behind this header,
// in options.cc alone.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

namespace attn::cli {

struct Option {
  std::string name;  // long name, without dashes
  char letter = 0;   // short form, or 0
  std::string
      value;  // name of the value in the help; "": a flag; "=NAME": may stand alone, as true
  std::string help;
  bool repeated = false;
};

struct Verb;

// What was given. Flags are present with the value "true".
class Arguments {
 public:
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  std::string get(const std::string& name, const std::string& fallback = "") const;
  std::vector<std::string> all(const std::string& name) const;
  const std::vector<std::string>& words() const { return words_; }  // positional arguments
  const std::vector<std::string>& as_given() const {
    return as_given_;
  }  // the command line after the verb
  int64_t integer(const std::string& name, int64_t fallback, int64_t min, int64_t max) const;
  std::string one_of(const std::string& name,
                     const std::vector<std::string>& choices) const;  // first: the default

  // Adds what the file says and the command line does not. One file a sweep: the same option names,
  // `name = value`.
  void merge_config(const std::string& path, const Verb& verb);
  // The same of an open file; `path` names it in an Error.
  void merge_config(std::istream& file, const std::string& path, const Verb& verb);

 private:
  friend Arguments parse(const Verb& verb, const std::vector<std::string>& arguments);
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> words_, as_given_;
};

struct Verb {
  std::string name;
  std::string usage;    // what follows the verb: "[NAME...]"
  std::string summary;  // one line
  std::vector<Option> options;
  size_t max_words = 0;  // positional arguments allowed
  int (*run)(const Arguments& arguments) = nullptr;
  bool loads_plugins = true;  // those of its option --plugin; false: it names sources
};

// --plugin, of every verb that names variants or tasks; main.cc loads what it names.
Option plugin_option();

Arguments parse(const Verb& verb, const std::vector<std::string>& arguments);
std::string help_of(const Verb& verb);

}  // namespace attn::cli
