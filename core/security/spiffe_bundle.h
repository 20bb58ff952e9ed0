// Roots that SPIFFE bundle endpoints serve, as meshConfig.caCertificates names them by spiffeBundleUrl (istiod:
// pkg/spiffe/spiffe.go, RetrieveSpiffeBundleRootCerts; pilot/pkg/trustbundle, ProcessRemoteTrustAnchors).
//
// Fetched when the list of endpoints changes, and every half an hour. One that does not answer is asked again, with
// pauses that double from 50 ms, until ten seconds are over; then it has no roots until the next time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/host.h"

namespace wavetank::security {

class TrustBundleSources;

// The certificates of a bundle's keys for X.509 SVIDs, each as PEM; or what istiod logs of a document that is none.
absl::StatusOr<std::vector<std::string>> ParseSpiffeBundle(std::string_view trust_domain, std::string_view url,
                                                           std::string_view document);

class SpiffeEndpoints {
 public:
  // What a URL answers; nothing: no server does.
  using WebFetch = std::function<std::optional<std::string>(const std::string& url)>;
  // Both references outlive it.
  SpiffeEndpoints(Host& host, TrustBundleSources& bundle, std::string trust_domain, WebFetch fetch);

  void SetEndpoints(const std::vector<std::string>& urls);
  // What went wrong last with one of them; OK if nothing did.
  const absl::Status& trouble() const { return trouble_; }

 private:
  struct Round;
  void Poll();
  void FetchAll();
  void FetchNext(const std::shared_ptr<Round>& round, Time since, Duration pause);
  void Done(const Round& round);
  void After(Duration delay, Callback fn);

  Host& host_;
  TrustBundleSources& bundle_;
  const std::string trust_domain_;
  const WebFetch fetch_;
  std::vector<std::string> urls_;
  std::shared_ptr<Round> round_;  // the newest; an older one is over
  bool polling_ = false;
  absl::Status trouble_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::security
