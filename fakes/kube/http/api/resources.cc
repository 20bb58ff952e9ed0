#include "fakes/kube/http/api/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <tuple>
#include <utility>

#include "absl/strings/str_split.h"
#include "core/base/json_access.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

struct Own {
  const char *group, *version, *kind, *plural;
  const char* short_names = "";  // with commas
  const char* subresources = "";
  bool namespaced = true;
  bool all = false;  // in the category `kubectl get all` asks for
  bool review = false;
};

constexpr const char* kApps = "apps";
constexpr const char* kRbac = "rbac.authorization.k8s.io";
constexpr const char* kAuthorization = "authorization.k8s.io";

// kubectl resolves a name that two groups share to the first one listed.
constexpr Own kOwn[] = {
    {"", "v1", "ConfigMap", "configmaps", "cm"},
    {"", "v1", "Endpoints", "endpoints", "ep"},
    {"", "v1", "Event", "events", "ev"},
    {"", "v1", "LimitRange", "limitranges", "limits"},
    {"", "v1", "Namespace", "namespaces", "ns", "finalize,status", false},
    {"", "v1", "Node", "nodes", "no", "proxy,status", false},
    {"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", "status"},
    {"", "v1", "PersistentVolume", "persistentvolumes", "pv", "status", false},
    {"", "v1", "Pod", "pods", "po", "attach,binding,ephemeralcontainers,eviction,exec,log,portforward,proxy,status",
     true, true},
    {"", "v1", "PodTemplate", "podtemplates"},
    {"", "v1", "ReplicationController", "replicationcontrollers", "rc", "scale,status", true, true},
    {"", "v1", "ResourceQuota", "resourcequotas", "quota", "status"},
    {"", "v1", "Secret", "secrets"},
    {"", "v1", "ServiceAccount", "serviceaccounts", "sa", "token"},
    {"", "v1", "Service", "services", "svc", "proxy,status", true, true},
    {"apiregistration.k8s.io", "v1", "APIService", "apiservices", "", "status", false},
    {kApps, "v1", "ControllerRevision", "controllerrevisions"},
    {kApps, "v1", "DaemonSet", "daemonsets", "ds", "status", true, true},
    {kApps, "v1", "Deployment", "deployments", "deploy", "scale,status", true, true},
    {kApps, "v1", "ReplicaSet", "replicasets", "rs", "scale,status", true, true},
    {kApps, "v1", "StatefulSet", "statefulsets", "sts", "scale,status", true, true},
    {"authentication.k8s.io", "v1", "TokenReview", "tokenreviews", "", "", false, false, true},
    {"authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", "", "", false, false, true},
    // What `kubectl auth whoami` asks up to 1.27.
    {"authentication.k8s.io", "v1beta1", "SelfSubjectReview", "selfsubjectreviews", "", "", false, false, true},
    {kAuthorization, "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", "", "", true, false, true},
    {kAuthorization, "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", "", "", false, false, true},
    {kAuthorization, "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", "", "", false, false, true},
    {kAuthorization, "v1", "SubjectAccessReview", "subjectaccessreviews", "", "", false, false, true},
    {"autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", "status", true, true},
    {"autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", "status", true, true},
    {"batch", "v1", "CronJob", "cronjobs", "cj", "status", true, true},
    {"batch", "v1", "Job", "jobs", "", "status", true, true},
    {"certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", "csr", "approval,status",
     false},
    {"events.k8s.io", "v1", "Event", "events", "ev"},
    {"flowcontrol.apiserver.k8s.io", "v1beta3", "FlowSchema", "flowschemas", "", "status", false},
    {"flowcontrol.apiserver.k8s.io", "v1beta3", "PriorityLevelConfiguration", "prioritylevelconfigurations", "",
     "status", false},
    {"networking.k8s.io", "v1", "IngressClass", "ingressclasses", "", "", false},
    {"networking.k8s.io", "v1", "Ingress", "ingresses", "ing", "status"},
    {"networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "netpol", "status"},
    {"node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", "", "", false},
    {"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", "status"},
    {kRbac, "v1", "ClusterRoleBinding", "clusterrolebindings", "", "", false},
    {kRbac, "v1", "ClusterRole", "clusterroles", "", "", false},
    {kRbac, "v1", "RoleBinding", "rolebindings"},
    {kRbac, "v1", "Role", "roles"},
    {"storage.k8s.io", "v1", "CSIDriver", "csidrivers", "", "", false},
    {"storage.k8s.io", "v1", "CSINode", "csinodes", "", "", false},
    {"storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities"},
    {"storage.k8s.io", "v1", "StorageClass", "storageclasses", "sc", "", false},
    {"storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", "", "status", false},
    {"admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "", "",
     false},
    {"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "", "",
     false},
    {"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", "crd,crds", "status",
     false},
    {"scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "pc", "", false},
    {"coordination.k8s.io", "v1", "Lease", "leases"},
    {"discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"},
};

std::vector<std::string> Words(std::string_view text) {
  if (text.empty()) return {};
  return absl::StrSplit(std::string(text), ',');
}

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::vector<std::string> Texts(const json& in, const char* key) {
  std::vector<std::string> out;
  const auto it = in.is_object() ? in.find(key) : in.end();
  if (!in.is_object() || it == in.end() || !it->is_array()) return out;
  for (const json& item : *it) {
    if (item.is_string()) out.push_back(item.get<std::string>());
  }
  return out;
}

// v2 before v1 before v1beta2 before v1beta1 before v1alpha1 before anything else, as Kubernetes sorts versions of a
// definition.
std::tuple<int, int, int> Priority(std::string_view version) {
  const auto number = [](std::string_view* text) {
    int value = -1;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc()) return -1;
    text->remove_prefix(static_cast<size_t>(end - text->data()));
    return value;
  };
  if (version.empty() || version[0] != 'v') return {0, 0, 0};
  version.remove_prefix(1);
  const int major = number(&version);
  if (major < 0) return {0, 0, 0};
  if (version.empty()) return {3, major, 0};
  for (const auto& [word, rank] : {std::pair<std::string_view, int>{"beta", 2}, {"alpha", 1}}) {
    if (!version.starts_with(word)) continue;
    version.remove_prefix(word.size());
    const int minor = number(&version);
    if (minor >= 0 && version.empty()) return {rank, major, minor};
  }
  return {0, 0, 0};
}

}  // namespace

