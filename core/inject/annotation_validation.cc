#include "core/inject/annotation_validation.h"

#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/ip.h"
#include "core/base/status.h"
#include "core/base/text/parse_bool.h"
#include "core/config/mesh/mesh_config_validation.h"
#include "core/inject/json_access.h"
#include "core/inject/proxy_config.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

using Values = std::vector<std::string>;

bool IsNumber(std::string_view text, uint64_t highest) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number <= highest;
}

bool IsPort(const std::string& text) {
  const std::string trimmed(absl::StripAsciiWhitespace(text));
  return IsNumber(trimmed, 65535);
}

bool ArePorts(const std::string& text) {
  const std::string trimmed(absl::StripAsciiWhitespace(text));
  if (trimmed.empty()) return true;
  for (const std::string& port : Values(absl::StrSplit(trimmed, ','))) {
    if (!IsPort(port)) return false;
  }
  return true;
}

bool ArePrefixes(const std::string& text) {
  if (text.empty()) return true;
  for (const std::string& prefix : Values(absl::StrSplit(text, ','))) {
    if (!IpPrefix::Parse(prefix).ok()) return false;
  }
  return true;
}

// What is wrong with the value; empty if nothing is.
std::string Check(std::string_view name, const std::string& value) {
  if (name == "sidecar.istio.io/interceptionMode") {
    return value == "REDIRECT" || value == "TPROXY" || value == "NONE" ? "" : "use REDIRECT, TPROXY or NONE";
  }
  if (name == "sidecar.istio.io/enableCoreDump" || name == "prometheus.istio.io/merge-metrics") {
    return ParseBool(value) ? "" : "use true or false";
  }
  if (name == "status.sidecar.istio.io/port") return IsPort(value) ? "" : "use a port";
  if (name.starts_with("readiness.status.sidecar.istio.io/")) {
    const std::string_view what = name.substr(name.find('/') + 1);
    if (what != "initialDelaySeconds" && what != "periodSeconds" && what != "failureThreshold") return "";
    return IsNumber(value, UINT32_MAX) ? "" : "use a number from 0 to 4294967295";
  }
  if (name == "traffic.sidecar.istio.io/includeOutboundIPRanges") {
    return value == "*" || ArePrefixes(value) ? "" : "use * or prefixes separated by commas";
  }
  if (name == "traffic.sidecar.istio.io/excludeOutboundIPRanges") {
    return ArePrefixes(value) ? "" : "use prefixes separated by commas";
  }
  if (name == "traffic.sidecar.istio.io/includeInboundPorts") {
    return value == "*" || ArePorts(value) ? "" : "use * or ports separated by commas";
  }
  if (name == "traffic.sidecar.istio.io/excludeInboundPorts" ||
      name == "traffic.sidecar.istio.io/excludeOutboundPorts") {
    return ArePorts(value) ? "" : "use ports separated by commas";
  }
  if (name == kProxyConfigAnnotation) {
    // istiod: pkg/kube/inject/validate.go, validateProxyConfig.
    nlohmann::json said = DefaultProxyConfig();
    absl::Status status = OverlayProxyConfigYaml(said, value, name);
    if (status.ok()) status = config::CheckProxyConfig(said, "ProxyConfig");
    return status.ok() ? "" : std::string(Message(status));
  }
  return "";
}

}  // namespace

absl::Status ValidateInjectionAnnotations(const kube::Labels& annotations) {
  Values wrong;
  for (const auto& [name, value] : annotations) {
    if (const std::string what = Check(name, value); !what.empty()) {
      wrong.push_back(fmt::format("invalid value '{}' for annotation '{}': {}", value, name, what));
    }
  }
  return wrong.empty() ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrJoin(wrong, "; "));
}

}  // namespace wavetank::pilot
