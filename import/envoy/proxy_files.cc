#include "import/envoy/proxy_files.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "import/access/pod_name.h"
#include "import/envoy/proxy_state.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// istioctl bug-report: tools/bug-report/pkg/{archive,bugreport,content,common}
bool IsMuteInBugReport(const std::vector<std::string>& parts) {
  const size_t n = parts.size();
  const std::string& name = parts[n - 1];
  if (n >= 5 && parts[n - 5] == "proxies" && parts[n - 2] == "stats") return true;
  if (n >= 4 && parts[n - 4] == "proxies") {
    for (const char* mute : {"certs", "listeners", "memory", "server_info", "runtime", "netstat"}) {
      if (name == mute) return true;
    }
  }
  if (n >= 5 && parts[n - 5] == "istio" && parts[n - 2] == "debug") return true;
  if (n >= 2 && parts[n - 2] == "cluster") {
    for (const char* mute : {"cluster-context", "kubectl-version", "nodes", "secrets", "describe-pods"}) {
      if (name == mute) return true;
    }
  }
  // istioctl's own log of making the report.
  return (n >= 3 && parts[n - 3] == "analyze") || name == "bug-report.log";
}

class FileReader {
 public:
  FileReader(const std::string& path, const std::string& file, const std::string& cluster, Evidence& evidence)
      : path_(path), file_(file), cluster_(cluster), evidence_(evidence) {}

  void Held(std::string_view text) {
    ProxyState state = ReadProxyState(text, file_, evidence_.refusals);
    const LogOwner owner = OwnerOfLog(path_);
    if (state.proxy.empty() && !owner.pod.ns.empty()) state.proxy = owner.pod.pod + "." + owner.pod.ns;
    if (state.empty()) return;
    if (state.proxy.empty()) {
      return evidence_.refusals.Add("dump of a proxy that it does not name: call the file POD.NAMESPACE.txt",
                                    {file_, 0});
    }
    // A bug report has the same in two forms.
    for (const Claim& claim : evidence_.claims) {
      if (claim.kind != ClaimKind::kHeld || claim.name != state.proxy || claim.replica != cluster_ ||
          claim.type != state.cluster) {
        continue;
      }
      const json told = ParseJson(claim.extra);
      if (told.contains("endpoints")) state.endpoints.clear();
      std::erase_if(state.names, [&](const auto& kind) { return told.contains(kind.first); });
    }
    if (state.empty()) return;
    Claim& claim = Say(ClaimKind::kHeld, 0);
    claim.name = state.proxy;
    claim.type = state.cluster;
    claim.replica = cluster_;
    ordered_json held = ordered_json::object();
    int64_t count = 0;
    for (const auto& [upstream, endpoints] : state.endpoints) {
      if (!upstream.starts_with("outbound")) continue;  // Envoy's own, and what it has for its own pod
      held[upstream] = endpoints;
      count += static_cast<int64_t>(endpoints.size());
    }
    claim.count = count;
    ordered_json extra = ordered_json::object();
    if (!state.endpoints.empty()) extra["endpoints"] = std::move(held);
    for (const auto& [kind, names] : state.names) extra[kind] = names;
    claim.extra = JsonText(extra);
  }

  // "NAME  CLUSTER  CDS  LDS  EDS  RDS  ECDS  ISTIOD  VERSION"; a cell may be "NOT SENT" or "STALE (Never
  // Acknowledged)".
  void Status(std::string_view text) {
    uint64_t number = 0;
    for (const absl::string_view raw : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
      ++number;
      const std::vector<std::string> words = absl::StrSplit(raw, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
      if (words.empty() || words[0] == "NAME") continue;
      if (words.size() < 5 || words[0].find('.') == std::string::npos) {
        evidence_.refusals.Add("line of no known form", {file_, number}, {raw.data(), raw.size()});
        continue;
      }
      Connected(words[0], words[1], number);
    }
  }

  void Page(std::string_view text) {
    const json page = ParseJson(text);
    const std::string_view name = std::string_view(path_).substr(path_.rfind('/') + 1);
    if (page.is_null()) return;
    if (!page.is_array()) return evidence_.refusals.Add("page of istiod that is no list", {file_, 0});
    for (const json& one : page) {
      if (name.starts_with("syncz")) {
        Connected(wavetank::Text(one, "proxy"), wavetank::Text(one, "cluster_id"), 0);
      } else if (name.starts_with("clusterz")) {
        // istiod: pilot/pkg/xds/debug.go, clusterz; its own cluster has no Secret.
        const std::string secret = wavetank::Text(one, "secretName");
        const size_t slash = secret.find('/');
        const std::string id = wavetank::Text(one, "id");
        if (slash == secret.npos || id.empty()) continue;
        InferredInput& input = evidence_.inputs.emplace_back();
        input.kind = InputKind::kRemoteSecret;
        input.initial = true;
        input.replica = file_;
        input.ns = secret.substr(0, slash);
        input.name = secret.substr(slash + 1);
        input.clusters = {{id, "added"}};
        input.cluster = cluster_;  // whose istiod reads it
        input.place = {file_, 0};
      }
    }
  }

 private:
  Claim& Say(ClaimKind kind, uint64_t line) {
    Claim& claim = evidence_.claims.emplace_back();
    claim.kind = kind;
    claim.at = kNoTime;
    claim.place = {file_, line};
    return claim;
  }
  void Connected(const std::string& name, const std::string& cluster, uint64_t line) {
    if (name.empty()) return;
    Claim& claim = Say(ClaimKind::kProxyConnected, line);
    claim.name = name;
    claim.type = cluster;
  }

  const std::string& path_;
  const std::string& file_;
  const std::string& cluster_;
  Evidence& evidence_;
};

}  // namespace

