// double_checks.h for a build without double libraries (ATTN_F64=OFF, as with the sanitizers).
// Checks that need double precision are then skipped.
#include "core/base/check.h"
#include "harness/check/double_checks.h"

namespace attn_check {

bool checks_in_double() { return false; }

std::vector<Result> check_in_double(
    const std::string& variant,
    const std::map<std::string, std::variant<int64_t, double, bool, std::string>>&, Level,
    const std::string&) {
  attn::throw_error(fmt::format("{}: this build has no checks in double (ATTN_F64=OFF)", variant));
}

}  // namespace attn_check
