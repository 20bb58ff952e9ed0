#include "fakes/envoy/filters/alpn.h"

#include <memory>
#include <string>

#include "fakes/envoy/config/alpn_offers.h"
#include "fakes/envoy/match/hash128.h"
#include "istio/alpn.pb.h"

namespace wavetank::envoysim {
namespace {

class AlpnFilter final : public HttpFilter {
 public:
  explicit AlpnFilter(const istio::envoy::config::filter::http::alpn::v2alpha1::FilterConfig& message) {
    for (const auto& o : message.alpn_override()) {
      const int protocol = static_cast<int>(o.upstream_protocol());
      if (protocol < 0 || protocol > 2) continue;
      offers_.offers[protocol].assign(o.alpn_override().begin(), o.alpn_override().end());
      std::string all;
      for (const std::string& offer : offers_.offers[protocol]) all.append(offer).push_back('\0');
      offers_.ids[protocol] = HashBytes(all).low;
    }
  }
  FilterStatus OnRequest(HttpStream& stream, Duration) const override {
    stream.OfferAlpn(offers_);
    return FilterStatus::kContinue;
  }

 private:
  AlpnOffers offers_;
};

}  // namespace

HttpFilterType AlpnFilterType() {
  HttpFilterType type;
  type.message = "istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig";
  type.make = [](const google::protobuf::Any& config,
                 const FilterContext&) -> absl::StatusOr<std::shared_ptr<const HttpFilter>> {
    istio::envoy::config::filter::http::alpn::v2alpha1::FilterConfig message;
    if (absl::Status s = UnpackConfig(config, &message); !s.ok()) return s;
    return std::make_shared<AlpnFilter>(message);
  };
  return type;
}

}  // namespace wavetank::envoysim
