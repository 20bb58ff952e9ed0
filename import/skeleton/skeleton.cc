#include "import/skeleton/skeleton.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "import/report/report.h"
#include "import/skeleton/mesh_of_objects.h"
#include "import/skeleton/parts.h"
#include "import/skeleton/places.h"
#include "import/skeleton/traffic_parts.h"
#include "sim/world_options.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;
using Kind = InputKind;

constexpr const char* kGateway = "istio-eastwestgateway";

std::string FirstLabel(const std::string& host) { return host.substr(0, host.find('.')); }

// A gateway with a host name, and when that came to resolve to something else.
struct NamedGateway {
  struct Change {
    WallNs at;
    bool resolves;  // to anything
  };
  std::vector<Change> changes;
};

// One host and what of it there is at the moment.
struct Host {
  std::string ns, name, home;  // the cluster that its Service is in
  int number = 0;
  bool exists = false;
  int64_t turn = 0, endpoint_turn = 0;
  std::string account;  // of a WorkloadEntry
  struct Slice {
    bool exists = false;
    Time emptied{};
    std::vector<EndpointPart> endpoints;
  };
  std::map<std::string, Slice> slices;  // by cluster
  std::set<std::string> clusters;       // where else its Service is, since something of it happens there
  std::set<std::string> owners;         // of a ServiceEntry: clusters whose istiods read it
  // As access logs tell of it: its ports, and the pods that answered.
  std::vector<PortPart> ports;
  std::vector<EndpointPart> servers;
  std::vector<PortPart> Ports() const { return ports.empty() ? std::vector<PortPart>{PortPart()} : ports; }
};

class Builder {
 public:
  // `dumped`: null if there are no dumps.
  Builder(const Evidence& evidence, const DumpedPlaces* dumped)
      : evidence_(evidence), dumped_(dumped), places_(evidence, dumped) {}

  absl::StatusOr<Skeleton> Build() {
    const bool traffic = std::any_of(evidence_.inputs.begin(), evidence_.inputs.end(),
                                     [](const InferredInput& input) { return input.kind == Kind::kTraffic; });
    if (evidence_.runs.empty() && !traffic && dumped_ == nullptr) {
      return absl::InvalidArgumentError(
          "no log of an istiod and no requests in access logs among the sources: there is nothing to make a mesh of");
    }
    out_.notes = places_.notes();
    MakeClusters();
    FindBeginning();
    Prepare();
    FirstPicture();
    for (size_t i = 0; i < evidence_.inputs.size(); ++i) {
      if (!evidence_.inputs[i].initial) Change(evidence_.inputs[i], places_.Of(i));
    }
    if (dumped_ == nullptr) AddUnnamed();
    for (const Claim& claim : evidence_.claims) {
      if (!claim.initial && claim.at != kNoTime) Say(claim);
    }
    std::stable_sort(out_.inputs.begin(), out_.inputs.end(),
                     [](const MeshInput& a, const MeshInput& b) { return a.at < b.at; });
    for (size_t i = 0; i < out_.inputs.size(); ++i) out_.inputs[i].seq = i;
    for (const auto& [what, count] : unsaid_) {
      out_.notes.push_back(fmt::format("{} x {} cannot be done to a mesh that is made of logs alone", count, what));
    }
    return std::move(out_);
  }

 private:
  void MakeClusters() {
    out_.world.seed = 1;
    for (const std::string& name : places_.clusters()) {
      sim::WorldCluster cluster;
      cluster.name = name;
      cluster.network = "network-of-" + name;
      cluster.control_plane = places_.primaries().contains(name) ? name : places_.primary();
      cluster.observed = true;
      cluster.pod_cidr = "10.1.0.0/16";
      cluster.service_cidr = "10.96.0.0/16";
      cluster.load_balancer_cidr = "172.30.1.0/24";
      out_.world.clusters.push_back(std::move(cluster));
    }
  }

  void FindBeginning() {
    WallNs first = INT64_MAX;
    for (const InferredInput& input : evidence_.inputs) {
      if (!input.initial) first = std::min(first, input.at);
    }
    for (const Claim& claim : evidence_.claims) {
      if (!claim.initial && claim.at != kNoTime)
        first = std::min(first, claim.kind == ClaimKind::kPush ? claim.first_event : claim.at);
    }
    if (first == INT64_MAX) first = evidence_.runs.empty() ? 0 : evidence_.runs.front().from;
    out_.begins = first - kComesUp.count();
  }

  // Hosts whose first endpoints of all a line tells, behind lines that say that there are none. A service or a cluster
  // that goes takes what istiod knew of it along (istiod: pilot/pkg/model/endpointshards.go, DeleteServiceShard,
  // DeleteClusterShards), and then first ones come again.
  void FindFirstEndpoints() {
    std::set<std::string> had;
    for (const InferredInput& input : evidence_.inputs) {
      if (input.initial) continue;
      const bool clusters = input.kind == Kind::kRemoteSecret &&
                            std::any_of(input.clusters.begin(), input.clusters.end(), [](const auto& entry) {
                              return entry.second == "removed" || entry.second == "updated";
                            });
      if (clusters || input.kind == Kind::kIstiodStarted) return;
      if (input.kind == Kind::kService && input.change == "removed") had.insert(input.host);
      if (input.kind != Kind::kEndpoints || input.change == "toZero") continue;
      if (input.change == "first" && !had.contains(input.host)) have_first_endpoints_.insert(input.host);
      had.insert(input.host);
    }
  }

