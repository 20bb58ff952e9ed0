#include "core/security/agent.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::security {
namespace {

constexpr size_t kParserCapacity = 1024;
// istiod: pkg/backoff, of the loop that warms the certificate up.
constexpr Duration kWarmUpFirst = 500ms, kWarmUpMax = 60s;
// Envoy's gRPC streams.
constexpr Duration kStreamFirst = 500ms, kStreamMax = 30s;
// istiod: pkg/security/retry.go, CARetryOptions.
constexpr int kCsrAttempts = 5;
constexpr Duration kCsrBackoff = 100ms;

bool Retriable(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
      return true;
    default:
      return false;
  }
}

// The certificates of a PEM text, each as text.
std::vector<std::string> SplitPem(std::string_view pem) {
  constexpr std::string_view kEnd = "-----END CERTIFICATE-----";
  std::vector<std::string> out;
  for (size_t begin = pem.find("-----BEGIN "); begin != std::string_view::npos;
       begin = pem.find("-----BEGIN ", begin)) {
    const size_t end = pem.find(kEnd, begin);
    if (end == std::string_view::npos) break;
    out.emplace_back(pem.substr(begin, end + kEnd.size() - begin));
    begin = end + kEnd.size();
  }
  return out;
}

Duration Scale(Duration d, int64_t ppm) { return d / 1'000'000 * ppm; }

}  // namespace

absl::StatusOr<std::vector<x509::CertificateRef>> CertificateParser::Parse(const std::string& pem,
                                                                           std::string_view what) {
  if (const auto it = chains_.find(pem); it != chains_.end()) return it->second;
  auto parsed = x509::ParseCertificates(pem, what);
  if (!parsed.ok()) return parsed.status();
  if (chains_.size() >= kParserCapacity) chains_.clear();
  return chains_[pem] = *std::move(parsed);
}

absl::StatusOr<x509::TrustBundleRef> CertificateParser::ParseBundle(const std::string& pem, std::string_view what) {
  if (const auto it = bundles_.find(pem); it != bundles_.end()) return it->second;
  auto parsed = x509::TrustBundle::FromPem(pem, what);
  if (!parsed.ok()) return parsed.status();
  if (bundles_.size() >= kParserCapacity) bundles_.clear();
  return bundles_[pem] = *std::move(parsed);
}

Agent::Agent(Host& host, CaClient& client, AgentOptions options)
    : host_(host),
      client_(client),
      options_(std::move(options)),
      parser_(options_.parser != nullptr ? options_.parser : std::make_shared<CertificateParser>()),
      random_(options_.seed, fmt::format("agent/{}", options_.name)),
      config_roots_pem_(options_.extra_roots_pem),
      warm_backoff_(kWarmUpFirst) {}

Agent::~Agent() { Stop(); }

void Agent::Stop() {
  alive_.reset();
  host_.Cancel(std::exchange(rotation_, kNoTimer));
  streams_.clear();
}

void Agent::After(Duration delay, Callback fn) {
  host_.RunAfter(delay, [alive = std::weak_ptr(alive_), fn = std::move(fn)]() mutable {
    if (!alive.expired()) fn();
  });
}

void Agent::Start() { WarmUp(); }

void Agent::WarmUp() {
  warming_up_ = false;
  if (!warm_ && !generating_) Generate();
}

void Agent::ServeIf(const std::function<bool(const Stream&)>& wanted) {
  const std::weak_ptr<char> alive = alive_;
  for (const auto& stream : std::vector(streams_)) {
    if (alive.expired()) return;  // a callback stopped the agent
    if (wanted(*stream)) Serve(stream);
  }
}

void Agent::Subscribe(std::string_view name, OnSecret on_secret) {
  auto stream = std::make_shared<Stream>(Stream{std::string(name), std::move(on_secret), kStreamFirst});
  streams_.push_back(stream);
  Serve(stream);
}

