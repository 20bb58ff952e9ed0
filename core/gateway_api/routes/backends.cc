#include "core/gateway_api/routes/backends.h"

#include <algorithm>
#include <utility>

#include "core/base/json_access.h"
#include "core/gateway_api/routes/http_filters.h"
#include "core/profile/changes.h"
#include "fmt/format.h"

namespace wavetank::gatewayapi {

using nlohmann::json;

bool HasWeight(const json& backends) {
  const json& all = Items(backends);
  return std::any_of(all.begin(), all.end(), [](const json& backend) { return Number(backend, "weight", 1) != 0; });
}

void JoinErrors(std::optional<ConfigError>& to, const std::optional<ConfigError>& more) {
  if (!more) return;
  if (to) {
    to->message += "; " + more->message;
  } else {
    to = more;
  }
}

Destination BuildDestination(const Inputs& in, const Grants* grants, const kube::Object& route, const json& reference) {
  Destination out;
  const GroupKind kind = KindOf(reference, {"", "Service"});
  const std::string name = Text(reference, "name"), own = Text(reference, "namespace");
  const bool by_kind = in.profile.Has(pilot::Change::kGatewayApiGrantsByKind);
  if (grants != nullptr && !own.empty() && own != route.meta.ns &&
      !grants->Allows(by_kind ? route.kind : "HTTPRoute", route.meta.ns, kind, own, name)) {
    out.invalid = {
        "RefNotPermitted",
        fmt::format("backendRef {}/{} not accessible to a {} in namespace \"{}\" (missing a ReferenceGrant?)", name,
                    own, by_kind ? route.kind : "route", route.meta.ns)};
    return out;
  }
  const std::string ns = own.empty() ? route.meta.ns : own;
  std::string host;
  if (kind == GroupKind{"", "Service"} || kind == GroupKind{"multicluster.x-k8s.io", "ServiceImport"}) {
    if (kind.group.empty() && name.find('.') != std::string::npos) {
      out.failed = {
          "InvalidDestination",
          fmt::format("{} invalid; the name of the Service must be used, not the hostname.",
                      in.profile.Has(pilot::Change::kGatewayApiErrorsJoined) ? "service name" : "serviceName")};
      return out;
    }
    // A ServiceImport counts as its Service, which is the mesh's anyway (ENABLE_MCS_HOST is off).
    host = fmt::format("{}.{}.svc.{}", name, ns, in.domain_suffix);
    // Before, a Service of any cluster of the mesh (istiod 1.18: GatewayContext.GetService).
    const bool here = in.profile.Has(pilot::Change::kGatewayApiEveryParentTold) || !in.has_service;
    if (here ? in.Find("Service", ns, name) == nullptr : !in.has_service(host, ns)) {
      out.invalid = {"BackendNotFound", fmt::format("backend({}) not found", host)};
    }
  } else if (kind == GroupKind{"networking.istio.io", "Hostname"}) {
    if (!own.empty()) {
      out.failed = {"InvalidDestination", "namespace may not be set with Hostname type"};
      return out;
    }
    host = name;
    if (!in.has_service || !in.has_service(host, ns)) {
      out.invalid = {"BackendNotFound", fmt::format("backend({}) not found", host)};
    }
  } else {
    out.invalid = {"InvalidKind", fmt::format("referencing unsupported backendRef: group \"{}\" kind \"{}\"",
                                              Text(reference, "group"), Text(reference, "kind"))};
    return out;
  }
  if (!At(reference, "port").is_number_integer()) {
    out.invalid.reset();
    out.failed = {"InvalidDestination", "port is required in backendRef"};
    return out;
  }
  out.value = {{"host", host}, {"port", {{"number", Number(reference, "port")}}}};
  return out;
}

Destinations BuildDestinations(const Inputs& in, const Grants* grants, const kube::Object& route, const json& backends,
                               bool filters) {
  Destinations out;
  std::vector<const json*> weighty;
  for (const json& backend : Items(backends)) {
    if (Number(backend, "weight", 1) != 0) weighty.push_back(&backend);
  }
  for (const json* backend : weighty) {
    Destination to = BuildDestination(in, grants, route, *backend);
    if (to.failed) {
      out.failed = std::move(to.failed);
      return out;
    }
    if (to.invalid) out.invalid = std::move(to.invalid);
    json one = {{"destination", std::move(to.value)}};
    if (weighty.size() > 1) one["weight"] = Number(*backend, "weight", 1);
    if (filters) {
      for (const json& filter : Items(At(*backend, "filters"))) {
        if (auto error = AddHeaderFilter(filter, one)) {
          out.failed = std::move(error);
          return out;
        }
      }
    }
    out.list.push_back(std::move(one));
  }
  return out;
}

}  // namespace wavetank::gatewayapi
