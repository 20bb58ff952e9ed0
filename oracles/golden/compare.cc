#include "oracles/golden/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/base/json_text.h"

namespace wavetank::golden {
namespace {

using nlohmann::json;

// True if each item is an object with a name of its own.
bool Named(const json& array, std::map<std::string, const json*>* by_name) {
  if (!array.is_array()) return false;
  for (const json& item : array) {
    const std::string name = ResourceName(item);
    if (name.empty() || !by_name->emplace(name, &item).second) return false;
  }
  return true;
}

class Comparison {
 public:
  explicit Comparison(size_t limit) : limit_(limit) {}

  void Compare(const json& expected, const json& actual, const std::string& path) {
    if (out_.size() >= limit_ || expected == actual) return;
    if (expected.is_object() && actual.is_object()) return CompareObjects(expected, actual, path);
    if (expected.is_array() && actual.is_array()) return CompareArrays(expected, actual, path);
    Add(path, &expected, &actual);
  }

  std::vector<Difference> Take() { return std::move(out_); }

 private:
  void CompareObjects(const json& expected, const json& actual, const std::string& path) {
    for (const auto& [key, value] : expected.items()) {
      const auto other = actual.find(key);
      const std::string inner = path.empty() ? key : path + "." + key;
      if (other == actual.end()) {
        Add(inner, &value, nullptr);
      } else {
        Compare(value, *other, inner);
      }
    }
    for (const auto& [key, value] : actual.items()) {
      if (!expected.contains(key)) Add(path.empty() ? key : path + "." + key, nullptr, &value);
    }
  }

  void CompareArrays(const json& expected, const json& actual, const std::string& path) {
    std::map<std::string, const json*> left, right;
    if (Named(expected, &left) && Named(actual, &right)) {
      const auto in = [&](const std::string& name) { return path.empty() ? name : fmt::format("{}[{}]", path, name); };
      const size_t before = out_.size();
      for (const auto& [name, value] : left) {
        const auto other = right.find(name);
        if (other == right.end()) {
          Add(in(name), value, nullptr);
        } else {
          Compare(*value, *other->second, in(name));
        }
      }
      for (const auto& [name, value] : right) {
        if (!left.contains(name)) Add(in(name), nullptr, value);
      }
      if (out_.size() > before) return;
      // The same things in another order.
      const auto names = [](const json& array) {
        json out = json::array();
        for (const json& item : array) out.push_back(ResourceName(item));
        return out;
      };
      const json a = names(expected), b = names(actual);
      return Add(path + " (order)", &a, &b);
    }
    for (size_t i = 0; i < std::max(expected.size(), actual.size()); ++i) {
      const std::string inner = fmt::format("{}[{}]", path, i);
      if (i >= actual.size()) {
        Add(inner, &expected[i], nullptr);
      } else if (i >= expected.size()) {
        Add(inner, nullptr, &actual[i]);
      } else {
        Compare(expected[i], actual[i], inner);
      }
    }
  }

  void Add(const std::string& path, const json* expected, const json* actual) {
    if (out_.size() >= limit_) return;
    out_.push_back({path, expected == nullptr ? std::string() : expected->dump(),
                    actual == nullptr ? std::string() : actual->dump()});
  }