  // What must be there before the first change of it, as that change tells.
  void Prepare() {
    FindFirstEndpoints();
    for (size_t i = 0; i < evidence_.inputs.size(); ++i) {
      const InferredInput& input = evidence_.inputs[i];
      const std::string& placed = places_.Of(i);
      const bool several = places_.primaries().size() > 1 || dumped_ != nullptr;
      if (input.kind == Kind::kProxyConnected || input.kind == Kind::kProxyDisconnected) {
        const auto key = std::pair(input.ns, input.name);
        const bool known = proxies_.contains(key);
        proxy_home_.try_emplace(key, PlaceOf(key, places_.Home(input.replica)));
        proxies_.try_emplace(key, static_cast<int>(proxies_.size()));
        if (!known && input.kind == Kind::kProxyDisconnected) proxies_at_start_.insert(key);
      } else if (input.kind == Kind::kGateway) {
        has_gateway_ = true;
        gateways_.insert(several && !placed.empty() ? placed : places_.primary());
      } else if (input.kind == Kind::kNode) {
        nodes_.insert(placed.empty() ? places_.primary() : placed);
      }
      MeshText& text = texts_[places_.Home(input.replica)];
      if (input.initial && input.kind == Kind::kMeshNetworks) text.networks = HarmlessPrinted(input.detail);
      if (input.initial && input.kind == Kind::kMeshConfig) text.mesh = HarmlessPrinted(input.detail);
      if (input.host.empty() || (input.kind != Kind::kService && input.kind != Kind::kEndpoints)) continue;
      const bool new_host = !hosts_.contains(input.host);
      Host& host = hosts_[input.host];
      if (new_host) {
        host.ns = input.ns.empty() ? "default" : input.ns;
        host.name = FirstLabel(input.host);
        host.number = static_cast<int>(hosts_.size());
        host.exists = input.kind != Kind::kService || input.change != "added";
        // The first endpoints of all are said to be that, unless there are some already.
        const bool first = input.kind == Kind::kEndpoints && input.change == "first" && !input.initial;
        const bool none = !host.exists || first || have_first_endpoints_.contains(input.host);
        if (!none) first_slices_.insert(input.host);
      }
      if (new_host && dumped_ != nullptr && placed.empty()) host.home = DumpedHome(input.host);
      if (!IsKubernetesHost(input.host)) {
        host.owners.insert(places_.Home(input.replica));
      } else if (!placed.empty()) {
        if (host.home.empty()) host.home = placed;
        if (several) host.clusters.insert(placed);
        if (first_slices_.contains(input.host)) host.slices[placed];
      }
    }
    for (const IstiodRun& run : evidence_.runs) {
      for (const auto& [ns, name] : run.proxies) {
        proxy_home_.try_emplace({ns, name}, PlaceOf({ns, name}, places_.Home(run.replica)));
        if (proxies_.try_emplace(std::pair(ns, name), static_cast<int>(proxies_.size())).second) {
          proxies_at_start_.insert({ns, name});
        }
      }
    }
    if (dumped_ == nullptr) PrepareTraffic();
    FindRemoteGateways();
    FindPendingGateways();
    if (dumped_ == nullptr) FindNamedGateways();
    for (auto& [name, host] : hosts_) {
      if (host.home.empty()) host.home = places_.primary();
      if (first_slices_.contains(name)) host.slices[host.home];
    }
  }

  std::string PlaceOf(const std::pair<std::string, std::string>& proxy, const std::string& otherwise) const {
    if (dumped_ == nullptr) return otherwise;
    const auto it = dumped_->pods.find(proxy);
    return it == dumped_->pods.end() ? otherwise : it->second;
  }
  // The first cluster whose dump has its Service; empty: none has.
  std::string DumpedHome(const std::string& host) const {
    const std::string service = host.substr(0, host.find(".svc."));
    if (dumped_->services.contains({places_.primary(), service})) return places_.primary();
    for (const auto& [cluster, its] : dumped_->services) {
      if (its == service) return cluster;
    }
    return {};
  }

