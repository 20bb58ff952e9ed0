#include "import/kube/kube_evidence.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/kube/credentials/kubeconfig.h"
#include "core/kube/secret.h"
#include "core/kube/text/list_text.h"
#include "core/kube/yaml.h"
#include "core/validation/istio_object.h"
#include "fakes/kube/validation/defaults.h"
#include "fakes/kube/validation/validation.h"
#include "fmt/format.h"
#include "import/kube/recordings.h"
#include "record/normaliser.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;

// As an API server writes it. kubernetes: staging/src/k8s.io/apiserver/plugin/pkg/audit/log/backend.go
constexpr std::string_view kAuditEvent = "{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/";

std::string GroupedKind(const json& object) {
  const std::string version = wavetank::Text(object, "apiVersion");
  const size_t slash = version.find('/');
  return fmt::format("{}.{}", wavetank::Text(object, "kind"), slash == version.npos ? "" : version.substr(0, slash));
}

class Reader {
 public:
  Reader(const std::string& cluster, const std::string& file, KubeEvidence& out, Refusals& refusals, size_t lines)
      : cluster_(cluster), file_(file), out_(out), refusals_(refusals), lines_(lines) {}

  template <typename Each>
  void Value(std::string_view text, bool ends, size_t line, const Each& each) {
    const json parsed = ends ? ParseJson(text) : json(json::value_t::discarded);
    if (!parsed.is_discarded()) return each(parsed, line);
    refusals_.Add(ends ? "no JSON" : "JSON that ends before its end", {file_, line}, text.substr(0, 80));
  }

  void Between(std::string_view text, size_t line) {
    refusals_.Add("text between two JSON values", {file_, line}, text.substr(0, std::min<size_t>(text.find('\n'), 80)));
  }

  // JSON values one behind the other, as `kubectl get -w` and audit logs print them; `each` gets value and line.
  template <typename Each>
  void Values(std::string_view text, const Each& each) {
    kube::EachJson(
        text, [&](std::string_view value, bool ends, size_t line) { Value(value, ends, line, each); },
        [&](std::string_view between, size_t line) { Between(between, line); });
  }

  // False: the text is no list.
  bool ListOfObjects(std::string_view text, bool ends, size_t line) {
    const std::optional<kube::ListText> list = kube::JsonList(text, ends, line);
    if (!list) return false;
    for (const kube::ListItem& item : list->items) {
      Value(item.text, item.ends, item.line, [&](const json& value, size_t at) {
        Object(kube::WithKindOf(list->head, value), at, kNoTime, false, false, 1);
      });
    }
    if (!list->separated) {
      refusals_.Add("list whose items are not parted by one comma each", {file_, line}, text.substr(0, 80));
    }
    if (!ends && (list->items.empty() || list->items.back().ends)) {
      refusals_.Add("JSON that ends before its end", {file_, line}, text.substr(0, 80));
    }
    return true;
  }
  bool YamlListOfObjects(std::string_view text, size_t line) {
    const std::optional<kube::ListText> list = kube::YamlList(text, line);
    if (!list) return false;
    for (const kube::ListItem& item : list->items) {
      const absl::StatusOr<json> value = kube::ParseYamlItem(item, file_);
      if (value.ok()) {
        Object(kube::WithKindOf(list->head, *value), item.line, kNoTime, false, false, 1);
      } else {
        refusals_.Add("no YAML", {file_, item.line}, std::string(Message(value.status())));
      }
    }
    return true;
  }

