#include "core/security/istiod_ca.h"

#include <algorithm>
#include <utility>

#include "core/base/assert.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::security {
namespace {

constexpr KeyCertNames kIstioNames;
constexpr KeyCertNames kTlsNames{"tls.crt", "tls.key", "tls.crt", "ca.crt"};

bool HasTlsNames(const kube::SecretData& data) { return data.contains(kTlsNames.certificate); }

// The certificates one after the other, each on lines of its own.
std::string Concatenate(std::string first, std::string_view second) {
  if (!first.empty() && first.back() != '\n') first += '\n';
  return first.append(second);
}

KeyCertPem PluggedPem(const kube::SecretData& data) {
  const KeyCertNames& names = HasTlsNames(data) ? kTlsNames : kIstioNames;
  KeyCertPem pem{kube::SecretEntry(data, names.certificate), kube::SecretEntry(data, names.key),
                 kube::SecretEntry(data, names.chain), kube::SecretEntry(data, names.roots), names};
  if (HasTlsNames(data)) pem.chain = Concatenate(pem.certificate, pem.roots);
  return pem;
}

}  // namespace

std::vector<std::string> IstiodDnsNames(const std::string& host, std::string_view system_namespace,
                                        std::string_view revision, const std::vector<std::string>& custom_hosts) {
  std::vector<std::string> out{host};
  for (const std::string& custom : custom_hosts) {
    if (!custom.empty() && custom != host) out.push_back(custom);
  }
  std::vector<std::string> known{"istiod", "istiod-remote", "istio-pilot"};
  if (!revision.empty() && revision != "default") known.push_back(fmt::format("istiod-{}", revision));
  for (const std::string& service : known) {
    std::string name = fmt::format("{}.{}.svc", service, system_namespace);
    if (name == host || std::find(custom_hosts.begin(), custom_hosts.end(), name) != custom_hosts.end()) continue;
    out.push_back(std::move(name));
  }
  return out;
}

IstiodCa::IstiodCa(Host& host, kube::Client& client, IstiodCaOptions options)
    : host_(host),
      client_(client),
      options_(std::move(options)),
      random_(options_.seed, fmt::format("istiod-ca/{}", options_.cluster)) {}

IstiodCa::~IstiodCa() { Stop(); }

void IstiodCa::Stop() {
  alive_.reset();
  informer_.reset();
}

void IstiodCa::After(Duration delay, Callback fn) {
  host_.RunAfter(delay, [alive = std::weak_ptr(alive_), fn = std::move(fn)]() mutable {
    if (!alive.expired()) fn();
  });
}

void IstiodCa::Start(absl::AnyInvocable<void(absl::Status)> done) {
  WAVETANK_ASSERT(done != nullptr);
  WAVETANK_ASSERT(ca_ == nullptr);
  on_started_ = std::move(done);
  start_ = host_.Now();
  LoadPlugged();
}

void IstiodCa::Finish(absl::Status status) {
  if (on_started_) std::exchange(on_started_, nullptr)(std::move(status));
}

void IstiodCa::RetryStart(absl::Status why) {
  if (host_.Now() - start_ >= options_.start_timeout) {
    return Finish(absl::Status(
        why.code(),
        fmt::format("failed to create a self-signed istiod CA: deadline exceeded with last error: {}", Message(why))));
  }
  WAVETANK_ASSERT(ca_ == nullptr);  // once it is there, nothing starts again
  WAVETANK_ASSERT(backoff_ <= 60s, backoff_);
  // istiod: pkg/backoff, 0.5 s growing by half up to 60 s, each wait jittered by half.
  const int64_t half = backoff_.count() / 2;
  After(Duration(half + static_cast<int64_t>(random_.Below(static_cast<uint64_t>(2 * half) + 1))),
        [this] { LoadPlugged(); });
  backoff_ = std::min<Duration>(60s, backoff_ * 3 / 2);
}

