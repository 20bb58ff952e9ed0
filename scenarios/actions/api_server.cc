#include "sim/inputs/kinds/api_server.h"

#include <fmt/format.h>

#include "scenarios/actions/action.h"

namespace wavetank::scenario {
namespace {

constexpr std::string_view kDetails[] = {"latency", "retryAfter", "skew"};

std::vector<std::string_view> FaultNames() {
  std::vector<std::string_view> out;
  for (const sim::inputs::ApiServerFault& fault : sim::inputs::ApiServerFaults()) out.push_back(fault.name);
  return out;
}

// A detail of another fault would be ignored, so it is a mistake.
void CheckDetails(const Field& f) {
  const std::string wanted = f["fault"].Text();
  for (const sim::inputs::ApiServerFault& fault : sim::inputs::ApiServerFaults()) {
    if (fault.name != wanted) continue;
    for (const std::string_view detail : kDetails) {
      const Field given = f[std::string(detail)];
      if (given.present() && fault.detail != detail)
        given.Fail(fmt::format("says nothing of the fault '{}'", wanted), "leave it out, or name another fault");
    }
  }
}

std::string DescribeFault(const Arguments& a) {
  std::string how;
  for (const std::string_view detail : kDetails) how += a.Has(detail) ? " " + a.Text(detail) : "";
  return fmt::format("API server of {}: {}{}", a.Text("cluster"), a.Text("fault"), how);
}

}  // namespace

void RegisterApiServer(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"apiServer",
               "A fault of an API server",
               {row::Cluster().Required(), row::Choice("fault", FaultNames(), "").Required(),
                row::Other("latency", FieldType::kDuration,
                           "Of a slow API server: what each answer and event takes longer"),
                row::Other("retryAfter", FieldType::kDuration, "Of too-many-requests: when to come again"),
                row::Other("skew", FieldType::kSignedDuration,
                           "Of clock-skew: how far its clock is ahead (90s) or behind (-90s)")}},
       .example = "{cluster: c2, fault: unreachable}",
       .what =
           "also `slow` (`latency: 500ms`), `watches-dropped`, `history-gone` (410), `unauthorized`, "
           "`too-many-requests` (429, `retryAfter: 1s`), `stale-reads` (lists and watches stand still), `clock-skew` "
           "(`skew: 90s` or `-90s`); `none` ends them all",
       .check = CheckDetails,
       .describe = DescribeFault,
       .inputs = [](const Arguments& a, const ActionContext&) -> Inputs {
         return std::vector<sim::Input>{sim::inputs::FailApiServer{
             a.Text("cluster"), a.Text("fault"), a.Time("latency"), a.Time("retryAfter"), a.Time("skew")}};
       }});
}

}  // namespace wavetank::scenario
