// What the mesh cannot read, or has stopped to: API versions, fields, places where nobody looks; and what does not come
// up at all.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "core/base/text/parse_bool.h"
#include "core/profile/published_images.h"
#include "core/profile/releases.h"
#include "core/security/namespace_controller.h"
#include "core/validation/istio_object.h"
#include "fakes/kube/objects/kinds.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "scenarios/mesh/known_resources.h"
#include "scenarios/mesh/unheeded.h"
#include "sim/world_site.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

// What an API server has no match for is not stored; a dump holds what one has stored.
void UnknownVersion(const Mesh& mesh, Findings& findings) {
  for (const BroughtObject& b : mesh.brought()) {
    if (b.dumped) continue;
    if (const std::string complaint = scenario::NoMatch(b.object); !complaint.empty()) {
      findings.Add(b.cluster, NameOf(b), {b.file, b.line}, complaint);
    } else if (const std::string later = scenario::NotServedYet(b.object, mesh.world().profile()); !later.empty()) {
      findings.Add(b.cluster, NameOf(b), {b.file, b.line}, later);
    }
  }
}

// As `kubectl apply` of one file behind the other: what the earlier one says and the later one does not is gone.
void DefinedTwice(const Mesh& mesh, Findings& findings) {
  std::map<std::tuple<std::string, std::string, std::string>, const BroughtObject*> last;  // cluster, group, name
  for (const BroughtObject& b : mesh.brought()) {
    if (b.laid_over || b.dumped) continue;
    const std::string name = NameOf(b);
    const std::string group(fakekube::GroupOf(Text(b.object, "apiVersion")));
    const BroughtObject*& before = last[{b.cluster, group, name}];
    if (const BroughtObject* first = std::exchange(before, &b); first != nullptr && first->object != b.object) {
      findings.Add(b.cluster, name, {first->file, first->line},
                   fmt::format("is defined again at {}:{}, which counts; they differ in {}", b.file, b.line,
                               FirstDifference(first->object, b.object)->path));
    }
  }
}

void Deprecated(const Mesh& mesh, Findings& findings) {
  static const std::set<std::string, std::less<>> gone = {"config.istio.io", "authentication.istio.io",
                                                          "rbac.istio.io"};
  for (const BroughtObject& b : mesh.brought()) {
    const std::string api = Text(b.object, "apiVersion"), kind = Text(b.object, "kind");
    if (!gone.contains(api.substr(0, api.find('/')))) continue;
    findings.Add(b.cluster, NameOf(b), {b.file, b.line},
                 fmt::format("{} {} was removed from Istio: nothing reads it", api, kind));
  }
}

// istiod: pilot/pkg/bootstrap/configcontroller.go, getMeshConfigMapName; pkg/kube/inject/watcher.go: istio and
// istio-sidecar-injector of the default revision, with -REVISION behind them of another.
void MapsOfNoRevision(const Mesh& mesh, const MeshCluster& cluster, Findings& findings) {
  std::set<std::string> revisions, shared;  // shared: a second mesh config, by istiod's SHARED_MESH_CONFIG
  for (const kube::ObjectRef& deployment : mesh.List(cluster, "Deployment.apps", cluster.system_namespace)) {
    if (At(deployment->body, {"spec", "template", "metadata", "labels", "app"}) != "istiod") continue;
    for (const json& container : Items(At(deployment->body, {"spec", "template", "spec", "containers"}))) {
      for (const json& variable : Items(At(container, "env"))) {
        if (Text(variable, "name") == "REVISION") revisions.insert(Text(variable, "value"));
        if (Text(variable, "name") == "SHARED_MESH_CONFIG") shared.insert(Text(variable, "value"));
      }
    }
    revisions.insert(Text(At(deployment->body, {"spec", "template", "metadata", "labels"}), "istio.io/rev"));
  }
  if (revisions.empty()) return;
  for (const BroughtObject& b : mesh.brought()) {
    const json& meta = At(b.object, "metadata");
    const std::string name = Text(meta, "name");
    if (b.cluster != cluster.name || Text(b.object, "kind") != "ConfigMap" ||
        Text(meta, "namespace", cluster.system_namespace) != cluster.system_namespace)
      continue;
    const json& data = At(b.object, "data");
    const bool injector = name.starts_with("istio-sidecar-injector-") && data.contains("config");
    const bool config = !injector && name.starts_with("istio-") && data.contains("mesh");
    if ((!injector && !config) || shared.contains(name)) continue;
    const std::string revision =
        name.substr(injector ? std::string_view("istio-sidecar-injector-").size() : std::string_view("istio-").size());
    if (revisions.contains(revision)) continue;
    findings.Add(b.cluster, NameOf(b), {b.file, b.line},
                 fmt::format("is the {} of revision '{}', which no istiod of {} is",
                             injector ? "injector" : "mesh config", revision, cluster.name));
    findings.Explain(
        "istiod reads the ConfigMaps of its own revision",
        fmt::format("write it into {}, or install that revision", injector ? "istio-sidecar-injector" : "istio"));
  }
}

