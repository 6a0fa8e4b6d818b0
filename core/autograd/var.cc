// The tape. A Record refers to the records of its inputs, not to their values, so that a value
// exists only as long as a Var or a backward function needs it. backward() visits the records in
// descending order of their sequence numbers: an op before its inputs.
#include "core/autograd/var.h"

#include <atomic>
#include <queue>
#include <utility>

#include "core/autograd/tape.h"

namespace attn {

using RecordPtr = std::shared_ptr<Record>;
using Records = std::vector<RecordPtr, Recycled<RecordPtr>>;

struct Record {
  uint64_t sequence = 0;
  Shape shape;
  Tensor gradient;  // on leaves: kept between backwards
  bool leaf = false;
  bool queued = false;
  bool filled = false;  // its gradient, by the backward that runs now
  Backward backward;    // empty once released
  Records inputs;       // null where no gradient is required

  RecordPtr next;  // while it waits to be freed

  ~Record() { release(inputs); }
  // Frees a chain of records in a loop, since destructors that call destructors would exhaust the
  // stack, and without memory of its own, since a destructor must not fail.
  static void release(Records& inputs) noexcept {
    RecordPtr waiting;  // a list of those that nobody else uses
    const auto drop = [&waiting](Records& records) {
      for (RecordPtr& record : records) {
        if (record.use_count() != 1) {  // absent, or still used
          record.reset();
          continue;
        }
        record->next = std::move(waiting);
        waiting = std::move(record);
      }
      records.clear();
    };
    drop(inputs);
    while (waiting) {
      const RecordPtr record = std::move(waiting);
      waiting = std::move(record->next);
      drop(record->inputs);
    }
  }
};

struct Node {
  Tensor value;
  RecordPtr record;  // null: requires no gradient
};

namespace {

std::atomic<uint64_t> next_sequence = 1;

struct Earlier {
  bool operator()(const RecordPtr& a, const RecordPtr& b) const {
    return a->sequence < b->sequence;
  }
};

// Leaves hand their gradient to optimisers that change it in place, so it must be theirs alone.
void make_unshared(Tensor& gradient) {
  if (gradient.defined() && !gradient.unshared()) gradient = gradient.clone();
}

// Where one backward leaves the gradients of its inputs. An input given several times has a buffer
// of its own each time, summed when the backward is done: fused ops share out their work by input,
// so that tasks which run at the same time add to different gradients.
class Slots {
 public:
  explicit Slots(const Records& inputs) : inputs_(inputs) {
    // Whatever can fail comes first: a flag that stayed set would lose the input's next gradient.
    // No slot and no gradient moves once it has been handed out.
    slots_.reserve(inputs.size());
    again_.reserve(repeats(inputs));
    for (const RecordPtr& input : inputs) {
      if (!input) {
        slots_.emplace_back(nullptr, Shape());
      } else if (!std::exchange(input->filled, true)) {
        slots_.emplace_back(&input->gradient, input->shape);
      } else {
        slots_.emplace_back(&again_.emplace_back(), input->shape);
      }
    }
  }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
  ~Slots() {
    for (const RecordPtr& input : inputs_)
      if (input) input->filled = false;
  }

  std::span<GradSlot> all() { return slots_; }

  void add_repeated() {
    if (again_.empty()) return;
    auto own = again_.begin();
    for (const RecordPtr& input : inputs_) {
      if (!input || std::exchange(input->filled, false)) continue;  // the first has its gradient
      if (own->defined()) GradSlot(&input->gradient, input->shape).give(std::move(*own));
      ++own;
    }
  }

 private:
  static size_t repeats(const Records& inputs) {
    size_t count = 0;
    for (const RecordPtr& input : inputs)
      if (input) count += std::exchange(input->filled, true);
    for (const RecordPtr& input : inputs)
      if (input) input->filled = false;
    return count;
  }