  void Objects(std::string_view text) {
    patched_ = text.find("action.kwok.x-k8s.io/") != text.npos;
    const size_t first = text.find_first_not_of(" \t\r\n");
    if (first != text.npos && (text[first] == '{' || text[first] == '[')) {
      kube::EachJson(
          text,
          [&](std::string_view one, bool ends, size_t line) {
            if (ListOfObjects(one, ends, line)) return;
            Value(one, ends, line, [&](const json& value, size_t) { Object(value, line, kNoTime, false, false, 0); });
          },
          [&](std::string_view between, size_t at) { Between(between, at); });
      return;
    }
    // YAML: documents between lines of "---".
    size_t line = 1, begin = 0, begin_line = 1;
    const auto document = [&](size_t end) {
      const std::string_view one = text.substr(begin, end - begin);
      if (one.find_first_not_of(" \t\r\n") == one.npos || YamlListOfObjects(one, begin_line)) return;
      absl::StatusOr<json> parsed = kube::ParseYaml(one, file_);
      if (!parsed.ok()) {
        refusals_.Add("no YAML", {file_, begin_line}, std::string(Message(parsed.status())));
      } else if (!parsed->is_null()) {
        Object(*parsed, begin_line, kNoTime, false, false, 0);
      }
    };
    for (size_t at = 0; at < text.size(); ++line) {
      const size_t end = std::min(text.find('\n', at), text.size());
      if (text.substr(at, 3) == "---" && (end - at == 3 || text[at + 3] == ' ' || text[at + 3] == '\r')) {
        document(at);
        begin = std::min(end + 1, text.size());
        begin_line = line + 1;
      }
      at = end + 1;
    }
    document(text.size());
  }

  // audit.k8s.io/v1: staging/src/k8s.io/apiserver/pkg/apis/audit/v1/types.go
  void Audit(std::string_view text) {
    Values(text, [&](const json& value, size_t line) { AuditValue(value, line, 0); });
  }
  // An event a line, behind what a tool or an API server's own log puts before it; one that was cut costs no other.
  void AuditLines(std::string_view text) {
    size_t line = lines_;
    for (const absl::string_view each : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
      const std::string_view one(each.data(), each.size());
      ++line;
      size_t begins = one.find(kAuditEvent);
      if (begins == one.npos) begins = one.find_first_not_of(" \t\r");
      if (begins == one.npos) continue;
      if (one[begins] != '{') {
        refusals_.Add("line that is no audit event", {file_, line}, one.substr(0, 80));
        continue;
      }
      while (begins != one.npos) {
        const size_t next = one.find(kAuditEvent, begins + 1);
        json event = ParseJson(one.substr(begins));
        // Another one may stand behind one that was cut.
        if (event.is_discarded() && next != one.npos) event = ParseJson(one.substr(begins, next - begins));
        if (!event.is_discarded()) {
          AuditValue(event, line, 0);
          break;
        }
        refusals_.Add("JSON that ends before its end", {file_, line}, one.substr(begins, 80));
        begins = next;
      }
    }
  }

  void Watch(std::string_view text) {
    WallNs last = kNoTime;
    Values(text, [&](const json& event, size_t line) {
      const std::string type = wavetank::Text(event, "type");
      const json& object = At(event, "object");
      if (type == "BOOKMARK") return;
      if (type != "ADDED" && type != "MODIFIED" && type != "DELETED") {
        return refusals_.Add("watch event of no known type", {file_, line}, type);
      }
      // A watch tells no time; what it tells of was written at the latest time that its fields' managers have.
      WallNs at = ParseWall(wavetank::Text(At(object, "metadata"), "creationTimestamp"));
      for (const json& manager : Items(At(At(object, "metadata"), "managedFields"))) {
        at = std::max(at, ParseWall(wavetank::Text(manager, "time")));
      }
      if (type == "DELETED") at = std::max(at, ParseWall(wavetank::Text(At(object, "metadata"), "deletionTimestamp")));
      at = last = std::max(at, last);
      Object(object, line, at, type == "DELETED", type == "ADDED", 0);
    });
  }

  void SimKube(std::string_view bytes) {
    ReadSimKubeTrace(bytes, file_, refusals_, [&](const RecordedWrite& write) { Recorded(write, 0); });
  }

 private:
  // An event, a list of them as webhooks get it, or as `jq -s` makes it.
  void AuditValue(const json& value, size_t line, int depth) {
    constexpr int kDeepest = 3;
    const bool list = wavetank::Text(value, "kind") == "EventList";
    if ((value.is_array() || list) && depth < kDeepest) {
      for (const json& item : Items(list ? At(value, "items") : value)) AuditValue(item, line, depth + 1);
    } else if (wavetank::Text(value, "kind") == "Event" &&
               wavetank::Text(value, "apiVersion").starts_with("audit.k8s.io/")) {
      AuditEvent(value, line);
    } else {
      refusals_.Add("JSON that is no audit event", {file_, line}, JsonText(value).substr(0, 80));
    }
  }

