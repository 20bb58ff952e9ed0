#include "core/gen/authz/authz_rules.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "absl/strings/str_replace.h"
#include "core/base/text/go_regexp.h"
#include "core/envoyapi/any.h"
#include "core/gen/authz/authz_matchers.h"
#include "core/gen/authz/authz_trust_domains.h"
#include "core/gen/view/listener_types.h"
#include "core/gen/wire/wire.h"
#include "core/profile/changes.h"
#include "envoy/config/rbac/v3/rbac.pb.h"
#include "envoy/type/matcher/v3/filter_state.pb.h"

namespace wavetank::pilot::authz {
namespace {

using Policy = config::AuthorizationPolicy;
using PolicyPb = ::envoy::config::rbac::v3::Policy;
using Permission = ::envoy::config::rbac::v3::Permission;
using Principal = ::envoy::config::rbac::v3::Principal;

constexpr std::string_view kHeadersKey = "request.headers", kExperimental = "experimental.";

enum class Attribute : uint8_t {
  kUnknown,
  // Permissions.
  kHost,
  kMethod,
  kPath,
  kDestinationPort,
  kDestinationIp,
  kServerName,
  kEnvoyFilter,
  // Principals.
  kSourcePrincipal,
  kRequestAuth,  // principal, audiences, presenter
  kSourceNamespace,
  kServiceAccount,
  kTrustDomain,
  kRemoteIp,
  kSourceIp,
  kRequestHeader,
  kRequestClaims,
};
bool IsPermission(Attribute attribute) { return attribute <= Attribute::kEnvoyFilter; }

Attribute AttributeOf(std::string_view key, const RuleOptions& options) {
  if (options.reads.service_accounts && key == "source.serviceAccount") return Attribute::kServiceAccount;
  if (options.reads.trust_domains && key == "source.trustDomain") return Attribute::kTrustDomain;
  if (key == "destination.ip") return Attribute::kDestinationIp;
  if (key == "destination.port") return Attribute::kDestinationPort;
  if (key == "connection.sni") return Attribute::kServerName;
  if (key.starts_with("experimental.envoy.filters.")) return Attribute::kEnvoyFilter;
  if (key == "source.ip") return Attribute::kSourceIp;
  if (key == "remote.ip") return Attribute::kRemoteIp;
  if (key == "source.namespace") return Attribute::kSourceNamespace;
  if (key == "source.principal") return Attribute::kSourcePrincipal;
  if (key == "request.auth.principal" || key == "request.auth.audiences" || key == "request.auth.presenter") {
    return Attribute::kRequestAuth;
  }
  if (key.starts_with(kHeadersKey)) return Attribute::kRequestHeader;
  if (key.starts_with(kClaimsKey)) return Attribute::kRequestClaims;
  return Attribute::kUnknown;
}

// "[name]" without its brackets.
std::optional<std::string_view> WithoutBrackets(std::string_view text) {
  if (text.empty() || text.front() != '[' || text.back() != ']') return std::nullopt;
  if (text.size() < 2) return std::nullopt;
  return text.substr(1, text.size() - 2);
}

// "[a][b]" as a path of claims; where that fails the whole is one name, brackets and all.
std::optional<std::vector<std::string_view>> ClaimPath(std::string_view text) {
  std::vector<std::string_view> out = {kClaimsKey};
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text[begin] == '[' ? text.find_first_of("[]", begin + 1) : text.npos;
    if (end == text.npos || text[end] == '[') {
      const std::optional<std::string_view> name = WithoutBrackets(text);
      if (!name) return std::nullopt;
      return std::vector<std::string_view>{kClaimsKey, *name};
    }
    out.push_back(text.substr(begin + 1, end - begin - 1));
    begin = end + 1;
  }
  return out;
}

std::optional<uint32_t> PortNumber(std::string_view text) {
  uint32_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port > 65535) return std::nullopt;
  return port;
}

// The field numbers of the two halves of a policy, which are built alike.
struct Half {
  int in_policy, and_set, or_set, negation, any, in_set;
};
constexpr Half kPermissions = {PolicyPb::kPermissionsFieldNumber, Permission::kAndRulesFieldNumber,
                               Permission::kOrRulesFieldNumber,   Permission::kNotRuleFieldNumber,
                               Permission::kAnyFieldNumber,       Permission::Set::kRulesFieldNumber};
constexpr Half kPrincipals = {PolicyPb::kPrincipalsFieldNumber, Principal::kAndIdsFieldNumber,
                              Principal::kOrIdsFieldNumber,     Principal::kNotIdFieldNumber,
                              Principal::kAnyFieldNumber,       Principal::Set::kIdsFieldNumber};