  // Clients, the services that they asked and the pods that answered them. All stand in istiod's own cluster.
  void PrepareTraffic() {
    for (const InferredInput& input : evidence_.inputs) {
      if (input.kind != Kind::kTraffic) continue;
      const auto client = std::pair(input.ns, input.name);
      proxies_.try_emplace(client, static_cast<int>(proxies_.size()));
      proxies_at_start_.insert(client);
    }
    for (const Claim& claim : evidence_.claims) {
      if (claim.kind != ClaimKind::kTraffic) continue;
      const json extra = ParseJson(claim.extra);
      const std::string name = wavetank::Text(extra, "service");
      if (!IsKubernetesHost(name)) continue;
      const bool fresh = !hosts_.contains(name);
      Host& host = hosts_[name];
      if (fresh) {
        const size_t dot = name.find('.');
        host.name = FirstLabel(name);
        host.ns = name.substr(dot + 1, name.find('.', dot + 1) - dot - 1);
        host.number = static_cast<int>(hosts_.size());
        host.exists = true;
        first_slices_.insert(name);
      }
      const int port = static_cast<int>(Number(extra, "port", 80));
      int target = port;
      for (const auto& [address, count] : wavetank::At(extra, "upstreams").items()) {
        const size_t colon = address.rfind(':');
        int64_t number = 0;
        if (colon == address.npos || !ReadInteger(address.substr(colon + 1), number)) continue;
        const std::string ip = address.substr(0, colon);
        if (number < 1 || number > 65535 || ip.find(':') != ip.npos) continue;
        target = static_cast<int>(number);
        const std::string pod = ServerName(ip);
        if (std::none_of(host.servers.begin(), host.servers.end(), [&](const auto& s) { return s.ip == ip; })) {
          host.servers.push_back({ip, pod});
        }
      }
      const bool known =
          std::any_of(host.ports.begin(), host.ports.end(), [&](const auto& p) { return p.port == port; });
      if (!known) {
        host.ports.push_back(
            {fmt::format("{}-{}", wavetank::At(extra, "tcp") == true ? "tcp" : "http", port), port, target});
      }
    }
  }

  static std::string ServerName(const std::string& ip) {
    std::string out = "at-" + ip;
    std::replace(out.begin(), out.end(), '.', '-');
    return out;
  }

  // Whether gateways were read anew for a reason that is an input of its own.
  bool ToldOtherwise(const Claim& reload) const {
    constexpr WallNs kOnce = 250'000'000;  // as align.cc takes what several istiods see for one
    return std::any_of(evidence_.inputs.begin(), evidence_.inputs.end(), [&](const InferredInput& input) {
      const bool of_gateways = input.kind == Kind::kGateway || input.kind == Kind::kNode ||
                               input.kind == Kind::kGatewayDns || input.kind == Kind::kMeshNetworks;
      return of_gateways && std::abs(input.at - reload.at) <= kOnce;
    });
  }

  // A cluster whose gateways are read while it is being synced has one.
  void FindRemoteGateways() {
    constexpr WallNs kSyncs = 10'000'000'000;
    for (const InferredInput& input : evidence_.inputs) {
      if (input.kind != Kind::kRemoteSecret) continue;
      for (const auto& [cluster, effect] : input.clusters) {
        if (effect != "added" && effect != "updated") continue;
        for (const Claim& claim : evidence_.claims) {
          if (claim.kind != ClaimKind::kGatewayReload || claim.replica != input.replica) continue;
          if (claim.at >= input.at && claim.at <= input.at + kSyncs && !ToldOtherwise(claim)) {
            remote_gateways_.insert(cluster);
          }
        }
      }
    }
    // What was reloaded for another reason is told as that.
    for (const std::string& cluster : gateways_) remote_gateways_.erase(cluster);
    if (places_.primaries().size() == 1) remote_gateways_.erase(places_.primary());
  }

  // Gateways of which no istiod had an address before the line of their first change: each log begins with its istiod,
  // and until then no line says that gateways have changed, though it reads them where it begins to read a cluster
  // (istiod: pilot/pkg/model/network.go, reloadGateways).
  void FindPendingGateways() {
    WallNs first = INT64_MAX;
    std::set<std::string> from_start;
    for (const InferredInput& input : evidence_.inputs) {
      if (input.kind == Kind::kIstiodStarted && input.initial) from_start.insert(input.replica);
      if (input.kind == Kind::kGateway) first = std::min(first, input.at);
    }
    // An istiod that starts later finds what has come by then.
    const auto later = [&](const IstiodRun& run) { return run.from != kNoTime && run.from > first; };
    if (!remote_gateways_.empty() || !nodes_.empty()) return;
    for (const IstiodRun& run : evidence_.runs) {
      if (!later(run) && (!from_start.contains(run.replica) || run.gateways_at_start)) return;
    }
    for (const Claim& claim : evidence_.claims) {
      if (claim.kind == ClaimKind::kGatewayReload && !claim.initial && claim.at < first && !ToldOtherwise(claim))
        return;
    }
    pending_gateways_ = gateways_;
    if (const auto host = hosts_.find(GatewayHost()); host != hosts_.end()) {
      pending_gateways_.insert(host->second.clusters.begin(), host->second.clusters.end());
    }
  }

