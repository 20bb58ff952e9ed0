// The filter jwt_authn: whose tokens a request has to bring, where, and what becomes of them. Key sets are those of the
// configuration (istiod fetches them); of remote ones nothing is fetched, which is answered as a failed fetch.
// Envoy: source/extensions/filters/http/jwt_authn (filter.cc, verifier.cc, authenticator.cc, extractor.cc)
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "fakes/envoy/config/route_config.h"
#include "fakes/envoy/filters/jwt.h"
#include "fakes/envoy/match/dynamic_metadata.h"

namespace envoy::extensions::filters::http::jwt_authn::v3 {
class JwtAuthentication;
class JwtProvider;
class JwtRequirement;
}  // namespace envoy::extensions::filters::http::jwt_authn::v3

namespace wavetank::envoysim {

struct RequestSpec;

// What the filter makes of one request.
struct JwtOutcome {
  JwtStatus status = JwtStatus::kOk;
  bool preflight = false;                      // a CORS preflight, which needs no token
  std::shared_ptr<const RequestSpec> changed;  // null: the request goes on as it is
  DynamicMetadata notes;
  bool clear_route_cache = false;
  uint64_t holds_until = 0;  // seconds since 1970: the same request gets the same until then
};

class JwtAuthn {
 public:
  // `prefix`: "http.in.". InvalidArgument: what Envoy says when it refuses the configuration.
  static absl::StatusOr<std::shared_ptr<const JwtAuthn>> Make(
      const envoy::extensions::filters::http::jwt_authn::v3::JwtAuthentication& message, const std::string& prefix,
      const Extensions& extensions);

  // `now`: seconds since 1970. The same request is looked at once as long as its tokens' times allow.
  // `named`: a requirement that takes the place of the rules; the filter has it (Has()).
  const JwtOutcome& Check(const RequestSpec& request, uint64_t now, const std::string* named = nullptr) const;
  bool Has(const std::string& requirement) const { return named_.contains(requirement); }
  // Nobody needs a token for it.
  bool IsExempt(const RequestSpec& request) const;
  // Why a requirement is none.
  std::string WrongName(const std::string& requirement) const;

  // The answer to a request that was refused.
  static uint16_t CodeOf(JwtStatus status) { return status == JwtStatus::kAudienceNotAllowed ? 403 : 401; }
  static std::string DetailsOf(std::string words);  // "jwt_authn_access_denied{Jwt_is_missing}"
  // A line "www-authenticate: ...".
  static std::string ChallengeOf(JwtStatus status, const RequestSpec& request, bool tls);

  const std::string& counters() const { return counters_; }  // "http.in.jwt_authn."
  bool strips_answers() const { return strip_failure_response_; }

 private:
  struct Provider {
    std::string name, issuer;
    std::set<std::string> audiences;  // without scheme and last slash; none: any
    JwtKeySet keys;
    bool remote = false;
    bool forward = false, pad_payload = false, clear_route_cache = false;
    std::string payload_header, payload_in_metadata, header_in_metadata;
    std::vector<std::string> split_claims;  // in the metadata each of their words is an element of a list
    uint64_t clock_skew = 60;
    std::vector<std::pair<std::string, std::string>> claims_to_headers;  // header, claim
    std::vector<std::pair<std::string, std::string>> from_headers;       // name, prefix
    std::vector<std::string> from_params, from_cookies;
  };
  // Where tokens are looked for: of one provider, or of all.
  struct Location {
    enum class Kind : uint8_t { kHeader, kParam, kCookie };
    Kind kind = Kind::kHeader;
    std::string name, prefix;
    std::set<std::string> issuers;
    bool any_issuer = false;
  };
  using Locations = std::vector<Location>;
  struct Requirement {
    enum class Kind : uint8_t { kNone, kProvider, kAny, kAll, kAllowMissing, kAllowMissingOrFailed };
    Kind kind = Kind::kNone;
    const Provider* provider = nullptr;
    std::optional<std::set<std::string>> audiences;  // instead of the provider's
    Locations locations;
    std::vector<std::string> sanitized;  // headers that only this filter may write
    std::vector<Requirement> children;
    bool allow_missing = false, allow_failed = false;  // kAny
  };
  struct Rule {
    RouteEntry match;
    Requirement requirement;
  };
  struct Found {
    std::string token;
    const Location* location;
  };
  class Run;

  static Provider MakeProvider(const std::string& name,
                               const envoy::extensions::filters::http::jwt_authn::v3::JwtProvider& message,
                               const Extensions& extensions);
  absl::StatusOr<Requirement> MakeRequirement(
      const envoy::extensions::filters::http::jwt_authn::v3::JwtRequirement& message) const;
  static void AddLocations(const Provider& provider, Requirement* out);
  const Provider* Find(const std::string& name) const;
  const Provider* OfIssuer(const std::string& issuer) const;
  // A token, taken apart, and what the provider's keys say of it.
  struct Judged {
    JwtToken token;
    absl::flat_hash_map<const Provider*, JwtStatus> by_provider;
  };
  Judged& Judge(const std::string& token) const;

  std::string counters_;
  std::vector<std::unique_ptr<Provider>> providers_;  // by name
  std::vector<Rule> rules_;
  std::map<std::string, Requirement> named_;  // requirement_map
  bool bypass_cors_preflight_ = false, strip_failure_response_ = false;

  // Signatures cost what a thousand requests do: what was found out is kept, bounded.
  struct Remembered {
    uint64_t request = 0;
    const Requirement* requirement = nullptr;
    JwtOutcome outcome;
  };
  mutable absl::flat_hash_map<std::string, Judged> judged_;
  mutable std::array<Remembered, 8> remembered_;
};

}  // namespace wavetank::envoysim
