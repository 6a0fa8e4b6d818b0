// Comparisons of several visits as one; see verified.h.
#include "harness/measure/verified.h"

#include <algorithm>

namespace attn {

void add_visit(Verified& sum, const Verified& visit) {
  sum.rows += visit.rows;
  sum.seconds += visit.seconds;
  sum.by = std::max(sum.by, visit.by);
  if (visit.error * sum.bound > sum.error * visit.bound) {
    sum.error = visit.error;
    sum.bound = visit.bound;
  }
  if (visit.gradient_error &&
      (!sum.gradient_error ||
       *visit.gradient_error * *sum.gradient_bound > *sum.gradient_error * *visit.gradient_bound)) {
    sum.gradient_error = visit.gradient_error;
    sum.gradient_bound = visit.gradient_bound;
  }
  for (const std::string& name : visit.identities)
    if (std::find(sum.identities.begin(), sum.identities.end(), name) == sum.identities.end())
      sum.identities.push_back(name);
}

}  // namespace attn
