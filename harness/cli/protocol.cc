// attnbench protocol: the definition behind the figures of this program, with its name and hash.
#include "harness/run/protocol.h"

#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"

namespace attn::cli {
namespace {

int run_protocol(const Arguments& arguments) {
  if (arguments.has("json"))
    print(Json{{"name", kProtocolName},
               {"hash", protocol_hash()},
               {"definition", protocol_definition()}}
              .dump(2) +
          "\n");
  else
    print(protocol_page());
  return kOk;
}

}  // namespace

Verb protocol_verb() {
  return {.name = "protocol",
          .usage = "[--json]",
          .summary = "what stands behind a number: profiles, recipes, statistics, verification",
          .options = {{"json", 0, "", "print JSON; the hash is of its `definition`"}},
          .max_words = 0,
          .run = run_protocol};
}

}  // namespace attn::cli
