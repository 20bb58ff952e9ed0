#include "oracles/golden/push_client.h"

#include <utility>

#include "oracles/golden/fetch.h"
#include "oracles/golden/xds_json.h"

namespace wavetank::golden {

using pilot::XdsType;

PushClient::PushClient(pilot::Istiod& istiod, Host& host, const ProxySpec& proxy, bool delta)
    : host_(host), delta_(delta), node_(NodeOf(proxy)), connection_(istiod.OpenAds({.tls = false}, proxy.ip, *this)) {
  if (delta_) {
    RequestDelta(XdsType::kCds, {}, {}, "");
  } else {
    Request(XdsType::kCds, {}, "");
  }
}

// Messages are handled one after the other, never from inside the server's call.
void PushClient::Send(std::shared_ptr<const pilot::DiscoveryResponse> response) {
  host_.Post([this, response = std::move(response), alive = std::weak_ptr<char>(alive_)] {
    if (!alive.expired()) OnSotw(*response);
  });
}
void PushClient::SendDelta(std::shared_ptr<const pilot::DeltaDiscoveryResponse> response) {
  host_.Post([this, response = std::move(response), alive = std::weak_ptr<char>(alive_)] {
    if (!alive.expired()) OnDelta(*response);
  });
}

void PushClient::Request(XdsType type, std::vector<std::string> names, std::string nonce) {
  pilot::DiscoveryRequest request;
  request.type = type;
  request.resource_names = std::move(names);
  request.response_nonce = std::move(nonce);
  request.node = node_;
  connection_->OnRequest(std::move(request));
}

void PushClient::RequestDelta(XdsType type, const std::set<std::string>& add, const std::set<std::string>& remove,
                              std::string nonce) {
  pilot::DeltaDiscoveryRequest request;
  request.type = type;
  request.resource_names_subscribe.assign(add.begin(), add.end());
  request.resource_names_unsubscribe.assign(remove.begin(), remove.end());
  request.response_nonce = std::move(nonce);
  request.node = node_;
  connection_->OnDeltaRequest(std::move(request));
}

std::set<std::string> PushClient::Referenced(XdsType parent) const {
  std::vector<std::string_view> bytes;
  if (const auto it = held_.find(parent); it != held_.end()) {
    for (const auto& [name, resource] : it->second) bytes.push_back(*resource);
  }
  const std::vector<std::string> names = parent == XdsType::kCds ? EdsNames(bytes) : RdsNames(bytes);
  return {names.begin(), names.end()};
}

void PushClient::Subscribe(XdsType type, std::set<std::string> names, bool force) {
  std::set<std::string>& before = subscribed_[type];
  if (names == before && !force) return;
  if (delta_) {
    std::set<std::string> add, remove;
    for (const std::string& name : names) {
      if (!before.contains(name)) add.insert(name);
    }
    for (const std::string& name : before) {
      if (!names.contains(name)) remove.insert(name);
    }
    before = std::move(names);
    if (!add.empty() || !remove.empty()) RequestDelta(type, add, remove, "");
    return;
  }
  before = std::move(names);
  Request(type, {before.begin(), before.end()}, nonces_[type]);
}

void PushClient::MaybeAskListeners() {
  if (std::exchange(asked_listeners_, true)) return;
  if (delta_) {
    RequestDelta(XdsType::kLds, {}, {}, "");
  } else {
    Request(XdsType::kLds, {}, "");
  }
}

PushClient::Held PushClient::Holds(XdsType type) const {
  const auto it = held_.find(type);
  if (it == held_.end()) return {};
  Held out = it->second;
  if (const auto names = subscribed_.find(type); names != subscribed_.end()) {
    std::erase_if(out, [&](const auto& resource) { return !names->second.contains(resource.first); });
  }
  return out;
}

void PushClient::OnSotw(const pilot::DiscoveryResponse& response) {
  Held& held = held_[response.type];
  nonces_[response.type] = response.nonce;
  if (response.type == XdsType::kCds) {
    Held now;
    bool changed = false;
    for (const pilot::Resource& resource : response.resources) {
      const auto it = held.find(resource.name);
      if ((it == held.end() || *it->second != *resource.bytes) && !EdsNames({*resource.bytes}).empty()) changed = true;
      now[std::string(resource.name)] = resource.bytes;
    }
    held = std::move(now);
    std::set<std::string> names = Referenced(XdsType::kCds);
    const bool none = names.empty() && subscribed_[XdsType::kEds].empty();
    if (!none) Subscribe(XdsType::kEds, std::move(names), changed);
    Request(XdsType::kCds, {}, response.nonce);
    if (none) MaybeAskListeners();
    return;
  }
  if (response.type == XdsType::kLds) {
    held.clear();
    for (const pilot::Resource& resource : response.resources) held[std::string(resource.name)] = resource.bytes;
    Subscribe(XdsType::kRds, Referenced(XdsType::kLds), false);
    return Request(XdsType::kLds, {}, response.nonce);
  }
  for (const pilot::Resource& resource : response.resources) held[std::string(resource.name)] = resource.bytes;
  const std::set<std::string>& names = subscribed_[response.type];
  Request(response.type, {names.begin(), names.end()}, response.nonce);
  if (response.type == XdsType::kEds) MaybeAskListeners();
}

void PushClient::OnDelta(const pilot::DeltaDiscoveryResponse& response) {
  Held& held = held_[response.type];
  for (const pilot::Resource& resource : response.resources) held[std::string(resource.name)] = resource.bytes;
  for (const std::string& name : response.removed_resources) held.erase(name);
  if (response.type == XdsType::kCds) Subscribe(XdsType::kEds, Referenced(XdsType::kCds), false);
  if (response.type == XdsType::kLds) Subscribe(XdsType::kRds, Referenced(XdsType::kLds), false);
  RequestDelta(response.type, {}, {}, response.nonce);
  const bool none = response.type == XdsType::kCds && subscribed_[XdsType::kEds].empty();
  if (response.type == XdsType::kEds || none) MaybeAskListeners();
}

}  // namespace wavetank::golden
