// Secrets by which an istiod reads other clusters, and the Service by which everybody reaches istiod.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/kube/credentials/kubeconfig.h"
#include "core/kube/secret.h"
#include "core/kube/time_format.h"
#include "core/security/remote_secret.h"
#include "fmt/format.h"
#include "sim/world_site.h"

namespace wavetank::check {
namespace {

bool IsLabelled(const kube::Object& secret) {
  const auto it = secret.meta.labels.find(security::kMultiClusterLabel);
  return it != secret.meta.labels.end() && it->second == "true";
}

bool HoldsKubeConfig(const kube::Object& secret) {
  const auto data = kube::ReadSecretData(secret);
  if (!data.ok()) return false;
  return std::any_of(data->begin(), data->end(), [](const auto& entry) {
    return entry.second.find("clusters:") != std::string::npos && entry.second.find("contexts:") != std::string::npos;
  });
}

bool LooksLikeOne(const kube::Object& secret) {
  return IsLabelled(secret) || secret.meta.name.starts_with("istio-remote-secret-") ||
         secret.meta.annotations.contains(security::kClusterAnnotation) || HoldsKubeConfig(secret);
}

template <class Fn>
void EachSecret(const Mesh& mesh, Fn fn) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& secret : mesh.List(*cluster, "Secret")) fn(*cluster, *secret);
  }
}

void NotWatched(const Mesh& mesh, Findings& findings) {
  EachSecret(mesh, [&](const MeshCluster& cluster, const kube::Object& secret) {
    if (!LooksLikeOne(secret) || IsRemoteSecret(cluster, secret)) return;
    const std::string wrong =
        !IsLabelled(secret) ? fmt::format("has no label {}=true", security::kMultiClusterLabel)
                            : fmt::format("is in namespace {} instead of {}", secret.meta.ns, cluster.system_namespace);
    findings.Add(cluster, secret, fmt::format("looks like a remote Secret, but {}: istiod does not read it", wrong));
  });
}

// kind and minikube write kubeconfigs for the machine that they run on; a pod that dials such a server dials itself.
void ServerOfItsOwnMachine(const Mesh& mesh, Findings& findings) {
  EachRemoteServer(mesh, [&](const MeshCluster& cluster, const kube::Object& secret, const std::string& id,
                             const kube::KubeConfig& config) {
    std::string host =
        config.server.substr(config.server.find("://") == std::string::npos ? 0 : config.server.find("://") + 3);
    host = host.substr(0, host.find_first_of(host.starts_with('[') ? "]" : ":/"));
    if (host != "localhost" && host != "0.0.0.0" && host != "[::1" && !host.starts_with("127.")) return;
    findings.Add(
        cluster, secret,
        fmt::format("leads istiod to {} for cluster {}: in its pod that is the pod itself", config.server, id));
  });
}

// `kubectl create token` makes tokens that end; those of istioctl, a ServiceAccount's Secret, do not.
void TokenExpires(const Mesh& mesh, Findings& findings) {
  EachRemoteServer(mesh, [&](const MeshCluster& cluster, const kube::Object& secret, const std::string& id,
                             const kube::KubeConfig& config) {
    const std::vector<std::string> parts = absl::StrSplit(config.token, '.');
    std::string claims;
    if (parts.size() != 3 || !absl::WebSafeBase64Unescape(parts[1], &claims)) return;
    const nlohmann::json said = ParseJson(claims);
    const int64_t begins = Number(said, "iat"), ends = Number(said, "exp");
    if (ends <= 0 || ends == begins) return;  // the simulation's own tokens without an end
    findings.Add(cluster, secret,
                 fmt::format("the token for cluster {} {} at {}: istiod is then refused there, and keeps what it knew",
                             id, ends <= findings.unix_now() ? "has ended" : "ends", kube::FormatRfc3339(ends)));
  });
}

// What another name does. istiod: proxies' tokens are reviewed where their own CLUSTER_ID says
// (security/pkg/server/ca/authenticate/kubeauth/kube_jwt.go); endpoints have the name of their registry.
std::string DoneByAnotherName(const MeshCluster& reader, const MeshCluster* led) {
  if (led == nullptr) return "no server of the mesh is behind it";
  if (led->control_plane == reader.name && led != &reader) {
    return fmt::format("it leads to {}, whose proxies say their own CLUSTER_ID: this istiod refuses their tokens",
                       led->name);
  }
  return fmt::format(
      "it leads to {}, whose proxies say {}: requests are balanced over it all the same, but subsets by "
      "topology.istio.io/cluster, clusterLocal and metrics know two clusters",
      led->name, led->name);
}