ProxyFile KindOfProxyFile(std::string_view path, std::string_view head) {
  const std::vector<std::string> parts = absl::StrSplit(absl::string_view(path.data(), path.size()), '/');
  const std::string& name = parts.back();
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first == head.npos) return ProxyFile::kNone;
  const char opens = head[first];
  const bool page = parts.size() < 2 || parts[parts.size() - 2] == "debug";
  if (page && (name.starts_with("clusterz") || name.starts_with("syncz")) &&
      (opens == '[' || head.substr(first).starts_with("null"))) {
    return ProxyFile::kPage;
  }
  if (IsMuteInBugReport(parts) || (name == "versions" && head.starts_with("CLI version:"))) return ProxyFile::kMute;
  if (opens == '{') {
    if (head.find("envoy.admin.v3.BootstrapConfigDump") != head.npos ||
        head.find("envoy.admin.v3.ClustersConfigDump") != head.npos || head.find("\"cluster_statuses\"") != head.npos ||
        head.find("\"clusterStatuses\"") != head.npos) {
      return ProxyFile::kHeld;
    }
    return ProxyFile::kNone;
  }
  if (opens == '[') {
    // Lists hold objects; "[pod/..." is kubectl's --prefix, behind which istiod prints its mesh configuration.
    const size_t inside = head.find_first_not_of(" \t\r\n", first + 1);
    if (inside != head.npos && head[inside] != '{') return ProxyFile::kNone;
    // Lists of Kubernetes' objects have an apiVersion.
    if (head.find("\"apiVersion\"") != head.npos) return ProxyFile::kNone;
    for (const char* field : {"\"hostStatuses\"", "\"host_statuses\"", "\"edsClusterConfig\"", "\"connectTimeout\"",
                              "\"filterChains\"", "\"socketAddress\"", "\"virtualHosts\""}) {
      if (head.find(field) != head.npos) return ProxyFile::kHeld;
    }
    return ProxyFile::kNone;
  }
  const std::string_view line = head.substr(first, std::min(head.find('\n', first), head.size()) - first);
  const std::vector<std::string> words =
      absl::StrSplit(absl::string_view(line.data(), line.size()), absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.size() >= 4 && words[0] == "ENDPOINT" && words[1] == "STATUS") return ProxyFile::kHeld;
  const std::string two = words.size() < 2 ? "" : words[0] + " " + words[1];
  if (two == "SERVICE FQDN" || two == "ADDRESS PORT" || two == "ADDRESSES PORT" || two == "NAME VHOST" ||
      two == "NAME VIRTUAL" || two == "NAME DOMAINS") {
    return ProxyFile::kHeld;
  }
  // 1.30 has one column for all types (istioctl: pkg/writer/pilot/status.go).
  if (words.size() >= 5 && words[0] == "NAME" && words[1] == "CLUSTER" && (words[2] == "CDS" || words[2] == "ISTIOD"))
    return ProxyFile::kStatus;
  const size_t colons = line.find("::");
  if (colons != line.npos && colons > 0 && line.find("::", colons + 2) != line.npos &&
      line.substr(0, colons).find(' ') == line.npos) {
    return ProxyFile::kHeld;
  }
  return ProxyFile::kNone;
}

void ReadProxyFile(ProxyFile kind, std::string_view text, const std::string& path, const std::string& file,
                   const std::string& cluster, Evidence& evidence) {
  FileReader reader(path, file, cluster, evidence);
  switch (kind) {
    case ProxyFile::kHeld:
      return reader.Held(text);
    case ProxyFile::kStatus:
      return reader.Status(text);
    case ProxyFile::kPage:
      return reader.Page(text);
    case ProxyFile::kNone:
    case ProxyFile::kMute:
      return;
  }
}

}  // namespace wavetank::importing
