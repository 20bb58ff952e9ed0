// A mesh made of manifests alone, brought to rest and looked at: its Services, what each proxy has for endpoints, and
// who reaches what. What `wavetank apply` prints.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "scenarios/results/result.h"
#include "scenarios/runner/start.h"
#include "scenarios/survey/proxy_endpoints.h"

namespace wavetank::sim {
class World;
}

namespace wavetank::scenario {

struct SurveyCluster {
  std::string name;
  std::vector<std::string> paths;     // files or folders with manifests
  std::string control_plane;          // empty: its own
  std::string ns;                     // of objects that name none; empty: "default"
  bool by_folder = false;             // the name is its folder's: what its istiod calls it comes before it
  std::vector<std::string> set = {};  // see GiveSettings() of installer_files.h
};

struct SurveyOptions {
  std::vector<SurveyCluster> clusters;
  uint64_t seed = 1;
  std::string profile = "istio-1.18";
  bool remote_secrets = true;  // between all clusters, where the manifests bring none, if they are mended
  sim::Mending mending;
  bool unmatched_left_out = false;  // see ManifestSpec
  bool strict = false;              // what a manifest says without effect is an error
  bool calendar = false;            // its clock is the present's, whatever the certificates say
  std::optional<Time> date;         // where the clock begins; else where the manifests' certificates hold
  std::optional<int> requests;      // per client, Service and port; nullopt: 20, fewer where all would be too many
  int64_t too_many = 200000;        // requests of all clients together
  std::function<void(std::string_view)> progress;
};

// What manifests alone make a mesh of: its clusters, networks and remote Secrets follow from what they say.
struct MeshPlan {
  Scenario scenario;  // without steps
  StartPhases start;  // its notes say also what was assumed
};
// InvalidArgument names a manifest, and what is wrong with it or cannot be told from it.
absl::StatusOr<MeshPlan> PlanMesh(const SurveyOptions& options);

struct ServiceRow {
  std::string cluster, ns, name, type, cluster_ip, external, ports;
};
struct ReachabilityRow {
  std::string client_cluster, client;          // "sleep.sample"
  std::string service;                         // "helloworld.sample:5000"
  std::map<std::string, int64_t> answered_by;  // cluster -> requests
  std::map<std::string, int64_t> failed;       // Envoy's flags, or the client's words -> requests
};

// A way of such a row on which every try failed: retries may hide it from the row.
struct DeadWay {
  std::string client_cluster, client, service;
  std::string upstream;  // whose address it is, as in the dead paths of `run`
  std::string cause;     // in words
  std::string reason;    // Envoy's %UPSTREAM_TRANSPORT_FAILURE_REASON%; empty: it names none
  int64_t tries = 0;
  // The handshake failed: the two sides do not believe each other's certificates.
  bool ByTls() const { return reason.starts_with("TLS_error"); }
};

struct Survey {
  std::vector<ServiceRow> services;
  std::vector<ProxyEndpoints> endpoints;
  std::vector<ReachabilityRow> reachability;
  std::vector<DeadWay> dead;         // where others answer, by TLS, or by the network
  std::vector<std::string> notes;    // what was assumed, what does not come up
  std::vector<std::string> mended;   // what was done for the mesh (sim/mending/mending.h)
  std::vector<std::string> unready;  // proxies that are not ready, and why
  std::vector<Nack> nacks;
  std::vector<WithoutEffect> without_effect;
  std::string digest;
};

// A world as it is now.
std::vector<ServiceRow> ListServices(sim::World& world);

// Errors are about the input: a manifest that cannot be read, names that do not exist.
absl::StatusOr<Survey> SurveyMesh(const SurveyOptions& options);

nlohmann::ordered_json SurveyJson(const Survey& survey);

}  // namespace wavetank::scenario
