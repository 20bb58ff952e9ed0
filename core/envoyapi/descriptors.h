// The whole of Envoy's API by name, also the many messages that no code here has a class for: what a user writes into
// an EnvoyFilter may be any of them. istiod links them all (istiod: pkg/config/xds/filter_types.gen.go).
#pragma once

#include <memory>
#include <string_view>

namespace google::protobuf {
class Message;
}

namespace wavetank::pilot {

// An empty message of the type at the end of the URL; null if there is none of that name. Two of one name have one
// descriptor, which is not that of a generated class.
std::unique_ptr<google::protobuf::Message> NewEnvoyMessage(std::string_view type_url);

}  // namespace wavetank::pilot
