#include "serve/grpc/grpc_server.h"

#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/codegen/service_type.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <unistd.h>

#include <utility>

#include "core/base/status.h"
#include "core/istiod/istiod.h"
#include "fmt/format.h"
#include "serve/grpc/grpc_services.h"
#include "serve/loop/stop_flag.h"

namespace wavetank::serve {
namespace {

// istiod's: pkg/istio-agent/grpcxds, pilot/pkg/grpc.
constexpr int kKeepaliveMs = 30'000, kKeepaliveTimeoutMs = 10'000, kMinClientPingMs = 15'000;
// Of connections without a stream, and of such that do not come so far.
constexpr int kConnectionIdleMs = 300'000, kHandshakeMs = 20'000;
// What all clients of one server may have in buffers for reading.
constexpr size_t kBufferBytes = 512 << 20;

// How often the istiod's certificate and roots are compared with those that TLS listens with.
constexpr Duration kLookAtCertificate = 500ms;

struct Serving {
  std::string key_pem, chain_pem, roots_pem;
  bool operator==(const Serving&) const = default;
};

std::string WithPort(const std::string& address, int port) {
  return address.substr(0, address.rfind(':') + 1) + std::to_string(port);
}

// One grpc::Server with its services.
class Listener {
 public:
  explicit Listener(const ServiceContext& context)
      : services_{MakeAdsService(context), MakeSecretService(context), MakeCertificateService(context)} {}
  ~Listener() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
    server_->Wait();
  }

  // `addresses` get the ports that they were given; ports of Unix sockets say nothing.
  absl::Status Start(const Limits& limits, const std::shared_ptr<grpc::ServerCredentials>& credentials,
                     const std::vector<std::string*>& addresses, const std::vector<std::string>& unix_sockets) {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(static_cast<int>(limits.message_bytes));
    builder.SetMaxSendMessageSize(-1);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(limits.streams_per_connection));
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinClientPingMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kConnectionIdleMs);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
    // Two programs on one port would share its connections without anybody noticing.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.SetResourceQuota(grpc::ResourceQuota("wavetank").Resize(kBufferBytes));
    std::vector<int> ports(addresses.size(), 0);
    for (size_t i = 0; i < addresses.size(); ++i) builder.AddListeningPort(*addresses[i], credentials, &ports[i]);
    for (const std::string& path : unix_sockets) builder.AddListeningPort("unix:" + path, credentials);
    for (const auto& service : services_) builder.RegisterService(service.get());
    // For the whole process, which serves nothing else by gRPC: its own health service, in each server built from now
    // on.
    grpc::EnableDefaultHealthCheckService(true);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      std::string all;
      for (const std::string* address : addresses) all += " " + *address;
      for (const std::string& path : unix_sockets) all += " " + path;
      return absl::UnavailableError(
          fmt::format("cannot listen on{}: is the address this machine's, and does nobody else listen there?", all));
    }
    for (size_t i = 0; i < addresses.size(); ++i) *addresses[i] = WithPort(*addresses[i], ports[i]);
    return absl::OkStatus();
  }

 private:
  std::unique_ptr<grpc::Service> services_[3];
  std::unique_ptr<grpc::Server> server_;
};

// Whether the istiod of a cluster believes a client's certificate: by the roots of the certificate's own trust domain,
// so that TLS itself verifies none. istiod: pilot/pkg/bootstrap/server.go, initSecureDiscoveryService,
// VerifyPeerCertificate
class ClientVerifier final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  ClientVerifier(Loop& loop, std::string cluster) : loop_(loop), cluster_(std::move(cluster)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*later*/, grpc::Status* now) override {
    *now = grpc::Status::OK;
    const auto text = [](const grpc::string_ref& of) { return std::string(of.data(), of.size()); };
    const std::string leaf = text(request->peer_cert());
    if (leaf.empty()) return true;  // without a certificate a token says who calls
    // At a server OpenSSL's chain is of what comes above the leaf.
    const auto read =
        x509::ParseCertificates(leaf + "\n" + text(request->peer_cert_full_chain()), "a client's certificate");
    if (!read.ok()) {
      *now = {grpc::StatusCode::UNAUTHENTICATED, std::string(read.status().message())};
      return true;
    }
    const std::optional<absl::Status> found = loop_.Call([&](sim::World& world) -> absl::Status {
      sim::IstiodProcess* const istiod = world.IstiodOf(cluster_);
      if (istiod == nullptr) return absl::UnavailableError("the cluster has no istiod");
      return istiod->istiod().VerifyClient(*read);
    });
    if (!found) {
      *now = {grpc::StatusCode::UNAVAILABLE, "the server is going down"};
    } else if (!found->ok()) {
      *now = {grpc::StatusCode::UNAUTHENTICATED, std::string(found->message())};
    }
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  Loop& loop_;
  const std::string cluster_;
};