  // Gateways whose names come to resolve to something else, by the cluster of the istiod that tells of it. An istiod
  // asks for a name again when the answer's time has passed, so that is how long each holds.
  void FindNamedGateways() {
    constexpr WallNs kOnce = 250'000'000, kLeast = 30'000'000'000;  // network.go, MinGatewayTTL
    for (const InferredInput& change : evidence_.inputs) {
      if (change.kind != Kind::kGatewayDns || change.initial) continue;
      const bool unresolved =
          std::any_of(evidence_.inputs.begin(), evidence_.inputs.end(), [&](const InferredInput& input) {
            return input.kind == Kind::kDns && std::abs(input.at - change.at) <= kOnce;
          });
      std::set<std::string> istiods = {places_.Home(change.replica)};
      for (const std::string& replica : change.also_of) istiods.insert(places_.Home(replica));
      for (const std::string& istiod : istiods) {
        NamedGateway& gateway = named_gateways_[istiod];
        if (gateway.changes.empty() || change.at >= gateway.changes.back().at + kLeast - kOnce)
          gateway.changes.push_back({change.at, !unresolved});
      }
    }
  }
  bool OfNamedGateway(const InferredInput& input) const {
    return std::any_of(named_gateways_.begin(), named_gateways_.end(), [&](const auto& entry) {
      return std::any_of(entry.second.changes.begin(), entry.second.changes.end(),
                         [&](const auto& change) { return std::abs(change.at - input.at) <= 250'000'000; });
    });
  }
  // One of mesh networks, which no other istiod reads. It comes when the first picture has come to rest, at a time that
  // is known: from then on the istiod asks for it.
  static constexpr Duration kAsked = 30s;
  static constexpr const char* kNamedNetwork = "network-of-named-gateway";
  std::string WithNamedGateway(const std::string& istiod, const std::string& networks) const {
    if (!named_gateways_.contains(istiod)) return networks;
    json out = networks.empty() ? json::object() : ParseJson(networks);
    if (!out.is_object()) return networks;
    out["networks"][kNamedNetwork]["gateways"] = json::array({{{"address", NamedGatewayOf(istiod)}, {"port", 15443}}});
    return JsonText(out);
  }
  std::string NamedGatewayOf(const std::string& istiod) const {
    return fmt::format("gateway-{}.imported.example", places_.NumberOf(istiod));
  }
  void AddNamedGateway(const std::string& istiod, const NamedGateway& gateway) {
    Time asked = out_.world.start + kAsked;
    Add(asked, istiod, MeshConfigMap(texts_[istiod].mesh, WithNamedGateway(istiod, texts_[istiod].networks)));
    for (size_t i = 0; i <= gateway.changes.size(); ++i) {
      const Time until = i == gateway.changes.size() ? asked + 24h : At(gateway.changes[i].at);
      json addresses = json::array();
      if (i == 0 || gateway.changes[i - 1].resolves)
        addresses.push_back(fmt::format("172.30.7.{}", 1 + 2 * (places_.NumberOf(istiod) % 120) + i % 2));
      json body = {
          {"name", NamedGatewayOf(istiod)}, {"addresses", std::move(addresses)}, {"ttlNs", (until - asked).count()}};
      out_.inputs.emplace_back(replay::LogInput{i == 0 ? out_.world.start : asked - 1s, 0, "dns", std::move(body)});
      asked = until;
    }
  }

  static bool Pushes(const InferredInput& input) {
    switch (input.kind) {
      case Kind::kService:
      case Kind::kEndpoints:
      case Kind::kSecret:
      case Kind::kConfig:
      case Kind::kGateway:
      case Kind::kNetwork:
      case Kind::kMeshNetworks:
      case Kind::kMeshConfig:
        return true;
      default:
        return false;
    }
  }

  // Changes that no line names kept an istiod's debouncer from being quiet: of a push of more events than lines tell,
  // there was one in every 100 ms (PILOT_DEBOUNCE_AFTER).
  void AddUnnamed() {
    constexpr WallNs kQuiet = 100'000'000;
    for (const Claim& push : evidence_.claims) {
      if (push.kind != ClaimKind::kPush || push.initial || push.last_event - push.first_event <= kQuiet) continue;
      std::vector<WallNs> told = {push.first_event, push.last_event};
      for (const InferredInput& input : evidence_.inputs) {
        const bool its = input.replica == push.replica ||
                         std::find(input.also_of.begin(), input.also_of.end(), push.replica) != input.also_of.end();
        if (its && Pushes(input) && input.at > push.first_event && input.at < push.last_event) told.push_back(input.at);
      }
      std::sort(told.begin(), told.end());
      std::vector<WallNs> unnamed;
      for (size_t i = 0; i + 1 < told.size(); ++i) {
        const WallNs gap = told[i + 1] - told[i];
        if (gap <= kQuiet) continue;
        const int64_t parts = gap / (kQuiet * 9 / 10) + 1;
        for (int64_t part = 1; part < parts; ++part) unnamed.push_back(told[i] + gap / parts * part);
      }
      if (static_cast<int64_t>(told.size() + unnamed.size()) > push.events) continue;  // another debounce
      const std::string& istiod = places_.Home(push.replica);
      for (const WallNs at : unnamed) {
        const int64_t turn = ++turns_["unnamed/" + istiod];
        // A push that is not full has none of configuration in it.
        Add(At(at), istiod,
            push.full ? ConfigObject("DestinationRule", kSystemNamespace, "imported-unnamed", turn)
                      : SecretObject(kSystemNamespace, "imported-unnamed", turn));
      }
    }
  }

