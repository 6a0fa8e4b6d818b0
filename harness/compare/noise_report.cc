// See noise_report.h.
#include "harness/compare/noise_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace attn {
namespace {

std::string share_text(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::string mode_text(const NoiseOf& noise) {
  if (!noise.mode) return "all";
  return noise.threads == 1 ? std::string(name_of(*noise.mode))
                            : fmt::format("{}, {} threads", name_of(*noise.mode), noise.threads);
}

std::vector<std::string> line_of(const NoiseOf& noise) {
  return {mode_text(noise),
          noise.mode ? std::to_string(noise.length) : "",
          std::to_string(noise.pairs),
          share_text(noise.scatter),
          share_text(noise.detectable),
          share_text(noise.largest),
          std::to_string(noise.pairs - noise.held),
          std::to_string(noise.raised)};
}

std::string place_text(const NoiseOf& noise) {
  return fmt::format("{} {}", mode_text(noise), noise.length);
}

std::string raised_note(const NoiseOf& all) {
  if (all.raised == 0)
    return fmt::format("none of {} cells differs from itself beyond chance (Holm's correction)",
                       all.pairs);
  return fmt::format(
      "{} of {} cells differ from themselves beyond chance (Holm's correction), which is seen in 5 "
      "of 100 such measurements at most: something on this machine changed in between",
      all.raised, all.pairs);
}

std::string coverage_note(const NoiseOf& all) {
  const std::string seen = fmt::format(
      "{} of {} intervals hold \"no difference\": {:.0f} % ({:.0f} to {:.0f} %)", all.held,
      all.pairs, 100.0 * static_cast<double>(all.held) / static_cast<double>(all.pairs),
      100 * all.held_low, 100 * all.held_high);
  if (all.holds_as_claimed()) return seen + ", which agrees with the 95 % that they claim";
  return seen + (all.held_high < 0.95 ? "; they claim 95 % and are too narrow here"
                                      : "; they claim 95 % and are wider than need be here");
}

std::string closing_note(const NoiseReport& report) {
  const auto [least, most] = std::minmax_element(
      report.groups.begin(), report.groups.end(),
      [](const NoiseOf& a, const NoiseOf& b) { return a.detectable < b.detectable; });
  if (report.groups.size() == 1)
    return fmt::format("this machine can tell a difference of {} at {}; nothing smaller is faster",
                       share_text(least->detectable), place_text(*least));
  return fmt::format(
      "this machine can tell a difference of {} at {} and of {} at {}; nothing smaller is faster",
      share_text(least->detectable), place_text(*least), share_text(most->detectable),
      place_text(*most));
}

std::vector<std::string> notes_of(const NoiseReport& report) {
  std::vector<std::string> notes = {
      "detectable: between two cells of three visits each, found by a test at 5 % in 80 of 100 "
      "cases; differ: of two measurements of one cell, at 5 % each"};
  if (report.disturbed > 0)
    notes.push_back(fmt::format("{} of {} pairs hold a time that is marked as disturbed",
                                report.disturbed, report.all.pairs));
  if (report.single > 0)
    notes.push_back(fmt::format("{} cells are in one of the two files alone", report.single));
  for (const LeftOut& pair : report.left_out) notes.push_back(pair.label + ": " + pair.reason);
  const auto few = std::count_if(report.groups.begin(), report.groups.end(),
                                 [](const NoiseOf& group) { return group.pairs < kLeastPairs; });
  if (few > 0)
    notes.push_back(fmt::format("{} of {} lines are of fewer than {} cells: no floor is kept", few,
                                report.groups.size(), kLeastPairs));
  if (report.groups.empty()) return notes;
  notes.push_back(raised_note(report.all));
  notes.push_back(coverage_note(report.all));
  notes.push_back(closing_note(report));
  return notes;
}

Json json_of_noise(const NoiseOf& noise) {
  const bool is_all = !noise.mode;
  return {{"mode", is_all ? Json() : Json(name_of(*noise.mode))},
          {"threads", is_all ? Json() : Json(noise.threads)},
          {"length", is_all ? Json() : Json(noise.length)},
          {"cells", noise.pairs},
          {"scatter", noise.scatter},
          {"detectable", noise.detectable},
          {"largest", noise.largest},
          {"differ", noise.pairs - noise.held},
          {"differ_corrected", noise.raised},
          {"intervals_hold", noise.held},
          {"hold_low", noise.held_low},
          {"hold_high", noise.held_high},
          {"as_claimed", noise.holds_as_claimed()}};
}

}  // namespace

Table noise_table(const NoiseReport& report) {
  Table table{.title = "noise of this machine: each cell measured twice, in turns",
              .columns = {"mode", "length", "cells", "scatter of a visit", "detectable",
                          "largest difference", "differ", "differ, corrected"},
              .rows = {},
              .notes = notes_of(report)};
  for (const NoiseOf& group : report.groups) table.rows.push_back(line_of(group));
  if (report.groups.size() > 1) table.rows.push_back(line_of(report.all));
  return table;
}

std::vector<Json> noise_lines(const NoiseReport& report) {
  std::vector<Json> lines;
  for (const NoiseOf& group : report.groups) lines.push_back(json_of_noise(group));
  if (!lines.empty()) lines.push_back(json_of_noise(report.all));
  return lines;
}

}  // namespace attn
