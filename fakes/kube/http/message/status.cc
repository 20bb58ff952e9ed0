#include "fakes/kube/http/message/status.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "core/base/json_text.h"
#include "fakes/kube/objects/api_error.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

constexpr std::string_view kModified =
    "the object has been modified; please apply your changes to the latest version and try again";

json Details(const Resource& resource, std::string_view name) {
  json details = {{"kind", resource.plural}};
  if (!name.empty()) details["name"] = name;
  if (!resource.group.empty()) details["group"] = resource.group;
  return details;
}

}  // namespace

Response JsonResponse(int code, const json& body) {
  Response response;
  response.code = code;
  response.body = JsonText(body) + "\n";
  return response;
}

json FailureStatus(int code, std::string_view reason, std::string_view message, json details) {
  json status = {{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", json::object()},
                 {"status", "Failure"}, {"message", message}, {"code", code}};
  if (!reason.empty()) status["reason"] = reason;
  if (!details.is_null()) status["details"] = std::move(details);
  return status;
}

Response Failure(int code, std::string_view reason, std::string_view message, json details) {
  return JsonResponse(code, FailureStatus(code, reason, message, std::move(details)));
}

Response BadRequest(std::string_view message) { return Failure(400, "BadRequest", message); }

Response NotFound(const Resource& resource, std::string_view name) {
  return Failure(404, "NotFound", fmt::format("{} \"{}\" not found", resource.Qualified(), name),
                 Details(resource, name));
}

Response NoSuchPath() {
  // From this clients make a message of their own, which names what they asked for.
  Response response = PlainResponse(404, "404 page not found\n");
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  return response;
}

Response PlainResponse(int code, std::string text) {
  Response response;
  response.code = code;
  response.content_type = "text/plain; charset=utf-8";
  response.body = std::move(text);
  return response;
}

Response AlreadyExists(const Resource& resource, std::string_view name) {
  return Failure(409, "AlreadyExists", fmt::format("{} \"{}\" already exists", resource.Qualified(), name),
                 Details(resource, name));
}

Response Conflict(const Resource& resource, std::string_view name, std::string_view why) {
  return Failure(409, "Conflict",
                 fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", resource.Qualified(), name, why),
                 Details(resource, name));
}

Response Invalid(const Resource& resource, std::string_view name, std::string_view why) {
  const std::string kind = resource.group.empty() ? resource.kind : fmt::format("{}.{}", resource.kind, resource.group);
  json details = Details(resource, name);
  details["kind"] = resource.kind;
  return Failure(422, "Invalid", fmt::format("{} \"{}\" is invalid: {}", kind, name, why), std::move(details));
}

Response MethodNotAllowed() {
  return Failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource",
                 json::object());
}

Response Unauthorized() { return Failure(401, "Unauthorized", "Unauthorized"); }

Response FromStore(const absl::Status& status, const Resource& resource, std::string_view name) {
  if (std::optional<ApiError> error = ApiErrorOf(status)) {
    Response response = Failure(error->code, error->reason, error->message, std::move(error->details));
    if (error->code == 429) response.headers.emplace_back("Retry-After", "1");
    return response;
  }
  const std::string message(status.message());
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return NotFound(resource, name);
    case absl::StatusCode::kAlreadyExists:
      return AlreadyExists(resource, name);
    case absl::StatusCode::kAborted:
      return Conflict(resource, name, kModified);
    case absl::StatusCode::kInvalidArgument:
      return Invalid(resource, name, message);
    case absl::StatusCode::kPermissionDenied:
      return Failure(403, "Forbidden", fmt::format("{} \"{}\" is forbidden: {}", resource.Qualified(), name, message),
                     Details(resource, name));
    case absl::StatusCode::kFailedPrecondition:
      return Conflict(resource, name, message);
    case absl::StatusCode::kUnauthenticated:
      return Unauthorized();
    case absl::StatusCode::kOutOfRange:
      return Failure(410, "Expired", message);
    case absl::StatusCode::kUnimplemented:
      return Failure(415, "UnsupportedMediaType", message);
    case absl::StatusCode::kUnavailable:
      return Failure(503, "ServiceUnavailable", message);
    default:
      return Failure(500, "InternalError", fmt::format("Internal error occurred: {}", message));
  }
}

}  // namespace wavetank::fakekube::http
