#include "core/agent/secret_manager.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/assert.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::agent {
namespace {

constexpr std::string_view kFileCert = "file-cert:", kFileRoot = "file-root:";
// istiod: pkg/backoff, of the loop that warms the certificate up.
constexpr Duration kWarmUpFirst = 500ms, kWarmUpMax = 60s;
// Envoy's gRPC streams.
constexpr Duration kStreamFirst = 500ms, kStreamMax = 30s;
// istiod: pkg/security/retry.go, CARetryOptions.
constexpr int kCsrAttempts = 5;
constexpr Duration kCsrBackoff = 100ms;
// Of reading files that are not there, or are no pair yet (secretcache.go, totalTimeout).
constexpr Duration kFilePatience = 10s;

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

// "./etc/certs" of "./etc/certs/key.pem", without what says nothing ("./", a slash at the end).
std::string_view FolderOf(std::string_view path) {
  if (path.starts_with("./")) path.remove_prefix(2);
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

// The files of "file-cert:CERT~KEY" or "file-root:CA"; empty if the name is none of these (istiod:
// pkg/security/security.go, SdsCertificateConfigFromResourceName).
std::vector<std::string> PathsIn(std::string_view name) {
  if (name.starts_with(kFileRoot)) {
    const std::string_view path = name.substr(kFileRoot.size());
    return path.empty() || path.find('~') != std::string_view::npos ? std::vector<std::string>()
                                                                    : std::vector{std::string(path)};
  }
  const size_t tilde = name.find('~');
  if (!name.starts_with(kFileCert) || tilde == std::string_view::npos ||
      name.find('~', tilde + 1) != std::string_view::npos) {
    return {};
  }
  return {std::string(name.substr(kFileCert.size(), tilde - kFileCert.size())), std::string(name.substr(tilde + 1))};
}

}  // namespace

SecretManager::SecretManager(Host& host, security::CaClient& client, SecretOptions options)
    : host_(host),
      client_(client),
      options_(std::move(options)),
      parser_(options_.parser != nullptr ? options_.parser : std::make_shared<security::CertificateParser>()),
      random_(options_.seed, fmt::format("agent/{}", options_.name)),
      warm_backoff_(kWarmUpFirst) {}

SecretManager::~SecretManager() { Stop(); }

void SecretManager::Stop() {
  alive_.reset();
  host_.Cancel(std::exchange(rotation_, kNoTimer));
  listeners_.clear();
}

void SecretManager::After(Duration delay, Callback fn) {
  host_.RunAfter(delay, [alive = std::weak_ptr(alive_), fn = std::move(fn)]() mutable {
    if (!alive.expired()) fn();
  });
}

void SecretManager::Start() {
  // Files that others mount need no warm-up (sdsservice.go, newSDSService).
  if (!options_.file_mounted_certs) WarmUp();
}

void SecretManager::WarmUp() {
  warming_up_ = false;
  if (FromFiles(std::string(kWorkloadSecretName))) return;
  if (!warm_ && !generating_) Generate();
}

void SecretManager::ServeIf(const std::function<bool(const Listener&)>& wanted) {
  const std::weak_ptr<char> alive = alive_;
  for (const auto& listener : std::vector(listeners_)) {
    if (alive.expired()) return;  // a callback stopped the agent
    if (!listener->over && wanted(*listener)) Serve(listener);
  }
}

SecretManager::ListenerRef SecretManager::Add(std::string_view name, OnSecret on_secret, bool again) {
  auto listener = std::make_shared<Listener>();
  listener->name = std::string(name);
  listener->on_secret = std::move(on_secret);
  listener->again = again;
  listener->backoff = kStreamFirst;
  listeners_.push_back(listener);
  Serve(listener);
  return listener;
}

void SecretManager::Subscribe(std::string_view name, OnSecret on_secret) { Add(name, std::move(on_secret), true); }

SecretManager::Stream SecretManager::Watch(std::string_view name, OnSecret on_secret) {
  const ListenerRef listener = Add(name, std::move(on_secret), false);
  return {nullptr, [this, alive = std::weak_ptr(alive_), listener](void*) {
            listener->over = true;
            if (!alive.expired()) std::erase(listeners_, listener);
          }};
}

void SecretManager::Serve(const ListenerRef& listener) {
  if (listener->over) return;
  if (FromFiles(listener->name)) {
    if (!std::exchange(listener->reading, true)) ServeFiles(listener, Duration::zero(), options_.file_debounce);
    return;
  }
  if (!cached_) {
    if (options_.file_mounted_certs) {
      return Fail(listener,
                  absl::FailedPreconditionError(
                      "failed to generate workload certificate: attempted to fetch secret, but ca client is nil"));
    }
    listener->waiting = true;
    if (!generating_) Generate();
    return;
  }
  absl::StatusOr<SecretItem> item = Cached(listener->name);
  if (!item.ok()) return Fail(listener, item.status());
  Give(listener, *std::move(item));
}

absl::StatusOr<SecretItem> SecretManager::Cached(const std::string& name) const {
  WAVETANK_ASSERT(cached_);
  WAVETANK_ASSERT(!chain_.empty());
  WAVETANK_ASSERT(key_ != nullptr);
  if (name == kRootSecretName) return Roots(roots_pem_);
  // Any other name is served the workload's certificate, as in istiod's agent.
  return SecretItem{name, key_, chain_, nullptr,
                    options_.pkcs8_keys ? x509::KeyForm::kPkcs8 : x509::KeyForm::kOfAlgorithm};
}

void SecretManager::Give(const ListenerRef& listener, SecretItem item) {
  WAVETANK_ASSERT(!listener->over, listener->name);
  // Exactly one of the two is given, and a chain never without its key.
  WAVETANK_ASSERT((item.roots == nullptr) != item.chain.empty(), listener->name);
  WAVETANK_ASSERT((item.key == nullptr) == item.chain.empty(), listener->name);
  listener->waiting = false;
  listener->backoff = kStreamFirst;
  Output(item);
  host_.Emit({.kind = TraceKind::kSecretPushed,
              .subject = host_.Intern(options_.name),
              .object = host_.Intern(listener->name)});
  listener->on_secret(std::move(item));
}

void SecretManager::Fail(const ListenerRef& listener, absl::Status why) {
  WAVETANK_ASSERT(!listener->over, listener->name);
  WAVETANK_ASSERT(!why.ok(), listener->name);
  WAVETANK_ASSERT(listener->backoff >= kStreamFirst, listener->backoff);
  WAVETANK_ASSERT(listener->backoff <= kStreamMax, listener->backoff);
  listener->waiting = false;
  if (listener->again) {
    const Duration wait(static_cast<int64_t>(random_.Below(static_cast<uint64_t>(listener->backoff.count()))));
    listener->backoff = std::min(kStreamMax, listener->backoff * 2);
    After(wait, [this, weak = std::weak_ptr(listener)] {
      if (const auto again = weak.lock()) Serve(again);
    });
  } else {
    listener->over = true;
    std::erase(listeners_, listener);
  }
  listener->on_secret(
      absl::Status(why.code(), fmt::format("failed to generate secret for {}: {}", listener->name, Message(why))));
}

void SecretManager::Generate() {
  WAVETANK_ASSERT(!generating_);  // one CSR is under way at most
  WAVETANK_ASSERT(!options_.file_mounted_certs);
  generating_ = true;
  After(Duration::zero(), [this] {  // not within the call that asks
    absl::StatusOr<x509::KeyPairRef> made =
        options_.make_key
            ? options_.make_key(csr_count_)
            : x509::KeyPair::Derive(options_.seed, fmt::format("workload/{}/{}", options_.name, csr_count_));
    if (!made.ok()) {
      Say(options_.log, Level::kError, "cache",
          fmt::format("failed to generate key and certificate for CSR: {}", Message(made.status())));
      return OnSigned(nullptr, made.status());
    }
    x509::KeyPairRef key = *std::move(made);
    std::string csr = x509::CreateCsr(*key, {}, {options_.identity.ToString()});
    SendCsr(std::move(key), std::move(csr), 1);
  });
}

void SecretManager::SendCsr(x509::KeyPairRef key, std::string csr, int attempt) {
  WAVETANK_ASSERT(generating_);
  WAVETANK_ASSERT(attempt >= 1, attempt);
  WAVETANK_ASSERT(attempt <= kCsrAttempts, attempt);
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

void SecretManager::OnSigned(x509::KeyPairRef key, absl::StatusOr<std::vector<std::string>> answer) {
  WAVETANK_ASSERT(generating_);  // each CSR is answered once
  generating_ = false;
  absl::Status status = answer.status();
  if (answer.ok()) status = Accept(std::move(key), *answer);
  if (!status.ok()) {
    const absl::Status why(
        status.code(), fmt::format("failed to generate workload certificate: create certificate: {}", Message(status)));
    // Until the first success the agent itself asks again; after it, only streams do.
    if (!warm_ && !warming_up_) {
      Say(options_.log, Level::kWarn, "sds", fmt::format("failed to warm certificate: {}", Message(why)));
      warming_up_ = true;
      const int64_t half = warm_backoff_.count() / 2;
      After(Duration(random_.Between(half, 3 * half)), [this] { WarmUp(); });
      warm_backoff_ = std::min(kWarmUpMax, warm_backoff_ * 3 / 2);
    }
    const std::weak_ptr<char> alive = alive_;
    for (const auto& listener : std::vector(listeners_)) {
      if (alive.expired()) return;
      if (listener->waiting && !listener->over) Fail(listener, why);
    }
    return;
  }
  if (!std::exchange(warm_, true) && !options_.output_dir.empty()) {
    // The warm-up asks for both, so that both are written whoever else wants them.
    for (const std::string_view name : {kWorkloadSecretName, kRootSecretName}) {
      if (auto item = Cached(std::string(name)); item.ok()) Output(*item);
    }
  }
  const bool new_roots = served_roots_pem_ != roots_pem_;
  if (new_roots && !served_roots_pem_.empty()) {
    Say(options_.log, Level::kInfo, "cache", "Root cert has changed, start rotating root cert");
  }
  served_roots_pem_ = roots_pem_;
  ServeIf(
      [&](const Listener& listener) { return listener.waiting || (new_roots && listener.name == kRootSecretName); });
}

absl::Status SecretManager::Accept(x509::KeyPairRef key, const std::vector<std::string>& cert_chain) {
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
  Say(options_.log, Level::kInfo, "cache",
      fmt::format("generated new workload certificate\tttl={}s", (leaf_->not_after() - host_.WallClock()) / 1s));
  ScheduleRotation();
  return absl::OkStatus();
}

void SecretManager::ScheduleRotation() {
  WAVETANK_ASSERT(leaf_ != nullptr);
  const Duration life = leaf_->not_after() - host_.WallClock();
  Duration grace = Scale(life, options_.rotation_grace_ppm);
  if (options_.rotation_jitter_ppm > 0) {
    grace += Scale(life, random_.Between(-options_.rotation_jitter_ppm, options_.rotation_jitter_ppm));
    grace = std::max(grace, Duration::zero());  // istiod: rotateTime; none waits beyond the end
  }
  host_.Cancel(rotation_);
  rotation_ = host_.RunAfter(std::max(Duration::zero(), life - grace), [this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    rotation_ = kNoTimer;
    cached_ = false;
    // Without a stream that wants it nothing is renewed; the next one to come finds the cache empty.
    ServeIf([](const Listener& listener) { return listener.name == kWorkloadSecretName; });
  });
}

// istiod: mergeConfigTrustBundle sorts the certificates by their text.
std::string SecretManager::WithConfigured(const std::string& pem) const {
  std::set<std::string> anchors;
  for (const std::string* each : {&pem, &config_roots_pem_}) {
    for (std::string& one : SplitPem(*each)) anchors.insert(std::move(one));
  }
  std::string all;
  for (const std::string& one : anchors) all += one + "\n";
  return all;
}

std::string SecretManager::roots_pem() const {
  return served_roots_pem_.empty() || config_roots_pem_.empty() ? served_roots_pem_ : WithConfigured(served_roots_pem_);
}

absl::StatusOr<SecretItem> SecretManager::Roots(const std::string& pem) const {
  auto bundle = parser_->ParseBundle(WithConfigured(pem), "the root certificates");
  if (!bundle.ok()) return bundle.status();
  return SecretItem{std::string(kRootSecretName), nullptr, {}, *std::move(bundle)};
}

absl::StatusOr<std::string> SecretManager::Read(std::string_view path) const {
  if (options_.files == nullptr) {
    return absl::NotFoundError(fmt::format("open {}: no such file or directory", path));
  }
  return options_.files->Read(path);
}

bool SecretManager::There(std::string_view path) const {
  if (options_.files == nullptr || path.empty()) return false;
  const absl::StatusOr<std::string> bytes = options_.files->Read(path);
  return bytes.ok() && !bytes->empty();
}

bool SecretManager::FromFiles(const std::string& name) const {
  if (name == kSystemRootsName) return !options_.system_roots_path.empty();
  if (name == kRootSecretName || name == kWorkloadSecretName) {
    // What the agent itself writes must not become its source: it would never be renewed.
    if (!options_.output_dir.empty() && FolderOf(options_.cert_chain_path) == FolderOf(options_.output_dir + "/")) {
      return false;
    }
    return name == kRootSecretName ? There(options_.root_path)
                                   : There(options_.cert_chain_path) && There(options_.key_path);
  }
  return !PathsIn(name).empty();
}

absl::StatusOr<SecretItem> SecretManager::ReadFiles(const std::string& name) const {
  SecretItem item{name, nullptr, {}, nullptr};
  std::vector<std::string> paths = PathsIn(name);
  if (name == kWorkloadSecretName) paths = {options_.cert_chain_path, options_.key_path};
  if (name == kRootSecretName) paths = {options_.root_path};
  if (name == kSystemRootsName) paths = {options_.system_roots_path};
  std::vector<std::string> texts;
  for (const std::string& path : paths) {
    absl::StatusOr<std::string> text = Read(path);
    if (!text.ok()) return text.status();
    texts.push_back(*std::move(text));
  }
  if (paths.size() == 1) {
    if (name == kRootSecretName) return Roots(texts[0]);
    auto bundle = x509::TrustBundle::FromPem(texts[0], paths[0]);
    if (!bundle.ok()) return bundle.status();
    item.roots = *std::move(bundle);
    return item;
  }
  auto chain = x509::ParseCertificates(texts[0], paths[0]);
  if (!chain.ok()) return chain.status();
  auto key = x509::KeyPair::FromPem(texts[1], paths[1]);
  if (!key.ok()) return key.status();
  if (!chain->front()->Matches(**key)) {
    return absl::InvalidArgumentError(fmt::format("{} is not the key of {}", paths[1], paths[0]));
  }
  item.chain = *std::move(chain);
  item.key = *std::move(key);
  return item;
}

void SecretManager::ServeFiles(const ListenerRef& listener, Duration waited, Duration wait) {
  if (listener->over) return;
  WAVETANK_ASSERT(listener->reading, listener->name);
  WAVETANK_ASSERT(waited <= kFilePatience, waited);
  absl::StatusOr<SecretItem> item = ReadFiles(listener->name);
  if (item.ok()) {
    listener->reading = false;
    Say(options_.log, Level::kInfo, "cache", fmt::format("read certificate from file\tresource={}", listener->name));
    return Give(listener, *std::move(item));
  }
  // A key may be written and its certificate not yet: such a pair is read again for a while, as is a file that is not
  // there.
  if (waited < kFilePatience) {
    const Duration next = std::min(wait, kFilePatience - waited);
    After(next, [this, weak = std::weak_ptr(listener), waited = waited + next, wait = wait * 2] {
      if (const auto again = weak.lock()) ServeFiles(again, waited, wait);
    });
    return;
  }
  listener->reading = false;
  Say(options_.log, Level::kError, "cache",
      fmt::format("resource:{} failed to generate secret for proxy from file: {}", listener->name,
                  Message(item.status())));
  Fail(listener, item.status());
}

void SecretManager::Output(const SecretItem& item) {
  if (options_.output_dir.empty() || options_.files == nullptr ||
      (item.name != kWorkloadSecretName && item.name != kRootSecretName)) {
    return;
  }
  const auto write = [&](std::string_view file, const std::string& bytes) -> absl::Status {
    const std::string path = fmt::format("{}/{}", options_.output_dir, file);
    const absl::StatusOr<std::string> before = options_.files->Read(path);
    if (before.ok() && *before == bytes) return absl::OkStatus();
    const absl::Status written = options_.files->Write(path, bytes);
    if (written.ok()) return written;
    return absl::Status(written.code(), fmt::format("failed to write data to file {}: {}", file, Message(written)));
  };
  // Key, chain, roots: in this order, and no further than the first that fails (security/pkg/nodeagent/util/util.go).
  absl::Status status;
  if (item.key != nullptr) {
    status = write("key.pem", item.key->ExportPrivateKeyPem(item.key_form));
    if (status.ok()) status = write("cert-chain.pem", x509::ToPem(item.chain));
  } else if (item.roots != nullptr) {
    status = write("root-cert.pem", item.roots->ToPem());
  }
  if (!status.ok()) {
    Say(options_.log, Level::kError, "cache", fmt::format("error when output the resource: {}", Message(status)));
  }
}

void SecretManager::OnFileChanged(std::string_view path) {
  Say(options_.log, Level::kInfo, "cache",
      fmt::format("event for file certificate {} : WRITE, pushing to proxy", path));
  ServeIf([&](const Listener& listener) {
    if (listener.name == kWorkloadSecretName) return path == options_.cert_chain_path;
    if (listener.name == kRootSecretName) return path == options_.root_path;
    if (listener.name == kSystemRootsName) return path == options_.system_roots_path;
    // The certificate's file alone is watched: a key cannot change without it.
    const std::vector<std::string> paths = PathsIn(listener.name);
    return !paths.empty() && path == paths[0];
  });
}

std::vector<std::string> SecretManager::WatchedFiles() const {
  std::set<std::string> out;
  for (const ListenerRef& listener : listeners_) {
    if (!FromFiles(listener->name)) continue;
    if (listener->name == kWorkloadSecretName) {
      out.insert(options_.cert_chain_path);
    } else if (listener->name == kRootSecretName) {
      out.insert(options_.root_path);
    } else if (listener->name == kSystemRootsName) {
      out.insert(options_.system_roots_path);
    } else {
      out.insert(PathsIn(listener->name)[0]);
    }
  }
  return {out.begin(), out.end()};
}

void SecretManager::UpdateConfigTrustBundle(std::string pem) {
  if (pem == config_roots_pem_) return;
  config_roots_pem_ = std::move(pem);
  ServeIf([](const Listener& listener) { return listener.name == kRootSecretName && !listener.waiting; });
}

}  // namespace wavetank::agent
