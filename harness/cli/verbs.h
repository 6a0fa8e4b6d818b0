// The verbs of the command line, one file each; main.cc holds their list.
#pragma once

#include "harness/cli/options.h"

namespace attn::cli {

// Exit codes of the contract; 130 and 143 come from signals.
inline constexpr int kOk = 0, kCellFailed = 1, kUsage = 2, kRegression = 3, kNothingMatched = 4,
                     kCheckFailed = 5, kInputOutput = 6, kUndecided = 7;

Verb list_verb();
Verb info_verb();
Verb check_verb();
Verb run_verb();
Verb sample_verb();
Verb apply_verb();
Verb plot_verb();
Verb report_verb();
Verb merge_verb();
Verb compare_verb();
Verb table_verb();
Verb fit_verb();
Verb export_verb();
Verb noise_verb();
Verb repro_verb();
Verb new_verb();
Verb doctor_verb();
Verb protocol_verb();
Verb cite_verb();
Verb submit_verb();
Verb verify_verb();
Verb pool_verb();
Verb board_verb();
Verb advise_verb();
Verb coverage_verb();
Verb config_verb();
Verb completion_verb();

int run_peer_process();  // the child of scripts/peers, see peer.cc

}  // namespace attn::cli
