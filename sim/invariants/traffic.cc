// I7 and I18: handshakes and gateways on the way of requests.
#include <fmt/format.h>

#include "sim/invariants/checkers.h"
#include "sim/invariants/look.h"

namespace wavetank::sim {
namespace {

class Handshakes final : public Checker {
  void OnTrace(const TraceEvent& event) override {
    if (event.record.kind != TraceKind::kHandshake) return;
    const NameTable& names = world().kernel().names();
    const std::pair<NameId, NameId> ends{event.record.subject, event.record.object};
    if (event.record.a == 1) {
      if (failed_.erase(ends) > 0) Holds(Scope(names, ends));
      return;
    }
    if (!failed_.insert(ends).second) return;
    Breach breach;
    breach.key = "handshake";
    breach.subject = names.Text(event.record.subject);
    breach.what = fmt::format("the handshake with {} failed: {}", names.Text(event.record.object), event.record.detail);
    breach.cause = event.cause;
    Tell(Scope(names, ends), {std::move(breach)});
  }
  static std::string Scope(const NameTable& names, const std::pair<NameId, NameId>& ends) {
    return names.Text(ends.first) + " " + names.Text(ends.second);
  }

  std::set<std::pair<NameId, NameId>> failed_;
};

class GatewayHops final : public Checker {
  void OnRequest(const TrafficRecord& record) override {
    std::string way;
    int gateways = 0;
    for (size_t i = 1; i < record.hops.size(); ++i) {
      const envoysim::Hop& hop = record.hops[i];
      const Workload& workload = world().commons().network->at(hop.to);
      if (hop.proxy == kNoName || workload.direct == nullptr || workload.inbound != nullptr) continue;
      ++gateways;
      way += (way.empty() ? "" : ", ") + world().kernel().names().Text(hop.proxy);
    }
    if (gateways <= 1) return Holds(record.client + " " + record.spec.host);
    Breach breach;
    breach.key = "hops";
    breach.subject = record.client;
    breach.what = fmt::format("a request to {} passed {} gateways: {}", record.spec.host, gateways, way);
    Tell(record.client + " " + record.spec.host, {std::move(breach)});
  }
};

}  // namespace

std::unique_ptr<Checker> MakeHandshakes() { return std::make_unique<Handshakes>(); }
std::unique_ptr<Checker> MakeGatewayHops() { return std::make_unique<GatewayHops>(); }

}  // namespace wavetank::sim
