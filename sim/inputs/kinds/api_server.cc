#include "sim/inputs/kinds/api_server.h"

#include <algorithm>

#include "core/base/bounds.h"
#include "fakes/kube/store/faults.h"
#include "fmt/format.h"
#include "sim/inputs/fields.h"
#include "sim/world_inputs.h"

namespace wavetank::sim::inputs {
namespace {

constexpr std::string_view kNone = "none";  // ends them all

// The field of the input that a fault's parameter is; null: it has none.
std::optional<Duration> FailApiServer::*FieldOf(const fakekube::FaultRow& row) {
  if (row.parameter == "latencyNs") return &FailApiServer::latency;
  if (row.parameter == "retryAfterNs") return &FailApiServer::retry_after;
  if (row.parameter == "skewNs") return &FailApiServer::skew;
  return nullptr;
}

}  // namespace

std::vector<ApiServerFault> ApiServerFaults() {
  std::vector<ApiServerFault> out;
  for (const fakekube::FaultRow& row : fakekube::FaultTable()) {
    std::string_view detail = row.parameter;
    if (detail.ends_with("Ns")) detail.remove_suffix(2);
    out.push_back({row.name, detail, row.does});
  }
  out.push_back({kNone, "", "all faults end"});
  return out;
}

void FailApiServer::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("fault", Need::kRequired, fault);
  visitor.Visit("latencyNs", latency);
  visitor.Visit("retryAfterNs", retry_after);
  visitor.Visit("skewNs", skew);
}

absl::Status FailApiServer::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = target.FindSite(cluster);
  if (!site.ok()) return site.status();
  fakekube::ApiServer& api = (*site)->cluster().api();
  if (fault == kNone) {
    fakekube::EndFaults(api);
  } else if (const fakekube::FaultRow* row = fakekube::FindFault(fault); row != nullptr) {
    const auto field = FieldOf(*row);
    const Duration wanted = field == nullptr ? row->otherwise : (this->*field).value_or(row->otherwise);
    // A clock may go behind; nothing else lies in the past.
    const Duration least = row->name == "clock-skew" ? -bounds::kInputDuration : Duration::zero();
    row->start(api, std::clamp(wanted, least, bounds::kInputDuration));
  } else {
    return absl::InvalidArgumentError(fmt::format("no fault of an API server is named '{}'", fault));
  }
  TraceRecord record;
  record.kind = fault == kNone ? TraceKind::kFaultEnded : TraceKind::kFaultStarted;
  record.subject = target.host.Intern(cluster + "/kube-apiserver");
  target.host.Emit(record);
  return absl::OkStatus();
}

}  // namespace wavetank::sim::inputs

namespace wavetank::sim {
void RegisterApiServer(InputTable& table) { table.Add<inputs::FailApiServer>(); }
}  // namespace wavetank::sim
