#include "core/push/delegates.h"

#include <algorithm>
#include <memory>
#include <optional>

namespace wavetank::pilot {
namespace {

using config::HttpMatchRequest;
using config::HttpRoute;
using config::StringMatch;

using Key = std::pair<std::string, std::string>;
Key KeyOf(const config::ConfigMeta& meta) { return {meta.ns, meta.name}; }

// Whether the leaf asks for something that the root does not let through. Two regular expressions, or a regular
// expression and anything else, count as contradicting. istiod: stringMatchConflict.
bool Conflict(const StringMatch& root, const StringMatch& leaf) {
  using Kind = StringMatch::Kind;
  const auto kind = [](const StringMatch& m) { return m.value.empty() ? Kind::kNone : m.kind; };
  const Kind r = kind(root), l = kind(leaf);
  if (r == Kind::kExact && l != Kind::kRegex) return l == Kind::kPrefix || leaf.value != root.value || l == Kind::kNone;
  if (r == Kind::kPrefix && (l == Kind::kPrefix || l == Kind::kExact)) return !leaf.value.starts_with(root.value);
  return true;
}

bool Conflict(const std::optional<StringMatch>& root, const std::optional<StringMatch>& leaf) {
  return root && leaf && Conflict(*root, *leaf);
}

bool Conflict(const std::map<std::string, StringMatch>& root, const std::map<std::string, StringMatch>& leaf) {
  return std::any_of(leaf.begin(), leaf.end(), [&](const auto& entry) {
    const auto it = root.find(entry.first);
    return it != root.end() && Conflict(it->second, entry.second);
  });
}

bool Conflict(const HttpMatchRequest& root, const HttpMatchRequest& leaf) {
  if (Conflict(root.uri, leaf.uri) || Conflict(root.scheme, leaf.scheme) || Conflict(root.method, leaf.method) ||
      Conflict(root.authority, leaf.authority) || Conflict(root.headers, leaf.headers) ||
      Conflict(root.without_headers, leaf.without_headers) || Conflict(root.query_params, leaf.query_params) ||
      root.ignore_uri_case != leaf.ignore_uri_case) {
    return true;
  }
  if (root.port > 0 && leaf.port > 0 && root.port != leaf.port) return true;
  if (!root.source_namespace.empty() && root.source_namespace != leaf.source_namespace) return true;
  for (const auto& [name, value] : leaf.source_labels) {
    const auto it = root.source_labels.find(name);
    if (it != root.source_labels.end() && it->second != value) return true;
  }
  if (root.gateways.empty() || leaf.gateways.empty()) return false;
  return root.gateways.size() < leaf.gateways.size() ||
         std::any_of(leaf.gateways.begin(), leaf.gateways.end(), [&](const std::string& gateway) {
           return std::find(root.gateways.begin(), root.gateways.end(), gateway) == root.gateways.end();
         });
}

std::string JoinNames(const std::string& root, const std::string& delegate) {
  if (delegate.empty()) return root;
  return root.empty() ? delegate : root + "-" + delegate;
}

HttpMatchRequest Merge(const HttpMatchRequest& root, const HttpMatchRequest& leaf) {
  HttpMatchRequest out = leaf;
  out.name = JoinNames(root.name, leaf.name);
  if (!out.uri) out.uri = root.uri;
  if (!out.scheme) out.scheme = root.scheme;
  if (!out.method) out.method = root.method;
  if (!out.authority) out.authority = root.authority;
  out.headers.insert(root.headers.begin(), root.headers.end());
  out.without_headers.insert(root.without_headers.begin(), root.without_headers.end());
  out.query_params.insert(root.query_params.begin(), root.query_params.end());
  if (out.port == 0) out.port = root.port;
  out.source_labels.insert(root.source_labels.begin(), root.source_labels.end());
  if (out.source_namespace.empty()) out.source_namespace = root.source_namespace;
  if (out.gateways.empty()) out.gateways = root.gateways;
  if (out.stat_prefix.empty()) out.stat_prefix = root.stat_prefix;
  return out;
}

// Every match of the delegate must go with at least one of the root; nullopt otherwise.
std::optional<std::vector<HttpMatchRequest>> Merge(const std::vector<HttpMatchRequest>& root,
                                                   const std::vector<HttpMatchRequest>& delegate) {
  if (root.empty()) return delegate;
  if (delegate.empty()) return root;
  std::vector<HttpMatchRequest> out;
  for (const HttpMatchRequest& leaf : delegate) {
    const size_t before = out.size();
    for (const HttpMatchRequest& r : root) {
      if (!Conflict(r, leaf)) out.push_back(Merge(r, leaf));
    }
    if (out.size() == before) return std::nullopt;
  }
  return out;
}

template <typename T>
void Inherit(std::optional<T>& own, const std::optional<T>& root) {
  if (!own) own = root;
}

}  // namespace

std::vector<HttpRoute> MergeHttpRoutes(const HttpRoute& root, const std::vector<HttpRoute>& delegate) {
  std::vector<HttpRoute> out;
  for (const HttpRoute& route : delegate) {
    auto match = Merge(root.match, route.match);
    if (!match) continue;
    HttpRoute merged = route;
    merged.match = *std::move(match);
    merged.name = JoinNames(root.name, route.name);
    Inherit(merged.rewrite, root.rewrite);
    Inherit(merged.direct_response, root.direct_response);
    Inherit(merged.timeout, root.timeout);
    Inherit(merged.retries, root.retries);
    Inherit(merged.fault, root.fault);
    Inherit(merged.mirror, root.mirror);
    Inherit(merged.mirror_percent, root.mirror_percent);
    Inherit(merged.mirror_percentage, root.mirror_percentage);
    if (merged.mirrors.empty()) merged.mirrors = root.mirrors;
    Inherit(merged.cors_policy, root.cors_policy);
    Inherit(merged.headers, root.headers);
    out.push_back(std::move(merged));
  }
  return out;
}

MergedVirtualServices MergeDelegates(const std::vector<config::VirtualServiceRef>& sorted,
                                     const ExportTo& default_export_to) {
  MergedVirtualServices out;
  struct DelegateEntry {
    config::VirtualServiceRef config;
    ExportTo export_to;
  };
  std::map<Key, DelegateEntry> by_key;
  std::vector<config::VirtualServiceRef> roots;
  for (const config::VirtualServiceRef& vs : sorted) {
    if (vs->spec.hosts.empty()) {
      ExportTo to = vs->spec.export_to.empty() ? default_export_to : ParseExportTo(vs->spec.export_to);
      if (to.is_private) to.namespaces.insert(vs->meta.ns);
      by_key[KeyOf(vs->meta)] = {vs, std::move(to)};
    } else if (std::any_of(vs->spec.http.begin(), vs->spec.http.end(),
                           [](const HttpRoute& route) { return route.delegate.has_value(); })) {
      roots.push_back(vs);
    } else {
      out.list.push_back(vs);
    }
  }
  for (const config::VirtualServiceRef& root : roots) {
    auto merged = std::make_shared<config::TypedConfig<config::VirtualService>>(*root);
    merged->spec.http.clear();
    for (const HttpRoute& route : root->spec.http) {
      if (!route.delegate) {
        merged->spec.http.push_back(route);
        continue;
      }
      const std::string& ns = route.delegate->ns.empty() ? root->meta.ns : route.delegate->ns;
      out.delegates[KeyOf(root->meta)].push_back({ConfigKind::kVirtualService, route.delegate->name, ns});
      const auto it = by_key.find({ns, route.delegate->name});
      if (it == by_key.end()) continue;
      const ExportTo& to = it->second.export_to;
      if (!to.is_public && !to.namespaces.contains(root->meta.ns)) continue;
      for (HttpRoute& r : MergeHttpRoutes(route, it->second.config->spec.http)) {
        merged->spec.http.push_back(std::move(r));
      }
    }
    out.list.push_back(std::move(merged));
  }
  return out;
}

}  // namespace wavetank::pilot
