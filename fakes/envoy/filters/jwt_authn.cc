#include "fakes/envoy/filters/jwt_authn.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/json_text.h"
#include "envoy/config/core/v3/base.pb.h"
#include "envoy/extensions/filters/http/jwt_authn/v3/config.pb.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/http/cookies.h"
#include "fakes/envoy/match/query_parameters.h"
#include "fakes/envoy/tcp/http.h"
#include "fakes/envoy/tcp/request_edit.h"

namespace wavetank::envoysim {
namespace {

namespace jwt_v3 = envoy::extensions::filters::http::jwt_authn::v3;
using nlohmann::json;

constexpr std::string_view kJwtFilterName = "envoy.filters.http.jwt_authn";
constexpr uint64_t kForGood = std::numeric_limits<uint64_t>::max();
constexpr size_t kMostJudged = 4096;

// Envoy: source/common/jwt/check_audience.cc: neither scheme nor last slash tell audiences apart.
std::string BareAudience(std::string_view audience) {
  for (std::string_view scheme : {"http://", "https://"}) {
    if (!audience.starts_with(scheme)) continue;
    audience.remove_prefix(scheme.size());
    break;
  }
  if (audience.ends_with('/')) audience.remove_suffix(1);
  return std::string(audience);
}

// What a header says after its prefix. The characters of a token begin somewhere behind that.
std::string_view AfterPrefix(std::string_view value, size_t after) {
  for (size_t i = after; i < value.size(); ++i) {
    const char c = value[i];
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.') return value.substr(i);
  }
  return value;
}

std::string NumberText(double value) {
  if (value >= 0 && value < static_cast<double>(kForGood) &&
      value == static_cast<double>(static_cast<uint64_t>(value))) {
    return fmt::format("{}", static_cast<uint64_t>(value));
  }
  return fmt::format("{:f}", value);
}

// "a.b.c" in an object; null if it is not there.
const json* FindNested(const json& object, std::string_view path) {
  const json* at = &object;
  for (absl::string_view name : absl::StrSplit(absl::string_view(path.data(), path.size()), '.')) {
    if (!at->is_object()) return nullptr;
    const auto next = at->find(std::string(name.data(), name.size()));
    if (next == at->end()) return nullptr;
    at = &*next;
  }
  return at;
}

// A claim as a header says it; empty: there is nothing to say.
std::string ClaimText(const json& claim) {
  if (claim.is_string()) return claim.get<std::string>();
  if (claim.is_number()) return NumberText(claim.get<double>());
  if (claim.is_boolean()) return claim.get<bool>() ? "true" : "false";
  if (!claim.is_structured()) return {};
  // As protobuf prints JSON.
  return absl::Base64Escape(absl::StrReplaceAll(JsonText(claim), {{"<", "\\u003c"}, {">", "\\u003e"}}));
}

// Envoy: jwt_authn/authenticator.cc, normalize_payload_in_metadata.
json WithSplitClaims(json payload, const std::vector<std::string>& claims) {
  for (const std::string& claim : claims) {
    const auto it = payload.find(claim);
    if (it == payload.end() || !it->is_string()) continue;
    json words = json::array();
    for (const absl::string_view word : absl::StrSplit(it->get_ref<const std::string&>(), ' ', absl::SkipEmpty()))
      words.emplace_back(std::string(word));
    if (!words.empty()) *it = std::move(words);
  }
  return payload;
}

bool IsPreflight(const RequestSpec& request) {
  return request.method == "OPTIONS" && !FindHeader(request, "origin").value_or("").empty() &&
         !FindHeader(request, "access-control-request-method").value_or("").empty();
}

absl::Status TooFew(std::string_view list) {
  return absl::InvalidArgumentError(fmt::format(
      "Proto constraint validation failed ({}ValidationError.Requirements: value must contain at least 2 item(s))",
      list));
}

}  // namespace

// --- configuration

JwtAuthn::Provider JwtAuthn::MakeProvider(const std::string& name, const jwt_v3::JwtProvider& message,
                                          const Extensions& extensions) {
  Provider out;
  out.name = name;
  out.issuer = message.issuer();
  for (const std::string& audience : message.audiences()) out.audiences.insert(BareAudience(audience));
  out.remote = message.has_remote_jwks();
  if (message.has_local_jwks()) {
    const auto& source = message.local_jwks();
    out.keys = JwtKeySet::Parse(source.has_inline_string() ? source.inline_string() : source.inline_bytes(),
                                /*keeps_broken=*/!extensions.stock());
  }
  out.forward = message.forward();
  out.payload_header = absl::AsciiStrToLower(message.forward_payload_header());
  out.pad_payload = message.pad_forward_payload_header();
  out.payload_in_metadata = message.payload_in_metadata();
  out.header_in_metadata = message.header_in_metadata();
  for (const std::string& claim : message.normalize_payload_in_metadata().space_delimited_claims())
    out.split_claims.push_back(claim);
  out.clear_route_cache = message.clear_route_cache();
  if (message.clock_skew_seconds() > 0) out.clock_skew = message.clock_skew_seconds();
  for (const auto& to : message.claim_to_headers()) {
    out.claims_to_headers.emplace_back(absl::AsciiStrToLower(to.header_name()), to.claim_name());
  }
  for (const auto& from : message.from_headers()) {
    out.from_headers.emplace_back(absl::AsciiStrToLower(from.name()), from.value_prefix());
  }
  out.from_params.assign(message.from_params().begin(), message.from_params().end());
  out.from_cookies.assign(message.from_cookies().begin(), message.from_cookies().end());
  if (out.from_headers.empty() && out.from_params.empty() && out.from_cookies.empty()) {
    out.from_headers.emplace_back("authorization", "Bearer ");
    out.from_params.emplace_back("access_token");
  }
  return out;
}

void JwtAuthn::AddLocations(const Provider& provider, Requirement* out) {
  const auto add = [&](Location::Kind kind, const std::string& name, const std::string& prefix) {
    auto at = std::find_if(out->locations.begin(), out->locations.end(),
                           [&](const Location& l) { return l.kind == kind && l.name == name && l.prefix == prefix; });
    if (at == out->locations.end()) {
      Location location;
      location.kind = kind;
      location.name = name;
      location.prefix = prefix;
      at = out->locations.insert(at, std::move(location));
    }
    provider.issuer.empty() ? void(at->any_issuer = true) : void(at->issuers.insert(provider.issuer));
  };
  for (const auto& [name, prefix] : provider.from_headers) add(Location::Kind::kHeader, name, prefix);
  for (const std::string& name : provider.from_params) add(Location::Kind::kParam, name, "");
  for (const std::string& name : provider.from_cookies) add(Location::Kind::kCookie, name, "");
  std::sort(out->locations.begin(), out->locations.end(), [](const Location& a, const Location& b) {
    return std::pair(a.kind, a.name + a.prefix) < std::pair(b.kind, b.name + b.prefix);
  });
  if (!provider.payload_header.empty()) out->sanitized.push_back(provider.payload_header);
  for (const auto& [header, claim] : provider.claims_to_headers) out->sanitized.push_back(header);
}

const JwtAuthn::Provider* JwtAuthn::Find(const std::string& name) const {
  for (const auto& provider : providers_) {
    if (provider->name == name) return provider.get();
  }
  return nullptr;
}

// A provider without an issuer takes the tokens of issuers that no provider names.
const JwtAuthn::Provider* JwtAuthn::OfIssuer(const std::string& issuer) const {
  const Provider* any = nullptr;
  for (const auto& provider : providers_) {
    if (provider->issuer == issuer) return provider.get();
    if (provider->issuer.empty() && any == nullptr) any = provider.get();
  }
  return any;
}

absl::StatusOr<JwtAuthn::Requirement> JwtAuthn::MakeRequirement(const jwt_v3::JwtRequirement& message) const {
  Requirement out;
  const auto of_provider = [&](const std::string& name) {
    out.kind = Requirement::Kind::kProvider;
    out.provider = Find(name);
    if (out.provider == nullptr) {
      return absl::InvalidArgumentError(fmt::format("Required provider ['{}'] is not configured.", name));
    }
    AddLocations(*out.provider, &out);
    return absl::OkStatus();
  };
  const auto of_all = [&](Requirement::Kind kind) {
    out.kind = kind;
    for (const auto& provider : providers_) AddLocations(*provider, &out);
  };
  const auto add = [&](const jwt_v3::JwtRequirement& one) {
    absl::StatusOr<Requirement> child = MakeRequirement(one);
    if (child.ok()) out.children.push_back(*std::move(child));
    return child.status();
  };
  switch (message.requires_type_case()) {
    case jwt_v3::JwtRequirement::kProviderName:
      if (absl::Status status = of_provider(message.provider_name()); !status.ok()) return status;
      break;
    case jwt_v3::JwtRequirement::kProviderAndAudiences: {
      const auto& both = message.provider_and_audiences();
      if (absl::Status status = of_provider(both.provider_name()); !status.ok()) return status;
      if (both.audiences().empty()) break;
      out.audiences.emplace();
      for (const std::string& audience : both.audiences()) out.audiences->insert(BareAudience(audience));
      break;
    }
    case jwt_v3::JwtRequirement::kRequiresAny: {
      out.kind = Requirement::Kind::kAny;
      if (message.requires_any().requirements_size() < 2) return TooFew("JwtRequirementOrList");
      for (const auto& one : message.requires_any().requirements()) {
        if (one.has_allow_missing()) {
          out.allow_missing = true;
        } else if (one.has_allow_missing_or_failed()) {
          out.allow_failed = true;
        } else if (absl::Status status = add(one); !status.ok()) {
          return status;
        }
      }
      if (!out.children.empty()) break;
      // Alone, they look at whatever tokens there are.
      jwt_v3::JwtRequirement alone;
      out.allow_failed ? void(alone.mutable_allow_missing_or_failed()) : void(alone.mutable_allow_missing());
      if (absl::Status status = add(alone); !status.ok()) return status;
      break;
    }
    case jwt_v3::JwtRequirement::kRequiresAll:
      out.kind = Requirement::Kind::kAll;
      if (message.requires_all().requirements_size() < 2) return TooFew("JwtRequirementAndList");
      for (const auto& one : message.requires_all().requirements()) {
        if (absl::Status status = add(one); !status.ok()) return status;
      }
      break;
    case jwt_v3::JwtRequirement::kAllowMissingOrFailed:
      of_all(Requirement::Kind::kAllowMissingOrFailed);
      break;
    case jwt_v3::JwtRequirement::kAllowMissing:
      of_all(Requirement::Kind::kAllowMissing);
      break;
    default:
      break;
  }
  return out;
}

absl::StatusOr<std::shared_ptr<const JwtAuthn>> JwtAuthn::Make(const jwt_v3::JwtAuthentication& message,
                                                               const std::string& prefix,
                                                               const Extensions& extensions) {
  auto out = std::make_shared<JwtAuthn>();
  out->counters_ = prefix + "jwt_authn.";
  out->bypass_cors_preflight_ = message.bypass_cors_preflight();
  out->strip_failure_response_ = message.strip_failure_response();
  std::map<std::string, const jwt_v3::JwtProvider*> providers;  // the message's map has no order
  for (const auto& [name, provider] : message.providers()) providers[name] = &provider;
  for (const auto& [name, provider] : providers) {
    if (!provider->has_local_jwks() && !provider->has_remote_jwks()) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (field: \"jwks_source_specifier\", reason: is required)");
    }
    out->providers_.push_back(std::make_unique<Provider>(MakeProvider(name, *provider, extensions)));
    const Provider& made = *out->providers_.back();
    // istio-proxy of 1.18 answers requests with it instead.
    if (!made.remote && made.keys.empty() && extensions.stock()) {
      return absl::InvalidArgumentError(
          fmt::format("Provider '{}' in jwt_authn config has invalid local jwks: {}", name, made.keys.why_empty()));
    }
  }
  for (const auto& [name, required] : message.requirement_map()) {
    absl::StatusOr<Requirement> requirement = out->MakeRequirement(required);
    if (!requirement.ok()) return requirement.status();
    out->named_[name] = *std::move(requirement);
  }
  for (const auto& rule : message.rules()) {
    Rule compiled;
    if (absl::Status status = CompileRouteMatch(rule.match(), &compiled.match); !status.ok()) return status;
    if (rule.requirement_type_case() == jwt_v3::RequirementRule::kRequirementName) {
      const auto named = out->named_.find(rule.requirement_name());
      if (named == out->named_.end()) return absl::InvalidArgumentError(out->WrongName(rule.requirement_name()));
      compiled.requirement = named->second;
    } else if (rule.requirement_type_case() == jwt_v3::RequirementRule::kRequires) {
      absl::StatusOr<Requirement> requirement = out->MakeRequirement(rule.requires_());
      if (!requirement.ok()) return requirement.status();
      compiled.requirement = *std::move(requirement);
    }
    out->rules_.push_back(std::move(compiled));
  }
  return out;
}

