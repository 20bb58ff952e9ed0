#include "core/gen/lds/shared_listeners.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "core/gen/telemetry/tracing_providers.h"
#include "core/gen/view/proxy_view.h"
#include "core/profile/profile.h"

namespace wavetank::pilot {
namespace {

// Metadata of one instance, which no listener of a sidecar shows.
bool IsOfOneInstance(std::string_view key) { return key == "INSTANCE_IPS" || key == "NAME" || key == "NODE_NAME"; }

bool SameButInstance(const nlohmann::json& a, const nlohmann::json& b) {
  if (&a == &b) return true;
  if (!a.is_object() || !b.is_object()) return a == b;
  auto x = a.begin();
  auto y = b.begin();
  while (true) {
    while (x != a.end() && IsOfOneInstance(x.key())) ++x;
    while (y != b.end() && IsOfOneInstance(y.key())) ++y;
    if (x == a.end() || y == b.end()) return x == a.end() && y == b.end();
    if (x.key() != y.key() || *x != *y) return false;
    ++x;
    ++y;
  }
}

bool SameForListeners(const ServiceRef& a, const ServiceRef& b) {
  return a == b || (a->resolution == b->resolution && a->creation_unix_seconds == b->creation_unix_seconds &&
                    SameService(*a, *b));
}
bool SameForListeners(const std::vector<ServiceRef>& a, const std::vector<ServiceRef>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ServiceRef& x, const ServiceRef& y) { return SameForListeners(x, y); });
}

// Without an address of its own it gets a listener per instance, but for the proxy's own. istiod: listener.go,
// buildSidecarOutboundListeners.
bool ListensByInstance(const Service& service) {
  return service.resolution == Resolution::kPassthrough &&
         std::any_of(service.ports.begin(), service.ports.end(),
                     [](const Port& port) { return IsTcp(port.protocol) || IsUnsupported(port.protocol); });
}

template <typename T>
void AddPointers(const std::vector<T>& policies, std::string& key) {
  // address: a key that is looked up only
  for (const auto& policy : policies) absl::StrAppend(&key, absl::Hex(reinterpret_cast<uintptr_t>(&*policy)), "~");
  key.push_back('|');
}

std::string_view LabelOf(const Proxy& proxy, std::string_view name) {
  const auto it = proxy.labels.find(name);
  return it == proxy.labels.end() ? std::string_view() : std::string_view(it->second);
}

// What listeners show of a proxy besides its metadata: what the policies answer for its labels, not the labels.
std::string KeyOf(const Proxy& proxy, const PushContext& push, bool shows_labels) {
  std::string key;
  const auto add = [&](std::string_view part) { key.append(part).push_back('~'); };
  for (const std::string* of_metadata : {&proxy.metadata.cluster_id.str(), &proxy.metadata.ns,
                                         &proxy.metadata.istio_version, &proxy.metadata.interception_mode}) {
    add(*of_metadata);
  }
  add(proxy.config_namespace);
  add(proxy.dns_domain);
  add(proxy.service_cluster);
  add(proxy.verified_identity);
  add(ConventionalServiceName(proxy, push));
  key.push_back(SupportsIpv4(proxy) ? '4' : '-');
  key.push_back(SupportsIpv6(proxy) ? '6' : '-');
  if (shows_labels) {
    for (const auto& [name, value] : proxy.labels) {
      add(name);
      add(value);
    }
  } else {
    add(LabelOf(proxy, "service.istio.io/canonical-revision"));
    add(LabelOf(proxy, "service.istio.io/canonical-name"));
  }
  key.push_back('|');
  for (const ServiceInstance& own : proxy.service_instances) {
    add(own.service->hostname);
    add(own.service->attributes.ns);
    add(own.service_port.name);
    absl::StrAppend(&key, own.service_port.port, "~", static_cast<int>(own.service_port.protocol), "~",
                    own.endpoint.endpoint_port, "~");
  }
  key.push_back('|');
  const MergedPeerAuthentication authn = push.authn().ComposeForWorkload(proxy.metadata.ns, proxy.labels);
  absl::StrAppend(&key, static_cast<int>(authn.mode));
  for (const auto& [port, mode] : authn.per_port) absl::StrAppend(&key, "~", port, "=", static_cast<int>(mode));
  const WorkloadAuthorization authz = push.authz().ForWorkload(proxy.config_namespace, proxy.labels);
  for (const auto* policies : {&authz.custom, &authz.deny, &authz.allow, &authz.audit}) AddPointers(*policies, key);
  AddPointers(push.wasm_plugins().For(proxy), key);
  const WorkloadTelemetry telemetry = push.telemetry().ForWorkload(proxy.config_namespace, proxy.labels);
  // There is one for each combination of Telemetries.
  const void* const one_of_telemetry = &push.telemetry().GeneratedFor(telemetry, 0);
  absl::StrAppend(&key, absl::Hex(reinterpret_cast<uintptr_t>(one_of_telemetry)));  // address: looked up only
  return key;
}

// An EnvoyFilter may look at anything; keys for tokens come and go; a Sidecar's own listeners may show the address.
bool MayShare(const Proxy& proxy, const PushContext& push) {
  return !proxy.IsRouter() && proxy.sidecar_scope != nullptr && !proxy.sidecar_scope->SelectsWorkloads() &&
         !proxy.sidecar_scope->HasIngressListener() && push.envoy_filters().For(proxy) == nullptr &&
         push.authn().GetJwtPoliciesForWorkload(proxy.metadata.ns, proxy.labels).empty();
}

