#include "import/skeleton/history.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "absl/strings/escaping.h"
#include "core/base/json_access.h"
#include "core/kube/credentials/kubeconfig.h"
#include "fmt/format.h"
#include "import/skeleton/parts.h"

namespace wavetank::importing {

using Kind = InputKind;

namespace {

using nlohmann::json;

constexpr WallNs kSecondNs = 1'000'000'000;
constexpr const char* kNetworkLabel = "topology.istio.io/network";
constexpr const char* kServiceLabel = "kubernetes.io/service-name";
constexpr const char* kSliceKind = "EndpointSlice.discovery.k8s.io";
constexpr const char* kEntryKind = "ServiceEntry.networking.istio.io";
constexpr std::string_view kMadeUp = "-imported";  // a slice's name, behind its Service's (parts.cc)

const json& ObjectOf(const KubeChange& change) { return At(change.body, "object"); }
const json& LabelsOf(const json& object) { return At(At(object, "metadata"), "labels"); }
WallNs CreatedAt(const KubeChange& change) {
  return ParseWall(wavetank::Text(At(ObjectOf(change), "metadata"), "creationTimestamp"));
}
bool IsEmpty(const json& slice) { return Items(At(slice, "endpoints")).empty(); }

std::string GroupedKindOf(const json& object) {
  const std::string version = wavetank::Text(object, "apiVersion");
  const size_t slash = version.find('/');
  return wavetank::Text(object, "kind") + "." + (slash == version.npos ? "" : version.substr(0, slash));
}
// Of a kind without its group, as deletions of a skeleton have it.
std::string GroupedKindOf(const std::string& kind) {
  if (kind == "EndpointSlice") return kSliceKind;
  if (kind == "ServiceEntry" || kind == "WorkloadEntry") return kind + ".networking.istio.io";
  return kind + ".";
}
// Whose changes istiod names with its debouncer, and whose deletion looks like any change.
bool IsConfig(const std::string& kind) {
  return kind.ends_with(".istio.io") && kind != kEntryKind && !kind.starts_with("WorkloadEntry.");
}

const json& FirstIngress(const json& service) {
  static const json kNone;
  const json& list = Items(At(At(At(service, "status"), "loadBalancer"), "ingress"));
  return list.empty() ? kNone : list[0];
}

class Backwards {
 public:
  Backwards(const Evidence& evidence, const Skeleton& logs, const DumpedMesh& mesh) : evidence_(evidence), mesh_(mesh) {
    for (const KubeChange* object : mesh.objects) {
      objects_[KeyOfObject(*object)] = object;
      kinds_.emplace(object->cluster, object->kind);
    }
    for (const InferredInput& input : evidence.inputs) places_.try_emplace(input.at, &input.place);
    ReadLogs(logs);
  }

  BeforeDump Run() {
    for (const auto& [key, turns] : turns_) {
      const auto& [context, kind, ns, name] = key;
      if (!IsDumped(context)) {
        AsLogsMadeIt(key, turns);
      } else if (kind == kSliceKind) {
        Slices(key, turns);
      } else if (kind == "Pod.") {
        Pod(key, turns);
      } else {
        Object(key, turns);
      }
    }
    Creations();
    GrowingSlices();
    std::stable_sort(out_.changes.begin(), out_.changes.end(),
                     [](const KubeChange& a, const KubeChange& b) { return a.at < b.at; });
    std::sort(out_.told.begin(), out_.told.end());
    return std::move(out_);
  }

 private:
  // One thing that logs say of an object. Null: it goes.
  struct Turn {
    WallNs at = 0;
    bool first_picture = false;
    json object;
  };
  using Turns = std::vector<Turn>;

  bool IsDumped(const std::string& context) const {
    return std::any_of(mesh_.contexts.begin(), mesh_.contexts.end(),
                       [&](const auto& entry) { return entry.second == context; });
  }
  bool HasKind(const std::string& context, const std::string& kind) const { return kinds_.contains({context, kind}); }
  const KubeChange* Dumped(const ObjectKey& key) const {
    const auto it = objects_.find(key);
    return it == objects_.end() ? nullptr : it->second;
  }
  std::string ClusterId(const std::string& context) const {
    for (const auto& [id, its] : mesh_.contexts) {
      if (its == context) return id;
    }
    return context;
  }

