#include "core/security/signing/certificate_signing.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/kube/object.h"
#include "core/kube/safe_text.h"
#include "fmt/format.h"

namespace wavetank::security {
namespace {

using nlohmann::json;

constexpr int kSubmissions = 3, kReads = 10;
constexpr Duration kWatchTimeout = 60s, kReadInterval = 500ms;
// Which of cert-manager's issuers decides how long a certificate holds.
constexpr const char* kLifetimeAnnotation = "experimental.cert-manager.io/request-duration";

// As Go prints a duration of whole seconds: "24h0m0s".
std::string GoSeconds(Duration d) {
  const int64_t seconds = d / 1s;
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{}s", seconds / 60, seconds % 60);
  return fmt::format("{}h{}m{}s", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

json RequestObject(const std::string& name, const CertificateSigning::Request& request) {
  json out = {{"apiVersion", "certificates.k8s.io/v1"},
              {"kind", "CertificateSigningRequest"},
              {"metadata", {{"name", name}}},
              {"spec",
               {{"request", absl::Base64Escape(request.csr_pem)},
                {"signerName", request.signer},
                {"usages", json::array({"digital signature", "key encipherment", "server auth", "client auth"})}}}};
  if (request.lifetime != Duration::zero()) {
    out["metadata"]["annotations"] = {{kLifetimeAnnotation, GoSeconds(request.lifetime)}};
  }
  return out;
}

// Empty: the signer has not answered.
std::string CertificateIn(const kube::Object& request) {
  std::string pem;
  return absl::Base64Unescape(Text(At(request.body, "status"), "certificate"), &pem) ? pem : std::string();
}

}  // namespace

struct CertificateSigning::Attempt {
  Request request;
  Done done;
  std::string name;
  int submissions = 0, reads = 0;
  bool stored = false;
  std::unique_ptr<kube::Watch> watch;
  TimerId timeout = kNoTimer;
};

CertificateSigning::CertificateSigning(Host& host, kube::Client& client, uint64_t seed, std::string_view name)
    : host_(host), client_(client), random_(seed, fmt::format("csr/{}", name)) {}

// Timers that are left hold their attempts for longer than the API server stands that the watches are of.
CertificateSigning::~CertificateSigning() {
  for (const std::weak_ptr<Attempt>& weak : followed_) {
    const AttemptRef attempt = weak.lock();
    if (attempt != nullptr) attempt->watch.reset();
  }
}

void CertificateSigning::After(Duration delay, Callback fn) {
  host_.RunAfter(delay, [alive = std::weak_ptr(alive_), fn = std::move(fn)]() mutable {
    if (!alive.expired()) fn();
  });
}

std::string CertificateSigning::NewName() { return "csr-workload-" + kube::SafeText(random_, 18); }

void CertificateSigning::Sign(Request request, Done done) {
  auto attempt = std::make_shared<Attempt>();
  attempt->request = std::move(request);
  attempt->done = std::move(done);
  attempt->name = NewName();
  Submit(attempt);
}

void CertificateSigning::Submit(const AttemptRef& attempt) {
  const auto failed = [this, attempt](const absl::Status& why) {
    Finish(attempt, absl::Status(why.code(),
                                 fmt::format("unable to submit CSR request ({}). Error: {}",
                                             attempt->submissions >= kSubmissions ? "" : attempt->name, Message(why))));
  };
  if (attempt->request.signer.empty() || attempt->request.signer == kLegacySigner) {
    attempt->submissions = kSubmissions;
    return After(Duration::zero(),
                 [failed] { failed(absl::NotFoundError("the server could not find the requested resource")); });
  }
  absl::StatusOr<kube::ObjectRef> object = kube::Object::FromJson(RequestObject(attempt->name, attempt->request));
  if (!object.ok()) return failed(object.status());
  ++attempt->submissions;
  client_.Apply(*std::move(object),
                [this, alive = std::weak_ptr(alive_), attempt, failed](absl::StatusOr<kube::ObjectRef> stored) {
                  if (alive.expired()) return;
                  if (!stored.ok())
                    return attempt->submissions < kSubmissions ? Submit(attempt) : failed(stored.status());
                  attempt->stored = true;
                  Approve(attempt, **stored);
                });
}

void CertificateSigning::Approve(const AttemptRef& attempt, const kube::Object& stored) {
  const std::string words =
      fmt::format("CSR ({}) for the certificate ({}) is approved", attempt->name, attempt->request.dns_name);
  json body = stored.body;
  body["status"]["conditions"] =
      json::array({{{"type", "Approved"}, {"status", "True"}, {"reason", words}, {"message", words}}});
  const auto failed = [this, attempt](const absl::Status& why) {
    Finish(attempt, absl::Status(why.code(), fmt::format("unable to approve CSR request. Error: {}", Message(why))));
  };
  absl::StatusOr<kube::ObjectRef> object = kube::Object::FromJson(std::move(body));
  if (!object.ok()) return failed(object.status());
  client_.Apply(*std::move(object),
                [this, alive = std::weak_ptr(alive_), attempt, failed](absl::StatusOr<kube::ObjectRef> approved) {
                  if (alive.expired()) return;
                  if (!approved.ok()) return failed(approved.status());
                  Follow(attempt, (*approved)->meta.resource_version);
                });
}

void CertificateSigning::Follow(const AttemptRef& attempt, int64_t resource_version) {
  kube::WatchCallbacks callbacks;
  const std::weak_ptr<Attempt> weak = attempt;
  callbacks.on_event = [this, weak](const kube::WatchEvent& event) {
    const AttemptRef of = weak.lock();
    if (of == nullptr || event.type != kube::WatchEventType::kModified) return;
    if (std::string pem = CertificateIn(*event.object); !pem.empty()) {
      // Not from within the watch that ends with it.
      After(Duration::zero(), [this, of, pem = std::move(pem)]() mutable { Finish(of, std::move(pem)); });
    }
  };
  callbacks.on_end = [](const absl::Status&) {};  // the timeout comes, and it is read
  attempt->watch =
      client_.StartWatch(kSigningRequestKind, kube::ListOptions{"", "", fmt::format("metadata.name={}", attempt->name)},
                         resource_version, std::move(callbacks));
  std::erase_if(followed_, [](const std::weak_ptr<Attempt>& of) { return of.expired(); });
  followed_.push_back(attempt);
  attempt->timeout = host_.RunAfter(kWatchTimeout, [this, alive = std::weak_ptr(alive_), attempt] {
    if (alive.expired() || !attempt->done) return;
    attempt->timeout = kNoTimer;
    attempt->watch.reset();
    ReadAgain(attempt);
  });
}

void CertificateSigning::ReadAgain(const AttemptRef& attempt) {
  if (attempt->reads++ >= kReads) {
    return Finish(attempt,
                  absl::UnavailableError(fmt::format("no certificate returned for the CSR: \"{}\"", attempt->name)));
  }
  client_.List(kSigningRequestKind, kube::ListOptions{"", "", fmt::format("metadata.name={}", attempt->name)},
               [this, alive = std::weak_ptr(alive_), attempt](const absl::StatusOr<kube::ObjectList>& found) {
                 if (alive.expired() || !attempt->done) return;
                 if (found.ok() && !found->items.empty()) {
                   if (std::string pem = CertificateIn(*found->items.front()); !pem.empty()) {
                     return Finish(attempt, std::move(pem));
                   }
                 }
                 After(kReadInterval, [this, attempt] { ReadAgain(attempt); });
               });
}

void CertificateSigning::Finish(const AttemptRef& attempt, absl::StatusOr<std::string> result) {
  if (!attempt->done) return;
  attempt->watch.reset();
  host_.Cancel(std::exchange(attempt->timeout, kNoTimer));
  if (attempt->stored) client_.Delete(kSigningRequestKind, {"", attempt->name}, [](const absl::Status&) {});
  std::exchange(attempt->done, nullptr)(std::move(result));
}

}  // namespace wavetank::security
