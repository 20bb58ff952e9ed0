// The table of variables: what is known of each stands in istiod_variables.tsv, what those that act set stands here.
#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/base/assert.h"
#include "core/profile/changes.h"
#include "core/profile/releases.h"
#include "core/settings/istiod_settings.h"
#include "core/settings/istiod_variables_text.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

using Value = VariableValue;
using Settings = IstiodSettings;

struct Setter {
  std::string_view name;
  void (*apply)(const Value& value, Settings* settings);
};

std::vector<std::string> SplitAtCommas(std::string_view text) {
  return absl::StrSplit(absl::string_view(text.data(), text.size()), ',', absl::SkipEmpty());
}

// Whether what is not positive leaves the limit that follows from istiod's processors.
bool LimitsByProcessors(const Settings& s) { return s.options.profile.Has(Change::kLimitsByProcessors); }

template <bool Features::*kFlag>
void SetFeature(const Value& value, Settings* settings) {
  settings->options.features.*kFlag = value.flag;
}
// What releases do unasked, or did before it.
template <Change kChange>
void SetChange(const Value& value, Settings* settings) {
  settings->options.profile.Set(kChange, value.flag);
}
template <Change kChange>
void UnsetChange(const Value& value, Settings* settings) {
  settings->options.profile.Set(kChange, !value.flag);
}

