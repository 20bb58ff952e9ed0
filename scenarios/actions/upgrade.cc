#include <fmt/format.h>

#include "core/base/status.h"
#include "core/profile/profile.h"
#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/install.h"

namespace wavetank::scenario {
namespace {

void CheckUpgrade(const Field& f) {
  if (const auto profile = pilot::ParseProfile(f["to"].Text()); !profile.ok()) {
    f["to"].Fail(Message(profile.status()), "`wavetank profiles` lists them");
  }
  if (f["part"].Text() == "oldIstiod" && f["revision"].Text().empty()) {
    f["part"].Fail("says not which istiod stays", "add revision: NAME; in place, nothing old is left");
  }
}

}  // namespace

void RegisterUpgrade(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"upgrade",
               "Give a part of a cluster another release of Istio",
               {row::Cluster().Required(), row::Text("to", "A profile: istio-1.30").Required(),
                row::Choice("part", {"istiod", "injector", "gateways", "workloads", "oldIstiod"}, "").Required(),
                row::Text("revision", "Beside what runs, as a revision of that name; in its place if left out")}},
       .example = "{cluster: c1, to: istio-1.30, part: istiod, revision: canary}",
       .what =
           "`istioctl upgrade`, or with a `revision` a canary: `istiod` with its injector; `injector` alone; rollouts "
           "of `gateways`, and of `workloads` with sidecars, for proxies of the new release; `oldIstiod` is removed",
       .check = CheckUpgrade,
       .describe =
           [](const Arguments& a) {
             const std::string revision = a.Text("revision");
             return fmt::format("upgrade {} of {} to {}{}", a.Text("part"), a.Text("cluster"), a.Text("to"),
                                revision.empty() ? "" : ", revision " + revision);
           },
       .inputs = [](const Arguments& a, const ActionContext&) -> Inputs {
         return std::vector<sim::Input>{
             sim::inputs::Upgrade{a.Text("cluster"), a.Text("to"), a.Text("revision"), a.Text("part")}};
       }});
}

}  // namespace wavetank::scenario
