// Tables as LaTeX, in the form of the package booktabs; see table.h.
#include <map>
#include <string_view>

#include "harness/tables/table.h"

namespace attn {
namespace {

// What LaTeX reads as a command, and what fonts of its default encoding lack.
const std::map<std::string_view, const char*>& replacements() {
  static const std::map<std::string_view, const char*> list = {{"\\", "\\textbackslash{}"},
                                                               {"{", "\\{"},
                                                               {"}", "\\}"},
                                                               {"$", "\\$"},
                                                               {"&", "\\&"},
                                                               {"#", "\\#"},
                                                               {"%", "\\%"},
                                                               {"_", "\\_"},
                                                               {"~", "\\textasciitilde{}"},
                                                               {"^", "\\textasciicircum{}"},
                                                               {"<", "\\textless{}"},
                                                               {">", "\\textgreater{}"},
                                                               {"|", "\\textbar{}"},
                                                               {"\"", "\\textquotedbl{}"},
                                                               {"±", "$\\pm$"},
                                                               {"×", "$\\times$"},
                                                               {"·", "$\\cdot$"},
                                                               {"√", "$\\surd$"},
                                                               {"−", "$-$"},
                                                               {"→", "$\\to$"},
                                                               {"²", "$^2$"},
                                                               {"‡", "\\ddag{}"}};
  return list;
}

size_t bytes_of(char first) {  // of a character in UTF-8
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// A bracket after the end of a line would be taken for the distance to the next.
std::string line_of_cells(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    if (&cell != &cells[0]) line += " & ";
    line +=
        &cell == &cells[0] && cell.starts_with('[') ? "{}" + latex_text(cell) : latex_text(cell);
  }
  return "    " + line + " \\\\\n";
}

}  // namespace

std::string latex_text(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const std::string_view character = std::string_view(text).substr(i, bytes_of(text[i]));
    const auto found = replacements().find(character);
    if (found != replacements().end())
      result += found->second;
    else if (character.size() == 1 && static_cast<unsigned char>(character[0]) < 0x20)
      result += ' ';  // an empty line would end the paragraph
    else
      result += character;
    i += character.size();
  }
  return result;
}

std::string render_latex(const Table& table) {
  std::string text =
      "% needs \\usepackage{booktabs}, \\usepackage[T1]{fontenc}\n\\begin{table}\n  \\centering\n"
      "  \\caption{" +
      latex_text(table.title) + "}\n  \\begin{tabular}{l" +
      std::string(table.columns.empty() ? 0 : table.columns.size() - 1, 'r') +
      "}\n    \\toprule\n" + line_of_cells(table.columns) + "    \\midrule\n";
  for (const auto& row : table.rows) text += line_of_cells(row);
  text += "    \\bottomrule\n  \\end{tabular}\n";
  for (const std::string& note : notes_under(table))
    text += "  \\par\\footnotesize " + latex_text(note) + "\n";
  return text + "\\end{table}\n\n";
}

}  // namespace attn
