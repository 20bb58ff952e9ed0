// TLS of applications: what servers show, what clients believe. Their certificates are those of Secrets, or a public
// authority's, which every machine believes and no mesh has.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kube/object.h"
#include "core/x509/x509.h"
#include "fakes/envoy/tls/tls.h"

namespace wavetank::sim {

// Which ports of an application speak TLS, and how.
struct AppTls {
  std::vector<int64_t> ports;  // none: all
  std::string certificate;     // a Secret of the pod's namespace; empty: the public authority's, for the name asked for
  std::string clients;         // a Secret with the authorities whose certificates clients must have; empty: none

  bool Speaks(int64_t port) const;
};

// What a client of TLS says and believes.
struct ClientTls {
  std::string server_name;  // asked for, and wanted in the certificate; empty: neither
  std::string trusts;       // NAMESPACE/NAME of a Secret with authorities; empty: the public one
  std::string certificate;  // NAMESPACE/NAME of a Secret with the client's own; empty: none
  bool insecure = false;    // whatever the server shows will do
};

// Null: there is no such Secret.
using FindSecret = std::function<kube::ObjectRef(std::string_view ns, std::string_view name)>;

const x509::CertificateAuthority& PublicAuthority();

// InvalidArgument names the Secret and what it lacks, or that it is not there.
absl::StatusOr<std::shared_ptr<const envoysim::TlsServer>> ServerOf(const AppTls& tls, std::string_view ns,
                                                                    std::string_view asked_name,
                                                                    const FindSecret& find);
// What its connections begin with. `alpn`: the protocol that the client goes on in. `client`: whose clock it has.
// InvalidArgument as of ServerOf().
absl::StatusOr<std::shared_ptr<const envoysim::FirstFlight>> FlightOf(const ClientTls& tls, std::string_view alpn,
                                                                      const Host* client, const FindSecret& find);

}  // namespace wavetank::sim
