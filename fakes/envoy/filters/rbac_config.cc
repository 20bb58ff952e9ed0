#include "fakes/envoy/filters/rbac_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "core/base/text/go_regexp.h"
#include "envoy/config/rbac/v3/rbac.pb.h"
#include "envoy/extensions/filters/http/rbac/v3/rbac.pb.h"
#include "envoy/extensions/filters/network/rbac/v3/rbac.pb.h"
#include "fakes/envoy/config/route_config.h"
#include "fakes/envoy/extensions/config_json.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/tcp/http.h"

// Configuration in the field still uses what Envoy calls deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace wavetank::envoysim {
namespace {

namespace rbac_v3 = envoy::config::rbac::v3;

constexpr char kPeerPrincipalKey[] = "io.istio.peer_principal";

absl::Status NoSuchList(std::string_view field) {
  return absl::InvalidArgumentError(fmt::format(
      "Proto constraint validation failed (PolicyValidationError.{}: value must contain at least 1 item(s))", field));
}

// The network filter takes no conditions on headers. Envoy: filters/network/rbac/config.cc, validateFail
template <typename List>
absl::Status NoHeaders(const List& list);

absl::Status NoHeader(const rbac_v3::Permission& p) {
  if (p.has_and_rules()) return NoHeaders(p.and_rules().rules());
  if (p.has_or_rules()) return NoHeaders(p.or_rules().rules());
  if (p.has_not_rule()) return NoHeader(p.not_rule());
  if (!p.has_header()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("Found header({}) rule,not supported by RBAC network filter", p.header().DebugString()));
}

absl::Status NoHeader(const rbac_v3::Principal& p) {
  if (p.has_and_ids()) return NoHeaders(p.and_ids().ids());
  if (p.has_or_ids()) return NoHeaders(p.or_ids().ids());
  if (p.has_not_id()) return NoHeader(p.not_id());
  if (!p.has_header()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("Found header({}) rule,not supported by RBAC network filter", p.header().DebugString()));
}

template <typename List>
absl::Status NoHeaders(const List& list) {
  for (const auto& item : list) {
    if (absl::Status status = NoHeader(item); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Validate(const rbac_v3::RBAC& rules, bool network) {
  for (const auto& [name, policy] : rules.policies()) {
    if (policy.permissions().empty()) return NoSuchList("Permissions");
    if (policy.principals().empty()) return NoSuchList("Principals");
    if (!network) continue;
    if (absl::Status status = NoHeaders(policy.permissions()); !status.ok()) return status;
    if (absl::Status status = NoHeaders(policy.principals()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// A prefix and what follows, with the dot that Envoy puts between.
std::string Joined(std::string_view prefix, std::string_view more) {
  std::string out(prefix);
  out += more;
  if (!more.empty() && more.back() != '.') out += '.';
  return out;
}

}  // namespace

RbacCondition RbacCondition::Constant(bool matches) {
  RbacCondition out;
  out.kind_ = matches ? Kind::kAny : Kind::kOr;
  return out;
}

template <typename List>
absl::StatusOr<RbacCondition> RbacCondition::Combined(Kind kind, const List& list) {
  RbacCondition out;
  out.kind_ = kind;
  for (const auto& item : list) {
    absl::StatusOr<RbacCondition> child = Make(item);
    if (!child.ok()) return child.status();
    out.children_.push_back(*std::move(child));
  }
  return out;
}

template <typename Message>
absl::StatusOr<RbacCondition> RbacCondition::Not(const Message& message) {
  absl::StatusOr<RbacCondition> child = Make(message);
  if (!child.ok()) return child.status();
  RbacCondition out;
  out.kind_ = Kind::kNot;
  out.children_.push_back(*std::move(child));
  return out;
}

template <typename Range>
absl::StatusOr<RbacCondition> RbacCondition::In(Kind kind, const Range& range) {
  absl::StatusOr<IpPrefix> prefix = IpPrefix::Make(range.address_prefix(), range.prefix_len().value());
  if (!prefix.ok()) return prefix.status();
  RbacCondition out;
  out.kind_ = kind;
  out.prefix_ = *prefix;
  return out;
}

template <typename Matcher>
absl::StatusOr<RbacCondition> RbacCondition::Text(Kind kind, const Matcher& matcher) {
  absl::StatusOr<StringMatch> text = StringMatch::Make(matcher);
  if (!text.ok()) return text.status();
  RbacCondition out;
  out.kind_ = kind;
  out.text_ = *std::move(text);
  return out;
}

absl::StatusOr<RbacCondition> RbacCondition::Header(const envoy::config::route::v3::HeaderMatcher& matcher) {
  absl::StatusOr<HeaderMatch> header = HeaderMatch::Make(matcher);
  if (!header.ok()) return header.status();
  RbacCondition out;
  out.kind_ = Kind::kHeader;
  out.header_ = *std::move(header);
  return out;
}

absl::StatusOr<RbacCondition> RbacCondition::Metadata(const envoy::type::matcher::v3::MetadataMatcher& matcher) {
  absl::StatusOr<MetadataMatch> metadata = MetadataMatch::Make(matcher);
  if (!metadata.ok()) return metadata.status();
  RbacCondition out;
  out.kind_ = Kind::kMetadata;
  out.metadata_ = *std::move(metadata);
  return out;
}

// "*" is one segment, "**" all that follows, both of characters that a path may have. Envoy:
// source/extensions/path/uri_template_lib/uri_template_internal.cc
absl::StatusOr<RbacCondition> RbacCondition::PathTemplate(const google::protobuf::Any& config) {
  if (!TypeName(config).ends_with("path.match.uri_template.v3.UriTemplateMatchConfig")) {
    return absl::UnimplementedError("RBAC path template of a kind that is not modelled");
  }
  const absl::StatusOr<nlohmann::json> said = ConfigJson(config);
  if (!said.ok()) return said.status();
  const std::string pattern = TextAt(*said, "path_template");
  constexpr std::string_view kSegment = "a-zA-Z0-9._~%!$&'()+,;:@=";
  std::string regex;
  for (std::string_view rest = pattern; !rest.empty();) {
    const size_t star = rest.find('*');
    regex += QuoteMeta(rest.substr(0, star));
    if (star == rest.npos) break;
    rest.remove_prefix(star + 1);
    if (rest.starts_with('*')) {
      rest.remove_prefix(1);
      regex += fmt::format("[{}/-]*", kSegment);
    } else {
      regex += fmt::format("[{}-]+", kSegment);
    }
  }
  envoy::type::matcher::v3::StringMatcher matcher;
  matcher.mutable_safe_regex()->set_regex(regex);
  return Text(Kind::kPath, matcher);
}

absl::StatusOr<RbacCondition> RbacCondition::Make(const rbac_v3::Principal& p) {
  switch (p.identifier_case()) {
    case rbac_v3::Principal::kAny:
      return Constant(true);
    case rbac_v3::Principal::kAndIds:
      return Combined(Kind::kAnd, p.and_ids().ids());
    case rbac_v3::Principal::kOrIds:
      return Combined(Kind::kOr, p.or_ids().ids());
    case rbac_v3::Principal::kNotId:
      return Not(p.not_id());
    case rbac_v3::Principal::kAuthenticated: {
      if (p.authenticated().has_principal_name()) return Text(Kind::kIdentity, p.authenticated().principal_name());
      RbacCondition out;
      out.kind_ = Kind::kIdentity;
      return out;
    }
    case rbac_v3::Principal::kFilterState:
      if (p.filter_state().key() != kPeerPrincipalKey) return Constant(false);  // nobody writes any other
      return Text(Kind::kPeerPrincipal, p.filter_state().string_match());
    case rbac_v3::Principal::kDirectRemoteIp:
      return In(Kind::kDirectSource, p.direct_remote_ip());
    case rbac_v3::Principal::kSourceIp:
      return In(Kind::kConnectionSource, p.source_ip());
    case rbac_v3::Principal::kRemoteIp:
      return In(Kind::kSource, p.remote_ip());
    case rbac_v3::Principal::kMetadata:
      return Metadata(p.metadata());
    case rbac_v3::Principal::kUrlPath:
      return Text(Kind::kPath, p.url_path().path());
    case rbac_v3::Principal::kHeader:
      return Header(p.header());
    default:
      return absl::UnimplementedError("RBAC principal of a kind that is not modelled");
  }
}

absl::StatusOr<RbacCondition> RbacCondition::Make(const rbac_v3::Permission& p) {
  const auto ports = [](uint32_t start, uint32_t end) {
    RbacCondition out;
    out.kind_ = Kind::kPortRange;
    out.start_ = start;
    out.end_ = end;
    return out;
  };
  switch (p.rule_case()) {
    case rbac_v3::Permission::kAny:
      return Constant(true);
    case rbac_v3::Permission::kAndRules:
      return Combined(Kind::kAnd, p.and_rules().rules());
    case rbac_v3::Permission::kOrRules:
      return Combined(Kind::kOr, p.or_rules().rules());
    case rbac_v3::Permission::kNotRule:
      return Not(p.not_rule());
    case rbac_v3::Permission::kDestinationIp:
      return In(Kind::kDestination, p.destination_ip());
    case rbac_v3::Permission::kDestinationPort:
      return ports(p.destination_port(), p.destination_port() + 1);
    case rbac_v3::Permission::kDestinationPortRange:
      return ports(static_cast<uint32_t>(p.destination_port_range().start()),
                   static_cast<uint32_t>(p.destination_port_range().end()));
    case rbac_v3::Permission::kRequestedServerName:
      return Text(Kind::kServerName, p.requested_server_name());
    case rbac_v3::Permission::kMetadata:
      return Metadata(p.metadata());
    case rbac_v3::Permission::kUrlPath:
      return Text(Kind::kPath, p.url_path().path());
    case rbac_v3::Permission::kHeader:
      return Header(p.header());
    case rbac_v3::Permission::kUriTemplate:
      return PathTemplate(p.uri_template().typed_config());
    default:
      return absl::UnimplementedError("RBAC permission of a kind that is not modelled");
  }
}

bool RbacCondition::Matches(const RbacSubject& subject) const {
  const auto child_matches = [&](const RbacCondition& child) { return child.Matches(subject); };
  switch (kind_) {
    case Kind::kAny:
      return true;
    case Kind::kAnd:
      return std::all_of(children_.begin(), children_.end(), child_matches);
    case Kind::kOr:
      return std::any_of(children_.begin(), children_.end(), child_matches);
    case Kind::kNot:
      return !child_matches(children_.front());
    case Kind::kHeader:
      // A connection has no headers, so that only their absence is found.
      return subject.request == nullptr ? header_->Matches(std::nullopt) : header_->Matches(*subject.request);
    case Kind::kPath: {
      if (subject.request == nullptr) return false;
      const std::string_view path = subject.request->path;
      return text_->Matches(path.substr(0, path.find_first_of("?#")));
    }
    case Kind::kServerName:
      return text_->Matches(subject.server_name);
    case Kind::kIdentity:
      return subject.tls && (!text_ || text_->Matches(subject.identity));
    case Kind::kPeerPrincipal:
      return !subject.peer_principal.empty() && text_->Matches(subject.peer_principal);
    case Kind::kDirectSource:
      return prefix_.Contains(subject.direct_source);
    case Kind::kConnectionSource:
      return prefix_.Contains(subject.connection_source);
    case Kind::kSource:
      return prefix_.Contains(subject.source);
    case Kind::kDestination:
      return prefix_.Contains(subject.destination);
    case Kind::kPortRange:
      return start_ <= subject.port && subject.port < end_;
    case Kind::kMetadata:
      return metadata_->Matches(subject.metadata);
  }
  return false;
}

absl::StatusOr<RbacRules> RbacRules::Make(const rbac_v3::RBAC& rules) {
  RbacRules out;
  out.action = rules.action() == rbac_v3::RBAC::DENY  ? Action::kDeny
               : rules.action() == rbac_v3::RBAC::LOG ? Action::kLog
                                                      : Action::kAllow;
  std::vector<std::string> names;  // the map has no order
  for (const auto& [name, policy] : rules.policies()) names.push_back(name);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const rbac_v3::Policy& policy = rules.policies().at(name);
    absl::StatusOr<RbacCondition> permissions = RbacCondition::AnyOf(policy.permissions());
    if (!permissions.ok()) return permissions.status();
    absl::StatusOr<RbacCondition> principals = RbacCondition::AnyOf(policy.principals());
    if (!principals.ok()) return principals.status();
    out.policies.push_back({name, *std::move(permissions), *std::move(principals)});
  }
  return out;
}

RbacRules::Verdict RbacRules::Decide(const RbacSubject& subject) const {
  for (const Policy& policy : policies) {
    if (policy.permissions.Matches(subject) && policy.principals.Matches(subject)) {
      return {action != Action::kDeny, policy.name};
    }
  }
  return {action != Action::kAllow, {}};
}

template <typename Message>
absl::StatusOr<RbacConfig> RbacConfig::Make(const Message& message, const std::string& prefix) {
  RbacConfig out;
  constexpr bool kNetwork = std::is_same_v<Message, envoy::extensions::filters::network::rbac::v3::RBAC>;
  const auto compile = [](const rbac_v3::RBAC& from, std::optional<RbacRules>& to) {
    if (absl::Status status = Validate(from, kNetwork); !status.ok()) return status;
    absl::StatusOr<RbacRules> compiled = RbacRules::Make(from);
    if (compiled.ok()) to = *std::move(compiled);
    return compiled.status();
  };
  if (message.has_rules()) {
    if (absl::Status status = compile(message.rules(), out.rules); !status.ok()) return status;
  }
  if (message.has_shadow_rules()) {
    if (absl::Status status = compile(message.shadow_rules(), out.shadow); !status.ok()) return status;
  }
  const std::string base = prefix + "rbac.", shadow = Joined(base, message.shadow_rules_stat_prefix());
  out.allowed = base + "allowed";
  out.denied = base + "denied";
  out.shadow_allowed = shadow + "shadow_allowed";
  out.shadow_denied = shadow + "shadow_denied";
  out.shadow_policy_key = message.shadow_rules_stat_prefix() + "shadow_effective_policy_id";
  return out;
}

template absl::StatusOr<RbacConfig> RbacConfig::Make(const envoy::extensions::filters::http::rbac::v3::RBAC& message,
                                                     const std::string& prefix);
template absl::StatusOr<RbacConfig> RbacConfig::Make(const envoy::extensions::filters::network::rbac::v3::RBAC& message,
                                                     const std::string& prefix);

std::string RbacDenial(std::string_view policy) {
  std::string name(policy.empty() ? std::string_view("none") : policy);
  for (char& c : name) {
    if (c == ' ' || c == '\t') c = '_';
  }
  return fmt::format("rbac_access_denied_matched_policy[{}]", name);
}

}  // namespace wavetank::envoysim
