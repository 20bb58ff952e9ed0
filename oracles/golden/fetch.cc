#include "oracles/golden/fetch.h"

#include <utility>

#include "core/xds/messages.h"
#include "oracles/golden/xds_json.h"

namespace wavetank::golden {
namespace {

std::vector<std::string_view> Encoded(const std::vector<pilot::Resource>& resources) {
  std::vector<std::string_view> out;
  for (const pilot::Resource& resource : resources) out.push_back(*resource.bytes);
  return out;
}

}  // namespace

std::shared_ptr<const pilot::Node> NodeOf(const ProxySpec& proxy) {
  auto out = std::make_shared<pilot::Node>();
  out->id = proxy.NodeId();
  out->cluster = proxy.node_cluster;
  out->metadata = proxy.NodeMetadata();
  const std::string& text = proxy.locality;
  const size_t first = text.find('/');
  const size_t second = first == std::string::npos ? first : text.find('/', first + 1);
  out->locality.region = text.substr(0, first);
  if (first != std::string::npos) {
    out->locality.zone = text.substr(first + 1, second == std::string::npos ? second : second - first - 1);
  }
  if (second != std::string::npos) out->locality.sub_zone = text.substr(second + 1);
  return out;
}

Fetch::Fetch(pilot::Istiod& istiod, const ProxySpec& proxy)
    : node_(NodeOf(proxy)), connection_(istiod.OpenAds({.tls = false}, proxy.ip, *this)) {
  Ask(pilot::XdsType::kCds, {});
}

void Fetch::Ask(pilot::XdsType type, std::vector<std::string> names) {
  pilot::DiscoveryRequest request;
  request.type = type;
  request.resource_names = std::move(names);
  request.node = node_;
  connection_->OnRequest(std::move(request));
}

void Fetch::Send(std::shared_ptr<const pilot::DiscoveryResponse> response) {
  // Each type is asked for once; what follows is pushed and of no concern.
  std::vector<std::string> names;
  switch (response->type) {
    case pilot::XdsType::kCds:
      if (!resources_.try_emplace("cds", response->resources).second) return;
      names = EdsNames(Encoded(response->resources));
      if (!names.empty()) return Ask(pilot::XdsType::kEds, std::move(names));
      resources_["eds"];
      return Ask(pilot::XdsType::kLds, {});
    case pilot::XdsType::kEds:
      if (resources_.try_emplace("eds", response->resources).second) Ask(pilot::XdsType::kLds, {});
      return;
    case pilot::XdsType::kLds:
      if (!resources_.try_emplace("lds", response->resources).second) return;
      extensions_ = EcdsNames(Encoded(response->resources));
      names = RdsNames(Encoded(response->resources));
      if (!names.empty()) return Ask(pilot::XdsType::kRds, std::move(names));
      resources_["rds"];
      return AskExtensions();
    case pilot::XdsType::kRds:
      if (resources_.try_emplace("rds", response->resources).second) AskExtensions();
      return;
    case pilot::XdsType::kEcds:
      resources_.try_emplace("ecds", response->resources);
      done_ = true;
      return;
    default:
      return;
  }
}

void Fetch::AskExtensions() {
  if (!extensions_.empty()) return Ask(pilot::XdsType::kEcds, std::move(extensions_));
  resources_["ecds"];
  done_ = true;
}

void Fetch::Close(const absl::Status& status) { status_ = status; }

}  // namespace wavetank::golden
