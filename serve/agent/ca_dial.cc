#include "serve/agent/ca_dial.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

#include "istio/ca.grpc.pb.h"

namespace wavetank::serve {
namespace {

using Certificates = istio::v1::auth::IstioCertificateService;

// A CSR is given up after so long; 1.18.2 gives none a deadline of its own, but its stream to the Envoy has one.
constexpr auto kCaPatience = std::chrono::seconds(10);

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> Dial(const DialOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A channel of its own for each: no subchannel with older roots is found again.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // When to try again is the callers' own decision.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (!options.plaintext) {
    grpc::SslCredentialsOptions ssl;
    absl::StatusOr<std::string> roots = options.roots_pem();
    if (!roots.ok()) return roots.status();
    ssl.pem_root_certs = *std::move(roots);
    if (options.certificate_and_key) {
      std::tie(ssl.pem_cert_chain, ssl.pem_private_key) = options.certificate_and_key();
      if (ssl.pem_cert_chain.empty() || ssl.pem_private_key.empty()) ssl.pem_cert_chain = ssl.pem_private_key = "";
    }
    credentials = grpc::SslCredentials(ssl);
    if (!options.server_name.empty()) arguments.SetSslTargetNameOverride(options.server_name);
  }
  return grpc::CreateCustomChannel(options.address, credentials, arguments);
}

void AddCallMetadata(const DialOptions& options, grpc::ClientContext& context) {
  if (!options.cluster_id.empty()) context.AddMetadata("clusterid", options.cluster_id);
  for (const auto& [name, value] : options.headers) context.AddMetadata(name, value);
  if (!options.token) return;
  const std::string token = options.token();
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
}

struct CaDial::Calls {
  std::mutex mutex;
  std::condition_variable gone;
  std::set<grpc::ClientContext*> contexts;
};

CaDial::CaDial(RealHost& host, DialOptions options)
    : host_(host), options_(std::move(options)), calls_(std::make_shared<Calls>()) {}

CaDial::~CaDial() {
  std::unique_lock<std::mutex> lock(calls_->mutex);
  for (grpc::ClientContext* context : calls_->contexts) context->TryCancel();
  calls_->gone.wait(lock, [this] { return calls_->contexts.empty(); });
}

void CaDial::CreateCertificate(std::string csr_pem, Duration ttl,
                               absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>)> done) {
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = Dial(options_);
  if (!channel.ok()) {
    host_.Call([done = std::move(done), why = channel.status()]() mutable { done(why); });
    return;
  }
  struct Call {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<Certificates::Stub> stub;
    grpc::ClientContext context;
    istio::v1::auth::IstioCertificateRequest request;
    istio::v1::auth::IstioCertificateResponse response;
    absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>)> done;
  };
  auto call = std::make_shared<Call>();
  call->channel = *std::move(channel);
  call->stub = Certificates::NewStub(call->channel);
  call->done = std::move(done);
  call->request.set_csr(std::move(csr_pem));
  call->request.set_validity_duration(ttl / std::chrono::seconds(1));
  if (!options_.cert_signer.empty()) {
    (*call->request.mutable_metadata()->mutable_fields())["CertSigner"].set_string_value(options_.cert_signer);
  }
  call->context.set_deadline(std::chrono::system_clock::now() + kCaPatience);
  AddCallMetadata(options_, call->context);
  {
    const std::lock_guard<std::mutex> lock(calls_->mutex);
    calls_->contexts.insert(&call->context);
  }
  grpc::ClientContext* const context = &call->context;
  call->stub->async()->CreateCertificate(
      context, &call->request, &call->response, [this, call, calls = calls_](const grpc::Status& status) {
        absl::StatusOr<std::vector<std::string>> answer =
            std::vector<std::string>(call->response.cert_chain().begin(), call->response.cert_chain().end());
        if (!status.ok()) {
          answer = absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
        }
        host_.Call([done = std::move(call->done), answer = std::move(answer)]() mutable { done(std::move(answer)); });
        const std::lock_guard<std::mutex> lock(calls->mutex);
        calls->contexts.erase(&call->context);
        calls->gone.notify_all();
      });
}

}  // namespace wavetank::serve