class RuleEncoder {
 public:
  RuleEncoder(const Policy::Rule& rule, const RuleOptions& options) : rule_(rule), options_(options), w_(&out_) {
    constexpr size_t kUsual = 240;
    out_.reserve(kUsual);
  }

  std::optional<std::string> Encode() {
    if (options_.trust_domains != nullptr) MigrateConditions();
    static const Policy::Operation* const any_operation = new Policy::Operation();
    static const Policy::Source* const any_source = new Policy::Source();
    if (rule_.to.empty()) Add(*any_operation);
    for (const Policy::Operation& operation : rule_.to) Add(operation);
    if (rule_.from.empty()) Add(*any_source);
    for (const Policy::Source& source : rule_.from) Add(source);
    if (void_) return std::nullopt;
    return std::move(out_);
  }

 private:
  // istiod replaces trust domains in a rule once for each of its sources, and conditions are shared between those: a
  // principal of a condition multiplies with every source. Beyond any sense it stops here, where istiod would not.
  void MigrateConditions() {
    constexpr size_t kMost = 1 << 16;
    for (const Policy::Condition& condition : rule_.when) {
      if (AttributeOf(condition.key, options_) != Attribute::kSourcePrincipal) continue;
      Policy::Values& values = migrated_.emplace_back(condition.values);
      for (size_t pass = 0; pass < std::max<size_t>(1, rule_.from.size()); ++pass) {
        if (values.values.size() + values.not_values.size() > kMost) break;
        values = Migrated(values);
      }
    }
  }

  Policy::Values Migrated(const Policy::Values& values) const {
    return {options_.trust_domains->Expand(values.values), options_.trust_domains->Expand(values.not_values)};
  }

  // istiod: pilot/pkg/security/authz/model/model.go, MigrateTrustDomain.
  Policy::Values WithAliases(const Policy::Values& values) const {
    if (options_.trust_domains == nullptr || values.empty()) return values;
    return {options_.trust_domains->ExpandDomains(values.values),
            options_.trust_domains->ExpandDomains(values.not_values)};
  }

  void Add(const Policy::Operation& operation) {
    AddHalf(kPermissions, [&] {
      Condition(kPermissions, Attribute::kHost, {}, operation.hosts);
      Condition(kPermissions, Attribute::kMethod, {}, operation.methods);
      Condition(kPermissions, Attribute::kPath, {}, operation.paths);
      Condition(kPermissions, Attribute::kDestinationPort, {}, operation.ports);
      Conditions(kPermissions);
    });
  }

  void Add(const Policy::Source& source) {
    AddHalf(kPrincipals, [&] {
      const bool migrate = options_.trust_domains != nullptr && !source.principals.empty();
      Condition(kPrincipals, Attribute::kSourcePrincipal, {},
                migrate ? Migrated(source.principals) : source.principals);
      Condition(kPrincipals, Attribute::kRequestAuth, "request.auth.principal", source.request_principals);
      if (options_.reads.service_accounts)
        Condition(kPrincipals, Attribute::kServiceAccount, {}, source.service_accounts);
      if (options_.reads.trust_domains) {
        Condition(kPrincipals, Attribute::kTrustDomain, {}, WithAliases(source.trust_domains));
      }
      Condition(kPrincipals, Attribute::kSourceNamespace, {}, source.namespaces);
      Condition(kPrincipals, Attribute::kRemoteIp, {}, source.remote_ip_blocks);
      Condition(kPrincipals, Attribute::kSourceIp, {}, source.ip_blocks);
      Conditions(kPrincipals);
    });
  }

  void Conditions(const Half& half) {
    size_t principal = 0;
    for (const Policy::Condition& condition : rule_.when) {
      const Attribute attribute = AttributeOf(condition.key, options_);
      const bool is_migrated = attribute == Attribute::kSourcePrincipal && !migrated_.empty();
      const Policy::Values& values = is_migrated ? migrated_[principal++] : condition.values;
      if (IsPermission(attribute) != (&half == &kPermissions)) continue;
      Condition(half, attribute, condition.key, attribute == Attribute::kTrustDomain ? WithAliases(values) : values);
    }
  }

  // AND of what `body` writes; anything if it writes nothing.
  template <typename Body>
  void AddHalf(const Half& half, Body body) {
    w_.Message(half.in_policy, [&] {
      w_.Message(half.and_set, [&] {
        const size_t begin = out_.size();
        body();
        if (out_.size() == begin) w_.Message(half.in_set, [&] { w_.Bool(half.any, true); });
      });
    });
  }

