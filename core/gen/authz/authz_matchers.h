// Envoy's matchers as AuthorizationPolicies write them: "*" is presence, "*x" a suffix, "x*" a prefix, all else exact
// (istiod: pilot/pkg/security/authz/matcher). Each call writes one message field.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/gen/wire/wire.h"

namespace wavetank::pilot::authz {

// Where the filter istio_authn keeps what tokens say.
inline constexpr std::string_view kAuthnFilter = "istio_authn", kClaimsKey = "request.auth.claims";
// Where Envoy's own filter keeps it since (istiod: pilot/pkg/xds/filters/filters.go).
inline constexpr std::string_view kJwtFilter = "envoy.filters.http.jwt_authn", kJwtPayload = "payload";

void WriteStringMatcher(wire::Writer& w, int field, std::string_view value);
// Of "spiffe://" and a principal as policies write it, which is without.
void WritePrincipalMatcher(wire::Writer& w, int field, std::string_view principal);
void WriteRegexMatcher(wire::Writer& w, int field, std::string_view regex);
// `as_string`: by a StringMatcher, not by the fields that Envoy calls deprecated.
void WriteHeaderMatcher(wire::Writer& w, int field, std::string_view name, std::string_view value, bool as_string);
// Of ":authority", whatever the case.
void WriteHostMatcher(wire::Writer& w, int field, std::string_view value);
void WritePathMatcher(wire::Writer& w, int field, std::string_view value);
void WritePrefixMatcher(wire::Writer& w, int field, std::string_view prefix);

// The value itself, a list that has one such, or either of both.
enum class MetadataValue : uint8_t { kText, kListWith, kTextOrListWith };
void WriteMetadataMatcher(wire::Writer& w, int field, std::string_view filter,
                          const std::vector<std::string_view>& path, MetadataValue kind, std::string_view value);
// The same, of any StringMatcher: `value` writes it as that field. `invert`: it must not match.
void WriteMetadataMatcher(wire::Writer& w, int field, std::string_view filter,
                          const std::vector<std::string_view>& path, MetadataValue kind, bool invert,
                          absl::FunctionRef<void(int field)> value);
// "[v]", and v of it.
bool IsListValue(std::string_view value);
std::string_view WithoutListBrackets(std::string_view value);
// Any of `values`, as conditions on filters' metadata write them: "[v]" looks into a list.
void WriteFilterValues(wire::Writer& w, int field, std::string_view filter, std::string_view key,
                       const std::vector<std::string>& values);
// What tokens say, as Envoy's filter keeps it: of a claim, `values` as AuthorizationPolicies write them; of issuer and
// subject, a principal "ISSUER/SUBJECT" (istiod: pilot/pkg/security/authz/model/generator.go).
void WriteClaimMatcher(wire::Writer& w, int field, const std::vector<std::string_view>& claim,
                       const std::vector<std::string>& values);
struct TokenPattern {
  enum class Kind : uint8_t { kAny, kExact, kPrefix, kSuffix };
  Kind kind = Kind::kExact;
  std::string_view text;
};
struct TokenPrincipal {
  TokenPattern issuer, subject;
};
TokenPrincipal ParseTokenPrincipal(std::string_view value);
void WriteTokenMatcher(wire::Writer& w, int field, std::string_view claim, const TokenPattern& pattern);

}  // namespace wavetank::pilot::authz