void NotRead(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) MapsOfNoRevision(mesh, *cluster, findings);
  for (const auto& cluster : mesh.clusters()) {
    if (cluster->primary) continue;
    for (const BroughtObject& b : mesh.brought()) {
      const std::string api = Text(b.object, "apiVersion");
      if (b.cluster != cluster->name || !scenario::OfIstio(b.object)) continue;
      const std::string ns = Text(At(b.object, "metadata"), "namespace"), name = Text(At(b.object, "metadata"), "name");
      // Applied on both sides by habit, as guides do: then nothing is missed.
      const MeshCluster* primary = mesh.Find(cluster->control_plane);
      const std::string kind = Text(b.object, "kind") + "." + api.substr(0, api.find('/'));
      if (primary != nullptr && mesh.Get(*primary, kind, ns, name) != nullptr) continue;
      findings.Add(b.cluster, NameOf(b), {b.file, b.line},
                   fmt::format("stands in {}, and istiod reads configuration in {} alone", cluster->name,
                               cluster->control_plane));
    }
  }
}

// "FILE:LINE: text"; a note without a place stays whole.
std::pair<Place, std::string> SplitNote(const std::string& note) {
  const size_t end = note.find(": ");
  const size_t colon = end == std::string::npos ? std::string::npos : note.rfind(':', end - 1);
  if (colon == std::string::npos || colon == 0) return {{}, note};
  int line = 0;
  const char* last = note.data() + end;
  const auto [parsed, error] = std::from_chars(note.data() + colon + 1, last, line);
  if (error != std::errc() || parsed != last) return {{}, note};
  return {{note.substr(0, colon), line}, note.substr(end + 2)};
}

constexpr std::string_view kUnreadable = "istiod cannot read ";

bool IsRefused(const Mesh& mesh, const BroughtObject& brought) {
  return std::any_of(mesh.refused().begin(), mesh.refused().end(), [&](const RefusedObject& each) {
    return each.cluster == brought.cluster && NameOf(*each.object) == NameOf(brought);
  });
}

void Unread(const Mesh& mesh, Findings& findings) {
  for (const std::string& note : mesh.notes()) {
    auto [place, text] = SplitNote(note);
    // What only this simulation does not know is no fault of the mesh.
    if (place.file.empty() || scenario::IsUnheeded(text)) continue;
    // Read before the profile is known; a newer release reads it.
    if (text.find(" came after Istio 1.18; ") != text.npos && pilot::HoldsIn(mesh.world().profile().istio, "1.19"))
      continue;
    const auto of =
        std::find_if(mesh.brought().begin(), mesh.brought().end(),
                     [&, &at = place](const BroughtObject& b) { return b.file == at.file && b.line == at.line; });
    if (of == mesh.brought().end()) {
      findings.Add("", "", place, text);
    } else if (!text.starts_with(kUnreadable) && text.find(kUnreadable) != text.npos && IsRefused(mesh, *of)) {
      continue;  // its webhook says so (WT534), and the object is not there
    } else {
      findings.Add(of->cluster, NameOf(*of), place, text);
    }
  }
}

// What istiod's webhook takes and warns of, as kubectl shows it. istio: pkg/config/analysis/analyzers/schema.
void Warned(const Mesh& mesh, Findings& findings) {
  constexpr std::string_view kToldElsewhere[] = {
      "not used (", "is not used (duplicate", "addresses are required for ports serving TCP",
      "outlier detection policy must be provided for failover", "filter match has no effect when used with"};
  for (const BroughtObject& b : mesh.brought()) {
    if (Text(b.object, "apiVersion").find(".istio.io/") == std::string::npos) continue;
    const validation::Verdict verdict = validation::Judge(b.object, mesh.world().profile());
    if (!verdict.denied.empty()) continue;
    for (const std::string& warning : verdict.warnings) {
      const bool told = std::any_of(std::begin(kToldElsewhere), std::end(kToldElsewhere),
                                    [&](std::string_view each) { return warning.find(each) != warning.npos; });
      if (told) continue;
      findings.Add(b.cluster, NameOf(b), {b.file, b.line}, "istiod's webhook warns: " + warning);
      findings.Explain("what it warns of is stored, and has not the effect that one reads in it",
                       "mend the field that the words name");
    }
  }
}

void UnreadAndWarned(const Mesh& mesh, Findings& findings) {
  Unread(mesh, findings);
  Warned(mesh, findings);
}

