// What a sweep would take, before it runs: the cells of --dry-run, and the question before a long
// one.
#pragma once

#include <string>

#include "harness/plan/plan.h"

namespace attn::cli {

struct DryRun {
  std::string format;  // table, json, csv, md
  bool with_pilots = false, quiet = false;
};

// By formula, and by the pilots that are kept; those that are lacking are run when asked for.
// Returns the exit code.
int dry_run(const SweepRequest& request, Plan& plan, const DryRun& how);

// Where trainings take more than a minute by formula, runs a few pilots, so that the forecast is of
// this machine. Returns SIGINT or SIGTERM when interrupted, else 0.
int forecast_on_this_machine(const SweepRequest& request, Plan& plan);

// True at once where the cells that the rows file lacks take less than half an hour by forecast.
// Otherwise says how long, and what takes most of it; on a terminal, asks.
bool agrees_to_long_run(const SweepRequest& request, const Plan& plan);

}  // namespace attn::cli