// By name.
constexpr Setter kSetters[] = {
    {"AUTO_RELOAD_PLUGIN_CERTS", [](const Value& v, Settings* s) { s->options.ca.auto_reload = v.flag; }},
    {"CA_TRUSTED_NODE_ACCOUNTS",
     [](const Value& v, Settings* s) {
       for (const std::string& account : SplitAtCommas(v.text)) {
         const size_t slash = account.find('/');
         if (slash == std::string::npos) {
           s->log.push_back("Invalid CA_TRUSTED_NODE_ACCOUNTS, ignoring: " + account);
         } else {
           s->options.trusted_node_accounts.insert({account.substr(0, slash), account.substr(slash + 1)});
         }
       }
     }},
    {"CERT_SIGNER_DOMAIN", [](const Value& v, Settings* s) { s->options.cert_signer_domain = v.text; }},
    {"CITADEL_ENABLE_JITTER_FOR_ROOT_CERT_ROTATOR",
     [](const Value& v, Settings* s) { s->options.ca.root_check_jitter = v.flag; }},
    {"CITADEL_SELF_SIGNED_CA_CERT_TTL",
     [](const Value& v, Settings* s) { s->options.ca.ca.self_signed_ttl = v.duration; }},
    {"CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL",
     [](const Value& v, Settings* s) {
       s->options.ca.root_check_interval = v.duration > Duration::zero() ? std::max<Duration>(v.duration, 1ms) : v.duration;
     }},
    {"CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE",
     [](const Value& v, Settings* s) { s->options.ca.root_grace_percent = static_cast<int>(v.integer); }},
    {"CLUSTER_ID",
     [](const Value& v, Settings* s) {
       s->options.cluster_id = ClusterId(v.text);
       s->cluster_named = true;
     }},
    {"DEFAULT_WORKLOAD_CERT_TTL",
     [](const Value& v, Settings* s) { s->options.ca.ca.default_workload_ttl = v.duration; }},
    {"DISABLE_SHADOW_HOST_SUFFIX", SetChange<Change::kMirrorsKeepHost>},
    {"DISABLE_TRACK_REMAINING_CB_METRICS", SetChange<Change::kNoRemainingCircuitBreakerMetrics>},
    {"ENABLE_100_CONTINUE_HEADERS", SetChange<Change::kProxies100Continue>},
    {"ENABLE_AUTO_MTLS_CHECK_POLICIES", SetFeature<&Features::auto_mtls_checks>},
    {"ENABLE_AUTO_SNI", SetChange<Change::kAutoSni>},
    {"ENABLE_CA_SERVER", [](const Value& v, Settings* s) { s->options.enable_ca = v.flag; }},
    {"ENABLE_DELIMITED_STATS_TAG_REGEX", SetChange<Change::kDelimitedStatNames>},
    {"ENABLE_ENHANCED_DESTINATIONRULE_MERGE", SetChange<Change::kRulesMergedByExport>},
    {"ENABLE_ENHANCED_RESOURCE_SCOPING", SetChange<Change::kSelectorsScopeConfiguration>},
    {"ENABLE_EXTERNAL_NAME_ALIAS", SetChange<Change::kExternalNameAliases>},
    {"ENABLE_INBOUND_RETRY_POLICY", SetChange<Change::kInboundRetries>},
    {"ENABLE_LEADER_ELECTION", [](const Value& v, Settings* s) { s->options.leader_election = v.flag; }},
    {"ENABLE_LEGACY_LB_ALGORITHM_DEFAULT", SetFeature<&Features::round_robin>},
    {"ENABLE_LOCALITY_WEIGHTED_LB_CONFIG", UnsetChange<Change::kLocalityWeightsWhenNeeded>},
    {"ENABLE_MCS_AUTO_EXPORT", [](const Value& v, Settings* s) { s->options.mcs.auto_export = v.flag; }},
    {"ENABLE_MCS_CLUSTER_LOCAL", [](const Value& v, Settings* s) { s->options.mcs.cluster_local = v.flag; }},
    {"ENABLE_MCS_HOST", [](const Value& v, Settings* s) { s->options.mcs.host = v.flag; }},
    {"ENABLE_MCS_SERVICE_DISCOVERY", [](const Value& v, Settings* s) { s->options.mcs.discovery = v.flag; }},
    {"ENABLE_MULTICLUSTER_HEADLESS", SetFeature<&Features::headless_across_clusters>},
    {"ENABLE_NATIVE_SIDECARS", [](const Value& v, Settings* s) { s->options.native_sidecars = v.text; }},
    {"ENABLE_OTEL_BUILTIN_RESOURCE_LABELS", UnsetChange<Change::kOtelNoBuiltinLabels>},
    {"ENABLE_PROXY_FIND_POD_BY_IP", UnsetChange<Change::kPodByNameAlone>},
    {"ENABLE_RESOLUTION_NONE_TARGET_PORT", SetChange<Change::kPassthroughTargetPorts>},
    {"EXCLUDE_UNSAFE_503_FROM_DEFAULT_RETRY", SetChange<Change::kNoRetriesOf503>},
    {"EXTERNAL_CA", [](const Value& v, Settings* s) { s->options.external_ca = v.text; }},
    {"EXTERNAL_ISTIOD",
     [](const Value& v, Settings* s) {
       s->options.external = v.flag;
       s->external_said = true;
     }},
    {"INJECTION_WEBHOOK_CONFIG_NAME",
     [](const Value& v, Settings* s) { s->options.patches_injection = !v.text.empty(); }},
    {"INJECT_ENABLED", [](const Value& v, Settings* s) { s->injects = v.flag; }},
    {"ISTIOD_CUSTOM_HOST", [](const Value& v, Settings* s) { s->options.custom_hosts = SplitAtCommas(v.text); }},
    {"ISTIO_DEFAULT_REQUEST_TIMEOUT", [](const Value& v, Settings* s) { s->options.features.request_timeout = v.duration; }},
    {"ISTIO_DUAL_STACK", [](const Value& v, Settings* s) { s->options.profile.Set(Change::kDualStack, v.flag); }},
    {"ISTIO_MULTIROOT_MESH", [](const Value& v, Settings* s) { s->options.multi_root = v.flag; }},
    {"ISTIO_WATCH_NAMESPACE", [](const Value& v, Settings* s) { s->options.watch_namespace = v.text; }},
    {"ISTIO_WORKLOAD_ENTRY_VALIDATE_IDENTITY",
     [](const Value& v, Settings* s) { s->options.validate_entry_identity = v.flag; }},
    {"JWT_POLICY", [](const Value& v, Settings* s) { s->options.tokens.first_party = v.text == "first-party-jwt"; }},
    {"JWT_RULE", [](const Value& v, Settings* s) { s->options.jwt_rule = v.text; }},
    {"K8S_SIGNER", [](const Value& v, Settings* s) { s->options.k8s_signer = v.text; }},
    {"MAX_WORKLOAD_CERT_TTL", [](const Value& v, Settings* s) { s->options.ca.ca.max_workload_ttl = v.duration; }},
    {"MCS_API_GROUP", [](const Value& v, Settings* s) { s->options.mcs.group = v.text; }},
    {"MCS_API_VERSION", [](const Value& v, Settings* s) { s->options.mcs.version = v.text; }},
    {"NATIVE_METADATA_EXCHANGE", SetChange<Change::kPeerMetadataFilter>},
    {"PERSIST_OLDEST_FIRST_HEURISTIC_FOR_VIRTUAL_SERVICE_HOST_MATCHING", UnsetChange<Change::kMostSpecificWildcard>},
    {"PILOT_CERT_PROVIDER", [](const Value& v, Settings* s) { s->options.cert_provider = v.text; }},
    {"PILOT_DEBOUNCE_AFTER", [](const Value& v, Settings* s) { s->options.debounce_after = v.duration; }},
    {"PILOT_DEBOUNCE_MAX", [](const Value& v, Settings* s) { s->options.debounce_max = v.duration; }},
    {"PILOT_DNS_CARES_UDP_MAX_QUERIES", [](const Value& v, Settings* s) { s->options.features.dns_queries_per_port = std::clamp<int64_t>(v.integer, 0, UINT32_MAX); }},
    {"PILOT_DNS_JITTER_DURATION", [](const Value& v, Settings* s) { s->options.features.dns_jitter = v.duration; }},
    {"PILOT_ENABLE_ABSOLUTE_FQDN_VHOST_DOMAIN", SetChange<Change::kAbsoluteDomains>},
    {"PILOT_ENABLE_ALPN_FILTER", SetFeature<&Features::alpn_filter>},
    {"PILOT_ENABLE_CDS_CACHE", SetFeature<&Features::cds_cache>},
    {"PILOT_ENABLE_CONFIG_DISTRIBUTION_TRACKING",
     [](const Value& v, Settings* s) { s->options.distribution_tracking = v.flag; }},
    {"PILOT_ENABLE_CROSS_CLUSTER_WORKLOAD_ENTRY", SetFeature<&Features::entries_across_clusters>},
    {"PILOT_ENABLE_EDS_DEBOUNCE", [](const Value& v, Settings* s) { s->options.debounce_eds = v.flag; }},
    {"PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES", SetFeature<&Features::eds_for_headless>},
    {"PILOT_ENABLE_GATEWAY_API", SetFeature<&Features::gateway_api>},
    {"PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER", SetFeature<&Features::gateway_api_deployments>},
    {"PILOT_ENABLE_GATEWAY_API_STATUS", SetFeature<&Features::gateway_api_status>},
    {"PILOT_ENABLE_HEADLESS_SERVICE_POD_LISTENERS", SetFeature<&Features::headless_listeners>},
    {"PILOT_ENABLE_INBOUND_PASSTHROUGH", SetFeature<&Features::inbound_passthrough>},
    {"PILOT_ENABLE_IP_AUTOALLOCATE", SetChange<Change::kAddressesByController>},
    {"PILOT_ENABLE_ISTIO_TAGS", SetFeature<&Features::istio_tags>},
    {"PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES", SetFeature<&Features::services_select_entries>},
    {"PILOT_ENABLE_LEGACY_AUTO_PASSTHROUGH", SetFeature<&Features::legacy_auto_passthrough>},
    {"PILOT_ENABLE_MONGO_FILTER", SetFeature<&Features::mongo_filter>},
    {"PILOT_ENABLE_MYSQL_FILTER", SetFeature<&Features::mysql_filter>},
    {"PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_INBOUND", SetFeature<&Features::sniffs_inbound>},
    {"PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND", SetFeature<&Features::sniffs_outbound>},
    {"PILOT_ENABLE_RDS_CACHE", SetFeature<&Features::rds_cache>},
    {"PILOT_ENABLE_ROUTE_COLLAPSE_OPTIMIZATION", SetFeature<&Features::route_collapse>},
    {"PILOT_ENABLE_SERVICEENTRY_SELECT_PODS", SetFeature<&Features::entries_select_pods>},
    {"PILOT_ENABLE_STATUS", [](const Value& v, Settings* s) { s->options.status = v.flag; }},
    {"PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION",
     [](const Value& v, Settings* s) { s->options.auto_registration = v.flag; }},
    {"PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS",
     [](const Value& v, Settings* s) { s->options.entry_health_checks = v.flag; }},
    {"PILOT_ENABLE_XDS_CACHE", [](const Value& v, Settings* s) { s->options.xds_cache = v.flag; }},
    {"PILOT_ENABLE_XDS_IDENTITY_CHECK", SetFeature<&Features::xds_identity_check>},
    {"PILOT_FILTER_GATEWAY_CLUSTER_CONFIG", SetFeature<&Features::filters_gateway_clusters>},
    {"PILOT_HTTP10", SetFeature<&Features::http10>},
    {"PILOT_INBOUND_PROTOCOL_DETECTION_TIMEOUT", [](const Value& v, Settings* s) { s->options.features.inbound_detection = v.duration; }},
    {"PILOT_MAX_REQUESTS_PER_SECOND",
     [](const Value& v, Settings* s) {
       if (v.number > 0 || !LimitsByProcessors(*s))
         s->options.requests_per_second = static_cast<int>(std::ceil(v.number));
     }},
    {"PILOT_PARTIAL_FULL_PUSHES", SetFeature<&Features::partial_full_pushes>},
    {"PILOT_PUSH_THROTTLE",
     [](const Value& v, Settings* s) {
       if (v.integer > 0 || !LimitsByProcessors(*s)) {
         s->options.push_throttle = static_cast<int>(std::clamp<int64_t>(v.integer, INT_MIN, INT_MAX));
       }
     }},
    {"PILOT_REMOTE_CLUSTER_TIMEOUT",
     [](const Value& v, Settings* s) { s->options.remote_cluster_timeout = v.duration; }},
    {"PILOT_SCOPE_GATEWAY_TO_NAMESPACE", SetFeature<&Features::gateways_by_namespace>},
    {"PILOT_SIDECAR_PICK_BEST_SERVICE_NAMESPACE", SetChange<Change::kBestNamespace>},
    {"PILOT_SIDECAR_USE_REMOTE_ADDRESS", SetFeature<&Features::sidecar_remote_address>},
    {"PILOT_SKIP_VALIDATE_TRUST_DOMAIN", [](const Value& v, Settings* s) { s->options.features.validates_trust_domains = !v.flag; }},
    {"PILOT_SPAWN_UPSTREAM_SPAN_FOR_GATEWAY", SetChange<Change::kGatewaysMakeSpans>},
    {"PILOT_STATUS_UPDATE_INTERVAL",
     [](const Value& v, Settings* s) { s->options.status_update_interval = std::max<Duration>(v.duration, 1ms); }},
    // istiod: pilot/pkg/features/pilot.go, TraceSampling
    {"PILOT_TRACE_SAMPLING",
     [](const Value& v, Settings* s) {
       const bool of_range = v.number >= 0 && v.number <= 100;
       s->options.features.trace_sampling = of_range ? v.number : 1;
       if (!of_range) s->log.push_back(fmt::format("PILOT_TRACE_SAMPLING out of range: {}", v.text));
     }},
    {"PILOT_UNIFIED_SIDECAR_SCOPE", SetChange<Change::kOneScope>},
    {"PILOT_USE_ENDPOINT_SLICE", [](const Value& v, Settings* s) { s->options.endpoints_only = !v.flag; }},
    {"PILOT_WORKLOAD_ENTRY_GRACE_PERIOD", [](const Value& v, Settings* s) { s->options.entry_grace = v.duration; }},
    {"POD_NAMESPACE", [](const Value& v, Settings* s) { s->options.system_namespace = v.text; }},
    {"PREFER_DESTINATIONRULE_TLS_FOR_EXTERNAL_SERVICES", SetChange<Change::kRulesTlsForExternals>},
    {"PRIORITIZED_LEADER_ELECTION", [](const Value& v, Settings* s) { s->options.prioritized_election = v.flag; }},
    {"REQUIRE_3P_TOKEN", [](const Value& v, Settings* s) { s->options.tokens.require_third_party = v.flag; }},
    {"RESOLVE_HOSTNAME_GATEWAYS", [](const Value& v, Settings* s) { s->resolves_gateways = v.flag; }},
    {"REVISION", [](const Value& v, Settings* s) { s->options.revision = v.text; }},
    {"SHARED_MESH_CONFIG", [](const Value& v, Settings* s) { s->options.shared_mesh_config = v.text; }},
    {"SIDECAR_IGNORE_PORT_IN_HOST_MATCH", SetFeature<&Features::ignores_ports>},
    {"SPIFFE_BUNDLE_ENDPOINTS", [](const Value& v, Settings* s) { s->options.spiffe_bundle_endpoints = v.text; }},
    {"TOKEN_AUDIENCES", [](const Value& v, Settings* s) { s->options.tokens.audiences = absl::StrSplit(v.text, ','); }},
    {"TRUSTED_GATEWAY_CIDR", [](const Value& v, Settings* s) { s->options.trusted_gateways = SplitAtCommas(v.text); }},
    {"VALIDATION_WEBHOOK_CONFIG_NAME", [](const Value& v, Settings* s) { s->patches_validation = !v.text.empty(); }},
    {"VERIFY_CERTIFICATE_AT_CLIENT", SetChange<Change::kSystemRootByDefault>},
    {"VERIFY_SDS_CERTIFICATE", SetFeature<&Features::verifies_sds_certificates>},
    {"XDS_AUTH", [](const Value& v, Settings* s) { s->options.xds_auth = v.flag; }},
    {"XDS_AUTH_PLAINTEXT", [](const Value& v, Settings* s) { s->options.xds_auth_plaintext = v.flag; }},
};