  const Records& inputs_;
  std::vector<GradSlot, Recycled<GradSlot>> slots_;
  std::vector<Tensor, Recycled<Tensor>> again_;
};

void run(Record& record) {
  Slots slots(record.inputs);
  const Backward backward = std::exchange(record.backward, {});
  backward(std::exchange(record.gradient, {}), slots.all());
  slots.add_repeated();
}

}  // namespace

void GradSlot::give(Tensor gradient) {
  ATTN_DCHECK(gradient.shape() == shape_);
  if (!gradient_->defined()) {
    *gradient_ = std::move(gradient);
  } else if (!gradient_->unshared() && gradient.unshared()) {
    gradient.add(*gradient_);
    *gradient_ = std::move(gradient);
  } else {
    make_unshared(*gradient_);
    gradient_->add(gradient);
  }
}

Tensor& GradSlot::sum() {
  bool accumulate = false;
  Tensor& result = target(accumulate);
  if (!accumulate) result.fill(0);
  return result;
}

Tensor& GradSlot::target(bool& accumulate) {
  accumulate = gradient_->defined();
  if (accumulate)
    make_unshared(*gradient_);
  else
    *gradient_ = Tensor(shape_);
  return *gradient_;
}

Var::Var(Tensor value, bool requires_grad) : node_(std::allocate_shared<Node>(Recycled<Node>())) {
  ATTN_CHECK(value.defined(), "a Var needs a defined Tensor");
  node_->value = std::move(value);
  if (!requires_grad) return;
  node_->record = std::allocate_shared<Record>(Recycled<Record>());
  node_->record->leaf = true;
  node_->record->shape = node_->value.shape();
}

const Tensor& Var::value() const {
  ATTN_CHECK(node_, "the value of an undefined Var was used");
  return node_->value;
}

bool Var::requires_grad() const { return node_ && node_->record; }

const Tensor& Var::grad() const {
  static const Tensor none;
  return requires_grad() && node_->record->leaf ? node_->record->gradient : none;
}

void Var::zero_grad() const {
  if (grad().defined()) grad().fill(0);
}

void Var::set_value(const Tensor& value) const {
  ATTN_CHECK(node_ && (!node_->record || node_->record->leaf), "set_value needs a leaf");
  node_->value.copy_from(value);
}

void Var::backward() const {
  ATTN_CHECK(value().size() == 1, "backward() without a seed needs a single element, not {}",
             shape().str());
  backward(Tensor::full(shape(), 1));
}

void Var::backward(const Tensor& seed) const {
  ATTN_CHECK(requires_grad(), "backward() needs a Var that requires a gradient");
  ATTN_CHECK(seed.shape() == shape(), "a seed of shape {} for a value of shape {}",
             seed.shape().str(), shape().str());
  const NoGrad guard;
  GradSlot(&node_->record->gradient, shape()).give(seed);
  std::priority_queue<RecordPtr, Records, Earlier> queue;
  Records leaves;
  if (node_->record->leaf)
    leaves.push_back(node_->record);
  else
    queue.push(node_->record);
  while (!queue.empty()) {
    const RecordPtr record = queue.top();
    queue.pop();
    record->queued = false;
    ATTN_CHECK(record->backward, "backward() a second time through a tape that is released");
    if (record->gradient.defined()) run(*record);
    record->backward = {};
    for (RecordPtr& input : record->inputs) {
      if (!input) continue;
      if (input->leaf)
        leaves.push_back(std::move(input));
      else if (!std::exchange(input->queued, true))
        queue.push(std::move(input));
    }
    Record::release(record->inputs);
  }
  for (const RecordPtr& leaf : leaves) make_unshared(leaf->gradient);
}

Var record_op(Tensor value, std::span<const Var> inputs, Backward backward) {
  Var result(std::move(value));
  if (!recording(inputs)) return result;
  const auto record = std::allocate_shared<Record>(Recycled<Record>());
  record->sequence = next_sequence.fetch_add(1, std::memory_order_relaxed);
  record->shape = result.shape();
  record->backward = std::move(backward);
  for (const Var& input : inputs)
    record->inputs.push_back(input.node_ ? input.node_->record : nullptr);
  result.node_->record = record;
  return result;
}

Var custom_op(Tensor value, std::initializer_list<Var> inputs,
              Function<void(const Tensor& grad_value, std::span<Tensor> grads)> backward) {
  if (!recording(inputs)) return Var(std::move(value));
  return record_op(
      std::move(value), std::span<const Var>(inputs.begin(), inputs.size()),
      [backward = std::move(backward)](const Tensor& gradient, std::span<GradSlot> slots) {
        std::vector<Tensor, Recycled<Tensor>> grads;
        grads.reserve(slots.size());
        for (GradSlot& slot : slots) grads.push_back(slot.needed() ? slot.sum() : Tensor());
        backward(gradient, grads);
      });
}

bool recording(std::span<const Var> inputs) {
  if (NoGrad::active()) return false;
  for (const Var& input : inputs)
    if (input.requires_grad()) return true;
  return false;
}

bool recording(std::initializer_list<Var> inputs) {
  return recording(std::span<const Var>(inputs.begin(), inputs.size()));
}

}  // namespace attn
