#include "core/gateway_api/routes/http_filters.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "core/base/json_access.h"
#include "core/base/text/go_regexp.h"
#include "core/profile/changes.h"
#include "fmt/format.h"

namespace wavetank::gatewayapi {

using nlohmann::json;

namespace {

bool IsHeaderValue(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 0x09 || (byte >= 0x20 && byte != 0x7F);
  });
}

// By name in lower case; of several the first counts.
json HeaderMap(const json& list) {
  json out = json::object();
  for (const json& header : Items(list)) {
    const std::string name = absl::AsciiStrToLower(Text(header, "name"));
    if (!out.contains(name)) out[name] = Text(header, "value");
  }
  return out;
}

// istiod: createCorsFilter.
json OriginOf(const std::string& origin) {
  if (origin == "*") return {{"regex", R"(^[a-zA-Z][a-zA-Z0-9+.-]*://[^/\s?#]+$)"}};
  const auto stars = std::count(origin.begin(), origin.end(), '*');
  if (stars == 0) return {{"exact", origin}};
  if (stars == 1 && origin.ends_with('*')) return {{"prefix", origin.substr(0, origin.size() - 1)}};
  return {{"regex", "^" + absl::StrReplaceAll(QuoteMeta(origin), {{"\\*", ".*"}}) + "$"}};
}

}  // namespace

std::optional<ConfigError> AddHeaderFilter(const json& filter, json& out) {
  const std::string type = Text(filter, "type");
  const bool request = type == "RequestHeaderModifier";
  if (!request && type != "ResponseHeaderModifier") {
    return ConfigError{"InvalidFilter", fmt::format("unsupported filter type \"{}\"", type)};
  }
  const json& modifier = At(filter, request ? "requestHeaderModifier" : "responseHeaderModifier");
  if (!modifier.is_object()) return std::nullopt;
  json operations = json::object();
  for (const char* what : {"set", "add"}) {
    for (const json& header : Items(At(modifier, what))) {
      if (IsHeaderValue(Text(header, "value"))) continue;
      return ConfigError{"InvalidFilter",
                         fmt::format("header \"{}\" value contains invalid characters", Text(header, "name"))};
    }
    if (json map = HeaderMap(At(modifier, what)); !map.empty()) operations[what] = std::move(map);
  }
  if (const json& remove = Items(At(modifier, "remove")); !remove.empty()) operations["remove"] = remove;
  out["headers"][request ? "request" : "response"] = std::move(operations);
  return std::nullopt;
}

json RedirectOf(const json& filter, const pilot::Profile& profile) {
  json out = json::object();
  if (const json& code = At(filter, "statusCode"); code.is_number_integer()) out["redirectCode"] = code;
  if (const std::string host = Text(filter, "hostname"); !host.empty()) out["authority"] = host;
  const bool has_scheme = At(filter, "scheme").is_string();
  if (has_scheme) out["scheme"] = At(filter, "scheme");
  if (const json& port = At(filter, "port"); port.is_number_integer()) {
    out["port"] = port;
  } else {
    // The request's port, unless the scheme is another one (istiod: conversion.go, createRedirectFilter).
    const bool of_scheme = has_scheme && profile.Has(pilot::Change::kGatewayApiRedirectScheme);
    out["derivePort"] = of_scheme ? "FROM_PROTOCOL_DEFAULT" : "FROM_REQUEST_PORT";
  }
  const json& path = At(filter, "path");
  if (Text(path, "type") == "ReplaceFullPath") out["uri"] = Text(path, "replaceFullPath");
  if (Text(path, "type") == "ReplacePrefixMatch") out["uri"] = "%PREFIX()%" + Text(path, "replacePrefixMatch");
  return out;
}

json RewriteOf(const json& filter, const pilot::Profile& profile) {
  json out = json::object();
  const json& path = At(filter, "path");
  if (Text(path, "type") == "ReplacePrefixMatch") {
    std::string uri = Text(path, "replacePrefixMatch");
    if (profile.Has(pilot::Change::kGatewayApiPrefixRemoved)) {
      if (uri.ends_with('/')) uri.pop_back();
      if (uri.empty()) uri = "/";
    }
    if (!uri.empty()) out["uri"] = uri;
  } else if (Text(path, "type") == "ReplaceFullPath") {
    const std::string full = Text(path, "replaceFullPath");
    // As 1.18 writes it; later ones have a field for it, and proxies get the same of both.
    out["uri"] = "%FULLREPLACE()%" + full;
  }
  if (const std::string host = Text(filter, "hostname"); !host.empty()) out["authority"] = host;
  return out.empty() ? json() : out;
}

json CorsOf(const json& filter) {
  json out = {{"unmatchedPreflights", "IGNORE"}};
  json origins = json::array();
  for (const json& origin : Items(At(filter, "allowOrigins"))) {
    if (const std::string text = TextOf(origin); !text.empty()) origins.push_back(OriginOf(text));
  }
  if (!origins.empty()) out["allowOrigins"] = std::move(origins);
  if (At(filter, "allowCredentials") == true) out["allowCredentials"] = true;
  for (const char* list : {"allowMethods", "allowHeaders", "exposeHeaders"}) {
    if (const json& values = Items(At(filter, list)); !values.empty()) out[list] = values;
  }
  if (const int64_t age = Number(filter, "maxAge"); age > 0) out["maxAge"] = fmt::format("{}s", age);
  return out;
}

}  // namespace wavetank::gatewayapi
