// IstioCertificateService, and what all services need to know of a caller.
#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/match.h"
#include "istio/ca.grpc.pb.h"
#include "serve/grpc/grpc_services.h"
#include "serve/grpc/grpc_stream.h"

namespace wavetank::serve {
namespace {

// istiod takes at most what a CSR of an RSA 4096 key with some names needs; more is no CSR.
constexpr size_t kMaxCsr = 64 << 10;

std::string Metadata(const grpc::CallbackServerContext& context, const char* key) {
  const auto it = context.client_metadata().find(key);
  return it == context.client_metadata().end() ? std::string() : std::string(it->second.data(), it->second.size());
}

class CertificateService final : public istio::v1::auth::IstioCertificateService::CallbackService {
 public:
  explicit CertificateService(ServiceContext context) : context_(std::move(context)) {}

 private:
  grpc::ServerUnaryReactor* CreateCertificate(grpc::CallbackServerContext* context,
                                              const istio::v1::auth::IstioCertificateRequest* in,
                                              istio::v1::auth::IstioCertificateResponse* out) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    // istiod registers it with the server that speaks TLS alone (istiod: pilot/pkg/bootstrap/server.go, startCA).
    if (!context_.tls) {
      reactor->Finish(ToGrpc(absl::UnimplementedError("unknown service istio.v1.auth.IstioCertificateService")));
      return reactor;
    }
    if (in->csr().size() > kMaxCsr) {
      reactor->Finish(ToGrpc(absl::InvalidArgumentError("the CSR is too large")));
      return reactor;
    }
    security::CertificateRequestMessage request;
    request.csr = in->csr();
    request.validity_seconds = in->validity_duration();
    const auto& metadata = in->metadata().fields();
    if (const auto it = metadata.find("ImpersonatedIdentity"); it != metadata.end()) {
      request.impersonated_identity = it->second.string_value();
    }
    if (const auto it = metadata.find("CertSigner"); it != metadata.end()) {
      request.cert_signer = it->second.string_value();
    }
    TransportPeer peer = PeerOf(*context, context_.tls);
    absl::StatusOr<StreamPlaceRef> place = EnterCall(*context_.frontend, peer);
    if (!place.ok()) {
      reactor->Finish(ToGrpc(place.status()));
      return reactor;
    }
    context_.frontend->CreateCertificate(
        context_.cluster, std::move(peer), std::move(request),
        [reactor, out, place = *std::move(place)](absl::StatusOr<std::vector<std::string>> chain) {
          if (!chain.ok()) return reactor->Finish(ToGrpc(chain.status()));
          for (std::string& pem : *chain) out->add_cert_chain(std::move(pem));
          reactor->Finish(grpc::Status::OK);
        });
    return reactor;
  }
  const ServiceContext context_;
};

}  // namespace

TransportPeer PeerOf(const grpc::CallbackServerContext& context, bool tls) {
  TransportPeer out;
  out.tls = tls;
  out.address = context.peer();
  if (tls) {
    for (const grpc::string_ref& pem : context.auth_context()->FindPropertyValues("x509_pem_cert")) {
      out.certificate_pem.assign(pem.data(), pem.size());
    }
  }
  const std::string authorization = Metadata(context, "authorization");
  if (absl::StartsWith(authorization, "Bearer ")) out.bearer_token = authorization.substr(7);
  out.cluster_id = Metadata(context, "clusterid");
  return out;
}

std::unique_ptr<grpc::Service> MakeCertificateService(const ServiceContext& context) {
  return std::make_unique<CertificateService>(context);
}

}  // namespace wavetank::serve
