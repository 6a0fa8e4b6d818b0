// How the answer behind a figure was compared, at the figure's own shape; see harness/verify.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace attn {

// reference: with the declared mathematics. pieces: with answers that were themselves compared, of
// shorter sequences or of the other way of computing them. identities: with other answers of the
// variant to inputs for which the two must agree. From the strongest to the weakest.
enum class VerifiedBy { reference, pieces, identities };

struct Verified {
  VerifiedBy by = VerifiedBy::reference;
  std::vector<int64_t> shape;  // batch, heads, length, head_dim
  int64_t rows = 0;            // of the outputs that were compared, of all heads and visits
  // The largest difference, over the largest entry of its row (over at least 0.01 of the largest
  // entry of all rows), and what rounding is allowed.
  double error = 0, bound = 0;
  // Of mode train: of the gradients of all inputs and weights along one random direction, each over
  // its length.
  std::optional<double> gradient_error, gradient_bound;
  std::vector<std::string> identities;  // that were compared, where by identities
  double seconds = 0;                   // that comparing took, of all visits
};

// Of two visits: rows and seconds together, the errors nearest to their bounds, the weaker means.
void add_visit(Verified& sum, const Verified& visit);

}  // namespace attn
