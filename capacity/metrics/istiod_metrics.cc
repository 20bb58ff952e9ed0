#include "capacity/metrics/istiod_metrics.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "sim/kernel/kernel.h"

namespace wavetank::capacity {
namespace {

using Histogram = Exposition::Histogram;

double Seconds(Duration d) { return static_cast<double>(d.count()) / 1e9; }

Labels Joined(const Labels& a, const Labels& b) { return a.empty() || b.empty() ? a + b : a + "," + b; }

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Of one istiod, by its pod.
struct Istiod {
  std::map<std::string, double> pushes, rejects;  // by type, in small letters
  std::map<std::string, Histogram> sizes;
  std::set<std::string> clusters;  // that it watches
  std::map<std::string, double> inbound;
  double certificates = 0, injected = 0, injection_requests = 0;
  Histogram debounce{{.01, .1, 1, 3, 5, 10, 20, 30}};
  Histogram queue{{.1, .5, 1, 3, 5, 10, 20, 30}};
  Histogram convergence{{.1, .5, 1, 3, 5, 10, 20, 30}};
  Histogram context{{.01, .1, 0.5, 1, 3, 5}};
  std::optional<Time> first_event, debounced_full;
  double connected = 0;
  double cpu_ms = 0;
  bool full_push = false;
  Time since{};
  MeshSize mesh;  // as its registries know it; endpoints: pods
};

// What a cluster's registries told their istiods of.
struct Cluster {
  std::map<std::string, const char*> last;  // object: how its last write is told
  std::set<std::string> services;           // namespace/name
  double pods = 0;
  std::map<std::pair<std::string, std::string>, double> registry_events;  // kind, event; of all its watchers
};

// A push to a proxy, from the queue on.
struct Push {
  std::optional<Time> waits, runs;
  unsigned types = 0;  // sent since it left the queue
  int64_t cds = 0, eds = 0;
};

struct Proxy {
  Istiod* istiod = nullptr;
  Push push;
};

constexpr unsigned kCds = 1, kEds = 2, kLds = 4, kRds = 8;

}  // namespace

struct IstiodMetrics::Impl {
  CostModel model;
  sim::Kernel* kernel = nullptr;
  std::map<NameId, Istiod> istiods;
  std::map<NameId, Proxy> proxies;
  std::map<std::string, Cluster> clusters;
  std::map<std::string, std::set<std::string>> remotes;  // that istiods of a cluster read besides it
  Duration interval{};
  Time next{};
  std::function<void(Time)> then;
  std::optional<Time> as_of;  // which is told; nothing: now

  // Nothing has happened since the last event, so what is due before `to` is told as of when it was due.
  void TakeWhatIsDue(Time to) {
    while (then && interval > Duration::zero() && next < to) {
      as_of = next;
      then(next);
      next += interval;
    }
    as_of.reset();
  }

  // All of one istiod's, each with the label `pod` if it is not empty.
  void Tell(NameId id, const Labels& pod, Exposition& out);

  explicit Impl(CostModel m) : model(std::move(m)) {}

  std::string_view Text(NameId id) const { return kernel->names().Text(id); }

  // Named as a pod of its own cluster, which it watches: "istiod-6d4f.cluster1".
  std::string HomeOf(NameId istiod) const {
    const std::string_view name = Text(istiod);
    const size_t dot = name.rfind('.');
    return dot == name.npos ? std::string() : std::string(name.substr(dot + 1));
  }

  // Events of remote Secrets are of a cluster: all its istiods read them.
  void OnRemote(NameId home, NameId remote, bool there) {
    const std::string cluster(Text(home)), other(Text(remote));
    const auto apply = [&](std::set<std::string>& to) { there ? void(to.insert(other)) : void(to.erase(other)); };
    apply(remotes[cluster]);
    for (auto& [name, istiod] : istiods) {
      if (HomeOf(name) == cluster) apply(istiod.clusters);
    }
  }

  Istiod& Of(NameId subject, Time now) {
    const auto [it, fresh] = istiods.try_emplace(subject);
    if (fresh) {
      it->second.since = now;
      const std::string home = HomeOf(subject);
      it->second.clusters = remotes[home];
      it->second.clusters.insert(home);
      it->second.cpu_ms += model.parameters()["start.process"];
    }
    return it->second;
  }
  Istiod* OfProxy(NameId proxy) {
    const auto it = proxies.find(proxy);
    return it == proxies.end() ? nullptr : it->second.istiod;
  }

  static bool Lives(const Cluster& cluster, const std::string& what) {
    const auto it = cluster.last.find(what);
    return it != cluster.last.end() && std::string_view(it->second) != "delete";
  }