bool Resource::HasSubresource(std::string_view name) const {
  return std::find(subresources.begin(), subresources.end(), name) != subresources.end();
}

ResourceTable::ResourceTable() {
  for (const Own& own : kOwn) {
    Resource resource;
    resource.group = own.group;
    resource.version = own.version;
    resource.kind = own.kind;
    resource.plural = own.plural;
    resource.singular = Lower(own.kind);
    resource.short_names = Words(own.short_names);
    if (own.all) resource.categories = {"all"};
    resource.subresources = Words(own.subresources);
    resource.namespaced = own.namespaced;
    resource.review_only = own.review;
    resource.event_view = resource.group == "events.k8s.io";
    own_.push_back(std::move(resource));
  }
}

void ResourceTable::Define(const kube::Object& definition) {
  std::vector<Resource> resources;
  const auto spec = definition.body.find("spec");
  if (spec == definition.body.end() || !spec->is_object()) return Remove(definition.meta.name);
  const auto names = spec->find("names"), versions = spec->find("versions");
  if (names == spec->end() || versions == spec->end() || !versions->is_array()) return Remove(definition.meta.name);
  Resource common;
  common.custom = true;
  common.group = Text(*spec, "group");
  common.kind = Text(*names, "kind");
  common.plural = Text(*names, "plural");
  common.singular = Text(*names, "singular");
  if (common.singular.empty()) common.singular = Lower(common.kind);
  common.short_names = Texts(*names, "shortNames");
  common.categories = Texts(*names, "categories");
  common.namespaced = Text(*spec, "scope") != "Cluster";
  if (common.group.empty() || common.kind.empty() || common.plural.empty()) return Remove(definition.meta.name);
  for (const json& version : *versions) {
    if (!version.is_object() || version.value("served", json(true)) != json(true)) continue;
    Resource resource = common;
    resource.version = Text(version, "name");
    if (resource.version.empty()) continue;
    resource.printer_columns = version.value("additionalPrinterColumns", json());
    // apiextensions-apiserver: pkg/apiserver/customresource_handler.go.
    if (At(version, "deprecated") == true) {
      resource.deprecation = Text(version, "deprecationWarning",
                                  fmt::format("{}/{} {} is deprecated", common.group, resource.version, common.kind));
    }
    const json& schema = At(At(version, "schema"), "openAPIV3Schema");
    if (schema.is_object() && !schema.empty()) resource.schema = std::make_shared<const json>(schema);
    const auto subresources = version.find("subresources");
    if (subresources != version.end() && subresources->is_object()) {
      for (const char* name : {"scale", "status"}) {
        if (subresources->contains(name)) resource.subresources.emplace_back(name);
      }
    }
    resources.push_back(std::move(resource));
  }
  std::stable_sort(resources.begin(), resources.end(),
                   [](const Resource& a, const Resource& b) { return Priority(a.version) > Priority(b.version); });
  custom_[definition.meta.name] = std::move(resources);
}

