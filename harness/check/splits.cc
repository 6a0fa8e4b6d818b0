// Several positions on a filled state, as a prompt in chunks or speculated tokens have them, beside
// one pass; see decoding_case.h. Popular code fails at an append that is neither the first nor a
// single position: a mask without the offset of what is held, or a state at the edge of a chunk.
#include "harness/check/decoding_case.h"

namespace attn {
namespace {

constexpr int64_t kTile = 16;  // the smallest: of chunks and vectors, whose multiples others are

void compare_part(const DecodingCase& c, const Tensor& rows, const Tensor& all, int64_t begin,
                  const std::string& how, Verdict& verdict) {
  const Gap off = gap(rows, part(all, 2, begin, begin + rows.dim(2)));
  verdict.expect(off.size, c.allowed,
                 "position {} is off by {:.1e} against one pass, where {} ({})", begin + off.row,
                 off.size, how, c.name());
}

}  // namespace

void compare_splits(const DecodingCase& c, Verdict& verdict) {
  const int64_t n = c.shape.kv_len;
  for (int64_t first = 0; first < n; ++first) {
    const DecodeSteps steps = c.steps_after(first, n);
    const Inputs x = c.inputs(68, steps);
    const Tensor all = c.output(x, steps);
    for (int64_t second = first + 1; second <= n; ++second) {
      const auto decoder = c.decoder();
      extend(*decoder, x, 0, first);
      const std::string how =
          fmt::format("{} positions are held and {} come at once", first, second - first);
      compare_part(c, answered(*decoder, x, first, second), all, first, how, verdict);
      if (second == n) continue;
      compare_part(c, answered(*decoder, x, second, n), all, second,
                   fmt::format("{}, then {} more", how, n - second), verdict);
      const DecodeSteps after_chunks = c.steps_after(second, n);
      const Inputs y = c.inputs(68, after_chunks);
      const auto filled = c.decoder();
      extend(*filled, y, 0, first);
      extend(*filled, y, first, second);
      compare_part(c, answered(*filled, y, second, n), c.output(y, after_chunks), second,
                   fmt::format("a prompt comes in chunks of {} and {}, and {} after it at once",
                               first, second - first, n - second),
                   verdict);
    }
  }
}

void compare_long_splits(const DecodingCase& c, bool every, Verdict& verdict) {
  const int64_t n = c.shape.kv_len;
  const DecodeSteps steps = c.steps_after(n - 1, n);
  const Inputs x = c.inputs(69, steps);
  const Tensor all = c.output(x, steps);
  for (int64_t cut = 1; cut < n - 1; ++cut) {
    const int64_t edge = cut % kTile;
    if (!every && edge > 1 && edge < kTile - 1) continue;
    const auto decoder = c.decoder();
    extend(*decoder, x, 0, cut);
    extend(*decoder, x, cut, n - 1);
    compare_part(c, answered(*decoder, x, n - 1, n), all, n - 1,
                 fmt::format("a prompt comes in chunks of {} and {}", cut, n - 1 - cut), verdict);
  }
}

}  // namespace attn
