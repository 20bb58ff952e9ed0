// The agent's security token service, at --stsPort: a workload's own token for one that others issue (RFC 8693), for
// Envoys that speak to Google's APIs (istiod: security/pkg/stsservice). It answers HTTP that a driver brings, and asks
// by HTTP what a driver sends.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/agent/log.h"
#include "core/base/host.h"
#include "core/inject/token_manager.h"

namespace wavetank::agent {

inline constexpr std::string_view kTokenPath = "/token", kStsStatusPath = "/stsStatus";

struct StsRequest {
  std::string method, content_type, body;
};
struct StsAnswer {
  int status = 200;
  std::string content_type;  // empty: none is said
  std::string body;
};

// What the exchange asks of somebody outside. Holds tokens: never for logs.
struct TokenCall {
  std::string url, body;      // a POST of JSON
  std::string authorization;  // the header's value; empty: none
};
struct TokenAnswer {
  int status = 0;
  std::string body;
};
// Calls back once, on the host's thread. An error: no answer came; its text is what Go says after the URL.
using SendTokenCall = std::function<void(const TokenCall& call, absl::AnyInvocable<void(absl::StatusOr<TokenAnswer>)>)>;

class TokenExchange {
 public:
  struct Options {
    bool google = true;            // the plugin; false: any other name, which is none
    pilot::GoogleProject project;  // of the plugin
    std::string provider;          // GKE_CLUSTER_URL; empty: the project's cluster
    std::string trust_domain = "cluster.local";
    Log log;
  };
  // `host` outlives it. `send` is asked of the plugin alone.
  TokenExchange(Host& host, Options options, SendTokenCall send);
  TokenExchange(const TokenExchange&) = delete;
  TokenExchange& operator=(const TokenExchange&) = delete;

  // /token. Calls back once.
  void Exchange(const StsRequest& request, absl::AnyInvocable<void(StsAnswer)> done);
  // /stsStatus: which tokens there are, without them.
  StsAnswer Status() const;

 private:
  struct Parameters {
    std::string grant_type, scope, subject_token, subject_token_type;
  };
  struct Token {
    Time issued, expires;
    std::string text;
  };
  struct Try {
    TokenCall call;
    const char* what;  // "federated", "access"
    int tries = 0;
    bool drained = false;
    Time began;
    absl::AnyInvocable<void(absl::StatusOr<TokenAnswer>)> done;
  };

  absl::StatusOr<Parameters> Validate(const StsRequest& request) const;
  std::string Audience(const std::string& subject_token) const;
  std::optional<std::string> FromCache();
  void FetchAccessToken(const std::string& federated, absl::AnyInvocable<void(StsAnswer)> done);
  // Five tries in all; what the server refuses as the client's fault is an answer.
  void Send(std::shared_ptr<Try> attempt);
  void OnAnswer(const std::shared_ptr<Try>& attempt, absl::StatusOr<TokenAnswer> answer);
  StsAnswer Refused(std::string_view error, std::string_view why) const;

  Host& host_;
  const Options options_;
  const SendTokenCall send_;
  std::optional<Token> federated_, access_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::agent
