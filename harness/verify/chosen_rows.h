// The positions at which outputs are compared: where tiles and chunks go wrong, and others at
// random.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/rng.h"

namespace attn {

// Ascending: the first and the last position, those on both sides of the last edges of tiles of 32
// to 512 positions, and random others, `count` in all (or as many as the edges need). All of them
// if there are no more.
std::vector<int64_t> chosen_rows(int64_t length, int64_t count, Rng random);

// Ascending: a random one of each run of 64 positions, which one pass of a kernel may answer, and
// the last of all.
std::vector<int64_t> a_row_of_each_tile(int64_t length, Rng random);

// How many positions of so many sequences and heads: at least 64 rows in all, and at least 16
// positions of each head.
int64_t positions_to_compare(int64_t batch, int64_t heads);

}  // namespace attn
