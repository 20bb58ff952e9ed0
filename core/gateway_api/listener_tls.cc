#include "core/gateway_api/listener_tls.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "core/base/containers/memo.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/config/schema/cipher_suites.h"
#include "core/gateway_api/listeners.h"
#include "core/profile/changes.h"
#include "core/security/credentials.h"
#include "core/x509/x509.h"
#include "fmt/format.h"

namespace wavetank::gatewayapi {

using nlohmann::json;

namespace {

constexpr const char* kInvalidCertificateRef = "InvalidCertificateRef";
constexpr const char* kRefNotPermitted = "RefNotPermitted";

std::string Print(const json& reference) {
  return fmt::format("{}/{}/{}.{}", Text(reference, "group"), Text(reference, "kind"), Text(reference, "name"),
                     Text(reference, "namespace"));
}

bool HasPem(const std::string& text) {
  const size_t begin = text.find("-----BEGIN ");
  return begin != std::string::npos && text.find("-----END ", begin) != std::string::npos;
}

// Empty: it can be read. That the key fits is not looked at. Asked at every push, of few certificates.
std::string WhyMalformed(const std::string& certificate, const std::string& key) {
  // As Go's crypto/tls says it, which looks for both before it reads either (X509KeyPair).
  if (!HasPem(certificate)) return "tls: failed to find any PEM data in certificate input";
  if (!HasPem(key)) return "tls: failed to find any PEM data in key input";
  thread_local Memo<std::string> known(256);
  if (const std::string* why = known.Find(certificate)) return *why;
  std::string why(Message(x509::Certificate::FromPem(certificate, "certificate").status()));
  known.Keep(certificate, why);
  return why;
}

void Join(std::optional<ConfigError>& to, ConfigError more) {
  if (to) {
    to->message += "; " + more.message;
  } else {
    to = std::move(more);
  }
}

// One reference to a certificate or its authority, looked at for one listener.
class References {
 public:
  References(const Inputs& in, const Grants& grants, const kube::Object& owner)
      : in_(in), grants_(grants), owner_(owner) {}

  // "kubernetes-gateway://ns/name"; empty: `error` has one more. istiod: buildSecretReference.
  std::string Certificate(const json& reference, std::optional<ConfigError>& error) const {
    const std::string ns = Text(reference, "namespace", owner_.meta.ns), name = Text(reference, "name");
    const auto fail = [&](const std::string& why) {
      Join(error, {kInvalidCertificateRef, fmt::format("invalid certificate reference {}, {}", Print(reference), why)});
      return std::string();
    };
    if (KindOf(reference, {"", "Secret"}) != GroupKind{"", "Secret"}) return fail("only secret is allowed");
    const kube::Object* secret = in_.Find("Secret", ns, name);
    if (secret == nullptr) return fail(fmt::format("secret {}/{} not found", ns, name));
    const absl::StatusOr<security::CertInfo> info = security::ExtractCertInfo(*secret);
    if (!info.ok()) return fail(std::string(Message(info.status())));
    if (const std::string why = WhyMalformed(info->cert, info->key); !why.empty()) {
      return fail("the certificate is malformed: " + why);
    }
    if (ns != owner_.meta.ns && !grants_.Allows(owner_.kind, owner_.meta.ns, {"", "Secret"}, ns, name)) {
      Join(error, {kRefNotPermitted,
                   fmt::format("certificateRef {}/{} not accessible to a Gateway in namespace \"{}\" (missing a "
                               "ReferenceGrant?)",
                               name, ns, owner_.meta.ns)});
      return {};
    }
    return fmt::format("kubernetes-gateway://{}/{}", ns, name);
  }

 private:
  const Inputs& in_;
  const Grants& grants_;
  const kube::Object& owner_;
};

void AddCiphers(const json& options, json& out) {
  const std::string wanted = Text(options, "gateway.istio.io/tls-cipher-suites");
  if (wanted.empty()) return;
  json suites = json::array();
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(wanted, ','))) {
    const std::string suite(absl::StripAsciiWhitespace(part));
    const bool known = std::find(suites.begin(), suites.end(), json(suite)) != suites.end();
    if (config::IsKnownCipherSuite(suite) && !known) suites.push_back(suite);
  }
  if (!suites.empty()) out["cipherSuites"] = std::move(suites);
}

}  // namespace

ListenerTls BuildListenerTls(const Inputs& in, const Grants& grants, const kube::Object& owner,
                             const kube::Object& gateway, const json& listener) {
  ListenerTls out;
  const json& tls = At(listener, "tls");
  if (!tls.is_object()) return out;
  json& settings = out.settings.emplace(json::object());
  const json& options = At(tls, "options");
  if (Text(tls, "mode", "Terminate") == "Passthrough") {
    // As Istio's API has it, PASSTHROUGH is the mode that is not written.
    if (IsAutoPassthrough(owner.meta.labels, listener)) settings["mode"] = "AUTO_PASSTHROUGH";
    AddCiphers(options, settings);
    return out;
  }
  const std::string mode = Text(options, "gateway.istio.io/tls-terminate-mode");
  const bool modes = in.profile.Has(pilot::Change::kGatewayApiTlsModes);
  const bool written = mode == "MUTUAL" || (modes && (mode == "OPTIONAL_MUTUAL" || mode == "ISTIO_MUTUAL"));
  settings["mode"] = written ? mode : "SIMPLE";
  if (modes && mode == "ISTIO_MUTUAL") return out;
  if (modes && mode == "ISTIO_SIMPLE") {
    settings["credentialName"] = "builtin://";
    return out;
  }
  const json& certificates = Items(At(tls, "certificateRefs"));
  if (!in.profile.Has(pilot::Change::kGatewayApiSeveralCertificates) && certificates.size() != 1) {
    out.error = {kInvalidCertificateRef, "exactly 1 certificateRefs should be present for TLS termination"};
    return out;
  }
  if (certificates.size() > 2) {
    out.error = {kInvalidCertificateRef, "TLS mode can only support up to 2 server certificates"};
    return out;
  }
  const References references(in, grants, owner);
  std::vector<std::string> names;
  for (const json& reference : certificates) {
    if (std::string name = references.Certificate(reference, out.error); !name.empty())
      names.push_back(std::move(name));
  }
  // One that is good serves alone.
  if (names.empty()) return out;
  out.error.reset();
  if (names.size() == 1) {
    settings["credentialName"] = names.front();
  } else {
    settings["credentialNames"] = names;
  }
  // spec.tls.frontend of the Gateway: clients that must show a certificate.
  if (const json& frontend = At(gateway.body, {"spec", "tls", "frontend"}); frontend.is_object()) {
    const json* validation = &At(frontend, {"default", "validation"});
    for (const json& port : Items(At(frontend, "perPort"))) {
      if (Number(port, "port") == Number(listener, "port")) validation = &At(port, {"tls", "validation"});
    }
    if (!Items(At(*validation, "caCertificateRefs")).empty()) {
      out.error = {kInvalidCertificateRef,
                   "caCertificateRefs are not read here; use option "
                   "gateway.istio.io/tls-terminate-mode: MUTUAL and Secret NAME-cacert"};
    }
  }
  AddCiphers(options, settings);
  return out;
}

}  // namespace wavetank::gatewayapi