  void AuditEvent(const json& event, size_t line) {
    if (wavetank::Text(event, "stage") != "ResponseComplete") return;
    const std::string verb = wavetank::Text(event, "verb");
    if (verb == "deletecollection") return AuditCollection(event, line);
    const bool removes = verb == "delete";
    if (!removes && verb != "create" && verb != "update" && verb != "patch") return;
    if (const int64_t code = Number(At(event, "responseStatus"), "code", 200); code < 200 || code > 299) return;
    WallNs at = ParseWall(wavetank::Text(event, "stageTimestamp"));
    if (at == kNoTime) at = ParseWall(wavetank::Text(event, "requestReceivedTimestamp"));
    if (at == kNoTime) return refusals_.Add("audit event without a time", {file_, line});
    const json& response = At(event, "responseObject");
    const json& request = At(event, "requestObject");
    const bool whole = response.is_object() && wavetank::Text(response, "kind") != "Status";
    if (removes) {
      const json& ref = At(event, "objectRef");
      // The kind is told by the object alone; a reference has its resource.
      if (whole) return Object(response, line, at, !IsHeld(response), false, 0);
      KubeChange change;
      change.at = at;
      change.deleted = true;
      change.kind = KindOfResource(wavetank::Text(ref, "resource"), wavetank::Text(ref, "apiGroup"));
      change.ns = wavetank::Text(ref, "namespace");
      change.name = wavetank::Text(ref, "name");
      if (change.kind.empty()) {
        ++out_.unseen[wavetank::Text(ref, "resource")];
        return;
      }
      if (change.name.empty()) {
        return refusals_.Add("audit event of a deletion that names no object", {file_, line}, change.kind);
      }
      // Whether it went with that, or its grace and finalizers held it, only the object tells; pods have a grace, and
      // their kubelet deletes them when it is over (kubernetes: pkg/kubelet/status/status_manager.go, syncPod).
      const bool kubelet = wavetank::Text(At(event, "user"), "username").starts_with("system:node:");
      const bool at_once =
          kubelet || (At(request, "gracePeriodSeconds").is_number() && Number(request, "gracePeriodSeconds") == 0);
      if (change.kind == "Pod." && !at_once) {
        return refusals_.Add("audit event of a pod's deletion that does not tell whether it went at once",
                             {file_, line}, change.ns + "/" + change.name);
      }
      return Put(std::move(change), line, true);
    }
    // With the write that takes the last finalizer away it goes.
    const bool marked = !At(At(response, "metadata"), "deletionTimestamp").is_null();
    if (whole) return Object(response, line, at, marked && !IsHeld(response), verb == "create", 0);
    if (request.is_object() && request.contains("apiVersion") && verb != "patch") {
      return Object(request, line, at, false, verb == "create", 0);
    }
    // What becomes of its status alone is no news of an object that a dump holds.
    const json& ref = At(event, "objectRef");
    KubeChange change;
    change.at = at;
    change.created = verb == "create";
    change.kind = KindOfResource(wavetank::Text(ref, "resource"), wavetank::Text(ref, "apiGroup"));
    change.ns = wavetank::Text(ref, "namespace");
    change.name = wavetank::Text(ref, "name");
    change.cluster = cluster_;
    change.place = {file_, line};
    change.input_kind = request.is_null() ? "audit event of level Metadata: its object is not told"
                                          : "audit event with a patch alone: its object is not told";
    if (change.kind.empty() && request.is_null()) {
      ++out_.unseen[wavetank::Text(ref, "resource")];
    } else if (change.kind.empty() || change.name.empty() || !wavetank::Text(ref, "subresource").empty()) {
      refusals_.Add(change.input_kind, change.place);
    } else {
      out_.untold.push_back(std::move(change));
    }
  }

