#include "scenarios/mesh/installer_files.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/kube/yaml.h"
#include "fakes/kube/objects/kinds.h"
#include "fakes/kube/objects/manifest_folders.h"
#include "fmt/format.h"
#include "scenarios/language/install_setting.h"
#include "scenarios/mesh/istioctl.h"

namespace wavetank::scenario {
namespace {

using nlohmann::json;

bool IsKindFile(const json& document) {
  return fakekube::GroupOf(Text(document, "apiVersion")) == "kind.x-k8s.io" && Text(document, "kind") == "Cluster";
}
bool IsOperator(const json& document) {
  return fakekube::GroupOf(Text(document, "apiVersion")) == "install.istio.io" &&
         Text(document, "kind") == "IstioOperator";
}
fakekube::OtherDocuments OfInstallers() {
  return {[](const json& document) { return IsKindFile(document) || IsOperator(document); }, {}};
}

// The first part of "10.244.0.0/16,fd00:10:244::/56".
std::string FirstRange(const std::string& text) { return text.substr(0, text.find(',')); }

// [first, end) of an IPv4 CIDR or of "from-to"; InvalidArgument: it is neither.
absl::StatusOr<std::pair<uint64_t, uint64_t>> Bounds(const std::string& text) {
  const auto bad = [&] {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no range of IPv4 addresses; write one as 10.10.0.0/16", text));
  };
  const auto address = [](const std::string& part) -> std::optional<uint64_t> {
    const absl::StatusOr<IpAddress> ip = IpAddress::Parse(part);
    if (!ip.ok() || !ip->is_v4()) return std::nullopt;
    return ip->low();
  };
  if (const size_t dash = text.find('-'); dash != std::string::npos) {
    const auto from = address(text.substr(0, dash)), to = address(text.substr(dash + 1));
    if (!from || !to || *to < *from) return bad();
    return std::pair(*from, *to + 1);
  }
  const size_t slash = text.find('/');
  int bits = 0;
  const auto ip = address(text.substr(0, slash));
  if (slash == std::string::npos || !ip || !absl::SimpleAtoi(text.substr(slash + 1), &bits) || bits < 1 || bits > 32) {
    return bad();
  }
  const uint64_t size = uint64_t{1} << (32 - bits);
  return std::pair(*ip & ~(size - 1), (*ip & ~(size - 1)) + size);
}

std::string Trimmed(std::string text) {
  std::erase(text, ' ');
  return text;
}

bool IsMetalLbPool(const json& object) {
  return fakekube::GroupOf(Text(object, "apiVersion")) == "metallb.io" && Text(object, "kind") == "IPAddressPool";
}

// kind: pkg/apis/config/v1alpha4/types.go, decoded strictly (pkg/internal/apis/config/encoding/load.go): the fields of
// a kind file, by where they stand.
constexpr std::string_view kKindFields[] = {
    "kind", "apiVersion", "name", "nodes", "networking", "featureGates", "runtimeConfig", "kubeadmConfigPatches",
    "kubeadmConfigPatchesJSON6902", "containerdConfigPatches", "containerdConfigPatchesJSON6902",
    // networking
    "networking.ipFamily", "networking.apiServerPort", "networking.apiServerAddress", "networking.podSubnet",
    "networking.serviceSubnet", "networking.disableDefaultCNI", "networking.kubeProxyMode", "networking.dnsSearch",
    // nodes
    "nodes.role", "nodes.image", "nodes.labels", "nodes.extraMounts", "nodes.extraPortMappings",
    "nodes.kubeadmConfigPatches", "nodes.kubeadmConfigPatchesJSON6902"};

bool HasKindField(const std::string& path) {
  return std::find(std::begin(kKindFields), std::end(kKindFields), path) != std::end(kKindFields);
}

// Why `kind create cluster` makes nothing of it; empty: it does. Ranges are looked at where they are read.
std::string KindRefuses(const json& file) {
  const std::string version = Text(file, "apiVersion");
  if (version != "kind.x-k8s.io/v1alpha4")
    return fmt::format("unknown apiVersion: {}; write kind.x-k8s.io/v1alpha4", version);
  const auto unknown = [&](const json& object, const std::string& before) -> std::string {
    if (!object.is_object()) return {};
    for (const auto& [key, value] : object.items()) {
      if (!HasKindField(before + key))
        return fmt::format("unable to decode config: field {} not found{}", key,
                           before.empty() ? "" : fmt::format(" in {}", before.substr(0, before.size() - 1)));
    }
    return {};
  };
  if (std::string why = unknown(file, ""); !why.empty()) return why;
  const json& networking = At(file, "networking");
  if (std::string why = unknown(networking, "networking."); !why.empty()) return why;
  // kind: pkg/internal/apis/config/validate.go.
  if (const std::string mode = Text(networking, "kubeProxyMode", "iptables");
      mode != "iptables" && mode != "ipvs" && mode != "nftables" && mode != "none")
    return fmt::format("invalid kubeProxyMode: {}; kind knows iptables, ipvs, nftables and none", mode);
  const json& port = At(networking, "apiServerPort");
  if (!port.is_null() && (!port.is_number_integer() || NumberOf(port) < -1 || NumberOf(port) > 65535))
    return fmt::format("invalid apiServerPort: {}", JsonText(port));
  bool control_plane = Items(At(file, "nodes")).empty();
  for (const json& node : Items(At(file, "nodes"))) {
    if (std::string why = unknown(node, "nodes."); !why.empty()) return why;
    const std::string role = Text(node, "role", "control-plane");
    if (role != "control-plane" && role != "worker")
      return fmt::format("\"{}\" is not a valid node role; there are control-plane and worker", role);
    control_plane = control_plane || role == "control-plane";
  }
  return control_plane ? "" : "must have at least one control-plane node";
}

// Ports of the machine that kind's containers take: the API server's, if it is said, and those of mappings.
void AddHostPorts(const json& file, ClusterRanges* out) {
  const auto add = [&](const json& port, const std::string& address) {
    if (NumberOf(port) > 0) out->host_ports.push_back({static_cast<int>(NumberOf(port)), address});
  };
  const json& networking = At(file, "networking");
  add(At(networking, "apiServerPort"), Text(networking, "apiServerAddress", "127.0.0.1"));
  for (const json& node : Items(At(file, "nodes"))) {
    for (const json& mapping : Items(At(node, "extraPortMappings")))
      add(At(mapping, "hostPort"), Text(mapping, "listenAddress", "0.0.0.0"));
  }
}

// Where MetalLB is: its controller reads the pools of its own namespace alone (metallb: controller/main.go,
// --namespace). That of a Deployment of its, or the one of its manifests.
std::string MetalLbNamespace(const json& object, const std::string& otherwise) {
  const json& meta = At(object, "metadata");
  const json& labels = At(meta, "labels");
  const bool is = Text(object, "kind") == "Deployment" &&
                  ((Text(labels, "app") == "metallb" && Text(labels, "component") == "controller") ||
                   (Text(labels, "app.kubernetes.io/name") == "metallb" &&
                    Text(labels, "app.kubernetes.io/component") == "controller"));
  return is ? Text(meta, "namespace", otherwise) : otherwise;
}

// A CIDR's network and broadcast addresses are given away like all others, unless the pool avoids buggy ones (metallb:
// internal/allocator/allocator.go, getFreeIPsFromPool).
std::string WholeRange(const std::string& range, bool avoid_buggy) {
  const auto bounds = Bounds(range);
  if (!bounds.ok() || avoid_buggy || range.find('/') == std::string::npos) return range;
  const auto text = [](uint64_t address) { return IpAddress::V4(static_cast<uint32_t>(address)).ToString(); };
  return fmt::format("{}-{}", text(bounds->first), text(bounds->second - 1));
}

// What MetalLB may give away, in order: of pools that it takes addresses from by itself.
std::vector<std::string> PoolAddresses(const json& object) {
  std::vector<std::string> out;
  const auto add = [&](const json& pool, const char* automatic) {
    if (At(pool, automatic) == false) return;
    for (const json& range : Items(At(pool, "addresses"))) {
      const bool avoid_buggy = At(pool, "avoidBuggyIPs") == true || At(pool, "avoid-buggy-ips") == true;
      out.push_back(WholeRange(Trimmed(TextOf(range)), avoid_buggy));
    }
  };
  if (IsMetalLbPool(object)) add(At(object, "spec"), "autoAssign");
  const json& meta = At(object, "metadata");
  if (Text(object, "kind") == "ConfigMap" && Text(meta, "namespace") == "metallb-system" &&
      Text(meta, "name") == "config") {
    const absl::StatusOr<json> config = kube::ParseYaml(Text(At(object, "data"), "config"), "config");
    if (config.ok()) {
      for (const json& pool : Items(At(*config, "address-pools"))) add(pool, "auto-assign");
    }
  }
  return out;
}

// Of mappings alone: items of lists and escaped names are left to istioctl.
void Overlay(const std::string& setting, json* spec) {
  const size_t equals = setting.find('=');
  const std::string path = setting.substr(0, equals);
  if (path.find_first_of("[\\") != path.npos) return;
  json* at = spec;
  for (const absl::string_view key : absl::StrSplit(path, '.')) {
    if (!at->is_object()) *at = json::object();
    at = &(*at)[std::string(key)];
  }
  *at = setting.substr(equals + 1);
}

}  // namespace

absl::Status GiveSettings(const std::vector<std::string>& settings, ClusterSpec* cluster) {
  if (settings.empty()) return absl::OkStatus();
  struct Operator {
    ManifestSpec* spec;
    std::string file, place;
  };
  std::vector<Operator> operators;
  for (ManifestSpec& spec : cluster->manifests) {
    if (spec.path.empty() || !fakekube::AnyMentions(spec.path, {"IstioOperator"})) continue;
    fakekube::OtherDocuments others = OfInstallers();
    const absl::StatusOr<std::vector<fakekube::Manifest>> read = fakekube::LoadManifests(spec.path, &others);
    if (!read.ok()) return read.status();
    for (const fakekube::Manifest& other : others.found) {
      if (IsOperator(other.object))
        operators.push_back({&spec, other.file, fmt::format("{}:{}", other.file, other.line)});
    }
  }
  std::vector<std::string> of_no_file;
  for (const std::string& setting : settings) {
    const auto [file, text] = SplitInstallSetting(setting);
    if (absl::Status status = CheckInstallSetting(text); !status.ok())
      return absl::InvalidArgumentError(fmt::format("--set {}", Message(status)));
    std::vector<const Operator*> meant;
    for (const Operator& each : operators) {
      if (file.empty() || IsCalled(each.file, file)) meant.push_back(&each);
    }
    if (meant.empty() && file.empty()) {
      of_no_file.push_back(text);
      continue;
    }
    if (meant.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("--set {}: {} has no file {} with an IstioOperator", setting, cluster->name, file));
    }
    if (meant.size() > 1) {
      std::string places;
      for (const Operator* each : meant) places += (places.empty() ? "" : ", ") + each->place;
      return absl::InvalidArgumentError(fmt::format(
          "--set {}: {} has {} IstioOperators, each of which is an `istioctl install` of its own ({}); name the file "
          "of the one that is meant, alone in it: --set FILE:{}",
          setting, cluster->name, meant.size(), places, text));
    }
    meant.front()->spec->set.push_back(fmt::format("{}:{}", meant.front()->file, text));
  }
  if (!of_no_file.empty()) {
    ManifestSpec installation;
    installation.file = "--set";
    installation.set = std::move(of_no_file);
    cluster->manifests.insert(cluster->manifests.begin(), std::move(installation));
  }
  return absl::OkStatus();
}

