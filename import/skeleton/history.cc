#include "import/skeleton/history.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "import/report/report.h"
#include "import/skeleton/parts.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;
using Kind = InputKind;

constexpr WallNs kSecondNs = 1'000'000'000;
constexpr const char* kSystemNamespace = "istio-system";
constexpr const char* kNetworkLabel = "topology.istio.io/network";
constexpr const char* kSliceKind = "EndpointSlice.discovery.k8s.io";

const json& ObjectOf(const KubeChange& change) { return At(change.body, "object"); }
WallNs CreatedAt(const KubeChange& change) {
  return ParseWall(wavetank::Text(At(ObjectOf(change), "metadata"), "creationTimestamp"));
}

std::string GroupedKindOf(const json& object) {
  const std::string version = wavetank::Text(object, "apiVersion");
  const size_t slash = version.find('/');
  return wavetank::Text(object, "kind") + "." + (slash == version.npos ? "" : version.substr(0, slash));
}

class Backwards {
 public:
  Backwards(const Evidence& evidence, const DumpedMesh& mesh) : evidence_(evidence), mesh_(mesh) {
    for (const KubeChange* object : mesh.objects) objects_[KeyOfObject(*object)] = object;
  }

  BeforeDump Run() {
    Creations();
    Slices();
    // The inputs that are about one object, in order of time.
    std::map<ObjectKey, std::vector<const InferredInput*>> about;
    std::vector<const InferredInput*> slices;
    for (const InferredInput& input : evidence_.inputs) {
      if (input.initial || input.kind == Kind::kTraffic || input.kind == Kind::kBehaviour) continue;
      if (input.kind == Kind::kEndpoints) {
        slices.push_back(&input);
        continue;
      }
      const ObjectKey key = input.kind == Kind::kGateway ? GatewayThatWent(input) : KeyOfInput(input);
      if (std::get<1>(key).empty()) {
        ++out_.unused;
      } else {
        about[key].push_back(&input);
      }
    }
    for (const auto& [key, inputs] : about) {
      if (std::get<1>(key) == "Pod.") {
        Proxy(key, inputs);
      } else if (std::get<1>(key) == "ConfigMap.") {
        MeshConfigs(key, inputs);
      } else {
        Object(key, inputs);
      }
    }
    Endpoints(slices);
    std::stable_sort(out_.changes.begin(), out_.changes.end(),
                     [](const KubeChange& a, const KubeChange& b) { return a.at < b.at; });
    std::sort(out_.told.begin(), out_.told.end());
    return std::move(out_);
  }

 private:
  std::string Context(const std::string& cluster) const {
    if (cluster.empty()) return mesh_.primary;
    const auto it = mesh_.contexts.find(cluster);
    return it == mesh_.contexts.end() ? std::string() : it->second;
  }

  // Of the istiod whose line it is: each primary reads Secrets and configurations of its own cluster.
  std::string OwnOf(const InferredInput& input) const {
    for (const IstiodRun& run : evidence_.runs) {
      if (run.replica != input.replica || run.cluster.empty()) continue;
      if (std::string context = Context(run.cluster); !context.empty()) return context;
    }
    return mesh_.primary;
  }

  void Tell(WallNs at, const ObjectKey& key, std::string_view what, std::string_view source) {
    const auto& [context, kind, ns, name] = key;
    out_.told.push_back(fmt::format("{}  {} {}{} in {} {}  ({})", FormatWall(at), kind.substr(0, kind.find('.')),
                                    ns.empty() ? "" : ns + "/", name, context, what, source));
  }

  KubeChange Change(const ObjectKey& key, WallNs at, json object) const {
    KubeChange out;
    std::tie(out.cluster, out.kind, out.ns, out.name) = key;
    out.at = at;
    if (object.is_null()) {
      out.deleted = true;
    } else {
      out.input_kind = "apply";
      out.body = {{"object", std::move(object)}};
    }
    return out;
  }
  KubeChange AsDumped(const KubeChange& dumped, WallNs at) const {
    KubeChange out = dumped;
    out.at = at;
    return out;
  }

