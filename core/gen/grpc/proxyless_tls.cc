#include "core/gen/grpc/proxyless_tls.h"

#include "core/envoyapi/any.h"
#include "core/gen/view/common_tls.h"
#include "core/gen/wire/wire.h"

namespace wavetank::pilot {
namespace {

using Common = envoy_tls::CommonTlsContext;
using Combined = Common::CombinedCertificateValidationContext;
using TransportSocket = ::envoy::config::core::v3::TransportSocket;

constexpr std::string_view kProvider = "default";

// The fields that name a provider are deprecated in Envoy's API, hence without setters that compile quietly; they are
// what 1.18 fills and what gRPC of its time reads.
Common CommonContext(const std::vector<std::string>& sans) {
  constexpr int kInstance = 11, kRootInstance = 4;  // CommonTlsContext, CombinedCertificateValidationContext
  constexpr int kInstanceName = 1, kCertificateName = 2;
  envoy_tls::CertificateValidationContext validation;
  AddExactMatchers(sans, SubjectAltNameMatchers(validation));
  const std::string encoded = wire::Encode([&](wire::Writer& w) {
    const auto provider = [&](int field, std::string_view certificate) {
      w.Message(field, [&] {
        w.Bytes(kInstanceName, kProvider);
        w.Bytes(kCertificateName, certificate);
      });
    };
    provider(kInstance, kSdsDefaultResource);
    w.Message(Common::kCombinedValidationContextFieldNumber, [&] {
      w.Bytes(Combined::kDefaultValidationContextFieldNumber, Serialize(validation));
      provider(kRootInstance, kSdsRootResource);
    });
  });
  Common out;
  out.ParseFromString(encoded);
  return out;
}

TransportSocket Socket(const google::protobuf::Message& context) {
  TransportSocket out;
  out.set_name(std::string(kTlsTransportSocket));
  *out.mutable_typed_config() = PackAny(context);
  return out;
}

}  // namespace

TransportSocket ProxylessUpstreamTls(const std::vector<std::string>& sans) {
  envoy_tls::UpstreamTlsContext context;
  *context.mutable_common_tls_context() = CommonContext(sans);
  return Socket(context);
}

TransportSocket ProxylessDownstreamTls() {
  envoy_tls::DownstreamTlsContext context;
  *context.mutable_common_tls_context() = CommonContext({});
  context.mutable_require_client_certificate()->set_value(true);
  return Socket(context);
}

}  // namespace wavetank::pilot
