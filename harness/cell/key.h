// What one measurement is: everything that can change its value. A cell's id is the hash of its key
// (see codec.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/params.h"
#include "harness/cell/names.h"
#include "variants/api/variant_info.h"

namespace attn {

// Raised when the way of measuring changes, which makes every cell a new one.
inline constexpr int kProtocol = 1;

// A variant or a task by its name, with a value for every parameter.
struct Plugin {
  std::string name;
  Params params;
  bool operator==(const Plugin&) const = default;
};
// A variant's defaults as rows name them; see Params::for_key().
Params defaults_in_rows(const VariantInfo& variant);
std::string plugin_text(const Plugin& plugin);  // "linformer[rank=64,shared=false]"
// The entry of the catalogue, with the layer of its paper where the parameters say so. Error where
// there is none.
const VariantInfo& variant_of(const Plugin& plugin);
const VariantInfo* known_variant(const Plugin& plugin);  // the same; null where there is none
bool has_paper_block(const Plugin& plugin);              // whether its parameters say so

// The axes that apply to the measure; the others are empty. See all_axes() for what they mean.
struct Axes {
  std::optional<int64_t> length, batch, heads;
  std::optional<int64_t> kv_heads;  // set where they are fewer than heads
  std::optional<int64_t> head_dim;
  std::optional<Dtype> dtype;  // set where it is not float32
  // Of decoding, set where it is not float32, which stands for what dtype says.
  std::optional<CacheType> kv_dtype;
  // Of speed cells, see mixed_batch.h: it decides length, batch, mode, scope and causal.
  std::optional<std::string> workload;
  // Of a workload: requests a second, of a queue before the server (queue.h).
  std::optional<double> arrivals;
  // Of speed cells too: sequences of other lengths than `length`, without padding; see
  // packed_lengths.h. A list decides length and batch.
  std::optional<std::string> packed;
  std::optional<Mode> mode;
  std::optional<ScopeKind> scope;
  // Of scope model, set where they are not kModelLayers, and of the stack of a reach cell.
  std::optional<int64_t> layers;
  std::optional<Equal> equal;  // set where it is not Equal::width
  std::optional<bool> causal;
  std::optional<int64_t> threads, seed;
  std::optional<InputKind> input;
  std::optional<double> input_scale;
  std::optional<int64_t> repetitions;
  bool operator==(const Axes&) const = default;
};
// The heads of keys and values: kv_heads, else as many as heads.
std::optional<int64_t> key_heads(const Axes& axes);
// Those that are set, by name, in the order of a row.
std::vector<std::pair<std::string, ParamValue>> named_values(const Axes& axes);
// Error where no axis has this name or `value` is of another type.
void set_axis(Axes& axes, const std::string& name, const ParamValue& value);

// Hashes of what a cell's figures depend on; "" where it depends on none.
struct Sources {
  std::string variant, task;
  std::string exact;  // of exact attention, which stands where the variant cannot
  std::string data;   // of the task's files
  bool empty() const { return *this == Sources{}; }
  bool operator==(const Sources&) const = default;
};

struct CellKey {
  int64_t protocol = kProtocol;
  Measure measure = Measure::speed;
  Plugin variant;
  // Of accuracy cells, and of fidelity cells with inputs captured from a model with exact
  // attention, as are the settings of training.
  std::optional<Plugin> task;
  Axes axes;
  std::optional<Params> training;
  // Parameters of the variant with which the learned weights are scored too, in place of those of
  // the training; of accuracy cells.
  std::vector<Params> test_with;
  // Parameters of the task on whose test split the learned weights are scored too.
  std::vector<Params> test_on;
  Sources source;
  bool operator==(const CellKey&) const = default;
};

// Its variant, or of a stack those of its layers.
std::vector<Plugin> variants_of(const CellKey& key);

// Whether the cell is a fidelity cell whose inputs are captured from a model.
bool reads_model(const CellKey& key);
// The training that this model comes from, as the key of an accuracy cell of exact attention, whose
// sources are those of `key`. Its length is that of the captured inputs: with pooling=cls, one more
// than the task's.
CellKey training_behind(const CellKey& key);
// The axes of such a cell that the task and the settings of training decide.
inline constexpr std::array kDecidedByModel = {"length", "heads", "head_dim", "causal"};

// The workload of a speed, memory, fidelity or reach cell. Error where the variant is unknown.
WorkloadSpec workload_of(const CellKey& key);

}  // namespace attn