  void Condition(const Half& half, Attribute attribute, std::string_view key, const Policy::Values& values) {
    if (options_.jwt_payload && (attribute == Attribute::kRequestAuth || attribute == Attribute::kRequestClaims)) {
      WriteToken(attribute, key, values.values, [&](auto body) { w_.Message(kPrincipals.in_set, body); });
      WriteToken(attribute, key, values.not_values,
                 [&](auto body) { w_.Message(kPrincipals.in_set, [&] { w_.Message(kPrincipals.negation, body); }); });
      return;
    }
    if (attribute == Attribute::kEnvoyFilter && options_.reads.filter_values_at_once) {
      WriteFilterMetadata(key, values.values, [&](auto body) { w_.Message(half.in_set, body); });
      WriteFilterMetadata(key, values.not_values,
                          [&](auto body) { w_.Message(half.in_set, [&] { w_.Message(half.negation, body); }); });
      return;
    }
    AnyOf(half, attribute, key, values.values, [&](auto body) { w_.Message(half.in_set, body); });
    AnyOf(half, attribute, key, values.not_values,
          [&](auto body) { w_.Message(half.in_set, [&] { w_.Message(half.negation, body); }); });
  }

  // All values of one attribute of a token at once. istiod: extendedGenerator.
  template <typename Around>
  void WriteToken(Attribute attribute, std::string_view key, const std::vector<std::string>& values, Around around) {
    if (values.empty()) return;
    std::optional<std::vector<std::string_view>> claim;
    if (attribute == Attribute::kRequestClaims) {
      claim = ClaimPath(key.substr(kClaimsKey.size()));
      if (claim) claim->front() = kJwtPayload;
    } else if (key != "request.auth.principal") {
      claim = std::vector<std::string_view>{kJwtPayload, key == "request.auth.audiences" ? "aud" : "azp"};
    }
    if (options_.tcp || (attribute == Attribute::kRequestClaims && !claim)) {
      void_ |= options_.allow;
      return;
    }
    const auto principal = [&](const std::string& value) {
      const TokenPrincipal parsed = ParseTokenPrincipal(value);
      w_.Message(Principal::kAndIdsFieldNumber, [&] {
        w_.Message(Principal::Set::kIdsFieldNumber,
                   [&] { WriteTokenMatcher(w_, Principal::kMetadataFieldNumber, "iss", parsed.issuer); });
        w_.Message(Principal::Set::kIdsFieldNumber,
                   [&] { WriteTokenMatcher(w_, Principal::kMetadataFieldNumber, "sub", parsed.subject); });
      });
    };
    around([&] {
      if (claim) return WriteClaimMatcher(w_, Principal::kMetadataFieldNumber, *claim, values);
      if (values.size() == 1) return principal(values.front());
      w_.Message(Principal::kOrIdsFieldNumber, [&] {
        for (const std::string& value : values) w_.Message(Principal::Set::kIdsFieldNumber, [&] { principal(value); });
      });
    });
  }

  // OR of the values that apply; nothing if none does.
  template <typename Around>
  void AnyOf(const Half& half, Attribute attribute, std::string_view key, const std::vector<std::string>& values,
             Around around) {
    if (values.empty()) return;
    const size_t before = out_.size();
    bool any = false;
    around([&] {
      w_.Message(half.or_set, [&] {
        for (const std::string& value : values) {
          const size_t begin = out_.size();
          bool applies = false;
          w_.Message(half.in_set, [&] { applies = Write(attribute, key, value); });
          if (!applies) out_.resize(begin);
          any |= applies;
          void_ |= !applies && options_.allow;
        }
      });
    });
    if (!any) out_.resize(before);
  }

