// See packing.h. O(sequences·log sequences) beside the answers and one copy of them.
#include "variants/api/packing.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include "core/autograd/tape.h"
#include "core/base/check.h"
#include "core/base/parallel.h"

namespace attn {
namespace {

struct Answered {
  std::vector<Var, Recycled<Var>> inputs;  // leaves of a tape of this sequence alone
  Var out;
};
using AnsweredSequences = std::vector<Answered, Recycled<Answered>>;

// Calls `one(sequence)` for each.
void for_each_sequence(const std::vector<double>& work, int64_t parts, bool one_by_one,
                       FunctionRef<void(int64_t sequence)> one) {
  const int count = threads();
  if (one_by_one || count == 1) {
    for (int64_t s = 0; s < std::ssize(work); ++s) one(s);
    return;
  }
  const SequenceShares shares = share_sequences(work, count, parts);
  for (const int64_t s : shares.together) one(s);
  parallel_for(count, 1, [&](int64_t begin, int64_t end) {
    const ScopedThreads scoped(1);  // so that each thread takes the same way through a kernel
    for (int64_t t = begin; t < end; ++t)
      for (const int64_t s : shares.alone[static_cast<size_t>(t)]) one(s);
  });
}

void copy_into(const Tensor& block, const Tensor& from) {
  std::copy_n(from.data(), from.size(), block.data());
}

// Goes back through the tape of one sequence and leaves the gradients of its inputs in the blocks
// of `gradients`, whose undefined ones are of inputs that need none.
void go_back(const Packing& packing, int64_t sequence, Answered& of, const Tensor& seed,
             const std::vector<Tensor>& gradients, const std::vector<bool>& adds) {
  const Tensor own = packing.block(seed, sequence).reshaped(of.out.shape());
  if (of.out.requires_grad()) of.out.backward(own);
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const Tensor to = packing.block(gradients[i], sequence), &found = of.inputs[i].grad();
    if (!found.defined()) {
      if (!adds[i]) to.fill(0);
    } else if (adds[i]) {
      to.add(found);
    } else {
      copy_into(to, found);
    }
  }
  of = {};  // the tape of this sequence is done with
}

// What threads may wait for one another: splitting a sequence costs about as much.
constexpr double kEven = 1.05;

// What is behind the first `split` of `order`, to one thread each.
struct SharedOut {
  size_t split = 0;
  double longest = 0;  // that a thread takes
  std::vector<std::vector<int64_t>> alone;
};

SharedOut shared_out(const std::vector<int64_t>& order, size_t split,
                     const std::vector<double>& work, int threads) {
  SharedOut out{.split = split, .alone = {}};
  out.alone.resize(static_cast<size_t>(threads));
  std::vector<double> taken(static_cast<size_t>(threads));
  for (size_t i = split; i < order.size(); ++i) {
    const auto least = std::min_element(taken.begin(), taken.end());
    *least += work[static_cast<size_t>(order[i])];
    out.alone[static_cast<size_t>(least - taken.begin())].push_back(order[i]);
  }
  out.longest = *std::max_element(taken.begin(), taken.end());
  return out;
}

}  // namespace

Packing::Packing(std::vector<int64_t> lengths, std::vector<double> work)
    : lengths_(std::move(lengths)), borders_{0}, work_(std::move(work)) {
  ATTN_CHECK(!lengths_.empty(), "a packed array needs a sequence");
  for (const int64_t length : lengths_) {
    ATTN_CHECK(length >= 1, "a packed sequence of {} positions; at least 1 is needed", length);
    borders_.push_back(borders_.back() + length);
  }
  distinct_ = std::ssize(std::set<int64_t>(lengths_.begin(), lengths_.end()));
  if (work_.empty())
    for (const int64_t length : lengths_) work_.push_back(static_cast<double>(length * length));
  ATTN_CHECK(work_.size() == lengths_.size(), "the work of {} sequences for {}", work_.size(),
             lengths_.size());
}

int64_t Packing::longest() const { return *std::max_element(lengths_.begin(), lengths_.end()); }

