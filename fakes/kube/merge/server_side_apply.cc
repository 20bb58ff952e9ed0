#include "fakes/kube/merge/server_side_apply.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/kube/list_types.h"
#include "fakes/kube/merge/field_set.h"
#include "fakes/kube/objects/annotations.h"
#include "fakes/kube/objects/api_error.h"

namespace wavetank::fakekube {
namespace {

using kube::ListType;
using nlohmann::json;

constexpr const char* kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr std::string_view kBefore = "before-first-apply";
constexpr std::string_view kClientSideApply = "kubectl-client-side-apply";
constexpr std::string_view kKubectl = "kubectl";

struct Entry {
  std::string manager, operation, api_version, time, subresource;
  FieldSet fields;

  bool Is(const FieldManager& other, std::string_view by) const {
    return manager == other.name && operation == by && subresource == other.subresource;
  }
  // As messages name it (managedfields: internal/conflict.go).
  std::string Shown() const {
    std::string out = fmt::format("\"{}\"", manager);
    if (!subresource.empty()) out += fmt::format(" with subresource \"{}\"", subresource);
    if (operation != "Update") return out;
    out += " using " + api_version;
    return time.empty() ? out : out + " at " + time;
  }
};

std::vector<Entry> ReadEntries(const json& object) {
  std::vector<Entry> out;
  for (const json& entry : Items(At(object, {"metadata", "managedFields"}))) {
    out.push_back({Text(entry, "manager"), Text(entry, "operation"), Text(entry, "apiVersion"), Text(entry, "time"),
                   Text(entry, "subresource"), FieldSet::FromJson(At(entry, "fieldsV1"))});
  }
  return out;
}

// The oldest writers' entries become one for each version, so that ten of writers are left (managedfields:
// internal/capmanagers.go).
constexpr size_t kMaxWriters = 10;
constexpr std::string_view kAncient = "ancient-changes";

void MergeOldest(std::vector<Entry>& entries) {
  std::vector<Entry*> writers;
  for (Entry& entry : entries) {
    if (entry.operation == "Update" && !entry.fields.empty()) writers.push_back(&entry);
  }
  size_t left = writers.size();
  if (left <= kMaxWriters) return;
  std::stable_sort(writers.begin(), writers.end(), [](const Entry* a, const Entry* b) {
    return std::tie(a->time, a->manager) < std::tie(b->time, b->manager);
  });
  std::map<std::string, Entry*> ancient;  // by version: the first of it, which takes the others
  for (Entry* entry : writers) {
    if (left <= kMaxWriters) break;
    const auto [first, opened] = ancient.emplace(entry->api_version, entry);
    if (opened) continue;
    Entry& bucket = *first->second;
    bucket.manager = kAncient;
    bucket.subresource.clear();
    bucket.fields.Add(entry->fields);
    bucket.time = entry->time;
    entry->fields = FieldSet();
    --left;
  }
}

void WriteEntries(json& object, std::vector<Entry> entries) {
  // Applies first, then by time (managedfields: internal/managedfields.go, sortEncodedManagedFields).
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    if (a.operation != b.operation) return a.operation < b.operation;
    if (a.time != b.time) return a.time < b.time;
    return a.manager < b.manager;
  });
  json out = json::array();
  for (const Entry& entry : entries) {
    if (entry.fields.empty()) continue;
    json written = {{"manager", entry.manager},
                    {"operation", entry.operation},
                    {"apiVersion", entry.api_version},
                    {"fieldsType", "FieldsV1"},
                    {"fieldsV1", entry.fields.ToJson()}};
    if (!entry.time.empty()) written["time"] = entry.time;
    if (!entry.subresource.empty()) written["subresource"] = entry.subresource;
    out.push_back(std::move(written));
  }
  object["metadata"]["managedFields"] = std::move(out);
}

// Who managed what before the first apply of an object: what the annotation of client-side apply says is that apply's,
// as if its write had been tracked, so that kubectl finds its own fields when a user moves to server-side apply
// (client-go: util/csaupgrade). The rest is nobody's in particular.
std::vector<Entry> BeforeFirstApply(const json& live, const json& last, const MergeType& schema) {
  const std::string api_version = Text(live, "apiVersion"), since = Text(At(live, "metadata"), "creationTimestamp");
  FieldSet rest = FieldSet::Of(live, schema);
  std::vector<Entry> out;
  if (!last.is_null()) {
    FieldSet applied = FieldSet::Of(last, schema);
    applied.Insert({"f:metadata", "f:annotations", fmt::format("f:{}", kLastApplied)});
    rest.Subtract(applied);
    out.push_back({std::string(kClientSideApply), "Update", api_version, since, "", std::move(applied)});
  }
  out.push_back({std::string(kBefore), "Update", api_version, since, "", std::move(rest)});
  return out;
}