  // One alternative; false: it does not apply.
  bool Write(Attribute attribute, std::string_view key, std::string_view value) {
    if (options_.tcp && IsHttpOnly(attribute)) return false;
    switch (attribute) {
      case Attribute::kHost:
        WriteHostMatcher(w_, Permission::kHeaderFieldNumber, value);
        return true;
      case Attribute::kMethod:
        WriteHeaderMatcher(w_, Permission::kHeaderFieldNumber, ":method", value, options_.string_headers);
        return true;
      case Attribute::kPath:
        if (options_.reads.path_templates && (value.find("{*}") != value.npos || value.find("{**}") != value.npos)) {
          WritePathTemplate(value);
        } else {
          WritePathMatcher(w_, Permission::kUrlPathFieldNumber, value);
        }
        return true;
      case Attribute::kDestinationPort: {
        const std::optional<uint32_t> port = PortNumber(value);
        if (port) w_.Varint(Permission::kDestinationPortFieldNumber, *port);
        return port.has_value();
      }
      case Attribute::kDestinationIp:
        return WriteRange(Permission::kDestinationIpFieldNumber, value);
      case Attribute::kServerName:
        WriteStringMatcher(w_, Permission::kRequestedServerNameFieldNumber, value);
        return true;
      case Attribute::kEnvoyFilter:
        return WriteFilterMetadata(key, value);
      case Attribute::kSourcePrincipal:
        WriteIdentity([&](int field) { WritePrincipalMatcher(w_, field, value); });
        return true;
      case Attribute::kServiceAccount: {
        // istiod: serviceAccountRegex. Of the policy's namespace if none is named.
        const size_t slash = value.find('/');
        const std::string_view ns = slash == value.npos ? options_.policy_namespace : value.substr(0, slash);
        const std::string_view account = slash == value.npos ? value : value.substr(slash + 1);
        const std::string regex = "spiffe://.+/ns/" + QuoteMeta(ns) + "/(.+/|)sa/" + QuoteMeta(account) + "(/.+)?";
        WriteIdentity([&](int field) { WriteRegexMatcher(w_, field, regex); });
        return true;
      }
      case Attribute::kTrustDomain: {
        // istiod: srcTrustDomainGenerator.
        const size_t star = value.find('*');
        if (value == "*" || star == value.npos) {
          const std::string prefix = value == "*" ? "spiffe://" : "spiffe://" + std::string(value) + "/";
          WriteIdentity([&](int field) { WritePrefixMatcher(w_, field, prefix); });
        } else {
          const std::string regex =
              "spiffe://" + QuoteMeta(value.substr(0, star)) + "[^/]*" + QuoteMeta(value.substr(star + 1)) + "/.*";
          WriteIdentity([&](int field) { WriteRegexMatcher(w_, field, regex); });
        }
        return true;
      }
      case Attribute::kSourceNamespace: {
        const std::string text = options_.reads.namespaces_as_text ? QuoteMeta(value) : std::string(value);
        const std::string ns = absl::StrReplaceAll(text, {{options_.reads.namespaces_as_text ? "\\*" : "*", ".*"}});
        WriteIdentity([&](int field) { WriteRegexMatcher(w_, field, ".*/ns/" + ns + "/.*"); });
        return true;
      }
      case Attribute::kRequestAuth:
        WriteMetadataMatcher(w_, Principal::kMetadataFieldNumber, kAuthnFilter, {key}, MetadataValue::kText, value);
        return true;
      case Attribute::kRemoteIp:
        return WriteRange(Principal::kRemoteIpFieldNumber, value);
      case Attribute::kSourceIp:
        return WriteRange(Principal::kDirectRemoteIpFieldNumber, value);
      case Attribute::kRequestHeader: {
        const std::optional<std::string_view> name = WithoutBrackets(key.substr(kHeadersKey.size()));
        if (name) WriteHeaderMatcher(w_, Principal::kHeaderFieldNumber, *name, value, options_.string_headers);
        return name.has_value();
      }
      case Attribute::kRequestClaims: {
        const auto path = ClaimPath(key.substr(kClaimsKey.size()));
        if (path) {
          WriteMetadataMatcher(w_, Principal::kMetadataFieldNumber, kAuthnFilter, *path, MetadataValue::kListWith,
                               value);
        }
        return path.has_value();
      }
      case Attribute::kUnknown:
        break;
    }
    return false;
  }

  static bool IsHttpOnly(Attribute attribute) {
    switch (attribute) {
      case Attribute::kHost:
      case Attribute::kMethod:
      case Attribute::kPath:
      case Attribute::kRequestAuth:
      case Attribute::kRequestHeader:
      case Attribute::kRequestClaims:
        return true;
      default:
        return false;
    }
  }

  bool WriteRange(int field, std::string_view text) {
    using RangePb = ::envoy::config::core::v3::CidrRange;
    const std::optional<CidrRange> range = ParseCidrRange(text);
    if (!range) return false;
    w_.Message(field, [&] {
      w_.NonEmpty(RangePb::kAddressPrefixFieldNumber, range->address_prefix);
      w_.UInt32Value(RangePb::kPrefixLenFieldNumber, range->prefix_len);
    });
    return true;
  }