  // A deletion only marks what has finalizers, and a pod that has a grace. kubernetes:
  // staging/src/k8s.io/apiserver/pkg/registry/rest/delete.go, BeforeDelete; pkg/registry/generic/registry/store.go,
  // Delete, ShouldDeleteDuringUpdate
  static bool IsHeld(const json& object) {
    const json& meta = At(object, "metadata");
    // Of namespaces those that count stand in their spec.
    const bool filled =
        wavetank::Text(object, "kind") == "Namespace" && !Items(At(At(object, "spec"), "finalizers")).empty();
    return filled || !Items(At(meta, "finalizers")).empty() || Number(meta, "deletionGracePeriodSeconds") > 0;
  }

  // As the namespace controller deletes. The answer holds what was found, before it was marked; what has a grace or
  // finalizers goes by a write of its own.
  void AuditCollection(const json& event, size_t line) {
    if (const int64_t code = Number(At(event, "responseStatus"), "code", 200); code < 200 || code > 299) return;
    const json& response = At(event, "responseObject");
    const WallNs at = ParseWall(wavetank::Text(event, "stageTimestamp"));
    if (at == kNoTime) return refusals_.Add("audit event without a time", {file_, line});
    if (!At(response, "items").is_array()) {
      const json& ref = At(event, "objectRef");
      return refusals_.Add("audit event of a deleted collection: its objects are not told", {file_, line},
                           wavetank::Text(ref, "namespace") + "/" + wavetank::Text(ref, "resource"));
    }
    json gone = response;
    json& items = gone["items"];
    const bool pods = wavetank::Text(response, "kind") == "PodList";
    items.erase(std::remove_if(items.begin(), items.end(),
                               [&](const json& item) {
                                 const bool finalized = !Items(At(At(item, "metadata"), "finalizers")).empty();
                                 return finalized || (pods && !wavetank::Text(At(item, "spec"), "nodeName").empty());
                               }),
                items.end());
    Object(gone, line, at, true, false, 0);
  }

  static std::string KindOfResource(const std::string& resource, const std::string& group) {
    using namespace kube::kinds;  // NOLINT: a list of them
    for (const kube::ResourceKind& kind : {kNamespace,
                                           kNode,
                                           kPod,
                                           kService,
                                           kSecret,
                                           kConfigMap,
                                           kEndpointSlice,
                                           kube::kinds::kGateway,
                                           kVirtualService,
                                           kDestinationRule,
                                           kServiceEntry,
                                           kWorkloadEntry,
                                           kSidecar,
                                           kPeerAuthentication,
                                           kRequestAuthentication,
                                           kAuthorizationPolicy,
                                           kEnvoyFilter,
                                           kProxyConfig,
                                           kTelemetry,
                                           kWasmPlugin}) {
      if (kind.resource == resource && kind.group == group) return fmt::format("{}.{}", kind.kind, kind.group);
    }
    return {};
  }

  void Object(const json& value, size_t line, WallNs at, bool deleted, bool created, int depth) {
    constexpr int kDeepest = 4;
    // Kinds of objects end so, too; a list has no name.
    const bool list = wavetank::Text(value, "kind").ends_with("List") && At(value, {"metadata", "name"}).is_null();
    if (value.is_array() || list) {
      if (depth >= kDeepest) return refusals_.Add("lists in too many lists", {file_, line});
      for (const json& item : Items(value.is_array() ? value : At(value, "items"))) {
        Object(kube::WithKindOf(value, item), line, at, deleted, created, depth + 1);
      }
      return;
    }
    if (KwokRecording::Is(value)) {
      return kwok_.Patch(value, {file_, line}, refusals_, [&](const RecordedWrite& write) { Recorded(write, line); });
    }
    if (wavetank::Text(value, "kind") == "Event") return Event(value, line);
    if (patched_ && at == kNoTime) kwok_.Add(value);
    One(value, line, at, deleted, created);
  }