namespace {

constexpr std::string_view kDefaultRevision = "default";

std::string WhereRendered(const std::string& file) { return fmt::format("{} (rendered by istioctl)", file); }

bool IsInjector(const json& object) {
  return Text(object, "kind") == "MutatingWebhookConfiguration" &&
         Text(At(object, {"metadata", "labels"}), "app") == "sidecar-injector";
}

bool IsIstiod(const json& object) {
  return Text(object, "kind") == "Deployment" && Text(At(object, {"metadata", "labels"}), "app") == "istiod";
}

Installation InstallationOf(const json& istio_operator, std::vector<std::string> set,
                            const std::vector<fakekube::Manifest>& rendered) {
  Installation out{istio_operator, std::move(set), "", false};
  for (const fakekube::Manifest& manifest : rendered) {
    if (IsInjector(manifest.object)) out.revision = Text(At(manifest.object, {"metadata", "labels"}), "istio.io/rev");
    out.istiod |= IsIstiod(manifest.object);
  }
  return out;
}

// Webhooks are the operator's, and istioctl makes none.
bool LeavesWebhooksAlone(const Installation& installation) {
  const std::vector<std::string>& set = installation.set;
  return At(installation.istio_operator, {"spec", "values", "global", "operatorManageWebhooks"}) == true ||
         std::find(set.begin(), set.end(), "values.global.operatorManageWebhooks=true") != set.end();
}

// Webhooks of a revision itself, which are no tag's (istio: istioctl/pkg/tag/util.go, GetWebhooksWithRevision()).
std::vector<json*> CanonicalOf(std::string_view revision, std::vector<json>* objects) {
  std::vector<json*> out;
  for (json& object : *objects) {
    const json& labels = At(object, {"metadata", "labels"});
    if (IsInjector(object) && Text(labels, "istio.io/rev") == revision && !labels.contains("istio.io/tag"))
      out.push_back(&object);
  }
  return out;
}

const json& ClientConfigOf(const json& injector) {
  for (const json& webhook : Items(At(injector, "webhooks"))) {
    if (Text(webhook, "name").ends_with("sidecar-injector.istio.io")) return At(webhook, "clientConfig");
  }
  return Null();
}

// What istioctl renders a tag of: a few values of its own, and of the installation no more than the webhook says that
// is there (istio: istioctl/pkg/tag/generate.go, generateMutatingWebhook(), generateValidatingWebhook()).
json TagOperator(const Installation& installation, const json& canonical) {
  const json& values = At(installation.istio_operator, {"spec", "values"});
  const json& config = ClientConfigOf(canonical);
  std::string ns = Text(At(config, "service"), "namespace");
  if (ns.empty()) ns = Text(At(values, "global"), "istioNamespace", "istio-system");
  const json& by_default = At(values, {"sidecarInjectorWebhook", "enableNamespacesByDefault"});
  const std::string url = Text(config, "url");
  json spec = {{"profile", "empty"},
               {"components", {{"base", {{"enabled", true}}}, {"pilot", {{"enabled", true}}}}},
               {"values",
                {{"global", {{"istioNamespace", ns}}},
                 {"sidecarInjectorWebhook",
                  {{"enableNamespacesByDefault", by_default == true},
                   {"objectSelector", {{"enabled", true}, {"autoInject", true}}}}}}}};
  if (installation.revision != kDefaultRevision) spec["revision"] = installation.revision;
  if (!url.empty()) {
    spec["values"]["istiodRemote"]["injectionURL"] = url;
    const size_t host = url.find("://");
    const size_t path = host == std::string::npos ? host : url.find('/', host + 3);
    spec["values"]["base"]["validationURL"] = url.substr(0, path) + "/validate";
  }
  return {{"apiVersion", "install.istio.io/v1alpha1"}, {"kind", "IstioOperator"}, {"spec", std::move(spec)}};
}

}  // namespace