void IstiodCa::Fetch(std::string_view name, absl::AnyInvocable<void(absl::StatusOr<kube::SecretData>)> done) {
  kube::ListOptions options{options_.system_namespace, "", fmt::format("metadata.name={}", name)};
  client_.List(kube::kinds::kSecret, options,
               [alive = std::weak_ptr(alive_), done = std::move(done)](absl::StatusOr<kube::ObjectList> list) mutable {
                 if (alive.expired()) return;
                 if (!list.ok()) return done(list.status());
                 if (list->items.empty()) return done(absl::NotFoundError("the Secret does not exist"));
                 done(kube::ReadSecretData(*list->items.front()));
               });
}

void IstiodCa::LoadPlugged() {
  Fetch(kPluggedCaSecret, [this](absl::StatusOr<kube::SecretData> data) {
    if (absl::IsNotFound(data.status())) return LoadSelfSigned("");
    if (absl::IsInvalidArgument(data.status())) return Finish(data.status());
    if (!data.ok()) return RetryStart(data.status());
    const KeyCertNames& names = HasTlsNames(*data) ? kTlsNames : kIstioNames;
    if (!data->contains(names.key)) return LoadSelfSigned(kube::SecretEntry(*data, names.roots));
    const std::string what = fmt::format("Secret {}/{}", options_.system_namespace, kPluggedCaSecret);
    // The file may be empty, but is opened (istiod: keycertbundle.go, NewVerifiedKeyCertBundleFromFile); of a TLS
    // Secret it is the certificate's own.
    if (!HasTlsNames(*data) && !data->contains(names.chain)) {
      return Finish(absl::InvalidArgumentError(fmt::format(
          "failed to create CA KeyCertBundle (open etc/cacerts/{0}: no such file or directory): {1}, key {0}, "
          "is missing",
          names.chain, what)));
    }
    Use(PluggedPem(*data), what, true);
  });
}

void IstiodCa::LoadSelfSigned(std::string extra_roots) {
  extra_roots_ = std::move(extra_roots);
  Fetch(kSelfSignedCaSecret, [this](absl::StatusOr<kube::SecretData> data) {
    const std::string what = fmt::format("Secret {}/{}", options_.system_namespace, kSelfSignedCaSecret);
    if (data.ok()) {
      KeyCertPem pem{kube::SecretEntry(*data, "ca-cert.pem"), kube::SecretEntry(*data, "ca-key.pem"), "", "", {}};
      pem.roots = Concatenate(pem.certificate, extra_roots_);
      return Use(std::move(pem), what, false);
    }
    if (!absl::IsNotFound(data.status())) return RetryStart(data.status());
    KeyCertPem made = MakeSelfSignedCa(options_.seed, options_.cluster, options_.trust_domain, host_.WallClock(),
                                       options_.ca.self_signed_ttl);
    KeyCertPem pem = made;
    pem.roots = Concatenate(pem.roots, extra_roots_);
    WriteSelfSigned(std::move(made), [this, pem = std::move(pem), what](absl::Status written) mutable {
      if (!written.ok()) return RetryStart(written);
      Use(std::move(pem), what, false);
    });
  });
}

void IstiodCa::WriteSelfSigned(KeyCertPem pem, absl::AnyInvocable<void(absl::Status)> done) {
  // All five names are written, three of them empty (istiod: ca.BuildSecret).
  client_.Apply(
      kube::MakeSecret(options_.system_namespace, kSelfSignedCaSecret,
                       {{"ca-cert.pem", pem.certificate},
                        {"ca-key.pem", pem.key},
                        {"cert-chain.pem", ""},
                        {"key.pem", ""},
                        {"root-cert.pem", ""}},
                       {}, {}, "istio.io/ca-root"),
      [alive = std::weak_ptr(alive_), done = std::move(done)](absl::StatusOr<kube::ObjectRef> object) mutable {
        if (!alive.expired()) done(object.status());
      });
}

