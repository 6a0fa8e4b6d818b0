// Mini-batches: packing, caching, shuffling, and a producer thread with a ring of reused batches.
// Memory O(train_examples · length) if the examples fit the cache, else O(batch · length). No
// allocation after the ring is full.
#include "harness/train/batches.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

namespace attn {

namespace {

// Entries of an example's row in Batch::targets, and in Batch::distances.
int64_t targets_of(const TaskShape& shape) {
  if (shape.real) return 0;
  if (shape.outputs > 0) return shape.outputs;
  return shape.per_token ? shape.length : 1;
}
int64_t distances_of(const TaskShape& shape) { return shape.per_token ? shape.length : 1; }

int64_t documents_of(const TaskShape& shape) { return shape.pairs ? 2 : 1; }

int64_t bytes_per_example(const TaskShape& shape) {
  const int64_t numbers = shape.length * (shape.vocab > 0 ? 1 : shape.channels);
  const int64_t document = numbers * 4 + static_cast<int64_t>(sizeof(int64_t));
  return documents_of(shape) * document + targets_of(shape) * 4 + (shape.real ? 4 : 0);
}

// Room for `size` examples. `lengths` is kept filled while rows are written and dropped by seal()
// when all are full.
void reserve(Batch& batch, const TaskShape& shape, int64_t size) {
  batch.size = size;
  batch.length = shape.length;
  batch.documents = documents_of(shape);
  const size_t cells = static_cast<size_t>(batch.sequences() * shape.length);
  if (shape.vocab > 0) {
    batch.tokens.resize(cells);
  } else {
    batch.values.resize(cells * static_cast<size_t>(shape.channels));
  }
  batch.lengths.resize(static_cast<size_t>(batch.sequences()));
  batch.targets.resize(static_cast<size_t>(size * targets_of(shape)));
  batch.wanted.resize(shape.real ? static_cast<size_t>(size) : 0);
}

template <class T>
void write_padded(const std::vector<T>& from, std::vector<T>& to, int64_t row, int64_t width,
                  T padding) {
  const auto end = std::copy(from.begin(), from.end(), to.begin() + row * width);
  std::fill(end, to.begin() + (row + 1) * width, padding);
}

// Task::example() has checked that the example fits the shape.
void write_example(const Example& example, const TaskShape& shape, Batch& batch, int64_t row) {
  int64_t sequence = row * batch.documents;
  const auto write = [&](const std::vector<int32_t>& document) {
    write_padded(document, batch.tokens, sequence, shape.length, kPadToken);
    batch.lengths[static_cast<size_t>(sequence++)] = std::ssize(document);
  };
  if (shape.vocab > 0) {
    write(example.tokens);
  } else {
    write_padded(example.values, batch.values, row, shape.length * shape.channels, 0.0f);
    batch.lengths[static_cast<size_t>(row)] = positions(example, shape);
  }
  if (shape.pairs) write(example.second);
  write_padded(example.target, batch.targets, row, targets_of(shape), kIgnoredLabel);
  if (shape.real) batch.wanted[static_cast<size_t>(row)] = example.wanted[0];
}

// The edges of examples that fill a batch one after the other.
class EdgeRows {
 public:
  void add(const Example& example, int64_t length) {
    size_t next = 0;
    for (int64_t query = 0; query < length; ++query) {
      for (; next < example.edges.size() && example.edges[next].first == query; ++next)
        edges_->keys.push_back(example.edges[next].second);
      edges_->first.push_back(std::ssize(edges_->keys));
    }
  }
  void give(Batch& batch) { batch.edges = std::move(edges_); }