class Merger {
 public:
  // Every list that merges by keys or values has them, and each once.
  static absl::Status Check(const json& applied, const MergeType& type, const std::string& path) {
    if (applied.is_object() && !type.IsAtomicMapping()) {
      for (const auto& [name, value] : applied.items()) {
        if (absl::Status status = Check(value, type.Field(name), path + "." + name); !status.ok()) return status;
      }
    }
    if (!applied.is_array()) return absl::OkStatus();
    const MergeType::List list = type.AsList();
    if (list.how == ListType::Merge::kAtomic) return absl::OkStatus();
    if (absl::Status status = CheckKeys(applied, list, path); !status.ok()) return status;
    const MergeType of_item = type.Element();
    for (const json& item : applied) {
      if (!item.is_object()) continue;
      const std::string at = path + PathText({ElementOf(item, list)});
      for (const auto& [name, value] : item.items()) {
        if (absl::Status status = Check(value, of_item.Field(name), at + "." + name); !status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  // What was checked.
  static void Merge(json& live, const json& applied, const MergeType& type) {
    if (live.is_object() && applied.is_object() && !type.IsAtomicMapping()) {
      for (const auto& [name, value] : applied.items()) Merge(live[name], value, type.Field(name));
      return;
    }
    const MergeType::List list = applied.is_array() ? type.AsList() : MergeType::List();
    if (list.how == ListType::Merge::kAtomic || !live.is_array()) {
      live = applied;
    } else {
      MergeList(live, applied, type, list);
    }
  }

 private:
  // structured-merge-diff: typed/helpers.go, keyedAssociativeListItemToPathElement(), typed/validate.go.
  static absl::Status CheckKeys(const json& applied, const MergeType::List& list, const std::string& path) {
    std::set<std::string> seen;
    for (size_t i = 0; list.how == ListType::Merge::kMap && i < applied.size(); ++i) {
      for (const auto& [key, otherwise] : list.keys) {
        if (applied[i].is_object() && (applied[i].contains(key) || !otherwise.is_null())) continue;
        return BadRequest(fmt::format(
            "failed to create typed patch object: {}: element {}: associative list with keys has an element that omits "
            "key field \"{}\" (and doesn't have default value)",
            path, i, key));
      }
    }
    for (const json& item : applied) {
      const std::string name = ElementOf(item, list);
      if (seen.insert(name).second) continue;
      return BadRequest(
          fmt::format("failed to create typed patch object: {}: duplicate entries for key {}", path, PathText({name})));
    }
    return absl::OkStatus();
  }

  // Shared and new elements in the applied order, those of others before what they stood before.
  static void MergeList(json& live, const json& applied, const MergeType& type, const MergeType::List& list) {
    std::map<std::string, size_t> places;
    for (size_t i = 0; i < live.size(); ++i) places.emplace(ElementOf(live[i], list), i);
    std::map<size_t, bool> shared;
    for (const json& item : applied) {
      if (const auto it = places.find(ElementOf(item, list)); it != places.end()) shared[it->second] = true;
    }
    json out = json::array();
    size_t next = 0;  // in `live`
    const auto others_until = [&](size_t end) {
      for (; next < end; ++next) {
        if (shared.count(next) == 0) out.push_back(live[next]);
      }
    };
    for (const json& item : applied) {
      const auto it = places.find(ElementOf(item, list));
      if (it == places.end()) {
        out.push_back(item);
        continue;
      }
      others_until(it->second);
      json merged = live[it->second];
      if (merged.is_object() && item.is_object()) {
        const MergeType of_item = type.Element();
        for (const auto& [name, value] : item.items()) Merge(merged[name], value, of_item.Field(name));
      } else {
        merged = item;
      }
      out.push_back(std::move(merged));
    }
    others_until(live.size());
    live = std::move(out);
  }
};

// What kubectl applied becomes what client-side apply says it applied, where that has left its annotation: who goes
// back to it finds what to remove (managedfields: internal/lastappliedupdater.go).
void SayLastApplied(json& merged, json applied) {
  if (TextOf(At(merged, {"metadata", "annotations", kLastApplied})).empty()) return;
  if (At(applied, {"metadata", "annotations"}).is_object()) applied["metadata"]["annotations"].erase(kLastApplied);
  // As Go's encoder writes it.
  const std::string text =
      absl::StrReplaceAll(JsonText(applied) + "\n", {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}});
  json& annotations = merged["metadata"]["annotations"];
  annotations[kLastApplied] = text;
  if (AnnotationsBytes(annotations) > kMaxAnnotationsBytes) annotations.erase(kLastApplied);
}

MergeType TypeOf(const GroupKind& kind, const json* schema) {
  const bool own = KubernetesOwn(kind);
  return MergeType(own ? kind.kind : std::string_view(), own ? nullptr : schema);
}

struct Conflict {
  const Entry* with;
  FieldSet::Path path;
};

absl::Status ConflictsError(const std::vector<Conflict>& conflicts) {
  json causes = json::array();
  std::map<std::string, std::vector<std::string>> by_manager;
  for (const Conflict& conflict : conflicts) {
    const std::string shown = conflict.with->Shown(), path = PathText(conflict.path);
    causes.push_back({{"reason", "FieldManagerConflict"}, {"message", "conflict with " + shown}, {"field", path}});
    by_manager[shown].push_back(path);
  }
  std::string message;
  if (conflicts.size() == 1) {
    message = fmt::format("Apply failed with 1 conflict: conflict with {}: {}", conflicts[0].with->Shown(),
                          PathText(conflicts[0].path));
  } else {
    std::vector<std::string> lines;
    for (const auto& [manager, paths] : by_manager) {
      lines.push_back(fmt::format("conflicts with {}:", manager));
      for (const std::string& path : paths) lines.push_back("- " + path);
    }
    message = fmt::format("Apply failed with {} conflicts: {}", conflicts.size(), fmt::join(lines, "\n"));
  }
  return MakeApiError({409, "Conflict", message, {{"causes", std::move(causes)}}});
}

// The members of `of` (what an object says) whose values in `before` and `after` differ. An element of a list is only
// there or not: its fields are members themselves.
FieldSet Differing(const FieldSet& of, const json& before, const json& after) {
  FieldSet out;
  of.ForEach([&](const FieldSet::Path& path) {
    const json *old = ValueAt(before, path), *now = ValueAt(after, path);
    const bool both = old != nullptr && now != nullptr;
    if (both ? path.back().starts_with("f:") && *old != *now : old != now) out.Insert(path);
  });
  return out;
}

}  // namespace

bool HasManagedFields(const json& object) { return !Items(At(object, {"metadata", "managedFields"})).empty(); }

bool WasApplied(const json& object) {
  const json& entries = Items(At(object, {"metadata", "managedFields"}));
  return std::any_of(entries.begin(), entries.end(),
                     [](const json& entry) { return Text(entry, "operation") == "Apply"; });
}

void TrackCreation(json& object, const GroupKind& kind, const FieldManager& manager) {
  json said = object;
  said.erase("status");
  const MergeType type = TypeOf(kind, manager.schema);
  FieldSet fields = FieldSet::Of(said, type);
  fields.Add(FieldSet::Holders(said, type));
  std::vector<Entry> entries;
  entries.push_back(
      {manager.name, "Update", Text(object, "apiVersion"), manager.now, manager.subresource, std::move(fields)});
  WriteEntries(object, std::move(entries));
  if (Items(At(object, {"metadata", "managedFields"})).empty()) object["metadata"].erase("managedFields");
}

absl::StatusOr<json> ServerSideApply(const json& live, const json& applied, const GroupKind& kind,
                                     const FieldManager& manager, bool force) {
  if (!applied.is_object()) return BadRequest("error decoding YAML: the configuration is no object");
  if (!Items(At(applied, {"metadata", "managedFields"})).empty())
    return BadRequest("metadata.managedFields must be nil");
  const MergeType schema = TypeOf(kind, manager.schema);
  const FieldSet now = FieldSet::Of(applied, schema);

  json last = live.is_object() ? ParseJson(TextOf(At(live, {"metadata", "annotations", kLastApplied}))) : json();
  if (!last.is_object()) last = nullptr;
  std::vector<Entry> entries = live.is_object() ? ReadEntries(live) : std::vector<Entry>();
  if (live.is_object() && entries.empty()) entries = BeforeFirstApply(live, last, schema);
  json merged = live.is_object() ? live : json::object();
  if (absl::Status status = Merger::Check(applied, schema, ""); !status.ok()) return status;
  Merger::Merge(merged, applied, schema);

  // What client-side apply wrote, kubectl may take over (managedfields: internal/lastappliedmanager.go).
  if (manager.name != kKubectl) last = nullptr;
  const FieldSet changed = Differing(now, live.is_object() ? live : json::object(), merged);
  std::vector<Conflict> conflicts;
  for (Entry& entry : entries) {
    if (entry.Is(manager, "Apply")) continue;
    FieldSet taken;
    changed.ForEach([&](const FieldSet::Path& path) {
      // A list's element or a mapping that is there stays there: only what others say of it can be taken.
      if (!entry.fields.Has(path)) return;
      const json *of_annotation = last.is_null() ? nullptr : ValueAt(last, path), *current = ValueAt(live, path);
      const bool own = of_annotation != nullptr && current != nullptr && *of_annotation == *current;
      if (force || own) {
        taken.Insert(path);
      } else {
        conflicts.push_back({&entry, path});
      }
    });
    entry.fields.Subtract(taken);
  }
  if (!conflicts.empty()) return ConflictsError(conflicts);

  // Dropped by this manager, and nobody else's.
  const auto mine =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.Is(manager, "Apply"); });
  if (mine != entries.end()) {
    FieldSet dropped = mine->fields;
    dropped.Subtract(now);
    std::vector<FieldSet::Path> gone;
    dropped.ForEach([&](const FieldSet::Path& path) {
      if (path.empty() || now.Reaches(path)) return;
      const bool others = std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
        return &entry != &*mine && entry.fields.Reaches(path);
      });
      if (!others) gone.push_back(path);
    });
    for (const FieldSet::Path& path : gone) EraseAt(merged, path);
  }
  const std::string api_version = Text(applied, "apiVersion");
  if (mine == entries.end()) {
    entries.push_back({manager.name, "Apply", api_version, manager.now, manager.subresource, now});
  } else if (!(mine->fields == now) || merged != live) {
    mine->fields = now;
    mine->time = manager.now;
    mine->api_version = api_version;
  }
  WriteEntries(merged, std::move(entries));
  if (manager.name == kKubectl) SayLastApplied(merged, applied);
  return merged;
}