class ListeningServer final : public GrpcServer {
 public:
  ListeningServer(Frontend& frontend, WorkloadSecrets& secrets, GrpcListeners where)
      : where_(std::move(where)), frontend_(frontend), secrets_(secrets) {}
  ~ListeningServer() override {
    stop_.Raise();
    if (refresher_.joinable()) refresher_.join();
    plaintext_ = nullptr;
    secure_ = nullptr;
    if (!where_.unix_socket.empty()) unlink(where_.unix_socket.c_str());
  }

  absl::Status Start() {
    ServiceContext context{&frontend_, &secrets_, where_.cluster, false};
    if (!where_.plaintext.empty() || !where_.unix_socket.empty()) {
      plaintext_ = std::make_unique<Listener>(context);
      std::vector<std::string*> addresses;
      std::vector<std::string> sockets;
      if (!where_.plaintext.empty()) addresses.push_back(&where_.plaintext);
      if (!where_.unix_socket.empty()) sockets.push_back(where_.unix_socket);
      if (absl::Status status =
              plaintext_->Start(frontend_.limits(), grpc::InsecureServerCredentials(), addresses, sockets);
          !status.ok()) {
        return status;
      }
    }
    if (where_.secure.empty()) return absl::OkStatus();
    serving_ = ServingNow().value_or(Serving());
    where_.secure_waits = serving_.chain_pem.empty();
    if (where_.secure_waits && where_.secure.ends_with(":0")) {
      return absl::UnavailableError(fmt::format(
          "cluster '{}' has no istiod with a certificate yet, so that no port can be chosen for {}; name one "
          "in --secure-listen, which listens once there is one",
          where_.cluster, where_.secure));
    }
    if (!where_.secure_waits) {
      if (absl::Status status = StartSecure(&where_.secure); !status.ok()) return status;
    }
    refresher_ = std::thread([this] { Refresh(); });
    return absl::OkStatus();
  }

  const GrpcListeners& where() const override { return where_; }

 private:
  absl::Status StartSecure(std::string* address) {
    // A client certificate is verified if there is one (ClientVerifier), as istiod does; without it a token must say
    // who calls.
    namespace tls = grpc::experimental;
    tls::TlsServerCredentialsOptions options(std::make_shared<tls::StaticDataCertificateProvider>(
        serving_.roots_pem, std::vector<tls::IdentityKeyCertPair>{
                                {.private_key = serving_.key_pem, .certificate_chain = serving_.chain_pem}}));
    options.watch_root_certs();
    options.watch_identity_key_cert_pairs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
    options.set_certificate_verifier(
        tls::ExternalCertificateVerifier::Create<ClientVerifier>(frontend_.loop(), where_.cluster));
    secure_ = std::make_unique<Listener>(ServiceContext{&frontend_, &secrets_, where_.cluster, true});
    return secure_->Start(frontend_.limits(), tls::TlsServerCredentials(options), {address}, {});
  }

  // A new certificate or new roots need a new listener in this gRPC: clients are hung up on and come again. (istiod
  // keeps their connections.)
  void Refresh() {
    std::string address = where_.secure;  // with the port that it was given
    while (stop_.Wait(kLookAtCertificate)) {
      const std::optional<Serving> now = ServingNow();
      if (!now || now->chain_pem.empty() || *now == serving_) continue;
      serving_ = *now;
      secure_ = nullptr;
      // The port may take a moment to be free.
      while (!StartSecure(&address).ok() && stop_.Wait(kLookAtCertificate)) {
      }
    }
  }

  std::optional<Serving> ServingNow() {
    return frontend_.loop().Call([this](sim::World& world) {
      Serving out;
      sim::IstiodProcess* istiod = world.IstiodOf(where_.cluster);
      const security::ServingCertificate* own = istiod == nullptr ? nullptr : istiod->istiod().serving_certificate();
      if (own == nullptr || own->chain.empty()) return out;
      out.key_pem = own->key->ExportPrivateKeyPem();
      out.chain_pem = x509::ToPem(own->chain);
      out.roots_pem = istiod->istiod().ca_bundle_pem();
      return out;
    });
  }

  GrpcListeners where_;
  Frontend& frontend_;
  WorkloadSecrets& secrets_;
  std::unique_ptr<Listener> plaintext_, secure_;
  Serving serving_;
  StopFlag stop_;
  std::thread refresher_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Listen(Frontend& frontend, WorkloadSecrets& secrets,
                                                               const GrpcListeners& where) {
  // What matters comes as a Status; gRPC's own words on standard error would only be in the way.
  gpr_set_log_function([](gpr_log_func_args*) {});
  auto server = std::make_unique<ListeningServer>(frontend, secrets, where);
  if (absl::Status status = server->Start(); !status.ok()) {
    return status;
  }
  return std::unique_ptr<GrpcServer>(std::move(server));
}

}  // namespace wavetank::serve
