// What an agent finds when it starts: roots by which it believes istiod and the CA, a token, a key that it can make
// (core/agent/agent_setup.h). Of a simulated pod these are what is mounted into it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "core/inject/proxy_bootstrap.h"
#include "core/x509/x509.h"
#include "sim/agent/pod_files.h"

namespace wavetank::sim {

class AgentStart {
 public:
  using Pem = std::function<absl::StatusOr<std::string>()>;
  // `mesh_roots`: what istio-ca-root-cert holds, also for pods that mount no volume of it. `api_server_roots`: what
  // every pod has of its API server.
  AgentStart(std::unique_ptr<PodFiles> files, Pem mesh_roots, std::string api_server_roots)
      : files_(std::move(files)), mesh_roots_(std::move(mesh_roots)), api_server_roots_(std::move(api_server_roots)) {}

  // InvalidArgument: the agent ends with an error, in its words.
  absl::Status Look(const pilot::ProxyBootstrap& bootstrap, const pilot::ProxyEnvironment& environment);

  // As they are now.
  absl::StatusOr<std::string> XdsRoots() const { return Roots(xds_roots_); }
  absl::StatusOr<std::string> CaRoots() const { return Roots(ca_roots_); }
  // Of PROV_CERT, leaf first; empty: there is none, or the token counts instead, `why` then says why.
  std::vector<x509::CertificateRef> ClientCertificate(Time now, std::string* why) const;
  // Whether its key can be used for it.
  absl::Status ClientKey(Time now) const;
  bool same_roots() const { return xds_roots_ == ca_roots_; }

  enum class Token : uint8_t { kNone, kOfTheAccount, kProjected };  // JWT_POLICY
  Token token() const { return token_; }
  const absl::Status& key() const { return key_; }  // why none is made

 private:
  absl::StatusOr<std::string> Read(const std::string& path) const;
  absl::StatusOr<std::string> Roots(const std::string& path) const;

  std::unique_ptr<PodFiles> files_;
  const Pem mesh_roots_;
  const std::string api_server_roots_;
  std::string xds_roots_, ca_roots_;  // paths; empty: the system's
  std::string provisioned_;           // PROV_CERT, a folder
  Token token_ = Token::kProjected;
  absl::Status key_;
};

}  // namespace wavetank::sim
