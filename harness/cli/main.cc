// attnbench: the command line. One file a verb; this one picks the verb and turns errors into exit
// codes.
#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>

#include "core/base/io_error.h"
#include "core/base/nearest.h"
#include "core/simd/isa.h"
#include "harness/child/one_cell.h"
#include "harness/cli/complete.h"
#include "harness/cli/manual.h"
#include "harness/cli/terminal.h"
#include "harness/cli/topics.h"
#include "harness/cli/verbs.h"
#include "harness/measure/environment.h"
#include "harness/plan/grammar.h"
#include "harness/plan/python_variants.h"
#include "harness/plugin/load.h"

namespace attn::cli {
namespace {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> list = {
      list_verb(),   info_verb(),      check_verb(),    run_verb(),    sample_verb(),
      apply_verb(),  compare_verb(),   table_verb(),    fit_verb(),    noise_verb(),
      repro_verb(),  merge_verb(),     export_verb(),   plot_verb(),   report_verb(),
      new_verb(),    doctor_verb(),    protocol_verb(), cite_verb(),   submit_verb(),
      verify_verb(), pool_verb(),      board_verb(),    advise_verb(), coverage_verb(),
      config_verb(), completion_verb()};
  return list;
}

std::string overview() {
  std::string text =
      "attnbench compares attention variants on this machine: speed, memory, accuracy, distance "
      "from exact attention\n\n"
      "usage: attnbench VERB [OPTION...]\n\n";
  for (const Verb& verb : verbs()) text += fmt::format("  {:<10} {}\n", verb.name, verb.summary);
  text += fmt::format("\n  attnbench help TOPIC explains one of: {}\n", join(topic_names()));
  text +=
      "  attnbench help VERB explains one verb; attnbench --version tells what was built\n"
      "\nexit codes: 0 all ok or skipped; 1 a cell failed, diverged, timed out or was out of "
      "memory;\n"
      "  2 wrong usage, a file that cannot be understood, or what verify refuses;\n"
      "  3 compare found something worse, or repro or verify something else; 4 nothing matched;\n"
      "  5 a contract check is red, or an answer that was measured is wrong; 6 input or output "
      "failed\n"
      "  (a full disk, no permission, a file that cannot be read);\n"
      "  7 compare --strict: something is undecided; 130, 143 interrupted; 141 the reader of a "
      "pipe "
      "left\n";
  return text;
}

std::string version() {
  std::string text = fmt::format("attnbench {}\n", ATTN_VERSION);
  for (const EnvironmentField& field : environment())
    if (field.name == "commit" || field.name == "dirty" || field.name == "compiler" ||
        field.name == "build_type" || field.name == "instruction_set" ||
        field.name == "kernel_instruction_set")
      text += fmt::format("{:<22} {}\n", field.name, field.value);
  return text;
}

std::string unknown_word(const char* what, const std::string& name,
                         const std::vector<std::string>& names) {
  return fmt::format("unknown {} '{}'{} (attnbench --help lists them)", what, name,
                     nearest_note(name, names));
}

const Verb& find_verb(const std::string& name) {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) {
    if (verb.name == name) return verb;
    names.push_back(verb.name);
  }
  throw_error(unknown_word("verb", name, names));
}

std::string help_on(const std::string& name) {
  const char* const topic = topic_text(name);
  std::vector<std::string> names = topic_names();
  for (const Verb& verb : verbs()) {
    if (verb.name == name) return (topic ? topic + std::string("\n") : "") + help_of(verb);
    names.push_back(verb.name);
  }
  if (topic) return topic;
  throw_error(unknown_word("verb or topic", name, names));
}

// "help", "help VERB", "help TOPIC" or "help --man"; asking for help on help gives the overview.
int help(const std::vector<std::string>& arguments) {
  ATTN_CHECK(arguments.size() <= 2,
             "unexpected argument '{}'; usage: attnbench help [VERB | TOPIC | --man]",
             arguments[2]);
  const std::string name = arguments.size() < 2 ? "help" : arguments[1];
  const bool general = name == "help" || name == "--help" || name == "-h";
  print(general ? overview() : name == "--man" ? manual_page(verbs()) : help_on(name));
  return kOk;
}