  void OnWrite(Cluster& cluster, const std::string& what, bool deleted) {
    const size_t slash = what.find('/');
    const std::string kind = what.substr(0, slash);
    if (kind == "Pod") cluster.pods += deleted ? -1 : Lives(cluster, what) ? 0 : 1;
    if (kind == "Service" && deleted) cluster.services.erase(what.substr(slash + 1));
    if (kind == "Service" && !deleted) cluster.services.insert(what.substr(slash + 1));
    if (kind != "Pod" && kind != "Service" && kind != "EndpointSlice" && kind != "Node" && kind != "Namespace") return;
    const auto [it, fresh] = cluster.last.try_emplace(what, "add");
    // What was deleted and comes again is told as added.
    if (deleted) {
      it->second = "delete";
    } else if (!fresh) {
      it->second = std::string_view(it->second) == "delete" ? "add" : "update";
    }
  }

  // How large its mesh is now. A Service of one name in several clusters is one.
  void Measure(Istiod& istiod) const {
    std::set<std::string> services;
    istiod.mesh.endpoints = 0;
    for (const std::string& name : istiod.clusters) {
      const auto it = clusters.find(name);
      if (it == clusters.end()) continue;
      services.insert(it->second.services.begin(), it->second.services.end());
      istiod.mesh.endpoints += it->second.pods;
    }
    istiod.mesh.services = static_cast<double>(services.size());
    istiod.mesh.clusters = std::max<double>(1, static_cast<double>(istiod.clusters.size()));
  }

  // An istiod's share of what the registries of its clusters were told: each of a cluster's watchers was told all of
  // it.
  std::map<std::pair<std::string, std::string>, double> RegistryEvents(const Istiod& istiod) const {
    std::map<std::pair<std::string, std::string>, double> out;
    for (const std::string& name : istiod.clusters) {
      const auto cluster = clusters.find(name);
      if (cluster == clusters.end()) continue;
      const auto watchers = std::count_if(istiods.begin(), istiods.end(),
                                          [&](const auto& entry) { return entry.second.clusters.contains(name); });
      for (const auto& [key, n] : cluster->second.registry_events) {
        out[key] += std::floor(n / static_cast<double>(std::max<int64_t>(1, watchers)));
      }
    }
    return out;
  }

  void OnPushDone(Proxy& proxy, Time now) {
    if (proxy.istiod == nullptr || !proxy.push.runs) return;
    Istiod& istiod = *proxy.istiod;
    istiod.convergence.Record(Seconds(now - *proxy.push.runs));
    const unsigned types = proxy.push.types;
    if (types != 0) {
      Situation s{istiod.mesh, Change::kEndpoints, 1, istiod.full_push};
      if ((types & kCds) != 0) {
        s.change = (types & kRds) == 0                   ? Change::kPolicy
                   : proxy.push.eds * 2 > proxy.push.cds ? Change::kEverything
                                                         : Change::kService;
      }
      for (const CostModel::Stage& stage : model.Push(s).stages) istiod.cpu_ms += stage.ms;
    }
    proxy.push = {proxy.push.waits, std::nullopt, 0, 0, 0};
  }