 private:
  std::shared_ptr<Edges> edges_ = std::make_shared<Edges>(Edges{{0}, {}});
};

void copy_row(const Batch& from, int64_t row, const TaskShape& shape, Batch& to, int64_t to_row) {
  const auto copy = [&](const auto& source, auto& target, int64_t width) {
    std::copy_n(source.begin() + row * width, width, target.begin() + to_row * width);
  };
  if (shape.vocab > 0) {
    copy(from.tokens, to.tokens, from.documents * shape.length);
  } else {
    copy(from.values, to.values, shape.length * shape.channels);
  }
  if (shape.real) copy(from.wanted, to.wanted, 1);
  copy(from.targets, to.targets, targets_of(shape));
  copy(from.lengths, to.lengths, from.documents);
}

void write_slices(const Example& example, int64_t length, Batch& batch, int64_t row) {
  for (const auto& [name, value] : example.slices) {
    std::vector<double>& values = batch.slices[name];
    values.resize(static_cast<size_t>(batch.size), std::numeric_limits<double>::quiet_NaN());
    values[static_cast<size_t>(row)] = value;
  }
  for (const auto& [name, labels] : example.label_slices) {
    std::vector<int32_t>& values = batch.label_slices[name];
    values.resize(static_cast<size_t>(batch.size * length), -1);
    std::copy(labels.begin(), labels.end(), values.begin() + row * length);
  }
}

void seal(Batch& batch) {
  const auto full = [&](int64_t length) { return length == batch.length; };
  if (std::all_of(batch.lengths.begin(), batch.lengths.end(), full)) batch.lengths.clear();
}

}  // namespace

Batch batch_of(const Task& task, uint64_t seed, Split split, int64_t first, int64_t size) {
  const TaskShape shape = task.shape();
  Batch batch;
  reserve(batch, shape, size);
  EdgeRows edges;
  for (int64_t row = 0; row < batch.size; ++row) {
    const Example example = task.example(seed, split, first + row);
    write_example(example, shape, batch, row);
    batch.distances.insert(batch.distances.end(), example.distances.begin(),
                           example.distances.end());
    batch.distances.resize(static_cast<size_t>((row + 1) * distances_of(shape)), -1);
    if (split == Split::test) write_slices(example, shape.length, batch, row);
    if (shape.edges) edges.add(example, shape.length);
  }
  if (shape.edges) edges.give(batch);
  seal(batch);
  return batch;
}

std::vector<Batch> split_batches(const Task& task, uint64_t seed, Split split, int64_t count,
                                 int64_t batch_size) {
  std::vector<Batch> batches;
  for (int64_t begin = 0; begin < count; begin += batch_size)
    batches.push_back(batch_of(task, seed, split, begin, std::min(batch_size, count - begin)));
  return batches;
}

struct TrainingStream::State {
  State(const Task& given, uint64_t stream_seed, int64_t size, Options wanted)
      : task(given), shape(given.shape()), seed(stream_seed), batch_size(size), options(wanted) {
    order.resize(static_cast<size_t>(task.train_examples()));
    // Edges are of no fixed size: examples that have them are made again.
    cached = !shape.edges &&
             static_cast<int64_t>(order.size()) * bytes_per_example(shape) <= options.cache_bytes;
    if (cached) reserve(cache, shape, static_cast<int64_t>(order.size()));
    if (options.background) producer = std::thread([this] { produce(); });
  }

  ~State() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    room.notify_all();
    if (producer.joinable()) producer.join();
  }

  void shuffle() {
    std::iota(order.begin(), order.end(), 0);
    Rng stream = rng(seed, "epoch order", epoch++);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[stream.below(i)]);
    place = 0;
  }

  void fill(Batch& batch) {
    reserve(batch, shape, batch_size);
    EdgeRows edges;
    for (int64_t row = 0; row < batch_size; ++row) {
      if (epoch == 0 || place == order.size()) shuffle();
      const int64_t index = order[place++];
      if (!cached) {
        const Example example = task.example(seed, Split::train, index);
        write_example(example, shape, batch, row);
        if (shape.edges) edges.add(example, shape.length);
        continue;
      }
      if (epoch == 1) write_example(task.example(seed, Split::train, index), shape, cache, index);
      copy_row(cache, index, shape, batch, row);
    }
    if (shape.edges) edges.give(batch);
    seal(batch);
  }

  void produce() {
    for (;;) {
      {
        std::unique_lock lock(mutex);
        room.wait(lock, [&] { return stop || made - taken < kAhead; });
        if (stop) return;
      }
      try {
        fill(ring[made % kRing]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        failure = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      if (!failure) ++made;
      ready.notify_one();
      if (failure) return;
    }
  }

  const Batch& next() {
    if (!options.background) {
      fill(ring[0]);
      return ring[0];
    }
    std::unique_lock lock(mutex);
    ready.wait(lock, [&] { return failure || made > taken; });
    if (made == taken) std::rethrow_exception(failure);
    room.notify_one();
    return ring[taken++ % kRing];
  }

  // kAhead batches wait, one more is in the reader's hands.
  static constexpr uint64_t kRing = kAhead + 1;

  const Task& task;
  const TaskShape shape;
  const uint64_t seed;
  const int64_t batch_size;
  const Options options;

  std::vector<int64_t> order;  // of this epoch
  size_t place = 0;            // the next entry of `order`
  uint64_t epoch = 0;          // epochs begun
  bool cached = false;
  Batch cache;  // every training example, filled during the first epoch

  Batch ring[kRing];
  uint64_t made = 0, taken = 0;
  std::exception_ptr failure;
  bool stop = false;
  std::mutex mutex;
  std::condition_variable room, ready;
  std::thread producer;  // last: starts when everything above is there
};

TrainingStream::TrainingStream(const Task& task, uint64_t seed, int64_t batch_size)
    : TrainingStream(task, seed, batch_size, Options{}) {}
TrainingStream::TrainingStream(const Task& task, uint64_t seed, int64_t batch_size, Options options)
    : state_(std::make_unique<State>(task, seed, batch_size, options)) {}
TrainingStream::~TrainingStream() = default;

const Batch& TrainingStream::next() { return state_->next(); }

}  // namespace attn