// What would have made the pod of that name; null: nothing has a name that this one begins with.
kube::ObjectRef WorkloadOfPod(const Mesh& mesh, const MeshCluster& cluster, std::string_view pod) {
  kube::ObjectRef out;
  EachWorkload(mesh, [&](const MeshCluster& at, const kube::Object& object, const json&) {
    if (&at != &cluster || !pod.starts_with(object.meta.name + "-")) return;
    if (out == nullptr || out->meta.name.size() < object.meta.name.size())
      out = mesh.Get(at, object.kind, object.meta.ns, object.meta.name);
  });
  return out;
}

// "c1: pod sleep-1 was not stored: ..." at what makes it; false: it is another complaint.
bool NotStored(const Mesh& mesh, const std::string& complaint, Findings& findings) {
  constexpr std::string_view kPod = ": pod ", kWhat = " was not stored: ";
  const size_t pod = complaint.find(kPod), what = complaint.find(kWhat);
  if (pod == complaint.npos || what == complaint.npos || what < pod) return false;
  const MeshCluster* cluster = mesh.Find(std::string_view(complaint).substr(0, pod));
  if (cluster == nullptr) return false;
  const kube::ObjectRef owner =
      WorkloadOfPod(mesh, *cluster, complaint.substr(pod + kPod.size(), what - pod - kPod.size()));
  if (owner == nullptr) return false;
  findings.Add(*cluster, *owner, "its pod is not made: " + complaint.substr(what + kWhat.size()));
  const bool quota = complaint.find(" quota: ") != complaint.npos;
  const bool limits =
      complaint.find(" usage per ") != complaint.npos || complaint.find(" to request ratio ") != complaint.npos;
  findings.Explain(
      fmt::format("an API server stores no pod beyond what its namespace may have; {} tries again and again",
                  owner->kind),
      quota    ? fmt::format("raise spec.hard of the ResourceQuota in {}; a sidecar counts, too", owner->meta.ns)
      : limits ? fmt::format("widen the LimitRange of {}, or ask for less: a sidecar's resources are held "
                             "against it, too",
                             owner->meta.ns)
               : "mend what the message names");
  return true;
}

// The Secret that a complaint names, or what makes the pod of "c1: pod sample/sleep-1 and 2 more: ..." or "c1: istiod
// istiod-1 does not start: ...", if a file brought it; null: another complaint.
std::pair<const MeshCluster*, kube::ObjectRef> ComplainedOf(const Mesh& mesh, const std::string& complaint) {
  const size_t colon = complaint.find(": ");
  const MeshCluster* cluster =
      colon == complaint.npos ? nullptr : mesh.Find(std::string_view(complaint).substr(0, colon));
  if (cluster == nullptr) return {};
  const auto brought = [&](const kube::ObjectRef& object) {
    return object != nullptr && !mesh.Where(cluster->name, *object).file.empty();
  };
  // From there to a blank, a colon or a comma: "ns/name".
  const auto word = [&](size_t at) { return complaint.substr(at, complaint.find_first_of(" :,", at) - at); };
  constexpr std::string_view kSecret = "Secret ";
  if (const size_t at = complaint.find(kSecret); at != complaint.npos) {
    const std::string name = word(at + kSecret.size());
    const size_t slash = name.find('/');
    if (slash != name.npos) {
      kube::ObjectRef secret = mesh.Get(*cluster, "Secret", name.substr(0, slash), name.substr(slash + 1));
      if (brought(secret)) return {cluster, std::move(secret)};
    }
  }
  for (const std::string_view what : {"pod ", "istiod "}) {
    const size_t at = colon + 2;
    if (!std::string_view(complaint).substr(at).starts_with(what)) continue;
    const std::string name = word(at + what.size());
    const size_t slash = name.find('/');
    kube::ObjectRef owner =
        WorkloadOfPod(mesh, *cluster, std::string_view(name).substr(slash == name.npos ? 0 : slash + 1));
    if (brought(owner)) return {cluster, std::move(owner)};
  }
  return {};
}

// ENABLE_CA_SERVER of its istiod's container is false; null: it is not.
kube::ObjectRef WithoutCa(const Mesh& mesh, const MeshCluster& cluster) {
  const kube::ObjectRef deployment = WorkloadFor(mesh, cluster, cluster.system_namespace, {{"app", "istiod"}});
  if (deployment == nullptr) return nullptr;
  for (const json& container : Items(At(deployment->body, {"spec", "template", "spec", "containers"}))) {
    for (const json& variable : Items(At(container, "env"))) {
      if (Text(variable, "name") == "ENABLE_CA_SERVER" && !ParseBool(Text(variable, "value")).value_or(true))
        return deployment;
    }
  }
  return nullptr;
}

