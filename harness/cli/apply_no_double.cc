// What is computed in double, of a build without the double twins (ATTN_F64=OFF, as under the
// sanitizers).
#include "core/base/check.h"
#include "harness/cli/apply_run.h"

namespace attn_apply {
namespace {

[[noreturn]] void refuse() {
  attn::throw_error("apply needs double precision, which this build leaves out (ATTN_F64=OFF)");
}

}  // namespace

Output run_double(const Request&) { refuse(); }
LayerOutput layer_double(const LayerRequest&) { refuse(); }

}  // namespace attn_apply
