// A comparison in the XML of JUnit, as continuous integration reads it; see report.h.
#include <algorithm>

#include "core/base/check.h"
#include "harness/compare/report.h"

namespace attn {
namespace {

// A text as the value of an attribute. Control characters have no form in XML 1.0, nor have U+FFFE
// and U+FFFF (EF BF BE and EF BF BF in UTF-8).
std::string attribute(const std::string& text) {
  std::string escaped;
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      escaped += '?';
    else if (text.compare(i, 3, "\xEF\xBF\xBE") == 0 || text.compare(i, 3, "\xEF\xBF\xBF") == 0)
      escaped += '?', i += 2;
    else
      escaped += c;
  }
  return escaped;
}

// "slower: 1.052 (1.041 to 1.063) by 3 and 3 visits".
std::string finding(const Compared& pair) {
  std::string text = verdict_word(pair.measure, pair.verdict);
  if (pair.change) text += fmt::format(": {:.4g}", *pair.change);
  if (pair.low && pair.high) text += fmt::format(" ({:.4g} to {:.4g})", *pair.low, *pair.high);
  return text + (pair.is_ratio ? " times OLD" : " more than OLD") + ", by " + pair.basis;
}

std::string test_case(const char* measure, const std::string& label, const std::string& inside) {
  return fmt::format("    <testcase classname=\"attnbench.{}\" name=\"{}\">{}</testcase>\n",
                     measure, attribute(label), inside);
}

}  // namespace

std::string junit_xml(const Comparison& comparison) {
  const size_t tests = comparison.pairs.size() + comparison.left_out.size();
  const std::string counts =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"", tests,
                  comparison.count(Judgement::worse), comparison.left_out.size());
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {0}>\n  <testsuite "
      "name=\"attnbench compare\" {0}>\n",
      counts);
  for (const Compared& pair : comparison.pairs) {
    const std::string found = attribute(finding(pair));
    text += test_case(name_of(pair.measure), pair.label,
                      pair.verdict == Judgement::worse
                          ? fmt::format("<failure type=\"regression\" message=\"{}\"/>", found)
                          : fmt::format("<system-out>{}</system-out>", found));
  }
  for (const LeftOut& pair : comparison.left_out)
    text += test_case(name_of(pair.measure), pair.label,
                      fmt::format("<skipped message=\"{}\"/>", attribute(pair.reason)));
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace attn
