// The verbs of the command line, one file each; main.cc holds their list.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/options.h"

namespace attn::cli {

// Exit codes of the contract; 130 and 143 come from signals.
inline constexpr int kOk = 0, kCellFailed = 1, kUsage = 2, kNothingMatched = 4, kCheckFailed = 5,
                     kInputOutput = 6;

Verb list_verb();
Verb info_verb();
Verb check_verb();
Verb run_verb();
Verb sample_verb();
Verb apply_verb();
Verb plot_verb();

int run_peer_process();  // the child of scripts/peers, see peer.cc

void print(std::string_view text);  // to stdout; an IoError when it cannot be written (a full disk,
                                    // a closed pipe)
void warn(std::string_view text);   // to stderr

enum class Stream { out, err };
bool wants_color(const std::string& choice,
                 Stream stream);  // auto|always|never, a terminal, NO_COLOR, TERM=dumb
bool is_terminal(Stream stream);

// IoError unless the folder of `path` exists (or can be made) and a file of that name can be
// written there.
void require_writable(const std::string& path);

}  // namespace attn::cli