  void Add(Time at, const std::string& cluster, json object) {
    json body = {{"cluster", cluster}, {"object", std::move(object)}};
    out_.inputs.emplace_back(replay::LogInput{at, 0, "apply", std::move(body)});
  }
  void Remove(Time at, const std::string& cluster, const std::string& kind, const std::string& ns,
              const std::string& name) {
    json body = {{"cluster", cluster}, {"kind", kind}, {"name", name}};
    if (!ns.empty()) body["namespace"] = ns;
    out_.inputs.emplace_back(replay::LogInput{at, 0, "delete", std::move(body)});
  }
  Time At(WallNs wall) const { return out_.world.start + std::max(Duration::zero(), Duration(wall - out_.begins)); }

  void FirstPicture() {
    const Time start = out_.world.start;
    std::set<std::string> namespaces = {"default"};
    for (const auto& [name, host] : hosts_) namespaces.insert(host.ns);
    for (const auto& [key, number] : proxies_) namespaces.insert(key.first.empty() ? "default" : key.first);
    for (const InferredInput& input : evidence_.inputs) {
      if (!input.ns.empty()) namespaces.insert(input.ns);
    }
    for (const std::string& cluster : places_.clusters()) {
      Add(start, cluster, NamespaceObject(kSystemNamespace, ""));
      for (const std::string& ns : namespaces) {
        if (ns != kSystemNamespace) Add(start, cluster, NamespaceObject(ns, ""));
      }
    }
    for (const std::string& istiod : places_.primaries())
      Add(start, istiod, MeshConfigMap(texts_[istiod].mesh, texts_[istiod].networks));
    for (const std::string& cluster : nodes_) {
      Add(start, cluster, NodeObject(0, places_.NumberOf(cluster)));
      Add(start, cluster, NodePortGateway(places_.NumberOf(cluster)));
    }
    if (!hosts_.contains(GatewayHost())) {
      for (const std::string& cluster : gateways_) AddGateway(start, cluster);
    }
    for (const std::string& cluster : remote_gateways_) AddGateway(start, cluster);
    for (auto& [name, host] : hosts_) {
      if (host.exists) ApplyService(start, name, host);
      for (const EndpointPart& server : host.servers) {
        if (servers_.insert(server.ip).second)
          Add(start, places_.primary(), ServerPod(host.ns, server.pod, server.ip, PortsAt(server.ip)));
      }
      for (auto& [cluster, slice] : host.slices) {
        slice.exists = true;
        slice.endpoints = host.servers.empty() ? std::vector<EndpointPart>{{NextAddress(host), ""}} : host.servers;
        ApplySlice(start, name, host, cluster);
      }
    }
    for (const std::string& istiod : places_.primaries()) {
      Add(start, istiod, IstiodService());
      Add(start, istiod, IstiodEndpoints());
    }
    for (const InferredInput& secret : places_.before()) RemoteSecret(start, secret);
    for (const InferredInput& input : evidence_.inputs) {
      if (input.initial && input.kind == Kind::kRemoteSecret) RemoteSecret(start, input);
    }
    for (const std::string& istiod : places_.primaries()) Add(start, istiod, IstiodPod());
    for (const auto& [istiod, gateway] : named_gateways_) AddNamedGateway(istiod, gateway);
    for (const auto& key : proxies_at_start_) AddProxy(start, key);
  }

  // All that anybody asked of a pod.
  std::vector<PortPart> PortsAt(const std::string& ip) const {
    std::vector<PortPart> out;
    for (const auto& [name, host] : hosts_) {
      if (std::any_of(host.servers.begin(), host.servers.end(), [&](const auto& s) { return s.ip == ip; })) {
        out.insert(out.end(), host.ports.begin(), host.ports.end());
      }
    }
    return out;
  }

  static std::string GatewayHost() { return std::string(kGateway) + "." + kSystemNamespace + ".svc.cluster.local"; }

  void AddGateway(Time at, const std::string& cluster) {
    json service = GatewayService(kGateway, turns_["gateway/" + cluster], places_.NumberOf(cluster));
    if (pending_gateways_.contains(cluster)) service.erase("status");
    if (const auto host = hosts_.find(GatewayHost()); host != hosts_.end() && host->second.turn % 2 == 1) {
      service["spec"]["ports"].push_back(
          {{"name", "tcp-more"}, {"port", 9000}, {"targetPort", 9000}, {"protocol", "TCP"}});
    }
    Add(at, cluster, std::move(service));
  }

