#include "serve/agent/tap.h"

#include <fmt/format.h>

#include <google/protobuf/message.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/envoyapi/descriptors.h"
#include "core/envoyapi/json_printer.h"
#include "envoy/service/discovery/v3/discovery.pb.h"
#include "fakes/kube/http/message/status.h"

namespace wavetank::serve {
namespace {

namespace http = fakekube::http;
using Json = nlohmann::ordered_json;
using envoy::service::discovery::v3::DiscoveryResponse;

// encoding/json of the generated structure: snake_case, what is empty left out.
Json GoJson(const DiscoveryResponse& response) {
  Json out = Json::object();
  if (!response.version_info().empty()) out["version_info"] = response.version_info();
  for (const google::protobuf::Any& any : response.resources()) {
    Json resource = Json::object();
    if (!any.type_url().empty()) resource["type_url"] = any.type_url();
    if (!any.value().empty()) resource["value"] = absl::Base64Escape(any.value());
    out["resources"].push_back(std::move(resource));
  }
  if (!response.type_url().empty()) out["type_url"] = response.type_url();
  if (!response.nonce().empty()) out["nonce"] = response.nonce();
  if (response.has_control_plane()) out["control_plane"] = {{"identifier", response.control_plane().identifier()}};
  return out;
}

}  // namespace

TapQuestion ReadTap(const http::Request& request) {
  if (request.path != "/debug" && !request.path.starts_with("/debug/")) return {std::nullopt, http::NoSuchPath()};
  const absl::StatusOr<http::Query> query = http::Query::Parse(request.query);
  if (!query.ok()) return {std::nullopt, http::PlainResponse(400, std::string(Message(query.status())) + "\n")};
  agent::OwnRequest ask;
  ask.type_url = "istio.io" + request.path;
  if (const std::string& name = query->Get("resourceName"); !name.empty()) ask.resource_names = {name};
  return {std::move(ask), {}};
}

std::string TapJson(const DiscoveryResponse& response) {
  for (const google::protobuf::Any& any : response.resources()) {
    const std::string& url = any.type_url();
    if (pilot::NewEnvoyMessage(url.substr(url.rfind('/') + 1)) == nullptr) return JsonText(GoJson(response));
  }
  const std::string bytes = response.SerializeAsString();
  const std::vector<Json> printed =
      pilot::EnvoyJson("type.googleapis.com/envoy.service.discovery.v3.DiscoveryResponse", {bytes});
  Json json = printed.empty() ? Json() : printed.front();
  if (!json.is_object() || json.contains("value")) return JsonText(GoJson(response));
  json.erase("@type");
  return JsonText(json, 2);
}

http::Response TapResponse(const absl::StatusOr<std::string>& json) {
  if (json.ok()) {
    http::Response out;
    out.body = *json;
    return out;
  }
  if (absl::IsDeadlineExceeded(json.status())) return http::PlainResponse(504, "");
  return http::PlainResponse(503, std::string(Message(json.status())) + "\n");
}

}  // namespace wavetank::serve
