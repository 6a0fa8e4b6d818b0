// See python_variants.h. Each file is described once, by a process of the package.
#include "harness/plan/python_variants.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "core/base/io_error.h"
#include "core/base/plugin_name.h"
#include "harness/cell/codec.h"
#include "harness/cell/source_hash.h"
#include "harness/process/python_process.h"
#include "variants/catalog.h"

namespace attn {
namespace {

namespace fs = std::filesystem;

constexpr double kDescribeLimit = 120;  // seconds: a first import of torch from a cold disk

std::deque<PythonVariant>& loaded() {
  static std::deque<PythonVariant> list;
  return list;
}

std::string contents_of(const std::string& file) {
  std::error_code ignored;
  std::ifstream stream(file, std::ios::binary);
  ATTN_IO_CHECK(stream.good() && !fs::is_directory(file, ignored), "cannot read '{}'", file);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// What the package says of a file, asked once.
const Json& described_file(const std::string& file) {
  static std::map<std::string, Json> known;
  contents_of(file);  // IoError before an interpreter is looked for
  const std::string path = fs::canonical(file).string();
  if (const auto found = known.find(path); found != known.end()) return found->second;
  return known[path] = printed_by(
             package_process({"describe", path, sources_of_build()}, "", kDescribeLimit), file);
}

// An answer of another form than expected is of another version of the package.
template <class Body>
auto understood(const Body& body) {
  try {
    return body();
  } catch (const Json::exception& error) {
    throw_error(
        fmt::format("the package attnbench of '{}' answers in another form ({}); build it again",
                    python_interpreter(), error.what()));
  }
}

// "Cosine" as "python_cosine".
std::string name_for(const std::string& attribute) {
  std::string name(kPythonNames);
  for (const char c : attribute) name += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  ATTN_CHECK(is_plugin_name(name),
             "'{}' is no name of a variant: letters, digits and '_', {} at "
             "most; rename it in Python",
             attribute, 40 - kPythonNames.size());
  return name;
}

std::string load_described(const std::string& file, const Json& of_file, const Json& one) {
  const std::string attribute = one.at("attribute"), fault = one.at("fault");
  ATTN_CHECK(fault.empty(), "{}:{}: {}", file, attribute, fault);
  const std::string name = name_for(attribute), path = fs::canonical(file).string();
  if (const PythonVariant* const other = python_variant(name)) {
    ATTN_CHECK(other->path == path && other->attribute == attribute,
               "{}:{} and {}:{} would both be called {}; rename one of them", other->file,
               other->attribute, file, attribute, name);
    return name;
  }
  add_python_variant({.name = name,
                      .file = file,
                      .attribute = attribute,
                      .path = path,
                      .hash = hash_of_bytes(contents_of(path) + attribute),
                      .python = of_file.at("python"),
                      .torch = of_file.at("torch")},
                     python_info(one, name));
  return name;
}

std::string load(const std::string& file, const std::string& attribute) {
  const Json& of_file = described_file(file);
  std::vector<std::string> names;
  for (const Json& one : of_file.at("variants")) {
    if (one.at("attribute") == attribute) return load_described(file, of_file, one);
    names.push_back(one.at("attribute"));
  }
  throw_error(names.empty()
                  ? fmt::format("'{}' holds no class of torch.nn.Module and no function", file)
                  : fmt::format("'{}' has no class or function '{}'; nearest is '{}'", file,
                                attribute, nearest(attribute, names)));
}

ParamSpec param_of(const Json& json) {
  const std::string name = json.at("name"), help = json.at("help");
  const Json& value = json.at("default");
  constexpr double kMost = 1e9;
  if (value.is_boolean()) return {name, value.get<bool>(), help};
  if (value.is_number_integer()) return {name, value.get<int64_t>(), help, -kMost, kMost};
  if (value.is_number()) return {name, value.get<double>(), help, -kMost, kMost};
  ParamSpec text(name, std::vector<std::string>{""}, help);
  text.value = value.get<std::string>();
  return text;
}

}  // namespace

std::string catalogued(const std::string& name) {
  if (!name.starts_with(kPythonPrefix)) return name;
  const std::string rest = name.substr(kPythonPrefix.size());
  const size_t colon = rest.rfind(':');
  ATTN_CHECK(
      colon != std::string::npos && colon > 0 && colon + 1 < rest.size(),
      "'{}' names no variant; write python:FILE.py:NAME, with the name of a class or function",
      name);
  return understood([&] { return load(rest.substr(0, colon), rest.substr(colon + 1)); });
}

std::vector<std::string> load_python_file(const std::string& text) {
  const std::string file = text.substr(kPythonPrefix.size());
  std::vector<std::string> names = understood([&] {
    const Json& of_file = described_file(file);
    std::vector<std::string> own;
    for (const Json& one : of_file.at("variants"))
      if (one.at("own") && one.at("fault") == "") own.push_back(load_described(file, of_file, one));
    return own;
  });
  ATTN_CHECK(!names.empty(),
             "'{}' holds no class of torch.nn.Module and no function that can be a "
             "variant",
             file);
  return names;
}

std::vector<std::string> load_python_variants(const std::vector<std::string>& given) {
  std::vector<std::string> others;
  for (const std::string& text : given)
    if (text.starts_with(kPythonPrefix))
      catalogued(text);
    else
      others.push_back(text);
  return others;
}

const PythonVariant* python_variant(std::string_view name) {
  for (const PythonVariant& variant : loaded())
    if (variant.name == name) return &variant;
  return nullptr;
}

const std::deque<PythonVariant>& python_variants() { return loaded(); }

ChildSpec python_child(const PythonVariant& variant, const std::string& what, std::string input,
                       double timeout_s) {
  return package_process({what, variant.path, variant.attribute, variant.name}, std::move(input),
                         timeout_s);
}

ChildSpec cell_process(const std::string& program, const Request& request, double timeout_s) {
  const std::optional<Plugin>& of = request.key ? request.key->variant : request.variant;
  std::string input = to_json(request).dump();
  if (const PythonVariant* const python = of ? python_variant(of->name) : nullptr)
    return python_child(*python, "cell", std::move(input), timeout_s);
  return {program, {"cell"}, std::move(input), timeout_s};
}

Json answer_of_python(const PythonVariant& variant, const std::string& what, const Json& input) {
  return printed_by(python_child(variant, what, input.dump()), variant.file);
}

VariantInfo python_info(const Json& described, const std::string& name) {
  const Json& promises = described.at("promises");
  const auto is = [&](const char* promise) { return promises.at(promise).get<bool>(); };
  VariantInfo info{.name = name,
                   .family = kPythonFamily,
                   .summary = described.at("summary"),
                   .paper = "written in Python",
                   .cost_formula = "",
                   .traits = {.exact = is("exact"),
                              .causal = is("causal"),
                              .cross = is("cross"),
                              .padding = is("padding"),
                              .linear_memory = false,
                              .random = is("random"),
                              .fixed_length = is("fixed_length"),
                              .convex = is("convex"),
                              .permutable = is("permutable"),
                              .rowwise = is("rowwise")},
                   .params = {}};
  for (const Json& param : described.at("params")) info.params.push_back(param_of(param));
  info.make = [name](const AttentionConfig&) -> std::unique_ptr<Attention> {
    throw_error(fmt::format("{} runs in Python alone", name));
  };
  info.skip_reason = [step = promises.at("multiple_of").get<int64_t>()](
                         const AttentionShape& shape, const Params&) -> std::optional<std::string> {
    if (shape.q_len % step == 0 && shape.kv_len % step == 0) return std::nullopt;
    return fmt::format("takes lengths that are multiples of {} alone", step);
  };
  return info;
}

void add_python_variant(PythonVariant variant, VariantInfo info) {
  add_variant(std::move(info), variant.hash);
  loaded().push_back(std::move(variant));
}

std::string sources_of_build() {
  return hash_of({source_hash("variants", exact_reference().name), built_in_hash("variants", ""),
                  built_in_hash("tasks", ""), source_hash("harness", "check")});
}

}  // namespace attn
