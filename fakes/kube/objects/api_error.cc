#include "fakes/kube/objects/api_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "absl/strings/cord.h"
#include "core/base/json_text.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr const char* kPayload = "kubernetes.io/status";

absl::StatusCode CodeOf(const ApiError& error) {
  switch (error.code) {
    case 400:
    case 422:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 409:
      return error.reason == "AlreadyExists" ? absl::StatusCode::kAlreadyExists : absl::StatusCode::kAborted;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 415:
      return absl::StatusCode::kUnimplemented;
    case 429:
      return absl::StatusCode::kResourceExhausted;
    case 503:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status MakeApiError(ApiError error) {
  absl::Status status(CodeOf(error), error.message);
  json payload = {{"code", error.code}, {"reason", std::move(error.reason)}, {"details", std::move(error.details)}};
  status.SetPayload(kPayload, absl::Cord(JsonText(payload)));
  return status;
}

std::optional<ApiError> ApiErrorOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return std::nullopt;
  json read = ParseJson(std::string(*payload));
  if (!read.is_object()) return std::nullopt;
  return ApiError{read.value("code", 500), read.value("reason", ""), std::string(status.message()),
                  std::move(read["details"])};
}

FieldError RequiredField(std::string field, std::string_view what) {
  return {"FieldValueRequired", std::move(field),
          what.empty() ? std::string("Required value") : fmt::format("Required value: {}", what)};
}
FieldError InvalidField(std::string field, const json& value, std::string_view why) {
  return {"FieldValueInvalid", std::move(field), fmt::format("Invalid value: {}: {}", JsonText(value), why)};
}
FieldError ForbiddenField(std::string field, std::string_view why) {
  return {"FieldValueForbidden", std::move(field), fmt::format("Forbidden: {}", why)};
}
FieldError DuplicateField(std::string field, const json& value) {
  return {"FieldValueDuplicate", std::move(field), fmt::format("Duplicate value: {}", JsonText(value))};
}
FieldError UnsupportedField(std::string field, const json& value, std::vector<std::string> supported) {
  for (std::string& text : supported) text = '"' + text + '"';
  return {"FieldValueNotSupported", std::move(field),
          fmt::format("Unsupported value: {}: supported values: {}", JsonText(value), fmt::join(supported, ", "))};
}
FieldError TooLongField(std::string field, int64_t most_bytes) {
  return {"FieldValueTooLong", std::move(field), fmt::format("Too long: must have at most {} bytes", most_bytes)};
}

absl::Status InvalidObject(const GroupKind& kind, std::string_view name, const std::vector<FieldError>& errors) {
  json causes = json::array();
  std::vector<std::string> texts;
  for (const FieldError& error : errors) {
    causes.push_back({{"reason", error.reason}, {"message", error.message}, {"field", error.field}});
    texts.push_back(fmt::format("{}: {}", error.field, error.message));
  }
  json details = {{"name", name}, {"kind", kind.kind}, {"causes", std::move(causes)}};
  if (!kind.group.empty()) details["group"] = kind.group;
  const std::string qualified =
      kind.group.empty() ? std::string(kind.kind) : fmt::format("{}.{}", kind.kind, kind.group);
  const std::string why = texts.size() == 1 ? texts.front() : fmt::format("[{}]", fmt::join(texts, ", "));
  return MakeApiError({422, "Invalid", fmt::format("{} \"{}\" is invalid: {}", qualified, name, why), details});
}

absl::Status BadRequest(std::string message) { return MakeApiError({400, "BadRequest", std::move(message), nullptr}); }

}  // namespace wavetank::fakekube
