#include "core/registry/ingress_controller.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "core/kube/definitions.h"

namespace wavetank::config {
namespace {

using nlohmann::json;

constexpr kube::ResourceKind kIngress{"networking.k8s.io", "v1", "Ingress", "ingresses"};
constexpr kube::ResourceKind kIngressClass{"networking.k8s.io", "v1", "IngressClass", "ingressclasses", false};

// Oldest first, then by "name.namespace" (sortIngressByCreationTime).
std::vector<kube::ObjectRef> InOrder(std::vector<kube::ObjectRef> ingresses) {
  const auto key = [](const kube::ObjectRef& o) {
    return std::pair(o->meta.creation_unix_seconds, absl::StrCat(o->meta.name, ".", o->meta.ns));
  };
  std::sort(ingresses.begin(), ingresses.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return ingresses;
}

}  // namespace

IngressController::IngressController(kube::Client& client, Host& host, ConfigStore& store, pilot::XdsUpdater& updater,
                                     std::function<MeshConfigRef()> mesh, Options options)
    : client_(client),
      host_(host),
      store_(store),
      updater_(updater),
      mesh_(std::move(mesh)),
      options_(std::move(options)) {}

IngressController::~IngressController() = default;

void IngressController::Start() {
  kube::WhenServed(client_, std::string(kIngress.group), {std::string(kIngress.kind)},
                   [this, alive = std::weak_ptr<char>(alive_)] {
                     if (!alive.expired()) Watch();
                   });
}

void IngressController::Watch() {
  ingresses_ = std::make_unique<kube::Informer>(client_, host_, kIngress);
  classes_ = std::make_unique<kube::Informer>(client_, host_, kIngressClass);
  services_ = std::make_unique<kube::Informer>(client_, host_, kube::kinds::kService);
  const auto on_ingress = [this](const kube::ObjectRef& object) {
    changed_ = true;
    Queue(&queue_, {object->meta.ns, object->meta.name}, &IngressController::OnEvent);
    QueueStatusOfAll();
  };
  ingresses_->AddHandler({on_ingress, [on_ingress](const auto&, const auto& now) { on_ingress(now); }, on_ingress});
  const auto on_class = [this](const kube::ObjectRef&) { changed_ = true; };
  classes_->AddHandler({on_class, [on_class](const auto&, const auto& now) { on_class(now); }, on_class});
  const auto on_service = [this](const kube::ObjectRef& service) {
    changed_ = true;
    if (service->meta.name == mesh_()->ingress_service && service->meta.ns == kIngressNamespace) QueueStatusOfAll();
  };
  services_->AddHandler({on_service, [on_service](const auto&, const auto& now) { on_service(now); }, on_service});
  for (kube::Informer* informer : {services_.get(), classes_.get(), ingresses_.get()}) {
    // What was queued before all were there is looked at then.
    informer->OnSynced([this] {
      if (!HasSynced()) return;
      for (const Key& key : std::exchange(queue_, {})) Queue(&queue_, key, &IngressController::OnEvent);
      QueueStatusOfAll();
    });
  }
  for (kube::Informer* informer : {services_.get(), classes_.get(), ingresses_.get()}) informer->Start();
}

bool IngressController::HasSynced() const {
  return ingresses_ == nullptr || (ingresses_->HasSynced() && classes_->HasSynced() && services_->HasSynced());
}

void IngressController::Queue(std::set<Key>* queue, const Key& key, void (IngressController::*handle)(const Key&)) {
  if (!queue->insert(key).second || !HasSynced()) return;
  host_.Post([this, queue, key, handle, alive = std::weak_ptr<char>(alive_)] {
    if (alive.expired()) return;
    queue->erase(key);
    (this->*handle)(key);
  });
}

const kube::Object* IngressController::ClassOf(const kube::Object& ingress) const {
  const std::string name = TextOf(At(ingress.body, {"spec", "ingressClassName"}));
  return name.empty() ? nullptr : classes_->Get("", name).get();
}

bool IngressController::IsOwn(const kube::Object& ingress) const {
  const kube::Object* ingress_class = ClassOf(ingress);
  if (ingress_class == nullptr && At(ingress.body, {"spec", "ingressClassName"}).is_string()) return false;
  return IsOwnIngress(*mesh_(), ingress, ingress_class);
}

bool IngressController::ShouldPush(const Key& key, const kube::ObjectRef& ingress) {
  if (ingress == nullptr) return seen_.erase(key) > 0;
  if (IsOwn(*ingress)) {
    seen_.insert(key);
    return true;
  }
  if (seen_.erase(key) > 0) return true;
  seen_.insert(key);
  return false;
}

void IngressController::OnEvent(const Key& key) {
  if (!ShouldPush(key, ingresses_->Get(key))) return;
  // Under names that no object has (controller.go, onEvent).
  Push(pilot::ConfigKind::kVirtualService, absl::StrCat(key.name, "-virtualservice"), key.ns);
  Push(pilot::ConfigKind::kGateway, absl::StrCat(key.name, "-gateway"), key.ns);
}

void IngressController::Push(pilot::ConfigKind kind, const std::string& name, const std::string& ns) {
  updater_.ConfigUpdate({.full = true,
                         .configs_updated = {{kind, name, ns}},
                         .start = host_.Now(),
                         .reasons = Reason(pilot::TriggerReason::kConfig)});
}

std::optional<int64_t> IngressController::PortOf(const std::string& ns, const std::string& service,
                                                 const std::string& port) const {
  const kube::ObjectRef object = services_->Get(ns, service);
  if (object == nullptr) return std::nullopt;
  for (const json& candidate : Items(At(object->body, {"spec", "ports"}))) {
    if (Text(candidate, "name") == port) return Number(candidate, "port");
  }
  return std::nullopt;
}

void IngressController::Refresh() {
  if (!changed_ || ingresses_ == nullptr) return;
  changed_ = false;
  for (const auto& [kind, key] : std::exchange(shown_, {})) store_.Erase(kind, key.name, key.ns);
  std::map<std::string, TypedConfig<VirtualService>> by_host;
  const NamedPort named = [this](const auto& ns, const auto& service, const auto& port) {
    return PortOf(ns, service, port);
  };
  const auto show = [this](AnyConfigRef config) {
    const ConfigMeta& meta = MetaOf(config);
    shown_.emplace_back(meta.kind, Key{meta.ns, meta.name});
    store_.Replace(std::move(config));
  };
  for (const kube::ObjectRef& ingress : InOrder(ingresses_->List())) {
    if (!IsOwn(*ingress)) continue;
    show(GatewayOfIngress(*ingress, *mesh_()));
    AddRulesOfIngress(*ingress, options_.domain_suffix, options_.names_all_hosts, named, &by_host);
  }
  for (auto& [host, service] : by_host) show(std::make_shared<const TypedConfig<VirtualService>>(std::move(service)));
}

void IngressController::OnMeshConfigChanged() {
  changed_ = true;
  QueueStatusOfAll();
}

void IngressController::SetWritesStatus(bool writes) {
  writes_status_ = writes;
  QueueStatusOfAll();
}

void IngressController::QueueStatusOfAll() {
  if (!writes_status_) return;
  if (ingresses_ == nullptr || !HasSynced()) return;
  for (const kube::ObjectRef& ingress : ingresses_->List()) {
    Queue(&status_queue_, {ingress->meta.ns, ingress->meta.name}, &IngressController::WriteStatus);
  }
}

// The addresses of the ingress Service (status.go, runningAddresses), in the order of host names, then of addresses.
// Without an ingressService istiod takes those of nodes, which is not modelled: then there are none.
json IngressController::WantedStatus() const {
  std::vector<std::pair<std::string, std::string>> wanted;  // host name, address
  const auto add = [&](const std::string& text) {
    if (IsIpAddress(text)) {
      wanted.emplace_back("", text);
    } else {
      wanted.emplace_back(text, "");
    }
  };
  const kube::ObjectRef service = services_->Get(kIngressNamespace, mesh_()->ingress_service);
  if (service != nullptr && At(service->body, {"spec", "type"}) == "ExternalName") {
    add(TextOf(At(service->body, {"spec", "externalName"})));
  } else if (service != nullptr) {
    for (const json& at : Items(At(service->body, {"status", "loadBalancer", "ingress"}))) {
      const std::string ip = Text(at, "ip");
      add(ip.empty() ? Text(at, "hostname") : ip);
    }
    for (const json& ip : Items(At(service->body, {"spec", "externalIPs"}))) add(TextOf(ip));
  }
  std::stable_sort(wanted.begin(), wanted.end());
  json out = json::array();
  for (const auto& [host, ip] : wanted) out.push_back(ip.empty() ? json{{"hostname", host}} : json{{"ip", ip}});
  return out;
}

void IngressController::WriteStatus(const Key& key) {
  const kube::ObjectRef ingress = ingresses_->Get(key);
  if (!writes_status_ || ingress == nullptr || !IsOwnIngress(*mesh_(), *ingress, ClassOf(*ingress))) return;
  json wanted = WantedStatus();
  std::vector<std::pair<std::string, std::string>> held, want;
  for (const json& at : Items(At(ingress->body, {"status", "loadBalancer", "ingress"})))
    held.emplace_back(Text(at, "hostname"), Text(at, "ip"));
  for (const json& at : wanted) want.emplace_back(Text(at, "hostname"), Text(at, "ip"));
  std::stable_sort(held.begin(), held.end());
  if (held == want) return;
  json body = ingress->body;
  if (!body["status"].is_object()) body["status"] = json::object();
  body["status"]["loadBalancer"] = wanted.empty() ? json::object() : json{{"ingress", std::move(wanted)}};
  absl::StatusOr<kube::ObjectRef> object = kube::Object::FromJson(std::move(body));
  if (!object.ok()) return;
  // A conflict: somebody has written it meanwhile, and the watch tells of it.
  client_.Apply(*std::move(object), [](const absl::StatusOr<kube::ObjectRef>&) {});
}

}  // namespace wavetank::config
