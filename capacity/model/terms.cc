#include "capacity/model/terms.h"

namespace wavetank::capacity {
namespace {

using S = const Situation&;

double One(S) { return 1; }
double If(bool condition, double value) { return condition ? value : 0; }

double Full(S s) { return If(IsFull(s.change), 1); }
double FullServices(S s) { return If(IsFull(s.change), s.mesh.services); }
double FullEndpoints(S s) { return If(IsFull(s.change), s.mesh.endpoints); }
double Incremental(S s) { return If(s.change == Change::kEndpoints, 1); }
double IncrementalNames(S s) { return If(s.change == Change::kEndpoints, s.mesh.Visible()); }
double FullVisible(S s) { return If(IsFull(s.change), s.mesh.Visible()); }
double RouteVisible(S s) { return If(PushesRoutes(s.change), s.mesh.Visible()); }
double AllEdsServices(S s) { return If(PushesAllEndpoints(s.change), s.mesh.Visible()); }
double AllEdsEndpoints(S s) { return If(PushesAllEndpoints(s.change), s.mesh.VisibleEndpoints()); }
double Services(S s) { return s.mesh.services; }
double Endpoints(S s) { return s.mesh.endpoints; }
double Visible(S s) { return s.mesh.Visible(); }
double VisibleEndpoints(S s) { return s.mesh.VisibleEndpoints(); }
double Events(S s) { return s.events; }
double SecretAdded(S s) { return If(s.change == Change::kSecretAdded, 1); }
double FirstEndpoints(S s) { return s.mesh.proxies > 0 ? s.mesh.VisibleEndpoints() / s.mesh.proxies : 0; }
// PILOT_MAX_REQUESTS_PER_SECOND lets 25 in a second and the measured clients asked twice a second: whoever is the n-th
// has asked n/25*2 times. Half of that is the mean.
double Refusals(S s) { return s.mesh.proxies / 25; }

// Memory.
double Proxies(S s) { return If(s.change != Change::kStart, s.mesh.proxies); }
double ProxiesVisible(S s) { return If(s.change != Change::kStart, s.mesh.proxies * s.mesh.Visible()); }
double InFlight(S s) {
  const double together = s.mesh.proxies < 50 ? s.mesh.proxies : 50;
  return If(s.change != Change::kStart, together * (s.mesh.Visible() * 2 + s.mesh.VisibleEndpoints() / 10));
}
double AfterFull(S s) { return If(s.after_full || IsFull(s.change), 1); }
double AfterFullProxies(S s) { return AfterFull(s) * s.mesh.proxies; }
double AfterFullVisible(S s) { return AfterFull(s) * s.mesh.proxies * s.mesh.Visible(); }
double RemoteClusters(S s) { return s.mesh.clusters - 1; }

}  // namespace

std::string_view NameOf(Change change) {
  static constexpr std::string_view kNames[kChanges] = {"start",  "connect",    "endpoints",    "service",
                                                        "policy", "everything", "secret added", "secret deleted"};
  return kNames[static_cast<int>(change)];
}

const std::vector<Term>& Terms() {
  static const auto* const kTerms = new std::vector<Term>{
      {"start.process", "ms", Place::kProcess, One, "istiod starts"},
      {"start.service", "ms", Place::kProcess, Services, "and reads a Service"},
      {"start.endpoint", "ms", Place::kProcess, Endpoints, "and an endpoint with its pod"},
      {"connect.client", "ms", Place::kClient, One, "a proxy connects: authentication, its state, four requests"},
      {"connect.service", "ms", Place::kClient, Visible, "its first configuration, per service that it sees"},
      {"connect.endpoint", "ms", Place::kClient, VisibleEndpoints, "and per endpoint"},
      {"connect.miss", "ms", Place::kClient, FirstEndpoints, "and once per endpoint, for the first proxy of all"},
      {"connect.refusal", "ms", Place::kClient, Refusals, "a stream refused by PILOT_MAX_REQUESTS_PER_SECOND"},
      {"push.fixed", "ms", Place::kPush, One, "a push: debounce, cache, queue"},
      {"push.event", "ms", Place::kPush, Events, "an event from the API server through informer and registry"},
      {"push.context", "ms", Place::kPush, Full, "a push context"},
      {"push.context.service", "ms", Place::kPush, FullServices, "per service in it"},
      {"push.context.endpoint", "ms", Place::kPush, FullEndpoints, "per endpoint in the index"},
      {"push.secret", "ms", Place::kPush, SecretAdded, "a remote cluster's client and its informers' first lists"},
      {"eds.proxy", "ms", Place::kEds, Incremental, "an incremental push to one proxy"},
      {"eds.name", "ms", Place::kEds, IncrementalNames, "per cluster name that the proxy watches"},
      {"full.proxy", "ms", Place::kCds, Full, "a full push to one proxy: its state, listeners, four sends"},
      {"cds.service", "ms", Place::kCds, FullVisible, "a cluster generated and sent"},
      {"rds.service", "ms", Place::kRds, RouteVisible, "a virtual host generated and sent"},
      {"eds.service", "ms", Place::kEds, AllEdsServices, "a load assignment out of the cache, sent"},
      {"eds.endpoint", "ms", Place::kEds, AllEdsEndpoints, "per endpoint in it"},
      {"eds.miss", "ms", Place::kMiss, AllEdsEndpoints, "per endpoint of a load assignment that is generated"},
      {"rss.process", "MB", Place::kResident, One, "istiod with an empty mesh"},
      {"rss.service", "MB", Place::kResident, Services, "a Service with its clusters and routes"},
      {"rss.endpoint", "MB", Place::kResident, Endpoints, "an endpoint with its pod"},
      {"rss.proxy", "MB", Place::kResident, Proxies, "a connected proxy"},
      {"rss.proxy.service", "MB", Place::kResident, ProxiesVisible, "per service that it watches"},
      {"rss.in_flight", "MB/KB", Place::kResident, InFlight, "responses of up to 50 pushes at once"},
      {"rss.full", "MB", Place::kResident, AfterFull, "the heap after full pushes"},
      {"rss.full.proxy", "MB", Place::kResident, AfterFullProxies, "per proxy"},
      {"rss.full.proxy.service", "MB", Place::kResident, AfterFullVisible, "per service that it watches"},
      {"rss.remote_cluster", "MB", Place::kResident, RemoteClusters,
       "a remote cluster beyond its services and endpoints"},
      {"bytes.eds.update", "KB", Place::kBytes, Incremental, "an incremental EDS response"},
      {"bytes.lds", "KB", Place::kBytes, Full, "listeners of a proxy without services of its own ports"},
      {"bytes.cds.service", "KB", Place::kBytes, FullVisible, "a cluster"},
      {"bytes.rds.service", "KB", Place::kBytes, RouteVisible, "a virtual host"},
      {"bytes.eds.service", "KB", Place::kBytes, AllEdsServices, "a load assignment"},
      {"bytes.eds.endpoint", "KB", Place::kBytes, AllEdsEndpoints, "an endpoint in it"},
      {"bench.message", "ms", Place::kBench, nullptr, "the bench's client takes a response, on istiod's processors"},
      {"bench.kilobyte", "ms", Place::kBench, nullptr, "per KB of it"},
      {"bench.start", "ms", Place::kBench, nullptr, "write to debouncer, beyond the debounce time, and wire"},
      {"shape.misses", "proxies", Place::kShape, nullptr, "proxies that generate the same load assignments at once"},
      {"shape.wait_for_wire", "KB", Place::kShape, nullptr,
       "a response beyond which its sender lets other pushes go on"},
      {"security.tls_handshake", "ms", Place::kGiven, nullptr, "a TLS handshake at istiod's port"},
      {"security.token_review", "ms", Place::kGiven, nullptr, "a TokenReview, istiod's processor time"},
      {"security.sign", "ms", Place::kGiven, nullptr, "a certificate signed"},
      {"runtime.gc_share", "share", Place::kGiven, nullptr, "of all processor time at GOGC 100; contained in the rest"},
      {"idle.process", "ms/s", Place::kGiven, nullptr, "an idle istiod"},
      {"idle.proxy", "ms/s", Place::kGiven, nullptr, "and per connected proxy (keepalives)"},
      {"api.elections", "leases", Place::kGiven, nullptr, "that it holds or wants; all candidates ask each 7.5 s"},
      {"api.informers", "kinds", Place::kGiven, nullptr, "of objects that it lists and watches in a cluster"},
      {"api.pod", "KB", Place::kGiven, nullptr, "a pod with its sidecar, as an API server sends it"},
      {"api.pod.writes", "writes", Place::kGiven, nullptr, "of pods for each write of an EndpointSlice"},
      {"api.slice", "KB", Place::kGiven, nullptr, "an EndpointSlice without endpoints"},
      {"api.slice.endpoint", "KB", Place::kGiven, nullptr, "and per endpoint"},
      {"api.object", "KB", Place::kGiven, nullptr, "a Service or an object of Istio's"},
      {"envoy.rss.process", "MB", Place::kGiven, nullptr, "an Envoy without configuration"},
      {"envoy.rss.cluster", "MB", Place::kGiven, nullptr, "per cluster in its configuration, with its route"},
      {"envoy.rss.endpoint", "MB", Place::kGiven, nullptr, "per endpoint"},
      {"envoy.cpu.cluster", "ms", Place::kGiven, nullptr, "a cluster that is new to it, with its route"},
      {"envoy.cpu.first_endpoint", "ms", Place::kGiven, nullptr, "and per endpoint"},
      {"envoy.cpu.unchanged", "ms", Place::kGiven, nullptr, "a cluster or route that a full push has again"},
      {"envoy.cpu.endpoint", "ms", Place::kGiven, nullptr, "an applied load assignment"},
  };
  return *kTerms;
}

const Term* FindTerm(std::string_view name) {
  for (const Term& term : Terms()) {
    if (term.name == name) return &term;
  }
  return nullptr;
}

}  // namespace wavetank::capacity
