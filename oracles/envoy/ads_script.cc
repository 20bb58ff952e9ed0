#include "oracles/envoy/ads_script.h"

#include "absl/strings/str_join.h"
#include "fmt/format.h"

namespace wavetank::envoydiff {

using envoysim::XdsType;
using envoysim::XdsTypeName;
using envoysim::XdsTypeOf;
using envoysim::XdsTypeUrl;

namespace {

template <typename Request>
std::string ErrorOf(const Request& request) {
  if (!request.has_error_detail()) return {};
  return fmt::format(" error {}: {}", request.error_detail().code(), request.error_detail().message());
}

}  // namespace

void AdsScript::StreamOpened() { subscriptions_.clear(); }

void AdsScript::MakeUp(XdsType type, const std::set<std::string>& names) {
  if (type != XdsType::kSds || !any_secret_) return;
  for (const std::string& name : names) {
    std::string& bytes = world_[type][name];
    if (bytes.empty()) bytes = SecretBytes(name, SecretForAnyName(name));
  }
}

AdsScript::Response AdsScript::Full(XdsType type) {
  Response response;
  response.set_type_url(std::string(XdsTypeUrl(type)));
  ++count_;
  response.set_version_info(fmt::format("v{}", count_));
  response.set_nonce(fmt::format("n{}", count_));
  for (const auto& [name, bytes] : world_[type]) {
    if (!Wildcard(type) && !subscriptions_[type].names.contains(name)) continue;
    auto* any = response.add_resources();
    any->set_type_url(std::string(XdsTypeUrl(type)));
    any->set_value(bytes);
  }
  return response;
}

std::vector<AdsScript::Response> AdsScript::OnRequest(const Request& request) {
  const auto type = XdsTypeOf(request.type_url());
  if (!type.has_value()) return {};
  const std::set<std::string> names(request.resource_names().begin(), request.resource_names().end());
  log_.push_back(fmt::format("{} v='{}' n='{}' [{}]{}{}", XdsTypeName(*type), request.version_info(),
                             request.response_nonce(), absl::StrJoin(names, " "), request.has_node() ? " node" : "",
                             ErrorOf(request)));
  Subscription& s = subscriptions_[*type];
  bool more = !s.active;
  for (const std::string& n : names) more |= !s.names.contains(n);
  s.active = true;
  s.names = names;
  MakeUp(*type, names);
  if (!more) return {};
  return {Full(*type)};
}

std::vector<AdsScript::DeltaResponse> AdsScript::OnDeltaRequest(const DeltaRequest& request) {
  const auto type = XdsTypeOf(request.type_url());
  if (!type.has_value()) return {};
  const std::set<std::string> names(request.resource_names_subscribe().begin(),
                                    request.resource_names_subscribe().end());
  const std::set<std::string> gone(request.resource_names_unsubscribe().begin(),
                                   request.resource_names_unsubscribe().end());
  log_.push_back(fmt::format("{} n='{}' +[{}] -[{}]{}{}", XdsTypeName(*type), request.response_nonce(),
                             absl::StrJoin(names, " "), absl::StrJoin(gone, " "), request.has_node() ? " node" : "",
                             ErrorOf(request)));
  Subscription& s = subscriptions_[*type];
  const bool first = !s.active;
  s.active = true;
  for (const std::string& n : gone) s.names.erase(n);
  s.names.insert(names.begin(), names.end());
  MakeUp(*type, names);
  if (!first && names.empty()) return {};
  DeltaResponse response;
  response.set_type_url(std::string(XdsTypeUrl(*type)));
  ++count_;
  response.set_system_version_info(fmt::format("v{}", count_));
  response.set_nonce(fmt::format("n{}", count_));
  for (const auto& [name, bytes] : world_[*type]) {
    if (!Wildcard(*type) && !names.contains(name)) continue;
    auto* resource = response.add_resources();
    resource->set_name(name);
    resource->set_version(fmt::format("v{}", count_));
    resource->mutable_resource()->set_type_url(std::string(XdsTypeUrl(*type)));
    resource->mutable_resource()->set_value(bytes);
  }
  return {response};
}

std::set<XdsType> AdsScript::Apply(const Push& push) {
  std::set<XdsType> changed;
  for (const auto& [type, resources] : push.upserts) {
    for (const auto& [name, bytes] : resources) world_[type][name] = bytes;
    changed.insert(type);
  }
  for (const auto& [type, name] : push.removals) {
    world_[type].erase(name);
    changed.insert(type);
  }
  return changed;
}

std::vector<AdsScript::Response> AdsScript::Change(const Push& push) {
  std::vector<Response> out;
  for (XdsType type : Apply(push)) {
    if (!subscriptions_[type].active) continue;
    Response response = Full(type);
    if (!Wildcard(type)) {
      // Only what changed, as istiod does; what is left out is kept by Envoy.
      const auto changed = push.upserts.find(type);
      response.clear_resources();
      if (changed != push.upserts.end()) {
        for (const auto& [name, bytes] : changed->second) {
          auto* any = response.add_resources();
          any->set_type_url(std::string(XdsTypeUrl(type)));
          any->set_value(bytes);
        }
      }
    }
    out.push_back(std::move(response));
  }
  return out;
}

std::vector<AdsScript::DeltaResponse> AdsScript::ChangeDelta(const Push& push) {
  std::vector<DeltaResponse> out;
  for (XdsType type : Apply(push)) {
    if (!subscriptions_[type].active) continue;
    DeltaResponse response;
    response.set_type_url(std::string(XdsTypeUrl(type)));
    ++count_;
    response.set_system_version_info(fmt::format("v{}", count_));
    response.set_nonce(fmt::format("n{}", count_));
    if (const auto changed = push.upserts.find(type); changed != push.upserts.end()) {
      for (const auto& [name, bytes] : changed->second) {
        auto* resource = response.add_resources();
        resource->set_name(name);
        resource->set_version(fmt::format("v{}", count_));
        resource->mutable_resource()->set_type_url(std::string(XdsTypeUrl(type)));
        resource->mutable_resource()->set_value(bytes);
      }
    }
    for (const auto& [removed_type, name] : push.removals) {
      if (removed_type == type) response.add_removed_resources(name);
    }
    out.push_back(std::move(response));
  }
  return out;
}

}  // namespace wavetank::envoydiff
