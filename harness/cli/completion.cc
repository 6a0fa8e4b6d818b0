// attnbench completion SHELL: the script that a shell reads. It asks `attnbench complete`, so that
// it knows what this program knows.
#include "core/base/check.h"
#include "harness/cli/terminal.h"
#include "harness/cli/topics.h"
#include "harness/cli/verbs.h"

namespace attn::cli {
namespace {

int run_completion(const Arguments& arguments) {
  ATTN_CHECK(!arguments.words().empty(), "completion needs a shell; usage: attnbench completion {}",
             completion_verb().usage);
  print(completion_script(arguments.words()[0]));
  return kOk;
}

}  // namespace

Verb completion_verb() {
  return {
      .name = "completion",
      .usage = "bash|zsh|fish",
      .summary = "a script that completes words in a shell: source <(attnbench completion bash)",
      .options = {},
      .max_words = 1,
      .run = run_completion};
}

}  // namespace attn::cli
