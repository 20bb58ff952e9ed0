#include "core/config/kinds/authorization_policy.h"

#include "core/config/kinds/read_message.h"

namespace wavetank::config {
namespace {

// "hosts" and "notHosts".
void ReadValues(ProtoJson& in, std::string_view field, AuthorizationPolicy::Values& out) {
  in.Field(field, out.values);
  std::string negated = "not";
  negated += field;
  negated[3] = static_cast<char>(negated[3] - 'a' + 'A');
  in.Field(negated, out.not_values);
}

struct SourceField {
  AuthorizationPolicy::Source source;
};
struct OperationField {
  AuthorizationPolicy::Operation operation;
};
struct ProviderField {
  std::string name;
};
void ReadMessage(ProtoJson& in, SourceField& out) { in.Field("source", out.source); }
void ReadMessage(ProtoJson& in, OperationField& out) { in.Field("operation", out.operation); }
void ReadMessage(ProtoJson& in, ProviderField& out) { in.Field("name", out.name); }

}  // namespace

void ReadMessage(ProtoJson& in, AuthorizationPolicy::Source& out) {
  ReadValues(in, "principals", out.principals);
  ReadValues(in, "requestPrincipals", out.request_principals);
  ReadValues(in, "namespaces", out.namespaces);
  ReadValues(in, "ipBlocks", out.ip_blocks);
  ReadValues(in, "remoteIpBlocks", out.remote_ip_blocks);
  ReadValues(in, "serviceAccounts", out.service_accounts);
  ReadValues(in, "trustDomains", out.trust_domains);
}

void ReadMessage(ProtoJson& in, AuthorizationPolicy::Operation& out) {
  ReadValues(in, "hosts", out.hosts);
  ReadValues(in, "ports", out.ports);
  ReadValues(in, "methods", out.methods);
  ReadValues(in, "paths", out.paths);
}

void ReadMessage(ProtoJson& in, AuthorizationPolicy::Condition& out) {
  in.Field("key", out.key);
  ReadValues(in, "values", out.values);
}

void ReadMessage(ProtoJson& in, AuthorizationPolicy::Rule& out) {
  std::vector<SourceField> from;
  in.Field("from", from);
  for (SourceField& entry : from) out.from.push_back(std::move(entry.source));
  std::vector<OperationField> to;
  in.Field("to", to);
  for (OperationField& entry : to) out.to.push_back(std::move(entry.operation));
  in.Field("when", out.when);
}

void ReadMessage(ProtoJson& in, AuthorizationPolicy& out) {
  using Action = AuthorizationPolicy::Action;
  ReadSelector(in, "selector", "matchLabels", out.selector);
  ReadTargets(in, out.targets);
  in.Field("rules", out.rules);
  in.Enum("action", out.action,
          {{"ALLOW", Action::kAllow}, {"DENY", Action::kDeny}, {"AUDIT", Action::kAudit}, {"CUSTOM", Action::kCustom}});
  ProviderField provider;
  in.Field("provider", provider);
  out.provider = std::move(provider.name);
}

}  // namespace wavetank::config