// --- one request

class JwtAuthn::Run {
 public:
  Run(const JwtAuthn& filter, const RequestSpec& request, uint64_t now) : filter_(filter), edit_(request), now_(now) {}

  JwtOutcome Finish(const Requirement& requirement) {
    out_.status = Meets(requirement);
    out_.changed = edit_.Take();
    out_.holds_until = holds_until_;
    return std::move(out_);
  }

 private:
  JwtStatus Meets(const Requirement& r) {
    switch (r.kind) {
      case Requirement::Kind::kNone:
        return JwtStatus::kOk;
      case Requirement::Kind::kProvider:
      case Requirement::Kind::kAllowMissing:
      case Requirement::Kind::kAllowMissingOrFailed:
        return Authenticate(r);
      case Requirement::Kind::kAll:
        for (const Requirement& child : r.children) {
          if (const JwtStatus status = Meets(child); status != JwtStatus::kOk) return status;
        }
        return JwtStatus::kOk;
      case Requirement::Kind::kAny:
        return MeetsAny(r);
    }
    return JwtStatus::kOk;
  }

  // What is wrong with a token says more than that there is none, or one of somebody else's.
  JwtStatus MeetsAny(const Requirement& r) {
    JwtStatus out = JwtStatus::kMissing;
    for (const Requirement& child : r.children) {
      const JwtStatus status = Meets(child);
      if (status == JwtStatus::kOk) return status;
      const bool telling = status != JwtStatus::kMissing && status != JwtStatus::kUnknownIssuer;
      if (telling || out == JwtStatus::kMissing) out = status;
    }
    if (r.allow_failed || (r.allow_missing && out == JwtStatus::kMissing)) return JwtStatus::kOk;
    return out;
  }

