// A container of cert-manager's istio-csr, by its arguments (istio-csr: cmd/app/options/options.go,
// pkg/istiodcert/options.go, with their defaults).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/time.h"
#include "nlohmann/json.hpp"

namespace wavetank::sim {

// As cert-manager's objects refer to an issuer.
struct IssuerName {
  std::string name = "istio-ca", kind = "Issuer", group = "cert-manager.io";
  friend bool operator==(const IssuerName&, const IssuerName&) = default;
};

struct IstioCsrSettings {
  static constexpr const char* kIstiodSecret = "istiod-tls";  // where istiod looks for its certificate

  std::string container;
  uint16_t port = 6443;                                // --serving-address
  bool serves_itself = false;                          // at an address of the pod's own alone, as 127.0.0.1
  std::string certificate_namespace = "istio-system";  // --certificate-namespace
  std::optional<IssuerName> issuer = IssuerName();     // nothing: --issuer-enabled=false
  // --runtime-issuance-config-map-name and -namespace: a ConfigMap that names another issuer, if it is there.
  std::string issuer_map, issuer_map_namespace;
  bool preserve_requests = false;                 // --preserve-certificate-requests
  std::string trust_domain = "cluster.local";     // --trust-domain
  std::string roots_file;                         // --root-ca-file; empty: what the issuer says that its CA is
  std::vector<std::string> serving_names;         // --serving-certificate-dns-names
  Duration serving_lifetime = 1h;                 // --serving-certificate-duration
  Duration max_client_lifetime = 1h;              // --max-client-certificate-duration
  std::string cluster_id = "Kubernetes";          // --cluster-id
  bool client_certificates = false;               // --enable-client-cert-authenticator
  std::string leader_namespace = "istio-system";  // --leader-election-namespace

  // The Certificate that it makes for istiod (--istiod-cert-*), where the chart has not.
  bool makes_istiod_certificate = false;
  std::string istiod_certificate = "istiod-dynamic", istiod_namespace = "istio-system";
  Duration istiod_lifetime = 1h, istiod_renew_before = 30min;
  std::vector<std::string> istiod_revisions = {"default"}, istiod_more_names;

  std::vector<std::string> unheeded;  // arguments that are given and have no effect here

  // Arguments that cannot be: what it ends with at once, what once it has a serving certificate, and why it asks for
  // none. Empty: they can.
  std::string ends, ends_when_serving, no_request;

  // Of a pod; nothing: no container's image is ".../cert-manager-istio-csr:TAG".
  static std::optional<IstioCsrSettings> Of(const nlohmann::json& pod);
};

// What is told of a container that ends so (istio-csr: cmd/main.go, and how klog prints an error).
std::string EndsWith(const std::string& container, const std::string& error);

}  // namespace wavetank::sim
