// Reads, builds, runs and writes the sides of peer_sides.h.
#include "harness/cli/peer_sides.h"

#include <utility>
#include <vector>

#include "core/ops/ops.h"
#include "harness/cli/npy.h"
#include "harness/cli/peer_request.h"
#include "harness/cli/specs.h"
#include "harness/model/encoder.h"
#include "harness/train/optimizer.h"
#include "variants/api/gates.h"

namespace attn::cli {
namespace {

Tensor read_tensor(const std::string& path) {
  const Array array = read_npy(path);
  ATTN_CHECK(array.shape.size() <= 4, "{}: shape {}; expected at most 4 dimensions", path,
             array.shape_text());
  Shape shape;
  for (const int64_t dim : array.shape) shape = shape.appended(dim);
  return Tensor::of(shape, array.values);
}

std::vector<int32_t> read_ids(const std::string& path) {
  const Array array = read_npy(path);
  ATTN_CHECK(!array.is_float(), "{}: type '{}'; expected int32", path, array.type);
  return {array.values.begin(), array.values.end()};
}

void write_tensor(const std::string& path, const Tensor& tensor) {
  Array array{.shape = {}, .values = {tensor.data(), tensor.data() + tensor.size()}, .type = "<f4"};
  for (int i = 0; i < tensor.shape().rank(); i++) array.shape.push_back(tensor.dim(i));
  write_npy(path, array);
}

}  // namespace

class AttentionSide::State {
 public:
  explicit State(const AttentionRequest& request)
      : mask_{request.causal, {}},
        q_(read_tensor(request.q)),
        k_(read_tensor(request.k)),
        v_(read_tensor(request.v)),
        grad_out_(read_tensor(request.grad_out)) {
    for (const Tensor* tensor : {&q_, &k_, &v_})
      ATTN_CHECK(tensor->shape().rank() == 4, "q, k, v are [batch, heads, len, head_dim], got {}",
                 tensor->shape().str());
    const Chosen chosen = choose_variant(request.variant);
    const AttentionConfig config{
        .heads = q_.dim(1), .head_dim = q_.dim(3), .max_len = k_.dim(2), .causal = mask_.causal};
    attention_ = chosen.variant->build(config, chosen.params);
    for (const auto& [name, path] : request.set) weight(name).set_value(read_tensor(path));
    for (const GateInput& gate : attention_->gates()) {
      const auto given = request.gates.find(gate.name);
      ATTN_CHECK(given != request.gates.end(), "gates: '{}' is missing", gate.name);
      gates_.push_back(read_tensor(given->second));
    }
    ATTN_CHECK(request.gates.size() == gates_.size(), "gates: {} given, {} reads {}",
               request.gates.size(), request.variant, gates_.size());
  }

  Json flops() const {
    const std::optional<Cost> cost = attention_->declared_cost(
        {q_.dim(0), q_.dim(1), q_.dim(2), k_.dim(2), q_.dim(3), mask_.causal});
    if (!cost) return Json::object();  // not declared
    return {{"forward", cost->flops}, {"train", cost->flops + cost->backward_flops}};
  }

  Tensor forward() const {
    const NoGrad no_grad;
    return attention_->forward(Var(q_), Var(k_), Var(v_), mask_, leaves_of(gates_)).value();
  }

  void train() const { differentiated(); }

  void write(const std::string& folder) const {
    write_tensor(folder + "/forward.npy", forward());
    const Differentiated found = differentiated();
    write_tensor(folder + "/out.npy", found.out);
    const std::pair<const char*, Var> inputs[] = {{"q", found.q}, {"k", found.k}, {"v", found.v}};
    for (const auto& [name, input] : inputs)
      if (input.grad().defined())  // else the variant does not read this input
        write_tensor(fmt::format("{}/grad_{}.npy", folder, name), input.grad());
    for (size_t i = 0; i < gates_.size(); i++)
      write_tensor(fmt::format("{}/grad_gate_{}.npy", folder, attention_->gates()[i].name),
                   found.gates[i].grad());
    for (const Weight& weight : attention_->weights())
      if (weight.learned)
        write_tensor(fmt::format("{}/grad_{}.npy", folder, weight.name), weight.value.grad());
  }

 private:
  struct Differentiated {
    Tensor out;
    Var q, k, v;
    std::vector<Var> gates;
  };

  Differentiated differentiated() const {
    for (const Weight& weight : attention_->weights()) weight.value.zero_grad();
    Differentiated found{.out = {},
                         .q = Var(q_, true),
                         .k = Var(k_, true),
                         .v = Var(v_, true),
                         .gates = leaves_of(gates_, true)};
    const Var out = attention_->forward(found.q, found.k, found.v, mask_, found.gates);
    out.backward(grad_out_);
    found.out = out.value();
    return found;
  }

  Var weight(const std::string& name) const {
    for (const Weight& weight : attention_->weights())
      if (weight.name == name) return weight.value;
    throw_error(fmt::format("no weight is named '{}'", name));
  }

