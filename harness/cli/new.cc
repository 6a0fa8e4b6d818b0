// attnbench new: a variant or a task that compiles and passes its checks as it is made, with the
// places to change marked. Inside the source tree: its file, its line in the lists, its test.
// Outside: the folder of a plug-in. --python: one file with a class of torch.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "core/base/io_error.h"
#include "core/base/plugin_name.h"
#include "harness/cli/templates.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/process/process.h"
#include "tasks/catalog.h"
#include "variants/catalog.h"

namespace attn::cli {
namespace {

namespace fs = std::filesystem;

struct Kind {
  const char* family;  // of --family
  const char* folder;  // below variants/ or tasks/
  const char* share;   // of the generated test: the weight that a query of zeros gives its own key
};
constexpr Kind kKinds[] = {{"pattern", "patterns", "1"},
                           {"scores", "scores", "0.5"},
                           {"kernel", "features", "1"},
                           {"mixer", "control", "1"}};
constexpr Kind kTask = {"", "probes", ""};

// A name stands as a function in C++.
bool is_keyword(const std::string& name) {
  static const std::vector<std::string> words = {
      "alignas",      "alignof",       "and",       "and_eq",
      "asm",          "auto",          "bitand",    "bitor",
      "bool",         "break",         "case",      "catch",
      "char",         "char16_t",      "char32_t",  "char8_t",
      "class",        "co_await",      "co_return", "co_yield",
      "compl",        "concept",       "const",     "const_cast",
      "consteval",    "constexpr",     "constinit", "continue",
      "decltype",     "default",       "delete",    "do",
      "double",       "dynamic_cast",  "else",      "enum",
      "explicit",     "export",        "extern",    "false",
      "float",        "for",           "friend",    "goto",
      "if",           "inline",        "int",       "long",
      "mutable",      "namespace",     "new",       "noexcept",
      "not",          "not_eq",        "nullptr",   "operator",
      "or",           "or_eq",         "private",   "protected",
      "public",       "register",      "requires",  "reinterpret_cast",
      "return",       "short",         "signed",    "sizeof",
      "static",       "static_assert", "struct",    "static_cast",
      "switch",       "template",      "this",      "throw",
      "thread_local", "true",          "try",       "typedef",
      "typeid",       "typename",      "union",     "unsigned",
      "using",        "virtual",       "void",      "volatile",
      "wchar_t",      "while",         "xor",       "xor_eq"};
  return std::find(words.begin(), words.end(), name) != words.end();
}

// A name stands as a module and, with a capital, as a class in Python. The module must not hide
// what it imports itself.
bool is_taken_in_python(const std::string& name) {
  static const std::vector<std::string> words = {"attnbench", "false", "math",  "none",
                                                 "numpy",     "sys",   "torch", "true"};
  return std::find(words.begin(), words.end(), name) != words.end();
}

// "cosine_window" -> "CosineWindow"
std::string class_of(const std::string& name) {
  std::string text;
  bool is_first = true;
  for (const char c : name) {
    if (c != '_') text += is_first ? static_cast<char>(std::toupper(c)) : c;
    is_first = c == '_';
  }
  return text;
}

struct NewFile {
  fs::path path;
  std::string text;
  bool is_edit = false;  // of a file that exists
};

// The source tree that the current folder is in; empty: none.
fs::path source_tree() {
  for (fs::path folder = fs::current_path();; folder = folder.parent_path()) {
    if (fs::exists(folder / "variants/api/variant_info.h") &&
        fs::exists(folder / "tests/variants/sources.cmake"))
      return folder;
    if (folder == folder.parent_path()) return {};
  }
}

std::string text_of_file(const fs::path& path) {
  std::ifstream stream(path);
  ATTN_IO_CHECK(stream.good(), "cannot read '{}'", path.string());
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// variants/CMakeLists.txt with one word more at the end of its list.
NewFile with_word(const fs::path& list, const std::string& what, const std::string& word) {
  std::string text = text_of_file(list);
  const size_t begin = text.find("set(" + what + "\n");
  const size_t end = begin == std::string::npos ? begin : text.find(')', begin);
  ATTN_CHECK(end != std::string::npos, "'{}' has no list set({} ...)", list.string(), what);
  const size_t last = text.find_last_not_of(" \n", end - 1);
  return {list, text.insert(last + 1, "\n  " + word), true};
}

struct Order {  // what is asked for
  bool is_task = false, is_python = false;
  std::string name;
  Kind kind;
};

std::vector<NewFile> files_in_tree(const fs::path& tree, const Order& order,
                                   const std::map<std::string, std::string>& values) {
  const std::string what = order.is_task ? "tasks" : "variants";
  const std::string place = fmt::format("{}/{}", order.kind.folder, order.name);
  const std::string tests = order.is_task ? "float_tests" : "both_tests";
  const fs::path sources = tree / "tests" / what / "sources.cmake";
  const std::string main =
      order.is_task ? "task.cc" : fmt::format("variant_{}.cc", order.kind.family);
  const std::string test = order.is_task ? "test_task.cc" : "test_variant.cc";
  return {
      {tree / what / (place + ".cc"), filled_template(main, values)},
      {tree / "tests" / what / (place + "_test.cc"), filled_template(test, values)},
      with_word(tree / what / "CMakeLists.txt", what, place),
      {sources,
       text_of_file(sources) +
           fmt::format("list(APPEND {} ${{CMAKE_CURRENT_LIST_DIR}}/{}_test.cc)\n", tests, place),
       true}};
}

std::vector<NewFile> files_of_plugin(const fs::path& folder, const Order& order,
                                     const std::map<std::string, std::string>& values) {
  const std::string main =
      order.is_task ? "task.cc" : fmt::format("variant_{}.cc", order.kind.family);
  return {{folder / (order.name + ".cc"), filled_template(main, values)},
          {folder / "CMakeLists.txt", filled_template("plugin.cmake", values)}};
}

void write_files(const std::vector<NewFile>& files) {
  for (const NewFile& file : files)
    ATTN_CHECK(file.is_edit || !fs::exists(file.path), "'{}' exists; choose another name or folder",
               file.path.string());
  for (const NewFile& file : files) {
    std::error_code ignored;  // the write below tells
    fs::create_directories(file.path.parent_path(), ignored);
    std::ofstream stream(file.path);
    stream << file.text << std::flush;
    ATTN_IO_CHECK(stream.good(), "cannot write '{}'", file.path.string());
    print(fmt::format("{} {}\n", file.is_edit ? "changed" : "wrote  ", file.path.string()));
  }
}

// What to type next in the folder of a plug-in.
std::string plugin_steps(const fs::path& folder, const std::string& name) {
  const std::string at = shell_word(folder.string());
  const std::string file = shell_word((folder / "build" / ("lib" + name + ".so")).string());
  const fs::path prefix = own_program().parent_path().parent_path();
  const bool is_installed = fs::exists(prefix / "include/attnbench");
  std::string text;
  if (!is_installed)
    text = "  cmake --install build/native --prefix ~/attnbench     # once, in the source tree\n";
  return text + fmt::format(
                    "  cmake -S {0} -B {0}/build -DCMAKE_PREFIX_PATH={1}\n"
                    "  cmake --build {0}/build\n"
                    "  attnbench check {2} --plugin {3}\n",
                    at, is_installed ? shell_word(prefix.string()) : "~/attnbench", name, file);
}

// Beside the program of a clone (<clone>/build/<preset>) no Python has the package: scripts/bench
// builds it and finds it. Empty: the program is installed.
fs::path clone_of_program() {
  std::error_code unknown;
  const fs::path clone = own_program()
                             .parent_path()  // the preset's folder
                             .parent_path()  // build
                             .parent_path();
  return fs::exists(clone / "scripts" / "bench", unknown) ? clone : fs::path();
}

std::string python_steps(const fs::path& file, const std::string& name) {
  const std::string spec = fmt::format("python:{}:{}", file.string(), name),
                    sweep = fmt::format("run -v full -v {} --measure speed,memory,fidelity",
                                        shell_word(spec + "[window=32]"));
  if (const fs::path clone = clone_of_program(); !clone.empty()) {
    const auto script = [&](const char* name_of) {
      std::error_code unknown;
      const fs::path here = fs::current_path(unknown), whole = clone / "scripts" / name_of;
      const bool is_here = fs::equivalent(here, clone, unknown);
      return shell_word(is_here ? (fs::path("scripts") / name_of).string() : whole.string());
    };
    const bool has_torch = fs::exists(clone / ".venv-python" / "bin" / "python");
    return fmt::format(
        "next: change the places marked `change here`, then\n{}"
        "  {} check {}\n  {} {}\n",
        has_torch ? ""
                  : fmt::format("  {} --venv python     # once: PyTorch, into .venv-python\n",
                                script("setup")),
        script("bench"), shell_word(spec), script("bench"), sweep);
  }
  return fmt::format(
      "next: change the places marked `change here`, then, where the package is installed,\n"
      "  python {0}             # its contract checks\n"
      "  python {0} measure     # its time, memory and fidelity beside `full`\n"
      "  attnbench {1}\n",
      shell_word(file.string()), sweep);
}

Order order_of(const Arguments& arguments) {
  ATTN_CHECK(arguments.words().size() == 2, "new needs a kind and a name; usage: attnbench new {}",
             new_verb().usage);
  const std::string &kind = arguments.words()[0], &name = arguments.words()[1];
  ATTN_CHECK(kind == "variant" || kind == "task", "cannot make '{}'; expected variant or task",
             kind);
  Order order{
      .is_task = kind == "task", .is_python = arguments.has("python"), .name = name, .kind = kTask};
  ATTN_CHECK(is_plugin_name(name), "'{}' cannot be a name: {}", name, kPluginNameRule);
  ATTN_CHECK(order.is_python || !is_keyword(name), "'{}' cannot be a name: it is a word of C++",
             name);
  ATTN_CHECK(!order.is_python || !is_taken_in_python(name),
             "'{}' cannot be a name: it is a word or a module of Python", name);
  ATTN_CHECK(order.is_task ? !task_named(name) : !variant_named(name),
             "there is a {} '{}' already; give yours another name", kind, name);
  ATTN_CHECK(!order.is_task || !arguments.has("family"), "--family is of variants, not of tasks");
  ATTN_CHECK(!order.is_python || !order.is_task, "--python is of variants, not of tasks");
  ATTN_CHECK(!order.is_python || !arguments.has("family"),
             "--family chooses what C++ starts from; it does not go with --python");
  if (order.is_task || order.is_python) return order;
  std::vector<std::string> families;
  for (const Kind& known : kKinds) families.emplace_back(known.family);
  const std::string family = arguments.one_of("family", families);
  for (const Kind& known : kKinds)
    if (family == known.family) order.kind = known;
  return order;
}

int run_new(const Arguments& arguments) {
  const Order order = order_of(arguments);
  const std::map<std::string, std::string> values = {
      {"name", order.name},
      {"Class", class_of(order.name)},
      {"share", order.kind.share},
      {"KIND", order.is_task ? "TASKS" : "VARIANTS"}};
  if (order.is_python) {
    const fs::path file = fs::path(arguments.get("out", ".")) / (order.name + ".py");
    write_files({{file.lexically_normal(), filled_template("variant.py", values)}});
    print(python_steps(file.lexically_normal(), values.at("Class")));
    return kOk;
  }
  const fs::path tree = arguments.has("out") ? fs::path() : source_tree();
  if (!tree.empty()) {
    write_files(files_in_tree(tree, order, values));
    print(
        fmt::format("next: change the places marked `change here`, then\n"
                    "  scripts/bench check {0}\n  scripts/test -R {1}\n",
                    order.name, class_of(order.name)));
    return kOk;
  }
  const fs::path folder = arguments.get("out", order.name);
  write_files(files_of_plugin(folder, order, values));
  print("next: change the places marked `change here`, then\n" + plugin_steps(folder, order.name));
  return kOk;
}

}  // namespace

Verb new_verb() {
  return {
      .name = "new",
      .usage = "variant|task NAME [--family KIND | --python] [--out FOLDER]",
      .summary = "a variant or task of your own that runs as it is made, to change",
      .options = {{"family", 0, "KIND", "of a variant: pattern (default), scores, kernel or mixer"},
                  {"python", 0, "", "a variant in Python: NAME.py, with a class of torch"},
                  {"out", 0, "FOLDER",
                   "of a plug-in; default: NAME, or, inside the source tree, the tree itself; of "
                   "--python: the current folder"}},
      .max_words = 2,
      .run = run_new};
}

}  // namespace attn::cli
