// Who is searched against whom: each variant of a sweep against each kernel of exact attention,
// where all axes but length are equal; and the curve of each pair from rows.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "harness/cell/row.h"
#include "harness/crossing/search.h"

namespace attn {

struct Contest {
  Measure measure = Measure::speed;
  Axes axes;  // without length
  Plugin variant, rival;
  int64_t low = 0, high = 0;  // the lengths that are asked for
  std::set<int64_t> absent;   // lengths that the sweep leaves out
};

// Exact attention with each choice of its parameters, as a SPEC: "full[kernel=[tiled,…]]".
std::string rivals_spec();

// One for each variant and each rival of its measure and axes, between the least and the greatest
// of the lengths that the cells of the variant have. `variants` in the order in which they are to
// be shown; rivals only against rivals that come before them.
std::vector<Contest> contests_of(const std::vector<CellKey>& variants,
                                 const std::vector<CellKey>& rivals);
// The same from the rows of a search, of the variants that its run lines ask for. Rivals are the
// rows of exact attention.
std::vector<Contest> contests_of(const std::vector<Row>& rows, const RunConfig& config);

struct Standing {
  Curve curve;
  SearchState state;
  std::string why_unusable;  // of the first length that is: "full oom: …"; "": none
  size_t noisy = 0;          // rows among the points whose times were disturbed
};
// What the rows say of each contest, in the same order. Times are the means of log visits, and
// their variances are steadied over all speed rows (compare/times.h). Memory is `peak_bytes`, what
// the tables show: inputs, weights, outputs and temporaries.
std::vector<Standing> standings(const std::vector<Contest>& contests, const std::vector<Row>& rows);

// Whether a cell is of this contest: one of its two variants, its measure and its axes.
bool is_of(const Contest& contest, const CellKey& key);

}  // namespace attn