  void ReadLogs(const Skeleton& logs) {
    for (const replay::LogInput& input : logs.inputs) {
      if (input.kind != "apply" && input.kind != "delete") continue;
      const std::string cluster = wavetank::Text(input.body, "cluster");
      const auto known = mesh_.contexts.find(cluster);
      const std::string& context = known == mesh_.contexts.end() ? cluster : known->second;
      Turn turn;
      turn.first_picture = input.at == logs.world.start;
      turn.at = turn.first_picture ? kNoTime : logs.begins + (input.at - logs.world.start).count();
      ObjectKey key{context, "", wavetank::Text(input.body, "namespace"), wavetank::Text(input.body, "name")};
      if (input.kind == "apply") {
        turn.object = At(input.body, "object");
        const json& metadata = At(turn.object, "metadata");
        key = {context, GroupedKindOf(turn.object), wavetank::Text(metadata, "namespace"),
               wavetank::Text(metadata, "name")};
      } else {
        std::get<1>(key) = GroupedKindOf(wavetank::Text(input.body, "kind"));
      }
      key = Counterpart(key, turn.object);
      if (std::get<1>(key).empty() || mesh_.told.contains(key)) continue;
      turns_[key].push_back(std::move(turn));
    }
  }

  // The dump's object that the logs' one stands for; the key itself where there is none, and an empty one for what the
  // dump makes needless.
  ObjectKey Counterpart(ObjectKey key, const json& made) const {
    // Not by a structured binding, which lambdas may not use in C++20 as Clang reads it.
    const std::string &context = std::get<0>(key), &kind = std::get<1>(key), &ns = std::get<2>(key),
                      &name = std::get<3>(key);
    if (!IsDumped(context) || Dumped(key) != nullptr) return key;
    const auto first = [&](const std::string& of_kind, auto&& fits) {
      for (const auto& [other, object] : objects_) {
        if (std::get<0>(other) == context && std::get<1>(other) == of_kind && fits(*object)) return other;
      }
      return ObjectKey();
    };
    const auto or_itself = [&](ObjectKey found) { return std::get<1>(found).empty() ? key : found; };
    if (kind == kSliceKind) {
      std::string service = wavetank::Text(LabelsOf(made), kServiceLabel);
      if (service.empty() && name.ends_with(kMadeUp)) service = name.substr(0, name.size() - kMadeUp.size());
      return or_itself(first(kind, [&](const KubeChange& object) {
        return object.ns == ns && wavetank::Text(LabelsOf(ObjectOf(object)), kServiceLabel) == service;
      }));
    }
    if (kind == "Pod." && ns == kSystemNamespace && name == "istiod-0") {
      return or_itself(first(kind, [&](const KubeChange& object) {
        return object.ns == ns && wavetank::Text(LabelsOf(ObjectOf(object)), "app") == "istiod";
      }));
    }
    if (kind == "Service." && !wavetank::Text(LabelsOf(made), kNetworkLabel).empty()) {
      const auto of_nodes = [](const json& service) {
        return !wavetank::Text(At(At(service, "metadata"), "annotations"), "traffic.istio.io/nodeSelector").empty();
      };
      return or_itself(first(kind, [&](const KubeChange& object) {
        const json& service = ObjectOf(object);
        return !wavetank::Text(LabelsOf(service), kNetworkLabel).empty() && of_nodes(service) == of_nodes(made);
      }));
    }
    if (kind == "Node.") {
      return or_itself(first(kind, [](const KubeChange&) { return true; }));
    }
    if (kind == kEntryKind) {
      const json& hosts = Items(At(At(made, "spec"), "hosts"));
      const std::string host = hosts.empty() ? name : TextOf(hosts[0]);
      return or_itself(first(kind, [&](const KubeChange& object) {
        for (const json& its : Items(At(At(ObjectOf(object), "spec"), "hosts"))) {
          if (TextOf(its) == host) return true;
        }
        return false;
      }));
    }
    // What any cluster has: as the dump has it, or not.
    if ((kind == "Namespace." || (ns == kSystemNamespace && name == "istiod")) && HasKind(context, kind)) return {};
    return key;
  }

