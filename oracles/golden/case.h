// Golden cases: inputs with what istiod 1.18.2 itself made of them (docs/golden-cases.md states the layout).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kube/object.h"
#include "nlohmann/json.hpp"

namespace wavetank::golden {

// A proxy that connects after every step, or stays connected in push runs.
struct ProxySpec {
  std::string name, cluster, network, type, ns, ip, locality, service_account, node, node_cluster;
  kube::Labels labels;
  nlohmann::json metadata;       // laid over what the other fields say
  std::set<std::string> record;  // of "cds", "eds", "lds", "rds", "ecds"
  std::string pod;               // that it calls itself; empty: `name`
  std::string istio_version = "1.18.2";

  // node.id and node.metadata as the proxy sends them.
  std::string NodeId() const;
  nlohmann::json NodeMetadata() const;
};

struct Operation {
  enum class Kind : uint8_t { kApply, kDelete, kMeshConfig, kMeshNetworks, kSettle };
  Kind kind = Kind::kApply;
  std::string cluster;   // an API server
  nlohmann::json value;  // the object, or the ConfigMap key's content
};

struct Step {
  std::string name;
  std::vector<Operation> operations;
};

struct Case {
  std::string name, directory, description, config_cluster;
  std::vector<std::string> tags;
  nlohmann::json mesh_config;  // an object
  std::optional<nlohmann::json> mesh_networks;
  std::map<std::string, std::vector<std::string>> dns;
  std::vector<ProxySpec> proxies;
  std::map<std::string, std::vector<nlohmann::json>> clusters;  // by API server, objects in order of the file
  std::vector<Step> steps;
};

// Reads DIRECTORY/case.yaml and what it names. InvalidArgument and NotFound name file, line or field, and a remedy.
absl::StatusOr<Case> LoadCase(const std::string& directory);

// A case's own directory, or those of all cases directly in `directory` or its folder cases/, sorted. What holds
// recordings alone (expect/) is a case too, whose inputs are elsewhere. NotFound if there is none.
absl::StatusOr<std::vector<std::string>> FindCases(const std::string& directory);

// The folder with the case.yaml of a case: its own; else that of its name in `inputs`; else, with no `inputs`, that of
// its name beside it, without the release: golden/cases/NAME for golden-1.30/cases/NAME. NotFound: none of them is
// there.
absl::StatusOr<std::string> InputsOf(const std::string& case_directory, const std::string& inputs);

// Shell pattern with * and ?; the whole name must match.
bool MatchesGlob(std::string_view pattern, std::string_view name);

// NotFound: the file cannot be read.
absl::StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace wavetank::golden
