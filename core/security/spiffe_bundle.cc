#include "core/security/spiffe_bundle.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/security/trust_bundle.h"
#include "core/x509/x509.h"
#include "fmt/format.h"

namespace wavetank::security {
namespace {

using nlohmann::json;

constexpr Duration kPollPeriod = 30min, kFirstPause = 50ms, kPatience = 10s;

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseSpiffeBundle(std::string_view trust_domain, std::string_view url,
                                                           std::string_view document) {
  const auto wrong = [&](std::string_view why) {
    return absl::InvalidArgumentError(fmt::format("trust domain [{}] at URL [{}] {}", trust_domain, url, why));
  };
  const json said = ParseJson(document);
  if (!said.is_object()) return wrong("failed to decode bundle: it is no JSON object");
  std::vector<std::string> out;
  const json& keys = Items(At(said, "keys"));
  for (size_t i = 0; i < keys.size(); ++i) {
    if (Text(keys[i], "use") != "x509-svid") continue;
    const json& certificates = Items(At(keys[i], "x5c"));
    if (certificates.size() != 1) {
      return wrong(fmt::format("expected 1 certificate in x509-svid entry {}; got {}", i, certificates.size()));
    }
    std::string der;
    if (!absl::Base64Unescape(TextOf(certificates.front()), &der)) return wrong("failed to decode bundle: bad base64");
    const auto certificate = x509::Certificate::FromDer(der, "a certificate of the bundle");
    if (!certificate.ok()) return wrong("failed to decode bundle: a certificate cannot be read");
    out.push_back((*certificate)->ToPem());
  }
  if (out.empty()) return wrong("does not provide a X509 SVID");
  return out;
}

// One time through the list.
struct SpiffeEndpoints::Round {
  std::vector<std::string> urls;
  size_t next = 0;
  std::vector<std::string> roots;
  absl::Status trouble;
};

SpiffeEndpoints::SpiffeEndpoints(Host& host, TrustBundleSources& bundle, std::string trust_domain, WebFetch fetch)
    : host_(host), bundle_(bundle), trust_domain_(std::move(trust_domain)), fetch_(std::move(fetch)) {}

void SpiffeEndpoints::After(Duration delay, Callback fn) {
  host_.RunAfter(delay, [alive = std::weak_ptr(alive_), fn = std::move(fn)]() mutable {
    if (!alive.expired()) fn();
  });
}

void SpiffeEndpoints::SetEndpoints(const std::vector<std::string>& urls) {
  if (urls_ == urls) return;
  urls_ = urls;
  FetchAll();
  if (!std::exchange(polling_, true)) Poll();
}

void SpiffeEndpoints::Poll() {
  After(kPollPeriod, [this] {
    FetchAll();
    Poll();
  });
}

void SpiffeEndpoints::FetchAll() {
  round_ = std::make_shared<Round>(Round{urls_, 0, {}, absl::OkStatus()});
  FetchNext(round_, host_.Now(), kFirstPause);
}

void SpiffeEndpoints::FetchNext(const std::shared_ptr<Round>& round, Time since, Duration pause) {
  if (round != round_) return;
  if (round->next >= round->urls.size()) return Done(*round);
  const std::string& said = round->urls[round->next];
  const std::string url = said.starts_with("https://") ? said : "https://" + said;
  const std::optional<std::string> body = fetch_(url);
  if (!body && host_.Now() - since <= kPatience) {
    return After(pause, [this, round, since, pause] { FetchNext(round, since, pause * 2); });
  }
  ++round->next;
  if (!body) {
    round->trouble = absl::UnavailableError(
        fmt::format("unable to fetch trust Anchors from endpoint {}: exhausted retries to fetch the SPIFFE bundle {} "
                    "from url {}. Latest error: Calling {} failed with error: no such host",
                    said, trust_domain_, url, url));
  } else if (auto roots = ParseSpiffeBundle(trust_domain_, url, *body); roots.ok()) {
    round->roots.insert(round->roots.end(), roots->begin(), roots->end());
  } else {
    round->trouble = roots.status();
  }
  FetchNext(round, host_.Now(), kFirstPause);
}

void SpiffeEndpoints::Done(const Round& round) {
  trouble_ = round.trouble;
  // Of what cannot be a root nothing is taken.
  if (absl::Status status = bundle_.Update(TrustBundleSources::Source::kSpiffeEndpoints, round.roots); !status.ok()) {
    trouble_ = status;
  }
}

}  // namespace wavetank::security
