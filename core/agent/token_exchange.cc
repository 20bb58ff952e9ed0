#include "core/agent/token_exchange.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/text/go_duration.h"
#include "core/base/text/percent.h"
#include "core/kube/time_format.h"
#include "core/x509/calendar.h"
#include "fmt/format.h"

namespace wavetank::agent {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// istiod: security/pkg/stsservice/server/server.go
constexpr std::string_view kForm = "application/x-www-form-urlencoded";
constexpr std::string_view kGrantType = "urn:ietf:params:oauth:grant-type:token-exchange";
constexpr std::string_view kJwtType = "urn:ietf:params:oauth:token-type:jwt";
constexpr std::string_view kAccessTokenType = "urn:ietf:params:oauth:token-type:access_token";
// istiod: security/pkg/stsservice/tokenmanager/google/tokenexchangeplugin.go
constexpr std::string_view kScope = "https://www.googleapis.com/auth/cloud-platform";
constexpr std::string_view kFederatedEndpoint = "https://sts.googleapis.com/v1/token";
constexpr int kMostTries = 5;
constexpr Duration kPause = 10ms, kGrace = 300s, kDefaultLife = 3600s;
constexpr Duration kMostLife = 24h * 36'500;  // either way: whoever answers may say anything
constexpr char kNoPlugin[] = "no plugin is found";

// The first value of each name. The first error counts, as in Go's url.ParseQuery().
absl::StatusOr<std::map<std::string, std::string, std::less<>>> ParseForm(std::string_view body) {
  std::map<std::string, std::string, std::less<>> out;
  for (const absl::string_view piece : absl::StrSplit(absl::string_view(body.data(), body.size()), '&')) {
    const std::string_view pair(piece.data(), piece.size());
    if (pair.empty()) continue;
    if (pair.find(';') != pair.npos) return absl::InvalidArgumentError("invalid semicolon separator in query");
    const size_t equals = pair.find('=');
    std::string_view broken;
    std::optional<std::string> name = PercentDecoded(pair.substr(0, equals), true, &broken), value;
    if (name) value = PercentDecoded(equals == pair.npos ? std::string_view() : pair.substr(equals + 1), true, &broken);
    if (!value) return absl::InvalidArgumentError(fmt::format("invalid URL escape \"{}\"", broken));
    out.emplace(*std::move(name), *std::move(value));
  }
  return out;
}

// The audiences of a JWT; a text is one (istiod: security/pkg/util/jwtutil.go).
std::vector<std::string> AudiencesOf(const std::string& token) {
  const std::vector<std::string> parts = absl::StrSplit(token, '.');
  std::string payload;
  if (parts.size() != 3 || !absl::WebSafeBase64Unescape(parts[1], &payload)) return {};
  const json claims = ParseJson(payload);
  const json& audiences = At(claims, "aud");
  if (audiences.is_string()) return {audiences.get<std::string>()};
  std::vector<std::string> out;
  for (const json& audience : Items(audiences)) {
    if (!audience.is_string()) return {};
    out.push_back(audience.get<std::string>());
  }
  return out;
}

// Go's encoding/json on what is no JSON, as far as its beginning shows it.
std::string WhyNoJson(const std::string& body) {
  const size_t first = body.find_first_not_of(" \t\r\n");
  if (first == body.npos) return "unexpected end of JSON input";
  if (body[first] == '{' || body[first] == '[' || body[first] == '"') return "unexpected end of JSON input";
  return fmt::format("invalid character '{}' looking for beginning of value", body[first]);
}

std::optional<Time> DateOf(const std::string& text) {
  const std::optional<int64_t> seconds = kube::ParseRfc3339(text);
  if (!seconds) return std::nullopt;
  return std::max(x509::FromUnixSeconds(*seconds), Time{} - kMostLife);
}

std::string TokenResponse(const std::string& token, Duration left) {
  ordered_json out = {{"access_token", token},
                      {"issued_token_type", kAccessTokenType},
                      {"token_type", "Bearer"},
                      {"expires_in", left / std::chrono::seconds(1)},
                      {"scope", ""},
                      {"refresh_token", ""}};
  return JsonText(out, 1);
}

StsAnswer Success(std::string body) { return {200, "application/json", std::move(body)}; }

}  // namespace

TokenExchange::TokenExchange(Host& host, Options options, SendTokenCall send)
    : host_(host), options_(std::move(options)), send_(std::move(send)) {}

StsAnswer TokenExchange::Refused(std::string_view error, std::string_view why) const {
  const bool invalid = error == "invalid_request";
  Say(options_.log, Level::kWarn, "stsserver",
      fmt::format("{}: {}", invalid ? "STS request is invalid" : "token manager fails to generate token", why));
  const ordered_json body = {{"error", std::string(error)}, {"error_description", std::string(why)}, {"error_uri", ""}};
  return {invalid ? 400 : 500, "application/json", JsonText(body, 2)};
}

