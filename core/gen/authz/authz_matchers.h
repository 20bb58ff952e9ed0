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

void WriteStringMatcher(wire::Writer& w, int field, std::string_view value);
// Of "spiffe://" and a principal as policies write it, which is without.
void WritePrincipalMatcher(wire::Writer& w, int field, std::string_view principal);
void WriteRegexMatcher(wire::Writer& w, int field, std::string_view regex);
void WriteHeaderMatcher(wire::Writer& w, int field, std::string_view name, std::string_view value);
// Of ":authority", whatever the case.
void WriteHostMatcher(wire::Writer& w, int field, std::string_view value);
void WritePathMatcher(wire::Writer& w, int field, std::string_view value);

enum class MetadataValue : uint8_t { kText, kListWith };  // the value itself, or a list that has one such
void WriteMetadataMatcher(wire::Writer& w, int field, std::string_view filter,
                          const std::vector<std::string_view>& path, MetadataValue kind, std::string_view value);
// The same, of any StringMatcher: `value` writes it as that field. `invert`: it must not match.
void WriteMetadataMatcher(wire::Writer& w, int field, std::string_view filter,
                          const std::vector<std::string_view>& path, MetadataValue kind, bool invert,
                          absl::FunctionRef<void(int field)> value);

}  // namespace wavetank::pilot::authz
