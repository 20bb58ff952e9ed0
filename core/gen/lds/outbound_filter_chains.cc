#include "core/gen/lds/outbound_filter_chains.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/gen/rds/virtual_hosts.h"
#include "core/gen/view/destination_cluster.h"
#include "core/gen/view/dynamic_names.h"
#include "core/gen/view/proxy_view.h"
#include "core/model/host_name.h"
#include "core/push/push_context.h"

namespace wavetank::pilot {
namespace {

bool HasLabels(const Proxy& proxy, const Labels& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& label) {
    const auto it = proxy.labels.find(label.first);
    return it != proxy.labels.end() && it->second == label.second;
  });
}

// The parts of a match that are known when configuration is generated: gateway, labels, port, namespace.
template <typename Match>
bool MatchesStatically(const Match& match, const Proxy& proxy, int port) {
  return (match.gateways.empty() ||
          std::find(match.gateways.begin(), match.gateways.end(), "mesh") != match.gateways.end()) &&
         HasLabels(proxy, match.source_labels) && (match.port == 0 || match.port == static_cast<uint32_t>(port)) &&
         (match.source_namespace.empty() || match.source_namespace == proxy.metadata.ns);
}

class Chains {
 public:
  Chains(const ListenerScope& scope, const Service& service, const std::string& destination_cidr, std::string_view bind,
         const Port& listen_port, const std::vector<config::VirtualServiceRef>& rules)
      : scope_(scope), service_(service), bind_(bind), listen_port_(listen_port) {
    if (!destination_cidr.empty()) service_cidrs_.push_back(destination_cidr);
    for (const config::VirtualServiceRef& rule : rules) {
      const auto& hosts = rule->spec.hosts;
      if (std::any_of(hosts.begin(), hosts.end(),
                      [&](const std::string& host) { return HostMatches(host, service.hostname); })) {
        rules_.push_back(rule.get());
      }
    }
  }

  std::vector<FilterChainOptions> Build() {
    if (IsTls(listen_port_.protocol)) {
      BuildTls();
    } else {
      BuildTcp();
    }
    return std::move(out_);
  }

 private:
  using Rule = config::TypedConfig<config::VirtualService>;

  void BuildTls() {
    // Two matches that Envoy could not tell apart: the second is unreachable.
    std::set<std::string> seen;
    bool matched = false;
    for (const Rule* rule : rules_) {
      for (const config::TlsRoute& route : rule->spec.tls) {
        for (const config::TlsMatchAttributes& match : route.match) {
          if (!MatchesStatically(match, scope_.proxy, listen_port_.port)) continue;
          if (!seen.insert(absl::StrCat(absl::StrJoin(match.sni_hosts, ","), "|",
                                        absl::StrJoin(match.destination_subnets, ",")))
                   .second) {
            continue;
          }
          const bool own_subnets = !match.destination_subnets.empty() && listen_port_.port > 0;
          AddRoute(*rule, route.route, own_subnets ? match.destination_subnets : service_cidrs_, true);
          out_.back().sni_hosts = match.sni_hosts;
          matched = true;
        }
      }
    }
    if (!matched) AddService(NeedsSni());
  }

  // Where only the name tells services apart: no address of its own, or a prefix.
  bool NeedsSni() const {
    if (!service_cidrs_.empty() || IsDynamic(service_)) return true;
    const std::string& address = AddressForProxy(service_, scope_.proxy, scope_.push.profile());
    const std::string_view wildcard = SupportsIpv4(scope_.proxy) ? kUnspecifiedIp : "::";
    return address.empty() || address.find('/') != std::string::npos || (address == wildcard && bind_ == wildcard);
  }

  void BuildTcp() {
    bool default_route = false;
    for (const Rule* rule : rules_) {
      for (const config::TcpRoute& route : rule->spec.tcp) {
        if (route.match.empty()) {
          AddRoute(*rule, route.route, service_cidrs_, true);
          return;
        }
        std::vector<std::string> subnets;
        for (const config::L4MatchAttributes& match : route.match) {
          if (!MatchesStatically(match, scope_.proxy, listen_port_.port)) continue;
          // Any destination will do: nothing after this can match.
          if (match.destination_subnets.empty() || listen_port_.port == 0) {
            AddRoute(*rule, route.route, service_cidrs_, true);
            return;
          }
          subnets.insert(subnets.end(), match.destination_subnets.begin(), match.destination_subnets.end());
        }
        if (subnets.empty()) continue;
        AddRoute(*rule, route.route, subnets, false);
        std::sort(subnets.begin(), subnets.end());
        if (subnets == service_cidrs_) default_route = true;  // the default's match would be the same
      }
    }
    if (!default_route) AddService(false);
  }

  void AddRoute(const Rule& rule, const std::vector<config::RouteDestination>& routes,
                const std::vector<std::string>& cidrs, bool metadata) {
    FilterChainOptions chain;
    if (metadata) chain.metadata = ConfigInfoMetadata(rule.meta, scope_.push);
    chain.destination_cidrs = cidrs;
    chain.network_filters = scope_.network_filters.ToRoute(routes, listen_port_, rule.meta);
    out_.push_back(std::move(chain));
  }

  void AddService(bool by_name) {
    FilterChainOptions chain;
    if (by_name) {
      chain.sni_hosts = {service_.hostname};
      for (const kube::NamespacedName& alias : service_.attributes.aliases) {
        chain.sni_hosts.push_back(alias.name);
        for (std::string& name : ShortNames(alias.name, 0, scope_.proxy, scope_.push)) {
          chain.sni_hosts.push_back(std::move(name));
        }
      }
    }
    chain.destination_cidrs = service_cidrs_;
    // A Sidecar's port may be none of the service's; then its only port is meant.
    const Port& port = service_.ports.size() == 1 ? service_.ports[0] : listen_port_;
    chain.network_filters = scope_.network_filters.ToService(service_, "", port, listen_port_, false);
    chain.resolves_sni = IsDynamic(service_);
    out_.push_back(std::move(chain));
  }

  const ListenerScope& scope_;
  const Service& service_;
  std::string_view bind_;
  const Port& listen_port_;
  std::vector<std::string> service_cidrs_;
  std::vector<const Rule*> rules_;
  std::vector<FilterChainOptions> out_;
};

}  // namespace

std::vector<FilterChainOptions> OutboundTcpTlsFilterChains(const ListenerScope& scope, const Service& service,
                                                           const std::string& destination_cidr, std::string_view bind,
                                                           const Port& listen_port,
                                                           const std::vector<config::VirtualServiceRef>& rules) {
  return Chains(scope, service, destination_cidr, bind, listen_port, rules).Build();
}

}  // namespace wavetank::pilot