  // Objects that are younger than the evidence's beginning.
  void Creations() {
    for (const auto& [key, object] : objects_) {
      const WallNs created = CreatedAt(*object);
      if (created == kNoTime || created < mesh_.from + kSecondNs || created > mesh_.to) continue;
      const json& labels = At(At(ObjectOf(*object), "metadata"), "labels");
      // Whoever came before it; a mesh without an istiod shows nothing.
      if (object->kind == "Pod." && wavetank::Text(labels, "app") == "istiod") continue;
      if (object->kind == "Namespace." && object->name == kSystemNamespace) continue;
      WallNs at = created;
      // A creation time has seconds; a line that names the object may know better.
      for (const InferredInput& input : evidence_.inputs) {
        if (input.initial || input.at < created || input.at > created + 2 * kSecondNs) continue;
        if (KeyOfInput(input) == key) {
          at = input.at;
          explained_.insert(&input);
          break;
        }
      }
      born_[key] = at;
      if (object->kind == kSliceKind) continue;  // with its endpoints
      out_.not_yet.insert(key);
      out_.changes.push_back(AsDumped(*object, at));
      Tell(at, key, "appeared", "its creationTimestamp");
    }
  }

  // A slice had no endpoint of a pod that was not there yet.
  void Slices() {
    for (const auto& [key, object] : objects_) {
      if (object->kind != kSliceKind) continue;
      const json& slice = ObjectOf(*object);
      std::map<WallNs, std::vector<size_t>> joins;
      const json& endpoints = Items(At(slice, "endpoints"));
      const auto born = born_.find(key);
      for (size_t i = 0; i < endpoints.size(); ++i) {
        const json& target = At(endpoints[i], "targetRef");
        const auto pod = born_.find(
            {object->cluster, "Pod.", wavetank::Text(target, "namespace", object->ns), wavetank::Text(target, "name")});
        if (pod != born_.end()) joins[ReadyTime(*object, pod->second)].push_back(i);
      }
      if (joins.empty() && born == born_.end()) continue;
      grows_.insert(key);
      json now = slice;
      now["endpoints"] = json::array();
      std::set<size_t> late;
      for (const auto& [at, list] : joins) late.insert(list.begin(), list.end());
      for (size_t i = 0; i < endpoints.size(); ++i) {
        if (!late.contains(i)) now["endpoints"].push_back(endpoints[i]);
      }
      if (born != born_.end()) {
        out_.not_yet.insert(key);
        out_.changes.push_back(Change(key, born->second, now));
        Tell(born->second, key, "appeared", "its creationTimestamp");
      } else {
        out_.stand_ins.push_back(Change(key, kNoTime, now));
      }
      WallNs last = born == born_.end() ? INT64_MIN : born->second;
      for (const auto& [at, list] : joins) {
        for (const size_t i : list) now["endpoints"].push_back(endpoints[i]);
        last = std::max(at, last);
        out_.changes.push_back(Change(key, last, now));
        Tell(last, key, fmt::format("got {} endpoints", list.size()), "its pods' creationTimestamps, and lines");
      }
    }
  }

  // When the slice got a pod: the first line after the pod's creation that tells of endpoints of that service.
  WallNs ReadyTime(const KubeChange& slice, WallNs created) {
    constexpr WallNs kStarts = 120 * kSecondNs;
    const std::string service =
        wavetank::Text(At(At(ObjectOf(slice), "metadata"), "labels"), "kubernetes.io/service-name");
    const std::string host = fmt::format("{}.{}.svc.", service, slice.ns);
    for (const InferredInput& input : evidence_.inputs) {
      if (input.initial || input.kind != Kind::kEndpoints || input.change == "toZero") continue;
      if (input.at < created || input.at > created + kStarts || !input.host.starts_with(host)) continue;
      explained_.insert(&input);
      return input.at;
    }
    return created + kSecondNs;
  }

  ObjectKey KeyOfInput(const InferredInput& input) const {
    const std::string own = OwnOf(input);
    switch (input.kind) {
      case Kind::kRemoteSecret:
      case Kind::kSecret:
        return {own, "Secret.", input.ns, input.name};
      case Kind::kService: {
        if (input.host.find(".svc.") != input.host.npos) {
          return {Context(input.cluster), "Service.", input.ns, input.host.substr(0, input.host.find('.'))};
        }
        // The entry whose host it is.
        for (const auto& [key, object] : objects_) {
          if (object->kind != "ServiceEntry.networking.istio.io") continue;
          for (const json& host : Items(At(At(ObjectOf(*object), "spec"), "hosts"))) {
            if (TextOf(host) == input.host) return key;
          }
        }
        return {};
      }
      case Kind::kConfig: {
        const json object = ConfigObject(input.object_kind, input.ns, input.name, 0);
        return object.is_null() ? ObjectKey() : ObjectKey{own, GroupedKindOf(object), input.ns, input.name};
      }
      case Kind::kMeshConfig:
      case Kind::kMeshNetworks:
        return {own, "ConfigMap.", kSystemNamespace, "istio"};
      case Kind::kProxyConnected:
      case Kind::kProxyDisconnected:
        return {own, "Pod.", input.ns, input.name};
      default:
        return {};
    }
  }

