#include "core/agent/token_exchange.h"

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "core/base/json_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"

namespace wavetank::agent {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kGrant[] = "grant_type=urn:ietf:params:oauth:grant-type:token-exchange";
constexpr char kSubjectType[] = "subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Ajwt";

std::string JwtFor(const std::string& claims) {
  std::string payload;
  absl::WebSafeBase64Escape(claims, &payload);
  while (payload.ends_with('=')) payload.pop_back();
  return "e30." + payload + ".c2ln";
}

class TokenExchangeTest : public ::testing::Test {
 protected:
  void Begin(bool google = true) {
    TokenExchange::Options options;
    options.google = google;
    options.project = {"4711", "https://container.googleapis.com/v1/projects/p/locations/z/clusters/c"};
    options.trust_domain = "own.domain";
    options.log = [this](Level, std::string_view, std::string_view text) { log.emplace_back(text); };
    exchange = std::make_unique<TokenExchange>(
        host, std::move(options),
        [this](const TokenCall& call, absl::AnyInvocable<void(absl::StatusOr<TokenAnswer>)> done) {
          calls.push_back(call);
          absl::StatusOr<TokenAnswer> answer = absl::UnavailableError("dial tcp: no such host");
          if (!answers.empty()) {
            answer = std::move(answers.front());
            answers.pop_front();
          }
          done(std::move(answer));
        });
  }
  StsAnswer Ask(StsRequest request) {
    StsAnswer out;
    out.status = 0;
    exchange->Exchange(request, [&](StsAnswer answer) { out = std::move(answer); });
    kernel.RunUntil(kernel.Now() + 1s);
    return out;
  }
  StsAnswer AskWith(const std::string& token) {
    return Ask({"POST", "application/x-www-form-urlencoded",
                std::string(kGrant) + "&" + kSubjectType + "&subject_token=" + token});
  }
  void Succeed() {
    answers.push_back(TokenAnswer{200, R"({"access_token": "fed", "expires_in": 3600})"});
    answers.push_back(TokenAnswer{200, R"({"accessToken": "acc", "expireTime": "2023-09-01T01:00:00Z"})"});
  }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("pod", 0, nullptr);
  std::unique_ptr<TokenExchange> exchange;
  std::deque<absl::StatusOr<TokenAnswer>> answers;
  std::vector<TokenCall> calls;
  std::vector<std::string> log;
};

TEST_F(TokenExchangeTest, WhatIsNoExchangeIsRefusedInItsWords) {
  Begin();
  const auto why = [&](StsRequest request) {
    const StsAnswer answer = Ask(std::move(request));
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(answer.content_type, "application/json");
    const json body = ParseJson(answer.body);
    EXPECT_EQ(body["error"], "invalid_request");
    return body["error_description"].get<std::string>();
  };
  const std::string form = "application/x-www-form-urlencoded";
  EXPECT_EQ(why({"GET", form, ""}), "request method is invalid, should be POST but get GET");
  EXPECT_EQ(why({"POST", "text/plain", ""}),
            "request content type is invalid, should be application/x-www-form-urlencoded but get text/plain");
  EXPECT_EQ(why({"POST", form, "grant_type=a%z"}), "failed to parse query from STS request: invalid URL escape \"%z\"");
  EXPECT_EQ(why({"POST", form, "grant_type=password"}),
            "request query grant_type is invalid, should be urn:ietf:params:oauth:grant-type:token-exchange but get "
            "password");
  EXPECT_EQ(why({"POST", form, kGrant}), "subject_token is empty");
  EXPECT_EQ(why({"POST", form, std::string(kGrant) + "&subject_token=t&subject_token_type=x+y"}),
            "subject_token_type is invalid, should be urn:ietf:params:oauth:token-type:jwt but get x y");
  EXPECT_THAT(calls, IsEmpty());
}

TEST_F(TokenExchangeTest, WithoutAPluginNoTokenIsMade) {
  Begin(/*google=*/false);
  const StsAnswer answer = AskWith("t");
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body,
            "{\n  \"error\": \"invalid_target\",\n  \"error_description\": \"no plugin is found\",\n  \"error_uri\": "
            "\"\"\n}");
  EXPECT_EQ(exchange->Status().status, 500);
  EXPECT_EQ(exchange->Status().body, "failure in dumping STS server status: no plugin is found");
}

