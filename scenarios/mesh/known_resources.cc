#include "scenarios/mesh/known_resources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <set>
#include <string_view>
#include <vector>

#include "core/base/json_access.h"
#include "core/config/schema/istio_definitions.h"
#include "core/kube/object.h"
#include "core/profile/changes.h"
#include "core/profile/profile.h"
#include "fakes/kube/objects/kinds.h"
#include "fakes/kube/services/metal_lb_definitions.h"
#include "scenarios/mesh/field_hints.h"

namespace wavetank::scenario {
namespace {

using fakekube::http::Resource;
using nlohmann::json;

constexpr std::string_view kGatewayApi = "gateway.networking.k8s.io";

struct Kind {
  std::string_view group, kind;
};

// Kinds that exist and that nothing here models. kubernetes: staging/src/k8s.io/api, register.go of each group, up to
// 1.35; gateway-api: apis/*/; istio: what came to its groups after 1.30.
constexpr Kind kOthers[] = {
    {"", "Binding"},
    {"", "ComponentStatus"},
    {"admissionregistration.k8s.io", "MutatingAdmissionPolicy"},
    {"admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"},
    {"admissionregistration.k8s.io", "ValidatingAdmissionPolicy"},
    {"admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"},
    {"authentication.k8s.io", "TokenRequest"},
    {"autoscaling", "Scale"},
    {"certificates.k8s.io", "ClusterTrustBundle"},
    {"certificates.k8s.io", "PodCertificateRequest"},
    {"coordination.k8s.io", "LeaseCandidate"},
    {"extensions.istio.io", "TrafficExtension"},
    {"imagepolicy.k8s.io", "ImageReview"},
    {"install.istio.io", "IstioOperator"},
    {"internal.apiserver.k8s.io", "StorageVersion"},
    {"networking.k8s.io", "ClusterCIDR"},
    {"networking.k8s.io", "IPAddress"},
    {"networking.k8s.io", "ServiceCIDR"},
    {"policy", "Eviction"},
    {"resource.k8s.io", "DeviceClass"},
    {"resource.k8s.io", "DeviceTaintRule"},
    {"resource.k8s.io", "PodSchedulingContext"},
    {"resource.k8s.io", "ResourceClaim"},
    {"resource.k8s.io", "ResourceClaimParameters"},
    {"resource.k8s.io", "ResourceClaimTemplate"},
    {"resource.k8s.io", "ResourceClass"},
    {"resource.k8s.io", "ResourceClassParameters"},
    {"resource.k8s.io", "ResourceSlice"},
    {"scheduling.k8s.io", "PodGroup"},
    {"scheduling.k8s.io", "Workload"},
    {"storage.k8s.io", "VolumeAttributesClass"},
    {"storagemigration.k8s.io", "StorageVersionMigration"},
    {kGatewayApi, "BackendLBPolicy"},
    {kGatewayApi, "BackendTLSPolicy"},
    {kGatewayApi, "GRPCRoute"},
    {kGatewayApi, "Gateway"},
    {kGatewayApi, "GatewayClass"},
    {kGatewayApi, "HTTPRoute"},
    {kGatewayApi, "ListenerSet"},
    {kGatewayApi, "ReferenceGrant"},
    {kGatewayApi, "ReferencePolicy"},
    {kGatewayApi, "TCPRoute"},
    {kGatewayApi, "TLSRoute"},
    {kGatewayApi, "UDPRoute"},
};

// kubernetes: docs/reference/using-api/deprecation-guide: groups and kinds that went, and since when.
struct Removed {
  std::string_view group, kind;  // empty: every kind
  std::string_view what;
};
constexpr Removed kRemoved[] = {
    {"extensions", "", "Kubernetes no longer serves that group, since 1.22"},
    {"policy", "PodSecurityPolicy",
     "Kubernetes no longer serves it, since 1.25; labels pod-security.kubernetes.io/enforce of namespaces took its "
     "place"},
};

const fakekube::http::ResourceTable& KnownResources(bool later) {
  static const auto* const kTables = [] {
    auto* tables = new std::array<fakekube::http::ResourceTable, 2>;
    for (const bool of_today : {false, true}) {
      for (json& definition : of_today ? pilot::IstioDefinitionsWithV1() : pilot::IstioDefinitions()) {
        if (const auto object = kube::Object::FromJson(std::move(definition)); object.ok())
          (*tables)[of_today ? 1 : 0].Define(**object);
      }
      for (json& definition : fakekube::MetalLbDefinitions()) {
        if (const auto object = kube::Object::FromJson(std::move(definition)); object.ok())
          (*tables)[of_today ? 1 : 0].Define(**object);
      }
    }
    return tables;
  }();
  return (*kTables)[later ? 1 : 0];
}

// Every kind of the groups whose kinds are known.
void EachKnown(const auto& visit) {
  KnownResources(true).ForEach([&](const Resource& each) { visit(each.group, each.kind, each.version); });
  for (const Kind& each : kOthers) visit(each.group, each.kind, std::string_view());
}

std::string ApiVersion(std::string_view group, std::string_view version) {
  if (version.empty()) return std::string(group);
  return group.empty() ? std::string(version) : fmt::format("{}/{}", group, version);
}

// What was meant; empty: nothing is near.
std::string Meant(std::string_view group, std::string_view kind) {
  std::set<std::string> elsewhere;  // where the very kind is
  std::vector<std::string_view> of_group, of_all;
  EachKnown([&](std::string_view of, std::string_view name, std::string_view version) {
    if (name == kind) elsewhere.insert(ApiVersion(of, version));
    (of == group ? of_group : of_all).push_back(name);
  });
  if (!elsewhere.empty()) return fmt::format("{} is of {}", kind, fmt::join(elsewhere, " and "));
  const std::string here = NearestHint(kind, of_group);
  return here.empty() ? NearestHint(kind, of_all) : here;
}

}  // namespace

const Resource* ResourceOf(const json& object, bool later) {
  const std::string api_version = Text(object, "apiVersion"), kind = Text(object, "kind");
  if (const Resource* exact = KnownResources(later).FindKind(api_version, kind)) return exact;
  const Resource* found = nullptr;
  KnownResources(later).ForEach([&](const Resource& each) {
    if (each.custom && each.kind == kind && api_version.starts_with(each.group + "/")) found = &each;
  });
  return found;
}

bool OfIstio(const json& object) {
  const Resource* const resource = ResourceOf(object, true);
  return resource != nullptr && resource->custom && resource->group.ends_with(".istio.io");
}

std::string NoMatch(const json& object) {
  const std::string api_version = Text(object, "apiVersion"), kind = Text(object, "kind");
  const std::string_view group = fakekube::GroupOf(api_version);
  const fakekube::GroupKind exact{kind, group};
  const std::string_view version = std::string_view(api_version).substr(group.empty() ? 0 : group.size() + 1);
  if (KnownResources(true).FindKind(api_version, kind) != nullptr ||
      (fakekube::KubernetesOwn(exact) && fakekube::VersionServed(exact, version)))
    return {};
  const auto complaint = [&](std::string_view why) {
    return fmt::format("no matches for kind \"{}\" in version \"{}\"{}{}", kind, api_version, why.empty() ? "" : ": ",
                       why);
  };
  for (const Removed& removed : kRemoved) {
    if (removed.group != group || (!removed.kind.empty() && removed.kind != kind)) continue;
    const std::string meant = removed.kind.empty() ? Meant(group, kind) : "";
    return complaint(fmt::format("{}{}{}", removed.what, meant.empty() ? "" : "; ", meant));
  }
  bool known_group = false, kept = false;
  std::set<std::string> versions;  // in which the kind is served
  EachKnown([&](std::string_view of, std::string_view name, std::string_view in) {
    known_group = known_group || of == group;
    if (of != group || name != kind) return;
    if (in.empty()) kept = true;
    versions.insert(ApiVersion(of, in));
  });
  if (!known_group || kept) return {};
  if (!versions.empty())
    return complaint(fmt::format("{} {} served", fmt::join(versions, " and "), versions.size() == 1 ? "is" : "are"));
  return complaint(Meant(group, kind));
}

std::string NotServedYet(const json& object, const pilot::Profile& profile) {
  // istio: manifests/charts/base/crds, which serve v1 of networking, security and telemetry since 1.22; as serve's do.
  if (profile.Has(pilot::Change::kConfigPathsOfV1)) return {};
  const std::string api_version = Text(object, "apiVersion"), kind = Text(object, "kind");
  const Resource* const resource = KnownResources(true).FindKind(api_version, kind);
  if (resource == nullptr || !resource->custom || KnownResources(false).FindKind(api_version, kind) != nullptr)
    return {};
  std::set<std::string> served;
  KnownResources(false).ForEach([&](const Resource& each) {
    if (each.group == resource->group && each.kind == kind) served.insert(each.ApiVersion());
  });
  return fmt::format("{} came with Istio 1.22; {} serves {}", api_version, profile.istio, fmt::join(served, " and "));
}

}  // namespace wavetank::scenario
