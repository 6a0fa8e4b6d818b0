// The settings of training, the model configuration, and the reasons why a pair of task and variant
// cannot be trained. Width 64, two heads, two layers and a feed-forward of 128 are the small LRA
// model of Nyströmformer and Skyformer.
#include "harness/train/settings.h"

#include <algorithm>
#include <map>
#include <memory>

#include "harness/model/decoded_rows.h"
#include "harness/model/residual_blocks.h"
#include "harness/train/mimicry.h"
#include "harness/train/schedule.h"
#include "harness/train/train.h"
#include "variants/api/forgetting.h"
#include "variants/api/stack.h"

namespace attn {

const std::vector<ParamSpec>& training_params() {
  static const std::vector<ParamSpec> specs = {
      {"layers", 2, "encoder layers", 1, 64},
      {"width", 64, "model width; heads must divide it", 1, 8192},
      {"heads", 2, "attention heads", 1, 256},
      {"kv_heads", 0,
       "heads of keys and values, each shared by heads / kv_heads query heads; 0: as many as heads",
       0, 256},
      {"feed_forward", 128, "hidden width of the feed-forward", 1, 65536},
      {"norm", {"pre", "post"}, "layer norm before each block or after it"},
      {"positions",
       {"learned", "sinusoidal", "none", "rotary", "alibi", "t5", "kerple", "kerple_power"},
       "added to the input; rotary: queries and keys are rotated by them in self-attention; alibi, "
       "t5, "
       "kerple, kerple_power: a bias of each distance is added to its logits"},
      {"pooling", {"mean", "cls"}, "how one vector is made of a sequence"},
      {"dropout", 0.0, "on the embedded input and on the outputs of attention and feed-forward", 0,
       0.9},
      {"batch", 32, "sequences a step", 1, 65536},
      {"steps", 2000, "steps at most; with schedule wsd 20000 unless named", 1},
      {"learning_rate", 2e-3, "the highest, after the warm-up; lr for short", 0, 1e3},
      {kSchedule,
       {"cosine", kWsd},
       "of the learning rate. cosine: it falls to zero over `steps`. wsd (warm-up, stable, decay): "
       "it is constant until validation no longer improves, then falls to zero"},
      {kDecay, 0.2, "of wsd: length of the fall, as a share of the steps before it", 0, 1},
      {kMinDelta, 0.005,
       "of wsd: what validation must gain to count as better; of an error, a share of it", 0, 1},
      {"warmup", 100, "steps of linear warm-up", 0},
      {"weight_decay", 0.01, "decoupled, on matrices only; wd for short", 0, 10},
      {"clip", 1.0, "largest norm of the gradient; 0: no clipping", 0, 1e9},
      {"eval_every", 100, "steps between validations"},
      {"validation_examples", 512, "scored at each validation"},
      {"test_examples", 1024, "scored once, at the end"},
      {"patience", 0,
       "stop, or with wsd begin the fall, after so many validations without a better one; 0: "
       "never; with wsd 20 unless named",
       0},
      {"target", -1.0,
       "stop at this validation score, where it is an error at or below it; -1: when perfect", -1,
       1e9},
      {kMimicry, 0,
       "steps before the training that fit the variant's own weights to imitate softmax attention; "
       "0: none",
       0},
      {kMimicryUntil,
       {"start", "end"},
       "of mimicry: until the training starts; or the fit goes on in every step of the training, "
       "over the keys that a query attends to (dsa)"},
      {"stretch", 1, "score also at 2, 4, ... times the training length, up to this factor", 1, 64},
      ParamSpec(kTrainDtype, std::vector<std::string>{"float32", "bfloat16"},
                "number type of the operands of products in training steps (projections, "
                "feed-forward, matmul, softmax attention); all else is float32")
          .later(),
  };
  return specs;
}

bool rounds_products(const Params& training) {
  const auto found = training.values().find(kTrainDtype);
  return found != training.values().end() && std::get<std::string>(found->second) == "bfloat16";
}

Positions positions_of(const std::string& name) {
  static const std::map<std::string, Positions> all = {
      {"none", Positions::none},       {"sinusoidal", Positions::sinusoidal},
      {"learned", Positions::learned}, {"rotary", Positions::rotary},
      {"alibi", Positions::alibi},     {"t5", Positions::t5},
      {"kerple", Positions::kerple},   {"kerple_power", Positions::kerple_power}};
  return all.at(name);
}

ModelConfig model_config(const LearnerSpec& spec) {
  const TaskShape& shape = spec.shape;
  const Params& training = spec.training;
  ModelConfig model;
  model.layer.variant = spec.variant;
  model.layer.variant_params = spec.variant_params;
  model.layer.watch = spec.watch;
  model.layer.width = training.integer("width");
  model.layer.heads = training.integer("heads");
  model.layer.kv_heads = training.integer("kv_heads");
  model.layer.feed_forward = training.integer("feed_forward");
  model.layer.causal = shape.causal;
  model.layer.norm = training.text("norm") == "pre" ? Norm::pre : Norm::post;
  model.layer.dropout = training.number("dropout");
  model.layers = training.integer("layers");
  model.vocab = shape.vocab;
  model.channels = shape.channels;
  model.length = shape.length;
  model.classes = shape.classes;
  model.per_token = shape.per_token;
  model.pairs = shape.pairs;
  model.compressed = shape.compressed;
  model.positions = positions_of(training.text("positions"));
  model.pooling = training.text("pooling") == "mean" ? Pooling::mean : Pooling::cls;
  model.seed = spec.seed;
  return model;
}

namespace {

// Whether sequences are shorter than the longest: the first few show it where lengths are drawn.
bool pads(const Task& task) {
  constexpr int64_t kLooked = 16;
  for (int64_t i = 0; i < std::min(kLooked, task.train_examples()); ++i) {
    const Example example = task.example(0, Split::train, i);
    int64_t size = positions(example, task.shape());
    if (task.shape().pairs) size = std::min(size, std::ssize(example.second));
    if (size < task.shape().length) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> why_not_trainable(
    const std::string& name, const Task& task, const VariantInfo& variant,
    const std::map<std::string, ParamValue>& variant_params, const Params& training,
    bool behind_prompt) {
  const TaskShape shape = task.shape();
  const int64_t width = training.integer("width"), heads = training.integer("heads");
  if (width % heads != 0)
    return fmt::format("width {} is not a multiple of heads {}", width, heads);
  if (auto reason = why_no_sharing(variant, heads, training.integer("kv_heads"))) return reason;
  if (auto reason = why_no_repetition(variant, training.integer("layers"))) return reason;
  if (auto reason = why_no_mimicry(variant, variant_params, training)) return reason;
  const VariantInfo::Reads read =
      variant.read_by(Params(variant.name, variant.params, variant_params));
  if (!read.queries && !read.keys && training.text("positions") == "rotary")
    return fmt::format("{} has no queries and keys that rotary positions could turn", variant.name);
  const Params chosen(variant.name, variant.params, variant_params);
  if (auto reason = why_no_steps(variant, chosen, shape.causal, behind_prompt)) return reason;
  const std::string& positions = training.text("positions");
  const bool biased = distances_of(positions_of(positions)) != Distances::none;
  if (biased && forgets_of(variant, chosen))
    return fmt::format("a decoder that forgets takes no bias of distances: no positions {}",
                       positions);
  if (biased && shape.edges)
    return fmt::format("{} gives each node its edges: no positions {}", name, positions);
  const bool cls = training.text("pooling") == "cls" && !shape.per_token;
  if (cls && shape.causal)
    return fmt::format("{} is causal: its first position, cls, would see nothing but itself", name);
  if (cls && shape.edges) return fmt::format("{} has no edges for cls; pool with mean", name);
  if (shape.edges && !variant.traits.edges)
    return fmt::format("{} gives each node its edges and {} cannot attend along them", name,
                       variant.name);
  if (!variant.traits.padding && pads(task))
    return fmt::format("{} pads its sequences and {} cannot mask that", name, variant.name);
  AttentionShape attention;
  attention.batch = training.integer("batch") * (shape.pairs ? 2 : 1);
  attention.heads = heads;
  attention.q_len = attention.kv_len = shape.length + (cls ? 1 : 0);
  attention.head_dim = width / heads;
  attention.causal = shape.causal;
  auto reason = variant.why_not(attention, Params(variant.name, variant.params, variant_params));
  if (reason || !biased || variant.traits.distance_bias) return reason;
  return fmt::format("{} takes no bias of distances: no positions {}", variant.name, positions);
}

}  // namespace attn