void Agent::Serve(const std::shared_ptr<Stream>& stream) {
  absl::StatusOr<SecretItem> item;
  if (stream->name.starts_with("file-")) {
    item = FromFile(stream->name);
  } else if (!cached_) {
    stream->waiting = true;
    if (!generating_) Generate();
    return;
  } else if (stream->name == kRootSecretName) {
    item = Roots();
  } else {
    // Any other name is served the workload's certificate, as in istiod's agent.
    item = SecretItem{stream->name, key_, chain_, nullptr};
  }
  if (!item.ok()) return Fail(stream, item.status());
  stream->waiting = false;
  stream->backoff = kStreamFirst;
  host_.Emit(
      {.kind = TraceKind::kSecretPushed, .subject = host_.Intern(options_.name), .object = host_.Intern(stream->name)});
  stream->on_secret(*std::move(item));
}

void Agent::Fail(const std::shared_ptr<Stream>& stream, absl::Status why) {
  stream->waiting = false;
  const Duration wait(static_cast<int64_t>(random_.Below(static_cast<uint64_t>(stream->backoff.count()))));
  stream->backoff = std::min(kStreamMax, stream->backoff * 2);
  After(wait, [this, weak = std::weak_ptr(stream)] {
    if (const auto again = weak.lock()) Serve(again);
  });
  stream->on_secret(
      absl::Status(why.code(), fmt::format("failed to generate secret for {}: {}", stream->name, Message(why))));
}

void Agent::Generate() {
  generating_ = true;
  After(options_.key_generation, [this] {
    x509::KeyPairRef key =
        x509::KeyPair::Derive(options_.seed, fmt::format("workload/{}/{}", options_.name, csr_count_));
    std::string csr = x509::CreateCsr(*key, {}, {options_.identity.ToString()});
    SendCsr(std::move(key), std::move(csr), 1);
  });
}

void Agent::SendCsr(x509::KeyPairRef key, std::string csr, int attempt) {
  ++csr_count_;
  client_.CreateCertificate(csr, options_.secret_ttl,
                            [this, alive = std::weak_ptr(alive_), key = std::move(key), csr,
                             attempt](absl::StatusOr<std::vector<std::string>> answer) mutable {
                              if (alive.expired()) return;
                              if (answer.ok() || !Retriable(answer.status()) || attempt >= kCsrAttempts) {
                                return OnSigned(std::move(key), std::move(answer));
                              }
                              // 100 ms doubling, up to a tenth more or less.
                              const Duration base = kCsrBackoff * (1 << (attempt - 1));
                              const Duration wait =
                                  base + Duration(random_.Between(-base.count() / 10, base.count() / 10));
                              After(wait, [this, key = std::move(key), csr = std::move(csr), attempt]() mutable {
                                SendCsr(std::move(key), std::move(csr), attempt + 1);
                              });
                            });
}

void Agent::OnSigned(x509::KeyPairRef key, absl::StatusOr<std::vector<std::string>> answer) {
  generating_ = false;
  absl::Status status = answer.status();
  if (answer.ok()) status = Accept(std::move(key), *answer);
  if (!status.ok()) {
    const absl::Status why(
        status.code(), fmt::format("failed to generate workload certificate: create certificate: {}", Message(status)));
    // Until the first success the agent itself asks again; after it, only streams do.
    if (!warm_ && !warming_up_) {
      warming_up_ = true;
      const int64_t half = warm_backoff_.count() / 2;
      After(Duration(random_.Between(half, 3 * half)), [this] { WarmUp(); });
      warm_backoff_ = std::min(kWarmUpMax, warm_backoff_ * 3 / 2);
    }
    const std::weak_ptr<char> alive = alive_;
    for (const auto& stream : std::vector(streams_)) {
      if (alive.expired()) return;
      if (stream->waiting) Fail(stream, why);
    }
    return;
  }
  warm_ = true;
  const bool new_roots = served_roots_pem_ != roots_pem_;
  served_roots_pem_ = roots_pem_;
  ServeIf([&](const Stream& stream) { return stream.waiting || (new_roots && stream.name == kRootSecretName); });
}

absl::Status Agent::Accept(x509::KeyPairRef key, const std::vector<std::string>& cert_chain) {
  if (cert_chain.size() <= 1) return absl::InternalError("invalid empty CertChain");
  std::vector<x509::CertificateRef> chain;
  for (size_t i = 0; i < cert_chain.size(); ++i) {
    const std::string what = fmt::format("entry {} of istiod's answer", i);
    // The leaf is nobody else's: it is not worth remembering.
    auto certificates = i == 0 ? x509::ParseCertificates(cert_chain[i], what) : parser_->Parse(cert_chain[i], what);
    if (!certificates.ok()) return certificates.status();
    chain.insert(chain.end(), certificates->begin(), certificates->end());
  }
  if (!chain.front()->Matches(*key)) {
    return absl::InternalError("the certificate that istiod sent is for another key");
  }
  key_ = std::move(key);
  leaf_ = chain.front();
  chain_ = std::move(chain);
  roots_pem_ = cert_chain.back();
  cached_ = true;
  ScheduleRotation();
  return absl::OkStatus();
}