  // core/v1 and events.k8s.io/v1. kubernetes: staging/src/k8s.io/api/core/v1/types.go, Event
  void Event(const json& value, size_t line) {
    KubeEvidence::Event event;
    const json& about = At(value, "involvedObject").is_object() ? At(value, "involvedObject") : At(value, "regarding");
    event.cluster = cluster_;
    event.kind = wavetank::Text(about, "kind");
    event.ns = wavetank::Text(about, "namespace");
    event.name = wavetank::Text(about, "name");
    event.reason = wavetank::Text(value, "reason");
    event.message = wavetank::Text(value, At(value, "message").is_string() ? "message" : "note");
    event.component = wavetank::Text(At(value, "source"), "component", wavetank::Text(value, "reportingComponent"));
    for (const char* field : {"firstTimestamp", "deprecatedFirstTimestamp", "eventTime", "lastTimestamp"}) {
      if (event.at == kNoTime) event.at = ParseWall(wavetank::Text(value, field));
    }
    event.count = std::max<int64_t>(Number(value, "count", 1), 1);
    event.place = {file_, line};
    if (event.at == kNoTime || event.name.empty())
      return refusals_.Add("Event without a time or an object", {file_, line});
    out_.events.push_back(std::move(event));
  }

  void Recorded(const RecordedWrite& write, size_t line) {
    One(write.object, line, write.at, write.deleted, write.created);
  }

  // What no API server has: somebody has changed it. What istiod's webhook alone refuses may have come past it, or be
  // of another release's, and istiod reads it.
  bool Refused(const json& value, size_t line) {
    const std::string name = wavetank::Text(At(value, "metadata"), "name");
    if (const std::string why = validation::WhyInvalid(value); !why.empty()) {
      refusals_.Add("object that istiod's webhook refuses; it is taken as it is", {file_, line}, name + ": " + why);
    }
    // Of Secrets people cut out what they hold.
    if (wavetank::Text(value, "kind") == "Secret" || fakekube::Validate(value, nullptr).ok()) return false;
    json whole = value;  // of manifests, which leave out what an API server fills in
    fakekube::SetDefaults(whole);
    const absl::Status status = fakekube::Validate(whole, nullptr);
    if (status.ok()) return false;
    refusals_.Add("object that an API server refuses", {file_, line}, std::string(Message(status)));
    return true;
  }

  // Of a remote Secret: what is no text is no kubeconfig, either.
  static bool IsCutOut(const json& value) {
    std::string plain;
    if (kube::IsCutOut(value) || !absl::Base64Unescape(value.get<std::string>(), &plain)) return true;
    const bool text = std::none_of(plain.begin(), plain.end(), [](char c) {
      return static_cast<unsigned char>(c) >= 0x80 || (c < ' ' && c != '\n' && c != '\t' && c != '\r');
    });
    return !text;
  }

  // A remote Secret whose kubeconfigs were cut out: that there was one for a cluster is told all the same.
  static std::optional<json> WithKubeconfigs(const json& secret) {
    if (wavetank::Text(secret, "kind") != "Secret" ||
        wavetank::Text(At(At(secret, "metadata"), "labels"), "istio/multiCluster") != "true")
      return std::nullopt;
    const auto kubeconfig = [](const std::string& cluster) {
      return absl::Base64Escape(
          kube::RenderKubeConfig({cluster, "https://" + cluster + ".example:6443", "", "imported-" + cluster}));
    };
    json out = secret;
    bool cut = false;
    for (const auto& [cluster, value] : At(secret, "data").items()) {
      if (!IsCutOut(value)) continue;
      out["data"][cluster] = kubeconfig(cluster);
      cut = true;
    }
    const std::string told = wavetank::Text(At(At(secret, "metadata"), "annotations"), "networking.istio.io/cluster");
    if (At(secret, "data").empty() && At(secret, "stringData").empty() && !told.empty()) {
      out["data"] = {{told, kubeconfig(told)}};
      cut = true;
    }
    if (!cut) return std::nullopt;
    return out;
  }

  static void Pack(KubeChange& pod) {
    const json& object = At(pod.body, "object");
    json outline = {{"metadata", At(object, "metadata")}};
    outline["metadata"].erase("annotations");
    for (const auto& [part, field] : {std::pair("spec", "serviceAccountName"), std::pair("status", "podIP")}) {
      if (const json& value = At(object, {part, field}); !value.is_null()) outline[part] = {{field, value}};
    }
    pod.packed = PackedJson(pod.body);
    pod.body = {{"object", std::move(outline)}};
  }

