#include "cli/install/manifest_diff.h"

#include <re2/re2.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/tables/yaml_text.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/kube/yaml.h"
#include "fmt/format.h"

namespace wavetank::cli {
namespace {

using nlohmann::json;

// As Go prints with %v what a YAML reader made.
std::string GoValue(const json& value) {
  if (value.is_null()) return "<nil>";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    std::vector<std::string> items;
    for (const json& item : value) items.push_back(GoValue(item));
    return "[" + absl::StrJoin(items, " ") + "]";
  }
  if (value.is_object()) {
    std::vector<std::string> members;
    for (const auto& [key, item] : value.items()) members.push_back(key + ":" + GoValue(item));
    return "map[" + absl::StrJoin(members, " ") + "]";
  }
  return JsonText(value);
}

bool Empty(const json* value) {
  if (value == nullptr || value->is_null()) return true;
  if (value->is_string()) return value->get_ref<const std::string&>().empty();
  return value->is_structured() && value->empty();
}

// Equal and unequal leaves of two trees, as a reporter would count them.
struct Tally {
  int same = 0, different = 0;
  bool similar() const { return same + 1 >= different; }
};

class Comparison {
 public:
  json tree;  // null as long as nothing differs
  void Compare(const json* a, const json* b) {
    if (a != nullptr && b != nullptr && a->is_object() && b->is_object()) return CompareMaps(*a, *b);
    if (a != nullptr && b != nullptr && a->is_array() && b->is_array()) return CompareLists(*a, *b);
    if (a != nullptr && b != nullptr && *a == *b) {
      ++tally.same;
      return;
    }
    ++tally.different;
    Report(a, b);
  }
  Tally tally;

 private:
  void Report(const json* a, const json* b) {
    const bool gone = Empty(b), came = Empty(a);
    if (gone && came) return;
    const std::string text = gone   ? GoValue(*a) + " -> <empty> (REMOVED)"
                             : came ? "<empty> -> " + GoValue(*b) + " (ADDED)"
                                    : GoValue(*a) + " -> " + GoValue(*b);
    json* at = &tree;
    for (const std::string& step : path_) {
      if (!at->is_object()) *at = json::object();
      at = &(*at)[step];
    }
    *at = text;
  }

  void Step(std::string step, const json* a, const json* b) {
    path_.push_back(std::move(step));
    Compare(a, b);
    path_.pop_back();
  }

  void CompareMaps(const json& a, const json& b) {
    std::set<std::string> keys;
    for (const json* map : {&a, &b}) {
      for (const auto& [key, value] : map->items()) keys.insert(key);
    }
    for (const std::string& key : keys) {
      const auto in_a = a.find(key), in_b = b.find(key);
      Step(key, in_a == a.end() ? nullptr : &*in_a, in_b == b.end() ? nullptr : &*in_b);
    }
  }

  static bool Similar(const json& a, const json& b) {
    Comparison inner;
    inner.Compare(&a, &b);
    return inner.tally.similar();
  }

  // No list of an installation is so long; the least edit would take the square of it.
  static constexpr size_t kMostPairs = 250'000;
  void CompareInOrder(const json& a, const json& b) {
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i)
      Step(fmt::format("[#{}]", i), i < a.size() ? &a[i] : nullptr, i < b.size() ? &b[i] : nullptr);
  }

  // The least edit of one list into the other. Items that are more alike than not count as changed ones, not as one
  // that went and one that came.
  void CompareLists(const json& a, const json& b) {
    enum class Edit : uint8_t { kNone, kPair, kGone, kCame };
    const size_t n = a.size(), m = b.size();
    if (n * m > kMostPairs) return CompareInOrder(a, b);
    std::vector<std::vector<int>> cost(n + 1, std::vector<int>(m + 1));
    std::vector<std::vector<Edit>> edit(n + 1, std::vector<Edit>(m + 1, Edit::kNone));
    for (size_t i = n + 1; i-- > 0;) {
      for (size_t j = m + 1; j-- > 0;) {
        if (i == n && j == m) continue;
        int best = i < n ? cost[i + 1][j] + 1 : 1 << 30;
        Edit by = Edit::kGone;
        if (j < m && cost[i][j + 1] + 1 < best) best = cost[i][j + 1] + 1, by = Edit::kCame;
        if (i < n && j < m) {
          const bool same = a[i] == b[j];
          if (same || Similar(a[i], b[j])) {
            const int pair = cost[i + 1][j + 1] + (same ? 0 : 1);
            if (pair <= best) best = pair, by = Edit::kPair;
          }
        }
        cost[i][j] = best;
        edit[i][j] = by;
      }
    }
    for (size_t i = 0, j = 0; i < n || j < m;) {
      switch (edit[i][j]) {
        case Edit::kPair:
          Step(i == j ? fmt::format("[#{}]", i) : fmt::format("[{}->{}]", i, j), &a[i], &b[j]);
          ++i, ++j;
          break;
        case Edit::kGone:
          Step(fmt::format("[{}->?]", i), &a[i], nullptr);
          ++i;
          break;
        default:
          Step(fmt::format("[?->{}]", j), nullptr, &b[j]);
          ++j;
      }
    }
  }

  std::vector<std::string> path_;
};

// The texts of a ConfigMap that are mappings themselves, as such.
void UnfoldData(json& object) {
  if (Text(object, "kind") != "ConfigMap" || !At(object, "data").is_object()) return;
  for (auto& [key, value] : object["data"].items()) {
    if (!value.is_string()) continue;
    const absl::StatusOr<json> inner = kube::ParseYaml(value.get<std::string>(), key);
    if (inner.ok() && inner->is_object()) value = *inner;
  }
}