  void On(const sim::TraceEvent& event) {
    const TraceRecord& r = event.record;
    switch (r.kind) {
      case TraceKind::kConfigUpdate: {
        Istiod& istiod = Of(r.subject, event.time);
        if (!istiod.first_event) istiod.first_event = event.time;
        // istiod: service and config updates are full, endpoints are not.
        ++istiod.inbound[r.a == 0 ? "eds" : "config"];
        istiod.cpu_ms += model.parameters()["push.event"];
        break;
      }
      case TraceKind::kDebounced: {
        Istiod& istiod = Of(r.subject, event.time);
        if (istiod.first_event) istiod.debounce.Record(Seconds(event.time - *istiod.first_event));
        istiod.first_event.reset();
        istiod.debounced_full = event.time;
        istiod.full_push = istiod.full_push || r.b != 0;
        Measure(istiod);
        istiod.cpu_ms +=
            model.Push({istiod.mesh, r.b != 0 ? Change::kService : Change::kEndpoints, 0, istiod.full_push}).before_ms;
        break;
      }
      case TraceKind::kPushContextReady: {
        Istiod& istiod = Of(r.subject, event.time);
        if (istiod.debounced_full) istiod.context.Record(Seconds(event.time - *istiod.debounced_full));
        break;
      }
      case TraceKind::kRegistryEvent: {
        Cluster& cluster = clusters[std::string(Text(r.subject))];
        const std::string what(Text(r.object));
        const auto last = cluster.last.find(what);
        const std::string kind = what.substr(0, what.find('/'));
        ++cluster.registry_events[{kind + (kind.ends_with("s") ? "" : "s"),
                                   last == cluster.last.end() ? "add" : last->second}];
        break;
      }
      case TraceKind::kClusterAdded:
        OnRemote(r.subject, r.object, true);
        break;
      case TraceKind::kClusterRemoved:
        OnRemote(r.subject, r.object, false);
        break;
      case TraceKind::kObjectApplied:
      case TraceKind::kObjectDeleted:
        OnWrite(clusters[std::string(Text(r.subject))], std::string(Text(r.object)),
                r.kind == TraceKind::kObjectDeleted);
        break;
      case TraceKind::kXdsConnected: {
        if (r.object == kNoName) break;  // what the Envoy says of itself
        Istiod& istiod = Of(r.object, event.time);
        proxies[r.subject].istiod = &istiod;
        ++istiod.connected;
        istiod.mesh.proxies = istiod.connected;
        istiod.cpu_ms += model.parameters()["connect.client"] +
                         model.parameters()["connect.service"] * istiod.mesh.services +
                         model.parameters()["connect.endpoint"] * istiod.mesh.endpoints +
                         model.parameters()["security.tls_handshake"] + model.parameters()["security.token_review"];
        break;
      }
      case TraceKind::kXdsDisconnected:
        if (r.object == kNoName) break;
        if (Istiod* istiod = OfProxy(r.subject)) --istiod->connected;
        proxies.erase(r.subject);
        break;
      case TraceKind::kPushQueued:
        if (!proxies[r.subject].push.waits) proxies[r.subject].push.waits = event.time;
        break;
      case TraceKind::kPushDequeued: {
        Proxy& proxy = proxies[r.subject];
        proxy.push.runs = proxy.push.waits;
        proxy.push.waits.reset();
        if (proxy.istiod != nullptr) proxy.istiod->queue.Record(static_cast<double>(r.a) / 1e9);
        break;
      }
      case TraceKind::kPushDone:
        OnPushDone(proxies[r.subject], event.time);
        break;
      case TraceKind::kXdsSent: {
        Proxy& proxy = proxies[r.subject];
        const std::string type = Lower(Text(r.object));
        proxy.push.types |= type == "cds"   ? kCds
                            : type == "eds" ? kEds
                            : type == "lds" ? kLds
                            : type == "rds" ? kRds
                                            : 0;
        if (type == "cds") proxy.push.cds = r.a;
        if (type == "eds") proxy.push.eds = r.a;
        if (proxy.istiod == nullptr) break;
        ++proxy.istiod->pushes[type];
        proxy.istiod->sizes.try_emplace(type, std::vector<double>{1, 10000, 1000000, 4000000, 10000000, 40000000})
            .first->second.Record(static_cast<double>(r.b));
        break;
      }
      case TraceKind::kXdsNack:
        if (Istiod* istiod = OfProxy(r.subject)) ++istiod->rejects[Lower(Text(r.object))];
        break;
      case TraceKind::kCertificateSigned: {
        Istiod& istiod = Of(r.subject, event.time);
        ++istiod.certificates;
        istiod.cpu_ms += model.parameters()["security.sign"];
        break;
      }
      case TraceKind::kPodInjected: {
        Istiod& istiod = Of(r.subject, event.time);
        ++istiod.injection_requests;
        istiod.injected += r.detail == "injected" ? 1 : 0;
        break;
      }
      default:
        break;
    }
  }
};

void IstiodMetrics::Impl::Tell(NameId id, const Labels& pod, Exposition& out) {
  Istiod& m = istiods.at(id);
  Measure(m);
  const auto with = [&](std::string_view name, std::string_view value) { return Joined(Label(name, value), pod); };
  const double up = Seconds(as_of.value_or(kernel->Now()) - m.since);
  out.Gauge("pilot_info", "Pilot version and build information.", with("version", "1.18.2"), 1);
  out.Gauge("istiod_uptime_seconds", "Current istiod server uptime in seconds", pod, up);
  out.Gauge("pilot_xds", "Number of endpoints connected to this pilot using XDS.", with("version", "1.18.2"),
            m.connected);
  out.Gauge("pilot_services", "Total services known to pilot.", pod, m.mesh.services);
  for (const auto& [type, n] : m.pushes) {
    out.Counter("pilot_xds_pushes", "Pilot build and send errors for lds, rds, cds and eds.", with("type", type), n);
  }
  for (const auto& [type, n] : m.rejects) {
    out.Gauge("pilot_xds_" + type + "_reject", "Pilot rejected " + type + " configs.", pod, n);
  }
  double rejected = 0;
  for (const auto& [type, n] : m.rejects) rejected += n;
  out.Counter("pilot_total_xds_rejects", "Total number of XDS responses from pilot rejected by proxy.", pod, rejected);
  for (const auto& [type, sizes] : m.sizes) {
    out.Add("pilot_xds_config_size_bytes", "Distribution of configuration sizes pushed to clients", with("type", type),
            sizes);
  }
  for (const auto& [key, n] : RegistryEvents(m)) {
    out.Counter("pilot_k8s_reg_events", "Events from k8s registry.",
                Joined(Joined(Label("event", key.second), pod), Label("type", key.first)), n);
  }
  for (const auto& [type, n] : m.inbound) {
    out.Counter("pilot_inbound_updates", "Total number of updates received by pilot.", with("type", type), n);
  }
  out.Add("pilot_debounce_time",
          "Delay in seconds between the first config enters debouncing and the merged push request is pushed into the "
          "push queue.",
          pod, m.debounce);
  out.Add("pilot_proxy_queue_time", "Time in seconds, a proxy is in the push queue before being dequeued.", pod,
          m.queue);
  out.Add("pilot_proxy_convergence_time",
          "Delay in seconds between config change and a proxy receiving all required configuration.", pod,
          m.convergence);
  out.Add("pilot_pushcontext_init_seconds", "Total time in seconds Pilot takes to init pushContext.", pod, m.context);
  out.Counter("citadel_server_csr_count", "The number of CSRs received by Citadel server.", pod, m.certificates);
  out.Counter("citadel_server_success_cert_issuance_count", "The number of certificates issuances that have succeeded.",
              pod, m.certificates);
  out.Counter("sidecar_injection_requests_total", "Total number of sidecar injection requests.", pod,
              m.injection_requests);
  out.Counter("sidecar_injection_success_total", "Total number of successful sidecar injection requests.", pod,
              m.injected);
  // Processor time and memory are the cost model's.
  if (const std::string beyond = Extrapolates(m.mesh); !beyond.empty()) {
    for (const char* name : {"process_cpu_seconds_total", "process_resident_memory_bytes"})
      out.Note(name, pod, "extrapolates beyond what was measured: " + beyond);
  }
  const double idle = up * (model.parameters()["idle.process"] + model.parameters()["idle.proxy"] * m.connected);
  out.Counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", pod,
              (m.cpu_ms + idle) / 1e3);
  out.Gauge("process_resident_memory_bytes", "Resident memory size in bytes.", pod,
            model.Resident({m.mesh, Change::kConnect, 0, m.full_push}) * 1024 * 1024);
}

