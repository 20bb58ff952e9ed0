// Backends of a case that speak gRPC: authorizers (envoy.service.auth.v3.Authorization, as
// fakes/envoy/apps/ext_authz_app.h answers), rate limit services, and applications that answer any call.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "oracles/envoy/case.h"

namespace wavetank::envoydiff {

class GrpcServer {
 public:
  virtual ~GrpcServer() = default;
  // Whether it listens, what it answers and when. False: it cannot listen.
  virtual bool Set(const BackendState& state) = 0;

  static std::unique_ptr<GrpcServer> Authorizer(std::string address);
  static std::unique_ptr<GrpcServer> Limiter(std::string address, std::vector<envoysim::ServiceLimit> limits);
  static std::unique_ptr<GrpcServer> Application(std::string address);
};

}  // namespace wavetank::envoydiff
