#include "core/security/namespace_controller.h"

#include <algorithm>
#include <array>

#include "core/base/assert.h"
#include "fmt/format.h"

namespace wavetank::security {
namespace {

// istiod gives a namespace up after five retries, 5 ms doubling, until something about it changes again.
constexpr int kMaxRetries = 5;
constexpr Duration kFirstRetry = 5ms;

bool Terminating(const kube::Object& ns) {
  if (ns.meta.deleting) return true;
  const auto status = ns.body.find("status");
  return status != ns.body.end() && status->is_object() && status->value("phase", nlohmann::json()) == "Terminating";
}

bool Holds(const kube::Object& config_map, const std::string& bundle) {
  const auto data = config_map.body.find("data");
  if (data == config_map.body.end() || !data->is_object()) return false;
  const auto value = data->find(kCaRootConfigMapKey);
  return value != data->end() && *value == bundle;
}

}  // namespace

bool IsIgnoredNamespace(std::string_view ns) {
  // istiod: pkg/kube/inject/initializer.go, IgnoredNamespaces.
  constexpr std::array<std::string_view, 4> kIgnored = {"kube-system", "kube-public", "kube-node-lease",
                                                        "local-path-storage"};
  return std::find(kIgnored.begin(), kIgnored.end(), ns) != kIgnored.end();
}

bool ShouldLead(std::string_view own_cluster, std::string_view cluster, bool external_istiod,
                const kube::Object* system_namespace) {
  if (cluster == own_cluster) return true;
  if (!external_istiod || system_namespace == nullptr) return false;
  const auto it = system_namespace->meta.annotations.find(kControlPlaneClustersAnnotation);
  if (it == system_namespace->meta.annotations.end()) return false;
  std::string_view rest = it->second;
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view name = rest.substr(0, comma);
    if (name == "*" || name == own_cluster) return true;
    if (comma == std::string_view::npos) return false;
    rest.remove_prefix(comma + 1);
  }
}

NamespaceController::NamespaceController(Host& host, kube::Client& client, std::string_view cluster, uint64_t seed,
                                         std::function<std::string()> ca_bundle)
    : host_(host),
      client_(client),
      ca_bundle_(std::move(ca_bundle)),
      namespaces_(host, client, kube::kinds::kNamespace, {},
                  RandomStream(seed, fmt::format("namespace-controller/{}/namespaces", cluster))),
      config_maps_(host, client, kube::kinds::kConfigMap, {"", "", fmt::format("metadata.name={}", kCaRootConfigMap)},
                   RandomStream(seed, fmt::format("namespace-controller/{}/configmaps", cluster))) {
  const auto ns_event = [this](const kube::ObjectRef& ns) { Enqueue(ns->meta.name); };
  namespaces_.AddHandler({ns_event, [ns_event](const auto&, const auto& ns) { ns_event(ns); }, {}});
  const auto map_event = [this](const kube::ObjectRef& map) { Enqueue(map->meta.ns); };
  config_maps_.AddHandler({map_event, [map_event](const auto&, const auto& map) { map_event(map); }, map_event});
}

NamespaceController::~NamespaceController() { alive_.reset(); }

void NamespaceController::Start() {
  namespaces_.Start();
  config_maps_.Start();
  // What came in before both were there was not looked at.
  const auto synced = [this] {
    if (namespaces_.synced() && config_maps_.synced()) OnBundleChanged();
  };
  namespaces_.OnSynced(synced);
  config_maps_.OnSynced(synced);
}

void NamespaceController::OnBundleChanged() {
  for (const kube::ObjectRef& ns : namespaces_.List()) Enqueue(ns->meta.name);
}

void NamespaceController::Enqueue(std::string ns) {
  if (!namespaces_.synced() || !config_maps_.synced() || IsIgnoredNamespace(ns)) return;
  if (!only_.empty() && ns != only_) return;  // istiod: namespacecontroller.go, the handler of namespaces
  const auto [it, fresh] = work_.try_emplace(ns);
  if (!fresh) {
    it->second.again = true;
    return;
  }
  host_.Post([this, alive = std::weak_ptr(alive_), ns = std::move(ns)] {
    if (!alive.expired()) Reconcile(ns);
  });
}

void NamespaceController::Reconcile(const std::string& ns) {
  WAVETANK_ASSERT(work_.contains(ns), ns);
  WAVETANK_ASSERT(namespaces_.synced(), ns);
  const kube::ObjectRef space = namespaces_.Get("", ns);
  const std::string bundle = ca_bundle_();
  const kube::ObjectRef old = config_maps_.Get(ns, kCaRootConfigMap);
  if (space == nullptr || Terminating(*space) || bundle.empty() || (old != nullptr && Holds(*old, bundle))) {
    return Finish(ns);
  }
  nlohmann::json body = old != nullptr ? old->body : nlohmann::json();
  if (old == nullptr) {
    body = {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", {{"name", kCaRootConfigMap}, {"namespace", ns}, {"labels", {{"istio.io/config", "true"}}}}}};
  }
  if (!body["data"].is_object()) body["data"] = nlohmann::json::object();
  body["data"][std::string(kCaRootConfigMapKey)] = bundle;
  absl::StatusOr<kube::ObjectRef> object = kube::Object::FromJson(std::move(body));
  if (!object.ok()) return Finish(ns);
  ++writes_;
  client_.Apply(*std::move(object), [this, alive = std::weak_ptr(alive_), ns](absl::StatusOr<kube::ObjectRef> written) {
    if (alive.expired()) return;
    WAVETANK_ASSERT(work_.contains(ns), ns);  // one at a time, until it is finished
    Work& work = work_[ns];
    if (written.ok() || ++work.retries > kMaxRetries) return Finish(ns);
    WAVETANK_ASSERT(work.retries <= kMaxRetries, work.retries);
    host_.RunAfter(kFirstRetry * (1 << (work.retries - 1)), [this, alive, ns] {
      if (!alive.expired()) Reconcile(ns);
    });
  });
}

void NamespaceController::Finish(const std::string& ns) {
  const auto work = work_.extract(ns);
  if (!work.empty() && work.mapped().again) Enqueue(ns);
}

}  // namespace wavetank::security
