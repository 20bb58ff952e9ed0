#include "import/kube/recordings.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "core/base/json_access.h"
#include "fmt/format.h"
#include "import/kube/msgpack.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;
using wavetank::Text;  // of JSON; a Place has one of its own

constexpr int64_t kMostSeconds = 9'000'000'000;  // that nanoseconds since 1970 can hold

// Field `index` of a struct that was written as a list of its fields, or `name` of one that was written as a map.
const json& FieldOf(const json& of, size_t index, std::string_view name) {
  if (of.is_object()) return At(of, name);
  return of.is_array() && index < of.size() ? of[index] : Null();
}

// "pods" of kind Pod, "networkpolicies", "gatewayclasses". Enough to find an object again by what a patch calls it.
std::string PluralOf(std::string kind) {
  std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) { return std::tolower(c); });
  if (kind.ends_with("y") && !kind.ends_with("ay")) return kind.substr(0, kind.size() - 1) + "ies";
  if (kind.ends_with("s")) return kind + "es";
  return kind + "s";
}

// Whether a strategic merge of it is a plain merge: lists of objects are merged by keys that only the types tell.
bool IsPlainMerge(const json& patch) {
  if (patch.is_array())
    return std::none_of(patch.begin(), patch.end(), [](const json& item) { return item.is_object(); });
  if (!patch.is_object()) return true;
  for (const auto& [key, value] : patch.items()) {
    if (key.starts_with("$") || !IsPlainMerge(value)) return false;
  }
  return true;
}

}  // namespace

bool LooksLikeSimKubeTrace(std::string_view head) {
  if (head.size() < 3) return false;
  const auto first = static_cast<uint8_t>(head[0]), second = static_cast<uint8_t>(head[1]);
  // The fields version, config, events, index, pod_lifecycles, since version 3 also initial_state.
  if (first == 0x95 || first == 0x96) return second >= 1 && second <= 0x7f;
  return (first == 0x85 || first == 0x86) && head.substr(1).starts_with("\xa7version");
}

// simkube: sk-store/src/trace.rs, ExportedTrace; sk-core/src/event.rs, TraceEvent
void ReadSimKubeTrace(std::string_view bytes, const std::string& file, Refusals& refusals, const OnWrite& each) {
  const std::optional<json> trace = ParseMsgPack(bytes);
  if (!trace) return refusals.Add("SimKube trace that is no whole MessagePack", {file, 0});
  const json& events = FieldOf(*trace, 2, "events");
  if (!events.is_array()) return refusals.Add("SimKube trace without events", {file, 0});
  for (const json& object : Items(FieldOf(*trace, 5, "initial_state"))) each({kNoTime, false, false, object});
  for (const json& event : events) {
    const json& ts = FieldOf(event, 0, "ts");
    const int64_t seconds = NumberOf(ts, -1);
    if (seconds < 0 || seconds > kMostSeconds) {
      refusals.Add("event of a SimKube trace without a time", {file, 0});
      continue;
    }
    const WallNs at = seconds * 1'000'000'000;
    for (const json& object : Items(FieldOf(event, 1, "applied_objs"))) each({at, false, false, object});
    for (const json& object : Items(FieldOf(event, 2, "deleted_objs"))) each({at, true, false, object});
  }
}

bool KwokRecording::Is(const json& document) {
  return Text(document, "kind") == "ResourcePatch" && Text(document, "apiVersion").starts_with("action.kwok.x-k8s.io/");
}

void KwokRecording::Add(const json& object) {
  const std::string version = Text(object, "apiVersion");
  const size_t slash = version.find('/');
  const json& meta = At(object, "metadata");
  begins_ = std::max(begins_, ParseWall(Text(meta, "creationTimestamp")));
  objects_[fmt::format("{}|{}|{}|{}", slash == version.npos ? "" : version.substr(0, slash),
                       PluralOf(Text(object, "kind")), Text(meta, "namespace"), Text(meta, "name"))] = object;
}

// kwok: pkg/apis/action/v1alpha1/resource_patch_types.go
void KwokRecording::Patch(const json& document, const Place& place, Refusals& refusals, const OnWrite& each) {
  const json& resource = At(document, "resource");
  const json& target = At(document, "target");
  const std::string key = fmt::format("{}|{}|{}|{}", Text(resource, "group"), Text(resource, "resource"),
                                      Text(target, "namespace"), Text(target, "name"));
  const std::string method = Text(document, "method");
  const int64_t after = Number(document, "durationNanosecond", -1);
  const json& given = At(document, "template");
  if (begins_ == kNoTime) begins_ = ParseWall(Text(At(given, "metadata"), "creationTimestamp"));
  if (begins_ == kNoTime) begins_ = 0;
  if (after < 0 || after > kMostSeconds * 1'000'000'000 - std::max<WallNs>(begins_, 0)) {
    return refusals.Add("ResourcePatch without a time", place);
  }
  const WallNs at = begins_ + after;
  if (method == "create") {
    if (!given.is_object()) return refusals.Add("ResourcePatch without a template", place);
    objects_[key] = given;
    return each({at, false, true, given});
  }
  const auto it = objects_.find(key);
  if (it == objects_.end()) return refusals.Add("ResourcePatch of an object that nothing tells of", place, key);
  if (method == "delete") {
    each({at, true, false, it->second});
    objects_.erase(it);
  } else if (method != "patch" || !given.is_object()) {
    refusals.Add("ResourcePatch of no known method", place, method);
  } else if (!IsPlainMerge(given)) {
    refusals.Add("ResourcePatch that merges lists by their types' keys: its object is not known any more", place, key);
  } else {
    it->second.merge_patch(given);
    each({at, false, false, it->second});
  }
}

}  // namespace wavetank::importing