template <typename T>
bool SameObject(const std::weak_ptr<const T>& a, const std::shared_ptr<const T>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

}  // namespace

SharedListeners::Mesh SharedListeners::MakeMesh(const Proxy& proxy, const PushContextRef& push) {
  Mesh out;
  out.push = push;
  out.scope = proxy.sidecar_scope;
  out.alike.emplace_back(push, out.scope);
  const auto& services = out.scope->services();
  out.shares = std::none_of(services.begin(), services.end(),
                            [](const ServiceRef& service) { return ListensByInstance(*service); });
  out.ruled = std::any_of(services.begin(), services.end(), [&](const ServiceRef& service) {
    return out.scope->DestinationRule(TrafficDirection::kOutbound, proxy, service->hostname) != nullptr;
  });
  for (const EgressListener& egress : out.scope->egress_listeners) {
    for (const config::VirtualServiceRef& rule : egress.virtual_services) {
      out.shows_labels |= !rule->spec.tcp.empty() || !rule->spec.tls.empty();
    }
  }
  return out;
}

bool SharedListeners::SameMesh(const Mesh& a, const Mesh& b) {
  const PushContext &x = *a.push, &y = *b.push;
  return !a.ruled && !b.ruled && a.scope->name == b.scope->name && a.scope->ns == b.scope->ns &&
         a.scope->sidecar == b.scope->sidecar && x.env().mesh == y.env().mesh && &x.authn() == &y.authn() &&
         &x.authz() == &y.authz() && &x.envoy_filters() == &y.envoy_filters() && &x.telemetry() == &y.telemetry() &&
         &x.wasm_plugins() == &y.wasm_plugins() && x.profile() == y.profile() &&
         SameForListeners(x.GetAllServices(), y.GetAllServices()) &&
         SameForListeners(a.scope->services(), b.scope->services()) &&
         std::equal(a.scope->egress_listeners.begin(), a.scope->egress_listeners.end(),
                    b.scope->egress_listeners.begin(), b.scope->egress_listeners.end(),
                    [](const EgressListener& e, const EgressListener& f) {
                      return e.listener == f.listener && e.match_port == f.match_port &&
                             e.virtual_services.list() == f.virtual_services.list() &&
                             SameForListeners(e.services.list(), f.services.list());
                    });
}

SharedListeners::Mesh& SharedListeners::MeshOf(const Proxy& proxy, const PushContextRef& push) {
  const std::pair<std::string, std::string> of_scope{proxy.sidecar_scope->ns, proxy.sidecar_scope->name};
  if (const auto known = meshes_.find(of_scope); known != meshes_.end()) {
    for (const auto& mesh : known->second) {
      for (const auto& [its_push, its_scope] : mesh->alike) {
        if (SameObject(its_push, push) && SameObject(its_scope, proxy.sidecar_scope)) return *mesh;
      }
    }
  }
  auto made = std::make_unique<Mesh>(MakeMesh(proxy, push));
  for (const auto& mesh : meshes_[of_scope]) {
    if (!SameMesh(*mesh, *made)) continue;
    if (mesh->alike.size() == kMostAlike) mesh->alike.erase(mesh->alike.begin());
    mesh->alike.push_back(made->alike.front());
    return *mesh;
  }
  Keep(push);
  return *meshes_[of_scope].emplace_back(std::move(made));
}

// Forgets what was made from the oldest context where there are too many.
void SharedListeners::Keep(const PushContextRef& push) {
  if (std::find(contexts_.begin(), contexts_.end(), push) != contexts_.end()) return;
  contexts_.push_back(push);
  if (contexts_.size() <= kMostContexts) return;
  const PushContextRef oldest = std::move(contexts_.front());
  contexts_.pop_front();
  for (auto of_scope = meshes_.begin(); of_scope != meshes_.end();) {
    std::erase_if(of_scope->second, [&](const auto& mesh) { return mesh->push == oldest; });
    const auto here = of_scope++;
    if (here->second.empty()) meshes_.erase(here);
  }
}

ResourceList SharedListeners::Get(const Proxy& proxy, const PushContextRef& push,
                                  absl::FunctionRef<ResourceList()> generate) {
  if (!MayShare(proxy, *push)) return generate();
  Mesh& mesh = MeshOf(proxy, push);
  if (!mesh.shares) return generate();
  const auto same_services = [&](const Answer& answer) {
    return std::equal(answer.own_services.begin(), answer.own_services.end(), proxy.service_instances.begin(),
                      proxy.service_instances.end(), [](const ServiceRef& service, const ServiceInstance& own) {
                        return SameForListeners(service, own.service);
                      });
  };
  if (mesh.size == kMostAnswers) {
    mesh.answers.clear();
    mesh.size = 0;
  }
  std::vector<Answer>& of_key = mesh.answers[KeyOf(proxy, *push, mesh.shows_labels)];
  for (const Answer& answer : of_key) {
    if (SameButInstance(*answer.metadata, *proxy.metadata.raw) && same_services(answer)) return answer.listeners;
  }
  Answer& answer = of_key.emplace_back();
  ++mesh.size;
  answer.metadata = proxy.metadata.raw;
  for (const ServiceInstance& own : proxy.service_instances) answer.own_services.push_back(own.service);
  answer.listeners = generate();
  return answer.listeners;
}

}  // namespace wavetank::pilot
