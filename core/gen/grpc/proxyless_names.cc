#include <utility>

#include "absl/strings/str_cat.h"
#include "core/gen/grpc/proxyless.h"

namespace wavetank::pilot {
namespace {

// What a short name may mean to a proxy of DNS domain "ns.svc.cluster.local"; empty: nothing. istiod: tryFindFQDN.
std::string FullName(const std::string& name, const Proxy& proxy) {
  if (name.find('.') == name.npos) return absl::StrCat(name, ".", proxy.dns_domain);
  const std::string& ns = proxy.metadata.ns;
  for (const std::string& suffix : {ns, ns + ".svc"}) {
    const std::string ending = "." + suffix;
    if (!name.ends_with(ending) || !proxy.dns_domain.starts_with(suffix)) continue;
    return absl::StrCat(name.substr(0, name.size() - ending.size()), ".", proxy.dns_domain);
  }
  return "";
}

}  // namespace

bool SplitHostPort(std::string_view text, std::string* host, std::string* port) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos) return false;
  std::string_view before = text.substr(0, colon);
  if (before.starts_with('[')) {
    if (before.find(']') != before.size() - 1) return false;
    before = before.substr(1, before.size() - 2);
  } else if (before.find(':') != before.npos) {
    return false;
  }
  if (before.find_first_of("[]") != before.npos || text.substr(colon).find_first_of("[]") != text.npos) return false;
  *host = before;
  *port = text.substr(colon + 1);
  return true;
}

ListenerNames::ListenerNames(const std::vector<std::string>& names, const Proxy& proxy) : everything_(names.empty()) {
  for (const std::string& name : names) {
    if (name.starts_with(kGrpcServerListenerPrefix)) {
      servers_.insert(name);
      continue;
    }
    std::string host, port;
    const bool has_port = SplitHostPort(name, &host, &port);
    const std::string requested = has_port ? host : name;
    std::set<std::string> readings = {requested};
    if (std::string full = FullName(requested, proxy); !full.empty()) readings.insert(std::move(full));
    for (const std::string& reading : readings) {
      const auto [it, is_new] = targets_.try_emplace(reading);
      Target& target = it->second;
      target.requested.insert(requested);
      // Once all ports are asked for, a name with one does not narrow them down.
      if (!has_port) {
        target.ports.clear();
      } else if (is_new || !target.ports.empty()) {
        target.ports.insert(port);
      }
    }
  }
}

const ListenerNames::Target* ListenerNames::Find(const std::string& hostname) const {
  if (everything_) {
    own_.requested = {hostname};
    return &own_;
  }
  const auto it = targets_.find(hostname);
  return it == targets_.end() ? nullptr : &it->second;
}

}  // namespace wavetank::pilot