// What istio-csr logs, with the value of its chart that decides (istio-csr: pkg/server/auth.go, pkg/certmanager).
void ExplainIstioCsr(const std::string& complaint, Findings& findings) {
  const auto says = [&](std::string_view what) { return complaint.find(what) != complaint.npos; };
  if (says("error running cert-manager-istio-csr")) {
    findings.Explain("istio-csr ends at its start, again and again, and signs nothing",
                     "mend that argument, or the value of its chart that makes it");
  } else if (says("is forbidden: User ")) {
    findings.Explain("istio-csr's ServiceAccount lacks a right that its chart gives it",
                     "bind the ClusterRole and the Roles of its chart to the account that its pod runs as");
  } else if (says("kube client")) {
    findings.Explain("istio-csr reviews tokens of the one cluster that its --cluster-id names, and signs for no other",
                     "give it the CLUSTER_ID of its cluster's pods: app.server.clusterID, as global.multiCluster."
                     "clusterName of istiod");
  } else if (says("failed to match URIs")) {
    findings.Explain("istio-csr takes callers for identities of its own --trust-domain",
                     "give it the mesh's trust domain: app.tls.trustDomain, as meshConfig.trustDomain");
  } else if (says("private-key-secret-name")) {
    findings.Explain("an issuer that is self-signed signs with the requester's own key, and for nobody else",
                     "let it issue a CA Certificate, and an issuer of kind ca sign with its Secret");
  } else if (says("Referenced ")) {
    findings.Explain("cert-manager has no such issuer, or it has no key, and istio-csr waits for it",
                     "create the issuer in --certificate-namespace (app.certmanager.namespace), or mend "
                     "app.certmanager.issuer");
  } else if (says("current mesh roots") || says("tells no CA")) {
    findings.Explain(
        "istio-csr signs under the roots of --root-ca-file, or else of what its issuer says that its CA is",
        "put the issuer's root into that file (app.tls.rootCAFile)");
  } else if (says("istio-csr sends ") || says("serving certificate")) {
    findings.Explain("proxies whose caAddress leads to istio-csr have no certificate", "see the log of its pod");
  }
}

// Why the API server of a cluster that another's istiod serves does not get that one's word: nobody patches its webhook
// (istiod: pkg/kube/namespace and webhook controllers start where ShouldLead), or its Service leads nowhere. Empty:
// nothing is known.
std::pair<std::string, std::string> WhyNotInjectedFromElsewhere(const Mesh& mesh, const MeshCluster& cluster,
                                                                std::string_view complaint) {
  const auto says = [&](std::string_view what) { return complaint.find(what) != complaint.npos; };
  const MeshCluster* const primary = mesh.Find(cluster.control_plane);
  if (!says("failed calling webhook") || primary == nullptr || primary == &cluster || primary->istiod == nullptr)
    return {};
  if (says("its caBundle holds no certificate")) {
    if (!primary->istiod->options().external)
      return {fmt::format("the istiod of {} runs without EXTERNAL_ISTIOD: it leads in no other cluster, and patches no "
                          "webhook there",
                          primary->name),
              fmt::format("install {} with values.pilot.env.EXTERNAL_ISTIOD=true", primary->name)};
    bool reads = false;
    EachRemoteServer(mesh, [&](const MeshCluster& reader, const kube::Object&, const std::string& id,
                               const kube::KubeConfig& config) {
      if (&reader == primary && (id == cluster.name || LeadsTo(mesh, config) == &cluster)) reads = true;
    });
    if (!reads)
      return {fmt::format("no Secret of {} lets its istiod reach the API server of {}, whose webhook it is to patch",
                          primary->name, cluster.name),
              fmt::format("apply to {} what `istioctl x create-remote-secret --context={} --name={}` prints",
                          primary->name, cluster.name, cluster.name)};
    const kube::ObjectRef ns = SystemNamespace(mesh, cluster);
    if (!security::ShouldLead(primary->name, cluster.name, true, ns.get()))
      return {
          fmt::format("namespace {} of {} does not name {} in {}: its istiod leaves the webhook there alone",
                      cluster.system_namespace, cluster.name, primary->name, security::kControlPlaneClustersAnnotation),
          fmt::format("annotate it: {}: {}", security::kControlPlaneClustersAnnotation, primary->name)};
    return {};
  }
  if (!says("/inject/") || (!says("connection refused") && !says("context deadline exceeded"))) return {};
  return {fmt::format("nothing takes port 15017 at the address to which its Service for istiod, of {}, leads",
                      primary->name),
          fmt::format("let remotePilotAddress be the address of a gateway of {}, and expose istiod there, 15012 and "
                      "15017 (samples/multicluster/expose-istiod.yaml)",
                      primary->name)};
}

// Of the finding that was added last: a gateway between networks has no other pod. One cause is one finding.
void TellOfTheGateway(Findings& findings) {
  const std::optional<Finding> gateway = findings.TakeBack("WT109", kNoProxyRuns);
  if (!gateway) return;
  findings.Append(fmt::format("; {}: requests from other networks time out or are refused",
                              std::string_view(gateway->message).substr(kNoProxyRuns.size())));
}

