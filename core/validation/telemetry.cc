#include "core/base/cel/cel_syntax.h"
#include "core/base/json_access.h"
#include "core/validation/names.h"
#include "core/validation/rules.h"
#include "fmt/format.h"

namespace wavetank::validation {
namespace {

void CheckProviders(const json& in, Problems& out) {
  for (const json& provider : Items(Member(in, "providers"))) {
    if (MemberText(provider, "name").empty()) return out.Add("providers.name may not be empty");
  }
}

void CheckTagOverrides(const json& tags, Problems& out) {
  constexpr int kUpsert = 0, kRemove = 1;
  for (const auto& [name, tag] : Mapping(tags).items()) {
    if (name.empty()) out.Warn("tagOverrides.name may not be empty");
    const int operation = MemberEnum(tag, "operation", {"UPSERT", "REMOVE"});
    const bool value = !MemberText(tag, "value").empty();
    if (operation == kUpsert && !value) out.Add("tagOverrides.value must be set when operation is UPSERT");
    if (operation == kRemove && value) out.Add("tagOverrides.value may only be set when operation is UPSERT");
  }
}

void CheckMetrics(const json& spec, Problems& out) {
  for (const json& metrics : Items(Member(spec, "metrics"))) {
    CheckProviders(metrics, out);
    for (const json& change : Items(Member(metrics, "overrides"))) {
      CheckTagOverrides(Member(change, "tagOverrides"), out);
      // Of a oneof the field that is declared last counts: customMetric.
      const json& custom = Member(Member(change, "match"), "customMetric");
      if (!custom.is_null() && TextOf(custom).empty()) out.Add("customMetric may not be empty");
    }
  }
}

void CheckCustomTag(const std::string& name, const json& tag, Problems& out) {
  if (name.empty()) out.Add("tag name may not be empty");
  if (const json& header = Member(tag, "header"); !header.is_null()) {
    if (MemberText(header, "name").empty()) out.Add("header tag name may not be empty");
  } else if (const json& environment = Member(tag, "environment"); !environment.is_null()) {
    if (MemberText(environment, "name").empty()) out.Add("environment tag name may not be empty");
  } else if (const json& literal = Member(tag, "literal"); !literal.is_null()) {
    if (MemberText(literal, "value").empty()) out.Add("literal tag value may not be empty");
  }
}

void CheckTracing(const json& spec, Problems& out) {
  const json& all = Items(Member(spec, "tracing"));
  if (all.size() > 1) out.Warn("multiple tracing is not currently supported");
  for (const json& tracing : all) {
    if (Items(Member(tracing, "providers")).size() > 1) out.Warn("multiple providers is not currently supported");
    CheckProviders(tracing, out);
    if (const double percent = MemberDouble(tracing, "randomSamplingPercentage"); percent < 0 || percent > 100) {
      out.Add("randomSamplingPercentage must be in range [0.0, 100.0]");
    }
    for (const auto& [name, tag] : Mapping(Member(tracing, "customTags")).items()) CheckCustomTag(name, tag, out);
  }
}

void CheckAccessLogging(const json& spec, Problems& out) {
  for (const json& logging : Items(Member(spec, "accessLogging"))) {
    if (const json& filter = Member(logging, "filter"); filter.is_object()) {
      const std::string error = cel::CelSyntaxError(MemberText(filter, "expression"), cel::CelWords::kGo);
      if (!error.empty()) out.Add("must be a valid CEL expression, " + error);
    }
    CheckProviders(logging, out);
  }
}

void CheckVm(const json& vm, Problems& out) {
  std::vector<std::string> names;
  for (const json& variable : Items(Member(vm, "env"))) {
    std::string name = MemberText(variable, "name");
    if (name.empty()) return out.Add("spec.vmConfig.env invalid");
    if (std::find(names.begin(), names.end(), name) != names.end()) return out.Add("duplicate env");
    names.push_back(std::move(name));
  }
}

void CheckTraffic(const json& selectors, Problems& out) {
  for (size_t i = 0; i < selectors.size(); ++i) {
    const json& ports = Items(Member(selectors[i], "ports"));
    for (size_t j = 0; j < ports.size(); ++j) {
      const int64_t number = MemberNumber(ports[j], "number");
      if (number >= 1 && number <= 65535) continue;
      return out.Add(fmt::format("spec.Match[{}].Ports[{}] is out of range: {}", i, j, number));
    }
  }
}

std::string UrlOfPlugin(const std::string& url) {
  if (url.empty()) return "url field needs to be set";
  const UrlParts parts = ParseUrl(url);
  if (!parts.error.empty()) return "failed to parse url: " + parts.error;
  for (const char* scheme : {"", "file", "http", "https", "oci"}) {
    if (parts.scheme == scheme) return "";
  }
  return "url contains unsupported scheme: " + parts.scheme;
}

std::string DigestOfPlugin(const std::string& digest) {
  if (digest.empty()) return "";
  if (digest.size() != 64) return "sha256 field must be 64 characters long";
  const bool plain = digest.find_first_not_of("0123456789abcdef") == std::string::npos;
  return plain ? "" : "sha256 field must match [a-f0-9]{64} pattern";
}

}  // namespace

void CheckTelemetry(const json& object, Problems& out) {
  const json& spec = At(object, "spec");
  CheckTargets(spec, out);
  Selector(Member(spec, "selector"), "matchLabels", "", "", out);
  CheckMetrics(spec, out);
  CheckTracing(spec, out);
  CheckAccessLogging(spec, out);
}

void CheckProxyConfig(const json& object, Problems& out) {
  const json& spec = At(object, "spec");
  Selector(Member(spec, "selector"), "matchLabels", "", "", out);
  if (MemberNumber(spec, "concurrency") < 0) out.Add("concurrency must be greater than or equal to 0");
}

void CheckWasmPlugin(const json& object, Problems& out) {
  const json& spec = At(object, "spec");
  CheckTargets(spec, out);
  Selector(Member(spec, "selector"), "matchLabels", "", "", out);
  out.Add(UrlOfPlugin(MemberText(spec, "url")));
  out.Add(DigestOfPlugin(MemberText(spec, "sha256")));
  CheckVm(Member(spec, "vmConfig"), out);
  CheckTraffic(Items(Member(spec, "match")), out);
}

}  // namespace wavetank::validation