  // The Service whose going was the cause of a reload of gateways: of its endpoints a line of the same burst says that
  // there are none, and its cluster's dump lacks it. Empty: there is none such.
  ObjectKey GatewayThatWent(const InferredInput& gateway) const {
    constexpr WallNs kBurst = 250'000'000;  // as align.cc takes what several istiods see for one
    for (const InferredInput& input : evidence_.inputs) {
      if (input.kind != Kind::kEndpoints || input.change != "toZero" || input.cluster.empty()) continue;
      if (std::abs(input.at - gateway.at) > kBurst || input.host.find(".svc.") == input.host.npos) continue;
      const ObjectKey key{Context(input.cluster), "Service.", input.ns, input.host.substr(0, input.host.find('.'))};
      if (!std::get<0>(key).empty() && !objects_.contains(key) && GatewayElsewhere(key) != nullptr) return key;
    }
    return {};
  }
  // The Service of that name in another cluster's dump, if it is an east-west gateway.
  const json* GatewayElsewhere(const ObjectKey& key) const {
    for (const auto& [other, object] : objects_) {
      if (std::get<1>(other) != "Service." || object->ns != std::get<2>(key) || object->name != std::get<3>(key))
        continue;
      const json& labels = At(At(ObjectOf(*object), "metadata"), "labels");
      if (!wavetank::Text(labels, kNetworkLabel).empty()) return &ObjectOf(*object);
    }
    return nullptr;
  }
  // As the other cluster has it, for its own cluster's network, at an address that nobody has.
  json GatewayAsElsewhere(const ObjectKey& key, const json& elsewhere) const {
    const auto& [context, kind, ns, name] = key;
    const auto position = std::distance(mesh_.contexts.begin(), mesh_.contexts.find(ClusterId(context)));
    json out = GatewayService(name, 0, static_cast<int>(position) + 1);
    out["metadata"] = At(elsewhere, "metadata");
    out["spec"]["ports"] = At(At(elsewhere, "spec"), "ports");
    const auto system = objects_.find({context, "Namespace.", "", kSystemNamespace});
    const std::string network =
        system == objects_.end()
            ? std::string()
            : wavetank::Text(At(At(ObjectOf(*system->second), "metadata"), "labels"), kNetworkLabel);
    out["metadata"]["labels"][kNetworkLabel] = network.empty() ? "network-of-" + ClusterId(context) : network;
    return out;
  }

