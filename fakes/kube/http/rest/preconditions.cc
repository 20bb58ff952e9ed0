#include "fakes/kube/http/rest/preconditions.h"

#include <string>

#include "core/base/json_access.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

// A version that no server of this house gives to an object (kube-apiserver begins at 1, too), and no uid.
constexpr const char* kNever = "1";

struct Facts {
  std::string resource_version, uid;
};

// Takes `in`'s field out if it demands what is so; another becomes kNever. True if it was taken out.
bool Settle(json* in, const char* field, const std::string& fact) {
  if (!in->is_object()) return false;
  const std::string demanded = Text(*in, field);
  if (demanded.empty()) return false;
  if (demanded == fact) return in->erase(field) != 0;
  (*in)[field] = kNever;
  return false;
}

void SettleJsonPatch(json* patch, const Facts& facts) {
  json out = json::array();
  for (json& operation : *patch) {
    const std::string path = operation.is_object() ? Text(operation, "path") : "";
    const std::string* fact = path == "/metadata/resourceVersion" ? &facts.resource_version
                              : path == "/metadata/uid"           ? &facts.uid
                                                                  : nullptr;
    if (fact != nullptr && operation.value("value", json()).is_string()) {
      if (operation["value"] == *fact) continue;
      operation["value"] = kNever;
    }
    out.push_back(std::move(operation));
  }
  *patch = std::move(out);
}

}  // namespace

json WithoutPreconditions(std::string_view method, std::string_view content_type, bool scale,
                          const kube::Object* object, json body) {
  if (object == nullptr || method == "POST") return body;
  const Facts facts = {std::to_string(object->meta.resource_version), object->meta.uid};
  if (method == "PATCH" && body.is_array() && content_type.starts_with("application/json-patch+json")) {
    SettleJsonPatch(&body, facts);
    return body;
  }
  if (!body.is_object()) return body;
  const char* const where = method == "DELETE" ? "preconditions" : "metadata";
  const auto at = body.find(where);
  if (at == body.end()) return body;
  Settle(&*at, "uid", facts.uid);
  const bool held = Settle(&*at, "resourceVersion", facts.resource_version);
  // An update of a custom resource must name a version; this one means any.
  if (held && method == "PUT" && !scale) (*at)["resourceVersion"] = "0";
  return body;
}

}  // namespace wavetank::fakekube::http
