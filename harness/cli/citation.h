// BibTeX entries of the program and of rows, for `attnbench cite`.
#pragma once

#include <string>
#include <vector>

#include "harness/compare/row_pairs.h"

namespace attn::cli {

// What CITATION.cff says of the program.
struct Citation {
  std::string title, version;
  std::string released;  // 2026-11-27; "": not yet
  std::vector<std::string> authors;
};
Citation read_citation(const std::string& cff);
Citation own_citation();

// Of this program.
std::string bibtex_of_program();
// Of rows files: an entry for each version and commit that measured any of them, which are not this
// program's, and one for the rows of each file. No key comes twice.
struct CitedRows {
  std::vector<RowsFile> runs;
  std::string checksum;
};
std::string bibtex_of_rows(const std::vector<CitedRows>& files);

// Of what the lines say: the hash of the sorted hashes of all lines, so that neither their order
// nor how JSON is written counts.
std::string checksum_of(const std::vector<Json>& lines);

}  // namespace attn::cli