  // Every token that is found has to be good, unless bad ones are allowed; the last location is looked at first.
  JwtStatus Authenticate(const Requirement& r) {
    const bool allow_failed = r.kind == Requirement::Kind::kAllowMissingOrFailed;
    const bool allow_missing = allow_failed || r.kind == Requirement::Kind::kAllowMissing;
    for (const std::string& header : r.sanitized) edit_.Remove(header);
    std::vector<Found> tokens = Extract(r.locations);
    JwtStatus status = JwtStatus::kMissing;
    while (!tokens.empty()) {
      const Found found = std::move(tokens.back());
      tokens.pop_back();
      status = Verify(r, found);
      if (status != JwtStatus::kOk && !allow_missing) return status;
    }
    if (allow_failed || (allow_missing && status == JwtStatus::kMissing)) return JwtStatus::kOk;
    return status;
  }

  std::vector<Found> Extract(const Locations& locations) const {
    std::vector<Found> out;
    for (const Location& location : locations) {
      switch (location.kind) {
        case Location::Kind::kHeader:
          for (const std::string& value : Values(location.name)) {
            std::string_view text = value;
            if (!location.prefix.empty()) {
              const size_t at = text.find(location.prefix);
              if (at == text.npos) continue;
              text = AfterPrefix(text, at + location.prefix.size());
            }
            out.push_back({std::string(text), &location});
          }
          break;
        case Location::Kind::kParam: {
          const auto parameters = QueryParametersOf(edit_.now().path);
          const auto found = parameters.find(location.name);
          if (found != parameters.end()) out.push_back({found->second.front(), &location});
          break;
        }
        case Location::Kind::kCookie:
          if (std::optional<std::string> cookie = FindCookie(edit_.now(), location.name)) {
            out.push_back({*std::move(cookie), &location});
          }
          break;
      }
    }
    return out;
  }

