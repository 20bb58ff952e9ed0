#include "fakes/envoy/filters/istio_authn.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_split.h"
#include "fakes/envoy/config/listener_config.h"
#include "istio/authn.pb.h"
#include "nlohmann/json.hpp"

namespace wavetank::envoysim {
namespace {

using nlohmann::json;

// Claims as lists of words: a text is split where spaces are, lists keep their texts, objects are gone into; what else
// there is cannot be asked for.
json ClaimLists(const json& claims) {
  json out = json::object();
  for (const auto& [name, claim] : claims.items()) {
    if (claim.is_object()) {
      out[name] = ClaimLists(claim);
      continue;
    }
    json words = json::array();
    const auto add = [&](const std::string& text) {
      for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
        words.push_back(std::string(word.data(), word.size()));
      }
    };
    if (claim.is_string()) add(claim.get_ref<const std::string&>());
    for (const json& one : claim.is_array() ? claim : json::array()) {
      if (one.is_string()) words.push_back(one);
    }
    if (!words.empty()) out[name] = std::move(words);
  }
  return out;
}

// The first word of a claim; empty: there is none.
std::string FirstWord(const json& lists, const char* name) {
  const auto it = lists.find(name);
  return it != lists.end() && it->is_array() ? it->front().get<std::string>() : std::string();
}

}  // namespace

IstioAuthn IstioAuthn::Make(const istio::envoy::config::filter::http::authn::v2alpha1::FilterConfig& message) {
  namespace authn = istio::envoy::config::filter::http::authn::v2alpha1;
  IstioAuthn out;
  for (const auto& origin : message.policy().origins()) out.issuers.push_back(origin.jwt().issuer());
  out.principal = message.policy().principal_binding() == authn::USE_ORIGIN;
  out.clear_route_cache = !message.disable_clear_route_cache();
  return out;
}

void IstioAuthn::Note(DynamicMetadata* notes) const {
  std::shared_ptr<const json> payload;
  for (const std::string& issuer : issuers) {
    const auto found = std::find_if(notes->begin(), notes->end(), [&](const MetadataNote& note) {
      return note.filter == "envoy.filters.http.jwt_authn" && note.key == issuer && note.tree != nullptr;
    });
    if (found == notes->end()) continue;
    payload = found->tree;
    break;
  }
  if (payload == nullptr) return;
  const auto note = [&](std::string_view key, json value) {
    notes->push_back({"istio_authn", key, {}, std::make_shared<const json>(std::move(value))});
  };
  json lists = ClaimLists(*payload);
  const std::string issuer = FirstWord(lists, "iss"), subject = FirstWord(lists, "sub");
  if (principal && !issuer.empty() && !subject.empty()) note("request.auth.principal", issuer + "/" + subject);
  if (std::string audience = FirstWord(lists, "aud"); !audience.empty()) {
    note("request.auth.audiences", std::move(audience));
  }
  if (std::string presenter = FirstWord(lists, "azp"); !presenter.empty()) {
    note("request.auth.presenter", std::move(presenter));
  }
  note("request.auth.claims", std::move(lists));
}

namespace {

class HttpIstioAuthn final : public HttpFilter {
 public:
  explicit HttpIstioAuthn(IstioAuthn config) : config_(std::move(config)) {}

  FilterStatus OnRequest(HttpStream& stream, Duration) const override {
    DynamicMetadata notes = stream.notes();
    const size_t before = notes.size();
    config_.Note(&notes);
    for (size_t i = before; i < notes.size(); ++i) stream.Note(notes[i]);
    if (config_.clear_route_cache) stream.ClearRouteCache();
    return FilterStatus::kContinue;
  }

 private:
  const IstioAuthn config_;
};

class NetworkIstioAuthn final : public NetworkFilter {
 public:
  void OnNewConnection(NetworkConnection& connection) const override { connection.NotePeer(); }
};

}  // namespace

HttpFilterType IstioAuthnFilterType() {
  HttpFilterType type;
  type.message = "istio.envoy.config.filter.http.authn.v2alpha1.FilterConfig";
  type.make = [](const google::protobuf::Any& config,
                 const FilterContext&) -> absl::StatusOr<std::shared_ptr<const HttpFilter>> {
    istio::envoy::config::filter::http::authn::v2alpha1::FilterConfig message;
    if (absl::Status s = UnpackConfig(config, &message); !s.ok()) return s;
    return std::make_shared<HttpIstioAuthn>(IstioAuthn::Make(message));
  };
  return type;
}

NetworkFilterType NetworkIstioAuthnType() {
  return {"io.istio.network.authn.Config", "istio_authn", /*terminal=*/false,
          [](const google::protobuf::Any&, const FilterContext&, FilterChain* chain) {
            chain->filters.push_back(std::make_shared<NetworkIstioAuthn>());
            return absl::OkStatus();
          }};
}

}  // namespace wavetank::envoysim
