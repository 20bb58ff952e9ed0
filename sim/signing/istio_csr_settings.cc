#include "sim/signing/istio_csr_settings.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/bounds.h"
#include "core/base/duration.h"
#include "core/base/json_access.h"
#include "core/base/text/parse_bool.h"
#include "fmt/format.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;

constexpr std::string_view kImage = "cert-manager-istio-csr";

// Flags that may stand several times keep all their values. "--name=value" and "--name value"; a flag without a value
// is true.
std::multimap<std::string, std::string, std::less<>> FlagsOf(const json& container) {
  std::multimap<std::string, std::string, std::less<>> out;
  std::vector<std::string> words;
  for (const char* list : {"command", "args"}) {
    for (const json& word : Items(At(container, list))) words.push_back(TextOf(word));
  }
  for (size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) continue;
    const size_t equals = words[i].find('=');
    if (equals != std::string::npos) {
      out.emplace(words[i].substr(2, equals - 2), words[i].substr(equals + 1));
    } else if (i + 1 < words.size() && !words[i + 1].starts_with("-")) {
      out.emplace(words[i].substr(2), words[i + 1]);
      ++i;
    } else {
      out.emplace(words[i].substr(2), "true");
    }
  }
  return out;
}

}  // namespace

std::optional<IstioCsrSettings> IstioCsrSettings::Of(const json& pod) {
  for (const json& container : Items(At(pod, {"spec", "containers"}))) {
    std::string image = Text(container, "image");
    image = image.substr(image.rfind('/') + 1);
    if (image.substr(0, image.find_first_of(":@")) != kImage) continue;
    IstioCsrSettings out;
    out.container = Text(container, "name");
    const auto flags = FlagsOf(container);
    const auto text = [&](std::string_view name, std::string* to) {
      if (const auto last = flags.upper_bound(name); last != flags.begin()) {
        if (const auto at = std::prev(last); at->first == name) *to = at->second;
      }
    };
    const auto flag = [&](std::string_view name, bool* to) {
      std::string said;
      text(name, &said);
      *to = ParseBool(said).value_or(*to);
    };
    const auto duration = [&](std::string_view name, Duration* to) {
      std::string said;
      text(name, &said);
      if (const std::optional<Duration> parsed = ParseGoDuration(said); parsed && *parsed > Duration::zero())
        *to = std::min<Duration>(*parsed, bounds::kInputDuration);
    };
    const auto list = [&](std::string_view name, std::vector<std::string>* to) {
      const auto [from, until] = flags.equal_range(name);
      if (from == until) return;
      to->clear();
      for (auto at = from; at != until; ++at) {
        const std::vector<std::string> more = absl::StrSplit(at->second, ',', absl::SkipEmpty());
        to->insert(to->end(), more.begin(), more.end());
      }
    };
    std::string address;
    text("serving-address", &address);
    uint32_t port = 0;
    if (absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port) && port > 0 && port < 65536)
      out.port = static_cast<uint16_t>(port);
    text("certificate-namespace", &out.certificate_namespace);
    bool issuer = true;
    flag("issuer-enabled", &issuer);
    text("issuer-name", &out.issuer->name);
    text("issuer-kind", &out.issuer->kind);
    text("issuer-group", &out.issuer->group);
    if (!issuer) out.issuer = std::nullopt;
    text("runtime-issuance-config-map-name", &out.issuer_map);
    text("runtime-issuance-config-map-namespace", &out.issuer_map_namespace);
    flag("preserve-certificate-requests", &out.preserve_requests);
    text("trust-domain", &out.trust_domain);
    text("root-ca-file", &out.roots_file);
    out.serving_names = {"cert-manager-istio-csr.cert-manager.svc"};
    list("serving-certificate-dns-names", &out.serving_names);
    duration("serving-certificate-duration", &out.serving_lifetime);
    duration("max-client-certificate-duration", &out.max_client_lifetime);
    text("cluster-id", &out.cluster_id);
    flag("enable-client-cert-authenticator", &out.client_certificates);
    flag("istiod-cert-enabled", &out.makes_istiod_certificate);
    text("istiod-cert-name", &out.istiod_certificate);
    text("istiod-cert-namespace", &out.istiod_namespace);
    text("istiod-cert-duration", &out.istiod_lifetime);
    text("istiod-cert-renew-before", &out.istiod_renew_before);
    list("istiod-cert-istio-revisions", &out.istiod_revisions);
    list("istiod-cert-additional-dns-names", &out.istiod_more_names);
    for (const char* name : {"configmap-namespace-selector", "ca-trusted-node-accounts"}) {
      if (const auto said = flags.find(name); said != flags.end() && !said->second.empty())
        out.unheeded.push_back(fmt::format("--{}", name));
    }
    return out;
  }
  return std::nullopt;
}

}  // namespace wavetank::sim
