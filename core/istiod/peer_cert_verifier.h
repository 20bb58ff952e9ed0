// Which certificates of clients an istiod believes: by the trust domain that they name, those of its own authorities
// and of the bundles that SPIFFE_BUNDLE_ENDPOINTS names, which it fetches once, before it starts. istiod:
// pilot/pkg/bootstrap/server.go, createPeerCertVerifier; pkg/spiffe/spiffe.go.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "core/base/host.h"
#include "core/x509/x509.h"

namespace wavetank::pilot {

class StartLines;

class PeerCertVerifier {
 public:
  // The body that a URL answers with; nothing: no host of that name does.
  using FetchUrl = std::function<std::optional<std::string>(const std::string&)>;

  // Host and lines outlive it.
  PeerCertVerifier(Host& host, FetchUrl fetch, const StartLines& lines)
      : host_(host), fetch_(std::move(fetch)), lines_(lines) {}

  // `endpoints`: "<trust domain>|<URL>" joined by "||". Tries each for ten seconds. InvalidArgument: it reads
  // otherwise; Unavailable: nobody answers; or what is wrong with a bundle.
  void Fetch(const std::string& endpoints, absl::AnyInvocable<void(absl::Status)> done);

  // `own_roots_pem`: of those who sign for `own_domain`. No chain is fine: there is nothing to believe.
  absl::Status Verify(const std::vector<x509::CertificateRef>& chain, std::string_view own_domain,
                      const std::string& own_roots_pem) const;

 private:
  struct Endpoint {
    std::string domain, url;
  };
  void FetchLast(std::vector<Endpoint> wanted, Time since, Duration pause);

  Host& host_;
  const FetchUrl fetch_;
  const StartLines& lines_;
  absl::AnyInvocable<void(absl::Status)> done_;
  std::map<std::string, std::string> roots_pem_;  // by trust domain
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::pilot