// WT109 has said why nobody injected the gateway's pods, and this is what a kubelet makes of that.
bool IsOfAutoImage(const Findings& findings, const MeshCluster& cluster, const kube::Object& object,
                   std::string_view complaint) {
  return complaint.find("Failed to pull image \"auto\"") != complaint.npos &&
         findings.Has("WT109", cluster.name, NameOf(object));
}

void DoesNotComeUp(const Mesh& mesh, Findings& findings) {
  std::set<std::string, std::less<>> without;  // clusters that no istiod serves
  for (const auto& cluster : mesh.clusters()) {
    if (cluster->istiod != nullptr) continue;
    without.insert(cluster->name);
    const MeshCluster* primary = mesh.Find(cluster->control_plane);
    const MeshCluster& at = primary == nullptr ? *cluster : *primary;
    const kube::ObjectRef deployment = WorkloadFor(mesh, at, at.system_namespace, {{"app", "istiod"}});
    const std::string message =
        fmt::format("no istiod serves {}: what depends on its view was not looked at", cluster->name);
    if (deployment == nullptr) {
      findings.Add(cluster->name, "", {}, message);
      findings.Explain("no pod gets a sidecar, and no proxy a configuration", "install istiod there");
      continue;
    }
    const bool none = NumberOf(At(deployment->body, {"spec", "replicas"}), 1) == 0;
    findings.Add(at, *deployment, none ? "wants 0 replicas: " + message : message);
    findings.Explain("no pod gets a sidecar, and no proxy a configuration",
                     none ? "scale it up" : "see why its pods do not get ready");
  }
  const bool rights = std::any_of(findings.before().begin(), findings.before().end(),
                                  [](const Finding& f) { return f.rule->code == "WT207" || f.rule->code == "WT208"; });
  std::set<std::string> elsewhere;  // told by WT210, at the Secret
  for (const auto& cluster : mesh.clusters()) {
    for (const sim::UnreadCluster& unread : UnreadBy(mesh, *cluster)) elsewhere.insert(unread.Words());
  }
  const std::vector<std::string> complaints = mesh.world().Complaints();
  std::map<std::string, std::string> cause;  // by cluster: what its complaints may follow from
  for (const auto& cluster : mesh.clusters()) {
    const kube::ObjectRef istiod = WithoutCa(mesh, *cluster);
    const bool complains = std::any_of(complaints.begin(), complaints.end(), [&](const std::string& each) {
      return each.starts_with(cluster->name + ": pod ") && each.find("webhook") != each.npos;
    });
    const bool shows = cluster->istiod != nullptr && cluster->istiod->serving_certificate() != nullptr;
    if (istiod == nullptr || !complains || shows) continue;
    cause[cluster->name] = "ENABLE_CA_SERVER of istiod is false";
    findings.Add(*cluster, *istiod,
                 "ENABLE_CA_SERVER is false: istiod has no CA, so it makes itself no certificate, does not listen on "
                 "15017 and leaves its webhook's caBundle empty");
    // istiod: pilot/pkg/bootstrap/server.go, initIstiodCerts and isCADisabled.
    findings.Explain(
        "nobody injects, and proxies of this istiod get no certificate from it",
        "leave ENABLE_CA_SERVER out; or give istiod certificates of another (--tlsCertFile, --tlsKeyFile, "
        "--caCertFile, or Secret istiod-tls as of cert-manager's istio-csr) and the proxies a CA (caAddress)");
  }
  for (const std::string& complaint : complaints) {
    if (elsewhere.contains(complaint)) continue;
    if (NotStored(mesh, complaint, findings)) {
      TellOfTheGateway(findings);
      continue;
    }
    // Of a kubeconfig that is none WT203 tells, at the Secret.
    const bool unreadable = std::any_of(findings.before().begin(), findings.before().end(), [&](const Finding& f) {
      return f.rule->code == "WT203" && complaint.starts_with("remote " + f.object + ":");
    });
    if (unreadable) continue;
    // Of an account that lacks a role WT207 and WT208 tell which.
    if (rights && complaint.find(" is forbidden: User ") != complaint.npos) continue;
    const std::string cluster = complaint.substr(0, complaint.find(':'));
    if (const auto [at, object] = ComplainedOf(mesh, complaint); object != nullptr) {
      if (IsOfAutoImage(findings, *at, *object, complaint)) continue;
      findings.Add(*at, *object, complaint.substr(cluster.size() + 2));
      TellOfTheGateway(findings);
    } else {
      findings.Add("", "", {}, complaint);
    }
    constexpr std::string_view kPull = "Failed to pull image \"";
    if (const size_t at = complaint.find(kPull); at != complaint.npos) {
      const size_t from = at + kPull.size();
      const std::string why = pilot::NeverPublished(complaint.substr(from, complaint.find('"', from) - from));
      if (!why.empty())
        findings.Explain(why,
                         "mend hub and tag where they come from: the pod's template, sidecar.istio.io/proxyImage, "
                         "global.hub and global.tag of the injector's values, or hub and tag of the IstioOperator");
    }
    if (complaint.find("istio-csr") != complaint.npos) {
      ExplainIstioCsr(complaint, findings);
    } else if (const auto why = cause.find(cluster); why != cause.end()) {
      findings.Explain(why->second, "mend that first: this follows from it");
    } else if (const MeshCluster* const of = mesh.Find(cluster); of != nullptr) {
      const auto [cause_there, remedy] = WhyNotInjectedFromElsewhere(mesh, *of, complaint);
      if (!cause_there.empty()) findings.Explain(cause_there, remedy);
    }
    if (without.contains(cluster))
      findings.Explain("no istiod serves " + cluster, "mend that first: this may follow from it");
  }
}

