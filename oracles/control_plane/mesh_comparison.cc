#include "oracles/control_plane/mesh_comparison.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/gen/nds/name_table.h"
#include "oracles/golden/xds_json.h"

namespace wavetank::serve {
namespace {

using nlohmann::json;
using scenario::XdsSnapshot;

json NameTableToJson(std::string_view bytes) {
  const absl::StatusOr<pilot::NameTable> table = pilot::DecodeNameTable(bytes);
  if (!table.ok()) return {{"name", "names"}, {"unreadable", Message(table.status())}};
  json hosts = json::object();
  for (const auto& [host, entry] : table->hosts) {
    // A headless Service's addresses come out of a map of its slices, in no order.
    std::vector<std::string> ips = entry.ips;
    std::sort(ips.begin(), ips.end());
    hosts[host] = {
        {"ips", ips}, {"registry", entry.registry}, {"short_name", entry.short_name}, {"namespace", entry.ns}};
  }
  return {{"name", "names"}, {"hosts", std::move(hosts)}};
}

// How often an API server has written says nothing of an istiod: a real one writes more than ours (elections, for one).
void ForgetVersions(json& value) {
  if (const auto it = value.find("ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION"); it != value.end())
    *it = "its API server's";
  for (json& each : value) {
    if (each.is_structured()) ForgetVersions(each);
  }
}

// Why a parent refuses a route is told of its listeners in the order of a Go map, and so are parents that came together
// (istiod: pilot/pkg/config/kube/gateway/conversion.go, extractParentReferenceInfo; conditions.go, createRouteStatus).
void SortWhatIsOpen(json& status) {
  for (const char* list : {"parents", "ancestors"}) {
    if (const auto it = status.find(list); it != status.end() && it->is_array())
      std::sort(it->begin(), it->end(), [](const json& a, const json& b) { return JsonText(a) < JsonText(b); });
  }
  if (const auto it = status.find("message"); it != status.end() && it->is_string()) {
    std::vector<std::string> reasons = absl::StrSplit(it->get<std::string>(), "; ");
    std::sort(reasons.begin(), reasons.end());
    *it = absl::StrJoin(reasons, "; ");
  }
}
void SortAllThatIsOpen(json& value) {
  for (json& each : value) {
    if (each.is_structured()) SortAllThatIsOpen(each);
  }
  if (value.is_object()) SortWhatIsOpen(value);
}

// A resource that cannot be read as JSON stands there as what is wrong with it.
json ToArray(const std::string& kind, const XdsSnapshot::Resources& resources) {
  json out = json::array();
  for (const auto& [name, bytes] : resources) {
    if (kind == "status") {
      SortAllThatIsOpen(out.emplace_back(json::parse(*bytes)));
      continue;
    }
    if (kind == "nds") {
      out.push_back(NameTableToJson(*bytes));
      continue;
    }
    absl::StatusOr<json> resource = golden::ResourceToJson(kind, *bytes);
    if (!resource.ok()) resource = json{{"name", name}, {"unreadable", Message(resource.status())}};
    if (kind == "ecds") ForgetVersions(*resource);
    out.push_back(*std::move(resource));
  }
  return out;
}

bool SameBytes(const XdsSnapshot::Resources& a, const XdsSnapshot::Resources& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first && *x.second == *y.second;
         });
}

const XdsSnapshot::Resources& OfType(const HeldTypes& held, const std::string& kind) {
  static const auto* const kNone = new XdsSnapshot::Resources;
  const auto it = held.find(kind);
  return it == held.end() ? *kNone : it->second;
}

}  // namespace

void MeshComparison::Begin(HeldMesh real, const HeldMesh& ours) {
  real_ = std::move(real);
  ours_ = &ours;
  found_ = {};
  found_.proxies = static_cast<size_t>(
      std::count_if(ours.begin(), ours.end(), [](const auto& held) { return !held.first.starts_with(kStatusesOf); }));
  left_.clear();
  for (const auto& [proxy, held] : real_) {
    if (!ours.contains(proxy)) found_.differences.push_back({proxy, "", {{"proxy", "is there", ""}}, ""});
  }
  for (const auto& [proxy, held] : ours) {
    const auto real_one = real_.find(proxy);
    if (real_one == real_.end()) {
      found_.differences.push_back({proxy, "", {{"proxy", "", "is there"}}, ""});
      continue;
    }
    std::set<std::string> kinds;
    for (const auto& [kind, resources] : held) kinds.insert(kind);
    for (const auto& [kind, resources] : real_one->second) kinds.insert(kind);
    for (const std::string& kind : kinds) left_.emplace_back(proxy, kind);
  }
  std::reverse(left_.begin(), left_.end());
}

bool MeshComparison::Slice() {
  if (left_.empty()) return false;
  const auto [proxy, kind] = std::move(left_.back());
  left_.pop_back();
  CompareType(proxy, kind, OfType(real_.at(proxy), kind), OfType(ours_->at(proxy), kind));
  return !left_.empty();
}

void MeshComparison::CompareType(const std::string& proxy, const std::string& kind, const XdsSnapshot::Resources& real,
                                 const XdsSnapshot::Resources& ours) {
  found_.resources += ours.size();
  if (SameBytes(real, ours)) return;
  const auto before = equal_.find({proxy, kind});
  if (before != equal_.end() && SameBytes(before->second.first, real) && SameBytes(before->second.second, ours)) return;
  const json expected = ToArray(kind, real), actual = ToArray(kind, ours);
  std::vector<golden::Difference> found = golden::Compare(expected, actual, options_.max_differences);
  if (found.empty()) {
    equal_[{proxy, kind}] = {real, ours};
    return;
  }
  ProxyDifferences difference{proxy, kind, std::move(found), ""};
  if (options_.unified_diff) {
    const std::string name = proxy + "/" + kind;
    difference.unified_diff =
        golden::UnifiedDiff(JsonText(expected, 1) + "\n", JsonText(actual, 1) + "\n", "real/" + name, "ours/" + name);
  }
  found_.differences.push_back(std::move(difference));
}

}  // namespace wavetank::serve