// What the cluster's istiods say of it.
void EachClusterId(const Mesh& mesh, const MeshCluster& cluster,
                   const std::function<void(const kube::Object& deployment, const std::string& id)>& take) {
  for (const kube::ObjectRef& deployment : mesh.List(cluster, "Deployment")) {
    if (deployment->meta.ns != cluster.system_namespace) continue;
    for (const auto& container : Items(At(deployment->body, {"spec", "template", "spec", "containers"}))) {
      for (const auto& variable : Items(At(container, "env"))) {
        const std::string id = Text(variable, "value");
        if (Text(variable, "name") == "CLUSTER_ID" && !id.empty()) take(*deployment, id);
      }
    }
  }
}

// The cluster whose istiod has that ID; "": none.
std::string CalledByItsIstiod(const Mesh& mesh, const std::string& id) {
  std::string out;
  for (const auto& cluster : mesh.clusters()) {
    EachClusterId(mesh, *cluster, [&](const kube::Object&, const std::string& own) {
      if (own == id) out = cluster->name;
    });
  }
  return out;
}

void IdMismatch(const Mesh& mesh, Findings& findings) {
  std::map<std::string, std::pair<std::string, std::string>> servers;  // a name for it, and which Secret says so
  std::set<std::string> known;                                         // clusters, by the names in Secrets
  std::map<std::string, std::string> by_id;                            // clusters that istiods named so far
  EachSecret(mesh, [&](const MeshCluster& cluster, const kube::Object& secret) {
    if (!IsRemoteSecret(cluster, secret)) return;
    const auto data = kube::ReadSecretData(secret);
    if (!data.ok()) return;
    for (const auto& [id, text] : *data) {
      const auto config = kube::ParseKubeConfig(text, "kubeconfig");
      const MeshCluster* const led = config.ok() ? LeadsTo(mesh, *config) : nullptr;
      known.insert(id);
      // Of servers that are nobody's in this world the name decides which cluster stands for them: two names of one
      // server are the mistake of a wrong --context.
      if (config.ok() && led == nullptr) {
        const auto [it, first] = servers.try_emplace(config->server, id, cluster.name + "'s " + secret.meta.name);
        if (!first && it->second.first != id) {
          findings.Add(cluster, secret,
                       fmt::format("names its cluster {}, and leads to {}, which {} names {}", id, config->server,
                                   it->second.second, it->second.first));
          findings.Explain(
              "one of both istiods reads the wrong cluster, maybe its own, and takes its pods for the other's",
              "create each with the context of the cluster that it names: `istioctl create-remote-secret "
              "--context=CLUSTER --name=CLUSTER_ID`");
        }
      }
      if (mesh.Find(id) == nullptr) {
        findings.Add(cluster, secret,
                     fmt::format("names its cluster {}, and no cluster of the mesh has that ID: {}", id,
                                 DoneByAnotherName(cluster, led)));
        if (const std::string called = CalledByItsIstiod(mesh, id); !called.empty()) {
          findings.Explain(
              fmt::format("the istiod of {} has that CLUSTER_ID, and the cluster another name here", called),
              fmt::format("give {} here the name that its CLUSTER_ID says, {}", called, id));
        }
      } else if (led != nullptr && led->name != id) {
        findings.Add(cluster, secret,
                     fmt::format("names its cluster {}, and leads to the API server of {}", id, led->name));
      }
    }
  });
  for (const auto& cluster : mesh.clusters()) {
    EachClusterId(mesh, *cluster, [&](const kube::Object& deployment, const std::string& id) {
      const auto [same, first] = by_id.try_emplace(id, cluster->name);
      if (id != cluster->name && known.contains(cluster->name)) {
        findings.Add(
            *cluster, deployment,
            fmt::format("istiod runs with CLUSTER_ID {}, and other clusters know this one as {}", id, cluster->name));
      } else if (!first && same->second != cluster->name) {
        findings.Add(*cluster, deployment,
                     fmt::format("istiod runs with CLUSTER_ID {}, as that of {} does", id, same->second));
        findings.Explain("endpoints, tokens and Secrets know a cluster by its ID",
                         "give each cluster an ID of its own: global.multiCluster.clusterName");
      }
    });
  }
}