// Of an agent's words that name no cause; empty: they do, or nothing is known.
std::pair<std::string, std::string> CauseOf(const std::string& words, const MeshCluster* primary) {
  const auto says = [&](std::string_view what) { return words.find(what) != words.npos; };
  if (says("first record does not look like a TLS handshake"))
    return {"discoveryAddress or CA_ADDR leads to a port in clear text (istiod's 15010), and the agent speaks TLS",
            "let it end in :15012"};
  if (says("unknown service istio.v1.auth"))
    return {"CA_ADDR (caAddress) leads to port 15010, in clear text, where istiod signs nothing",
            "let it end in :15012"};
  if (says("404 (Not Found)"))
    return {
        "discoveryAddress or CA_ADDR leads to istiod's webhooks (Service port 443, 15017), which are no gRPC server",
        "let it end in :15012"};
  if (says("create certificate: ") && says("x509: certificate is valid for"))
    return {"CA_ADDR (caAddress) names the signer by a host that its certificate does not have",
            "write a host that it has; of istio-csr app.tls.certificateDNSNames (--serving-certificate-dns-names) says "
            "which those are"};
  if (says("no such host"))
    return {"discoveryAddress or CA_ADDR (caAddress) names a host that the pod's DNS does not know",
            "write SERVICE.NAMESPACE.svc:15012 of an istiod, or bring the Service"};
  if (!says("code = Unauthenticated") || primary == nullptr || primary->istiod == nullptr) return {};
  const std::vector<std::string>& audiences = primary->istiod->options().tokens.audiences;
  if (std::find(audiences.begin(), audiences.end(), "istio-ca") == audiences.end())
    return {fmt::format("istiod of {} takes tokens for {} alone (TOKEN_AUDIENCES), and pods' tokens are for istio-ca",
                        primary->name, fmt::join(audiences, ", ")),
            "leave TOKEN_AUDIENCES out, or project tokens for that audience (global.sds.token.aud)"};
  return {};
}

// As its agent's probe says it: it lacks some, or what it has is not in force.
bool WaitsForConfiguration(std::string_view trouble) {
  return trouble.find("from XDS server") != std::string_view::npos ||
         trouble.find("is not live") != std::string_view::npos;
}

// Of an istio-csr of that cluster which complains: its words; empty: there is none.
std::string SenderAway(const std::vector<std::string>& complaints, std::string_view cluster) {
  for (const std::string& each : complaints) {
    const size_t at = each.find("istio-csr");
    if (each.starts_with(fmt::format("{}: pod ", cluster)) && at != each.npos) return each.substr(each.find(": ") + 2);
  }
  return "";
}

