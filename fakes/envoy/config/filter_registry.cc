#include "fakes/envoy/config/filter_registry.h"

namespace wavetank::envoysim {
namespace {

template <typename Type>
const Type* Find(absl::Span<const Type> types, std::string_view message, std::string_view name) {
  for (const Type& type : types) {
    if (message.empty() ? type.name == name : type.message == message) return &type;
  }
  return nullptr;
}

}  // namespace

const HttpFilterType* FilterRegistry::Http(std::string_view message, std::string_view name) const {
  return Find(http_, message, name);
}

const HttpFilterType* FilterRegistry::HttpOfRoute(std::string_view route_message) const {
  for (const HttpFilterType& type : http_) {
    if (type.make_for_route != nullptr && type.route_message == route_message) return &type;
  }
  return nullptr;
}

const NetworkFilterType* FilterRegistry::Network(std::string_view message, std::string_view name) const {
  return Find(network_, message, name);
}

}  // namespace wavetank::envoysim
