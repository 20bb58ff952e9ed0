// Requests that were really sent in a copy of the settled mesh: what no other rule explains.
#include <algorithm>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::check {
namespace {

// A finding of more than a note about something of the Service's or the client's namespace, or of Istio's own.
bool Explained(const RequestOutcome& request, const std::vector<Finding>& before) {
  return std::any_of(before.begin(), before.end(), [&](const Finding& f) {
    if (f.rule->level == Level::kInfo || f.rule->code == "WT801") return false;
    if (f.object.empty()) return f.rule->level == Level::kError;
    const std::string_view object = f.object;
    const size_t begin = object.find(' '), end = object.find('/');
    if (begin == object.npos || end == object.npos) return true;  // of no namespace
    const std::string_view ns = object.substr(begin + 1, end - begin - 1);
    return ns.empty() || ns == request.ns || ns == request.client_ns || ns == kSystemNamespace;
  });
}

void RequestsFail(const Mesh& mesh, Findings& findings) {
  for (const RequestOutcome& r : findings.requests()) {
    const bool retried = r.failed == 0 && r.retried * 4 >= r.sent;
    if ((r.failed == 0 && !retried) || Explained(r, findings.before())) continue;
    const std::string message =
        retried ? fmt::format(
                      "{} of {} requests from {} to port {} get through after a retry alone: some of its endpoints "
                      "are dead",
                      r.retried, r.sent, r.client, r.port)
                : fmt::format("{} of {} requests from {} to port {} fail: {}", r.failed, r.sent, r.client, r.port,
                              fmt::join(r.reasons, "; "));
    const MeshCluster* at = mesh.Find(r.cluster);
    kube::ObjectRef service = at == nullptr ? nullptr : mesh.Get(*at, "Service", r.ns, r.service);
    for (const auto& cluster : mesh.clusters()) {
      if (service != nullptr) break;
      service = mesh.Get(*cluster, "Service", r.ns, r.service);
      at = cluster.get();
    }
    if (service != nullptr) findings.Add(*at, *service, message);
  }
}

}  // namespace

const std::vector<Rule>& RequestRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT801", "RequestsFail", Level::kError, "something that no other rule knows stands between client and Service",
       "`wavetank why MESH --from CLIENT --to HOST:PORT` shows the request hop by hop", "", RequestsFail},
  };
  return *rules;
}

}  // namespace wavetank::check