absl::StatusOr<TokenExchange::Parameters> TokenExchange::Validate(const StsRequest& request) const {
  if (request.method != "POST") {
    return absl::InvalidArgumentError(
        fmt::format("request method is invalid, should be POST but get {}", request.method));
  }
  if (request.content_type != kForm) {
    return absl::InvalidArgumentError(
        fmt::format("request content type is invalid, should be {} but get {}", kForm, request.content_type));
  }
  const auto form = ParseForm(request.body);
  if (!form.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("failed to parse query from STS request: {}", Message(form.status())));
  }
  const auto value = [&](std::string_view name) {
    const auto it = form->find(name);
    return it == form->end() ? std::string() : it->second;
  };
  Parameters out{value("grant_type"), value("scope"), value("subject_token"), value("subject_token_type")};
  if (out.grant_type != kGrantType) {
    return absl::InvalidArgumentError(
        fmt::format("request query grant_type is invalid, should be {} but get {}", kGrantType, out.grant_type));
  }
  if (out.subject_token.empty()) return absl::InvalidArgumentError("subject_token is empty");
  if (out.subject_token_type != kJwtType) {
    return absl::InvalidArgumentError(
        fmt::format("subject_token_type is invalid, should be {} but get {}", kJwtType, out.subject_token_type));
  }
  return out;
}

std::optional<std::string> TokenExchange::FromCache() {
  if (!access_ || access_->expires - host_.WallClock() <= kGrace) return std::nullopt;
  return TokenResponse(access_->text, access_->expires - host_.WallClock());
}

std::string TokenExchange::Audience(const std::string& subject_token) const {
  const std::vector<std::string> audiences = AudiencesOf(subject_token);
  std::string ns = options_.trust_domain;
  if (audiences.size() == 1 && !audiences[0].empty()) {
    ns = audiences[0];
  } else {
    Say(options_.log, Level::kError, "token",
        fmt::format(
            "expect only 1 non-empty audience in token but found {}. Fallback to use trust domain \"{}\" as the "
            "identity namespace.",
            audiences.size(), ns));
  }
  const std::string& provider = options_.provider.empty() ? options_.project.cluster_url : options_.provider;
  return fmt::format("identitynamespace:{}:{}", ns, provider);
}

void TokenExchange::Exchange(const StsRequest& request, absl::AnyInvocable<void(StsAnswer)> done) {
  const absl::StatusOr<Parameters> asked = Validate(request);
  if (!asked.ok()) return done(Refused("invalid_request", Message(asked.status())));
  if (!options_.google) return done(Refused("invalid_target", kNoPlugin));
  if (std::optional<std::string> cached = FromCache()) return done(Success(*std::move(cached)));

  const std::string audience = Audience(asked->subject_token);
  // Go prints a map's names in their order.
  const json query = {{"audience", audience},
                      {"grantType", asked->grant_type},
                      {"requestedTokenType", kAccessTokenType},
                      {"subjectTokenType", asked->subject_token_type},
                      {"subjectToken", asked->subject_token},
                      {"scope", asked->scope.empty() ? std::string(kScope) : asked->scope}};
  Say(options_.log, Level::kInfo, "token", fmt::format("Prepared federated token request for aud \"{}\"", audience));
  auto attempt = std::make_shared<Try>();
  attempt->call = {std::string(kFederatedEndpoint), JsonText(query), ""};
  attempt->what = "federated";
  attempt->done = [this, done = std::move(done)](absl::StatusOr<TokenAnswer> answer) mutable {
    if (!answer.ok()) return done(Refused("invalid_target", Message(answer.status())));
    const json told = ParseJson(answer->body);
    const std::string token = Text(told, "access_token");
    const int64_t said = Number(told, "expires_in", 0);
    const Duration life = std::chrono::seconds(std::clamp<int64_t>(said, -kMostLife / 1s, kMostLife / 1s));
    federated_ = Token{host_.WallClock(), host_.WallClock() + life, ""};
    Say(options_.log, Level::kInfo, "token", fmt::format("fetched federated token\tttl={}", life / 1s));
    FetchAccessToken(token, std::move(done));
  };
  Send(std::move(attempt));
}