void Unreadable(const Mesh& mesh, Findings& findings) {
  EachSecret(mesh, [&](const MeshCluster& cluster, const kube::Object& secret) {
    if (!IsRemoteSecret(cluster, secret)) return;
    const auto add = [&](std::string message) {
      findings.Add(cluster, secret, std::move(message));
      if (Has(cluster, pilot::Change::kGracefulSecretUpdate))
        findings.Explain("istiod reads that cluster as it did before, and one that starts does not read it", {});
    };
    const auto data = kube::ReadSecretData(secret);
    if (!data.ok() || data->empty())
      return add(data.ok() ? "holds no kubeconfig" : std::string(Message(data.status())));
    for (const auto& [id, text] : *data) {
      const auto config = kube::ParseKubeConfig(text, fmt::format("kubeconfig of {}", id));
      if (!config.ok()) add(std::string(Message(config.status())));
    }
  });
}

void SameClusterTwice(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    std::vector<kube::ObjectRef> secrets = mesh.List(*cluster, "Secret", cluster->system_namespace);
    // Of two, the one that a person can mend is told: the one with a file.
    std::stable_partition(secrets.begin(), secrets.end(),
                          [&](const auto& secret) { return mesh.Where(cluster->name, *secret).file.empty(); });
    std::map<std::string, std::string> first;
    for (const kube::ObjectRef& secret : secrets) {
      const auto data = kube::ReadSecretData(*secret);
      if (!IsRemoteSecret(*cluster, *secret) || !data.ok()) continue;
      for (const auto& [id, text] : *data) {
        if (id == cluster->name) {
          findings.Add(*cluster, *secret, fmt::format("names its own cluster {}: istiod ignores it", id));
        } else if (const auto [it, added] = first.emplace(id, secret->meta.name); !added) {
          findings.Add(
              *cluster, *secret,
              fmt::format("names cluster {}, as {} does: istiod takes whichever it sees first", id, it->second));
        }
      }
    }
  }
}

// The Secret by which istiods of `cluster` read cluster `id`; of two, the one that a person can mend. Null: none.
kube::ObjectRef SecretFor(const Mesh& mesh, const MeshCluster& cluster, const std::string& id) {
  kube::ObjectRef out;
  for (const kube::ObjectRef& each : mesh.List(cluster, "Secret", cluster.system_namespace)) {
    const auto data = kube::ReadSecretData(*each);
    if (!IsRemoteSecret(cluster, *each) || !data.ok() || !data->contains(id)) continue;
    if (out == nullptr || !mesh.Where(cluster.name, *each).file.empty()) out = each;
  }
  return out;
}

// What client-go says when the API server is not reached, not believed, or does not believe istiod. Rights are WT207's.
void RefusedByCluster(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const sim::UnreadCluster& unread : UnreadBy(mesh, *cluster)) {
      findings.Add(*cluster, SecretFor(mesh, *cluster, unread.cluster),
                   fmt::format("istiod cannot read cluster {}: {}", unread.cluster, unread.why));
      if (unread.why.find("x509") != unread.why.npos) {
        findings.Explain("certificate-authority-data is not that of the API server to which `server` leads",
                         "create it again with the context of that cluster: `istioctl create-remote-secret "
                         "--context=CLUSTER --name=CLUSTER_ID`");
      } else if (unread.why.find("Unauthorized") != unread.why.npos) {
        findings.Explain("the token is of another cluster, has ended, or its ServiceAccount is gone",
                         "create it again, with the token of a Secret of type kubernetes.io/service-account-token");
      }
    }
  }
}

void OneWay(const Mesh& mesh, Findings& findings) {
  std::map<std::string, std::set<std::string>> reads;  // control plane -> clusters
  EachSecret(mesh, [&](const MeshCluster& cluster, const kube::Object& secret) {
    const auto data = kube::ReadSecretData(secret);
    if (!IsRemoteSecret(cluster, secret) || !data.ok()) return;
    for (const auto& [id, text] : *data) {
      const auto config = kube::ParseKubeConfig(text, "kubeconfig");
      const MeshCluster* const led = config.ok() ? LeadsTo(mesh, *config) : nullptr;
      reads[cluster.name].insert(led == nullptr ? id : led->name);
    }
  });
  const auto primaries = std::count_if(mesh.clusters().begin(), mesh.clusters().end(),
                                       [](const auto& each) { return each->primary && each->istiod != nullptr; });
  const bool recorded =
      std::any_of(mesh.clusters().begin(), mesh.clusters().end(), [](const auto& each) { return each->recorded; });
  if (reads.empty() && primaries > 1 && !recorded) {
    findings.Add(
        "", "", {},
        fmt::format("no istiod of these {} primary clusters has a remote Secret: each knows its own cluster alone, "
                    "and no request leaves it",
                    primaries));
    findings.Explain("what looks like one mesh is several that do not know each other",
                     "apply in each primary what `istioctl create-remote-secret` prints for each other cluster");
  }
  for (const auto& a : mesh.clusters()) {
    for (const auto& b : mesh.clusters()) {
      if (!a->primary || !b->primary || a == b || !reads[a->name].contains(b->name) || reads[b->name].contains(a->name))
        continue;
      findings.Add(b->name, "", {},
                   fmt::format("{}'s istiod reads {}, and {}'s has no remote Secret for {}: requests go one way only",
                               a->name, b->name, b->name, a->name));
    }
  }
}

