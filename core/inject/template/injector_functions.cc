// Functions of istiod's injector (istiod: pkg/kube/inject/template.go, createInjectionFuncmap), of
// all releases up to 1.30: a name that a release does not have is in none of its templates.
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/inject/template/arguments.h"
#include "core/inject/template/go_template.h"
#include "fmt/format.h"

namespace wavetank::pilot::gotemplate {
namespace {

using nlohmann::json;

// The metadata's annotation, or the default as it is printed.
Value Annotation(const Arguments& in) {
  const json& annotations = At(in[0].json, "annotations");
  const auto it = annotations.is_object() ? annotations.find(Print(in[1])) : annotations.end();
  if (annotations.is_object() && it != annotations.end()) return Value::Plain(TextOf(*it));
  // fmt.Sprint of nil.
  return Value::Plain(in[2].absent() ? std::string("<nil>") : Print(in[2]));
}

Value ExcludeInboundPort(const Arguments& in) {
  const std::string port(absl::StripAsciiWhitespace(in[0].absent() ? std::string("<nil>") : Print(in[0])));
  const std::string excluded = Print(in[1]);
  if (port.empty() || port == "0") return Value::Plain(excluded);
  std::vector<std::string> ports;
  for (const std::string& each : std::vector<std::string>(absl::StrSplit(excluded, ','))) {
    if (each == port) return Value::Plain(excluded);
    const std::string trimmed(absl::StripAsciiWhitespace(each));
    if (!trimmed.empty()) ports.push_back(trimmed);
  }
  ports.push_back(port);
  return Value::Plain(absl::StrJoin(ports, ","));
}

Value PortsOf(const Value& containers, bool with_proxy) {
  std::vector<std::string> ports;
  for (const json& container : ListOf(containers)) {
    if (!with_proxy && Text(container, "name") == "istio-proxy") continue;
    for (const json& port : Items(At(container, "ports"))) {
      const std::string protocol = Text(port, "protocol");
      if (protocol != "UDP" && protocol != "SCTP") ports.push_back(fmt::format("{}", Number(port, "containerPort")));
    }
  }
  return Value::Plain(absl::StrJoin(ports, ","));
}

Value AppendMultusNetwork(const Arguments& in) {
  const std::string existing = Print(in[0]), network = Print(in[1]);
  if (existing.empty()) return Value::Plain(network);
  const size_t bracket = existing.rfind(']');
  if (bracket == std::string::npos) {
    for (const std::string& each : std::vector<std::string>(absl::StrSplit(existing, ','))) {
      if (absl::StripAsciiWhitespace(each) == network) return Value::Plain(existing);
    }
    return Value::Plain(existing + ", " + network);
  }
  const json networks = ParseJson(existing);
  if (!networks.is_array()) return Value::Plain(existing);
  for (const json& each : networks) {
    if (Text(each, "name") == network) return Value::Plain(existing);
  }
  return Value::Plain(existing.substr(0, bracket) + fmt::format(R"(, {{"name": "{}"}})", network) +
                      existing.substr(bracket));
}

// Lines after the first.
Value IndentRest(const Arguments& in) {
  const std::string pad(static_cast<size_t>(std::clamp<int64_t>(WholeOf(in[0]), 0, 1000)), ' ');
  return Value::Plain(absl::StrReplaceAll(Print(in[1]), {{"\n", "\n" + pad}}));
}

// Go writes a struct's fields in their order, a map's by name. Of the structs of a pod only its ports are printed so by
// Istio's templates (k8s.io/api: core/v1, ContainerPort).
std::string JsonOrEmpty(const Value& value) {
  if (value.absent() || value.kind == Value::Kind::kZero) return "{}";
  const json whole = WithWholeNumbers(value.json);
  if (value.kind != Value::Kind::kStruct || !whole.contains("containerPort")) return JsonText(whole);
  nlohmann::ordered_json out;
  for (const char* field : {"name", "hostPort", "containerPort", "protocol", "hostIP"}) {
    if (whole.contains(field)) out[field] = whole.at(field);
  }
  return JsonText(out);
}

// Without nulls, and without the maps and lists that hold nothing else.
json OmitNil(const json& in) {
  if (!in.is_structured()) return in;
  json out = in.is_object() ? json::object() : json::array();
  bool left_out = false;
  for (const auto& [key, member] : in.items()) {
    json kept = OmitNil(member);
    left_out |= kept.is_null() || kept != member;
    if (kept.is_null()) continue;
    in.is_object() ? void(out[key] = std::move(kept)) : out.push_back(std::move(kept));
  }
  return left_out && in.is_object() && out.empty() ? json() : out;
}

json Merged(const Arguments& maps) {
  json all = json::object();
  for (const Value& each : maps) {
    if (each.json.is_object()) all.update(each.json);
  }
  return all;
}

void AddMaps(GoTemplate::Functions& out) {
  out["isset"] = Exactly(
      2, [](const Arguments& in) { return Value::Plain(in[0].json.is_object() && in[0].json.contains(Print(in[1]))); });
  out["omit"] = AtLeast(1, [](const Arguments& in) {
    json kept = in[0].json.is_object() ? in[0].json : json::object();
    for (size_t i = 1; i < in.size(); ++i) kept.erase(Print(in[i]));
    return Value{std::move(kept), Value::Kind::kStringMap};
  });
  out["strdict"] = AtLeast(0, [](const Arguments& in) {
    json entries = json::object();
    for (size_t i = 0; i < in.size(); i += 2) entries[Print(in[i])] = i + 1 < in.size() ? Print(in[i + 1]) : "";
    return Value{std::move(entries), Value::Kind::kStringMap};
  });
  out["toJsonMap"] = AtLeast(
      0, [](const Arguments& in) { return Value::Plain(in.empty() ? std::string("null") : JsonText(Merged(in))); });
  out["mergeMaps"] = AtLeast(0, [](const Arguments& in) { return Value{Merged(in), Value::Kind::kStringMap}; });
  out["omitNil"] = Exactly(1, [](const Arguments& in) { return Value::Plain(OmitNil(in[0].json)); });
}

// "1.21", "1.21@sha256:...", "sha256:..." of an image; empty: it says neither.
std::string VersionOfImage(std::string_view image) {
  const size_t at = image.find('@');
  const std::string_view digest = at == image.npos ? std::string_view() : image.substr(at + 1);
  image = image.substr(0, at);
  const size_t slash = image.rfind('/'), colon = image.rfind(':');
  const bool tagged = colon != image.npos && (slash == image.npos || colon > slash);
  const std::string_view tag = tagged ? image.substr(colon + 1) : std::string_view();
  return fmt::format("{}{}{}", tag, tag.empty() || digest.empty() ? "" : "@", digest);
}

// istiod from 1.30 on: of a mesh whose OpenTelemetry provider asks for them; else nothing.
Value OtelResourceAttributes(const Arguments& in) {
  const json& providers = Items(At(in[0].json, "extensionProviders"));
  const bool asked = std::any_of(providers.begin(), providers.end(), [](const json& provider) {
    return Text(At(provider, "opentelemetry"), "serviceAttributeEnrichment") == "OTEL_SEMANTIC_CONVENTIONS";
  });
  if (!asked) return Value::Plain("");
  const json &annotations = in[1].json, &labels = in[2].json, &containers = Items(in[4].json);
  const std::string ns = Print(in[3]);
  std::vector<std::string> out;
  const auto add = [&](std::string_view name, std::string otherwise) {
    const std::string said = Text(annotations, fmt::format("resource.opentelemetry.io/{}", name));
    if (const std::string& value = said.empty() ? otherwise : said; !value.empty())
      out.push_back(fmt::format("{}={}", name, value));
  };
  std::string version = Text(labels, "app.kubernetes.io/version");
  if (version.empty() && containers.size() == 1) version = VersionOfImage(Text(containers[0], "image"));
  add("service.namespace", ns);
  add("service.version", version);
  // The kubelet puts the pod's name in.
  add("service.instance.id",
      containers.empty() ? "" : fmt::format("{}.$(POD_NAME).{}", ns, Text(containers[0], "name")));
  return Value::Plain(absl::StrJoin(out, ","));
}

}  // namespace

GoTemplate::Functions InjectorFunctions() {
  GoTemplate::Functions out;
  AddMaps(out);
  out["annotation"] = Exactly(3, Annotation);
  out["excludeInboundPort"] = Exactly(2, ExcludeInboundPort);
  out["includeInboundPorts"] = Exactly(1, [](const Arguments& in) { return PortsOf(in[0], true); });
  out["applicationPorts"] = Exactly(1, [](const Arguments& in) { return PortsOf(in[0], false); });
  out["kubevirtInterfaces"] = out["excludeInterfaces"] = Exactly(1, [](const Arguments& in) { return in[0]; });
  out["valueOrDefault"] = Exactly(2, [](const Arguments& in) {
    const bool empty = in[0].absent() || in[0].kind == Value::Kind::kZero || in[0].json == "";
    return empty ? in[1] : in[0];
  });
  for (const char* name : {"toJSON", "toJson", "structToJSON"}) {
    out[name] = Exactly(1, [](const Arguments& in) { return Value::Plain(JsonOrEmpty(in[0])); });
  }
  out["fromJSON"] = Exactly(1, [](const Arguments& in) {
    json value = ParseJson(Print(in[0]));
    return value.is_discarded() ? Value::Plain("{}") : Value::Plain(std::move(value));
  });
  out["toYaml"] = Exactly(1, [](const Arguments& in) {
    return Value::Plain(in[0].absent() ? std::string("null\n") : YamlText(in[0].json));
  });
  out["indent"] = Exactly(2, IndentRest);
  out["directory"] = OfTexts(1, [](const std::vector<std::string>& in) {
    const size_t slash = in[0].rfind('/');
    return slash == std::string::npos ? std::string() : in[0].substr(0, slash + 1);
  });
  out["toLower"] = OfTexts(1, [](const std::vector<std::string>& in) { return absl::AsciiStrToLower(in[0]); });
  out["appendMultusNetwork"] = Exactly(2, AppendMultusNetwork);
  // Durations are texts in JSON already.
  out["formatDuration"] = Exactly(1, [](const Arguments& in) { return Value::Plain(Print(in[0])); });
  out["otelResourceAttributes"] = Exactly(5, OtelResourceAttributes);
  return out;
}

}  // namespace wavetank::pilot::gotemplate