  void ApplyService(Time at, const std::string& name, const Host& host) {
    if (!IsKubernetesHost(name)) {
      for (const std::string& owner : host.owners) Add(at, owner, ServiceEntryObject(host.ns, name, host.turn));
      return;
    }
    if (has_gateway_ && name == GatewayHost()) {
      AddGateway(at, host.home);
      for (const std::string& cluster : host.clusters) {
        if (cluster != host.home && !remote_gateways_.contains(cluster)) AddGateway(at, cluster);
      }
      return;
    }
    AddService(at, host.home, host);
    // A service of several clusters is there in each that has endpoints of it.
    for (const auto& [cluster, slice] : host.slices) {
      if (cluster != host.home) AddService(at, cluster, host);
    }
    for (const std::string& cluster : host.clusters) {
      if (cluster != host.home && !host.slices.contains(cluster)) AddService(at, cluster, host);
    }
  }
  void AddService(Time at, const std::string& cluster, const Host& host) {
    if (host.ns == kSystemNamespace && host.name == kGateway && remote_gateways_.contains(cluster)) return;
    Add(at, cluster, ServiceObject(host.ns, host.name, host.number, host.turn, host.Ports()));
  }

  std::string NextAddress(Host& host) {
    const int64_t turn = host.endpoint_turn++;
    return fmt::format("10.2.{}.{}", host.number % 250, 1 + (host.number / 250 * 50 + turn) % 250);
  }

  void ApplySlice(Time at, const std::string& name, Host& host, const std::string& cluster) {
    const Host::Slice& slice = host.slices[cluster];
    if (!IsKubernetesHost(name)) {
      if (slice.endpoints.empty()) return Remove(at, cluster, "WorkloadEntry", host.ns, ExternalName(name));
      return Add(at, cluster, WorkloadEntryObject(host.ns, name, host.endpoint_turn, host.account));
    }
    std::vector<EndpointPart> endpoints = slice.endpoints;
    // Where dumps tell of the service's pods, others of it have the same account: who they are does not change.
    if (dumped_ != nullptr && !dumped_->clusters.contains(cluster)) {
      const auto account = dumped_->accounts.find(name.substr(0, name.find(".svc.")));
      for (EndpointPart& part : endpoints) {
        if (account == dumped_->accounts.end() || !part.pod.empty()) continue;
        part.pod = fmt::format("{}-imported-{}", host.name, host.endpoint_turn);
        Add(std::max(out_.world.start, at - 1ms), cluster, WorkloadPod(host.ns, part.pod, part.ip, account->second));
      }
    }
    Add(at, cluster, SliceObject(host.ns, host.name, endpoints, host.Ports()));
  }
  static std::string ExternalName(const std::string& host) {
    return WorkloadEntryObject("x", host, 0, "")["metadata"]["name"].get<std::string>();
  }

  void AddProxy(Time at, const std::pair<std::string, std::string>& key) {
    const std::string& home = HomeOf(key);
    Add(at, home, ProxyPod(home, key.first.empty() ? "default" : key.first, key.second, proxies_.at(key)));
  }
  // The cluster that a proxy stands in: that of the istiod which tells of it.
  const std::string& HomeOf(const std::pair<std::string, std::string>& key) const {
    const auto it = proxy_home_.find(key);
    return it == proxy_home_.end() ? places_.primary() : it->second;
  }

  void Endpoints(Time at, const InferredInput& input, const std::string& placed) {
    Host& host = hosts_.at(input.host);
    const std::string cluster = !IsKubernetesHost(input.host) ? places_.Home(input.replica)
                                : placed.empty()              ? host.home
                                                              : placed;
    Host::Slice& slice = host.slices[cluster];
    if (input.change == "toZero") {
      slice.emptied = at;
      if (slice.exists && slice.endpoints.empty() && IsKubernetesHost(input.host)) {
        slice.exists = false;
        return Remove(at, cluster, "EndpointSlice", host.ns, host.name + "-imported");
      }
      slice.exists = true;
      slice.endpoints.clear();
    } else if (input.change == "serviceAccounts") {
      const std::string pod = fmt::format("{}-imported-{}", host.name, host.endpoint_turn);
      const std::string ip = NextAddress(host);
      slice.exists = true;
      slice.endpoints.push_back({ip, pod});
      host.account = pod;
      if (!IsKubernetesHost(input.host)) return ApplySlice(at, input.host, host, cluster);
      Add(at - 1ms, cluster, WorkloadPod(host.ns, pod, ip, pod));
    } else if (slice.endpoints.empty() && !host.servers.empty()) {
      slice.exists = true;
      slice.endpoints = host.servers;
    } else {
      slice.exists = true;
      const auto plain = std::find_if(slice.endpoints.begin(), slice.endpoints.end(),
                                      [](const EndpointPart& part) { return part.pod.empty(); });
      if (plain == slice.endpoints.end()) {
        slice.endpoints.push_back({NextAddress(host), ""});
      } else {
        plain->ip = NextAddress(host);
      }
    }
    ApplySlice(at, input.host, host, cluster);
    if (dumped_ != nullptr && input.change == "first") FillOthers(at, input.host, host);
  }