  // Of a header that Envoy knows by its name, all in one.
  std::vector<std::string> Values(const std::string& header) const {
    std::vector<std::string> out;
    for (const auto& [name, value] : edit_.now().headers) {
      if (name != header) continue;
      if (header == "authorization" && !out.empty()) {
        out.front() += "," + value;
      } else {
        out.push_back(value);
      }
    }
    return out;
  }

  JwtStatus Verify(const Requirement& r, const Found& found) {
    Judged& judged = filter_.Judge(found.token);
    const JwtToken& token = judged.token;
    if (token.status != JwtStatus::kOk) return token.status;
    if (!found.location->any_issuer && !found.location->issuers.contains(token.issuer)) {
      return JwtStatus::kUnknownIssuer;
    }
    const Provider* provider = r.provider != nullptr ? r.provider : filter_.OfIssuer(token.issuer);
    if (provider == nullptr) return JwtStatus::kUnknownIssuer;
    if (const JwtStatus status = InTime(token, provider->clock_skew); status != JwtStatus::kOk) return status;
    const std::set<std::string>& audiences = r.audiences ? *r.audiences : provider->audiences;
    if (!audiences.empty() &&
        std::none_of(token.audiences.begin(), token.audiences.end(),
                     [&](const std::string& audience) { return audiences.contains(BareAudience(audience)); })) {
      return JwtStatus::kAudienceNotAllowed;
    }
    if (provider->remote) return JwtStatus::kFetchFailed;
    if (provider->keys.empty()) return JwtStatus::kNoValidKeys;
    const auto [verdict, fresh] = judged.by_provider.try_emplace(provider, JwtStatus::kOk);
    if (fresh) verdict->second = provider->keys.Verify(token);
    if (verdict->second == JwtStatus::kOk) Use(*provider, found, token);
    return verdict->second;
  }

