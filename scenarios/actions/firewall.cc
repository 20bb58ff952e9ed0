#include <fmt/format.h>
#include <fmt/ranges.h>

#include "absl/strings/numbers.h"
#include "core/base/status.h"
#include "scenarios/actions/action.h"
#include "scenarios/mesh/world.h"
#include "sim/inputs/kinds/network.h"
#include "sim/network/underlay.h"

namespace wavetank::scenario {
namespace {

void CheckFirewall(const Field& f) {
  const std::string state = f["state"].Text();
  if (state == "removed" && !f["name"].present()) f.Fail("which rule is removed?", "add name: NAME");
  if (state == "removed" && (f["from"].present() || f["to"].present() || f["ports"].present()))
    f.Fail("is removed by its name alone", "leave out from, to and ports");
  if (state != "deny" && f["reject"].present()) f["reject"].Fail("is of rules that deny", "leave it out");
}

Inputs InputsOfFirewall(const Arguments& a, const ActionContext& context) {
  sim::inputs::SetFirewall rule;
  rule.state = a.Text("state");
  rule.name = a.Text("name");
  rule.from = a.Texts("from");
  rule.to = a.Texts("to");
  rule.ports = a.Texts("ports");
  rule.reject = a.Flag("reject");
  rule.established = a.Flag("established");
  const auto wrong = [&](std::string_view what) {
    return absl::InvalidArgumentError(fmt::format("{}:{}: {}", context.scenario.file, a.line(), what));
  };
  sim::WorldFirewall probe{rule.name, rule.from, rule.to, {}};
  for (const std::string& text : rule.ports) {
    int64_t port = 0;
    if (!absl::SimpleAtoi(text, &port)) return wrong(fmt::format("firewall: '{}' is no port; write 1 to 65535", text));
    probe.ports.push_back(port);
  }
  // A log's own sites are known to its world alone.
  if (rule.state != "removed" && !context.scenario.of_log) {
    absl::StatusOr<sim::Underlay> underlay = sim::Underlay::Create(MakeUnderlayPlan(context.scenario));
    if (!underlay.ok()) return underlay.status();
    if (absl::Status status = underlay->SetFirewall(probe); !status.ok()) return wrong(Message(status));
  }
  return std::vector<sim::Input>{std::move(rule)};
}

std::string DescribeFirewall(const Arguments& a) {
  if (a.Text("state") == "removed") return fmt::format("firewall rule {} goes", a.Text("name"));
  const auto ends = [&](std::string_view key) {
    const std::vector<std::string> all = a.Texts(key);
    return all.empty() ? std::string("everywhere") : fmt::format("{}", fmt::join(all, ", "));
  };
  return fmt::format("firewall {} {} to {}{}{}{}",
                     a.Text("state") == "allow" ? "allows"
                     : a.Flag("reject")         ? "rejects"
                                                : "drops",
                     ends("from"), ends("to"), a.Has("ports") ? " at ports " : "", fmt::join(a.Texts("ports"), ", "),
                     a.Flag("established") ? ", connections that stand too" : "");
}

}  // namespace

void RegisterFirewall(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"firewall",
               "A firewall rule, before all others; the first that fits decides, and what none fits passes",
               {row::Choice("state", {"deny", "allow", "removed"}, "removed: the rule of that name").Required(),
                row::Text("name", "By which it is replaced or removed"),
                row::Other("from", FieldType::kTexts, "Ranges, addresses, clusters, sites; everything if left out"),
                row::Other("to", FieldType::kTexts, "The same; CLUSTER/kube-apiserver is an API server"),
                row::Other("ports", FieldType::kTexts, "Of the destination; every one if left out"),
                row::Other("reject", FieldType::kFlag, "Connections are refused instead of dropped"),
                row::Other("established", FieldType::kFlag, "Connections that stand are looked at, too")}},
       .example = "{state: deny, from: [c1], to: [172.30.2.0/24], ports: [15443]}",
       .what =
           "connections between those ranges, clusters or sites are dropped (`reject: true`: refused), new ones alone "
           "unless `established: true`; also `allow`, and `removed` by its `name`",
       .check = CheckFirewall,
       .describe = DescribeFirewall,
       .inputs = InputsOfFirewall});
}

}  // namespace wavetank::scenario