  // Something else of the kind, at this turn of its history.
  json StandIn(const ObjectKey& key, const InferredInput& input, int64_t turn) const {
    const auto& [context, kind, ns, name] = key;
    if (kind == "Secret.") {
      if (input.kind != Kind::kRemoteSecret) return SecretObject(ns, name, turn);
      std::vector<std::pair<std::string, std::string>> kubeconfigs;
      for (const auto& [cluster, effect] : input.clusters) {
        kubeconfigs.emplace_back(cluster, KubeconfigFor(cluster, turn));
      }
      return RemoteSecretObject(ns, name, kubeconfigs, turn);
    }
    if (kind == "Service.") {
      const auto it = objects_.find(key);
      const json* const elsewhere = it == objects_.end() ? GatewayElsewhere(key) : nullptr;
      if (elsewhere != nullptr) return GatewayAsElsewhere(key, *elsewhere);
      if (it == objects_.end()) return ServiceObject(ns, name, static_cast<int>(200 + turn), turn);
      // The dump's, with a port more.
      json out = ObjectOf(*it->second);
      out["spec"]["ports"].push_back({{"name", fmt::format("tcp-imported-{}", turn)},
                                      {"port", 64'000 + turn % 1000},
                                      {"targetPort", 64'000 + turn % 1000},
                                      {"protocol", "TCP"}});
      return out;
    }
    return ConfigObject(kind.substr(0, kind.find('.')), ns, name, turn);
  }

  static bool Removes(const InferredInput& input) {
    if (input.change == "removed") return true;
    if (input.kind != Kind::kRemoteSecret || input.clusters.empty()) return false;
    return std::all_of(input.clusters.begin(), input.clusters.end(),
                       [](const auto& entry) { return entry.second == "removed"; });
  }
  static bool Adds(const InferredInput& input) {
    if (input.change == "added") return true;
    return input.kind == Kind::kRemoteSecret && std::any_of(input.clusters.begin(), input.clusters.end(),
                                                            [](const auto& entry) { return entry.second == "added"; });
  }

  void Object(const ObjectKey& key, const std::vector<const InferredInput*>& inputs) {
    std::vector<const InferredInput*> list;
    for (const InferredInput* input : inputs) {
      if (!explained_.contains(input)) list.push_back(input);
    }
    if (list.empty()) return;
    const auto dumped = objects_.find(key);
    const bool there = dumped != objects_.end();
    if (std::get<0>(key).empty()) {
      out_.unused += list.size();
      return;
    }
    int64_t turn = 0;
    bool exists = !Adds(*list.front());
    if (exists && !born_.contains(key)) {
      if (json before = StandIn(key, *list.front(), turn); !before.is_null()) {
        out_.stand_ins.push_back(Change(key, kNoTime, std::move(before)));
      }
    } else {
      out_.not_yet.insert(key);
    }
    for (size_t i = 0; i < list.size(); ++i) {
      const InferredInput& input = *list[i];
      const bool last = i + 1 == list.size();
      const bool removes = Removes(input) || (last && !there && !Adds(input));
      if (removes && exists) {
        out_.changes.push_back(Change(key, input.at, nullptr));
        exists = false;
        Tell(input.at, key, "was deleted", Text(input.place));
      } else if (!removes) {
        json object = last && there ? json() : StandIn(key, input, ++turn);
        if (last && there) {
          out_.changes.push_back(AsDumped(*dumped->second, input.at));
        } else if (!object.is_null()) {
          out_.changes.push_back(Change(key, input.at, std::move(object)));
        }
        Tell(input.at, key, exists ? "changed" : "appeared", Text(input.place));
        exists = true;
      }
    }
    // Something that the dump holds, and that is said to have gone: it came back when nothing told of it.
    if (there && !exists) {
      out_.changes.push_back(AsDumped(*dumped->second, mesh_.to));
      Tell(mesh_.to, key, "appeared", "the dump holds it, and no line tells since when");
    }
  }

  // What istiod printed is what it was.
  void MeshConfigs(const ObjectKey& key, const std::vector<const InferredInput*>& inputs) {
    const auto dumped = objects_.find(key);
    if (dumped == objects_.end()) {
      out_.unused += inputs.size();
      return;
    }
    json object = ObjectOf(*dumped->second);
    const auto set = [&](const InferredInput& input, json& in) {
      in["data"][input.kind == Kind::kMeshConfig ? "mesh" : "meshNetworks"] = HarmlessPrinted(input.detail);
    };
    bool before = false;
    for (const InferredInput& input : evidence_.inputs) {
      if (!input.initial || input.detail.empty()) continue;
      if (input.kind != Kind::kMeshConfig && input.kind != Kind::kMeshNetworks) continue;
      set(input, object);
      before = true;
    }
    if (before) out_.stand_ins.push_back(Change(key, kNoTime, object));
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i]->change == "refused") {
        ++out_.unused;
        continue;
      }
      set(*inputs[i], object);
      out_.changes.push_back(i + 1 == inputs.size() ? AsDumped(*dumped->second, inputs[i]->at)
                                                    : Change(key, inputs[i]->at, object));
      Tell(inputs[i]->at, key, "changed", Text(inputs[i]->place));
    }
  }

  // A proxy that went and is in no dump was there before.
  void Proxy(const ObjectKey& key, const std::vector<const InferredInput*>& inputs) {
    const auto& [context, kind, ns, name] = key;
    for (const auto& [cluster, other] : mesh_.contexts) {
      if (!objects_.contains({other, kind, ns, name})) continue;
      out_.unused += inputs.size();  // its stream came and went; its pod stayed
      return;
    }
    if (inputs.back()->kind != Kind::kProxyDisconnected || context.empty()) {
      out_.unused += inputs.size();
      return;
    }
    const json pod = ProxyPod(ClusterId(context), ns, name, gone_++);
    if (inputs.front()->kind == Kind::kProxyDisconnected) {
      out_.stand_ins.push_back(Change(key, kNoTime, pod));
    } else {
      out_.changes.push_back(Change(key, inputs.front()->at, pod));
      Tell(inputs.front()->at, key, "appeared", Text(inputs.front()->place));
    }
    out_.changes.push_back(Change(key, inputs.back()->at, nullptr));
    Tell(inputs.back()->at, key, "went", Text(inputs.back()->place));
  }
  std::string ClusterId(const std::string& context) const {
    for (const auto& [id, its] : mesh_.contexts) {
      if (its == context) return id;
    }
    return context;
  }

  // The slices of the service in that cluster: emptied where a line says so, and otherwise with one endpoint less or
  // back at what the dump holds. The last change leads to the dump.
  void Endpoints(const std::vector<const InferredInput*>& inputs) {
    std::map<std::pair<std::string, std::string>, std::vector<const InferredInput*>> by_host;  // context, host
    for (const InferredInput* input : inputs) {
      if (explained_.contains(input)) continue;
      std::string context = Context(input->cluster);
      if (input->cluster.empty()) context = HomeOf(*input);
      by_host[{context, input->host}].push_back(input);
    }
    for (const auto& [where, list] : by_host) {
      const KubeChange* const slice = SliceOf(where.first, where.second);
      if (slice == nullptr || born_.contains(KeyOfObject(*slice)) || grows_.contains(KeyOfObject(*slice))) {
        out_.unused += list.size();
        continue;
      }
      const ObjectKey key = KeyOfObject(*slice);
      const json& dumped = ObjectOf(*slice);
      const bool holds = !Items(At(dumped, "endpoints")).empty();
      bool other = list.size() % 2 == 1;
      if (other) out_.stand_ins.push_back(Change(key, kNoTime, Other(dumped)));
      for (size_t i = 0; i < list.size(); ++i) {
        json now = dumped;
        if (list[i]->change == "toZero") {
          now["endpoints"] = json::array();
        } else if (i + 1 < list.size() && !other) {
          now = Other(dumped);
        }
        other = !other;
        out_.changes.push_back(Change(key, list[i]->at, now));
        Tell(list[i]->at, key, list[i]->change == "toZero" ? "was emptied" : "changed", Text(list[i]->place));
      }
      if (list.back()->change == "toZero" && holds) {
        const InferredInput* const back = NextOf(*list.back());
        const WallNs at = back == nullptr ? mesh_.to : back->at;
        out_.changes.push_back(Change(key, at, dumped));
        Tell(at, key, "got its endpoints back",
             back == nullptr ? "the dump holds them, and no line tells since when"
                             : "the dump holds them, and " + Text(back->place) + " tells of that service");
      }
    }
  }

  // The next line that says something else of the same host's endpoints, in whatever cluster they are.
  const InferredInput* NextOf(const InferredInput& emptied) const {
    for (const InferredInput& input : evidence_.inputs) {
      if (input.kind != Kind::kEndpoints || input.host != emptied.host || input.change == "toZero") continue;
      if (input.at > emptied.at) return &input;
    }
    return nullptr;
  }

  std::string HomeOf(const InferredInput& input) const {
    if (SliceOf(mesh_.primary, input.host) != nullptr) return mesh_.primary;
    for (const auto& [id, context] : mesh_.contexts) {
      if (SliceOf(context, input.host) != nullptr) return context;
    }
    return mesh_.primary;
  }
  const KubeChange* SliceOf(const std::string& context, const std::string& host) const {
    for (const auto& [key, object] : objects_) {
      if (object->kind != kSliceKind || object->cluster != context) continue;
      const std::string service =
          wavetank::Text(At(At(ObjectOf(*object), "metadata"), "labels"), "kubernetes.io/service-name");
      if (host.starts_with(fmt::format("{}.{}.svc.", service, object->ns))) return object;
    }
    return nullptr;
  }
  static json Other(json slice) {
    json& endpoints = slice["endpoints"];
    if (endpoints.size() > 1) {
      endpoints.erase(endpoints.size() - 1);
    } else {
      endpoints.push_back({{"addresses", json::array({"10.255.255.254"})}, {"conditions", {{"ready", true}}}});
    }
    return slice;
  }

  const Evidence& evidence_;
  const DumpedMesh& mesh_;
  std::map<ObjectKey, const KubeChange*> objects_;
  std::map<ObjectKey, WallNs> born_;
  std::set<ObjectKey> grows_;  // slices whose history their pods tell
  std::set<const InferredInput*> explained_;
  int gone_ = 0;
  BeforeDump out_;
};

}  // namespace

ObjectKey KeyOfObject(const KubeChange& change) { return {change.cluster, change.kind, change.ns, change.name}; }

BeforeDump InferBefore(const Evidence& evidence, const DumpedMesh& mesh) { return Backwards(evidence, mesh).Run(); }

}  // namespace wavetank::importing
