// Which filters there are, by the message that configures them. Filled in filters/registry.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "fakes/envoy/config/http_filter.h"
#include "fakes/envoy/config/network_filter.h"
#include "fakes/envoy/extensions/extensions.h"
#include "google/protobuf/any.pb.h"

namespace wavetank::envoysim {

struct FilterChain;

struct FilterContext {
  const Extensions& extensions;
  std::string_view name;         // of the filter in its chain
  std::string_view stat_prefix;  // of its connection manager, "http.in."; empty for network filters
};

// Status: InvalidArgument with Envoy's words if it would refuse the configuration.
struct HttpFilterType {
  std::string_view message;
  std::string_view name;  // of Envoy's own; configuration may give it alone
  bool terminal = false;
  // A null pointer: the filter does nothing and is left out of the chain.
  absl::StatusOr<std::shared_ptr<const HttpFilter>> (*make)(const google::protobuf::Any& config,
                                                            const FilterContext& context) = nullptr;
  // Of what routes say to it; nullptr: nothing.
  std::string_view route_message = {};
  absl::StatusOr<std::shared_ptr<const RouteFilterConfig>> (*make_for_route)(const google::protobuf::Any& config,
                                                                             const Extensions& extensions) = nullptr;
};

struct NetworkFilterType {
  std::string_view message;
  std::string_view name;
  bool terminal = false;
  // Adds the filter to the chain, or makes the chain's end of it.
  absl::Status (*add)(const google::protobuf::Any& config, const FilterContext& context, FilterChain* chain) = nullptr;
};

class FilterRegistry {
 public:
  FilterRegistry(absl::Span<const HttpFilterType> http, absl::Span<const NetworkFilterType> network)
      : http_(http), network_(network) {}

  // By the configuration's type, or by name if there is none. nullptr: the filter has no effect here.
  const HttpFilterType* Http(std::string_view message, std::string_view name) const;
  const HttpFilterType* HttpOfRoute(std::string_view route_message) const;
  const NetworkFilterType* Network(std::string_view message, std::string_view name) const;

 private:
  absl::Span<const HttpFilterType> http_;
  absl::Span<const NetworkFilterType> network_;
};

}  // namespace wavetank::envoysim
