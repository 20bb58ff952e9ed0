// The gRPC services of one primary cluster's istiod, each made for one kind of listener. Headers of generated stubs
// stay in the sources.
#pragma once

#include <memory>
#include <string>

#include "serve/grpc/frontend.h"

namespace grpc {
class CallbackServerContext;
class Service;
}  // namespace grpc

namespace wavetank::serve {

class WorkloadSecrets;

// All outlive the services.
struct ServiceContext {
  Frontend* frontend = nullptr;
  WorkloadSecrets* secrets = nullptr;
  std::string cluster;  // whose istiod answers
  bool tls = false;
};

// The caller, from the connection and the call's metadata.
TransportPeer PeerOf(const grpc::CallbackServerContext& context, bool tls);

std::unique_ptr<grpc::Service> MakeAdsService(const ServiceContext& context);
std::unique_ptr<grpc::Service> MakeSecretService(const ServiceContext& context);
std::unique_ptr<grpc::Service> MakeCertificateService(const ServiceContext& context);

}  // namespace wavetank::serve