IstiodMetrics::IstiodMetrics(CostModel model) : impl_(std::make_shared<Impl>(std::move(model))) {}
IstiodMetrics::~IstiodMetrics() = default;

void IstiodMetrics::Observe(sim::Kernel& kernel) {
  impl_->kernel = &kernel;
  kernel.AddObserver([impl = impl_](const sim::TraceEvent& event) {
    impl->TakeWhatIsDue(event.time);
    impl->On(event);
  });
}

void IstiodMetrics::Every(Duration interval, std::function<void(Time)> then) {
  impl_->interval = interval;
  impl_->next = Time(interval);
  impl_->then = std::move(then);
}

void IstiodMetrics::TakeWhatIsDue(Time now) { impl_->TakeWhatIsDue(now); }

std::string IstiodMetrics::Text() const {
  Exposition out;
  Collect(out);
  return out.Text();
}

std::string IstiodMetrics::TextOf(std::string_view cluster) const {
  if (impl_->kernel == nullptr) return "";
  const std::string end = "." + std::string(cluster);
  NameId newest = kNoName;
  for (const auto& [id, istiod] : impl_->istiods) {
    if (!impl_->Text(id).ends_with(end)) continue;
    if (newest == kNoName || istiod.since >= impl_->istiods.at(newest).since) newest = id;
  }
  if (newest == kNoName) return "";
  Exposition out;
  impl_->Tell(newest, "", out);
  return out.Text();
}

void IstiodMetrics::Collect(Exposition& out) const {
  if (impl_->kernel == nullptr) return;
  for (const auto& [id, m] : impl_->istiods) impl_->Tell(id, Label("pod", impl_->Text(id)), out);
}

}  // namespace wavetank::capacity