// What its agent or Envoy says of each application's or gateway's proxy that waits for something.
void ProxiesNotReady(const Mesh& mesh, Findings& findings) {
  const std::vector<std::string> complaints = mesh.world().Complaints();
  std::map<std::pair<std::string, std::string>, std::pair<kube::ObjectRef, std::vector<std::string>>> by_owner;
  for (const auto& cluster : mesh.clusters()) {
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      if (!pod->bootstrap()) continue;  // that it was not admitted WT700 says
      const std::string trouble = pod->Trouble();
      // Of one that refused what it was sent WT532 tells what it was, of one that waits for files WT548.
      const bool waits = WaitsForConfiguration(trouble);
      const bool told = waits && std::any_of(findings.before().begin(), findings.before().end(), [&](const Finding& f) {
                          return (f.rule->code == "WT532" || f.rule->code == "WT548") && f.cluster == cluster->name;
                        });
      // Nor of one whose istiod's Service leads elsewhere (WT211).
      if (trouble.empty() || told || findings.Has("WT211", cluster->control_plane)) continue;
      const kube::ObjectRef owner = OwnerOf(mesh, *cluster, *pod);
      auto& [object, why] = by_owner[{cluster->name, NameOf(*owner)}];
      object = owner;
      if (std::find(why.begin(), why.end(), trouble) == why.end()) why.push_back(trouble);
    }
  }
  for (const auto& [key, entry] : by_owner) {
    const MeshCluster& cluster = *mesh.Find(key.first);
    findings.Add(cluster, *entry.first, fmt::format("its pod is not ready: {}", entry.second.front()));
    // istiod: security/pkg/server/ca/authenticate/kubeauth/kube_jwt.go: a token is reviewed by the cluster whose ID it
    // comes with.
    const MeshCluster* const primary = mesh.Find(cluster.control_plane);
    if (entry.second.front().find("Unauthenticated") != std::string::npos && primary != nullptr &&
        findings.Has("WT202", primary->name)) {
      findings.Explain(fmt::format("the istiod of {} runs as another cluster (WT202), and reviews no tokens of {}",
                                   primary->name, cluster.name),
                       "mend CLUSTER_ID first: this follows from it");
    }
    // Whose tokens nobody reviews, as their injector was told of another cluster than theirs.
    for (const sim::PodProcess* pod : mesh.Pods(cluster)) {
      if (entry.second.front().find("Unauthenticated") == std::string::npos || primary == nullptr ||
          primary == &cluster || !pod->bootstrap() || pod->Trouble() != entry.second.front())
        continue;
      const std::string id = Text(pod->node().metadata, "CLUSTER_ID");
      if (id.empty() || mesh.Find(id) != nullptr) continue;
      findings.Explain(fmt::format("its proxy says CLUSTER_ID {}, of which the istiod of {} knows no API server to "
                                   "review its token",
                                   id, primary->name),
                       fmt::format("write the name of the remote Secret, {}, in the place of {}: in the webhook's path "
                                   "(istiodRemote.injectionPath) and in global.multiCluster.clusterName",
                                   cluster.name, id));
      break;
    }
    const std::string signer = entry.second.front().find("create certificate: ") == std::string::npos
                                   ? std::string()
                                   : SenderAway(complaints, cluster.name);
    if (!signer.empty()) {
      findings.Explain(signer, "mend that first (WT700): this follows from it");
    } else if (const auto [why, remedy] = CauseOf(entry.second.front(), primary); !why.empty()) {
      findings.Explain(why, remedy);
    }
    if (WaitsForConfiguration(entry.second.front()) && primary != nullptr &&
        std::any_of(findings.before().begin(), findings.before().end(),
                    [&](const Finding& f) { return f.rule->code == "IST0161" && f.cluster == primary->name; }))
      findings.Explain(
          "a listener of a Gateway waits for its certificate (IST0161), and a proxy that starts waits for it",
          "mend IST0161 first: this follows from it");
    if (entry.second.front().find(": i/o timeout") != std::string::npos &&
        entry.second.front().find("lookup ") != std::string::npos) {
      findings.Explain("its agent asks DNS for istiod's name, and a NetworkPolicy drops what it asks",
                       "let the pods out to kube-dns, UDP and TCP port 53");
    }
    // The address may be the mesh config's own.
    const kube::ObjectRef map = MeshConfigMap(mesh, cluster);
    const auto data = map == nullptr ? std::map<std::string, std::string>() : kube::ConfigMapData(*map);
    const auto text = data.find("mesh");
    if (text == data.end() || entry.second.front().find("dial") == std::string::npos) continue;
    const std::string address = cluster.istiod == nullptr
                                    ? std::string()
                                    : Text(At(cluster.istiod->mesh_config().raw, "defaultConfig"), "discoveryAddress");
    const Place place = mesh.Where(cluster.name, *map);
    if (address.empty() || place.file.empty()) continue;
    findings.Explain({},
                     fmt::format("mend meshConfig.defaultConfig.discoveryAddress, which is {} ({}:{}): istiod serves "
                                 "proxies at istiod.{}.svc:15012",
                                 address, place.file, place.line, cluster.system_namespace));
  }
}

void PodsPending(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& pod : mesh.List(*cluster, "Pod")) {
      if (kube::ParsePod(*pod).phase != "Pending") continue;
      std::string why;
      for (const auto& condition : Items(At(pod->body, {"status", "conditions"}))) {
        if (Text(condition, "type") == "PodScheduled" && Text(condition, "status") == "False")
          why = Text(condition, "message");
      }
      findings.Add(*cluster, OwnerOf(mesh, *cluster, pod),
                   fmt::format("its pod stays Pending{}{}", why.empty() ? "" : ": ", why));
    }
  }
}

