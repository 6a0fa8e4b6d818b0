// See mark.h.
#include "harness/plugin/mark.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "core/base/check.h"
#include "harness/plugin/entry.h"

namespace attn {
namespace {

constexpr size_t kLongestMark = 400;

using Fields = std::map<std::string, std::string>;

Fields fields_of(std::string_view mark) {
  Fields fields;
  for (size_t begin = 0; begin <= mark.size();) {
    const size_t end = std::min(mark.find('|', begin), mark.size());
    const std::string_view field = mark.substr(begin, end - begin);
    if (const size_t equals = field.find('='); equals != std::string_view::npos)
      fields[std::string(field.substr(0, equals))] = field.substr(equals + 1);
    begin = end + 1;
  }
  return fields;
}

struct Named {
  const char *field, *text;  // of the text: what the plug-in has, what this program has
};
constexpr Named kNamed[] = {
    {"version", "it was built for attnbench {}; this is attnbench {}"},
    {"interface", "it was built with other headers than this program's ({}; here {})"},
    {"compiler", "it was built by {}; this program by {}"},
    {"library", "it was built with the standard library {}; this program with {}"},
    {"instructions", "it was compiled for {}; this program for {}"},
    {"checks", "it was built with checks: {}; this program with checks: {}"},
    {"real", "its `real` is {}; this program's is {}"}};

// Versions of one compiler share the application binary interface of C++ ("g++ 12" and "g++ 14"):
// the program of a wheel takes what another version builds.
bool agree(std::string_view field, const std::string& there, const std::string& here) {
  if (field != "compiler") return there == here;
  return there.substr(0, there.find(' ')) == here.substr(0, here.find(' '));
}

std::string difference(const std::string& mark, const std::string& own) {
  Fields there = fields_of(mark), here = fields_of(own);
  for (const Named& named : kNamed)
    if (!agree(named.field, there[named.field], here[named.field]))
      return fmt::format(fmt::runtime(named.text), there[named.field], here[named.field]);
  return "";
}

bool is_double(const std::string& mark) { return fields_of(mark)["real"] == "double"; }

}  // namespace

std::vector<std::string> marks_in(std::string_view file) {
  const std::string_view begin = ATTN_MARK_BEGIN;
  std::vector<std::string> marks;
  for (size_t at = file.find(begin); at != std::string_view::npos;
       at = file.find(begin, at + begin.size())) {
    const std::string_view rest = file.substr(at, kLongestMark);
    const size_t end = rest.find('\0');
    if (end != std::string_view::npos) marks.emplace_back(rest.substr(0, end));
  }
  return marks;
}

std::string own_mark() { return ATTN_PLUGIN_MARK; }

std::string why_unfit(const std::vector<std::string>& marks, const std::string& own,
                      bool needs_double) {
  if (marks.empty()) return "it is no plug-in of attnbench; attnbench_add_plugin builds one";
  const auto in_double = std::find_if(marks.begin(), marks.end(), is_double);
  const auto in_float = std::find_if_not(marks.begin(), marks.end(), is_double);
  const std::string& mark = in_float == marks.end() ? marks[0] : *in_float;
  if (std::string why = difference(mark, own); !why.empty()) return why;
  if (needs_double && in_double == marks.end())
    return "it has no double build, in which its gradients are checked";
  return "";
}

}  // namespace attn
