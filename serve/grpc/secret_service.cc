// SecretDiscoveryService as Istio's agent offers it to its Envoy: the secrets `default` (certificate and key of the
// workload) and `ROOTCA`. Which workload, the node in the first request says; over TLS the caller must be that very
// workload.
//
// What is sent holds private keys: nothing here may be logged.
#include <grpcpp/impl/codegen/proto_buffer_reader.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/agent/secret_manager.h"
#include "core/xds/proto_adapter.h"
#include "envoy/config/core/v3/base.pb.h"
#include "envoy/extensions/transport_sockets/tls/v3/secret.pb.h"
#include "envoy/service/secret/v3/sds.grpc.pb.h"
#include "fmt/format.h"
#include "serve/grpc/grpc_services.h"
#include "serve/grpc/grpc_stream.h"
#include "serve/grpc/workload_secrets.h"

namespace wavetank::serve {
namespace {

namespace discovery = envoy::service::discovery::v3;
using Sotw = discovery::DiscoveryRequest;
using Delta = discovery::DeltaDiscoveryRequest;

constexpr char kSecretType[] = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

bool Known(const std::string& name) { return name == agent::kWorkloadSecretName || name == agent::kRootSecretName; }

// The resource `name`, which is one of the two.
void Fill(const std::string& name, const WorkloadSecret& from, google::protobuf::Any* out) {
  envoy::extensions::transport_sockets::tls::v3::Secret secret;
  secret.set_name(name);
  if (name == agent::kWorkloadSecretName) {
    secret.mutable_tls_certificate()->mutable_certificate_chain()->set_inline_bytes(from.chain_pem);
    secret.mutable_tls_certificate()->mutable_private_key()->set_inline_bytes(from.key->ExportPrivateKeyPem());
  } else {
    secret.mutable_validation_context()->mutable_trusted_ca()->set_inline_bytes(from.roots_pem);
  }
  out->set_type_url(kSecretType);
  secret.SerializeToString(out->mutable_value());
}

discovery::DiscoveryResponse MakeResponse(const std::set<std::string>& names, const WorkloadSecret& secret) {
  discovery::DiscoveryResponse out;
  out.set_type_url(kSecretType);
  out.set_version_info(secret.version);
  for (const std::string& name : names) Fill(name, secret, out.add_resources());
  return out;
}

grpc::ByteBuffer ToBuffer(const google::protobuf::Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

// The pod that the node speaks of, if this peer may have its secrets.
absl::StatusOr<std::string> Authorize(const sim::World& world, const TransportPeer& peer,
                                      const envoy::config::core::v3::Node& node) {
  // The adapter for requests reads nodes too.
  Sotw carrier;
  *carrier.mutable_node() = node;
  carrier.set_type_url(kSecretType);
  const absl::StatusOr<pilot::DiscoveryRequest> read = pilot::FromProto(carrier);
  if (!read.ok()) return read.status();
  absl::StatusOr<std::string> pod = WorkloadSecrets::PodOf(world, *read->node);
  if (!pod.ok() || !peer.tls) return pod;
  const absl::StatusOr<std::string> identity = WorkloadSecrets::IdentityOf(world, *pod);
  if (!identity.ok()) return identity.status();
  const absl::StatusOr<x509::CertificateRef> leaf =
      x509::Certificate::FromPem(peer.certificate_pem, "the client's certificate");
  if (!leaf.ok()) return absl::UnauthenticatedError("secrets need a client certificate");
  const std::vector<std::string>& uris = (*leaf)->sans().uris;
  if (std::find(uris.begin(), uris.end(), *identity) == uris.end()) {
    return absl::PermissionDeniedError("the client certificate is another workload's");
  }
  return pod;
}

// What a stream subscribes to; on the loop's thread.
class SecretStream : public std::enable_shared_from_this<SecretStream> {
 public:
  SecretStream(const ServiceContext& to, TransportPeer peer, std::shared_ptr<Outbox> outbox)
      : to_(to), peer_(std::move(peer)), outbox_(std::move(outbox)) {}

  absl::Status OnRequest(sim::World& world, const Sotw& request) {
    if (absl::Status status = Identify(world, request.node()); !status.ok()) return status;
    std::set<std::string> names(request.resource_names().begin(), request.resource_names().end());
    // An ACK, a NACK, or what was said before our last response.
    if (!request.response_nonce().empty() && (request.response_nonce() != nonce() || names == names_)) {
      return absl::OkStatus();
    }
    names_ = std::move(names);
    sent_.clear();
    return Follow(world, false);
  }

  absl::Status OnRequest(sim::World& world, const Delta& request) {
    if (absl::Status status = Identify(world, request.node()); !status.ok()) return status;
    for (const std::string& name : request.resource_names_unsubscribe()) {
      names_.erase(name);
      sent_.erase(name);
    }
    for (const std::string& name : request.resource_names_subscribe()) {
      names_.insert(name);
      sent_.erase(name);
    }
    return request.resource_names_subscribe().empty() ? absl::OkStatus() : Follow(world, true);
  }

  // No more of it.
  void End() { subscription_ = nullptr; }

 private:
  std::string nonce() const { return std::to_string(nonce_); }

  absl::Status Identify(sim::World& world, const envoy::config::core::v3::Node& node) {
    if (!pod_.empty()) return absl::OkStatus();
    absl::StatusOr<std::string> pod = Authorize(world, peer_, node);
    if (!pod.ok()) return pod.status();
    pod_ = *std::move(pod);
    return absl::OkStatus();
  }

  absl::Status Follow(sim::World& world, bool delta) {
    if (subscription_ != nullptr) {
      if (last_ != nullptr) Send(*last_, delta);
      return absl::OkStatus();
    }
    subscription_ =
        to_.secrets->Subscribe(world, pod_, [weak = weak_from_this(), delta](const WorkloadSecretRef& secret) {
          const auto self = weak.lock();
          if (self == nullptr) return;
          self->last_ = secret;
          self->Send(*secret, delta);
        });
    return absl::OkStatus();
  }

  void Send(const WorkloadSecret& secret, bool delta) {
    std::set<std::string> names;
    for (const std::string& name : names_) {
      const auto it = sent_.find(name);
      if (Known(name) && (!delta || it == sent_.end() || it->second != secret.version)) names.insert(name);
    }
    if (names.empty()) return;
    ++nonce_;
    for (const std::string& name : names) sent_[name] = secret.version;
    if (!delta) {
      discovery::DiscoveryResponse out = MakeResponse(names, secret);
      out.set_nonce(nonce());
      outbox_->Write(ToBuffer(out));
      return;
    }
    discovery::DeltaDiscoveryResponse out;
    out.set_type_url(kSecretType);
    out.set_system_version_info(secret.version);
    out.set_nonce(nonce());
    for (const std::string& name : names) {
      discovery::Resource* resource = out.add_resources();
      resource->set_name(name);
      resource->set_version(secret.version);
      Fill(name, secret, resource->mutable_resource());
    }
    outbox_->Write(ToBuffer(out));
  }

  const ServiceContext to_;
  const TransportPeer peer_;
  const std::shared_ptr<Outbox> outbox_;
  std::string pod_;  // empty: nothing was asked yet
  std::set<std::string> names_;
  std::map<std::string, std::string> sent_;  // name -> version
  WorkloadSecretRef last_;
  WorkloadSecrets::Subscription subscription_;
  uint64_t nonce_ = 0;
};

template <class Message>
class SecretReactor final : public RawReactor {
 public:
  SecretReactor(const ServiceContext& to, grpc::CallbackServerContext* context)
      : frontend_(*to.frontend),
        outbox_(std::make_shared<Outbox>(this, context, frontend_)),
        peer_(PeerOf(*context, to.tls)),
        stream_(std::make_shared<SecretStream>(to, peer_, outbox_)) {
    absl::StatusOr<StreamPlaceRef> place = EnterStream(frontend_, peer_, outbox_);
    if (!place.ok()) {
      outbox_->Finish(ToGrpc(place.status()));
      return;
    }
    place_ = *std::move(place);
    outbox_->Read(&in_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return outbox_->Finish(grpc::Status::OK);
    place_->Heard();
    grpc::ProtoBufferReader reader(&in_);
    Message message;
    if (!message.ParseFromZeroCopyStream(&reader) || !reader.status().ok()) {
      return outbox_->Finish(ToGrpc(absl::InvalidArgumentError("the request is no discovery request")));
    }
    in_.Clear();
    const bool posted = frontend_.Post(
        peer_, [stream = stream_, outbox = outbox_, in = &in_, message = std::move(message)](sim::World& world) {
          if (absl::Status status = stream->OnRequest(world, message); !status.ok()) {
            return outbox->Finish(ToGrpc(status));
          }
          outbox->Read(in);
        });
    if (!posted) outbox_->Finish(ToGrpc(absl::UnavailableError("the server is going down")));
  }
  void OnWriteDone(bool ok) override { outbox_->Wrote(ok); }
  void OnCancel() override { outbox_->Finish(grpc::Status::CANCELLED); }
  void OnDone() override {
    outbox_->Detach();
    frontend_.Post(peer_, [stream = std::move(stream_)](sim::World&) { stream->End(); });
    delete this;
  }

 private:
  Frontend& frontend_;
  std::shared_ptr<Outbox> outbox_;
  const TransportPeer peer_;
  std::shared_ptr<SecretStream> stream_;
  grpc::ByteBuffer in_;
  StreamPlaceRef place_;
};

using Service = envoy::service::secret::v3::SecretDiscoveryService;
using SecretBase = Service::WithRawCallbackMethod_DeltaSecrets<
    Service::WithRawCallbackMethod_StreamSecrets<Service::WithCallbackMethod_FetchSecrets<Service::Service>>>;

class SecretService final : public SecretBase {
 public:
  explicit SecretService(ServiceContext context) : context_(std::move(context)) {}

 private:
  RawReactor* StreamSecrets(grpc::CallbackServerContext* context) override {
    return new SecretReactor<Sotw>(context_, context);
  }
  RawReactor* DeltaSecrets(grpc::CallbackServerContext* context) override {
    return new SecretReactor<Delta>(context_, context);
  }
  grpc::ServerUnaryReactor* FetchSecrets(grpc::CallbackServerContext* context, const Sotw* request,
                                         discovery::DiscoveryResponse* out) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    // Exactly once: with the secret, with a refusal, or when the loop drops what would have answered.
    struct Answer {
      explicit Answer(grpc::ServerUnaryReactor* r) : reactor(r) {}
      ~Answer() { Finish(absl::UnavailableError("the server is going down")); }
      void Finish(const absl::Status& status) {
        if (grpc::ServerUnaryReactor* r = std::exchange(reactor, nullptr); r != nullptr) r->Finish(ToGrpc(status));
        subscription = nullptr;
      }
      grpc::ServerUnaryReactor* reactor;
      StreamPlaceRef place;
      WorkloadSecrets::Subscription subscription;
    };
    auto answer = std::make_shared<Answer>(reactor);
    const TransportPeer peer = PeerOf(*context, context_.tls);
    absl::StatusOr<StreamPlaceRef> place = EnterCall(*context_.frontend, peer);
    if (!place.ok()) {
      answer->Finish(place.status());
      return reactor;
    }
    answer->place = *std::move(place);
    context_.frontend->Post(peer, [this, peer, request, out, answer](sim::World& world) {
      const absl::StatusOr<std::string> pod = Authorize(world, peer, request->node());
      if (!pod.ok()) return answer->Finish(pod.status());
      std::set<std::string> names;
      for (const std::string& name : request->resource_names()) {
        if (Known(name)) names.insert(name);
      }
      // The answer is held by what waits for the secret; patience ends with the client's own deadline or this one.
      auto subscription =
          context_.secrets->Subscribe(world, *pod, [names, out, answer](const WorkloadSecretRef& secret) {
            if (answer->reactor == nullptr) return;
            *out = MakeResponse(names, *secret);
            answer->Finish(absl::OkStatus());
          });
      if (answer->reactor == nullptr) return;
      answer->subscription = std::move(subscription);
      context_.frontend->loop().PostAfter(10s, [answer](sim::World&) {
        answer->Finish(absl::UnavailableError("istiod has signed no certificate for this pod"));
      });
    });
    return reactor;
  }
  const ServiceContext context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeSecretService(const ServiceContext& context) {
  return std::make_unique<SecretService>(context);
}

}  // namespace wavetank::serve
