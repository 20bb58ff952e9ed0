#include <charconv>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/envoyapi/any.h"
#include "core/gen/authz/authz_rules.h"
#include "core/gen/grpc/proxyless.h"
#include "core/gen/grpc/proxyless_tls.h"
#include "core/gen/view/common_tls.h"
#include "core/gen/view/listener_filters.h"
#include "core/gen/view/proxy_view.h"
#include "core/model/addresses.h"
#include "core/model/labels.h"
#include "core/push/push_context.h"
#include "core/push/sidecar_scope.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/extensions/filters/http/rbac/v3/rbac.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"

namespace wavetank::pilot {
namespace {

using ListenerPb = ::envoy::config::listener::v3::Listener;
using ManagerPb = ::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;

void SetAddress(const std::string& address, uint32_t port, ListenerPb& out) {
  auto* socket = out.mutable_address()->mutable_socket_address();
  socket->set_address(address);
  socket->set_port_value(port);
}

Resource Encode(const ListenerPb& listener) { return {listener.name(), Serialize(listener)}; }

ListenerPb Outbound(const Proxy& proxy, const PushContext& push, const Service& service, const Port& port,
                    const std::string& requested) {
  ManagerPb manager;
  manager.add_http_filters()->ParseFromString(HttpFault());
  manager.add_http_filters()->ParseFromString(HttpRouter());
  manager.mutable_rds()->mutable_config_source()->mutable_ads();
  manager.mutable_rds()->set_route_config_name(
      BuildSubsetKey(TrafficDirection::kOutbound, "", service.hostname, port.port));
  ListenerPb out;
  out.set_name(JoinHostPort(requested, port.port));
  SetAddress(AddressForProxy(service, proxy, push.profile()), static_cast<uint32_t>(port.port), out);
  *out.mutable_api_listener()->mutable_api_listener() = PackAny(manager);
  return out;
}

// gRPC knows one way per port: no chain is chosen by how the client begins, so that PERMISSIVE is plain text, unless
// automatic mTLS tells the clients that this workload takes it. istiod: buildInboundFilterChains.
bool ServesMutualTls(const Proxy& proxy, MutualTlsMode mode) {
  if (mode == MutualTlsMode::kPermissive) {
    const auto label = proxy.labels.find(kTlsModeLabel);
    return label != proxy.labels.end() && label->second == kMutualTlsMode;
  }
  return mode == MutualTlsMode::kStrict;
}

// Rules as gRPC knows them: ALLOW and DENY only, nothing dry, principals as the certificate has them, and no filter for
// policies without rules, so that "allow nothing" allows everything. A rule that is void is there without conditions.
// istiod: buildRBAC.
void AddAuthorization(const WorkloadAuthorization::Policies& policies, bool allow, const Profile& profile,
                      ManagerPb& manager) {
  using FilterPb = ::envoy::extensions::filters::http::rbac::v3::RBAC;
  using RulesPb = ::envoy::config::rbac::v3::RBAC;
  FilterPb filter;
  RulesPb& rules = *filter.mutable_rules();
  rules.set_action(allow ? RulesPb::ALLOW : RulesPb::DENY);
  authz::RuleOptions options;
  options.allow = allow;
  options.authenticated = true;
  options.reads = authz::ReadFields::Of(profile);
  for (const auto* policy : policies) {
    options.policy_namespace = policy->meta.ns;
    for (size_t i = 0; i < policy->spec.rules.size(); ++i) {
      if (!authz::IsKnownRule(policy->spec.rules[i], options)) continue;
      auto& to = (*rules.mutable_policies())[absl::StrCat(policy->meta.ns, "-", policy->meta.name, "-", i)];
      to.ParseFromString(authz::EncodeRule(policy->spec.rules[i], options).value_or(""));
    }
  }
  if (rules.policies().empty()) return;
  auto* http_filter = manager.add_http_filters();
  http_filter->set_name(allow ? "envoy.filters.http.rbac" : "envoy.filters.http.rbac.DENY");
  *http_filter->mutable_typed_config() = PackAny(filter);
}

void AddInboundChain(bool mtls, const WorkloadAuthorization& authz, const Profile& profile, ListenerPb& out) {
  const std::string kind = mtls ? "mtls" : "plaintext";
  ManagerPb manager;
  auto* routes = manager.mutable_route_config();
  routes->set_name("inbound");
  auto* host = routes->add_virtual_hosts();
  *host->add_domains() = std::string(1, '*');  // GCC 12 sees ghosts in the other way
  auto* route = host->add_routes();
  route->mutable_match()->set_prefix("/");
  route->mutable_non_forwarding_action();
  AddAuthorization(authz.deny, false, profile, manager);
  AddAuthorization(authz.allow, true, profile, manager);
  manager.add_http_filters()->ParseFromString(HttpRouter());

  auto* chain = out.add_filter_chains();
  chain->set_name("inbound-" + kind);
  auto* filter = chain->add_filters();
  filter->set_name("inbound-hcm" + kind);
  *filter->mutable_typed_config() = PackAny(manager);
  if (mtls) *chain->mutable_transport_socket() = ProxylessDownstreamTls();
}

std::optional<ListenerPb> Inbound(const Proxy& proxy, const MergedPeerAuthentication& authn,
                                  const WorkloadAuthorization& authz, const Profile& profile, const std::string& name) {
  std::string host, text;
  uint32_t port = 0;
  if (!SplitHostPort(std::string_view(name).substr(kGrpcServerListenerPrefix.size()), &host, &text)) {
    return std::nullopt;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  bool serves = false;
  for (const ServiceInstance& instance : proxy.service_instances) serves |= instance.endpoint.endpoint_port == port;
  if (!serves) return std::nullopt;
  ListenerPb out;
  out.set_name(name);
  SetAddress(host, port, out);
  AddInboundChain(ServesMutualTls(proxy, authn.ForPort(port)), authz, profile, out);
  return out;
}

}  // namespace

std::vector<Resource> BuildProxylessListeners(const Proxy& proxy, const PushContext& push,
                                              const std::vector<std::string>& names) {
  std::vector<Resource> out;
  const ListenerNames wanted(names, proxy);
  if (proxy.sidecar_scope != nullptr) {
    for (const ServiceRef& service : proxy.sidecar_scope->services()) {
      const ListenerNames::Target* target = wanted.Find(service->hostname);
      if (target == nullptr) continue;
      for (const std::string& requested : target->requested) {
        for (const Port& port : service->ports) {
          if (!target->ports.empty() && !target->ports.contains(std::to_string(port.port))) continue;
          out.push_back(Encode(Outbound(proxy, push, *service, port, requested)));
        }
      }
    }
  }
  if (wanted.servers().empty()) return out;
  const MergedPeerAuthentication authn = push.authn().ComposeForWorkload(proxy.metadata.ns, proxy.labels);
  const WorkloadAuthorization authz = push.authz().ForWorkload(proxy.config_namespace, proxy.labels);
  for (const std::string& name : wanted.servers()) {
    if (const std::optional<ListenerPb> listener = Inbound(proxy, authn, authz, push.profile(), name))
      out.push_back(Encode(*listener));
  }
  return out;
}

}  // namespace wavetank::pilot
