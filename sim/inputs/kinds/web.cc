#include "sim/inputs/kinds/web.h"

#include <map>
#include <optional>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "sim/inputs/fields.h"
#include "sim/world_inputs.h"

namespace wavetank::sim::inputs {
namespace {

// `keys` at a URI, and what names it for OpenID discovery of `issuer`, if there is one. Without keys no server answers.
void Serve(std::map<std::string, std::string>& web, const std::string& uri, const std::string& issuer,
           const std::optional<std::string>& keys) {
  const auto answer = [&](const std::string& url, const std::string& text) {
    if (keys) {
      web[url] = text;
    } else {
      web.erase(url);
    }
  };
  answer(uri, keys.value_or(""));
  if (issuer.empty()) return;
  answer(issuer + "/.well-known/openid-configuration", JsonText(nlohmann::json{{"issuer", issuer}, {"jwks_uri", uri}}));
}

}  // namespace

void SetDns::Fields(FieldVisitor& visitor) {
  visitor.Visit("name", Need::kRequired, name);
  visitor.Visit("addresses", Need::kLenient, addresses);
  visitor.Visit("alias", Need::kSparse, alias);
  visitor.Visit("failing", Need::kSparse, failing);
  for (const std::string& type : failing) {
    if (type != "A" && type != "AAAA") visitor.Refuse("failing", "holds what is neither A nor AAAA");
  }
  visitor.Visit("ttlNs", ttl);
  if (ttl && *ttl < Duration::zero()) visitor.Refuse("ttlNs", "is negative");
}

absl::Status SetDns::Apply(InputTarget& target) const {
  DnsRecord record;
  for (const std::string& text : addresses) {
    absl::StatusOr<IpAddress> ip = IpAddress::Parse(text);
    if (!ip.ok()) return ip.status();
    record.addresses.push_back(*ip);
  }
  record.alias = alias;
  for (const std::string& type : failing) (type == "A" ? record.a_fails : record.aaaa_fails) = true;
  record.ttl = ttl;
  target.commons.dns.Set(name, std::move(record));
  return absl::OkStatus();
}

void ServeKeySet::Fields(FieldVisitor& visitor) {
  visitor.Visit("uri", Need::kRequired, uri);
  visitor.Visit("keys", Need::kSparse, keys);
  visitor.Visit("issuer", Need::kSparse, issuer);
}

absl::Status ServeKeySet::Apply(InputTarget& target) const {
  Serve(target.commons.web, uri, issuer, keys.is_null() ? std::nullopt : std::optional(TextOf(keys, JsonText(keys))));
  return absl::OkStatus();
}

void AddIssuer::Fields(FieldVisitor& visitor) {
  visitor.Visit("name", Need::kRequired, name);
  visitor.Visit("jwksUri", Need::kLenient, jwks_uri);
}

absl::Status AddIssuer::Apply(InputTarget& target) const {
  target.issuers.Add(name);
  Serve(target.commons.web, jwks_uri.empty() ? name + "/keys" : jwks_uri, name, target.issuers.KeySet(name));
  return absl::OkStatus();
}

}  // namespace wavetank::sim::inputs

namespace wavetank::sim {
void RegisterWeb(InputTable& table) {
  table.Add<inputs::SetDns>();
  table.Add<inputs::ServeKeySet>();
  table.Add<inputs::AddIssuer>();
}
}  // namespace wavetank::sim
