#include "fakes/envoy/process/ads_transport.h"

#include <utility>

#include "envoy/service/discovery/v3/discovery.pb.h"
#include "google/protobuf/any.pb.h"

namespace wavetank::envoysim {

SotwResponse SotwResponse::Of(const std::shared_ptr<const DiscoveryResponse>& message) {
  struct Views {
    std::shared_ptr<const DiscoveryResponse> message;
    std::vector<std::string_view> resources;
  };
  const auto views = std::make_shared<Views>(Views{message, {}});
  for (const google::protobuf::Any& any : message->resources()) views->resources.push_back(any.value());
  auto body = std::make_shared<ResponseBody>();
  body->type_url = message->type_url();
  body->resources.reserve(views->resources.size());
  for (const google::protobuf::Any& any : message->resources()) {
    if (any.type_url() != body->type_url) body->other_types.emplace_back(body->resources.size(), any.type_url());
    body->resources.emplace_back(views, &views->resources[body->resources.size()]);
    body->bytes += any.value().size();
  }
  return {std::move(body), message->version_info(), message->nonce()};
}

void AdsStream::SendPlain(Subscription plain) {
  DiscoveryRequest request;
  request.set_type_url(std::string(plain.type_url));
  request.set_version_info(std::move(plain.version));
  request.set_response_nonce(std::move(plain.nonce));
  if (plain.names != nullptr) {
    request.mutable_resource_names()->Reserve(static_cast<int>(plain.names->size()));
    for (const std::string& name : *plain.names) request.add_resource_names(name);
  }
  Send(std::move(request));
}

}  // namespace wavetank::envoysim
