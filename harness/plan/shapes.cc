// Texts of TOML to layers, and layers to sub-sweeps; see shapes.h.
#include "harness/plan/shapes.h"

#include <algorithm>
#include <set>

#include "core/base/check.h"
#include "core/base/nearest.h"
#include "harness/plan/axes.h"
#include "harness/plan/toml_reader.h"
#include "harness/plan/variant_choices.h"

namespace attn {

extern const char* const kShapesText;

namespace {

constexpr const char* kOfShape[] = {"heads", "kv_heads", "head_dim"};

class ShapesFile {
 public:
  explicit ShapesFile(const std::string& file) : reader_(file), file_(file) {}

  std::vector<ModelShape> read(std::string_view text) const {
    const TomlValue top = parse_toml(file_, text);
    reader_.require_keys(top, "a file of shapes", {"shape"});
    const TomlValue* const shapes = top.find("shape");
    if (!shapes || shapes->kind != TomlValue::Kind::list)
      reader_.refuse(shapes ? shapes->line : 1, "there is no shape; write a [[shape]] block");
    std::vector<ModelShape> found;
    for (const TomlValue& shape : shapes->items) {
      found.push_back(shape_of(shape));
      for (size_t i = 0; i + 1 < found.size(); ++i)
        if (found[i].name == found.back().name)
          reader_.refuse(shape.line, fmt::format("there are two shapes '{}'", found[i].name));
    }
    return found;
  }

 private:
  ModelShape shape_of(const TomlValue& table) const {
    reader_.require_keys(table, "[[shape]]", {"name", "source", "note", "layers"});
    ModelShape shape;
    shape.name = text(table, "name", true);
    shape.source = text(table, "source", false);
    shape.note = text(table, "note", false);
    const TomlValue* const layers = table.find("layers");
    if (!layers || layers->kind != TomlValue::Kind::list || layers->items.empty())
      reader_.refuse(table.line,
                     fmt::format("shape '{}' has no list of layers; write layers = [{{ variant = "
                                 "\"full\", heads = 32, head_dim = 128 }}]",
                                 shape.name));
    for (const TomlValue& layer : layers->items) shape.layers.push_back(layer_of(layer));
    return shape;
  }

  ShapeLayer layer_of(const TomlValue& table) const {
    reader_.require_keys(table, "a layer", {"count", "variant", "heads", "kv_heads", "head_dim"});
    ShapeLayer layer;
    layer.variant = text(table, "variant", true);
    reader_.at(table, [&] {
      const VariantChoices choices = resolve_variants({parse_spec(layer.variant)});
      ATTN_CHECK(choices.size() == 1, "a layer is of one variant, and '{}' stands for {}",
                 layer.variant, choices.size());
      layer.plugin = key_of_variant(*choices[0].first, choices[0].second);
    });
    static const ParamSpec kCount("count", 1, "", 1, 1000);
    layer.count = whole(table, kCount, false);
    layer.heads = whole(table, find_axis("heads").spec, true);
    layer.kv_heads = whole(table, find_axis("kv_heads").spec, false);
    layer.head_dim = whole(table, find_axis("head_dim").spec, true);
    return layer;
  }

  std::string text(const TomlValue& table, const char* key, bool is_needed) const {
    const TomlValue* const value = table.find(key);
    if (!value && is_needed) reader_.refuse(table.line, fmt::format("there is no {}", key));
    return value ? reader_.text_of(key, *value) : "";
  }

  int64_t whole(const TomlValue& table, const ParamSpec& spec, bool is_needed) const {
    const TomlValue* const value = table.find(spec.name);
    if (!value && is_needed) reader_.refuse(table.line, fmt::format("there is no {}", spec.name));
    if (!value) return std::get<int64_t>(spec.value);
    return reader_.at(*value, [&] {
      ATTN_CHECK(value->kind == TomlValue::Kind::whole, "{} is {}{}; expected a whole number",
                 spec.name, name_of(value->kind), value->is_scalar() ? ", " + value->text : "");
      return std::get<int64_t>(spec.parse("a layer", value->text));
    });
  }