// `attnbench complete -- WORD...`: what may stand in place of the last word, a line each.
int complete(std::vector<std::string> words) {
  words.erase(words.begin(), words.begin() + std::min<std::ptrdiff_t>(2, std::ssize(words)));
  const auto verb = std::find_if(verbs().begin(), verbs().end(), [&](const Verb& one) {
    return !words.empty() && one.name == words[0];
  });
  const bool loads = verb == verbs().end() || verb->loads_plugins;
  for (size_t i = 0; loads && i + 2 < words.size(); i++)
    if (words[i] == "--plugin") load_plugins(load_python_variants({words[i + 1]}));
  for (const std::string& text : completions(verbs(), words)) print(text + "\n");
  return kOk;
}

int dispatch(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    warn(overview());
    return kUsage;
  }
  const std::string& name = arguments[0];
  if (name == "help") return help(arguments);
  if (name == "--help" || name == "-h") return print(overview()), kOk;
  if (name == "--version") return print(version()), kOk;
  load_plugins_of_environment();
  if (name == "cell") return run_cell_process();       // a sweep's child; not for people
  if (name == "complete") return complete(arguments);  // a shell's question; see complete.h
  if (name == "peer") return run_peer_process();       // scripts/peers' child; not for people
  const Verb& verb = find_verb(name);
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  for (const std::string& word : rest) {
    if (word == "--help" || word == "-h") return print(help_of(verb)), kOk;
    if (word == "--") break;
  }
  const Arguments given = parse(verb, rest);
  if (verb.loads_plugins) load_plugins(load_python_variants(given.all("plugin")));
  return verb.run(given);
}

void hold_kernels() {
  const char* name = std::getenv("ATTN_ISA");
  if (!name || !*name) return;
  try {
    hold_isa(name);
  } catch (const Error& error) {
    throw_error(fmt::format("ATTN_ISA: {}", error.what()));
  }
}

// A file that is opened gets the lowest free number. Where stdin, stdout or stderr is closed, that
// file would then receive what is printed. /dev/null takes such a number, opened so that reading
// and printing still fail.
void occupy_closed_streams() {
  for (const int stream : {0, 1, 2})
    if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY) < 0)
      std::_Exit(kInputOutput);
}

// Destructors of JSON allocate, and one that finds no memory ends the program without a word. So
// the first allocation that fails gives this memory back for them, and throws.
std::unique_ptr<char[]> g_reserve;
constexpr size_t kReserve = size_t{256} << 10;

void keep_reserve() {
  g_reserve = std::make_unique<char[]>(kReserve);
  std::set_new_handler([] {
    g_reserve.reset();
    std::set_new_handler(nullptr);
    throw std::bad_alloc();
  });
}

}  // namespace
}  // namespace attn::cli

int main(int argc, char** argv) {
  attn::cli::occupy_closed_streams();
  try {
    attn::cli::keep_reserve();
    attn::cli::hold_kernels();
    return attn::cli::dispatch({argv + 1, argv + argc});
  } catch (const attn::IoError& error) {
    attn::cli::warn(fmt::format("attnbench: {}\n", error.what()));
    return attn::cli::kInputOutput;
  } catch (const std::filesystem::filesystem_error& error) {
    attn::cli::warn(fmt::format("attnbench: cannot look at '{}': {}\n", error.path1().string(),
                                error.code().message()));
    return attn::cli::kInputOutput;
  } catch (const attn::Error& error) {
    attn::cli::warn(fmt::format("attnbench: {}\n", error.what()));
    return attn::cli::kUsage;
  } catch (const std::bad_alloc&) {
    attn::cli::warn("attnbench: the system gave no more memory\n");
    return attn::cli::kCellFailed;
  } catch (const std::exception& error) {
    attn::cli::warn(fmt::format("attnbench: unexpected: {}\n", error.what()));
    return attn::cli::kCellFailed;
  }
}
