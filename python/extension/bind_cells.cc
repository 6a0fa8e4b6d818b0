// Cells of a sweep for variants written in Python: the catalogue gets an entry whose attention
// calls Python, and requests are answered as `attnbench cell` answers them
// (harness/child/one_cell.h).
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "core/base/counters.h"
#include "core/base/memory.h"
#include "core/simd/isa.h"
#include "harness/cell/codec.h"
#include "harness/check/contract.h"
#include "harness/child/one_cell.h"
#include "harness/child/training_cell.h"
#include "harness/plan/python_variants.h"
#include "harness/process/process.h"
#include "harness/store/parse.h"
#include "harness/train/learner.h"
#include "python/extension/bindings.h"
#include "python/extension/maker.h"
#include "python/extension/numpy_arrays.h"
#include "python/extension/python_callee.h"
#include "tasks/api/task.h"
#include "variants/catalog.h"

namespace nb = nanobind;

namespace attn_python {
namespace {

attn::Json parsed(const std::string& text) {
  const attn::Parsed found = attn::parse_json(text);
  ATTN_CHECK(found.fault.empty(), "{}", found.fault);
  return found.value;
}

std::string text_of(attn::Json reply) {
  if (attn::stops() > 0) reply[attn::kStopped] = true;
  return reply.dump(-1, ' ', false, attn::Json::error_handler_t::replace);
}

// `about` is the description (see python_info), `make` as calls_to() takes it; both stay until the
// process ends, after the interpreter did.
void add_variant(const std::string& about, const std::string& name, const std::string& file,
                 const std::string& attribute, const std::string& hash, nb::handle make) {
  static bool interrupted = false;
  attn::VariantInfo info = attn::python_info(parsed(about), name);
  make.inc_ref();
  info.make = maker_of(calls_to(make, interrupted));
  attn::add_python_variant({.name = name,
                            .file = file,
                            .attribute = attribute,
                            .path = file,
                            .hash = hash,
                            .python = "",
                            .torch = ""},
                           std::move(info));
}

std::string answer(const std::string& request) {
  if (const char* const kernels = std::getenv("ATTN_ISA"); kernels && *kernels)
    attn::hold_isa(kernels);  // as the program does
  return text_of(attn::answer(attn::request_of(parsed(request))));
}

// The checks at the shapes that will be published, of a request for checks: [(subject, check,
// outcome, detail)].
nb::list checks_at(const std::string& text) {
  const attn::Request request = attn::request_of(parsed(text));
  const attn::Plugin& of = request.variant.value();
  const attn::VariantInfo& info = attn::find_variant(of.name);
  nb::list all;
  for (const attn::PublishedShape& shape : request.shapes) {
    const attn::AttentionShape at{.heads = shape.heads,
                                  .head_dim = shape.head_dim,
                                  .causal = shape.causal,
                                  .dtype = shape.dtype.value_or(attn::Dtype::float32)};
    for (const attn_check::Result& result : attn::check_variant_at(
             info, of.params.values(), at, static_cast<int>(shape.threads), shape.kv_heads))
      all.append(
          nb::make_tuple(result.subject, result.name, word_of(result.outcome), result.detail));
  }
  return all;
}

std::string check_reply(const nb::object& red, const std::string& detail) {
  attn::CheckReply verdict{.red = std::nullopt, .detail = detail};
  if (!red.is_none()) verdict.red = nb::cast<std::string>(red);
  return text_of(attn::reply_with(verdict));
}

std::string failed_reply(const std::string& reason) {
  return text_of(attn::failed_reply(attn::Status::failed, reason));
}

// Where a training begins: the model's weights, and the batches in their order. For tests that
// train a second model alike.
class TrainingStart {
 public:
  explicit TrainingStart(const std::string& key)
      : request_(attn::training_of(attn::request_of(parsed(key)).key.value())),
        task_(request_.task->build(request_.task_params)),
        stream_(*task_, request_.seed, request_.training.integer("batch")) {}

  nb::dict weights() const {
    const auto model =
        attn::make_learner({task_->shape(), request_.variant, request_.variant_params,
                            request_.training, request_.seed, request_.exact});
    nb::dict result;
    for (const attn::Weight& weight : model->weights()) {
      Array array{.shape = {},
                  .data = weight.value.value().data(),
                  .owner = std::make_shared<const attn::Tensor>(weight.value.value())};
      for (int i = 0; i < weight.value.shape().rank(); i++)
        array.shape.push_back(weight.value.dim(i));
      result[weight.name.c_str()] = nb::make_tuple(numpy_over(array, false), weight.learned);
    }
    return result;
  }

  nb::dict next() { return arrays_of(std::make_shared<attn::Batch>(stream_.next()), *task_); }

 private:
  const attn::TrainRequest request_;
  const std::unique_ptr<attn::Task> task_;
  attn::TrainingStream stream_;
};

// Bytes of the pool that stand for memory which Python held.
struct Held {
  explicit Held(size_t bytes) : block(bytes, attn::Purpose::workspace) {}
  attn::Block block;
};

}  // namespace

void bind_cells(nb::module_& module) {
  module.def("count_stops", attn::count_stops);
  module.def("sources", attn::sources_of_build);
  module.def("hash_of_bytes", [](const nb::bytes& bytes) {
    return attn::hash_of_bytes({bytes.c_str(), bytes.size()});
  });
  module.def("add_variant", add_variant, nb::arg("about"), nb::arg("name"), nb::arg("file"),
             nb::arg("attribute"), nb::arg("hash"), nb::arg("make"));
  module.def("answer", answer, nb::arg("request"));
  module.def("checks_at", checks_at, nb::arg("request"));
  module.def("check_reply", check_reply, nb::arg("red").none(), nb::arg("detail"));
  module.def("failed_reply", failed_reply, nb::arg("reason"));
  module.def("count_flops", attn::count_flops, nb::arg("flops"));
  nb::class_<Held>(module, "Held").def(nb::init<size_t>(), nb::arg("bytes"));
  nb::class_<TrainingStart>(module, "TrainingStart")
      .def(nb::init<const std::string&>(), nb::arg("request"))
      .def("weights", &TrainingStart::weights)
      .def("next", &TrainingStart::next);
}

}  // namespace attn_python
