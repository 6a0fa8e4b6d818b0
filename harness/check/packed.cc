// The check `packed`: of sequences packed one behind the other, each is answered as alone, and so
// are its gradients; nothing passes a border. Costs a pass for each sequence, and eight packed
// ones.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/autograd/grad_or_zeros.h"
#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "harness/check/variant_checks.h"
#include "variants/api/mixer.h"
#include "variants/api/packed_forward.h"

namespace attn {
namespace {

// A sequence of one position, a tile and one more than tiles, two of one length, for what is kept
// by length, and the longest neither first nor last.
constexpr int64_t kPackedLengths[] = {17, 1, 65, 17, 5, 32};

std::vector<int64_t> lengths_to_pack(const Subject& subject, AttentionShape shape) {
  std::vector<int64_t> lengths;
  for (const int64_t length : kPackedLengths) {
    shape.q_len = shape.kv_len = length;
    if (subject.can_run(shape)) lengths.push_back(length);
  }
  return lengths;
}

struct PackedGradients {
  Tensor output;                        // packed
  std::vector<Tensor> inputs, weights;  // packed, as what was read; of learned weights
};

class PackedSubject {
 public:
  PackedSubject(const Attention& attention, const AttentionShape& shape,
                const std::vector<int64_t>& lengths)
      : attention_(attention), packing_(lengths) {
    for (int64_t s = 0; s < packing_.count(); ++s) {
      AttentionShape own = shape;
      own.q_len = own.kv_len = packing_.length(s);
      shapes_.push_back(own);
      const auto seed = static_cast<uint64_t>(200 + s);
      inputs_.push_back(make_inputs(attention, own, seed));
      seeds_.push_back(make_seed(own, seed));
    }
  }

  const Packing& packing() const { return packing_; }
  const AttentionShape& shape(int64_t s) const { return shapes_[static_cast<size_t>(s)]; }
  const Tensor& seed(int64_t s) const { return seeds_[static_cast<size_t>(s)]; }
  Inputs& inputs(int64_t s) { return inputs_[static_cast<size_t>(s)]; }

  Gradients alone(int64_t s) {
    return gradients_of(attention_, inputs(s), mask_of(shape(s)), seed(s));
  }

  // A pass over all; `only`: whose answers have a gradient, of no other sequence; -1: of all.
  PackedGradients run(int64_t only = -1) const {
    std::vector<Var> leaves;
    Tensor seed;
    for (int64_t s = 0; s < packing_.count(); ++s) {
      const std::vector<Tensor> blocks = read_blocks(s);
      for (size_t i = 0; i < blocks.size(); ++i) {
        if (s == 0)
          leaves.emplace_back(Tensor({packing_.positions() * blocks[i].dim(1), blocks[i].dim(3)}),
                              true);
        packing_.block(leaves[i].value(), s).copy_from(blocks[i]);
      }
      if (s == 0) seed = Tensor::zeros(leaves[0].shape());
      if (only < 0 || only == s)
        packing_.block(seed, s).copy_from(as_read(seeds_[static_cast<size_t>(s)]));
    }
    for (const Weight& weight : attention_.weights()) weight.value.zero_grad();
    const Var out = packed_forward(attention_, leaves, packing_);
    if (out.requires_grad()) out.backward(seed);
    PackedGradients found{.output = out.value(), .inputs = {}, .weights = {}};
    for (const Var& leaf : leaves) found.inputs.push_back(grad_or_zeros(leaf).clone());
    for (const Weight& weight : attention_.weights())
      if (weight.learned) found.weights.push_back(grad_or_zeros(weight.value).clone());
    return found;
  }

  // A block of what was packed by heads, as the forward of one sequence has it.
  Tensor by_heads(const Tensor& packed, int64_t s) const {
    const Tensor block = packing_.block(packed, s);
    if (!is_mixer()) return block;
    const NoGrad no_grad;
    return split_heads(Var(block.reshaped({1, block.dim(2), block.dim(3)})), heads()).value();
  }

  std::vector<std::string> names() const {
    if (is_mixer()) return {"the rows"};
    std::vector<std::string> all = {"q", "k", "v"};
    for (const GateInput& gate : attention_.gates()) all.push_back(gate.name);
    return all;
  }
  std::vector<Tensor> read_of(const Gradients& back) const {
    if (is_mixer()) return {back.v};
    std::vector<Tensor> all = {back.q, back.k, back.v};
    all.insert(all.end(), back.gates.begin(), back.gates.end());
    return all;
  }

 private:
  bool is_mixer() const { return as_mixer(attention_) != nullptr; }
  int64_t heads() const { return attention_.config().heads; }
  // [1, heads, len, dim] as it is packed: of a mixer with one head.
  Tensor as_read(const Tensor& x) const {
    if (!is_mixer()) return x;
    const NoGrad no_grad;
    const Tensor rows = merge_heads(Var(x)).value();
    return rows.reshaped({1, 1, rows.dim(1), rows.dim(2)});
  }
  std::vector<Tensor> read_blocks(int64_t s) const {
    const Inputs& x = inputs_[static_cast<size_t>(s)];
    if (is_mixer()) return {as_read(x.v)};
    std::vector<Tensor> all = {x.q, x.k, x.v};
    all.insert(all.end(), x.gates.begin(), x.gates.end());
    return all;
  }

