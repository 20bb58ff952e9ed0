#include "fakes/envoy/filters/rbac.h"

#include <memory>
#include <string>
#include <utility>

#include "envoy/extensions/filters/http/rbac/v3/rbac.pb.h"
#include "envoy/extensions/filters/network/rbac/v3/rbac.pb.h"
#include "fakes/envoy/config/listener_config.h"
#include "fakes/envoy/filters/rbac_config.h"

namespace wavetank::envoysim {
namespace {

// Judges by the rules of `config` and counts in the filter's own counters. `Where`: HttpStream or NetworkConnection.
// `shadow_policy`: the policy of the shadow rules that matched.
template <typename Where>
RbacRules::Verdict Judge(const RbacConfig& config, const RbacConfig& filter, const RbacSubject& subject, Where& where,
                         std::string_view* shadow_policy) {
  if (config.shadow) {
    const RbacRules::Verdict verdict = config.shadow->Decide(subject);
    ++where.Counter(verdict.allowed ? filter.shadow_allowed : filter.shadow_denied);
    *shadow_policy = verdict.policy;
  }
  if (!config.rules) return {};
  const RbacRules::Verdict verdict = config.rules->Decide(subject);
  ++where.Counter(verdict.allowed ? filter.allowed : filter.denied);
  return verdict;
}

// In the place of the filter's rules; without any, nobody is refused.
struct RbacOfRoute final : RouteFilterConfig {
  explicit RbacOfRoute(RbacConfig its_rules) : rules(std::move(its_rules)) {}
  RbacConfig rules;
};

class HttpRbac final : public HttpFilter {
 public:
  explicit HttpRbac(RbacConfig config) : config_(std::move(config)) {}

  FilterStatus OnRequest(HttpStream& stream, Duration lead) const override {
    RbacSubject subject(stream.connection());
    subject.request = &stream.request();
    subject.metadata = &stream.notes();
    if (const std::optional<IpAddress> source = stream.ForwardedFor()) subject.source = *source;
    std::string_view shadow;
    const auto* const of_route = static_cast<const RbacOfRoute*>(stream.RouteConfig());
    const RbacConfig& rules = of_route != nullptr ? of_route->rules : config_;
    const RbacRules::Verdict verdict = Judge(rules, config_, subject, stream, &shadow);
    if (!shadow.empty()) stream.Note({"envoy.filters.http.rbac", rules.shadow_policy_key, shadow, nullptr});
    if (verdict.allowed) return FilterStatus::kContinue;
    stream.Answer({403, kNoFlags, stream.Keep(RbacDenial(verdict.policy)), "RBAC: access denied"}, lead);
    return FilterStatus::kStop;
  }

 private:
  const RbacConfig config_;
};

class NetworkRbac final : public NetworkFilter {
 public:
  explicit NetworkRbac(RbacConfig config) : config_(std::move(config)) {}

  bool reads() const override { return true; }
  FilterStatus OnData(NetworkConnection& connection) const override {
    RbacSubject subject(connection.Facts());
    subject.metadata = &connection.notes();
    std::string_view shadow;
    const RbacRules::Verdict verdict = Judge(config_, config_, subject, connection, &shadow);
    if (!shadow.empty()) connection.Note({"envoy.filters.network.rbac", config_.shadow_policy_key, shadow, nullptr});
    if (verdict.allowed) return FilterStatus::kContinue;
    connection.Explain(kNoFlags, {}, RbacDenial(verdict.policy));
    connection.Decide(/*goes_on=*/false);
    return FilterStatus::kStop;
  }

 private:
  const RbacConfig config_;
};

}  // namespace

HttpFilterType RbacFilterType() {
  HttpFilterType type;
  type.message = "envoy.extensions.filters.http.rbac.v3.RBAC";
  type.name = "envoy.filters.http.rbac";
  type.make = [](const google::protobuf::Any& config,
                 const FilterContext& context) -> absl::StatusOr<std::shared_ptr<const HttpFilter>> {
    envoy::extensions::filters::http::rbac::v3::RBAC message;
    if (absl::Status s = UnpackConfig(config, &message); !s.ok()) return s;
    absl::StatusOr<RbacConfig> made = RbacConfig::Make(message, std::string(context.stat_prefix));
    if (!made.ok()) return made.status();
    return std::make_shared<HttpRbac>(*std::move(made));
  };
  type.route_message = "envoy.extensions.filters.http.rbac.v3.RBACPerRoute";
  type.make_for_route = [](const google::protobuf::Any& config,
                           const Extensions&) -> absl::StatusOr<std::shared_ptr<const RouteFilterConfig>> {
    envoy::extensions::filters::http::rbac::v3::RBACPerRoute message;
    if (absl::Status s = UnpackConfig(config, &message); !s.ok()) return s;
    absl::StatusOr<RbacConfig> made = RbacConfig::Make(message.rbac(), "");
    if (!made.ok()) return made.status();
    return std::make_shared<RbacOfRoute>(*std::move(made));
  };
  return type;
}

NetworkFilterType NetworkRbacType() {
  return {"envoy.extensions.filters.network.rbac.v3.RBAC", "envoy.filters.network.rbac", /*terminal=*/false,
          [](const google::protobuf::Any& config, const FilterContext&, FilterChain* chain) {
            envoy::extensions::filters::network::rbac::v3::RBAC message;
            if (absl::Status s = UnpackConfig(config, &message); !s.ok()) return s;
            absl::StatusOr<RbacConfig> made = RbacConfig::Make(message, message.stat_prefix());
            if (made.ok()) chain->filters.push_back(std::make_shared<NetworkRbac>(*std::move(made)));
            return made.status();
          }};
}

}  // namespace wavetank::envoysim