// What proxies, the API server and people call istiod by (istiod: manifests/charts/istio-control/istio-discovery,
// service.yaml; ports of pilot/cmd/pilot-discovery).
void IstiodServiceMisleads(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary) continue;
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Service", cluster->system_namespace)) {
      if (object->meta.name != "istiod") continue;
      const kube::Service& service = kube::ParseService(*object);
      if (!service.has_selector) continue;  // of another cluster's istiod
      const kube::ObjectRef workload = WorkloadFor(mesh, *cluster, cluster->system_namespace, {{"app", "istiod"}});
      if (workload != nullptr && WorkloadFor(mesh, *cluster, cluster->system_namespace, service.selector) == nullptr) {
        findings.Add(*cluster, *object, fmt::format("selects {}, which no istiod has", LabelText(service.selector)));
        findings.Explain({}, "give it the labels of istiod's pods");
        continue;
      }
      for (const auto& [number, target, whose] :
           {std::tuple(15012, 15012, "proxies get no configuration and no certificates"),
            std::tuple(443, 15017, "the API server cannot ask its webhooks: pods are refused")}) {
        const auto port = std::find_if(service.ports.begin(), service.ports.end(),
                                       [n = number](const auto& each) { return each.port == n; });
        if (port == service.ports.end()) {
          findings.Add(*cluster, *object, fmt::format("has no port {}: {}", number, whose));
        } else if (port->target_port_name.empty() && port->Target() != target) {
          findings.Add(
              *cluster, *object,
              fmt::format("port {} leads to {}, and istiod listens at {}: {}", number, port->Target(), target, whose));
        } else {
          continue;
        }
        findings.Explain({}, fmt::format("write {{port: {}, targetPort: {}}}", number, target));
      }
    }
  }
}

}  // namespace

const std::vector<Rule>& RemoteSecretRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT211", "IstiodServiceMisleads", Level::kError, "everybody finds istiod by its Service",
       "install the Service as the chart has it", "istio/istio#21233", IstiodServiceMisleads},
      {"WT201", "RemoteSecretNotWatched", Level::kError,
       "istiod watches Secrets with the label istio/multiCluster=true in its own namespace only",
       "apply what `istioctl create-remote-secret` prints, in istiod's namespace", "istio/istio#49780", NotWatched},
      {"WT202", "ClusterIdMismatch", Level::kError, "the name in the Secret and the cluster's own must be one",
       "create it with `istioctl create-remote-secret --name CLUSTER_ID`", "istio/istio#42516, #31464", IdMismatch},
      {"WT209", "RemoteTokenExpires", Level::kWarning, "a token with an end is to be renewed before it, by somebody",
       "use the token of a Secret of type kubernetes.io/service-account-token, as `istioctl create-remote-secret` does",
       "istio/istio#37925, #34210", TokenExpires},
      {"WT206", "RemoteServerIsLoopback", Level::kError, "istiod lists nothing of that cluster",
       "`istioctl create-remote-secret --server https://ADDRESS:6443`, an address that pods reach",
       "istio/istio#31081, #44826", ServerOfItsOwnMachine},
      {"WT210", "RemoteClusterRefuses", Level::kError,
       "istiod lists nothing of that cluster, and has no endpoint of it",
       "let `server` be an address that istiod's pod reaches", "istio/istio#34210", RefusedByCluster},
      {"WT203", "RemoteSecretUnreadable", Level::kError, "istiod stops reading that cluster, and keeps what it knew",
       "create the Secret again", "istio/istio#58047", Unreadable},
      {"WT204", "RemoteSecretTwice", Level::kWarning, "which of them counts depends on the order of arrival",
       "delete one", "istio/istio#36365", SameClusterTwice},
      {"WT205", "OneWayDiscovery", Level::kWarning, "one side balances over both clusters, the other stays at home",
       "give each primary a remote Secret for each other cluster", "istio/istio.io#11272", OneWay},
  };
  return *rules;
}

}  // namespace wavetank::check