  const size_t limit_;
  std::vector<Difference> out_;
};

const json* Dig(const json& value, std::initializer_list<const char*> path) {
  const json* at = &value;
  for (const char* key : path) {
    if (!at->is_object()) return nullptr;
    const auto it = at->find(key);
    if (it == at->end()) return nullptr;
    at = &*it;
  }
  return at;
}

void SortEndpoints(json& load_assignment) {
  const auto localities = load_assignment.find("endpoints");
  if (localities == load_assignment.end() || !localities->is_array()) return;
  for (json& locality : *localities) {
    const auto endpoints = locality.find("lb_endpoints");
    if (endpoints == locality.end() || !endpoints->is_array()) continue;
    using Key = std::tuple<std::string, int64_t, std::string>;
    std::vector<std::pair<Key, json>> keyed;
    for (json& endpoint : *endpoints) {
      const json* address = Dig(endpoint, {"endpoint", "address", "socket_address", "address"});
      const json* port = Dig(endpoint, {"endpoint", "address", "socket_address", "port_value"});
      Key key{address != nullptr && address->is_string() ? address->get<std::string>() : "",
              port != nullptr && port->is_number() ? port->get<int64_t>() : 0, JsonText(endpoint)};
      keyed.emplace_back(std::move(key), std::move(endpoint));
    }
    std::sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < keyed.size(); ++i) (*endpoints)[i] = std::move(keyed[i].second);
  }
}

void SortPassthroughChains(json& listener) {
  const auto chains = listener.find("filter_chains");
  if (chains == listener.end() || !chains->is_array()) return;
  const auto port_of = [](const json& chain) -> int64_t {
    const json* name = Dig(chain, {"name"});
    const json* port = Dig(chain, {"filter_chain_match", "destination_port"});
    if (name == nullptr || port == nullptr || !port->is_number()) return -1;
    return *name == "virtualInbound" || *name == "virtualInbound-catchall-http" ? port->get<int64_t>() : -1;
  };
  for (auto it = chains->begin(); it != chains->end();) {
    auto end = it;
    while (end != chains->end() && port_of(*end) >= 0) ++end;
    std::stable_sort(it, end, [&](const json& a, const json& b) { return port_of(a) < port_of(b); });
    it = end == chains->end() ? end : end + 1;
  }
}

// Of a listener and of what its filters hold: istiod walks a map of providers.
void SortAccessLogs(json& value) {
  if (value.is_array()) {
    for (json& item : value) SortAccessLogs(item);
  }
  if (!value.is_object()) return;
  for (auto& [key, item] : value.items()) {
    if (key != "access_log" || !item.is_array()) {
      SortAccessLogs(item);
    } else if (item.size() > 1) {
      std::sort(item.begin(), item.end(), [](const json& a, const json& b) { return JsonText(a) < JsonText(b); });
    }
  }
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return out;
}

// Myers' shortest edit script: for each line of either text, whether it is in both. Gives up on texts that differ by
// more than kMaxEdits lines, which are then wholly replaced.
struct Edits {
  std::vector<bool> kept_left, kept_right;
};
Edits ShortestEdits(const std::vector<std::string_view>& left, const std::vector<std::string_view>& right) {
  constexpr int kMaxEdits = 4000;
  const int n = static_cast<int>(left.size()), m = static_cast<int>(right.size());
  Edits out{std::vector<bool>(left.size()), std::vector<bool>(right.size())};
  int head = 0;
  while (head < n && head < m && left[static_cast<size_t>(head)] == right[static_cast<size_t>(head)]) ++head;
  int tail = 0;
  while (tail < n - head && tail < m - head &&
         left[static_cast<size_t>(n - 1 - tail)] == right[static_cast<size_t>(m - 1 - tail)]) {
    ++tail;
  }
  for (int i = 0; i < head; ++i) out.kept_left[static_cast<size_t>(i)] = out.kept_right[static_cast<size_t>(i)] = true;
  for (int i = 0; i < tail; ++i) {
    out.kept_left[static_cast<size_t>(n - 1 - i)] = out.kept_right[static_cast<size_t>(m - 1 - i)] = true;
  }
  const int width = n - head - tail, height = m - head - tail;
  const auto a = [&](int i) { return left[static_cast<size_t>(head + i)]; };
  const auto b = [&](int j) { return right[static_cast<size_t>(head + j)]; };
  std::vector<std::vector<int>> trace;
  std::vector<int> v(2 * static_cast<size_t>(kMaxEdits) + 3, 0);
  const auto at = [](std::vector<int>& row, int k) -> int& { return row[static_cast<size_t>(k + kMaxEdits + 1)]; };
  int found = -1;
  for (int d = 0; d <= std::min(width + height, kMaxEdits) && found < 0; ++d) {
    for (int k = -d; k <= d; k += 2) {
      int x = k == -d || (k != d && at(v, k - 1) < at(v, k + 1)) ? at(v, k + 1) : at(v, k - 1) + 1;
      while (x < width && x - k < height && a(x) == b(x - k)) ++x;
      at(v, k) = x;
      if (x >= width && x - k >= height) found = d;
      if (found >= 0) break;
    }
    // Only the diagonals reached so far are needed to walk back.
    trace.emplace_back(v.begin() + kMaxEdits + 1 - d, v.begin() + kMaxEdits + 2 + d);
  }
  if (found < 0) return out;
  int x = width, y = height;
  for (int d = found; d > 0; --d) {
    const std::vector<int>& row = trace[static_cast<size_t>(d - 1)];
    const auto reach = [&](int k) { return std::abs(k) > d - 1 ? -1 : row[static_cast<size_t>(k + d - 1)]; };
    const int k = x - y;
    const int from = k == -d || (k != d && reach(k - 1) < reach(k + 1)) ? k + 1 : k - 1;
    const int start_x = reach(from), start_y = start_x - from;
    while (x > start_x && y > start_y && (x - 1) - (y - 1) == k && x > (from < k ? start_x + 1 : start_x) &&
           y > (from < k ? start_y : start_y + 1)) {
      --x;
      --y;
      out.kept_left[static_cast<size_t>(head + x)] = out.kept_right[static_cast<size_t>(head + y)] = true;
    }
    x = start_x;
    y = start_y;
  }
  while (x > 0 && y > 0) {
    --x;
    --y;
    out.kept_left[static_cast<size_t>(head + x)] = out.kept_right[static_cast<size_t>(head + y)] = true;
  }
  return out;
}

}  // namespace

