// Kubernetes' Status objects: how an API server says no. Messages are those that kubectl's users know, since kubectl
// prints them as they are: `Error from server (<reason>): <message>`.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "fakes/kube/http/api/resources.h"
#include "fakes/kube/http/message/message.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube::http {

// A failure. `reason` may be empty (kubectl: "Error from server: ...").
nlohmann::json FailureStatus(int code, std::string_view reason, std::string_view message,
                             nlohmann::json details = nullptr);
Response Failure(int code, std::string_view reason, std::string_view message, nlohmann::json details = nullptr);

Response BadRequest(std::string_view message);
Response NotFound(const Resource& resource, std::string_view name);
Response NoSuchPath();
Response AlreadyExists(const Resource& resource, std::string_view name);
Response Conflict(const Resource& resource, std::string_view name, std::string_view why);
// 422. `why` names the field: "spec.ports: Required value".
Response Invalid(const Resource& resource, std::string_view name, std::string_view why);
Response MethodNotAllowed();
Response Unauthorized();
// The answer to what the store refused.
Response FromStore(const absl::Status& status, const Resource& resource, std::string_view name);

Response JsonResponse(int code, const nlohmann::json& body);
// As Go's http.Error types it.
Response PlainResponse(int code, std::string text);

}  // namespace wavetank::fakekube::http
