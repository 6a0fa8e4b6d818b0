// Rows and tables in the format that a person asked for: what `run`, `table` and `compare` print.
#pragma once

#include <string>
#include <vector>

#include "harness/tables/table.h"

namespace attn::cli {

// Of the formats that show tables: table, md or latex. Colour is for table alone.
std::string rendered(const std::string& format, const std::vector<Table>& tables, bool color);

// Of flat objects: json or csv.
std::string rendered(const std::string& format, const std::vector<Json>& lines);

// `lines` for json and csv, else `tables`, which show the same.
std::string rendered(const std::string& format, const std::vector<Json>& lines,
                     const std::vector<Table>& tables, bool color);

// Every table of these rows: by measure, the closing one, and with `with_ledger` the parity ledger.
// `floors`: of the machine of the rows.
std::vector<Table> every_table(const std::vector<Row>& rows, const NoiseFloor& floors,
                               bool with_ledger);

// Says which protocols the rows are by, as run lines hold them: below every table of md and latex,
// which may stand alone in a paper, else below the last. Rows of earlier versions name none.
void name_protocols(const std::vector<Json>& protocols, const std::string& format,
                    std::vector<Table>& tables);

// The rows themselves for json and csv, else every table of them.
std::string rendered(const std::string& format, const std::vector<Row>& rows,
                     const NoiseFloor& floors, bool with_ledger, bool color,
                     const std::vector<Json>& protocols = {});

// Prints `text`, or writes it into the file `path` where that is not "". Error where that is one of
// the `inputs`.
void deliver(const std::string& text, const std::string& path,
             const std::vector<std::string>& inputs);

}  // namespace attn::cli
