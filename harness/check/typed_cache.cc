// Compares decode steps with a cache of fewer bits with the variant's reference over the keys and
// values that such a cache gives back, rounded one by one in double; the state with what is
// declared. Costs a row of the reference a step. What rounding allows: cache_rounding.h.
#include <algorithm>
#include <cmath>
#include <memory>
#include <variant>

#include "core/base/parallel.h"
#include "core/ops/ops_heads.h"
#include "harness/check/variant_checks.h"
#include "variants/api/cache_rounding.h"

namespace attn {
namespace {

constexpr CacheType kLessThanFloat[] = {CacheType::bfloat16,     CacheType::int8,
                                        CacheType::int4,         CacheType::int8_int4,
                                        CacheType::int4_float32, CacheType::float32_int8};

struct CacheCase {
  const VariantInfo& info;
  const Attention& attention;
  AttentionShape shape;  // with its cache
  int64_t kv_heads;

  std::unique_ptr<Decoder> decoder() const {
    return attention.decoder(shape.batch, shape.kv_len, kv_heads, Dtype::float32, shape.cache);
  }
  // Every query head with its own keys and values, of the first `count` positions: its last row.
  oracle::Array wanted(const Inputs& x, int64_t count) const {
    const int64_t times = shape.heads / kv_heads;
    const Inputs first = part(x, 2, 0, count);
    const NoGrad no_grad;
    ReferenceInputs inputs =
        reference_inputs_of(attention,
                            {first.q, repeat_heads(Var(first.k), times).value(),
                             repeat_heads(Var(first.v), times).value(), first.gates},
                            {true, {}});
    inputs.rows = {count - 1};
    inputs.round_as_cached(shape.cache);
    return info.reference(inputs);
  }
  std::string name() const {
    return fmt::format("a cache of {}, {}, {} heads of keys for {}", name_of(shape.cache),
                       text(shape), kv_heads, shape.heads);
  }
};

// The answer to the position `at`, beside the reference.
void compare_step(const CacheCase& c, Decoder& decoder, const Inputs& x, int64_t at,
                  const std::string& when, Verdict& verdict) {
  const Inputs here = part(x, 2, at, at + 1);
  const Tensor out = Tensor::full(here.q.shape(), std::nanf(""));
  decoder.step(here.q, here.k, here.v, out, here.gates);
  const oracle::Array wanted = c.wanted(x, at + 1);
  double unit = 0.01, off = 0;
  for (int64_t m = 0; m < out.dim(0) * out.dim(1); ++m)
    for (const double value : wanted.row(m / out.dim(1), m % out.dim(1), at))
      unit = std::max(unit, std::abs(value));
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t m = i / out.dim(3);
    const double want = wanted.at(m / out.dim(1), m % out.dim(1), at, i % out.dim(3));
    const double gap = std::abs(static_cast<double>(out[i]) - want) / unit;
    off = std::isnan(gap) ? gap : std::max(off, gap);
    if (std::isnan(off)) break;
  }
  verdict.expect(off, tolerance(at + 1) + rounding_beside_cache(c.shape.cache),
                 "position {} {} is off by {:.1e} ({})", at, when, off, c.name());
}

// Steps after prefills, in turns, and a step that is taken back for another one.
void compare_answers(const CacheCase& c, Verdict& verdict) {
  const int64_t n = c.shape.kv_len;
  const Inputs x = make_inputs(c.attention, c.shape, 91),
               other = make_inputs(c.attention, c.shape, 92);
  const auto shared = [&](const Inputs& given) {
    return Inputs{given.q, part(given.k, 1, 0, c.kv_heads), part(given.v, 1, 0, c.kv_heads),
                  given.gates};
  };
  const Inputs mine = shared(x), others = shared(other);
  const auto decoder = c.decoder();
  compare_step(c, *decoder, mine, 0, "decoded alone", verdict);
  if (n < 8) return;
  extend(*decoder, mine, 1, n / 2);
  compare_step(c, *decoder, mine, n / 2, "decoded after a prefill", verdict);
  extend(*decoder, mine, n / 2 + 1, n - 3);
  compare_step(c, *decoder, mine, n - 3, "decoded after a second prefill", verdict);
  compare_step(c, *decoder, mine, n - 2, "decoded after another", verdict);
  const Inputs wrong = part(others, 2, n - 1, n);
  const Tensor out(wrong.q.shape());
  decoder->step(wrong.q, wrong.k, wrong.v, out, wrong.gates);
  decoder->step_back();
  compare_step(c, *decoder, mine, n - 1, "decoded in place of one that was taken back", verdict);
}

void compare_state(const CacheCase& c, Verdict& verdict) {
  const double held = static_cast<double>(c.decoder()->state_bytes()),
               declared = c.attention.state_bytes(c.shape, c.kv_heads);
  verdict.require(held == declared, "a state of {:.0f} bytes is held, {:.0f} declared ({})", held,
                  declared, c.name());
}

void check_cache_at(const Subject& subject, AttentionShape shape, int64_t kv_heads, CacheType cache,
                    Verdict& verdict) {
  shape.causal = true;
  shape.q_len = shape.kv_len;
  shape.cache = cache;
  if (subject.info.why_no_decoder(shape, subject.params)) return;
  const auto attention = subject.build(shape);
  move_weights(*attention, 93);
  const CacheCase c{subject.info, *attention, shape, kv_heads};
  compare_answers(c, verdict);
  compare_state(c, verdict);
}

// Past a tile of values, and past a window, whose cache is a ring that then wraps. A step costs a
// row of the reference: a window beyond 2000 is left alone.
int64_t length_past_window(const Subject& subject) {
  constexpr int64_t kLength = 300, kMostWindow = 2000, kBeyond = 40;
  const auto found = subject.params.values().find("window");
  if (found == subject.params.values().end()) return kLength;
  const int64_t* const window = std::get_if<int64_t>(&found->second);
  return window && *window <= kMostWindow ? std::max(kLength, *window + kBeyond) : kLength;
}

}  // namespace

void check_typed_cache(const Subject& subject, Verdict& verdict) {
  if (subject.only) {
    AttentionShape shape = *subject.only;
    shape.kv_len = length_past_window(subject);
    const int64_t shared = subject.only_kv_heads;
    check_cache_at(subject, shape, shared > 0 ? shared : shape.heads, shape.cache, verdict);
    return;
  }
  struct Size {
    int64_t length, batch, heads, kv_heads, head_dim;
  };
  // Lengths about the 32 newest positions, panels of keys and tiles of values; widths about a block
  // of 32 channels.
  std::vector<Size> sizes = {{1, 1, 1, 1, 8}, {45, 2, 2, 2, 33}, {300, 1, 4, 2, 16}};
  if (subject.full()) sizes.insert(sizes.end(), {{33, 1, 5, 1, 64}, {577, 1, 3, 3, 5}});
  for (const CacheType cache : kLessThanFloat)
    for (const Size& size : sizes)
      check_cache_at(subject,
                     {.batch = size.batch,
                      .heads = size.heads,
                      .kv_len = size.length,
                      .head_dim = size.head_dim},
                     size.kv_heads, cache, verdict);
  const ScopedThreads three_threads(3);
  check_cache_at(subject, {.batch = 1, .heads = 2, .kv_len = 1100, .head_dim = 8}, 2,
                 CacheType::int8, verdict);
}

}  // namespace attn