  // First endpoints of all come in several clusters within one burst, of which lines name one. Where a dump shows it,
  // it is known; elsewhere it is those of which a line has said shortly before that they have none yet.
  void FillOthers(Time at, const std::string& name, Host& host) {
    constexpr Duration kStarts = 30s;
    for (auto& [cluster, slice] : host.slices) {
      if (dumped_->clusters.contains(cluster) || !slice.endpoints.empty() || slice.emptied == Time{}) continue;
      if (at - slice.emptied > kStarts) continue;
      slice.exists = true;
      slice.endpoints.push_back({NextAddress(host), ""});
      ApplySlice(at, name, host, cluster);
    }
  }

  void Service(Time at, const InferredInput& input, const std::string& placed) {
    Host& host = hosts_.at(input.host);
    const bool kubernetes = IsKubernetesHost(input.host);
    const std::string cluster = !kubernetes ? places_.Home(input.replica) : placed.empty() ? host.home : placed;
    if (input.change == "removed") {
      host.exists = false;
      if (kubernetes) return Remove(at, cluster, "Service", host.ns, host.name);
      return Remove(at, cluster, "ServiceEntry", host.ns, ExternalName(input.host));
    }
    // One that comes to a further cluster is the same there.
    if (host.exists && input.change != "added") ++host.turn;
    host.exists = true;
    if (!kubernetes) return Add(at, cluster, ServiceEntryObject(host.ns, input.host, host.turn));
    if (has_gateway_ && input.host == GatewayHost()) return AddGateway(at, cluster);
    Add(at, cluster, ServiceObject(host.ns, host.name, host.number, host.turn, host.Ports()));
  }

  void RemoteSecret(Time at, const InferredInput& input) {
    const std::string& istiod = places_.Home(input.replica);
    auto& held = secrets_[{istiod, input.ns, input.name}];
    const int64_t turn = ++turns_["Secret/" + istiod + "/" + input.ns + "/" + input.name];
    const auto put = [&](const std::string& cluster, std::string text) {
      const auto it = std::find_if(held.begin(), held.end(), [&](const auto& entry) { return entry.first == cluster; });
      if (it == held.end()) {
        held.emplace_back(cluster, std::move(text));
      } else {
        it->second = std::move(text);
      }
    };
    for (const auto& [cluster, effect] : input.clusters) {
      if (effect == "removed") {
        std::erase_if(held, [&, &removed = cluster](const auto& entry) { return entry.first == removed; });
      } else if (effect == "failed") {
        put(cluster, fmt::format("imported-{}: no kubeconfig", turn));
      } else if (effect != "unchanged") {
        put(cluster, KubeconfigFor(cluster, turn));
      }
    }
    // One that was not there and changed no cluster has come: it names what another Secret does, or nothing that an
    // istiod can read. istiod pushes for it all the same.
    const bool there = turn > 1 && !secrets_gone_.contains({istiod, input.ns, input.name});
    const bool comes = input.clusters.empty() && !there;
    if (!comes && (held.empty() || (input.clusters.empty() && turn > 1))) {
      held.clear();
      if (there) Remove(at, istiod, "Secret", input.ns, input.name);
      secrets_gone_.insert({istiod, input.ns, input.name});
      return;
    }
    secrets_gone_.erase({istiod, input.ns, input.name});
    Add(at, istiod, RemoteSecretObject(input.ns, input.name, held, turn));
  }