  JwtStatus InTime(const JwtToken& token, uint64_t skew) {
    const JwtStatus status = token.CheckTime(now_, skew);
    if (status == JwtStatus::kNotYetValid) {
      holds_until_ = std::min(holds_until_, token.not_before - skew);
    } else if (status == JwtStatus::kOk && token.expires != 0) {
      holds_until_ = std::min(holds_until_, token.expires + skew + 1);
    }
    return status;
  }

  // A good token: what it says goes where the provider wants it, and it itself goes no further unless told so.
  void Use(const Provider& provider, const Found& found, const JwtToken& token) {
    bool claims_in_headers = false;
    if (!provider.payload_header.empty()) {
      std::string payload = token.payload_text;
      if (provider.pad_payload) payload.append((4 - payload.size() % 4) % 4, '=');
      edit_.Add(provider.payload_header, payload);
    }
    for (const auto& [header, claim] : provider.claims_to_headers) {
      const json* value = FindNested(token.payload, claim);
      const std::string text = value == nullptr ? std::string() : ClaimText(*value);
      if (text.empty()) continue;
      edit_.Add(header, text);
      claims_in_headers = true;
    }
    if (!provider.forward) Withhold(*found.location);
    const auto note = [&](const std::string& key, const json& tree) {
      if (!key.empty()) out_.notes.push_back({kJwtFilterName, key, {}, std::make_shared<const json>(tree)});
    };
    note(provider.header_in_metadata, token.header);
    note(provider.payload_in_metadata, WithSplitClaims(token.payload, provider.split_claims));
    out_.clear_route_cache |=
        provider.clear_route_cache && (claims_in_headers || !provider.payload_in_metadata.empty());
  }

