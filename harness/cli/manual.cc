// See manual.h.
#include "harness/cli/manual.h"

#include <string_view>

#include "core/base/check.h"
#include "harness/cli/topics.h"
#include "harness/measure/build_info.h"

namespace attn::cli {
namespace {

// As roff prints it: a backslash and a hyphen are escaped, and so is what a line may not begin
// with.
std::string roff(std::string_view text) {
  std::string escaped;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else
      escaped += c;
    at_start = c == '\n';
  }
  return escaped;
}

std::string section_of(const Verb& verb) {
  std::string text = fmt::format(".SS attnbench {} {}\n{}.\n", roff(verb.name), roff(verb.usage),
                                 roff(verb.summary));
  for (const Option& option : verb.options)
    text += fmt::format(".TP\n\\fB{}\\-\\-{}\\fR {}\n{}\n",
                        option.letter ? fmt::format("\\-{}, ", option.letter) : "",
                        roff(option.name), roff(option.value), roff(option.help));
  return text;
}

}  // namespace

std::string manual_page(const std::vector<Verb>& verbs) {
  std::string text = fmt::format(
      ".TH ATTNBENCH 1 \"\" \"attnbench {}\"\n"
      ".SH NAME\nattnbench \\- compares attention variants on this machine\n"
      ".SH SYNOPSIS\n\\fBattnbench\\fR \\fIVERB\\fR [\\fIOPTION\\fR...]\n"
      ".SH VERBS\n",
      kBuildInfo.version);
  for (const Verb& verb : verbs) text += section_of(verb);
  for (const std::string& topic : topic_names())
    text += fmt::format(".SH \"{}\"\n.nf\n{}.fi\n", roff(topic), roff(topic_text(topic)));
  return text;
}

}  // namespace attn::cli