  Mask mask_;
  Tensor q_, k_, v_, grad_out_;  // [batch, heads, len, head_dim]
  std::vector<Tensor> gates_;    // in the attention's order, [batch, heads, len, width]
  std::unique_ptr<Attention> attention_;
};

class CacheSide::State {
 public:
  explicit State(const CacheRequest& request)
      : q_(read_tensor(request.q)), k_(read_tensor(request.k)), v_(read_tensor(request.v)) {
    const std::optional<CacheType> type = value_named<CacheType>(request.kv_dtype);
    ATTN_CHECK(type, "kv_dtype: '{}' is unknown", request.kv_dtype);
    const NoGrad no_grad;
    const int64_t len = k_.dim(2);
    const auto rows = [](const Tensor& x, int64_t begin, int64_t end) {
      return slice(Var(x), 2, begin, end).value();
    };
    const Chosen chosen = choose_variant(request.variant);
    attention_ = chosen.variant->build(
        {.heads = q_.dim(1), .head_dim = q_.dim(3), .max_len = len, .causal = true}, chosen.params);
    decoder_ = attention_->decoder(q_.dim(0), len, k_.dim(1), Dtype::float32, *type);
    decoder_->extend(rows(k_, 0, len - 1), rows(v_, 0, len - 1));
    k_ = rows(k_, len - 1, len);
    v_ = rows(v_, len - 1, len);
    out_ = Tensor(q_.shape());
    decoder_->step(q_, k_, v_, out_);
  }

  Json flops() const {
    decoder_->step_back();
    const double flops = decoder_->step_flops();
    decoder_->step(q_, k_, v_, out_);
    return {{"decode", flops}};
  }
  const Tensor& decode() const {
    decoder_->step_back();
    decoder_->step(q_, k_, v_, out_);
    return out_;
  }

 private:
  Tensor q_, k_, v_, out_;  // of the step
  std::unique_ptr<Attention> attention_;
  std::unique_ptr<Decoder> decoder_;
};

class ModelSide::State {
 public:
  explicit State(const ModelRequest& request)
      : model_(config_of(request)),
        optimizer_(learned(model_), optimizer_of(request)),
        learning_rate_(request.learning_rate) {
    batch_.size = request.batch;
    batch_.length = request.length;
    batch_.tokens = read_ids(request.tokens);
    batch_.targets = read_ids(request.targets);
    write(request.folder);  // the other side starts from them
  }

  // NAME.npy of each weight, as it is now.
  void write(const std::string& folder) const {
    for (const Weight& weight : model_.weights())
      write_tensor(fmt::format("{}/{}.npy", folder, weight.name), weight.value.value());
  }

  double step() {
    const Var loss = cross_entropy(model_.forward(batch_), batch_.targets);
    const double value = static_cast<double>(loss.value()[0]);
    loss.backward();
    optimizer_.step(learning_rate_);
    return value;
  }

 private:
  static ModelConfig config_of(const ModelRequest& request) {
    const Chosen chosen = choose_variant(request.variant);
    ModelConfig config;
    config.layer.variant = chosen.variant;
    config.layer.variant_params = chosen.params;
    config.layer.width = request.width;
    config.layer.heads = request.heads;
    config.layer.feed_forward = request.feed_forward;
    config.layers = request.layers;
    config.vocab = request.vocab;
    config.classes = request.classes;
    config.length = request.length;
    return config;
  }

  static AdamWConfig optimizer_of(const ModelRequest& request) {
    return {.beta1 = request.beta1,
            .beta2 = request.beta2,
            .epsilon = request.epsilon,
            .weight_decay = request.weight_decay,
            .clip = request.clip};
  }

  static std::vector<Var> learned(const Encoder& model) {
    std::vector<Var> values;
    for (const Weight& weight : model.weights())
      if (weight.learned) values.push_back(weight.value);
    return values;
  }

  Encoder model_;
  AdamW optimizer_;
  double learning_rate_;
  Batch batch_;
};

AttentionSide::AttentionSide(const Json& request)
    : state_(std::make_unique<State>(read_json<AttentionRequest>(request))) {}
AttentionSide::~AttentionSide() = default;
Json AttentionSide::flops() const { return state_->flops(); }
void AttentionSide::forward() const { state_->forward(); }
void AttentionSide::train() const { state_->train(); }
void AttentionSide::write(const std::string& folder) const { state_->write(folder); }

CacheSide::CacheSide(const Json& request)
    : state_(std::make_unique<State>(read_json<CacheRequest>(request))) {}
CacheSide::~CacheSide() = default;
Json CacheSide::flops() const { return state_->flops(); }
void CacheSide::decode() const { state_->decode(); }
void CacheSide::write(const std::string& folder) const {
  write_tensor(folder + "/decode.npy", state_->decode());
}

ModelSide::ModelSide(const Json& request)
    : state_(std::make_unique<State>(read_json<ModelRequest>(request))) {}
ModelSide::~ModelSide() = default;
double ModelSide::step() { return state_->step(); }
void ModelSide::write(const std::string& folder) const { state_->write(folder); }

}  // namespace attn::cli