  void One(const json& value, size_t line, WallNs at, bool deleted, bool created) {
    absl::StatusOr<kube::ObjectRef> object = kube::Object::FromJson(value);
    if (!object.ok()) {
      return refusals_.Add("no object of Kubernetes", {file_, line}, std::string(Message(object.status())));
    }
    for (const char* part : {"spec", "status", "data"}) {
      const json& has = At(value, part);
      if (!has.is_null() && !has.is_object()) {
        return refusals_.Add("object whose " + std::string(part) + " is none, as no API server has it", {file_, line},
                             GroupedKind(value) + " " + (*object)->meta.ns + "/" + (*object)->meta.name);
      }
    }
    if (at == kNoTime) WhoseIsIt(value, **object, line);
    record::Normalised normalised = record::Normalise(**object, {.keep_secrets = out_.keep_secrets});
    if (normalised.kind.empty()) {
      ++out_.unseen[(*object)->kind];
      return;
    }
    if (at == kNoTime && Refused(value, line)) return;  // what an API server was told it has judged
    KubeChange change;
    change.at = at;
    change.deleted = deleted;
    change.created = created;
    change.kind = GroupedKind(value);
    change.ns = (*object)->meta.ns;
    change.name = (*object)->meta.name;
    change.input_kind = std::move(normalised.kind);
    if (!deleted) change.body = std::move(normalised.body);
    if (change.kind == "Pod." && !deleted) Pack(change);
    if (const std::optional<json> whole = WithKubeconfigs(value); whole && !deleted) {
      const absl::StatusOr<kube::ObjectRef> made = kube::Object::FromJson(*whole);
      if (made.ok()) change.with_kubeconfigs = record::Normalise(**made, {}).body;
    }
    Put(std::move(change), line, at != kNoTime);
  }

  // kubernetes: pkg/registry/core/namespace/storage (system namespaces are never deleted: plugin/pkg/admission/
  // namespace/lifecycle), pkg/controlplane/controller/kubernetesservice.
  void WhoseIsIt(const json& value, const kube::Object& object, size_t line) {
    const std::string what = GroupedKind(value) + "/" + object.meta.ns + "/" + object.meta.name;
    const std::string uid = wavetank::Text(At(value, "metadata"), "uid");
    if (uid.empty()) return;
    if (what != "Namespace.//kube-system" && what != "Namespace.//default" && what != "Service./default/kubernetes") {
      return;
    }
    const auto [known, fresh] = out_.marks.try_emplace({cluster_, what}, uid, Place{file_, line});
    if (fresh || known->second.first == uid || out_.mixed) return;
    const bool service = object.meta.ns == "default";
    out_.mixed = {cluster_,
                  service ? "Service default/kubernetes" : "Namespace " + object.meta.name,
                  known->second.second,
                  {file_, line}};
  }

  void Put(KubeChange change, size_t line, bool history) {
    change.cluster = cluster_;
    change.place = {file_, line};
    (history ? out_.history : out_.state).push_back(std::move(change));
  }

  const std::string& cluster_;
  const std::string& file_;
  KubeEvidence& out_;
  Refusals& refusals_;
  const size_t lines_;    // of the file, before the text
  bool patched_ = false;  // the file is a recording of KWOK's: patches of its objects follow
  KwokRecording kwok_;
};

using UntoldKey = std::tuple<std::string, std::string, std::string, std::string>;
UntoldKey KeyOf(const KubeChange& change) { return {change.cluster, change.kind, change.ns, change.name}; }

bool HasLine(std::string_view head, std::string_view beginning) {
  for (size_t at = head.find(beginning); at != head.npos; at = head.find(beginning, at + 1)) {
    if (at == 0 || head[at - 1] == '\n') return true;
  }
  return false;
}

// An API server writes a line for each event; others may have formatted them, or put them into a list.
KubeFile AuditForm(std::string_view head) {
  if (head[0] != '{') return head[0] == '[' ? KubeFile::kAudit : KubeFile::kAuditLines;
  const size_t end = head.find('\n');
  const bool whole = end != head.npos && wavetank::Text(ParseJson(head.substr(0, end)), "kind") == "Event";
  return whole ? KubeFile::kAuditLines : KubeFile::kAudit;
}

}  // namespace