  template <typename Matcher>
  void WriteIdentity(Matcher matcher) {
    using FilterState = ::envoy::type::matcher::v3::FilterStateMatcher;
    if (options_.authenticated) {
      w_.Message(Principal::kAuthenticatedFieldNumber,
                 [&] { matcher(Principal::Authenticated::kPrincipalNameFieldNumber); });
      return;
    }
    w_.Message(Principal::kFilterStateFieldNumber, [&] {
      w_.Bytes(FilterState::kKeyFieldNumber, "io.istio.peer_principal");
      matcher(FilterState::kStringMatchFieldNumber);
    });
  }

  // "experimental.envoy.filters.a.b[c]": c of what filter envoy.filters.a.b wrote; a value "[v]" looks into a list.
  bool WriteFilterMetadata(std::string_view key, std::string_view value) {
    key.remove_prefix(kExperimental.size());
    if (key.ends_with(']')) key.remove_suffix(1);
    const size_t bracket = key.find('[');
    if (bracket == key.npos) return false;
    const bool list = IsListValue(value);
    if (list) value = WithoutListBrackets(value);
    WriteMetadataMatcher(w_, Permission::kMetadataFieldNumber, key.substr(0, bracket), {key.substr(bracket + 1)},
                         list ? MetadataValue::kListWith : MetadataValue::kText, value);
    return true;
  }

  // All values in one. istiod: envoyFilterGenerator.extendedPermission.
  template <typename Around>
  void WriteFilterMetadata(std::string_view key, const std::vector<std::string>& values, Around around) {
    if (values.empty()) return;
    key.remove_prefix(kExperimental.size());
    if (key.ends_with(']')) key.remove_suffix(1);
    const size_t bracket = key.find('[');
    if (bracket == key.npos) {
      void_ |= options_.allow;
      return;
    }
    around([&] {
      WriteFilterValues(w_, Permission::kMetadataFieldNumber, key.substr(0, bracket), key.substr(bracket + 1), values);
    });
  }

  // Encoded by hand: nothing else here knows the message (Envoy:
  // extensions/path/match/uri_template/v3/uri_template_match.proto).
  // istiod: pilot/pkg/security/authz/matcher/template.go.
  void WritePathTemplate(std::string_view path) {
    using ExtensionPb = ::envoy::config::core::v3::TypedExtensionConfig;
    constexpr int kPathTemplate = 1;
    const std::string pattern =
        absl::StrReplaceAll(absl::string_view(path.data(), path.size()), {{"{**}", "**"}, {"{*}", "*"}});
    w_.Message(Permission::kUriTemplateFieldNumber, [&] {
      w_.Bytes(ExtensionPb::kNameFieldNumber, "uri-template");
      w_.Any(ExtensionPb::kTypedConfigFieldNumber,
             "type.googleapis.com/envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig",
             wire::Encode([&](wire::Writer& config) { config.Bytes(kPathTemplate, pattern); }));
    });
  }

  const Policy::Rule& rule_;
  const RuleOptions& options_;
  std::string out_;
  wire::Writer w_;
  std::vector<Policy::Values> migrated_;  // of the conditions on principals, in order
  bool void_ = false;
};

}  // namespace

ReadFields ReadFields::Of(const Profile& profile) {
  ReadFields out;
  out.service_accounts = profile.Has(Change::kServiceAccountsAsSources);
  out.trust_domains = profile.Has(Change::kTrustDomainsAsSources);
  out.path_templates = profile.Has(Change::kPathTemplates);
  out.namespaces_as_text = profile.Has(Change::kNamespacesAsText);
  out.filter_values_at_once = profile.Has(Change::kFilterValuesAtOnce);
  return out;
}

bool IsKnownRule(const Policy::Rule& rule, const RuleOptions& options) {
  return std::all_of(rule.when.begin(), rule.when.end(), [&](const Policy::Condition& condition) {
    return AttributeOf(condition.key, options) != Attribute::kUnknown;
  });
}

std::optional<std::string> EncodeRule(const Policy::Rule& rule, const RuleOptions& options) {
  return RuleEncoder(rule, options).Encode();
}

const std::string& MatchNever() {
  static const auto& bytes = *[] {
    PolicyPb policy;
    policy.add_permissions()->mutable_not_rule()->set_any(true);
    policy.add_principals()->mutable_not_id()->set_any(true);
    return new std::string(Serialize(policy));
  }();
  return bytes;
}

const std::string& MatchAll() {
  static const auto& bytes = *[] {
    PolicyPb policy;
    policy.add_permissions()->set_any(true);
    policy.add_principals()->set_any(true);
    return new std::string(Serialize(policy));
  }();
  return bytes;
}

}  // namespace wavetank::pilot::authz
