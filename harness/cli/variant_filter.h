// Which variants `list` shows: --family, --trait, --year. A variant is shown that meets all of
// them.
#pragma once

#include <vector>

#include "harness/cli/options.h"
#include "variants/api/variant_info.h"

namespace attn::cli {

std::vector<Option> variant_filter_options();

class VariantFilter {
 public:
  // Error names a family, trait or year that cannot be, and the nearest one.
  explicit VariantFilter(const Arguments& arguments);

  bool is_empty() const { return families_.empty() && traits_.empty() && first_year_ == 0; }
  std::vector<const VariantInfo*> matching() const;  // in the order of the catalogue

 private:
  std::vector<std::string> families_, traits_;
  int64_t first_year_ = 0, last_year_ = 0;  // 0: not asked for
};

// In the order in which `list` shows them: families(), then those of files of Python.
std::vector<std::string> all_families();

}  // namespace attn::cli
