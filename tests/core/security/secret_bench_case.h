// The mesh of istiod's SecretGeneration benchmark (docs/istiod-benchmarks.md): a router that asks for N TLS Secrets of
// its namespace. The benchmark measures it, a test checks it.
#pragma once

#include <memory>
#include <string>

#include "core/gen/sds/secret_generator.h"
#include "core/kube/secret.h"
#include "core/x509/x509.h"
#include "sim/kernel/kernel.h"
#include "tests/core/kube/memory_client.h"

namespace wavetank::security {

// All Secrets hold one certificate, as istiod's do; the key is filler as long as theirs (RSA, 2048 bits), since nobody
// reads keys. Uncached.
class SecretBenchCase {
 public:
  explicit SecretBenchCase(int secrets) {
    const std::string certificate = x509::MakeRootCa(1, "Internet Widgits", Time{}, 24h * 365).certificate->ToPem();
    const std::string key = "-----BEGIN RSA PRIVATE KEY-----\n" + std::string(1640, 'A');
    for (int i = 0; i < secrets; ++i) {
      const std::string name = "sds-credential-" + std::to_string(i);
      client_.Put(
          kube::MakeSecret("default", name, {{"tls.crt", certificate}, {"tls.key", key}}, {}, {}, "kubernetes.io/tls")
              ->body);
      names_.push_back("kubernetes://default/" + name);
    }
    credentials_
        .AddCluster("Kubernetes", std::make_unique<CredentialsController>(host_, client_, &reviewer_, "Kubernetes", 1))
        .Start();
    kernel_.RunUntil(kernel_.Now() + 100ms);
    proxy_.type = pilot::NodeType::kRouter;
    proxy_.verified_identity = "spiffe://cluster.local/ns/default/sa/router";
    proxy_.metadata.cluster_id = pilot::ClusterId("Kubernetes");
    watched_.type = pilot::XdsType::kSds;
    watched_.resource_names = names_;
    request_.full = true;
  }

  pilot::GeneratedResources Generate() { return generator_.Generate(proxy_, watched_, request_); }

 private:
  struct Everybody final : kube::AccessReviewer {
    bool Allowed(const kube::AccessRequest&) const override { return true; }
  };

  sim::Kernel kernel_{1};
  Host& host_ = kernel_.NewHost("istiod", 0, nullptr);
  kube::MemoryClient client_{host_};
  Everybody reviewer_;
  Credentials credentials_{"Kubernetes"};
  pilot::XdsCache cache_{false};
  SecretGenerator generator_{host_, credentials_, cache_};
  pilot::Proxy proxy_;
  std::vector<std::string> names_;
  pilot::WatchedResource watched_;
  pilot::PushRequest request_;
};

}  // namespace wavetank::security
