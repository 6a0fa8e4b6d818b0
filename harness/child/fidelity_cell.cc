// See fidelity_cell.h. Captured inputs lie in the folder of the sweep, a file a model, written
// under a lock by the first process that needs them.
#include "harness/child/fidelity_cell.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "harness/cell/codec.h"
#include "harness/child/training_cell.h"
#include "harness/measure/fidelity.h"
#include "harness/train/captured.h"
#include "variants/catalog.h"

namespace attn {
namespace {

// Names everything that the inputs depend on.
std::string model_name(const CellKey& key) {
  return fmt::format("{}-{}-{}", id_of(training_behind(key)), to_string(key.axes.input.value()),
                     key.axes.batch.value());
}

class FileLock {
 public:
  explicit FileLock(const std::string& file)
      : descriptor_(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    ATTN_CHECK(descriptor_ >= 0 && flock(descriptor_, LOCK_EX) == 0, "{} cannot be locked", file);
  }
  ~FileLock() { close(descriptor_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_;
};

template <class T>
void put(std::ostream& out, const T& value) {
  out.write(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T got(std::istream& in) {
  T value{};
  in.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

void write(const std::string& file, const Captured& captured) {
  const std::string draft = file + ".draft";
  std::ofstream out(draft, std::ios::binary);
  for (const auto& score : {captured.test, captured.chance}) put(out, score.value_or(NAN));
  put(out, std::ssize(captured.layers));
  for (const CapturedLayer& layer : captured.layers) {
    for (int axis = 0; axis < 4; ++axis) put(out, layer.q.dim(axis));
    put(out, std::ssize(layer.lengths));
    for (const int64_t length : layer.lengths) put(out, length);
    for (const Tensor& x : {layer.q, layer.k, layer.v})
      out.write(reinterpret_cast<const char*>(x.data()),
                static_cast<std::streamsize>(x.size() * static_cast<int64_t>(sizeof(real))));
  }
  out.close();
  ATTN_CHECK(out, "{} cannot be written", draft);
  std::filesystem::rename(draft, file);
}

Captured read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  Captured captured;
  captured.test = finite(got<double>(in));
  captured.chance = finite(got<double>(in));
  const auto layers = got<int64_t>(in);
  for (int64_t i = 0; i < layers && in; ++i) {
    const auto batch = got<int64_t>(in), heads = got<int64_t>(in), length = got<int64_t>(in),
               dim = got<int64_t>(in), padded = got<int64_t>(in);
    ATTN_CHECK(in, "{} cannot be read", file);
    CapturedLayer& layer = captured.layers.emplace_back();
    for (int64_t j = 0; j < padded; ++j) layer.lengths.push_back(got<int64_t>(in));
    for (Tensor* x : {&layer.q, &layer.k, &layer.v}) {
      *x = Tensor({batch, heads, length, dim});
      in.read(reinterpret_cast<char*>(x->data()),
              static_cast<std::streamsize>(x->size() * static_cast<int64_t>(sizeof(real))));
    }
  }
  ATTN_CHECK(in && layers > 0, "{} cannot be read", file);
  return captured;
}

Captured captured_for(const Request& request) {
  const CellKey& key = request.key.value();
  const bool trained = key.axes.input.value() == InputKind::trained;
  const auto capture = [&] { return captured(training_of(key), trained, key.axes.batch.value()); };
  if (request.folder.empty()) return capture();
  const std::string file = request.folder + "/" + model_name(key);
  const FileLock lock(file + ".lock");
  if (std::filesystem::exists(file)) return read(file);
  Captured found = capture();
  write(file, found);
  return found;
}

Tensor scaled(const Tensor& x, double scale) {
  Tensor out = x.clone();
  for (int64_t i = 0; i < out.size(); ++i) out[i] *= static_cast<real>(scale);
  return out;
}

FidelityMetrics metrics_of(const FidelityFigures& found) {
  ATTN_CHECK(std::isfinite(found.relative_error) && std::isfinite(found.cosine),
             "the output is not finite");
  return {.relative_error = found.relative_error,
          .cosine = found.cosine,
          .weights_kl = finite(found.weights_kl),
          .rounded_inputs_error = found.rounded_inputs_error,
          .keys_read = found.keys_read,
          .weights_rank = found.weights_rank};
}

FidelityMetrics of_model(const Request& request, WorkloadSpec& spec) {
  const Axes& axes = request.key->axes;
  const Captured model = captured_for(request);
  std::vector<FidelityInputs> inputs;
  for (const CapturedLayer& layer : model.layers)
    inputs.push_back({scaled(layer.q, axes.input_scale.value()),
                      scaled(layer.k, axes.input_scale.value()), layer.v, layer.lengths});
  spec.batch = inputs.at(0).q.dim(0);  // a pair of documents is two sequences
  const ModelFidelity found = measure_fidelity(spec, inputs);
  FidelityMetrics metrics = metrics_of(found.all);
  metrics.mass_kept = found.all.mass_kept;
  metrics.model_test = model.test;
  metrics.model_chance = model.chance;
  for (const LayerFidelity& layer : found.layers)
    metrics.layers.push_back({.relative_error = layer.figures.relative_error,
                              .weights_kl = finite(layer.figures.weights_kl),
                              .mass_kept = layer.figures.mass_kept,
                              .keys_read = layer.figures.keys_read,
                              .weights_rank = layer.figures.weights_rank,
                              .effective_rank = layer.effective_rank});
  return metrics;
}

}  // namespace

CellResult fidelity(const Request& request) {
  const CellKey& key = request.key.value();
  WorkloadSpec spec = workload_of(key);
  const InputKind input = key.axes.input.value();
  CellResult result;
  FidelityMetrics metrics =
      is_captured(input) ? of_model(request, spec)
                         : metrics_of(measure_fidelity(spec, input, key.axes.input_scale.value()));
  const Workload workload(spec);
  metrics.flops = workload.flops();
  result.metrics = std::move(metrics);
  result.cost = workload.declares_cost() ? CostSource::declared : CostSource::measured;
  if (spec.dtype != Dtype::float32)
    result.dtype =
        StoredDtype{spec.dtype, workload.widens() ? DtypePath::converted : DtypePath::native};
  return result;
}

}  // namespace attn