void IstiodCa::Use(KeyCertPem pem, std::string_view what, bool plugged) {
  absl::StatusOr<KeyCertBundleRef> bundle = KeyCertBundle::Create(std::move(pem), host_.WallClock(), what);
  if (!bundle.ok()) {
    // A bad istio-ca-secret is read again until the time is up: somebody may mend it.
    if (!plugged) return RetryStart(bundle.status());
    // istiod: pilot/pkg/bootstrap/istio_ca.go, createIstioCA.
    const bool of_the_bundle = !absl::IsFailedPrecondition(bundle.status());
    return Finish(absl::Status(bundle.status().code(),
                               fmt::format("failed to create discovery service: failed to create CA: failed to create "
                                           "an istiod CA: {}{}{}",
                                           of_the_bundle ? "failed to create CA KeyCertBundle (" : "",
                                           Message(bundle.status()), of_the_bundle ? ")" : "")));
  }
  absl::StatusOr<std::unique_ptr<IstioCa>> ca = IstioCa::Create(*std::move(bundle), options_.ca, host_.WallClock());
  if (!ca.ok()) return Finish(ca.status());
  WAVETANK_ASSERT(ca_ == nullptr);
  ca_ = *std::move(ca);
  plugged_in_ = plugged;
  if (absl::Status renewed = Renew(); !renewed.ok()) return Finish(renewed);
  if (plugged) {
    if (options_.auto_reload) WatchPlugged();
  } else {
    After(options_.root_poll_interval, [this] { PollRoot(); });
    if (options_.root_check_interval > Duration::zero()) {
      const Duration interval = options_.root_check_interval;
      const auto bound = static_cast<uint64_t>(interval.count());
      const Duration drawn(options_.root_check_jitter ? static_cast<int64_t>(random_.Below(bound)) : 0);
      // Jitter counts whole seconds; the ticker starts after it. Their sum may lie beyond the end of time.
      const Duration jitter = std::chrono::floor<std::chrono::seconds>(drawn);
      ScheduleRootCheck(std::min(jitter, Duration::max() - interval) + interval);
    }
  }
  Finish(absl::OkStatus());
}

absl::Status IstiodCa::Renew() {
  WAVETANK_ASSERT(ca_ != nullptr);
  WAVETANK_ASSERT(ca_->bundle() != nullptr);
  const x509::KeyPairRef key =
      x509::KeyPair::Derive(options_.seed, fmt::format("istiod/{}/{}", options_.cluster, ++serving_generation_));
  absl::StatusOr<SignedCertificate> made = ca_->SignServer(*key, options_.dns_names, host_.WallClock());
  if (!made.ok()) return made.status();
  std::vector<x509::CertificateRef> chain{made->leaf};
  if (!ca_->bundle()->chain_pem().empty()) {
    auto rest = x509::ParseCertificates(ca_->bundle()->chain_pem(), "the CA's chain");
    if (!rest.ok()) return rest.status();
    chain.insert(chain.end(), rest->begin(), rest->end());
  }
  serving_ = {key, std::move(chain)};
  ca_bundle_pem_ = ca_->bundle()->roots_pem();
  for (Callback& handler : handlers_) handler();
  return absl::OkStatus();
}

void IstiodCa::WatchPlugged() {
  informer_ = std::make_unique<kube::Informer>(
      host_, client_, kube::kinds::kSecret,
      kube::ListOptions{options_.system_namespace, "", fmt::format("metadata.name={}", kPluggedCaSecret)},
      RandomStream(options_.seed, fmt::format("cacerts-watch/{}", options_.cluster)));
  const auto changed = [this](const kube::ObjectRef& secret) {
    // 100 ms: istiod gathers the events of the files.
    After(options_.mount_delay + 100ms, [this, name = secret->meta.name] {
      if (const kube::ObjectRef now = informer_->Get(options_.system_namespace, name)) ReloadPlugged(*now);
    });
  };
  informer_->AddHandler({changed, [changed](const kube::ObjectRef&, const kube::ObjectRef& s) { changed(s); }, {}});
  informer_->Start();
}

