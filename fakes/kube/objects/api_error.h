// Refusals in Kubernetes' own words: an absl::Status that also carries what a Status object says (code, reason,
// details with causes), so that a transport can answer what kubectl's users know.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/kube/object.h"
#include "fakes/kube/objects/kinds.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

struct ApiError {
  int code = 500;      // HTTP
  std::string reason;  // "Invalid"; may be empty
  std::string message;
  nlohmann::json details;  // null: none
};

// The status' message is the error's; its canonical code follows from the HTTP code (409 is Aborted, or AlreadyExists
// by the reason).
absl::Status MakeApiError(ApiError error);
// nullopt for a status that is no refusal of this kind.
std::optional<ApiError> ApiErrorOf(const absl::Status& status);

// One field that is wrong, as apimachinery's field.Error: "spec.ports[0].port: Invalid value: 0: must be between ...".
struct FieldError {
  std::string reason;   // "FieldValueInvalid", "FieldValueRequired", "FieldValueNotSupported", ...
  std::string field;    // "spec.ports[0].port"
  std::string message;  // "Invalid value: 0: must be between 1 and 65535, inclusive"
};
FieldError RequiredField(std::string field, std::string_view what = {});
// `value` is shown as Go's %q or %v would: text quoted, anything else as JSON.
FieldError InvalidField(std::string field, const nlohmann::json& value, std::string_view why);
FieldError ForbiddenField(std::string field, std::string_view why);
FieldError DuplicateField(std::string field, const nlohmann::json& value);
FieldError UnsupportedField(std::string field, const nlohmann::json& value, std::vector<std::string> supported);
FieldError TooLongField(std::string field, int64_t most_bytes);

// 422: `Service "web" is invalid: spec.ports: Required value`; several errors stand in brackets. Kinds outside of the
// core group read "Deployment.apps". `errors` must not be empty.
absl::Status InvalidObject(const GroupKind& kind, std::string_view name, const std::vector<FieldError>& errors);
absl::Status BadRequest(std::string message);

}  // namespace wavetank::fakekube