absl::Status MakeDefault(const std::vector<Installation>& installations, std::vector<json>* objects) {
  const auto of_revision = [](const Installation& each) { return !each.revision.empty(); };
  const auto by_itself = [](const Installation& each) { return each.revision == kDefaultRevision && each.istiod; };
  auto chosen = std::find_if(installations.begin(), installations.end(), by_itself);
  if (chosen == installations.end()) chosen = std::find_if(installations.begin(), installations.end(), of_revision);
  if (chosen == installations.end() || LeavesWebhooksAlone(*chosen)) return absl::OkStatus();
  const auto stood_before = [&](const json& object) {
    const std::string revision = Text(At(object, {"metadata", "labels"}), "istio.io/rev");
    return IsInjector(object) && std::none_of(installations.begin(), installations.end(),
                                              [&](const Installation& each) { return each.revision == revision; });
  };
  if (!by_itself(*chosen) && std::any_of(objects->begin(), objects->end(), stood_before)) return absl::OkStatus();
  // Without just one webhook of the revision there is nothing to make the tag of, and istioctl goes on without.
  const std::vector<json*> canonical = CanonicalOf(chosen->revision, objects);
  const std::vector<json*> of_none = CanonicalOf(kDefaultRevision, objects);
  if (canonical.size() != 1 || of_none.size() > 1) return absl::OkStatus();
  const absl::StatusOr<std::string> istioctl = FindIstioctl();
  if (!istioctl.ok()) return istioctl.status();
  const absl::StatusOr<Rendered> text =
      GenerateManifests(*istioctl, JsonText(TagOperator(*chosen, *canonical.front())),
                        {fmt::format("values.defaultRevision={}", chosen->revision), "values.revisionTags[0]=default"});
  if (!text.ok()) return text.status();
  absl::StatusOr<std::vector<fakekube::Manifest>> rendered =
      fakekube::ParseManifests(WhereRendered("istioctl install"), text->manifests);
  if (!rendered.ok()) return rendered.status();
  const json& called = At(ClientConfigOf(*canonical.front()), {"service", "path"});
  const json bundle = At(ClientConfigOf(*canonical.front()), "caBundle");
  std::vector<json> made;
  for (fakekube::Manifest& manifest : *rendered) {
    const std::string name = Text(At(manifest.object, "metadata"), "name");
    const bool tag = name.starts_with("istio-revision-tag-default");  // behind it the namespace, if it is another
    if (!tag && name != "istiod-default-validator") continue;
    const bool there = std::any_of(objects->begin(), objects->end(), [&](const json& object) {
      return Text(object, "kind") == Text(manifest.object, "kind") && Text(At(object, "metadata"), "name") == name;
    });
    if (there) continue;
    for (json& webhook : manifest.object["webhooks"]) {
      json& config = webhook["clientConfig"];
      if (tag && called.is_string() && config.contains("service")) config["service"]["path"] = called;
      if (!bundle.is_null()) config["caBundle"] = bundle;
    }
    made.push_back(std::move(manifest.object));
  }
  // istio: istioctl/pkg/tag/util.go, DeactivateIstioInjectionWebhook().
  static const auto* const never = new json{{"matchLabels", {{"istio.io/deactivated", "never-match"}}}};
  for (json* injector : of_none) {
    for (json& webhook : (*injector)["webhooks"]) webhook["namespaceSelector"] = webhook["objectSelector"] = *never;
  }
  for (json& object : made) objects->push_back(std::move(object));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<fakekube::Manifest>> LoadRendered(const ManifestSpec& spec, std::vector<std::string>* notes,
                                                             std::vector<fakekube::Manifest>* operators,
                                                             std::vector<Installation>* installations) {
  fakekube::OtherDocuments others = OfInstallers();
  absl::StatusOr<std::vector<fakekube::Manifest>> out = std::vector<fakekube::Manifest>();
  if (spec.OfNoFile()) {
    json nothing = {{"apiVersion", "install.istio.io/v1alpha1"}, {"kind", "IstioOperator"}};
    others.found.push_back({std::move(nothing), spec.file, spec.line, false, nullptr});
  } else {
    out = fakekube::LoadManifests(spec.path, &others);
  }
  if (!out.ok()) return out;
  if (notes != nullptr && out->empty() && others.found.empty())
    notes->push_back(fmt::format("{}: it holds no object, and has no effect here", spec.path));
  if (const std::string below = spec.OfNoFile() ? "" : fakekube::NameFoldersLeftOut(spec.path);
      notes != nullptr && !below.empty()) {
    notes->push_back(
        fmt::format("{}: `kubectl apply -f` without -R does not read {} with it (name that folder, too): what is there "
                    "has no effect here",
                    spec.path, below));
  }
  std::vector<bool> taken(spec.set.size());
  for (fakekube::Manifest& other : others.found) {
    if (!IsOperator(other.object)) continue;
    std::vector<std::string> set;
    for (size_t i = 0; i < spec.set.size(); ++i) {
      const auto [file, setting] = SplitInstallSetting(spec.set[i]);
      if (!file.empty() && !IsCalled(other.file, file)) continue;
      set.push_back(setting);
      taken[i] = true;
    }
    const std::string place = other.line <= 0 ? other.file : fmt::format("{}:{}", other.file, other.line);
    const auto at = [&](const absl::Status& why) {
      return absl::Status(why.code(), fmt::format("{}: an IstioOperator: {}", place, Message(why)));
    };
    const absl::StatusOr<std::string> istioctl = FindIstioctl();
    if (!istioctl.ok()) {
      return at(absl::FailedPreconditionError(
          fmt::format("it is rendered by istioctl, and {}; install istioctl 1.18.2, or put what `istioctl manifest "
                      "generate {}` prints in its place",
                      Message(istioctl.status()), spec.OfNoFile() ? std::string("--set ...") : "-f " + other.file)));
    }
    const absl::StatusOr<Rendered> text = GenerateManifests(*istioctl, JsonText(other.object), set);
    if (!text.ok()) return at(text.status());
    if (notes != nullptr) {
      for (const std::string& warning : text->warnings)
        notes->push_back(fmt::format("{}: an IstioOperator: istioctl says: {}", place, warning));
    }
    absl::StatusOr<std::vector<fakekube::Manifest>> rendered =
        fakekube::ParseManifests(WhereRendered(spec.OfNoFile() ? "istioctl install" : other.file), text->manifests);
    if (!rendered.ok()) return rendered;
    if (installations != nullptr) installations->push_back(InstallationOf(other.object, set, *rendered));
    for (fakekube::Manifest& manifest : *rendered) out->push_back(std::move(manifest));
    if (operators == nullptr) continue;
    for (const std::string& setting : set) Overlay(setting, &other.object["spec"]);
    operators->push_back(std::move(other));
  }
  if (const auto lost = std::find(taken.begin(), taken.end(), false); lost != taken.end()) {
    return absl::InvalidArgumentError(
        fmt::format("{}:{}: `set` {} is for an IstioOperator, and {} holds none for it; name a file with one, or write "
                    "`install:` instead of the path",
                    spec.file, spec.line, spec.set[static_cast<size_t>(lost - taken.begin())], spec.path));
  }
  return out;
}

absl::StatusOr<ClusterRanges> ReadRanges(const ClusterSpec& cluster) {
  ClusterRanges out;
  std::vector<std::string> pools;
  std::vector<std::tuple<json, std::string, std::string>> pool_objects;  // with namespace, and where they stand
  std::string metal_lb = "metallb-system";
  const auto look_at = [&](const json& object, const std::string& given, const std::string& file, int line) {
    metal_lb = MetalLbNamespace(object, metal_lb);
    if (Text(object, "kind") == "DaemonSet") {
      const std::string name = Text(At(object, "metadata"), "name");
      if (name == "kindnet") out.kindnet = true;
      // cilium: bpf/bpf_lxc.c asks the policy for each packet of the direction that a connection was opened in.
      // kube-network-policies: cmd, --strict-mode, true by default since v0.9.
      if (name == "cilium" || name == "kube-network-policies") out.strict_policies = true;
    }
    if (IsMetalLbPool(object)) {
      const std::string ns = Text(At(object, "metadata"), "namespace", given.empty() ? "default" : given.c_str());
      pool_objects.emplace_back(object, ns, fmt::format("{}:{}", file, line));
      out.file = file;
      out.line = line;
      return;
    }
    for (std::string& range : PoolAddresses(object)) pools.push_back(std::move(range));
  };
  for (const ManifestSpec& spec : cluster.manifests) {
    if (spec.OfNoFile()) continue;
    if (!spec.objects.is_null()) {
      for (const json& object : Items(spec.objects)) look_at(object, spec.ns, spec.file, spec.line);
      continue;
    }
    if (!fakekube::AnyMentions(spec.path, {"kind.x-k8s.io", "metallb", "kindnet", "cilium", "kube-network-policies"}))
      continue;  // and is a whole cluster, perhaps
    fakekube::OtherDocuments others = OfInstallers();
    const absl::StatusOr<std::vector<fakekube::Manifest>> manifests = fakekube::LoadManifests(spec.path, &others);
    if (!manifests.ok()) return manifests.status();
    for (const fakekube::Manifest& manifest : *manifests)
      look_at(manifest.object, spec.ns, manifest.file, manifest.line);
    for (const fakekube::Manifest& other : others.found) {
      if (!IsKindFile(other.object)) continue;
      if (const std::string why = KindRefuses(other.object); !why.empty())
        return absl::InvalidArgumentError(fmt::format("{}:{}: a kind file: {}", other.file, other.line, why));
      const json& networking = At(other.object, "networking");
      AddHostPorts(other.object, &out);
      out.file = other.file;
      out.line = other.line;
      out.kindnet = At(networking, "disableDefaultCNI") != true;
      const std::string family = Text(networking, "ipFamily", "ipv4");
      if (family == "ipv6") {
        return absl::InvalidArgumentError(fmt::format(
            "{}:{}: ipFamily ipv6 is not read from a kind file; say pods and services of the cluster in a scenario",
            other.file, other.line));
      }
      if (family != "ipv4" && family != "dual")
        return absl::InvalidArgumentError(
            fmt::format("{}:{}: invalid ipFamily: {}; kind knows ipv4, ipv6 and dual", other.file, other.line, family));
      // kind: pkg/internal/apis/config/default.go.
      const bool dual = family == "dual";
      out.pods = Trimmed(Text(networking, "podSubnet", dual ? "10.244.0.0/16,fd00:10:244::/56" : "10.244.0.0/16"));
      out.services =
          Trimmed(Text(networking, "serviceSubnet", dual ? "10.96.0.0/16,fd00:10:96::/112" : "10.96.0.0/16"));
      for (std::string* range : {&out.pods, &out.services}) {
        // kind: pkg/internal/apis/config/validate.go, validateSubnets.
        if (const auto count = 1 + std::count(range->begin(), range->end(), ','); count != (dual ? 2 : 1)) {
          return absl::InvalidArgumentError(fmt::format("{}:{}: expected {} in '{}', as ipFamily is {}", other.file,
                                                        other.line, dual ? "two ranges" : "one range", *range, family));
        }
        if (const auto bounds = Bounds(FirstRange(*range)); !bounds.ok()) {
          return absl::InvalidArgumentError(fmt::format("{}:{}: {}", other.file, other.line, Message(bounds.status())));
        }
      }
      if (const size_t nodes = Items(At(other.object, "nodes")).size(); nodes > 1) {
        out.notes.push_back(
            fmt::format("{}:{}: a kind file: that it asks for {} nodes, where the cluster has one, has no effect here",
                        other.file, other.line, nodes));
      }
    }
  }
  bool pending = false;  // MetalLB is there, and has nothing that it gives by itself
  for (const auto& [pool, ns, where] : pool_objects) {
    std::vector<std::string> ranges = PoolAddresses(pool);
    if (ns != metal_lb) {
      out.notes.push_back(fmt::format("{}: IPAddressPool {} is in namespace {}, and MetalLB reads those of {} alone",
                                      where, Text(At(pool, "metadata"), "name"), ns, metal_lb));
      ranges.clear();
    }
    for (const std::string& range : ranges) {
      if (range.find(':') != std::string::npos) continue;
      const auto bounds = Bounds(range);
      if (!bounds.ok())
        return absl::InvalidArgumentError(fmt::format("{}: IPAddressPool {}: {}, or as 172.18.255.1-172.18.255.9",
                                                      where, Text(At(pool, "metadata"), "name"),
                                                      Message(bounds.status())));
      // metallb: internal/config/config.go, poolsFor, which its webhook asks.
      for (const std::string& before : pools) {
        const auto other = Bounds(before);
        if (!other.ok() || before.find(':') != std::string::npos || other->second <= bounds->first ||
            bounds->second <= other->first)
          continue;
        return absl::InvalidArgumentError(
            fmt::format("{}: MetalLB refuses it: CIDR \"{}\" in pool \"{}\" overlaps with already defined CIDR \"{}\"; "
                        "give each pool addresses of its own",
                        where, range, Text(At(pool, "metadata"), "name"), before));
      }
    }
    pending = pending || ranges.empty();
    pools.insert(pools.end(), ranges.begin(), ranges.end());
  }
  const auto v6 = [](const std::string& range) { return range.find(':') != std::string::npos; };
  for (const std::string& range : pools) {
    if (v6(range))
      out.notes.push_back(
          fmt::format("MetalLB's range {} is left out: load balancers have IPv4 addresses here", range));
  }
  std::erase_if(pools, v6);
  for (const std::string& range : pools) {
    if (const auto bounds = Bounds(range); !bounds.ok())
      return absl::InvalidArgumentError(fmt::format("a pool of MetalLB: {}", Message(bounds.status())));
  }
  if (!pools.empty()) {
    out.load_balancers = pools.front();
  } else if (pending) {
    out.load_balancers = "none";
  }
  if (pools.size() > 1) {
    out.notes.push_back(
        fmt::format("of MetalLB's {} ranges the first, {}, is given to load balancers", pools.size(), pools.front()));
  }
  return out;
}

AddressRanges RangesOf(const ClusterSpec& cluster, size_t index, const ClusterRanges& files) {
  const auto first = [](const std::string& said, const std::string& of_files, std::string usual) {
    return !said.empty() ? said : !of_files.empty() ? of_files : std::move(usual);
  };
  return {first(cluster.pod_cidr, files.pods, fmt::format("10.{}.0.0/16", index + 1)),
          first(cluster.service_cidr, files.services, fmt::format("10.{}.0.0/16", 96 + index)),
          first(cluster.load_balancer_cidr, files.load_balancers, fmt::format("172.30.{}.0/24", index + 1))};
}

bool EnforcesPolicies(const ClusterSpec& cluster, const ClusterRanges& files) {
  return cluster.network_policies.empty() ? !files.kindnet || files.strict_policies
                                          : cluster.network_policies != "ignored";
}

bool PoliciesAreStrict(const ClusterSpec& cluster, const ClusterRanges& files) {
  return cluster.network_policies.empty() ? files.strict_policies : cluster.network_policies == "strict";
}

bool SameRange(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto one = Bounds(a), other = Bounds(b);
  return one.ok() && other.ok() && *one == *other;
}

std::vector<SharedRange> SharedRanges(const Scenario& scenario, const std::vector<ClusterRanges>& files) {
  std::vector<SharedRange> out;
  std::vector<AddressRanges> ranges;
  for (size_t i = 0; i < scenario.clusters.size(); ++i) ranges.push_back(RangesOf(scenario.clusters[i], i, files[i]));
  const auto meet = [](const std::string& a, const std::string& b) {
    // Of two IP families that of IPv4, which stands first.
    const auto one = Bounds(FirstRange(a)), other = Bounds(FirstRange(b));
    return one.ok() && other.ok() && other->first < one->second && one->first < other->second;
  };
  for (size_t i = 0; i < ranges.size(); ++i) {
    const std::string& name = scenario.clusters[i].name;
    const AddressRanges& own = ranges[i];
    if (meet(own.pods, own.services)) {
      out.push_back({fmt::format("the ranges of pods and Services of {0} overlap ({1}, {2}): a pod with an address "
                                 "that a Service has too is "
                                 "not reached from within {0}; give each a range of its own",
                                 name, own.pods, own.services),
                     {i}});
    }
    for (const auto& [what, range] : {std::pair("pods", own.pods), std::pair("Services", own.services)}) {
      if (!meet(own.load_balancers, range)) continue;
      out.push_back({fmt::format("the range of load balancers of {0} overlaps that of its {1} ({2}, {3}): what other "
                                 "networks send there is "
                                 "no load balancer's to the nodes of {0}; give them a range of the nodes' own network "
                                 "that nothing else has",
                                 name, what, own.load_balancers, range),
                     {i}});
    }
    for (size_t j = i + 1; j < ranges.size(); ++j) {
      for (const auto& port : files[i].host_ports) {
        for (const auto& other : files[j].host_ports) {
          const bool meets = port.address == other.address || port.address == "0.0.0.0" || other.address == "0.0.0.0";
          if (port.port != other.port || !meets) continue;
          out.push_back(
              {fmt::format("the kind clusters {} and {} both take port {} of their machine: where it is one machine, "
                           "the second is not "
                           "created (port is already allocated); give each a port of its own",
                           name, scenario.clusters[j].name, port.port),
               {i, j}});
        }
      }
      const ClusterSpec &a = scenario.clusters[i], &b = scenario.clusters[j];
      if (meet(ranges[i].load_balancers, ranges[j].load_balancers)) {
        out.push_back(
            {fmt::format("the ranges of load balancers of {0} and {1} overlap ({2}, {3}): at an address that both give "
                         "away each "
                         "one's pods reach their own cluster, and all others {0}; give each a range of its own",
                         a.name, b.name, ranges[i].load_balancers, ranges[j].load_balancers),
             {i, j}});
      }
      for (const auto& [of, pods, services] : {std::tuple(std::pair(&a, &b), &ranges[i].pods, &ranges[j].services),
                                               std::tuple(std::pair(&b, &a), &ranges[j].pods, &ranges[i].services)}) {
        if (a.network != b.network || !meet(*pods, *services)) continue;
        out.push_back({fmt::format("{0} and {1} are on one network, and the pods of {0} have addresses of the Services "
                                   "of {1} ({2}, {3}): "
                                   "within {1} they are Services; give each a range of its own, or a network",
                                   of.first->name, of.second->name, *pods, *services),
                       {i, j}});
      }
      if (a.network != b.network || !meet(ranges[i].pods, ranges[j].pods)) continue;
      out.push_back({fmt::format("{} and {} are on one network, and their pods' ranges overlap ({}, {}): what one "
                                 "sends to a pod of the other "
                                 "in there stays with its own; give each a range of its own, or a network",
                                 a.name, b.name, ranges[i].pods, ranges[j].pods),
                     {i, j}});
    }
  }
  return out;
}

}  // namespace wavetank::scenario