// Of each workload's first pod whose containers are ready: what it waits for besides.
void GatesShut(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    std::set<std::string> told;
    for (const kube::ObjectRef& pod : mesh.List(*cluster, "Pod")) {
      for (const auto& condition : Items(At(pod->body, {"status", "conditions"}))) {
        if (Text(condition, "type") != "Ready" || Text(condition, "reason") != "ReadinessGatesNotReady") continue;
        const kube::ObjectRef owner = OwnerOf(mesh, *cluster, pod);
        if (!told.insert(NameOf(*owner)).second) continue;
        findings.Add(
            *cluster, *owner,
            fmt::format("its pod is not ready, so that nothing is sent to it: {}", Text(condition, "message")));
      }
    }
  }
}

// kubernetes: plugin/pkg/admission/serviceaccount: a pod of an account that is not there is refused. Who brings no
// ServiceAccounts at all, has them elsewhere.
void AccountMissing(const Mesh& mesh, Findings& findings) {
  std::set<std::pair<std::string, std::string>> brings;  // cluster, namespace
  for (const BroughtObject& b : mesh.brought()) {
    if (Text(b.object, "kind") == "ServiceAccount")
      brings.emplace(b.cluster, Text(At(b.object, "metadata"), "namespace", "default"));
  }
  EachWorkload(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const json& pod) {
    const std::string account = Text(At(pod, "spec"), "serviceAccountName");
    if (account.empty() || account == "default" || !brings.contains({cluster.name, object.meta.ns})) return;
    if (mesh.Get(cluster, "ServiceAccount", object.meta.ns, account) != nullptr) return;
    findings.Add(cluster, object,
                 fmt::format("its pods run as ServiceAccount {}, which is not in {}: a real API server refuses them",
                             account, object.meta.ns));
  });
}

// kubernetes: plugin/pkg/admission/priority. Those of kube-system are made by the API server itself.
void PriorityClassMissing(const Mesh& mesh, Findings& findings) {
  EachWorkload(mesh, [&](const MeshCluster& cluster, const kube::Object& object, const json& pod) {
    const std::string name = Text(At(pod, "spec"), "priorityClassName");
    if (name.empty() || name == "system-cluster-critical" || name == "system-node-critical" || cluster.recorded) return;
    if (mesh.Get(cluster, "PriorityClass.scheduling.k8s.io", "", name) != nullptr) return;
    findings.Add(cluster, object,
                 fmt::format("PriorityClass {} is not among the objects: where it is not there, a real API server "
                             "refuses the pods",
                             name));
  });
}

}  // namespace

const std::vector<Rule>& VersionRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT701", "ApiVersionUnknown", Level::kError, "an API server has no such kind in that version, and refuses it",
       "write the kind and the version that are served", "istio/istio#43482", UnknownVersion},
      {"WT712", "DefinedTwice", Level::kWarning, "the later one takes the place of the earlier one",
       "write it once, with what both say", "helm/helm#10045", DefinedTwice},
      {"IST0002", "Deprecated", Level::kWarning, "it has no effect", "leave it out, or write it as its successor",
       "istio/istio#25299", Deprecated},
      {"WT702", "ConfigurationNotRead", Level::kWarning, "istiod reads its own cluster's configuration only",
       "apply it in the primary cluster", "istio/istio#12291, #31211", NotRead},
      {"IST0133", "SchemaWarning", Level::kWarning, "what cannot be read has no effect", "mend the field",
       "istio/istio#26423", UnreadAndWarned, false},
      {"WT703", "PodPending", Level::kError, "a pod that no node takes runs nowhere",
       "mend nodeSelector, affinity, tolerations or requests, or add a node", "istio/istio#7459", PodsPending},
      {"WT711", "ReadinessGateShut", Level::kError,
       "a pod is ready when the conditions of its readinessGates are True, too",
       "see that the controller which sets the condition runs, or leave the gate out",
       "kubernetes-sigs/aws-load-balancer-controller#1205, #2393", GatesShut},
      {"WT704", "ServiceAccountMissing", Level::kError, "no pod is made for an account that is not there",
       "create the ServiceAccount, or mend serviceAccountName", "kubernetes/kubernetes#135831", AccountMissing},
      {"WT720", "PriorityClassMissing", Level::kWarning, "no pod is made for a class that is not there",
       "create the PriorityClass, or mend priorityClassName", "alphagov/gsp#843", PriorityClassMissing, false},
      {"WT708", "ProxyNotReady", Level::kError, "a pod that is not ready gets no request, and sends none",
       "see what its agent waits for: istiod's address and port 15012 from that cluster, its certificate, the roots",
       "istio/istio#31453, #38541", ProxiesNotReady},
      {"WT700", "DoesNotComeUp", Level::kError, "something of the mesh does not run at all", "see the message",
       "cert-manager/istio-csr#27", DoesNotComeUp},
  };
  return *rules;
}

}  // namespace wavetank::check