int64_t Packing::heads_of(const Tensor& packed) const {
  ATTN_CHECK(packed.shape().rank() == 2 && packed.dim(0) % positions() == 0,
             "an array of {} packed positions is [positions · heads, width], got {}", positions(),
             packed.shape().str());
  return packed.dim(0) / positions();
}

Tensor Packing::block(const Tensor& packed, int64_t sequence) const {
  const int64_t heads = heads_of(packed), width = packed.dim(1);
  const int64_t first = borders_[static_cast<size_t>(sequence)];
  return Tensor::over({1, heads, length(sequence), width}, packed.data() + first * heads * width,
                      std::allocate_shared<Tensor>(Recycled<Tensor>(), packed));
}

SequenceShares share_sequences(const std::vector<double>& work, int threads, int64_t parts) {
  std::vector<int64_t> order(work.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto of = [&](int64_t s) { return work[static_cast<size_t>(s)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return of(a) > of(b); });
  double left = std::accumulate(work.begin(), work.end(), 0.0);
  size_t split = 0;  // the first so many are answered together
  for (; split < order.size() && of(order[split]) * threads > left; ++split)
    left -= of(order[split]);
  SharedOut best = shared_out(order, split, work, threads);
  if (best.longest > left / threads * kEven) {
    // Equal sequences leave at most one for each other thread over.
    const double share =
        static_cast<double>((parts + threads - 1) / threads) / static_cast<double>(parts);
    double before = 0;
    for (int more = 1; more < threads && split < order.size(); ++more) {
      before += of(order[split++]) * share;
      SharedOut next = shared_out(order, split, work, threads);
      next.longest += before;
      if (next.longest * kEven < best.longest) best = std::move(next);
    }
  }
  const auto end_of_together = order.begin() + static_cast<std::ptrdiff_t>(best.split);
  return {.together = {order.begin(), end_of_together}, .alone = std::move(best.alone)};
}

Var answer_each(const Packing& packing, std::span<const Var> inputs, int64_t parts,
                AtATime at_a_time, bool has_learned,
                FunctionRef<Var(std::span<const Var> blocks)> answer) {
  const bool records = recording(inputs) || (has_learned && !NoGrad::active());
  const Tensor out(inputs[0].shape());
  const auto all = std::allocate_shared<AnsweredSequences>(Recycled<AnsweredSequences>(),
                                                           static_cast<size_t>(packing.count()));
  for_each_sequence(packing.work(), parts, at_a_time == AtATime::nothing, [&](int64_t s) {
    Answered& own = (*all)[static_cast<size_t>(s)];
    for (const Var& input : inputs)
      own.inputs.emplace_back(packing.block(input.value(), s), records && input.requires_grad());
    own.out = answer(own.inputs);
    const Tensor to = packing.block(out, s);
    ATTN_CHECK(own.out.value().size() == to.size(), "sequence {} has {} numbers, its answer {}", s,
               to.shape().str(), own.out.shape().str());
    copy_into(to, own.out.value());
    if (!records) own = {};
  });
  if (!records) return Var(out);
  std::vector<Var> recorded(inputs.begin(), inputs.end());
  // Weights get their gradients from the tapes of the sequences. Where nothing else needs one, a
  // number that is never read makes this op be recorded.
  if (!recording(inputs)) recorded.emplace_back(Tensor::zeros({1}), true);
  return record_op(
      out, recorded, [=, count = inputs.size()](const Tensor& gradient, std::span<GradSlot> slots) {
        std::vector<Tensor> gradients(count);
        std::vector<bool> adds(count);
        for (size_t i = 0; i < count; ++i) {
          bool adds_to = false;
          if (slots[i].needed()) gradients[i] = slots[i].target(adds_to);
          adds[i] = adds_to;
        }
        for_each_sequence(packing.work(), parts, at_a_time != AtATime::all, [&](int64_t s) {
          go_back(packing, s, (*all)[static_cast<size_t>(s)], gradient, gradients, adds);
        });
      });
}

}  // namespace attn
