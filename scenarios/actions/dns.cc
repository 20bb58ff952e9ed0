#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/web.h"

namespace wavetank::scenario {
namespace {

std::string DescribeDns(const Arguments& a) {
  const std::vector<std::string> addresses = a.Texts("addresses");
  if (addresses.empty()) return fmt::format("DNS knows {} no more", a.Text("name"));
  return fmt::format("DNS says {} for {}", fmt::join(addresses, ", "), a.Text("name"));
}

}  // namespace

void RegisterDns(std::vector<ActionKind>& table) {
  table.push_back({.row = {"dns",
                           "Change what DNS answers",
                           {row::Text("name", "Host name").Required(),
                            row::Other("addresses", FieldType::kAddresses, "Answers; none: NXDOMAIN")}},
                   .example = "{name: lb.example, addresses: [172.30.1.9]}",
                   .what = "what DNS answers; no addresses: the name is unknown",
                   .describe = DescribeDns,
                   .inputs = [](const Arguments& a, const ActionContext&) -> Inputs {
                     return std::vector<sim::Input>{sim::inputs::SetDns{a.Text("name"), a.Texts("addresses")}};
                   }});
}

}  // namespace wavetank::scenario
