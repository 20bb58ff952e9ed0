#include "core/istiod/start_lines.h"

#include "core/base/text/go_duration.h"
#include "core/config/mesh/mesh_text.h"
#include "core/istiod/istiod.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::pilot {

void StartLines::Begun() {
  begun_ = host_.Now();
  Say("initializing Istiod admin server");
  Say("starting HTTP service at [::]:8080");
  Say("initializing mesh configuration ./etc/istio/config/mesh");
}

void StartLines::MeshRead(const config::MeshWatcher& mesh) {
  Say("initializing mesh networks from mesh config watcher");
  MeshHandlers(mesh);
}

// istiod: pilot/pkg/bootstrap/server.go, NewServer; pilot/pkg/model/network.go, NewNetworkManager.
void StartLines::MeshHandlers(const config::MeshWatcher& mesh) const {
  if (log_) Say("mesh configuration: " + config::MeshConfigText(*mesh.mesh()));
  Say("initializing mesh handlers");
  Say("reloading network gateways", "model");
}

void StartLines::Controllers(Signer signer, std::string_view discovery_host) const {
  if (signer == Signer::kSelfSigned) Say("Use self-signed certificate as the CA certificate");
  if (signer == Signer::kPlugged) {
    Say("Using istiod file format for signing ca files");
    Say("Use local CA certificate");
  }
  Say("initializing controllers");
  Say("Adding Kubernetes registry adapter");
  Say("done initializing workload trustBundle");
  Say(fmt::format("initializing Istiod DNS certificates host: {}, custom host: {}", discovery_host,
                  fmt::join(options_.custom_hosts, ",")));
  for (const std::string& host : options_.custom_hosts) Say("Adding custom hostname " + host);
  if (signer == Signer::kSelfSigned) Say("No plugged-in cert at etc/cacerts/ca-key.pem; self-signed cert is used");
  if (signer == Signer::kPlugged) Say("Use plugged-in cert at etc/cacerts/ca-key.pem");
  for (const char* what :
       {"initializing secure discovery service", "initializing secure webhook server for istiod webhooks",
        "initializing sidecar injector", "initializing config validator", "initializing registry event handlers",
        "starting discovery service"}) {
    Say(what);
  }
}

void StartLines::Starting() const {
  Say(fmt::format("Starting Istiod Server with primary cluster {}", options_.cluster_id.str()));
}

void StartLines::Started(Signer signer) {
  Say("Starting status manager", "status");
  Say("Starting validation controller");
  Say("Starting ADS server");
  if (signer != Signer::kNone) {
    Say(signer == Signer::kOthers ? "Starting RA" : "Starting IstioD CA");
    Say(options_.tokens.first_party ? "JWT policy is first-party-jwt" : "JWT policy is third-party-jwt");
    Say("Istiod CA has started");
  }
  Say("Waiting for caches to be synced");
  waiting_ = host_.Now();
}

void StartLines::Cluster(std::string_view id, bool config_cluster) const {
  Say(fmt::format("initializing Kubernetes credential reader for cluster {}", id));
  Say(fmt::format("Initializing Kubernetes service registry \"{}\"", id), "kube");
  if (!config_cluster) Say(fmt::format("Creating WorkloadEntry only config store for {}", id), "kube");
}

void StartLines::ShouldLead(std::string_view id, bool leads) const {
  Say(fmt::format("should join leader-election for cluster {}: {}", id, leads), "kube");
}

void StartLines::CachesSynced() const {
  Say(fmt::format("All controller caches have been synced up in {}", GoDurationText((host_.Now() - waiting_).count())));
}

void StartLines::Ready() const {
  Say(fmt::format("All caches have been synced up in {}, marking server ready",
                  GoDurationText((host_.Now() - begun_).count())),
      "ads");
  Say("starting secure gRPC discovery service at [::]:15012");
  Say("starting gRPC discovery service at [::]:15010");
  Say("starting webhook service at [::]:15017");
}

}  // namespace wavetank::pilot
