#include "import/access/pod_name.h"

#include <vector>

#include "absl/strings/str_split.h"

namespace wavetank::importing {
namespace {

bool IsDnsName(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  for (const char c : text) {
    if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.') return false;
  }
  return true;
}

bool IsClusterName(std::string_view text) {
  for (const char c : text) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      std::string_view("._:-").find(c) != std::string_view::npos;
    if (!good) return false;
  }
  return !text.empty();
}

std::string_view WithoutSuffix(std::string_view text, std::string_view suffix) {
  return text.size() > suffix.size() && text.ends_with(suffix) ? text.substr(0, text.size() - suffix.size()) : text;
}

}  // namespace

LogOwner OwnerOfLog(std::string_view path) {
  const std::vector<std::string> parts = absl::StrSplit(absl::string_view(path.data(), path.size()), '/');
  const size_t n = parts.size();
  LogOwner out;
  // istioctl bug-report: tools/bug-report/pkg/archive/archive.go
  if (n >= 4 && parts[n - 4] == "proxies") return {{"", parts[n - 3], parts[n - 2]}, "istio-proxy"};
  if (n >= 4 && parts[n - 4] == "istio" && parts[n - 1] == "discovery.log") {
    return {{"", parts[n - 3], parts[n - 2]}, "discovery"};
  }
  // must-gather: namespaces/NS/pods/POD/CONTAINER/CONTAINER/logs/current.log
  if (n >= 8 && parts[n - 8] == "namespaces" && parts[n - 6] == "pods" && parts[n - 2] == "logs") {
    return {{"", parts[n - 7], parts[n - 5]}, parts[n - 3]};
  }
  // The kubelet's: NS_POD_UID/CONTAINER/0.log
  if (n >= 3) {
    const std::vector<std::string> words = absl::StrSplit(parts[n - 3], '_');
    if (words.size() == 3 && IsDnsName(words[0]) && IsDnsName(words[1])) {
      return {{"", words[0], words[1]}, parts[n - 2]};
    }
  }
  // kubectl cluster-info dump: NS/POD/logs.txt
  if (n >= 3 && parts[n - 1] == "logs.txt") return {{"", parts[n - 3], parts[n - 2]}, ""};
  // The runtime's: POD_NS_CONTAINER-ID.log
  std::string_view name = parts[n - 1];
  for (const std::string_view suffix : {".gz", ".log", ".txt", ".json"}) name = WithoutSuffix(name, suffix);
  const std::vector<std::string> words = absl::StrSplit(absl::string_view(name.data(), name.size()), '_');
  if (words.size() == 3 && IsDnsName(words[0]) && IsDnsName(words[1])) {
    const size_t dash = words[2].rfind('-');
    return {{"", words[1], words[0]}, words[2].substr(0, dash)};
  }
  if (words.size() == 2 && words[1] == "istio-proxy") return {{"", "", words[0]}, "istio-proxy"};
  for (const std::string_view suffix : {"-istio-proxy", ".istio-proxy", "-access", ".access"}) {
    name = WithoutSuffix(name, suffix);
  }
  // POD.NS, as istiod calls a proxy
  const size_t dot = name.rfind('.');
  if (dot != name.npos && dot > 0 && dot + 1 < name.size() && IsDnsName(name)) {
    out.pod.ns = name.substr(dot + 1);
    name = name.substr(0, dot);
  }
  out.pod.pod = name;
  return out;
}

bool ReadDumpHeading(std::string_view line, LogOwner& owner, bool& begins) {
  constexpr std::string_view kOf = " of pod ", kEnd = " ====";
  begins = line.starts_with("==== START logs for container ");
  if (!begins && !line.starts_with("==== END logs for container ")) return false;
  std::string_view rest = line.substr(line.find("container ") + 10);
  const size_t of = rest.find(kOf);
  if (of == rest.npos || !rest.ends_with(kEnd)) return false;
  owner.container = rest.substr(0, of);
  rest = rest.substr(of + kOf.size());
  rest.remove_suffix(kEnd.size());
  const size_t slash = rest.find('/');
  if (slash == rest.npos) return false;
  owner.pod = {"", std::string(rest.substr(0, slash)), std::string(rest.substr(slash + 1))};
  return true;
}

bool TakeSlashPrefix(std::string_view& line, PodName& pod) {
  const size_t blank = line.find(' ');
  if (blank == line.npos || blank > 400) return false;
  const std::string_view word = line.substr(0, blank);
  const size_t first = word.find('/');
  if (first == word.npos || first == 0) return false;
  const size_t second = word.find('/', first + 1);
  if (second == word.npos || word.find('/', second + 1) != word.npos) return false;
  if (!IsClusterName(word.substr(0, first))) return false;
  if (!IsDnsName(word.substr(first + 1, second - first - 1)) || !IsDnsName(word.substr(second + 1))) return false;
  pod = {std::string(word.substr(0, first)), std::string(word.substr(first + 1, second - first - 1)),
         std::string(word.substr(second + 1))};
  line.remove_prefix(blank + 1);
  return true;
}

}  // namespace wavetank::importing