// KIND:NAMESPACE:NAME as istioctl reads it: each part a regular expression, "" and "*" fit all; found anywhere in the
// key, as istioctl's is.
absl::StatusOr<std::unique_ptr<RE2>> ReadPattern(std::string_view option, std::string_view text) {
  std::vector<std::string> parts =
      absl::StrSplit(absl::StripAsciiWhitespace(absl::string_view(text.data(), text.size())), ':');
  for (std::string& part : parts) {
    if (part.empty() || part == "*") part = ".*";
  }
  auto pattern = std::make_unique<RE2>(absl::StrJoin(parts, ":"), RE2::Quiet);
  if (!pattern->ok()) {
    return absl::InvalidArgumentError(
        fmt::format("--{}: '{}' is no pattern ({}); write KIND:NAMESPACE:NAME, parts of which may be left out", option,
                    text, pattern->error()));
  }
  return pattern;
}

struct Selector {
  std::unique_ptr<RE2> objects;
  std::string path;  // of an ignored one; empty: all of it
};

absl::StatusOr<std::vector<Selector>> ReadSelectors(std::string_view option, const std::string& list) {
  std::vector<Selector> out;
  for (const absl::string_view one : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    std::vector<std::string> parts = absl::StrSplit(one, absl::MaxSplits(':', 3));
    Selector selector;
    if (parts.size() == 4) selector.path = parts.back();
    if (parts.size() == 4) parts.pop_back();
    absl::StatusOr<std::unique_ptr<RE2>> pattern = ReadPattern(option, absl::StrJoin(parts, ":"));
    if (!pattern.ok()) return pattern.status();
    selector.objects = *std::move(pattern);
    out.push_back(std::move(selector));
  }
  return out;
}

absl::StatusOr<ManifestObjects> Renamed(ManifestObjects objects, const std::string& list) {
  for (const absl::string_view one : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    const std::vector<std::string> sides = absl::StrSplit(one, "->");
    const std::vector<std::string> to = absl::StrSplit(sides.back(), ':');
    if (sides.size() != 2 || to.size() != 3) {
      return absl::InvalidArgumentError(
          fmt::format("--rename: '{}' is no renaming; write KIND:NAMESPACE:NAME->KIND:NAMESPACE:NAME",
                      std::string_view(one.data(), one.size())));
    }
    absl::StatusOr<std::unique_ptr<RE2>> from = ReadPattern("rename", sides.front());
    if (!from.ok()) return from.status();
    ManifestObjects renamed;
    for (auto& [key, object] : objects) {
      std::vector<std::string> name = absl::StrSplit(key, ':');
      if (RE2::PartialMatch(key, **from)) {
        for (size_t i = 0; i < name.size() && i < to.size(); ++i) {
          if (!to[i].empty() && to[i] != "*") name[i] = to[i];
        }
      }
      renamed[absl::StrJoin(name, ":")] = std::move(object);
    }
    objects = std::move(renamed);
  }
  return objects;
}

ManifestObjects Filtered(const ManifestObjects& objects, const std::vector<Selector>& select,
                         const std::vector<Selector>& ignore) {
  ManifestObjects out;
  const auto fits = [](const std::string& key, const Selector& s) { return RE2::PartialMatch(key, *s.objects); };
  for (const auto& [name, object] : objects) {
    const std::string& key = name;
    const bool selected = std::any_of(select.begin(), select.end(), [&](const auto& s) { return fits(key, s); });
    // One with a path takes the object away as well, as 1.18.2 has it.
    const bool ignored = std::any_of(ignore.begin(), ignore.end(), [&](const auto& s) { return fits(key, s); });
    if (selected && !ignored) out.emplace(key, object);
  }
  return out;
}

// Changed paths as a tree whose leaves say "OLD -> NEW"; null if nothing differs.
json DiffObjects(json a, json b) {
  UnfoldData(a);
  UnfoldData(b);
  Comparison comparison;
  comparison.Compare(&a, &b);
  return std::move(comparison.tree);
}

}  // namespace

absl::StatusOr<std::string> DiffManifests(const ManifestObjects& a, const ManifestObjects& b,
                                          const ManifestDiffOptions& options) {
  absl::StatusOr<std::vector<Selector>> select = ReadSelectors("select", options.select);
  if (!select.ok()) return select.status();
  absl::StatusOr<std::vector<Selector>> ignore = ReadSelectors("ignore", options.ignore);
  if (!ignore.ok()) return ignore.status();
  absl::StatusOr<ManifestObjects> renamed = Renamed(a, options.rename);
  if (!renamed.ok()) return renamed.status();
  const ManifestObjects first = Filtered(*renamed, *select, *ignore), second = Filtered(b, *select, *ignore);
  std::map<std::string, std::string> out;
  for (const auto& [key, object] : first) {
    const auto other = second.find(key);
    if (other == second.end()) {
      out[key] = fmt::format("\n\nObject {} is missing in B:\n\n", key);
    } else if (const json tree = DiffObjects(object, other->second); !tree.is_null()) {
      out[key] = fmt::format("\n\nObject {} has diffs:\n\n{}", key, tables::YamlText(tree));
    }
  }
  for (const auto& [key, object] : second) {
    if (!first.contains(key)) out[key] = fmt::format("\n\nObject {} is missing in A:\n\n", key);
  }
  std::string text;
  for (const auto& [key, what] : out) text += what;
  return text;
}

}  // namespace wavetank::cli