TEST_F(TokenExchangeTest, ATokenIsExchangedTwiceAndThenCachedUntilItsLastFiveMinutes) {
  Begin();
  Succeed();
  const json first = ParseJson(AskWith(JwtFor(R"({"aud": ["own.pool"]})")).body);
  EXPECT_EQ(first["access_token"], "acc");
  EXPECT_EQ(first["expires_in"], 3600);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].url, "https://sts.googleapis.com/v1/token");
  EXPECT_EQ(ParseJson(calls[0].body)["audience"],
            "identitynamespace:own.pool:https://container.googleapis.com/v1/projects/p/locations/z/clusters/c");
  EXPECT_THAT(calls[1].url, HasSubstr("service-4711@gcp-sa-meshdataplane"));
  EXPECT_EQ(calls[1].authorization, "Bearer fed");

  kernel.RunUntil(Time{} + 54min);
  EXPECT_EQ(ParseJson(AskWith("t").body)["expires_in"], 360);
  EXPECT_EQ(calls.size(), 2u);
  kernel.RunUntil(Time{} + 56min);
  Succeed();
  AskWith("t");
  EXPECT_EQ(calls.size(), 4u);
}

TEST_F(TokenExchangeTest, AnAudienceThatIsNotOneIsTheTrustDomain) {
  Begin();
  Succeed();
  AskWith(JwtFor(R"({"aud": ["a", "b"]})"));
  EXPECT_THAT(calls[0].body, HasSubstr("identitynamespace:own.domain:"));
}

TEST_F(TokenExchangeTest, DatesBeyondWhatCanBeCountedAreFarAwayAndNoMore) {
  Begin();
  for (const char* date : {"0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"}) {
    for (const char* life : {"9223372036854775807", "-9223372036854775808"}) {
      answers.push_back(TokenAnswer{200, std::string(R"({"access_token": "fed", "expires_in": )") + life + "}"});
      answers.push_back(TokenAnswer{200, std::string(R"({"accessToken": "acc", "expireTime": ")") + date + "\"}"});
      AskWith("t");
      EXPECT_EQ(ParseJson(exchange->Status().body)["tokens"].size(), 2u) << date << " " << life;
    }
  }
  EXPECT_EQ(calls.size(), 6u) << "what ended long ago is asked for each time, what ends in ages is kept";
}

TEST_F(TokenExchangeTest, ItsStatusNamesTokensAndShowsNone) {
  Begin();
  EXPECT_EQ(exchange->Status().body, "{\n \"tokens\": []\n}");
  Succeed();
  AskWith("t");
  const json tokens = ParseJson(exchange->Status().body)["tokens"];
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_EQ(tokens[1]["token_type"], "access token");
  EXPECT_EQ(tokens[1]["expire_time"], "2023-09-01T01:00:00Z");
  EXPECT_EQ(tokens[1]["token"], "");
  for (const std::string& line : log) EXPECT_THAT(line, testing::Not(HasSubstr("acc\"")));
}

TEST_F(TokenExchangeTest, WhereNobodyAnswersItAsksFiveTimes) {
  Begin();
  const json answer = ParseJson(AskWith("t").body);
  EXPECT_EQ(calls.size(), 5u);
  EXPECT_EQ(
      answer["error_description"],
      "failed to exchange federated token (HTTP status 0): Post \"https://sts.googleapis.com/v1/token\": dial tcp: "
      "no such host");
}

TEST_F(TokenExchangeTest, ASentBodyIsNotSentAgainAfterAServersError) {
  Begin();
  answers.push_back(TokenAnswer{503, "busy"});
  const json answer = ParseJson(AskWith("t").body);
  EXPECT_EQ(calls.size(), 1u);
  EXPECT_THAT(answer["error_description"].get<std::string>(), HasSubstr("with Body length 0"));
}

TEST_F(TokenExchangeTest, WhatTheServerRefusesIsNotAskedAgain) {
  Begin();
  answers.push_back(TokenAnswer{400, R"({"error": "invalid_grant"})"});
  const json answer = ParseJson(AskWith("t").body);
  EXPECT_EQ(calls.size(), 1u);
  EXPECT_EQ(answer["error_description"],
            R"(federated token response does not have access token. {"error": "invalid_grant"})");
}

TEST(TokenManagerTest, TheDefaultOneWantsAGoogleProject) {
  EXPECT_EQ(pilot::CheckTokenManager("GoogleTokenExchange", "").message(),
            "GoogleTokenExchange token manager specified but failed to ready GCP project information");
  EXPECT_FALSE(pilot::CheckTokenManager("GoogleTokenExchange", "p|4711|c").ok());
  EXPECT_TRUE(pilot::CheckTokenManager("GoogleTokenExchange", "p|4711|c|z").ok());
  EXPECT_TRUE(pilot::CheckTokenManager("none", "").ok());
}

}  // namespace
}  // namespace wavetank::agent
