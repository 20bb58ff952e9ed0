// What an API serves: Kubernetes' own resources and those that CustomResourceDefinitions add.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/kube/object.h"

namespace wavetank::fakekube::http {

// One resource in one version.
struct Resource {
  std::string group, version, kind;
  std::string plural, singular;
  std::vector<std::string> short_names, categories;
  std::vector<std::string> subresources;         // "status", "scale", "token", ...
  nlohmann::json printer_columns;                // a custom resource's additionalPrinterColumns
  std::shared_ptr<const nlohmann::json> schema;  // a custom resource's openAPIV3Schema; null: it says nothing
  std::string deprecation;                       // what its users are warned of; empty: nothing
  bool namespaced = true;
  bool custom = false;       // of a CustomResourceDefinition
  bool review_only = false;  // answers a POST and keeps nothing
  bool event_view = false;   // Events of the core group under another group's names (event_views.h)

  std::string ApiVersion() const { return group.empty() ? version : group + "/" + version; }
  // "deployments.apps", "services": as messages name it.
  std::string Qualified() const { return group.empty() ? plural : plural + "." + group; }
  // As ApiServer takes it: "Deployment.apps", "Service.".
  std::string StoreKind() const { return kind + "." + (event_view ? "" : group); }
  bool HasSubresource(std::string_view name) const;
};

class ResourceTable {
 public:
  ResourceTable();

  // The versions of a definition that are served; what an older version of it brought goes. A definition that cannot be
  // read brings nothing.
  void Define(const kube::Object& definition);
  void Remove(std::string_view definition_name);

  const Resource* Find(std::string_view group, std::string_view version, std::string_view plural) const;
  const Resource* FindKind(std::string_view api_version, std::string_view kind) const;

  // Groups in the order in which kubectl prefers them: core first, then Kubernetes' own, then the others by name. Each
  // with its versions, the preferred one first.
  std::vector<std::pair<std::string, std::vector<std::string>>> Groups() const;
  std::vector<const Resource*> Of(std::string_view group, std::string_view version) const;
  bool Has(std::string_view group, std::string_view version) const { return !Of(group, version).empty(); }
  // Of every version, Kubernetes' own first.
  void ForEach(const std::function<void(const Resource&)>& visit) const;

 private:
  std::vector<Resource> own_;
  std::map<std::string, std::vector<Resource>, std::less<>> custom_;  // by the definition's name
};

}  // namespace wavetank::fakekube::http
