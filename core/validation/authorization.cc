#include <algorithm>

#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/profile/changes.h"
#include "core/validation/names.h"
#include "core/validation/rules.h"
#include "fmt/format.h"

namespace wavetank::validation {
namespace {

enum Action { kAllow, kDeny, kAudit, kCustom };

std::vector<std::string> Texts(const json& in, std::string_view field) {
  std::vector<std::string> out;
  for (const json& item : Items(Member(in, field))) out.push_back(TextOf(item));
  return out;
}

void CheckAddresses(const std::vector<std::string>& addresses, Problems& out) {
  for (const std::string& one : addresses) {
    if (one.find('/') != std::string::npos) {
      if (const std::string error = PrefixError(one); !error.empty()) {
        out.AddToList(fmt::format("bad CIDR range ({}): {}", one, error));
      }
    } else if (!IsIp(one)) {
      out.AddToList(fmt::format("bad IP address ({})", one));
    }
  }
}

void CheckPorts(const std::vector<std::string>& ports, Problems& out) {
  for (const std::string& one : ports) {
    uint64_t number = 0;
    const std::string error = PortTextError(one, &number);
    if (!error.empty() || number > 65535) {
      out.AddToList(fmt::format("bad port ({}): {}", one, error.empty() ? "<nil>" : error));
    }
  }
}

std::string EmptyValue(std::string_view key, const std::vector<std::string>& values) {
  const bool any = std::find(values.begin(), values.end(), "") != values.end();
  return any ? fmt::format("empty value not allowed, found in {}", key) : "";
}

// istiod: pkg/config/security, CheckServiceAccount.
std::string ServiceAccountProblem(std::string_view key, const std::vector<std::string>& values) {
  constexpr size_t kMost = 16, kLongest = 320;
  if (values.size() > kMost) return "may not have more than 16 values";
  for (const std::string& value : values) {
    if (value.empty()) return fmt::format("empty value not allowed, found in {}", key);
    if (value.find('*') != std::string::npos) return fmt::format("wildcard not allowed, found in {}", key);
    constexpr std::string_view kForm = "expected format 'serviceAccount' or 'namespace/serviceAccount', found";
    if (std::count(value.begin(), value.end(), '/') > 1) return fmt::format("{} {} in {}", kForm, Quoted(value), key);
    if (value.size() > kLongest) {
      return fmt::format("value cannot exceed 320 characters, found {} in {}", Quoted(value), key);
    }
    if (value.front() == '/') return fmt::format("{} empty namespace {} in {}", kForm, Quoted(value), key);
    if (value.back() == '/') return fmt::format("{} empty serviceAccount {} in {}", kForm, Quoted(value), key);
  }
  return "";
}

// istiod: pkg/config/security, CheckWildcardValues.
std::string WildcardProblem(std::string_view key, const std::vector<std::string>& values) {
  if (std::string empty = EmptyValue(key, values); !empty.empty()) return empty;
  for (const std::string& value : values) {
    const auto stars = std::count(value.begin(), value.end(), '*');
    if (stars > 1) return fmt::format("at most one wildcard is allowed, found in {}: {}", key, Quoted(value));
    if (stars == 1 && !value.starts_with('*') && !value.ends_with('*')) {
      return fmt::format("wildcard is only allowed at the start or end, found in {}: {}", key, Quoted(value));
    }
  }
  return "";
}

// istiod: pkg/config/security, CheckTrustDomainValues.
std::string TrustDomainProblem(std::string_view key, const std::vector<std::string>& values) {
  if (std::string wildcard = WildcardProblem(key, values); !wildcard.empty()) return wildcard;
  for (const std::string& value : values) {
    if (value.find('/') == std::string::npos) continue;
    return fmt::format("trust domain must not contain '/', found in {}: {}", key, Quoted(value));
  }
  return "";
}

// istiod: pkg/config/security, CheckValidPathTemplate.
std::string PathTemplateProblem(std::string_view key, const std::vector<std::string>& paths) {
  constexpr std::string_view kOne = "{*}", kAny = "{**}";
  // RFC 3986, pchar.
  constexpr std::string_view kLiteral =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%!$&'()+,;:@=";
  for (const std::string& whole : paths) {
    const bool is_template = whole.find(kOne) != std::string::npos || whole.find(kAny) != std::string::npos;
    const size_t first = whole.find_first_not_of('/'), last = whole.find_last_not_of('/');
    const std::string path = first == std::string::npos ? "" : whole.substr(first, last - first + 1);
    const std::string wrong = fmt::format("invalid or unsupported path {}, found in {}. ", path, key);
    bool any = false;
    for (const std::string& part : std::vector<std::string>(absl::StrSplit(path, '/'))) {
      if (part == kOne || part == kAny) {
        if (any) return wrong + "{**} is not the last operator";
        any = part == kAny;
      } else if (part.find_first_of("{}") != std::string::npos) {
        return wrong + "Contains '{' or '}' beyond a supported path template";
      } else if (is_template && (part.empty() || part.find_first_not_of(kLiteral) != std::string::npos)) {
        return wrong + fmt::format("Contains segment {} with invalid string literal", part);
      }
    }
  }
  return "";
}

// istiod: pkg/config/security, ValidateAttribute.
void CheckAttribute(const std::string& key, const std::vector<std::string>& values, Problems& out) {
  if (std::string wrong = EmptyValue(key, values); !wrong.empty()) return out.Add(std::move(wrong));
  if (key.starts_with("request.headers") || key.starts_with("request.auth.claims") ||
      key.starts_with("experimental.envoy.filters.")) {
    const size_t open = key.find('[');
    const bool good = key.ends_with(']') && open != std::string::npos && open > 0 && open + 2 < key.size();
    if (!good) out.Add(fmt::format("bad key ({}): should have format a[b]", key));
  } else if (key == "source.ip" || key == "remote.ip" || key == "destination.ip") {
    CheckAddresses(values, out);
  } else if (key == "destination.port") {
    CheckPorts(values, out);
  } else if (key == "source.serviceAccount" && out.Has(pilot::Change::kServiceAccountsAsSources)) {
    out.Add(ServiceAccountProblem(key, values));
  } else if (key == "source.trustDomain" && out.Has(pilot::Change::kTrustDomainsAsSources)) {
    out.Add(WildcardProblem(key, values));
  } else if (key == "destination.namespace") {
    out.Add(fmt::format("attribute {} is replaced by the metadata.namespace", key));
  } else if (key.starts_with("destination.labels")) {
    out.Add(fmt::format("attribute {} is replaced by the workload selector", key));
  } else if (key == "destination.name" || key == "destination.user") {
    out.Add(fmt::format("deprecated attribute {}: only supported in v1alpha1", key));
  } else {
    constexpr std::string_view kKnown[] = {"source.namespace",       "source.principal",       "request.auth.principal",
                                           "request.auth.audiences", "request.auth.presenter", "connection.sni"};
    if (std::find(std::begin(kKnown), std::end(kKnown), key) == std::end(kKnown)) out.Add("unknown attribute: " + key);
  }
}

// A field of a source or an operation, and how istiod calls it.
struct NamedField {
  const char *field, *name;
};
constexpr NamedField kSourceFields[] = {{"principals", "Principals"},
                                        {"requestPrincipals", "RequestPrincipals"},
                                        {"namespaces", "Namespaces"},
                                        {"ipBlocks", "IpBlocks"},
                                        {"remoteIpBlocks", "RemoteIpBlocks"},
                                        {"notPrincipals", "NotPrincipals"},
                                        {"notRequestPrincipals", "NotRequestPrincipals"},
                                        {"notNamespaces", "NotNamespaces"},
                                        {"notIpBlocks", "NotIpBlocks"},
                                        {"notRemoteIpBlocks", "NotRemoteIpBlocks"}};
constexpr NamedField kOperationFields[] = {
    {"ports", "Ports"},       {"methods", "Methods"},       {"paths", "Paths"},       {"hosts", "Hosts"},
    {"notPorts", "NotPorts"}, {"notMethods", "NotMethods"}, {"notPaths", "NotPaths"}, {"notHosts", "NotHosts"}};

template <size_t N>
bool NoneGiven(const json& in, const NamedField (&fields)[N]) {
  return std::all_of(std::begin(fields), std::end(fields),
                     [&](const NamedField& f) { return Items(Member(in, f.field)).empty(); });
}

// What a rule looks at: a rule that denies by what only HTTP has denies all TCP.
struct Looks {
  bool from = false, to = false, from_tcp = false, to_tcp = false;
};

void CheckFrom(const json& rule, size_t number, Looks& looks, Problems& out) {
  for (const json& from : Items(Member(rule, "from"))) {
    const json& source = Member(from, "source");
    if (source.is_null()) {
      out.Add(fmt::format("`from.source` must not be nil, found at rule {}", number));
      continue;
    }
    looks.from = true;
    const bool accounts_known = out.Has(pilot::Change::kServiceAccountsAsSources);
    const bool domains_known = out.Has(pilot::Change::kTrustDomainsAsSources);
    const auto given = [&](std::initializer_list<const char*> fields) {
      return std::any_of(fields.begin(), fields.end(),
                         [&](const char* field) { return !Items(Member(source, field)).empty(); });
    };
    const bool accounts = accounts_known && given({"serviceAccounts", "notServiceAccounts"});
    const bool domains = domains_known && given({"trustDomains", "notTrustDomains"});
    if (accounts && given({"principals", "notPrincipals", "namespaces", "notNamespaces"})) {
      out.Add(fmt::format("cannot set serviceAccounts with namespaces or principals, found at rule {}", number));
    }
    if (NoneGiven(source, kSourceFields) && !accounts && !domains) {
      out.Add(fmt::format("`from.source` must not be empty, found at rule {}", number));
    }
    for (const char* field : {"ipBlocks", "notIpBlocks", "remoteIpBlocks", "notRemoteIpBlocks"}) {
      CheckAddresses(Texts(source, field), out);
    }
    for (const NamedField& f : kSourceFields) {
      out.Add(EmptyValue(f.name, Texts(source, f.field)));
      const std::string_view name = f.name;
      if (!name.ends_with("Namespaces")) continue;
      const bool negated = name.starts_with("Not");
      if (accounts_known) {
        out.Add(ServiceAccountProblem(negated ? "NotServiceAccounts" : "ServiceAccounts",
                                      Texts(source, negated ? "notServiceAccounts" : "serviceAccounts")));
      }
      if (domains_known) {
        out.Add(TrustDomainProblem(negated ? "NotTrustDomains" : "TrustDomains",
                                   Texts(source, negated ? "notTrustDomains" : "trustDomains")));
      }
    }
    looks.from_tcp |= accounts;
    for (const char* field : {"notPrincipals", "principals", "ipBlocks", "notIpBlocks", "namespaces", "notNamespaces",
                              "remoteIpBlocks", "notRemoteIpBlocks"}) {
      looks.from_tcp |= !Items(Member(source, field)).empty();
    }
  }
}

void CheckTo(const json& rule, size_t number, Looks& looks, Problems& out) {
  for (const json& to : Items(Member(rule, "to"))) {
    const json& operation = Member(to, "operation");
    if (operation.is_null()) {
      out.Add(fmt::format("`to.operation` must not be nil, found at rule {}", number));
      continue;
    }
    looks.to = true;
    if (NoneGiven(operation, kOperationFields)) {
      out.Add(fmt::format("`to.operation` must not be empty, found at rule {}", number));
    }
    CheckPorts(Texts(operation, "ports"), out);
    CheckPorts(Texts(operation, "notPorts"), out);
    for (const NamedField& f : kOperationFields) out.Add(EmptyValue(f.name, Texts(operation, f.field)));
    if (out.Has(pilot::Change::kPathTemplates)) {
      out.Add(PathTemplateProblem("Paths", Texts(operation, "paths")));
      out.Add(PathTemplateProblem("NotPaths", Texts(operation, "notPaths")));
    }
    for (const char* field : {"ports", "notPorts"}) looks.to_tcp |= !Items(Member(operation, field)).empty();
  }
}

void CheckWhen(const json& rule, Problems& out) {
  for (const json& condition : Items(Member(rule, "when"))) {
    const std::string key = MemberText(condition, "key");
    const std::vector<std::string> values = Texts(condition, "values"), not_values = Texts(condition, "notValues");
    if (key.empty()) {
      out.Add("`key` must not be empty");
      continue;
    }
    if (values.empty() && not_values.empty()) {
      out.Add(fmt::format("at least one of `values` or `notValues` must be set for key {}", key));
      continue;
    }
    for (const auto& [name, list] : {std::pair("value", &values), std::pair("notValue", &not_values)}) {
      Problems wrong = out.OfSameRelease();
      CheckAttribute(key, *list, wrong);
      if (!wrong.empty()) out.Add(fmt::format("invalid `{}` for `key` {}: {}", name, key, wrong.Text()));
    }
  }
}

struct LaterField {
  const char *field, *name;
  pilot::Change change;
};
constexpr LaterField kLaterSourceFields[] = {
    {"serviceAccounts", "ServiceAccounts", pilot::Change::kServiceAccountsAsSources},
    {"notServiceAccounts", "NotServiceAccounts", pilot::Change::kServiceAccountsAsSources},
    {"trustDomains", "TrustDomains", pilot::Change::kTrustDomainsAsSources},
    {"notTrustDomains", "NotTrustDomains", pilot::Change::kTrustDomainsAsSources}};

void CheckCustom(const json& spec, Problems& out) {
  const json& rules = Items(Member(spec, "rules"));
  if (rules.empty()) {
    out.Add(
        "CUSTOM action without `rules` is meaningless as it will never be triggered, add an empty rule `{}` if you "
        "want "
        "it be triggered for every request");
  } else if (MemberText(Member(spec, "provider"), "name").empty()) {
    out.Add("`provider.name` must not be empty");
  }
  const auto unsupported = [&](const std::string& name) {
    out.Add(name + " is currently not supported with CUSTOM action");
  };
  for (const json& rule : rules) {
    for (const json& from : Items(Member(rule, "from"))) {
      for (const NamedField& f : kSourceFields) {
        const std::string_view name = f.name;
        if (name.ends_with("Blocks") || Items(Member(Member(from, "source"), f.field)).empty()) continue;
        unsupported(fmt::format("From.{}", name));
      }
      for (const auto& [field, name, change] : kLaterSourceFields) {
        if (out.Has(change) && !Items(Member(Member(from, "source"), field)).empty())
          unsupported(fmt::format("From.{}", name));
      }
    }
    for (const json& when : Items(Member(rule, "when"))) {
      const std::string key = MemberText(when, "key");
      if (key == "source.namespace" || key == "source.principal" || key.starts_with("request.auth.") ||
          (key == "source.serviceAccount" && out.Has(pilot::Change::kServiceAccountsAsSources)) ||
          (key == "source.trustDomain" && out.Has(pilot::Change::kTrustDomainsAsSources))) {
        unsupported(key);
      }
    }
  }
}

}  // namespace

void CheckAuthorizationPolicy(const json& object, Problems& out) {
  constexpr std::string_view kActions[] = {"ALLOW", "DENY", "AUDIT", "CUSTOM"};
  const json& spec = At(object, "spec");
  CheckTargets(spec, out);
  Selector(Member(spec, "selector"), "matchLabels", "", "", out);
  const int action = MemberEnum(spec, "action", {"ALLOW", "DENY", "AUDIT", "CUSTOM"});
  const json& rules = Items(Member(spec, "rules"));
  if (action == kCustom) CheckCustom(spec, out);
  if (!Member(spec, "provider").is_null() && action != kCustom && action >= 0 && action < kCustom) {
    out.Add(fmt::format("`provider` must not be with non CUSTOM action, found {}", kActions[action]));
  }
  if (action == kDeny && rules.empty()) {
    out.Add(
        "DENY action without `rules` is meaningless as it will never be triggered, add an empty rule `{}` if you want "
        "it "
        "be triggered for every request");
  }
  for (size_t i = 0; i < rules.size(); ++i) {
    Looks looks;
    CheckFrom(rules[i], i, looks, out);
    CheckTo(rules[i], i, looks, out);
    CheckWhen(rules[i], out);
    if (action == kDeny && ((looks.from && !looks.to && !looks.from_tcp) || (looks.to && !looks.to_tcp))) {
      out.Warn(
          "configured AuthorizationPolicy will deny all traffic to TCP ports under its scope due to the use of only "
          "HTTP "
          "attributes in a DENY rule; it is recommended to explicitly specify the port");
    }
  }
  const json& metadata = At(object, "metadata");
  out.Prefix(fmt::format("invalid policy {}.{}:", Text(metadata, "name"), Text(metadata, "namespace")));
}

}  // namespace wavetank::validation
