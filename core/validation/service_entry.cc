#include <set>

#include "absl/strings/match.h"
#include "core/base/json_access.h"
#include "core/profile/changes.h"
#include "core/validation/names.h"
#include "core/validation/rules.h"
#include "fmt/format.h"

namespace wavetank::validation {
namespace {

enum Resolution { kNone, kStatic, kDns, kDnsRoundRobin, kDynamicDns };
constexpr std::string_view kUnixPrefix = "unix://";
constexpr std::string_view kResolutions[] = {"NONE", "STATIC", "DNS", "DNS_ROUND_ROBIN", "DYNAMIC_DNS"};

bool IsFqdnOrIp(const std::string& address) { return IsIp(address) || Fqdn(address).empty(); }

void CheckServicePorts(const json& spec, Problems& out) {
  std::set<std::string> names;
  std::set<int64_t> numbers;
  for (const json& port : Items(Member(spec, "ports"))) {
    const std::string name = MemberText(port, "name"), protocol = MemberText(port, "protocol");
    const int64_t number = MemberNumber(port, "number"), target = MemberNumber(port, "targetPort");
    if (!names.insert(name).second) out.Add(fmt::format("service entry port name {} already defined", Quoted(name)));
    if (!numbers.insert(number).second) out.Add(fmt::format("service entry port {} already defined", number));
    if (target != 0) out.Add(PortNumber(target));
    if (Items(Member(spec, "addresses")).empty() && (protocol.empty() || protocol == "TCP")) {
      out.Warn("addresses are required for ports serving TCP (or unset) protocol");
    }
    out.Add(PortName(name));
    out.Add(ProtocolName(protocol));
    out.Add(PortNumber(number));
  }
}

void CheckEndpointPorts(const json& endpoint, const json& spec, Problems& out) {
  std::set<std::string> known;
  for (const json& port : Items(Member(spec, "ports"))) known.insert(MemberText(port, "name"));
  for (const auto& [name, port] : Mapping(Member(endpoint, "ports")).items()) {
    const int64_t number = MemberNumber({{"port", port}}, "port");
    if (!known.contains(name)) out.Add(fmt::format("endpoint port {} is not defined by the service entry", number));
    out.Add(PortName(name));
    out.Add(PortNumber(number));
  }
}

// Whether the endpoint has an address, or should have one. istiod: validateWorkloadEntry.
bool NeedsAddress(const json& endpoint, Problems& out) {
  const bool may_lack = MemberText(endpoint, "address").empty() && out.Has(pilot::Change::kEntriesWithoutAddress);
  const std::string network = MemberText(endpoint, "network");
  if (!may_lack || network.empty()) return true;
  out.Warn(fmt::format("address is unset with network {}", Quoted(network)));
  return false;
}

void CheckStatic(const json& spec, Problems& out) {
  bool sockets = false;
  for (const json& endpoint : Items(Member(spec, "endpoints"))) {
    const std::string address = MemberText(endpoint, "address");
    if (address.starts_with(kUnixPrefix)) {
      sockets = true;
      out.Add(UnixAddress(address.substr(kUnixPrefix.size())));
      if (!Mapping(Member(endpoint, "ports")).empty()) {
        out.Add(fmt::format("unix endpoint {} must not include ports", address));
      }
    } else {
      const bool newer = address.empty() && out.Has(pilot::Change::kEntriesWithoutAddress);
      if (NeedsAddress(endpoint, out)) out.Add(newer ? "address is required" : Ip(address));
      CheckEndpointPorts(endpoint, spec, out);
    }
    LabelMap(Member(endpoint, "labels"), out);
  }
  if (sockets && Items(Member(spec, "ports")).size() != 1) {
    out.Add("exactly 1 service port required for unix endpoints");
  }
}

void CheckByName(const json& spec, Resolution resolution, Problems& out) {
  const json& endpoints = Items(Member(spec, "endpoints"));
  const json& hosts = Items(Member(spec, "hosts"));
  if (endpoints.empty()) {
    for (const json& host : hosts) {
      if (!Fqdn(TextOf(host)).empty()) {
        out.Add(fmt::format("hosts must be FQDN if no endpoints are provided for resolution mode {}",
                            kResolutions[resolution]));
      }
    }
  }
  if (resolution == kDnsRoundRobin && endpoints.size() > 1) {
    out.Add(fmt::format("there must only be 0 or 1 endpoint for resolution mode {}", kResolutions[resolution]));
  }
  for (const json& endpoint : endpoints) {
    const std::string address = MemberText(endpoint, "address");
    if (!IsFqdnOrIp(address)) {
      out.Add(fmt::format("endpoint address {} is not a valid FQDN or an IP address", Quoted(address)));
    }
    LabelMap(Member(endpoint, "labels"), out);
    CheckEndpointPorts(endpoint, spec, out);
  }
  if (Items(Member(spec, "addresses")).empty() || hosts.size() <= 1) return;
  for (const json& port : Items(Member(spec, "ports"))) {
    if (!pilot::IsTcp(ProtocolOf(MemberText(port, "protocol")))) continue;
    return out.Warn("service entry can not have more than one host specified simultaneously with address and tcp port");
  }
}

// istiod since 1.30: validateServiceEntry, DYNAMIC_DNS.
void CheckDynamic(const json& object, Problems& out) {
  const json& spec = Member(object, "spec");
  if (Items(Member(spec, "hosts")).empty())
    out.Add("at least one wildcard host must be provided for resolution type DYNAMIC_DNS");
  for (const json& host : Items(Member(spec, "hosts"))) {
    if (!TextOf(host).starts_with('*')) out.Add("host must be wildcarded for resolution mode DYNAMIC_DNS");
  }
  if (!Items(Member(spec, "addresses")).empty()) {
    out.Add(
        "addresses cannot be set for resolution type DYNAMIC_DNS. HTTP route domains will only be generatedfrom the "
        "hosts field values");
  }
  if (!Items(Member(spec, "endpoints")).empty()) {
    out.Add(
        "endpoints cannot be set for resolution type DYNAMIC_DNS. Destination IP address determined from hostsfield "
        "values");
  }
  for (const json& port : Items(Member(spec, "ports"))) {
    using pilot::Protocol;
    const Protocol protocol = ProtocolOf(MemberText(port, "protocol"));
    if (protocol == Protocol::kHttp || protocol == Protocol::kTls || protocol == Protocol::kGrpc ||
        protocol == Protocol::kHttp2)
      continue;
    out.Add("only HTTP, TLS, GRPC, and HTTP2 protocols are supported for resolution type DYNAMIC_DNS");
  }
  const std::string waypoint = MemberText(Member(Member(object, "metadata"), "labels"), "istio.io/use-waypoint");
  const bool uses_one = !waypoint.empty() && !absl::EqualsIgnoreCase(waypoint, "none");
  if (uses_one && MemberText(spec, "location") == "MESH_INTERNAL")
    out.Add("location MESH_INTERNAL with resolution type DYNAMIC_DNS is not supported when using waypoints");
}

void CheckProbe(const json& probe, Problems& out) {
  for (const char* field :
       {"periodSeconds", "initialDelaySeconds", "timeoutSeconds", "successThreshold", "failureThreshold"}) {
    if (MemberNumber(probe, field) < 0) out.Add(fmt::format("{} must be non-negative", field));
  }
  // Of a oneof the field that is declared last counts.
  if (const json& exec = Member(probe, "exec"); !exec.is_null()) {
    if (Items(Member(exec, "command")).empty()) out.Add("exec.command is required");
  } else if (const json& tcp = Member(probe, "tcpSocket"); !tcp.is_null()) {
    out.Add(PortNumber(MemberNumber(tcp, "port")));
  } else if (const json& http = Member(probe, "httpGet"); !http.is_null()) {
    out.Add(PortNumber(MemberNumber(http, "port")));
    const std::string scheme = MemberText(http, "scheme");
    if (!scheme.empty() && scheme != "HTTPS" && scheme != "HTTP") {
      out.Add("httpGet.scheme must be one of \"http\", \"https\"");
    }
    for (const json& header : Items(Member(http, "httpHeaders"))) out.Add(HeaderName(MemberText(header, "name")));
  } else {
    out.Add("unknown health check method <nil>");
  }
}

}  // namespace

void CheckServiceEntry(const json& object, Problems& out) {
  const json& spec = At(object, "spec");
  const json& selector = Member(spec, "workloadSelector");
  Selector(selector, "labels", "service entry: ", ", will be applied to all services in namespace", out);
  if (!out.empty()) return;
  const json& hosts = Items(Member(spec, "hosts"));
  if (!selector.is_null() && !Items(Member(spec, "endpoints")).empty()) {
    out.Add("only one of WorkloadSelector or Endpoints is allowed in Service Entry");
  }
  if (hosts.empty()) out.Add("service entry must have at least one host");
  std::vector<std::string_view> words(std::begin(kResolutions), std::end(kResolutions));
  if (!out.Has(pilot::Change::kDynamicDns)) words.pop_back();
  const int resolution = MemberEnum(spec, "resolution", words);
  for (const json& entry : hosts) {
    const std::string host = TextOf(entry);
    out.Add(host == "*" ? "invalid host *" : WildcardDomain(host));
    if (resolution != kDynamicDns) out.Warn(PartialWildcard(host));
  }
  bool blocks = false;
  for (const json& address : Items(Member(spec, "addresses"))) {
    blocks |= TextOf(address).find('/') != std::string::npos;
    out.Add(IpSubnet(TextOf(address)));
  }
  if (blocks && resolution != kNone && resolution != kStatic) {
    out.Add("CIDR addresses are allowed only for NONE/STATIC resolution types");
  }
  CheckServicePorts(spec, out);
  switch (resolution) {
    case kNone:
      if (!Items(Member(spec, "endpoints")).empty()) {
        out.Add("no endpoints should be provided for resolution type none");
      }
      break;
    case kStatic:
      CheckStatic(spec, out);
      break;
    case kDns:
    case kDnsRoundRobin:
      CheckByName(spec, static_cast<Resolution>(resolution), out);
      break;
    case kDynamicDns:
      CheckDynamic(object, out);
      break;
    default:
      out.Add("unsupported resolution type ");
  }
  if (resolution != kNone && hosts.size() > 1) {
    for (const json& port : Items(Member(spec, "ports"))) {
      const pilot::Protocol protocol = ProtocolOf(MemberText(port, "protocol"));
      if (pilot::IsHttp(protocol) || pilot::IsTls(protocol)) continue;
      out.Add("multiple hosts provided with non-HTTP, non-TLS ports");
      break;
    }
  }
  ExportTo(Text(At(object, "metadata"), "namespace"), Member(spec, "exportTo"), Exported::kServiceEntry, out);
}

void CheckWorkloadEntry(const json& object, Problems& out) {
  const json& spec = At(object, "spec");
  const std::string address = MemberText(spec, "address");
  const bool needs = NeedsAddress(spec, out);
  if (address.empty() && needs) {
    return out.Add(out.Has(pilot::Change::kEntriesWithoutAddress) ? "address is required" : "address must be set");
  }
  const json& ports = Mapping(Member(spec, "ports"));
  if (address.starts_with(kUnixPrefix)) {
    out.Add(UnixAddress(address.substr(kUnixPrefix.size())));
    if (!ports.empty()) out.Add(fmt::format("unix endpoint {} must not include ports", address));
  } else if (needs && !IsFqdnOrIp(address)) {
    out.Add(fmt::format("endpoint address {} is not a valid FQDN or an IP address", Quoted(address)));
  }
  LabelMap(Member(spec, "labels"), out);
  for (const auto& [name, port] : ports.items()) {
    out.Add(PortName(name));
    out.Add(PortNumber(MemberNumber({{"port", port}}, "port")));
  }
}

void CheckWorkloadGroup(const json& object, Problems& out) {
  const json& spec = At(object, "spec");
  if (Member(spec, "template").is_null()) return out.Add("template is required");
  Problems labels;
  LabelMap(Member(Member(spec, "metadata"), "labels"), labels);
  if (!labels.empty()) return out.Add("invalid labels: " + labels.Text());
  if (const json& probe = Member(spec, "probe"); !probe.is_null()) CheckProbe(probe, out);
}

}  // namespace wavetank::validation