void Agent::ScheduleRotation() {
  const Duration life = leaf_->not_after() - host_.Now();
  Duration grace = Scale(life, options_.rotation_grace_ppm);
  if (options_.rotation_jitter_ppm > 0) {
    grace += Scale(life, random_.Between(-options_.rotation_jitter_ppm, options_.rotation_jitter_ppm));
  }
  host_.Cancel(rotation_);
  rotation_ = host_.RunAfter(std::max(Duration::zero(), life - grace), [this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    rotation_ = kNoTimer;
    cached_ = false;
    // Without a stream that wants it nothing is renewed; the next one to come finds the cache empty.
    ServeIf([](const Stream& stream) { return stream.name == kWorkloadSecretName; });
  });
}

absl::StatusOr<SecretItem> Agent::Roots() const {
  // istiod: mergeConfigTrustBundle sorts the certificates by their text.
  std::set<std::string> anchors;
  for (const std::string* pem : {&roots_pem_, &config_roots_pem_}) {
    for (std::string& one : SplitPem(*pem)) anchors.insert(std::move(one));
  }
  std::string all;
  for (const std::string& one : anchors) all += one + "\n";
  auto bundle = parser_->ParseBundle(all, "the root certificates");
  if (!bundle.ok()) return bundle.status();
  return SecretItem{std::string(kRootSecretName), nullptr, {}, *std::move(bundle)};
}

absl::StatusOr<SecretItem> Agent::FromFile(const std::string& name) const {
  // istiod: pkg/security/security.go, SdsCertificateConfigFromResourceName.
  const auto read = [&](std::string_view path) -> absl::StatusOr<std::string> {
    if (!options_.read_file) return absl::NotFoundError(fmt::format("open {}: no such file or directory", path));
    return options_.read_file(path);
  };
  constexpr std::string_view kCert = "file-cert:", kRoot = "file-root:";
  SecretItem item{name, nullptr, {}, nullptr};
  if (name.starts_with(kRoot)) {
    const std::string path = name.substr(kRoot.size());
    const auto pem = read(path);
    if (!pem.ok()) return pem.status();
    auto bundle = x509::TrustBundle::FromPem(*pem, path);
    if (!bundle.ok()) return bundle.status();
    item.roots = *std::move(bundle);
    return item;
  }
  const size_t tilde = name.find('~');
  if (!name.starts_with(kCert) || tilde == std::string::npos) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" names no files; expected file-cert:CERT~KEY", name));
  }
  const std::string cert_path = name.substr(kCert.size(), tilde - kCert.size()), key_path = name.substr(tilde + 1);
  const auto cert_pem = read(cert_path), key_pem = read(key_path);
  if (!cert_pem.ok()) return cert_pem.status();
  if (!key_pem.ok()) return key_pem.status();
  auto chain = x509::ParseCertificates(*cert_pem, cert_path);
  if (!chain.ok()) return chain.status();
  auto key = x509::KeyPair::FromPem(*key_pem, key_path);
  if (!key.ok()) return key.status();
  if (!chain->front()->Matches(**key)) {
    return absl::InvalidArgumentError(fmt::format("{} is not the key of {}", key_path, cert_path));
  }
  item.chain = *std::move(chain);
  item.key = *std::move(key);
  return item;
}

void Agent::OnFileChanged(std::string_view path) {
  ServeIf([path](const Stream& stream) {
    return stream.name.starts_with("file-") && stream.name.find(path) != std::string::npos;
  });
}

void Agent::UpdateConfigTrustBundle(std::string pem) {
  if (pem == config_roots_pem_) return;
  config_roots_pem_ = std::move(pem);
  ServeIf([](const Stream& stream) { return stream.name == kRootSecretName && !stream.waiting; });
}

}  // namespace wavetank::security