void IstiodCa::ReloadPlugged(const kube::Object& secret) {
  WAVETANK_ASSERT(plugged_in_);
  const auto data = kube::ReadSecretData(secret);
  if (!data.ok()) {
    last_reload_ = data.status();
    return;
  }
  KeyCertPem pem = PluggedPem(*data);
  const KeyCertBundle& old = *ca_->bundle();
  if (pem.roots != old.roots_pem()) {
    last_reload_ = absl::FailedPreconditionError(fmt::format(
        "{}: its roots differ from those in use, and istiod takes over a new intermediate CA only; restart istiod",
        secret.Key()));
    return;
  }
  if (pem.certificate == old.certificate_pem() && pem.chain == old.chain_pem()) return;
  auto bundle = KeyCertBundle::Create(std::move(pem), host_.WallClock(), secret.Key());
  last_reload_ = bundle.status();
  if (!bundle.ok()) return;
  ca_->set_bundle(*std::move(bundle));
  last_reload_ = Renew();
}

void IstiodCa::ScheduleRootCheck(Duration delay) {
  After(delay, [this] {
    CheckRoot();
    ScheduleRootCheck(options_.root_check_interval);
  });
}

void IstiodCa::CheckRoot() {
  WAVETANK_ASSERT(ca_ != nullptr);
  WAVETANK_ASSERT(!plugged_in_);  // a plugged-in root is renewed by its operator
  Fetch(kSelfSignedCaSecret, [this](absl::StatusOr<kube::SecretData> data) {
    const std::string what = fmt::format("Secret {}/{}", options_.system_namespace, kSelfSignedCaSecret);
    last_reload_ = data.status();
    if (!data.ok()) return;
    const Time now = host_.WallClock();
    KeyCertPem pem{kube::SecretEntry(*data, "ca-cert.pem"), kube::SecretEntry(*data, "ca-key.pem"), "", "", {}};
    pem.roots = Concatenate(pem.certificate, extra_roots_);
    const auto stored = x509::Certificate::FromPem(pem.certificate, what);
    bool due = !stored.ok();
    if (stored.ok()) {
      const Duration grace = ((*stored)->not_after() - (*stored)->not_before()) / 100 * options_.root_grace_percent;
      due = (*stored)->not_after() - now <= grace;
    }
    if (!due) {
      // Another istiod renewed it.
      if (pem.certificate == ca_->bundle()->certificate_pem()) return;
      auto bundle = KeyCertBundle::Create(std::move(pem), now, what);
      last_reload_ = bundle.status();
      if (bundle.ok()) ca_->set_bundle(*std::move(bundle));
      return;
    }
    auto renewed = RenewSelfSignedCa(*ca_->bundle(), options_.trust_domain, now, options_.ca.self_signed_ttl);
    last_reload_ = renewed.status();
    if (!renewed.ok()) return;
    KeyCertPem made = *renewed;
    made.roots = Concatenate(made.roots, extra_roots_);
    WriteSelfSigned(*std::move(renewed), [this, what, made = std::move(made)](absl::Status written) mutable {
      last_reload_ = written;
      if (!written.ok()) return;
      auto bundle = KeyCertBundle::Create(std::move(made), host_.WallClock(), what);
      last_reload_ = bundle.status();
      if (bundle.ok()) ca_->set_bundle(*std::move(bundle));
    });
  });
}

void IstiodCa::PollRoot() {
  WAVETANK_ASSERT(!plugged_in_);  // a plugged-in root is watched, not polled
  if (ca_bundle_pem_ != ca_->bundle()->roots_pem()) last_reload_ = Renew();
  After(options_.root_poll_interval, [this] { PollRoot(); });
}

}  // namespace wavetank::security
