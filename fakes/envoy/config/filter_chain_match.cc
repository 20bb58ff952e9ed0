#include "fakes/envoy/config/filter_chain_match.h"

#include <algorithm>

#include "fakes/envoy/config/listener_config.h"

namespace wavetank::envoysim {
namespace {

constexpr uint8_t kAnySource = 0, kSameIpOrLoopback = 1, kExternal = 2;

template <typename T>
std::vector<std::optional<T>> OrAny(const std::vector<T>& list) {
  if (list.empty()) return {std::nullopt};
  return {list.begin(), list.end()};
}

std::vector<std::string> OrAny(const std::vector<std::string>& list) {
  return list.empty() ? std::vector<std::string>{std::string()} : list;
}

}  // namespace

template <typename T>
T& FilterChainMatcher::PrefixMap<T>::At(const std::optional<IpPrefix>& prefix) {
  for (auto& [known, value] : entries) {
    if (known == prefix) return value;
  }
  entries.emplace_back(prefix, T{});
  const auto length = [](const auto& e) { return e.first.has_value() ? static_cast<int>(e.first->length) : -1; };
  std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) { return length(a) > length(b); });
  return At(prefix);
}

template <typename T>
const T* FilterChainMatcher::PrefixMap<T>::Find(const IpAddress& ip) const {
  for (const auto& [prefix, value] : entries) {
    if (!prefix.has_value() || prefix->Contains(ip)) return &value;
  }
  return nullptr;
}

bool FilterChainMatcher::Add(const Match& match, uint32_t chain) {
  bool unique = true;
  for (const auto& destination : OrAny(match.destinations)) {
    ServerNames& names = ports_[match.destination_port].At(destination);
    for (const std::string& name : OrAny(match.server_names)) {
      Applications& applications = names[name][match.transport_protocol];
      for (const std::string& application : OrAny(match.application_protocols)) {
        for (const auto& direct : OrAny(match.direct_sources)) {
          Sources& sources = applications[application].At(direct)[match.source_type];
          for (const auto& source : OrAny(match.sources)) {
            SourcePorts& ports = sources.At(source);
            if (match.source_ports.empty()) {
              unique &= ports.emplace(0, chain).second;
            } else {
              for (uint16_t port : match.source_ports) unique &= ports.emplace(port, chain).second;
            }
          }
        }
      }
    }
  }
  return unique;
}

std::optional<uint32_t> FilterChainMatcher::Find(const ConnectionProperties& c) const {
  auto port = ports_.find(c.destination.port);
  if (port == ports_.end()) port = ports_.find(0);
  if (port == ports_.end()) return std::nullopt;
  const ServerNames* names = port->second.Find(c.destination.ip);
  if (names == nullptr) return std::nullopt;
  const SourceTypes* types = FindInServerNames(*names, c);
  if (types == nullptr) return std::nullopt;
  const bool asks_type = !(*types)[kSameIpOrLoopback].entries.empty() || !(*types)[kExternal].entries.empty();
  const Sources* sources = &(*types)[kAnySource];
  if (asks_type) {
    // One address of 127.0.0.0/8 alone. Envoy: common/network/utility.cc, isLoopbackAddress
    const bool local =
        (c.source.ip.is_loopback() && (!c.source.ip.is_v4() || c.source.ip == IpAddress::V4(127, 0, 0, 1))) ||
        c.source.ip == c.destination.ip;
    const Sources& typed = (*types)[local ? kSameIpOrLoopback : kExternal];
    if (!typed.entries.empty()) sources = &typed;
  }
  const SourcePorts* ports = sources->Find(c.source.ip);
  if (ports == nullptr) return std::nullopt;
  auto chain = ports->find(c.source.port);
  if (chain == ports->end()) chain = ports->find(0);
  if (chain == ports->end()) return std::nullopt;
  return chain->second;
}

const FilterChainMatcher::SourceTypes* FilterChainMatcher::FindInServerNames(const ServerNames& names,
                                                                             const ConnectionProperties& c) const {
  auto name = names.find(c.server_name);
  // ".example.com", then ".com", for "www.example.com".
  for (size_t dot = c.server_name.find('.', 1); name == names.end() && dot != std::string_view::npos;
       dot = c.server_name.find('.', dot + 1)) {
    if (dot + 1 < c.server_name.size()) name = names.find(c.server_name.substr(dot));
  }
  if (name == names.end()) name = names.find(std::string_view());
  if (name == names.end()) return nullptr;
  auto transport = name->second.find(c.transport_protocol);
  if (transport == name->second.end()) transport = name->second.find(std::string_view());
  if (transport == name->second.end()) return nullptr;
  const Applications& applications = transport->second;
  auto application = applications.end();
  if (c.application_protocols != nullptr) {
    for (const std::string& protocol : *c.application_protocols) {
      application = applications.find(protocol);
      if (application != applications.end()) break;
    }
  }
  if (application == applications.end()) application = applications.find(std::string_view());
  if (application == applications.end()) return nullptr;
  return application->second.Find(c.source.ip);
}

bool PortPredicate::Matches(uint16_t port) const {
  const auto matches = [port](const PortPredicate& p) { return p.Matches(port); };
  switch (kind) {
    case Kind::kNever:
      return false;
    case Kind::kAlways:
      return true;
    case Kind::kRange:
      return port >= start && port < end;
    case Kind::kNot:
      return !rules.front().Matches(port);
    case Kind::kAnyOf:
      return std::any_of(rules.begin(), rules.end(), matches);
    case Kind::kAllOf:
      return std::all_of(rules.begin(), rules.end(), matches);
  }
  return false;
}

}  // namespace wavetank::envoysim
