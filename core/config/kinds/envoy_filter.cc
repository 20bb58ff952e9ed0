#include "core/config/kinds/envoy_filter.h"

#include "core/config/kinds/read_message.h"

namespace wavetank::config {
namespace {

using Filter = EnvoyFilter;

struct SubFilterField {
  std::string name;
};
void ReadMessage(ProtoJson& in, SubFilterField& out) { in.Field("name", out.name); }

}  // namespace

void ReadMessage(ProtoJson& in, Filter::ProxyMatch& out) {
  in.Field("proxyVersion", out.proxy_version);
  in.Field("metadata", out.metadata);
}

void ReadMessage(ProtoJson& in, Filter::FilterMatch& out) {
  in.Field("name", out.name);
  std::optional<SubFilterField> sub_filter;
  in.Field("subFilter", sub_filter);
  if (sub_filter) out.sub_filter = std::move(sub_filter->name);
}

void ReadMessage(ProtoJson& in, Filter::FilterChainMatch& out) {
  in.Field("name", out.name);
  in.Field("sni", out.sni);
  in.Field("transportProtocol", out.transport_protocol);
  in.Field("applicationProtocols", out.application_protocols);
  in.Field("filter", out.filter);
  in.Field("destinationPort", out.destination_port);
}

void ReadMessage(ProtoJson& in, Filter::ListenerMatch& out) {
  in.Field("portNumber", out.port_number);
  in.Field("portName", out.port_name);
  in.Field("filterChain", out.filter_chain);
  in.Field("listenerFilter", out.listener_filter);
  in.Field("name", out.name);
}

void ReadMessage(ProtoJson& in, Filter::RouteMatch& out) {
  using Action = Filter::RouteMatch::Action;
  in.Field("name", out.name);
  in.Enum("action", out.action,
          {{"ANY", Action::kAny},
           {"ROUTE", Action::kRoute},
           {"REDIRECT", Action::kRedirect},
           {"DIRECT_RESPONSE", Action::kDirectResponse}});
}

void ReadMessage(ProtoJson& in, Filter::VirtualHostMatch& out) {
  in.Field("name", out.name);
  in.Field("domainName", out.domain_name);
  in.Field("route", out.route);
}

void ReadMessage(ProtoJson& in, Filter::RouteConfigurationMatch& out) {
  in.Field("portNumber", out.port_number);
  in.Field("portName", out.port_name);
  in.Field("gateway", out.gateway);
  in.Field("vhost", out.vhost);
  in.Field("name", out.name);
}

void ReadMessage(ProtoJson& in, Filter::ClusterMatch& out) {
  in.Field("portNumber", out.port_number);
  in.Field("service", out.service);
  in.Field("subset", out.subset);
  in.Field("name", out.name);
}

void ReadMessage(ProtoJson& in, Filter::Match& out) {
  using Context = Filter::Context;
  in.Enum("context", out.context,
          {{"ANY", Context::kAny},
           {"SIDECAR_INBOUND", Context::kSidecarInbound},
           {"SIDECAR_OUTBOUND", Context::kSidecarOutbound},
           {"GATEWAY", Context::kGateway}});
  in.Field("proxy", out.proxy);
  // One of them; of several the last.
  if (in.Has("listener")) in.Field("listener", out.object.emplace<Filter::ListenerMatch>());
  if (in.Has("routeConfiguration")) {
    in.Field("routeConfiguration", out.object.emplace<Filter::RouteConfigurationMatch>());
  }
  if (in.Has("cluster")) in.Field("cluster", out.object.emplace<Filter::ClusterMatch>());
}

void ReadMessage(ProtoJson& in, Filter::Patch& out) {
  using Operation = Filter::Operation;
  in.Enum("operation", out.operation,
          {{"INVALID", Operation::kInvalid},
           {"MERGE", Operation::kMerge},
           {"ADD", Operation::kAdd},
           {"REMOVE", Operation::kRemove},
           {"INSERT_BEFORE", Operation::kInsertBefore},
           {"INSERT_AFTER", Operation::kInsertAfter},
           {"INSERT_FIRST", Operation::kInsertFirst},
           {"REPLACE", Operation::kReplace}});
  if (const nlohmann::json* value = in.Find("value")) {
    if (!value->is_object()) in.Fail("value", "expected a mapping");
    out.value = *value;
  }
}

void ReadMessage(ProtoJson& in, Filter::ConfigPatch& out) {
  using ApplyTo = Filter::ApplyTo;
  in.Enum("applyTo", out.apply_to,
          {{"INVALID", ApplyTo::kInvalid},
           {"LISTENER", ApplyTo::kListener},
           {"FILTER_CHAIN", ApplyTo::kFilterChain},
           {"NETWORK_FILTER", ApplyTo::kNetworkFilter},
           {"HTTP_FILTER", ApplyTo::kHttpFilter},
           {"ROUTE_CONFIGURATION", ApplyTo::kRouteConfiguration},
           {"VIRTUAL_HOST", ApplyTo::kVirtualHost},
           {"HTTP_ROUTE", ApplyTo::kHttpRoute},
           {"CLUSTER", ApplyTo::kCluster},
           {"EXTENSION_CONFIG", ApplyTo::kExtensionConfig},
           {"BOOTSTRAP", ApplyTo::kBootstrap},
           {"LISTENER_FILTER", ApplyTo::kListenerFilter}});
  in.Field("match", out.match);
  in.Field("patch", out.patch);
}

void ReadMessage(ProtoJson& in, Filter& out) {
  ReadSelector(in, "workloadSelector", "labels", out.workload_selector);
  in.Field("targetRefs", out.targets);
  in.Field("configPatches", out.config_patches);
  in.Field("priority", out.priority);
}

}  // namespace wavetank::config