void TokenExchange::FetchAccessToken(const std::string& federated, absl::AnyInvocable<void(StsAnswer)> done) {
  const ordered_json query = {
      {"name", ""}, {"delegates", nullptr}, {"scope", {kScope}}, {"lifetime", {{"seconds", kDefaultLife / 1s}}}};
  auto attempt = std::make_shared<Try>();
  attempt->call = {fmt::format("https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/service-{}@gcp-sa-"
                               "meshdataplane.iam.gserviceaccount.com:generateAccessToken",
                               options_.project.number),
                   JsonText(query), "Bearer " + federated};
  attempt->what = "access";
  attempt->done = [this, done = std::move(done)](absl::StatusOr<TokenAnswer> answer) mutable {
    if (!answer.ok()) return done(Refused("invalid_target", Message(answer.status())));
    const json told = ParseJson(answer->body);
    const std::string date = Text(told, "expireTime");
    const Time now = host_.WallClock();
    const std::optional<Time> expires = DateOf(date);
    if (!expires) {
      Say(options_.log, Level::kError, "token",
          fmt::format("Failed to unmarshal timestamp {} from access token response, fall back to use default lifetime "
                      "(3600 seconds)",
                      date));
    }
    access_ = Token{now, expires.value_or(now + kDefaultLife), Text(told, "accessToken")};
    Say(options_.log, Level::kInfo, "token",
        fmt::format("fetched access token\tttl={}", GoDurationText((access_->expires - now).count())));
    done(Success(TokenResponse(access_->text, access_->expires - now)));
  };
  Send(std::move(attempt));
}

void TokenExchange::Send(std::shared_ptr<Try> attempt) {
  if (attempt->tries == 0) attempt->began = host_.Now();
  ++attempt->tries;
  // A request that was sent once has no body left, and Go sends none of another length than it says: after an answer
  // that calls for another try, there is none that could succeed.
  if (attempt->drained) {
    return OnAnswer(attempt, absl::UnavailableError(
                                 fmt::format("http: ContentLength={} with Body length 0", attempt->call.body.size())));
  }
  const TokenCall& call = attempt->call;
  send_(call, [this, attempt, alive = std::weak_ptr<char>(alive_)](absl::StatusOr<TokenAnswer> answer) {
    if (!alive.expired()) OnAnswer(attempt, std::move(answer));
  });
}

void TokenExchange::OnAnswer(const std::shared_ptr<Try>& attempt, absl::StatusOr<TokenAnswer> answer) {
  const char* const what = attempt->what;
  const bool final = answer.ok() && (answer->status == 200 || (answer->status >= 400 && answer->status < 500));
  std::string why;
  if (!answer.ok()) {
    why = fmt::format("Post \"{}\": {}", attempt->call.url, Message(answer.status()));
    Say(options_.log, Level::kError, "token", fmt::format("failed to send out request: {} (response: <nil>)", why));
  } else if (!final) {
    why = fmt::format("HTTP Status {}, body: {}", answer->status, answer->body);
  }
  if (final) {
    const json told = ParseJson(answer->body);
    if (!told.is_object()) {
      why = fmt::format("failed to unmarshal {} token response data: {}", what, WhyNoJson(answer->body));
    } else if (Text(told, std::string_view(what) == "access" ? "accessToken" : "access_token").empty()) {
      why = fmt::format("{} token response does not have access token. {}", what, answer->body);
    } else {
      return attempt->done(std::move(answer));
    }
    Say(options_.log, Level::kError, "token", fmt::format("{} token response cannot be used", what));
    return attempt->done(absl::UnavailableError(why));
  }
  attempt->drained = attempt->drained || answer.ok();
  if (attempt->tries < kMostTries) {
    host_.RunAfter(kPause, [this, attempt, alive = std::weak_ptr<char>(alive_)] {
      if (!alive.expired()) Send(attempt);
    });
    return;
  }
  const int status = answer.ok() ? answer->status : 0;
  Say(options_.log, Level::kError, "token",
      fmt::format("Failed to exchange {} token (HTTP status {}, total time elapsed {}): {}", what, status,
                  GoDurationText((host_.Now() - attempt->began).count()), why));
  attempt->done(
      absl::UnavailableError(fmt::format("failed to exchange {} token (HTTP status {}): {}", what, status, why)));
}

StsAnswer TokenExchange::Status() const {
  if (!options_.google) {
    Say(options_.log, Level::kError, "stsserver",
        fmt::format("token manager failed at dumping token status: {}", kNoPlugin));
    return {500, "", fmt::format("failure in dumping STS server status: {}", kNoPlugin)};
  }
  ordered_json tokens = ordered_json::array();
  for (const auto& [name, token] : {std::pair("federated token", &federated_), std::pair("access token", &access_)}) {
    if (!*token) continue;
    tokens.push_back(
        {{"token_type", name},
         {"issue_time", kube::FormatRfc3339(kWorldEpochUnixSeconds + (*token)->issued.time_since_epoch() / 1s)},
         {"expire_time", kube::FormatRfc3339(kWorldEpochUnixSeconds + (*token)->expires.time_since_epoch() / 1s)},
         {"token", ""}});
  }
  return Success(JsonText(ordered_json{{"tokens", std::move(tokens)}}, 1));
}

}  // namespace wavetank::agent
