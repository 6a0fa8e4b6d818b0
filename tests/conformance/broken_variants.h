// Textbook attention, right and with one fault at a time: what each contract check must catch, and
// nothing else.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "variants/api/variant_info.h"

namespace attn {

// Softmax attention composed from ops; keeps every promise that a variant can make.
VariantInfo textbook();
// The same with wrong gradients of keys, which it declares.
VariantInfo surrogate();
// Throws at length 7.
VariantInfo throwing();

struct BrokenVariant {
  VariantInfo info;
  std::vector<std::string> red;  // the checks that must fail, in the order in which they run
};
void PrintTo(const BrokenVariant& broken, std::ostream* out);
std::vector<BrokenVariant> broken_variants();

}  // namespace attn