  const Attention& attention_;
  Packing packing_;
  std::vector<AttentionShape> shapes_;
  std::vector<Inputs> inputs_;
  std::vector<Tensor> seeds_;
};

// Rounding of sums of as many terms as the longest sequence has, in gradients of sums of sums.
double bound_of(const PackedSubject& packed) { return 4 * tolerance(packed.packing().longest()); }

void expect_as_alone(const PackedSubject& packed, const std::vector<Gradients>& all_alone,
                     const PackedGradients& found, Verdict& verdict) {
  const std::vector<std::string> names = packed.names();
  std::vector<Tensor> sums;
  for (int64_t s = 0; s < packed.packing().count(); ++s) {
    const Gradients& alone = all_alone[static_cast<size_t>(s)];
    const Gap apart = gap(packed.by_heads(found.output, s), alone.output);
    verdict.expect(apart.size, bound_of(packed),
                   "row {} of packed sequence {} is off by {:.1e} against that sequence alone ({})",
                   apart.row, s, apart.size, text(packed.shape(s)));
    const std::vector<Tensor> wanted = packed.read_of(alone);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double off = gap(packed.by_heads(found.inputs[i], s), wanted[i]).size;
      verdict.expect(off, bound_of(packed),
                     "the gradient of {} of packed sequence {} is off by {:.1e} against that "
                     "sequence alone ({})",
                     names[i], s, off, text(packed.shape(s)));
    }
    for (size_t i = 0; i < alone.weights.size(); ++i) {
      if (s == 0) sums.push_back(Tensor::zeros(alone.weights[i].shape()));
      sums[i].add(alone.weights[i]);
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    const double size = std::max(largest(sums[i]), 1.0);
    double off = 0;
    for (int64_t at = 0; at < sums[i].size(); ++at)
      off = std::max(off, std::abs(static_cast<double>(found.weights[i][at] - sums[i][at])) / size);
    verdict.expect(off, 10 * bound_of(packed),
                   "the gradient of learned weight {} is off by {:.1e} against the sum of those of "
                   "each packed sequence alone",
                   i, off);
  }
}

// A neighbour with other inputs changes no answer and no gradient.
void expect_no_leak(PackedSubject& packed, int64_t changed, const Attention& attention,
                    const PackedGradients& before, Verdict& verdict) {
  const Inputs own = packed.inputs(changed);
  packed.inputs(changed) = make_inputs(attention, packed.shape(changed), 300, 3);
  const PackedGradients after = packed.run();
  packed.inputs(changed) = own;
  const std::vector<std::string> names = packed.names();
  for (int64_t s = 0; s < packed.packing().count(); ++s) {
    if (s == changed) continue;
    const Gap moved = gap(packed.by_heads(after.output, s), packed.by_heads(before.output, s));
    verdict.expect(moved.size, bound_of(packed),
                   "row {} of packed sequence {} moved by {:.1e} when sequence {} was changed",
                   moved.row, s, moved.size, changed);
    for (size_t i = 0; i < names.size(); ++i) {
      const double off =
          gap(packed.by_heads(after.inputs[i], s), packed.by_heads(before.inputs[i], s)).size;
      verdict.expect(off, bound_of(packed),
                     "the gradient of {} of packed sequence {} moved by {:.1e} when sequence {} "
                     "was changed",
                     names[i], s, off, changed);
    }
  }
}

// Answers of one sequence have no gradient in another.
void expect_own_gradients(const PackedSubject& packed, int64_t only, Verdict& verdict) {
  const PackedGradients found = packed.run(only);
  const std::vector<std::string> names = packed.names();
  for (int64_t s = 0; s < packed.packing().count(); ++s) {
    if (s == only) continue;
    for (size_t i = 0; i < names.size(); ++i) {
      const double size = largest(packed.by_heads(found.inputs[i], s));
      verdict.require(size == 0,
                      "{} of packed sequence {} has a gradient of {:.1e} from answers of sequence "
                      "{} alone",
                      names[i], s, size, only);
    }
  }
}

}  // namespace

void check_packed(const Subject& subject, Verdict& verdict) {
  std::set<std::tuple<int64_t, int64_t, bool>> done;  // with an odd width, no block is aligned
  for (AttentionShape shape : subject.shapes(ShapeKind::self, 7)) {
    if (!done.insert({shape.heads, shape.head_dim, shape.causal}).second) continue;
    shape.batch = 1;
    const std::vector<int64_t> lengths = lengths_to_pack(subject, shape);
    if (lengths.size() < 2) continue;
    shape.q_len = shape.kv_len = *std::max_element(lengths.begin(), lengths.end());
    const auto attention = subject.build(shape);
    move_weights(*attention, 31);
    PackedSubject packed(*attention, shape, lengths);
    std::vector<Gradients> alone;
    for (int64_t s = 0; s < packed.packing().count(); ++s) alone.push_back(packed.alone(s));
    const PackedGradients found = packed.run();
    expect_as_alone(packed, alone, found, verdict);
    {
      const ScopedThreads two(threads() == 1 ? 2 : 1);  // sequences are shared out otherwise
      expect_as_alone(packed, alone, packed.run(), verdict);
    }
    const int64_t last = packed.packing().count() - 1;
    for (const int64_t s : {int64_t{0}, last / 2, last}) {
      expect_no_leak(packed, s, *attention, found, verdict);
      expect_own_gradients(packed, s, verdict);
    }
  }
}

}  // namespace attn
