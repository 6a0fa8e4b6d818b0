// Rows in the forms that other programs read: flat objects, and the JSON of Google Benchmark.
#pragma once

#include <string>
#include <vector>

#include "harness/compare/row_pairs.h"

namespace attn {

// A flat object for each row, for render_csv() and json: the row, with the machine, the build and
// the commit of its run below "environment". The learning curve is left out, and the samples too.
std::vector<Json> row_lines(const std::vector<RowsFile>& runs);

// A flat object for each sample of the speed rows that are ok: "time_s", with "visit" and "sample"
// (both from 0), beside the cell, the variant and the axes.
std::vector<Json> sample_lines(const std::vector<RowsFile>& runs);

// What `--benchmark_format=json` of Google Benchmark 1.7 prints, of the speed rows that are ok:
// "context" and "benchmarks", an entry for each sample, then the mean, the median, the standard
// deviation and the coefficient of variation of each cell. Times in nanoseconds. attnbench measures
// no CPU time: "cpu_time" repeats "real_time", and "context" says so.
// Error where the runs are of two machines or builds: the format has one context.
Json google_benchmark(const std::vector<RowsFile>& runs);

}  // namespace attn
