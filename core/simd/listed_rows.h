// Products with the rows of a matrix that a list names, in its order: edges, chosen keys. They run
// on the instruction set that isa.h selects. 2·count·dim FLOPs a sum or a set of dots.
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

// A list of rows of a matrix with `dim` columns.
struct ListedRows {
  int64_t count, dim;
  const int32_t* indices;
  bool in_memory = false;  // the matrix is no longer cached: the first two products fetch its rows
  const real* row(const real* matrix, int64_t e) const { return matrix + indices[e] * dim; }
};
// out = Σ_e weights[e]·row e of `matrix`
void weighted_rows(const ListedRows& rows, const real* weights, const real* matrix, real* out);
// dots[e] = x·row e of `matrix`
void dots_with_rows(const ListedRows& rows, const real* x, const real* matrix, real* dots);
// The same. If `to` is not null, row e of `to` += factors[e]·x.
void dots_and_add(const ListedRows& rows, const real* x, const real* matrix, const real* factors,
                  real* dots, real* to);
// If `sum` is not null, sum += Σ_e factors[e]·row e of `matrix`. If `to` is not null, row e of `to`
// += factors[e]·x.
void sum_and_add(const ListedRows& rows, const real* x, const real* matrix, const real* factors,
                 real* sum, real* to);

}  // namespace attn