constexpr std::array<std::pair<std::string_view, VariableType>, 5> kTypes = {{
    {"text", VariableType::kText},
    {"flag", VariableType::kFlag},
    {"integer", VariableType::kInteger},
    {"number", VariableType::kNumber},
    {"duration", VariableType::kDuration},
}};
constexpr std::array<std::pair<std::string_view, VariableEffect>, 3> kEffects = {{
    {"acts", VariableEffect::kActs},
    {"so-anyway", VariableEffect::kImplied},
    {"none", VariableEffect::kNone},
}};

// What a word of the table names.
template <class Words>
auto Named(const Words& words, std::string_view word) {
  const auto it = std::find_if(words.begin(), words.end(), [&](const auto& entry) { return entry.first == word; });
  WAVETANK_ASSERT(it != words.end(), word);
  return it->second;
}

std::vector<std::string_view> Split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  for (const absl::string_view part : absl::StrSplit(absl::string_view(text.data(), text.size()), at))
    out.emplace_back(part.data(), part.size());
  return out;
}

std::vector<IstiodVariable> ReadTable() {
  std::vector<IstiodVariable> out;
  size_t acting = 0;
  for (const std::string_view line : Split(IstiodVariablesText(), '\n')) {
    if (line.empty() || line.front() == '#') continue;
    const std::vector<std::string_view> cells = Split(line, '\t');
    WAVETANK_ASSERT(cells.size() >= 4 && cells.size() <= 6, line);
    const std::string_view releases = cells.size() == 6 ? cells[5] : std::string_view("..");
    const size_t dots = releases.find("..");
    WAVETANK_ASSERT(dots != releases.npos, line);
    const auto* const setter = std::find_if(std::begin(kSetters), std::end(kSetters),
                                            [&](const Setter& each) { return each.name == cells[0]; });
    out.push_back({cells[0], Named(kTypes, cells[1]), cells[2], Named(kEffects, cells[3]),
                   cells.size() >= 5 ? cells[4] : std::string_view(), releases.substr(0, dots),
                   releases.substr(dots + 2), setter == std::end(kSetters) ? nullptr : setter->apply});
    acting += setter == std::end(kSetters) ? 0 : 1;
  }
  WAVETANK_ASSERT(acting == std::size(kSetters), acting);  // none sets what no row names
  return out;
}

}  // namespace

bool IstiodVariable::KnownIn(std::string_view istio) const {
  return (since.empty() || HoldsIn(istio, since)) && !HoldsIn(istio, until);
}

absl::Span<const IstiodVariable> IstiodVariables() {
  static const auto* const table = new std::vector<IstiodVariable>(ReadTable());
  return *table;
}

std::string_view VariableTypeName(VariableType type) {
  switch (type) {
    case VariableType::kText:
      return "text";
    case VariableType::kFlag:
      return "true or false";
    case VariableType::kInteger:
      return "integer";
    case VariableType::kNumber:
      return "number";
    case VariableType::kDuration:
      return "duration";
  }
  return "text";
}

}  // namespace wavetank::pilot
