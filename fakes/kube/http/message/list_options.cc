#include "fakes/kube/http/message/list_options.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/objects/api_error.h"

namespace wavetank::fakekube::http {
namespace {

constexpr const char* kMatch = "resourceVersionMatch";
constexpr const char* kInitial = "sendInitialEvents";
constexpr const char* kNotOlderThan = "NotOlderThan";
constexpr const char* kWithContinue = "resourceVersionMatch is forbidden when continue is provided";

std::vector<FieldError> CheckList(const Query& query) {
  std::vector<FieldError> errors;
  if (const std::string& match = query.Get(kMatch); !match.empty()) {
    const std::string& version = query.Get("resourceVersion");
    if (version.empty())
      errors.push_back(ForbiddenField(kMatch, "resourceVersionMatch is forbidden unless resourceVersion is provided"));
    if (!query.Get("continue").empty()) errors.push_back(ForbiddenField(kMatch, kWithContinue));
    if (match != "Exact" && match != kNotOlderThan)
      errors.push_back(UnsupportedField(kMatch, match, {"Exact", kNotOlderThan, ""}));
    if (match == "Exact" && version == "0") {
      errors.push_back(ForbiddenField(kMatch, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
    }
  }
  if (query.Has(kInitial)) errors.push_back(ForbiddenField(kInitial, "sendInitialEvents is forbidden for list"));
  return errors;
}

std::vector<FieldError> CheckWatch(const Query& query) {
  std::vector<FieldError> errors;
  const std::string& match = query.Get(kMatch);
  if (query.Has(kInitial) && match != kNotOlderThan) {
    errors.push_back(ForbiddenField(
        kMatch, fmt::format("sendInitialEvents requires setting resourceVersionMatch to {}", kNotOlderThan)));
  }
  if (match.empty()) return errors;
  if (!query.Has(kInitial)) {
    errors.push_back(
        ForbiddenField(kMatch, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"));
  }
  if (match != kNotOlderThan) errors.push_back(UnsupportedField(kMatch, match, {kNotOlderThan}));
  if (!query.Get("continue").empty()) errors.push_back(ForbiddenField(kMatch, kWithContinue));
  return errors;
}

}  // namespace

std::optional<bool> OptionalFlag(const Query& query, std::string_view name) {
  if (!query.Has(name)) return std::nullopt;
  const std::string& text = query.Get(name);
  return text != "0" && !absl::EqualsIgnoreCase(text, "false");
}

std::optional<Response> CheckListOptions(const Query& query, bool watch) {
  const std::vector<FieldError> errors = watch ? CheckWatch(query) : CheckList(query);
  if (errors.empty()) return std::nullopt;
  return FromStore(InvalidObject({"ListOptions", "meta.k8s.io"}, "", errors), Resource(), "");
}

}  // namespace wavetank::fakekube::http