void TrackUpdate(const json& before, json& after, const GroupKind& kind, const FieldManager& manager) {
  const MergeType type = TypeOf(kind, manager.schema);
  const json& said = At(after, {"metadata", "managedFields"});
  if (said.is_array() && (said.empty() || (said.size() == 1 && said[0].is_object() && said[0].empty()))) {
    after["metadata"].erase("managedFields");
    return;
  }
  std::vector<Entry> entries = ReadEntries(after);
  if (entries.empty()) entries = ReadEntries(before);
  if (entries.empty()) {
    json last = ParseJson(TextOf(At(before, {"metadata", "annotations", kLastApplied})));
    if (!last.is_object()) last = nullptr;
    entries = BeforeFirstApply(before, last, type);
  }
  const FieldSet old = FieldSet::Of(before, type), now = FieldSet::Of(after, type);
  FieldSet changed = Differing(now, before, after);
  FieldSet had = FieldSet::Holders(before, type), has = FieldSet::Holders(after, type), lost = old;
  lost.Subtract(now);
  lost.Add(had);
  has.Subtract(had);
  changed.Add(has);
  // An empty mapping that something was put into is still there.
  FieldSet gone;
  lost.ForEach([&](const FieldSet::Path& path) {
    if (ValueAt(after, path) == nullptr) gone.Insert(path);
  });
  auto mine = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.Is(manager, "Update"); });
  if (mine == entries.end() && !changed.empty()) {
    entries.push_back({manager.name, "Update", Text(after, "apiVersion"), manager.now, manager.subresource, {}});
    mine = entries.end() - 1;
  }
  for (Entry& entry : entries) {
    entry.fields.Subtract(gone);
    if (mine == entries.end() || &entry != &*mine) {
      entry.fields.Subtract(changed);
    } else if (!changed.empty()) {
      entry.fields.Add(changed);
      entry.time = manager.now;
    }
  }
  MergeOldest(entries);
  WriteEntries(after, std::move(entries));
}

}  // namespace wavetank::fakekube