std::vector<Difference> Compare(const json& expected, const json& actual, size_t limit) {
  Comparison comparison(limit);
  comparison.Compare(expected, actual, "");
  return comparison.Take();
}

std::string ResourceName(const json& resource) {
  for (const char* key : {"name", "cluster_name"}) {
    const json* name = Dig(resource, {key});
    if (name != nullptr && name->is_string()) return name->get<std::string>();
  }
  return {};
}

void MakeCanonical(json& resource) {
  if (!resource.is_object()) return;
  SortEndpoints(resource);
  if (const auto assignment = resource.find("load_assignment"); assignment != resource.end()) {
    SortEndpoints(*assignment);
  }
  if (ResourceName(resource) == "virtualInbound") SortPassthroughChains(resource);
  SortAccessLogs(resource);
}

std::string UnifiedDiff(std::string_view expected, std::string_view actual, std::string_view expected_name,
                        std::string_view actual_name) {
  if (expected == actual) return {};
  constexpr size_t kContext = 3;
  const std::vector<std::string_view> left = Lines(expected), right = Lines(actual);
  const Edits edits = ShortestEdits(left, right);
  struct Line {
    char mark;
    std::string_view text;
    size_t left, right;  // lines before it
  };
  std::vector<Line> all;
  for (size_t i = 0, j = 0; i < left.size() || j < right.size();) {
    if (i < left.size() && !edits.kept_left[i]) {
      all.push_back({'-', left[i], i, j});
      ++i;
    } else if (j < right.size() && !edits.kept_right[j]) {
      all.push_back({'+', right[j], i, j});
      ++j;
    } else {
      all.push_back({' ', left[i], i, j});
      ++i;
      ++j;
    }
  }
  std::string out = fmt::format("--- {}\n+++ {}\n", expected_name, actual_name);
  for (size_t i = 0; i < all.size();) {
    if (all[i].mark == ' ') {
      ++i;
      continue;
    }
    const size_t begin = i > kContext ? i - kContext : 0;
    size_t end = i, quiet = 0;
    while (end < all.size() && quiet <= 2 * kContext) {
      quiet = all[end].mark == ' ' ? quiet + 1 : 0;
      ++end;
    }
    if (quiet > kContext) end -= quiet - kContext;
    size_t lefts = 0, rights = 0;
    for (size_t l = begin; l < end; ++l) {
      lefts += all[l].mark != '+';
      rights += all[l].mark != '-';
    }
    out += fmt::format("@@ -{},{} +{},{} @@\n", all[begin].left + (lefts > 0), lefts, all[begin].right + (rights > 0),
                       rights);
    for (size_t l = begin; l < end; ++l) out += fmt::format("{}{}\n", all[l].mark, all[l].text);
    i = end;
  }
  return out;
}

}  // namespace wavetank::golden