KubeFile KindOfKubeFile(std::string_view head) {
  if (LooksLikeSimKubeTrace(head)) return KubeFile::kSimKube;
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first == head.npos) return KubeFile::kNone;
  head.remove_prefix(first);
  if (const std::string_view line = head.substr(0, head.find('\n'));
      line.find("LAST SEEN") != line.npos && line.find("REASON") != line.npos && line.find("OBJECT") != line.npos) {
    return KubeFile::kEventTable;
  }
  if (head.front() == '{' || head.front() == '[') {
    if (head.find("\"audit.k8s.io/") != head.npos) return AuditForm(head);
    if (head.find("\"apiVersion\"") == head.npos && head.find("\"items\"") == head.npos) return KubeFile::kNone;
    const std::string_view start = head.substr(0, 300);
    const bool typed = start.find("\"type\"") != start.npos && start.find("\"object\"") != start.npos;
    return typed && (start.find("\"ADDED\"") != start.npos || start.find("\"MODIFIED\"") != start.npos ||
                     start.find("\"DELETED\"") != start.npos)
               ? KubeFile::kWatch
               : KubeFile::kObjects;
  }
  if (head.find(kAuditEvent) != head.npos) return KubeFile::kAuditLines;
  return HasLine(head, "apiVersion:") && HasLine(head, "kind:")    ? KubeFile::kObjects
         : HasLine(head, "apiVersion:") && HasLine(head, "items:") ? KubeFile::kObjects
                                                                   : KubeFile::kNone;
}

uint64_t TakeUntoldFromDumps(KubeEvidence& evidence, Refusals& refusals) {
  std::map<UntoldKey, const KubeChange*> dumped;
  for (const KubeChange& change : evidence.state) dumped[KeyOf(change)] = &change;
  std::map<UntoldKey, WallNs> last;  // that history tells
  for (const KubeChange& change : evidence.history) {
    WallNs& at = last.try_emplace(KeyOf(change), kNoTime).first->second;
    at = std::max(at, change.at);
  }
  uint64_t taken = 0;
  for (KubeChange& change : evidence.untold) {
    const auto object = dumped.find(KeyOf(change));
    const auto later = last.find(KeyOf(change));
    if (object == dumped.end() || (later != last.end() && later->second > change.at)) {
      refusals.Add(change.input_kind, change.place, change.kind + " " + change.ns + "/" + change.name);
      continue;
    }
    change.input_kind = object->second->input_kind;
    change.body = object->second->body;
    change.packed = object->second->packed;
    evidence.history.push_back(std::move(change));
    ++taken;
  }
  evidence.untold.clear();
  return taken;
}

uint64_t TakeSecretsForReadable(KubeEvidence& evidence) {
  uint64_t taken = 0;
  for (std::vector<KubeChange>* changes : {&evidence.state, &evidence.history}) {
    for (KubeChange& change : *changes) {
      if (change.with_kubeconfigs.is_null()) continue;
      change.body = std::move(change.with_kubeconfigs);
      change.with_kubeconfigs = nullptr;
      ++taken;
    }
  }
  return taken;
}

void ReadKubeFile(KubeFile kind, std::string_view text, const std::string& cluster, const std::string& file,
                  KubeEvidence& out, Refusals& refusals, size_t lines) {
  Reader reader(cluster, file, out, refusals, lines);
  switch (kind) {
    case KubeFile::kObjects:
      return reader.Objects(text);
    case KubeFile::kAudit:
      return reader.Audit(text);
    case KubeFile::kAuditLines:
      return reader.AuditLines(text);
    case KubeFile::kWatch:
      return reader.Watch(text);
    case KubeFile::kSimKube:
      return reader.SimKube(text);
    case KubeFile::kEventTable:
      return refusals.Add("table of events, which tells ages and no times: take `kubectl get events -A -o json`",
                          {file, 0});
    case KubeFile::kNone:
      return;
  }
}

}  // namespace wavetank::importing