  void Change(const InferredInput& input, const std::string& placed) {
    if (dumped_ != nullptr && IsTraffic(input)) return;
    const Time at = At(input.at);
    const std::string& istiod = places_.Home(input.replica);
    const auto turn = [&](const std::string& what) { return ++turns_[what]; };
    // What of a Service's cluster no line tells is where the Service is.
    const auto where = [&](const std::string& host) {
      if ((places_.primaries().size() > 1 || dumped_ != nullptr) && !placed.empty()) return placed;
      const auto it = hosts_.find(host);
      return it == hosts_.end() ? places_.primary() : it->second.home;
    };
    switch (input.kind) {
      case Kind::kRemoteSecret:
        return RemoteSecret(at, input);
      case Kind::kSecret: {
        const std::string& cluster = placed.empty() ? istiod : placed;
        return Add(at, cluster,
                   SecretObject(input.ns, input.name, turn("Secret/" + cluster + "/" + input.ns + "/" + input.name)));
      }
      case Kind::kService:
        return Service(at, input, placed);
      case Kind::kEndpoints:
        return Endpoints(at, input, placed);
      case Kind::kGateway: {
        std::string cluster = where(GatewayHost());
        // Of several that have no address yet any may be the one.
        if (!pending_gateways_.empty() && !pending_gateways_.contains(cluster)) cluster = *pending_gateways_.begin();
        turn("gateway/" + cluster);
        pending_gateways_.erase(cluster);
        return AddGateway(at, cluster);
      }
      case Kind::kNode: {
        const std::string cluster = placed.empty() ? places_.primary() : placed;
        return Add(at, cluster, NodeObject(turn("Node/" + cluster), places_.NumberOf(cluster)));
      }
      case Kind::kNetwork: {
        const std::string cluster = where(input.host);
        return Add(at, cluster,
                   NamespaceObject(kSystemNamespace, fmt::format("imported-{}", turn("network/" + cluster))));
      }
      case Kind::kMeshNetworks:
      case Kind::kMeshConfig: {
        MeshText& texts = texts_[istiod];
        std::string& now = input.kind == Kind::kMeshNetworks ? texts.networks : texts.mesh;
        // Refused text is not kept: what was there stays in force, and comes back with the next change.
        const std::string text = input.change == "refused" ? fmt::format("imported-{}: [", turn("mesh/" + istiod))
                                                           : HarmlessPrinted(input.detail);
        if (input.change != "refused") now = text;
        return Add(at, istiod,
                   MeshConfigMap(input.kind == Kind::kMeshConfig ? text : texts.mesh,
                                 WithNamedGateway(istiod, input.kind == Kind::kMeshNetworks ? text : texts.networks)));
      }
      case Kind::kConfig: {
        json object = ConfigObject(input.object_kind, input.ns, input.name,
                                   turn(istiod + "/" + input.object_kind + "/" + input.ns + "/" + input.name));
        if (object.is_null()) break;
        return Add(at, istiod, std::move(object));
      }
      case Kind::kProxyConnected: {
        const auto key = std::pair(input.ns, input.name);
        if (!connected_.insert(key).second) return;  // by another replica, or again
        return AddProxy(at, key);
      }
      case Kind::kProxyDisconnected:
        connected_.erase({input.ns, input.name});
        return Remove(at, HomeOf({input.ns, input.name}), "Pod", input.ns.empty() ? "default" : input.ns, input.name);
      case Kind::kIstiodStarted:
        Remove(at, istiod, "Pod", kSystemNamespace, "istiod-0");
        return Add(at + 10ms, istiod, IstiodPod());
      case Kind::kTraffic:
        // A host that is no service of the mesh, or that the proxy knew no cluster for.
        if (!IsKubernetesHost(wavetank::Text(ParseJson(input.extra), "service"))) break;
        out_.inputs.push_back(
            TrafficInput(input, HomeOf({input.ns, input.name}), input.ns.empty() ? "default" : input.ns, flows_++, at));
        return;
      case Kind::kBehaviour:
        if (!input.name.starts_with('@')) break;
        out_.inputs.push_back(BehaviourInput(input, places_.primary(), "", ServerName(input.name.substr(1)), at));
        return;
      case Kind::kGatewayDns:
      case Kind::kDns:
        if (OfNamedGateway(input)) return;
        break;
      case Kind::kClusterUnreachable:
      case Kind::kProxyRefused:
        break;
    }
    ++unsaid_[std::string(NameOf(input.kind)) + (input.object_kind.empty() ? "" : " " + input.object_kind)];
  }

  void Say(const Claim& claim) {
    out_.inputs.push_back(ClaimInput(claim, places_.Home(claim.replica), At(claim.at)));
    // What no source names is not here: what is counted of a mesh may be more there.
    if (claim.kind == ClaimKind::kMetric) out_.inputs.back().body["claim"]["partial"] = true;
  }

  const Evidence& evidence_;
  const DumpedPlaces* const dumped_;
  const Places places_;
  Skeleton out_;
  std::map<std::string, NamedGateway> named_gateways_;  // by the istiod's cluster
  // What an istiod printed of its mesh ConfigMap.
  struct MeshText {
    std::string mesh, networks;
  };
  std::map<std::string, MeshText> texts_;  // by istiod's cluster
  std::map<std::string, Host> hosts_;
  std::set<std::string> first_slices_;
  std::map<std::pair<std::string, std::string>, int> proxies_;
  std::set<std::pair<std::string, std::string>> proxies_at_start_, connected_;
  std::map<std::pair<std::string, std::string>, std::string> proxy_home_;
  // Kubeconfigs by cluster, of a Secret in an istiod's cluster.
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<std::pair<std::string, std::string>>>
      secrets_;
  std::set<std::tuple<std::string, std::string, std::string>> secrets_gone_;  // remote Secrets that were there once
  std::map<std::string, int64_t> turns_;
  std::map<std::string, size_t> unsaid_;
  std::set<std::string> have_first_endpoints_;                                   // hosts
  std::set<std::string> gateways_, remote_gateways_, pending_gateways_, nodes_;  // clusters
  std::set<std::string> servers_;                                                // addresses of pods that are made
  size_t flows_ = 0;
  bool has_gateway_ = false;
};

}  // namespace

absl::StatusOr<Skeleton> MakeSkeleton(const Evidence& evidence) { return Builder(evidence, nullptr).Build(); }
Skeleton ChangesOfLogs(const Evidence& evidence, const DumpedPlaces& dumped) {
  return *Builder(evidence, &dumped).Build();
}

}  // namespace wavetank::importing
