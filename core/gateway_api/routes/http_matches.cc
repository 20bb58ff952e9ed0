#include "core/gateway_api/routes/http_matches.h"

#include <string>
#include <utility>

#include "core/base/json_access.h"
#include "fmt/format.h"

namespace wavetank::gatewayapi {

using nlohmann::json;

namespace {

// Of headers and query parameters, by name; of several the last counts.
json Values(const json& list, const char* what, std::optional<ConfigError>& error) {
  json out = json::object();
  for (const json& one : Items(list)) {
    const std::string type = Text(one, "type", "Exact");
    if (type != "Exact" && type != "RegularExpression") {
      error = {"InvalidConfiguration", fmt::format("unknown type: \"{}\" is not supported {} type", type, what)};
      return out;
    }
    out[Text(one, "name")] = {{type == "Exact" ? "exact" : "regex", Text(one, "value")}};
  }
  return out;
}

json PathOf(const json& path, std::optional<ConfigError>& error) {
  const std::string type = Text(path, "type", "PathPrefix");
  std::string value = Text(path, "value", "/");
  if (type == "Exact") return {{"exact", value}};
  if (type == "RegularExpression") return {{"regex", value}};
  if (type != "PathPrefix") {
    error = {"InvalidConfiguration", fmt::format("unknown type: \"{}\" is not supported Path match type", type)};
    return {};
  }
  // "When specified, a trailing `/` is ignored."
  if (value != "/" && value.ends_with('/')) value.pop_back();
  return {{"prefix", value}};
}

// "/Service/Method".
json MethodOf(const json& method, std::optional<ConfigError>& error) {
  const std::string service = Text(method, "service"), name = Text(method, "method");
  const std::string type = Text(method, "type", "Exact");
  if (service.empty() && name.empty()) {
    error = {"InvalidConfiguration", "gRPC match must have method or service defined"};
    return {};
  }
  if (type != "Exact" && type != "RegularExpression") {
    error = {"InvalidConfiguration", fmt::format("unknown type: \"{}\" is not supported Path match type", type)};
    return {};
  }
  if (service.empty()) return {{"regex", "/[^/]+/" + name}};
  if (type == "Exact") {
    return name.empty() ? json{{"prefix", "/" + service + "/"}} : json{{"exact", "/" + service + "/" + name}};
  }
  return {{"regex", "/" + service + "/" + (name.empty() ? ".+" : name)}};
}

}  // namespace

json HttpMatchOf(const json& match, std::optional<ConfigError>& error) {
  // The API server writes path / where there is none.
  json out = {{"uri", PathOf(At(match, "path"), error)}};
  if (json headers = Values(At(match, "headers"), "HeaderMatch", error); !headers.empty()) {
    out["headers"] = std::move(headers);
  }
  if (json parameters = Values(At(match, "queryParams"), "QueryParams", error); !parameters.empty()) {
    out["queryParams"] = std::move(parameters);
  }
  if (const std::string method = Text(match, "method"); !method.empty()) out["method"] = {{"exact", method}};
  return out;
}

json GrpcMatchOf(const json& match, std::optional<ConfigError>& error) {
  json out = json::object();
  if (const json& method = At(match, "method"); method.is_object()) out["uri"] = MethodOf(method, error);
  if (json headers = Values(At(match, "headers"), "HeaderMatch", error); !headers.empty()) {
    out["headers"] = std::move(headers);
  }
  return out;
}

}  // namespace wavetank::gatewayapi
