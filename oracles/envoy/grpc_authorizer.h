// An authorizer that speaks Envoy's gRPC (envoy.service.auth.v3.Authorization), as fakes/envoy/apps/ext_authz_app.h
// answers. It knows the two messages only as far as the answer needs: no stubs of that service are generated.
#pragma once

#include <memory>
#include <string>

#include "oracles/envoy/case.h"

namespace wavetank::envoydiff {

class GrpcAuthorizer {
 public:
  virtual ~GrpcAuthorizer() = default;
  // Whether it listens, what it answers and when. False: it cannot listen.
  virtual bool Set(const BackendState& state) = 0;

  static std::unique_ptr<GrpcAuthorizer> Make(std::string address);
};

}  // namespace wavetank::envoydiff