void ResourceTable::Remove(std::string_view definition_name) {
  if (const auto it = custom_.find(definition_name); it != custom_.end()) custom_.erase(it);
}

void ResourceTable::ForEach(const std::function<void(const Resource&)>& visit) const {
  for (const Resource& resource : own_) visit(resource);
  for (const auto& [name, resources] : custom_) {
    for (const Resource& resource : resources) visit(resource);
  }
}

const Resource* ResourceTable::Find(std::string_view group, std::string_view version, std::string_view plural) const {
  for (const Resource& resource : own_) {
    if (resource.plural == plural && resource.group == group && resource.version == version) return &resource;
  }
  const auto it = custom_.find(std::string(plural) + "." + std::string(group));
  if (it == custom_.end()) return nullptr;
  for (const Resource& resource : it->second) {
    if (resource.version == version) return &resource;
  }
  return nullptr;
}

const Resource* ResourceTable::FindKind(std::string_view api_version, std::string_view kind) const {
  const Resource* found = nullptr;
  ForEach([&](const Resource& resource) {
    if (found == nullptr && resource.kind == kind && resource.ApiVersion() == api_version) found = &resource;
  });
  return found;
}

std::vector<std::pair<std::string, std::vector<std::string>>> ResourceTable::Groups() const {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  const auto add = [&](const Resource& resource) {
    auto it = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == resource.group; });
    if (it == groups.end()) it = groups.insert(groups.end(), {resource.group, {}});
    if (std::find(it->second.begin(), it->second.end(), resource.version) == it->second.end())
      it->second.push_back(resource.version);
  };
  for (const Resource& resource : own_) add(resource);
  const size_t own = groups.size();
  for (const auto& [name, resources] : custom_) {
    for (const Resource& resource : resources) add(resource);
  }
  std::sort(groups.begin() + static_cast<std::ptrdiff_t>(own), groups.end());
  for (size_t i = own; i < groups.size(); ++i) {
    std::sort(groups[i].second.begin(), groups[i].second.end(),
              [](const std::string& a, const std::string& b) { return Priority(a) > Priority(b); });
  }
  return groups;
}

std::vector<const Resource*> ResourceTable::Of(std::string_view group, std::string_view version) const {
  std::vector<const Resource*> out;
  ForEach([&](const Resource& resource) {
    if (resource.group == group && resource.version == version) out.push_back(&resource);
  });
  return out;
}

}  // namespace wavetank::fakekube::http
