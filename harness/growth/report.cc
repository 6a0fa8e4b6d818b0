// See report.h.
#include "harness/growth/report.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "harness/cell/codec.h"

namespace attn {
namespace {

std::string amount(Measure measure, double value) {
  return measure == Measure::speed ? human_seconds(value) : human_bytes(value);
}

// "2.65 ns" of an element, where amounts of whole passes would show too few digits.
std::string constant_text(const Growth& growth) {
  const double value = growth.law->constant();
  return growth.measure == Measure::speed ? fmt::format("{:.3g} ns", value * 1e9)
                                          : fmt::format("{:.3g} B", value);
}

std::string range_of(const std::vector<int64_t>& lengths) {
  return fmt::format("{}-{} ({})", lengths.front(), lengths.back(), lengths.size());
}

std::string held_back_text(const Growth& growth) {
  if (!growth.held_back) return "";
  const Growth::HeldBack& held = *growth.held_back;
  return fmt::format("x{:.2f} at {}{}", held.measured / held.predicted.value, held.length,
                     held.holds() ? "" : " (outside)");
}

bool is_curved(const Growth& growth) {
  return growth.law->curvature_p() && *growth.law->curvature_p() < kCurved;
}

std::vector<std::string> cells_of(const Growth& growth, const std::optional<int64_t>& at) {
  std::vector<std::string> line = {growth.variant};
  if (!growth.law) {
    line.resize(at ? 8 : 7);
    return line;
  }
  const PowerLaw& law = *growth.law;
  line.push_back(fmt::format("{:.3f} ±{:.3f}", law.exponent(), law.exponent_reach()));
  line.push_back(growth.declared ? fmt::format("{:.3f}", *growth.declared) : "");
  line.push_back(constant_text(growth));
  line.push_back(range_of(growth.lengths));
  line.push_back(!law.curvature_p()  ? ""
                 : is_curved(growth) ? fmt::format("yes (p {:.2g})", *law.curvature_p())
                                     : fmt::format("no (p {:.2g})", *law.curvature_p()));
  line.push_back(held_back_text(growth));
  if (at)
    line.push_back(fmt::format("{} ({} to {})", amount(growth.measure, growth.extrapolated->value),
                               amount(growth.measure, growth.extrapolated->low),
                               amount(growth.measure, growth.extrapolated->high)));
  return line;
}

std::string title_of(const Growth& growth) {
  return fmt::format("{} = constant · length^exponent (± half its 95 % interval); {}",
                     growth.measure == Measure::speed ? "time" : "memory beyond inputs and outputs",
                     growth.group);
}

std::vector<std::string> notes_of(const std::vector<Growth>& growths, const std::string& title,
                                  const std::optional<int64_t>& at) {
  std::vector<std::string> notes;
  bool has_curve = false, has_law = false, is_tested = false;
  for (const Growth& growth : growths) {
    if (title_of(growth) != title) continue;
    if (!growth.law) notes.push_back(fmt::format("{}: {}", growth.variant, growth.reason));
    has_law |= growth.law.has_value();
    has_curve |= growth.law && is_curved(growth);
    is_tested |= growth.law && growth.law->curvature_p();
  }
  if (has_law)
    notes.push_back(
        "held back: what was measured at the longest length over what the shorter ones "
        "predict; outside: of the prediction's 95 % interval");
  if (is_tested)
    notes.push_back(
        fmt::format("curved: yes where p is below {:g}; p is the probability of so much curvature "
                    "by chance",
                    kCurved));
  if (has_curve)
    notes.push_back(
        "where it is curved, the exponent changes with length, and one number is a mean over these "
        "lengths (--from N leaves short ones out)");
  if (at && has_law)
    notes.push_back("extrapolated: not measured; true only where the law holds that far");
  return notes;
}

}  // namespace

std::vector<Table> growth_tables(const std::vector<Growth>& growths,
                                 const std::optional<int64_t>& at) {
  std::vector<Table> tables;
  for (const Growth& growth : growths) {
    const std::string title = title_of(growth);
    auto table = std::find_if(tables.begin(), tables.end(),
                              [&](const Table& known) { return known.title == title; });
    if (table == tables.end()) {
      std::vector<std::string> columns = {"variant", "exponent", "declared", "constant",
                                          "lengths", "curved",   "held back"};
      if (at) columns.push_back(fmt::format("extrapolated to {}", *at));
      tables.push_back(
          {.title = title, .columns = columns, .rows = {}, .notes = notes_of(growths, title, at)});
      table = std::prev(tables.end());
    }
    table->rows.push_back(cells_of(growth, at));
  }
  return tables;
}

std::vector<Json> growth_lines(const std::vector<Growth>& growths,
                               const std::optional<int64_t>& at) {
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(); };
  std::vector<Json> lines;
  for (const Growth& growth : growths) {
    Json line = {{"measure", name_of(growth.measure)},
                 {"variant", growth.variant},
                 {"name", growth.plugin.name},
                 {"params", to_json(growth.plugin.params)},
                 {"axes", growth.group},
                 {"lengths", growth.lengths},
                 {"reason", growth.law ? Json() : Json(growth.reason)}};
    const auto predicted = [](const PowerLaw::Prediction& prediction) {
      return Json{{"value", prediction.value}, {"low", prediction.low}, {"high", prediction.high}};
    };
    if (growth.law) {
      line["exponent"] = growth.law->exponent();
      line["exponent_reach"] = growth.law->exponent_reach();
      line["constant"] = growth.law->constant();
      line["declared_exponent"] = or_null(growth.declared);
      line["curvature_p"] = or_null(growth.law->curvature_p());
      line["is_curved"] = is_curved(growth);
      if (growth.held_back) {
        line["held_back"] = predicted(growth.held_back->predicted);
        line["held_back"]["length"] = growth.held_back->length;
        line["held_back"]["measured"] = growth.held_back->measured;
        line["held_back"]["holds"] = growth.held_back->holds();
      }
      if (at) {
        line["extrapolated"] = predicted(*growth.extrapolated);
        line["extrapolated"]["length"] = *at;
      }
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace attn
