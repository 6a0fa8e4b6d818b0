// What a child process writes: it makes a reply whatever it holds, and of each measure a result.
#include "harness/cell/codec.h"
#include "harness/process/outcome.h"
#include "tests/fuzz/oracle.h"
#include "tests/fuzz/targets.h"

namespace attn::fuzz {
namespace {

// What is read of a reply and sent again is the same.
template <class Read>
void check_found(const Reply& reply, const Read& read) {
  const auto found = found_in(reply, read);
  if (!found) return;
  const Json sent = reply_with(*found);
  require(reply_with(read(reply_of(sent))) == sent, "a reply changes when sent: " + sent.dump());
}

}  // namespace

void reply(std::string_view bytes) {
  ChildResult child;
  child.output = bytes;
  const Reply reply = outcome_of(child, 1);
  require(reply.is_ok() == reply.reason.empty(), "a reply's reason");
  if (bytes.size() < 100'000)  // the tail of standard error, of which a line is kept
    child.error_tail = bytes, child.code = 1, require(is_one_line(outcome_of(child, 1).reason), "");
  check_found(reply, visit_of);
  check_found(reply, verdict_of);
  check_found(reply, calibration_of);
  check_found(reply, pilot_figures_of);
  for (const Measure measure : kMeasures) {
    const CellResult result = result_of(reply, measure);
    require((result.status == Status::ok) == result.reason.empty(), "a result's reason");
    if (result.status != Status::ok) continue;
    const Json sent = reply_with(measure, result);
    require(reply_with(measure, result_of(reply_of(sent), measure)) == sent,
            "a result changes when sent: " + sent.dump());
    const Json finite = with_finite_figures(sent, Status::failed);
    require(non_finite_place(finite).empty(), "a figure that is not finite");
  }
}

}  // namespace attn::fuzz