  TomlReader reader_;
  const std::string& file_;
};

// The batch of each length, of which each holds so many tokens.
void hold_tokens(SubSweep& sweep, SweepRequest& request) {
  ATTN_CHECK(!request.axes.contains("batch") && !sweep.axes.contains("batch"),
             "--tokens {} and a batch are both given; the tokens decide the batch of each length",
             request.tokens);
  for (const auto& zip : sweep.rules.zips)
    ATTN_CHECK(std::find(zip.begin(), zip.end(), "length") == zip.end(),
               "--tokens {} does not apply to a sweep file whose lengths are in a zip",
               request.tokens);
  const AxisInfo& axis = find_axis("length");
  const auto asked = request.axes.find("length"), offered = sweep.axes.find("length");
  const std::string text = asked != request.axes.end()   ? asked->second
                           : offered != sweep.axes.end() ? offered->second
                                                         : to_string(axis.spec.value);
  std::vector<std::string> batches;
  for (const std::string& value : axis_values(axis, text)) {
    const int64_t length = std::get<int64_t>(axis.spec.parse("axis", value));
    ATTN_CHECK(request.tokens % length == 0,
               "--tokens {} is no whole number of sequences of length {}", request.tokens, length);
    batches.push_back(std::to_string(request.tokens / length));
  }
  request.axes["length"] = text;
  request.axes["batch"] = join(batches);
  if (batches.size() > 1) sweep.rules.zips.push_back({"length", "batch"});
}

}  // namespace

std::vector<ModelShape> read_shapes(const std::string& file, std::string_view text) {
  return ShapesFile(file).read(text);
}

const std::vector<ModelShape>& all_shapes() {
  static const std::vector<ModelShape> list = read_shapes("profiles/shapes.toml", kShapesText);
  return list;
}

const ModelShape& find_shape(std::string_view name) {
  std::vector<std::string> names;
  for (const ModelShape& shape : all_shapes()) {
    if (shape.name == name) return shape;
    names.push_back(shape.name);
  }
  throw_error(fmt::format("unknown shape '{}'{} (known: {}; or FILE.toml)", name,
                          nearest_note(name, names), join(names, ", ")));
}

void refuse_idle_shapes(const SweepRequest& request, const std::vector<Measure>& measures) {
  const std::string asked = request.tokens > 0 ? fmt::format("--tokens {}", request.tokens)
                            : request.shapes.empty()
                                ? ""
                                : fmt::format("--shape {}", request.shapes[0].name);
  for (const Measure measure : measures)
    ATTN_CHECK(asked.empty() || (measure != Measure::accuracy && measure != Measure::reach),
               "{} does not apply to measure {}; add --measure speed, memory or fidelity", asked,
               name_of(measure));
  ATTN_CHECK(asked.empty() || request.tasks.empty(),
             "{} does not apply to a task's model; its sizes are of the task and --train", asked);
}

std::vector<std::pair<SubSweep, SweepRequest>> at_shapes(const SubSweep& sweep,
                                                         const SweepRequest& request) {
  std::vector<std::pair<SubSweep, SweepRequest>> placed;
  if (request.shapes.empty()) placed.emplace_back(sweep, request);
  std::set<std::vector<std::string>> seen;  // models share layers
  for (const ModelShape& shape : request.shapes) {
    for (const char* axis : kOfShape)
      ATTN_CHECK(!request.axes.contains(axis),
                 "--shape {} and axis {}={} are both given; a shape says how many heads there are",
                 shape.name, axis, request.axes.at(axis));
    for (const ShapeLayer& layer : shape.layers) {
      auto [own, asked] = std::pair(sweep, request);
      const int64_t values[] = {layer.heads, layer.kv_heads, layer.head_dim};
      std::vector<std::string> key;
      for (size_t i = 0; i < std::size(kOfShape); ++i)
        key.push_back(asked.axes[kOfShape[i]] = std::to_string(values[i]));
      if (asked.axes["kv_heads"] == "0") asked.axes.erase("kv_heads");
      const bool is_served = own.axes.contains("workload") || asked.axes.contains("workload");
      if (!own.axes.contains("causal") && !is_served)
        asked.axes.try_emplace("causal", "true");  // all decode
      if (request.variants.empty()) {
        own.variants.clear();
        asked.variants = {layer.variant};
        key.push_back(layer.variant);
      }
      if (seen.insert(key).second) placed.emplace_back(std::move(own), std::move(asked));
    }
  }
  if (request.tokens > 0)
    for (auto& [own, asked] : placed) hold_tokens(own, asked);
  return placed;
}

}  // namespace attn
