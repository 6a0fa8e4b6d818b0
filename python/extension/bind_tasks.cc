// Tasks for Python: batches of examples as NumPy arrays that hold the library's own memory.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "harness/cli/specs.h"
#include "harness/train/batches.h"
#include "python/extension/bindings.h"

namespace nb = nanobind;

namespace attn_python {
namespace {

attn::Split split_of(const std::string& name) {
  for (const attn::Split split : {attn::Split::train, attn::Split::validation, attn::Split::test})
    if (attn::to_string(split) == name) return split;
  attn::throw_error(
      fmt::format("split '{}' is not valid; expected train, validation or test", name));
}

// An array that holds what `batch` owns; None where it is empty.
template <class T>
nb::object view(std::vector<T>& values, const std::vector<int64_t>& dims,
                const std::shared_ptr<void>& batch) {
  if (values.empty()) return nb::none();
  using Owner = std::shared_ptr<void>;
  const nb::capsule owner(new Owner(batch),
                          [](void* held) noexcept { delete static_cast<Owner*>(held); });
  const std::vector<size_t> shape(dims.begin(), dims.end());
  return nb::ndarray<nb::numpy, T>(values.data(), shape.size(), shape.data(), owner).cast();
}

class BoundTask {
 public:
  explicit BoundTask(const std::string& spec)
      : chosen_(attn::cli::choose_task(spec)), task_(chosen_.task->build(chosen_.params)) {}

  nb::dict about() const {
    const attn::TaskShape shape = task_->shape();
    nb::dict result;
    result["name"] = chosen_.task->name;
    result["metric"] = chosen_.task->metric;
    result["chance"] = task_->chance();
    result["length"] = shape.length;
    result["vocab"] = shape.vocab;
    result["classes"] = shape.classes;
    result["channels"] = shape.channels;
    result["outputs"] = shape.outputs;
    result["per_token"] = shape.per_token;
    result["causal"] = shape.causal;
    result["pairs"] = shape.pairs;
    result["real"] = shape.real;
    result["edges"] = shape.edges;
    return result;
  }

  int64_t count(const std::string& split) const { return task_->count(split_of(split)); }

  // Arrays by name, None where the task has none.
  nb::dict batch(const std::string& split, int64_t first, int64_t size, uint64_t seed) const {
    const attn::Split of = split_of(split);
    const auto made = std::make_shared<attn::Batch>();
    {
      const nb::gil_scoped_release unlocked;
      *made = attn::batch_of(*task_, seed, of, first, size);
    }
    return arrays_of(made, *task_);
  }

 private:
  const attn::cli::Chosen chosen_;
  const std::unique_ptr<attn::Task> task_;
};

}  // namespace

nb::dict arrays_of(const std::shared_ptr<attn::Batch>& made, const attn::Task& task) {
  const attn::TaskShape shape = task.shape();
  if (made->lengths.empty())
    made->lengths.assign(static_cast<size_t>(made->sequences()), shape.length);
  std::vector<int64_t> places = {made->size};
  if (shape.pairs) places.push_back(2);
  std::vector<int64_t> positions = places;
  positions.push_back(shape.length);
  std::vector<int64_t> numbers = positions;
  numbers.push_back(shape.channels);
  std::vector<int64_t> labels = {made->size};
  if (shape.outputs > 0)
    labels.push_back(shape.outputs);
  else if (shape.per_token)
    labels.push_back(shape.length);
  nb::dict result;
  result["tokens"] = view(made->tokens, positions, made);
  result["values"] = view(made->values, numbers, made);
  result["lengths"] = view(made->lengths, places, made);
  result["targets"] = view(made->targets, labels, made);
  result["wanted"] = view(made->wanted, {made->size}, made);
  result["edges"] = nb::none();
  if (made->edges) {
    auto& edges = const_cast<attn::Edges&>(*made->edges);  // nobody else holds them
    result["edges"] = nb::make_tuple(view(edges.first, {std::ssize(edges.first)}, made),
                                     view(edges.keys, {std::ssize(edges.keys)}, made));
  }
  return result;
}

void bind_tasks(nb::module_& module) {
  nb::class_<BoundTask>(module, "Task")
      .def(nb::init<const std::string&>(), nb::arg("spec"))
      .def("about", &BoundTask::about)
      .def("count", &BoundTask::count, nb::arg("split"))
      .def("batch", &BoundTask::batch, nb::arg("split"), nb::arg("first"), nb::arg("size"),
           nb::arg("seed"));
}

}  // namespace attn_python