  void Withhold(const Location& location) {
    if (location.kind == Location::Kind::kHeader) edit_.Remove(location.name);
    if (location.kind != Location::Kind::kParam) return;  // cookies stay
    QueryParameters parameters = QueryParametersOf(edit_.now().path);
    parameters.erase(location.name);
    edit_.SetPath(WithQueryParameters(edit_.now().path, parameters));
  }

  const JwtAuthn& filter_;
  RequestEdit edit_;
  const uint64_t now_;
  uint64_t holds_until_ = kForGood;
  JwtOutcome out_;
};

JwtAuthn::Judged& JwtAuthn::Judge(const std::string& token) const {
  if (judged_.size() >= kMostJudged && !judged_.contains(token)) judged_.clear();
  const auto [it, fresh] = judged_.try_emplace(token);
  if (fresh) it->second.token = JwtToken::Parse(token);
  return it->second;
}

bool JwtAuthn::IsExempt(const RequestSpec& request) const { return bypass_cors_preflight_ && IsPreflight(request); }

std::string JwtAuthn::WrongName(const std::string& requirement) const {
  std::vector<std::string_view> names;
  for (const auto& [name, required] : named_) names.push_back(name);
  return fmt::format("Wrong requirement_name: {}. It should be one of [{}]", requirement, fmt::join(names, ","));
}

const JwtOutcome& JwtAuthn::Check(const RequestSpec& request, uint64_t now, const std::string* named) const {
  const Requirement* required = named != nullptr ? &named_.at(*named) : nullptr;
  Remembered& slot = remembered_[request.id() % remembered_.size()];
  if (slot.request == request.id() && slot.requirement == required && now < slot.outcome.holds_until) {
    return slot.outcome;
  }
  slot.request = request.id();
  slot.requirement = required;
  if (IsExempt(request)) {
    slot.outcome = {};
    slot.outcome.preflight = true;
    return slot.outcome;
  }
  if (required != nullptr) {
    slot.outcome = Run(*this, request, now).Finish(*required);
    return slot.outcome;
  }
  const auto rule = std::find_if(rules_.begin(), rules_.end(),
                                 [&](const Rule& r) { return r.match.Matches(request, /*random=*/0, nullptr); });
  static const Requirement kNothing;
  slot.outcome = Run(*this, request, now).Finish(rule == rules_.end() ? kNothing : rule->requirement);
  return slot.outcome;
}

std::string JwtAuthn::DetailsOf(std::string words) {
  std::replace(words.begin(), words.end(), ' ', '_');
  return fmt::format("jwt_authn_access_denied{{{}}}", words);
}

std::string JwtAuthn::ChallengeOf(JwtStatus status, const RequestSpec& request, bool tls) {
  constexpr size_t kLongestPath = 256;
  const std::string_view scheme = FindHeader(request, "x-forwarded-proto").value_or(tls ? "https" : "http");
  const std::string_view path = FindHeader(request, "x-envoy-original-path").value_or(request.path);
  return fmt::format("www-authenticate: Bearer realm=\"{}://{}{}\"{}\n", scheme, request.authority,
                     path.substr(0, kLongestPath), status == JwtStatus::kMissing ? "" : ", error=\"invalid_token\"");
}

}  // namespace wavetank::envoysim
