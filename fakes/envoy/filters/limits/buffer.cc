#include "fakes/envoy/filters/limits/buffer.h"

#include <memory>

#include "envoy/extensions/filters/http/buffer/v3/buffer.pb.h"
#include "fakes/envoy/http/request_body.h"

namespace wavetank::envoysim {
namespace {

using BufferProto = envoy::extensions::filters::http::buffer::v3::Buffer;
using BufferRouteProto = envoy::extensions::filters::http::buffer::v3::BufferPerRoute;

struct BufferLimit final : RouteFilterConfig {
  bool disabled = false;
  uint32_t max_bytes = 0;
};

absl::StatusOr<uint32_t> MaxBufferBytes(const BufferProto& proto) {
  if (!proto.has_max_request_bytes()) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (BufferValidationError.MaxRequestBytes: value is required and must not be "
        "nil.)");
  }
  if (proto.max_request_bytes().value() == 0) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (BufferValidationError.MaxRequestBytes: value must be greater than 0)");
  }
  return proto.max_request_bytes().value();
}

class BufferFilter final : public HttpFilter {
 public:
  explicit BufferFilter(uint32_t max_bytes) : max_bytes_(max_bytes) {}

  FilterStatus OnRequest(HttpStream& stream, Duration lead) const override {
    const auto* const of_route = dynamic_cast<const BufferLimit*>(stream.RouteConfig());
    if (of_route != nullptr && of_route->disabled) return FilterStatus::kContinue;
    const uint64_t most = of_route != nullptr ? of_route->max_bytes : max_bytes_;
    const std::optional<Duration> due = stream.BodyDue(lead);
    // What comes at once, to its end, is not held against the limit. Envoy: buffer_filter.cc, decodeData
    if (!due.has_value()) return FilterStatus::kContinue;
    const uint64_t bytes = BodyLength(stream.request()).value_or(0);
    if (bytes > most) {
      // As soon as what has come is too much, of a body that comes evenly.
      const auto share = Duration(static_cast<int64_t>(static_cast<double>(due->count()) * static_cast<double>(most) /
                                                       static_cast<double>(bytes)));
      const auto refuse = [](HttpStream& s, Duration after) {
        s.Answer({413, kNoFlags, "request_payload_too_large", "Payload Too Large"}, after);
      };
      if (share == Duration::zero()) {
        refuse(stream, lead);
      } else {
        stream.After(lead + share, [refuse](HttpStream& s) { refuse(s, Duration::zero()); });
      }
      return FilterStatus::kStop;
    }
    if (*due == Duration::zero()) {
      stream.HaveBody();
      return FilterStatus::kContinue;
    }
    stream.After(lead + *due, [](HttpStream& s) { s.Continue(Duration::zero()); });
    return FilterStatus::kStop;
  }

 private:
  const uint32_t max_bytes_;
};

}  // namespace

HttpFilterType BufferFilterType() {
  HttpFilterType type;
  type.message = "envoy.extensions.filters.http.buffer.v3.Buffer";
  type.name = "envoy.filters.http.buffer";
  type.make = [](const google::protobuf::Any& config,
                 const FilterContext&) -> absl::StatusOr<std::shared_ptr<const HttpFilter>> {
    BufferProto proto;
    if (absl::Status s = UnpackConfig(config, &proto); !s.ok()) return s;
    const absl::StatusOr<uint32_t> most = MaxBufferBytes(proto);
    if (!most.ok()) return most.status();
    return std::make_shared<BufferFilter>(*most);
  };
  type.route_message = "envoy.extensions.filters.http.buffer.v3.BufferPerRoute";
  type.make_for_route = [](const google::protobuf::Any& config,
                           const Extensions&) -> absl::StatusOr<std::shared_ptr<const RouteFilterConfig>> {
    BufferRouteProto proto;
    if (absl::Status s = UnpackConfig(config, &proto); !s.ok()) return s;
    auto out = std::make_shared<BufferLimit>();
    out->disabled = proto.disabled();
    if (proto.has_buffer()) {
      const absl::StatusOr<uint32_t> most = MaxBufferBytes(proto.buffer());
      if (!most.ok()) return most.status();
      out->max_bytes = *most;
    }
    return out;
  };
  return type;
}

}  // namespace wavetank::envoysim