  void Tell(WallNs at, const ObjectKey& key, std::string_view what, std::string_view source) {
    const auto& [context, kind, ns, name] = key;
    out_.told.push_back(fmt::format("{}  {} {}{} in {} {}  ({})", FormatWall(at), kind.substr(0, kind.find('.')),
                                    ns.empty() ? "" : ns + "/", name, context, what, source));
  }
  // The line that told of it.
  std::string Source(WallNs at) const {
    const auto it = places_.find(at);
    return it == places_.end() ? "logs" : Text(*it->second);
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

  void AsLogsMadeIt(const ObjectKey& key, const Turns& turns) {
    for (const Turn& turn : turns) {
      if (turn.first_picture) {
        out_.stand_ins[key] = Change(key, kNoTime, turn.object);
      } else {
        out_.changes.push_back(Change(key, turn.at, turn.object));
      }
    }
  }

  // A pod of the dump was there all the time, or since its creation: its proxy's streams came and went. Another one was
  // there as lines tell of its proxy, and is gone when the dump is made.
  void Pod(const ObjectKey& key, const Turns& turns) {
    const KubeChange* const dumped = Dumped(key);
    const bool istiod = dumped != nullptr && wavetank::Text(LabelsOf(ObjectOf(*dumped)), "app") == "istiod";
    if (dumped != nullptr && !istiod) return;
    if (istiod) {
      for (const Turn& turn : turns) {
        if (turn.first_picture) continue;
        if (turn.object.is_null()) {
          out_.changes.push_back(Change(key, turn.at, nullptr));
          Tell(turn.at, key, "began anew", Source(turn.at));
        } else {
          out_.changes.push_back(AsDumped(*dumped, turn.at));
        }
      }
      return;
    }
    AsLogsMadeIt(key, turns);
    for (const Turn& turn : turns) {
      if (!turn.first_picture) Tell(turn.at, key, turn.object.is_null() ? "went" : "appeared", Source(turn.at));
    }
    if (!turns.back().object.is_null() && HasKind(std::get<0>(key), "Pod.")) {
      out_.changes.push_back(Change(key, mesh_.to, nullptr));
      Tell(mesh_.to, key, "went", "the dump lacks it, and no line tells since when");
    }
  }

  // The object as it was when logs made it `made`, which they made `last` in the end.
  json AsItWas(const ObjectKey& key, const json& dumped, const json& made, const json& last) const {
    const std::string& kind = std::get<1>(key);
    json out = dumped;
    if (kind == "Service.") {
      const json& ip = At(FirstIngress(made), "ip");
      if (ip.is_null()) {
        if (!FirstIngress(last).is_null()) out.erase("status");
      } else if (ip != At(FirstIngress(last), "ip")) {
        out["status"]["loadBalancer"]["ingress"] = json::array({{{"ip", ip}}});
      }
      if (At(At(made, "spec"), "ports") != At(At(last, "spec"), "ports")) {
        out["spec"]["ports"].push_back(
            {{"name", "tcp-imported"}, {"port", 64'000}, {"targetPort", 64'000}, {"protocol", "TCP"}});
      }
      return out;
    }
    if (kind == kEntryKind) {
      if (At(made, "spec") != At(last, "spec")) {
        out["spec"]["ports"].push_back({{"name", "tcp-imported"}, {"number", 64'000}, {"protocol", "TCP"}});
      }
      return out;
    }
    if (kind == "ConfigMap.") {
      for (const auto& [name, text] : At(made, "data").items()) out["data"][name] = text;
      return out;
    }
    if (kind == "Namespace.") {
      out["metadata"]["labels"][kNetworkLabel] = wavetank::Text(LabelsOf(made), kNetworkLabel);
      return out;
    }
    if (kind == "Node.") {
      out["status"]["addresses"] = At(At(made, "status"), "addresses");
      return out;
    }
    return made;
  }

  // Few dumps hold what Secrets do (people cut it out, or write something else in its place); that istiod could read a
  // cluster's kubeconfig in it, lines say.
  static json WithKubeconfigs(json secret, const json& made) {
    const auto readable = [](const json& text) {
      std::string plain;
      return absl::Base64Unescape(TextOf(text), &plain) && kube::ParseKubeConfig(plain, "kubeconfig").ok();
    };
    for (const auto& [name, text] : At(made, "data").items()) {
      if (readable(text) && !readable(At(At(secret, "data"), name))) secret["data"][name] = text;
    }
    return secret;
  }

  // Another one of the kind, which differs in what istiod looks at.
  static json Otherwise(const ObjectKey& key, json made) {
    const auto& [context, kind, ns, name] = key;
    if (kind == "Service." && !FirstIngress(made).is_null()) {
      made["status"]["loadBalancer"]["ingress"][0] = {{"ip", "172.30.9.254"}};
    } else if (kind == "Service." || kind == kEntryKind) {
      made["spec"]["ports"].push_back({{"name", "tcp-imported"}, {"port", 64'000}, {"number", 64'000}});
    } else if (IsConfig(kind)) {
      made = ConfigObject(kind.substr(0, kind.find('.')), ns, name, 0);
    }
    return made;
  }

  void Object(const ObjectKey& key, const Turns& told) {
    const auto& [context, kind, ns, name] = key;
    const KubeChange* const dumped = Dumped(key);
    Turns turns = told;
    const bool changes = !turns.back().first_picture;
    // Before the first line of it: a line of configuration does not tell whether it was there, nor one of gateways.
    if (!turns.front().first_picture && !turns.front().object.is_null()) {
      const WallNs created = dumped == nullptr ? kNoTime : CreatedAt(*dumped);
      const bool old = created != kNoTime && created + 2 * kSecondNs < turns.front().at;
      const bool gateway = !wavetank::Text(LabelsOf(turns.front().object), kNetworkLabel).empty();
      if (IsConfig(kind) ? old || created == kNoTime : kind == "Service." && gateway && old) {
        turns.insert(turns.begin(), {kNoTime, true, Otherwise(key, turns.front().object)});
      }
    }
    if (dumped == nullptr) {
      if (!changes && kind == "Service." && HasKind(context, kind)) return;  // of another cluster
      // A line does not tell a change from the end.
      const bool whole = HasKind(context, kind) || (HasKind(context, "Pod.") && HasKind(context, "Namespace."));
      const bool ends = IsConfig(kind) || ((kind == "Service." || kind == kEntryKind) && whole);
      if (ends && changes && turns.size() > 1 && !turns[turns.size() - 2].object.is_null()) {
        turns.back().object = nullptr;
      }
      if (const json* const gateway = kind == "Service." ? GatewayElsewhere(key) : nullptr; gateway != nullptr) {
        const bool has_address = std::any_of(turns.begin(), turns.end(),
                                             [](const Turn& turn) { return !FirstIngress(turn.object).is_null(); });
        for (Turn& turn : turns) {
          if (!turn.object.is_null()) turn.object = GatewayAsElsewhere(key, *gateway, turn.object, has_address);
        }
      }
    }
    bool exists = false;
    json last;
    for (const Turn& turn : turns) {
      if (!turn.object.is_null()) last = turn.object;
    }
    if (dumped != nullptr && !changes) {
      // As the dump has it.
      if (kind != "Secret.") return;
      out_.stand_ins[key] = Change(key, kNoTime, WithKubeconfigs(ObjectOf(*dumped), turns.back().object));
      return;
    }
    if (dumped != nullptr && !turns.front().first_picture) out_.not_yet.insert(key);
    for (size_t i = 0; i < turns.size(); ++i) {
      const Turn& turn = turns[i];
      const bool as_dumped = dumped != nullptr && i + 1 == turns.size() && !turn.object.is_null();
      KubeChange change;
      if (as_dumped) {
        change = AsDumped(*dumped, turn.at);
        if (kind == "Secret.") change.body["object"] = WithKubeconfigs(ObjectOf(*dumped), turn.object);
      } else if (turn.object.is_null() || dumped == nullptr) {
        change = Change(key, turn.at, turn.object);
      } else {
        change = Change(key, turn.at, AsItWas(key, ObjectOf(*dumped), turn.object, last));
      }
      if (turn.first_picture) {
        out_.stand_ins[key] = std::move(change);
      } else {
        const std::string_view what = turn.object.is_null() ? "was deleted" : exists ? "changed" : "appeared";
        if (exists || !turn.object.is_null()) {
          Tell(turn.at, key, what, Source(turn.at));
          out_.changes.push_back(std::move(change));
        }
      }
      exists = !turn.object.is_null();
    }
    // Something that the dump holds, and that is said to have gone: it came back, unless the dump is of before that.
    const WallNs born = dumped == nullptr ? kNoTime : CreatedAt(*dumped);
    if (dumped != nullptr && !exists && (born == kNoTime || born > turns.back().at)) {
      out_.changes.push_back(AsDumped(*dumped, mesh_.to));
      Tell(mesh_.to, key, "appeared", "the dump holds it, and no line tells since when");
    }
  }

  // The Service of that name in another cluster's dump, if it is an east-west gateway.
  const json* GatewayElsewhere(const ObjectKey& key) const {
    for (const auto& [other, object] : objects_) {
      if (std::get<1>(other) != "Service." || object->ns != std::get<2>(key) || object->name != std::get<3>(key))
        continue;
      if (!wavetank::Text(LabelsOf(ObjectOf(*object)), kNetworkLabel).empty()) return &ObjectOf(*object);
    }
    return nullptr;
  }
  // As the other cluster has it, for its own cluster's network, at an address that nobody has.
  json GatewayAsElsewhere(const ObjectKey& key, const json& elsewhere, const json& made, bool has_address) const {
    const std::string& context = std::get<0>(key);
    json out = made;
    out["metadata"] = At(elsewhere, "metadata");
    out["spec"]["type"] = "LoadBalancer";
    out["spec"]["ports"] = At(At(elsewhere, "spec"), "ports");
    if (!has_address) {
      const auto position = std::distance(mesh_.contexts.begin(), mesh_.contexts.find(ClusterId(context)));
      out["status"] = At(GatewayService(std::get<3>(key), 0, static_cast<int>(position) + 1), "status");
    }
    const KubeChange* const system = Dumped({context, "Namespace.", "", kSystemNamespace});
    const std::string network =
        system == nullptr ? std::string() : wavetank::Text(LabelsOf(ObjectOf(*system)), kNetworkLabel);
    out["metadata"]["labels"][kNetworkLabel] = network.empty() ? "network-of-" + ClusterId(context) : network;
    return out;
  }

  WallNs BirthOf(const KubeChange& slice, const json& endpoint) const {
    const json& target = At(endpoint, "targetRef");
    const KubeChange* const pod =
        Dumped({slice.cluster, "Pod.", wavetank::Text(target, "namespace", slice.ns), wavetank::Text(target, "name")});
    return pod == nullptr ? kNoTime : CreatedAt(*pod);
  }

  // Of a pod that the dump lacks and that came before one it holds: of the same account, so that a change of endpoints
  // is that alone.
  json Predecessor(const KubeChange& slice, json endpoint) {
    const json& target = At(endpoint, "targetRef");
    const std::string ns = wavetank::Text(target, "namespace", slice.ns), name = wavetank::Text(target, "name");
    const std::string address = "10.255.255.253";
    const ObjectKey key{slice.cluster, "Pod.", ns, name + std::string(kMadeUp)};
    if (const KubeChange* const pod = Dumped({slice.cluster, "Pod.", ns, name}); pod != nullptr) {
      const std::string account = wavetank::Text(At(ObjectOf(*pod), "spec"), "serviceAccountName", "default");
      out_.stand_ins.try_emplace(key, Change(key, kNoTime, WorkloadPod(ns, std::get<3>(key), address, account)));
      endpoint["targetRef"]["name"] = std::get<3>(key);
      endpoint["targetRef"].erase("uid");
    }
    endpoint["addresses"] = json::array({address});
    return endpoint;
  }

  // A service's slice: empty, with endpoints or not there, as the logs have it; with those pods of the dump that had
  // been created by then. Where two versions would be the same, one has an endpoint of nobody besides.
  void Slices(const ObjectKey& key, const Turns& turns) {
    const KubeChange* const dumped = Dumped(key);
    if (dumped == nullptr) return AsLogsMadeIt(key, turns);
    if (turns.back().first_picture) return;  // nothing is told of it but that it was there
    grows_.insert(key);
    const json& slice = ObjectOf(*dumped);
    Turns out = turns;
    const bool holds = !IsEmpty(slice);
    const json* after = nullptr;
    for (size_t i = out.size(); i-- > 0;) {
      json& made = out[i].object;
      if (made.is_null()) {
        after = nullptr;
        continue;
      }
      json now = slice;
      if (IsEmpty(made)) {
        now["endpoints"] = json::array();
      } else if (i + 1 < out.size()) {
        now["endpoints"] = json::array();
        for (const json& endpoint : Items(At(slice, "endpoints"))) {
          const WallNs born = BirthOf(*dumped, endpoint);
          if (born == kNoTime || out[i].first_picture ? born == kNoTime || born < mesh_.from + kSecondNs
                                                      : born <= out[i].at)
            now["endpoints"].push_back(endpoint);
        }
        if (IsEmpty(now) && holds) now["endpoints"].push_back(Predecessor(*dumped, Items(At(slice, "endpoints"))[0]));
      }
      if (!IsEmpty(made) && (IsEmpty(now) || (after != nullptr && *after == now))) {
        now["endpoints"].push_back({{"addresses", json::array({"10.255.255.254"})}, {"conditions", {{"ready", true}}}});
      }
      made = std::move(now);
      after = &made;
    }
    if (!out.front().first_picture) out_.not_yet.insert(key);
    bool exists = false;
    for (const Turn& turn : out) {
      if (turn.first_picture) {
        out_.stand_ins[key] = Change(key, kNoTime, turn.object);
      } else if (exists || !turn.object.is_null()) {
        out_.changes.push_back(Change(key, turn.at, turn.object));
        Tell(turn.at, key,
             turn.object.is_null()  ? "was deleted"
             : IsEmpty(turn.object) ? "was emptied"
             : exists               ? "changed"
                                    : "appeared",
             Source(turn.at));
      }
      exists = !turn.object.is_null();
    }
    if (out.back().object == slice || !holds) return;
    // A dump that says something else than the last line, and no line tells since when: it is of before that line, or
    // of after the log.
    const InferredInput* const back = NextOf(*dumped, out.back().at);
    if (back == nullptr) return;
    out_.changes.push_back(AsDumped(*dumped, back->at));
    Tell(back->at, key, "got its endpoints back",
         "the dump holds them, and " + Text(back->place) + " tells of that service");
  }

  // The first line behind `after` that says something else than that there are none of endpoints of the slice's
  // service, in whatever cluster they are: of those that one burst merges, lines name one. Not before its pods came.
  const InferredInput* NextOf(const KubeChange& slice, WallNs after) const {
    WallNs born = INT64_MAX;
    for (const json& endpoint : Items(At(ObjectOf(slice), "endpoints")))
      born = std::min(born, BirthOf(slice, endpoint));  // kNoTime is the least
    const std::string host =
        fmt::format("{}.{}.svc.", wavetank::Text(LabelsOf(ObjectOf(slice)), kServiceLabel), slice.ns);
    for (const InferredInput& input : evidence_.inputs) {
      if (input.kind != Kind::kEndpoints || !input.host.starts_with(host) || input.change == "toZero") continue;
      if (!input.initial && input.at > after && input.at >= born) return &input;
    }
    return nullptr;
  }

  // A creation time has whole seconds; what istiod sees comes with a push, whose burst may tell which of them it was.
  WallNs InABurst(WallNs created, WallNs within) const {
    for (const Claim& claim : evidence_.claims) {
      if (claim.kind != ClaimKind::kPush || claim.initial || claim.events < 2) continue;
      if (claim.last_event >= created && claim.last_event <= created + within) return claim.last_event;
    }
    return created;
  }

  // Objects that are younger than the evidence's beginning, and of which no line tells.
  void Creations() {
    for (const auto& [key, object] : objects_) {
      const WallNs created = CreatedAt(*object);
      if (created == kNoTime || created < mesh_.from + kSecondNs || created > mesh_.to) continue;
      // Whoever came before it; a mesh without an istiod shows nothing.
      if (object->kind == "Pod." && wavetank::Text(LabelsOf(ObjectOf(*object)), "app") == "istiod") continue;
      if (object->kind == "Namespace.") continue;
      born_[key] = created;
      if (out_.not_yet.contains(key) || grows_.contains(key)) continue;
      const auto turns = turns_.find(key);
      if (turns != turns_.end() && !turns->second.back().first_picture && object->kind != "Pod.") continue;
      const bool pushes = object->kind == "Service." || object->kind == kEntryKind;
      if (pushes) born_[key] = InABurst(created, 2 * kSecondNs);
      if (object->kind == kSliceKind) continue;  // with its endpoints
      out_.not_yet.insert(key);
      out_.changes.push_back(AsDumped(*object, born_[key]));
      Tell(born_[key], key, "appeared", "its creationTimestamp");
    }
  }

  // A slice had no endpoint of a pod that was not there yet.
  void GrowingSlices() {
    for (const auto& [key, object] : objects_) {
      if (object->kind != kSliceKind || grows_.contains(key)) continue;
      const json& slice = ObjectOf(*object);
      std::map<WallNs, std::vector<size_t>> joins;
      const json& endpoints = Items(At(slice, "endpoints"));
      const auto born = born_.find(key);
      for (size_t i = 0; i < endpoints.size(); ++i) {
        const json& target = At(endpoints[i], "targetRef");
        const auto pod = born_.find(
            {object->cluster, "Pod.", wavetank::Text(target, "namespace", object->ns), wavetank::Text(target, "name")});
        // Ready a second after its creation at the earliest.
        if (pod != born_.end()) joins[InABurst(pod->second + kSecondNs, 30 * kSecondNs)].push_back(i);
      }
      if (joins.empty() && born == born_.end()) continue;
      json now = slice;
      now["endpoints"] = json::array();
      std::set<size_t> late;
      for (const auto& [at, list] : joins) late.insert(list.begin(), list.end());
      for (size_t i = 0; i < endpoints.size(); ++i) {
        if (!late.contains(i)) now["endpoints"].push_back(endpoints[i]);
      }
      WallNs last = INT64_MIN;
      if (born != born_.end()) {
        last = InABurst(born->second, 2 * kSecondNs);
        out_.not_yet.insert(key);
        out_.changes.push_back(Change(key, last, now));
        Tell(last, key, "appeared", "its creationTimestamp");
      } else {
        out_.stand_ins[key] = Change(key, kNoTime, now);
      }
      for (const auto& [at, list] : joins) {
        for (const size_t i : list) now["endpoints"].push_back(endpoints[i]);
        last = std::max(at, last);
        out_.changes.push_back(Change(key, last, now));
        Tell(last, key, fmt::format("got {} endpoints", list.size()), "its pods' creationTimestamps");
      }
    }
  }

  const Evidence& evidence_;
  const DumpedMesh& mesh_;
  std::map<ObjectKey, const KubeChange*> objects_;
  std::set<std::pair<std::string, std::string>> kinds_;  // context and kind: the dump holds some
  std::map<WallNs, const Place*> places_;
  std::map<ObjectKey, Turns> turns_;
  std::map<ObjectKey, WallNs> born_;
  std::set<ObjectKey> grows_;  // slices that lines tell of
  BeforeDump out_;
};

}  // namespace

ObjectKey KeyOfObject(const KubeChange& change) { return {change.cluster, change.kind, change.ns, change.name}; }

BeforeDump InferBefore(const Evidence& evidence, const Skeleton& logs, const DumpedMesh& mesh) {
  return Backwards(evidence, logs, mesh).Run();
}

}  // namespace wavetank::importing
