#include "serve/agent/tokens/sts_port.h"

#include <curl/curl.h>

#include <thread>
#include <utility>

#include "core/base/status.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/http/transport/server.h"
#include "fmt/format.h"

namespace wavetank::serve {
namespace {

namespace http = fakekube::http;

http::Response ResponseOf(agent::StsAnswer answer) {
  http::Response out = http::PlainResponse(answer.status, std::move(answer.body));
  if (!answer.content_type.empty()) out.content_type = std::move(answer.content_type);
  return out;
}

class StsPortImpl final : public StsPort {
 public:
  StsPortImpl(PostToHost post, agent::TokenExchange& exchange)
      : exchange_(exchange),
        server_({.max_connections = 64},
                [post = std::move(post)](uint64_t, absl::AnyInvocable<void()> task) { post(std::move(task)); }) {}

  absl::Status Start(const std::string& address, int port) {
    if (port > 65535) return absl::InvalidArgumentError(fmt::format("listen tcp: address {}: invalid port", port));
    absl::StatusOr<uint16_t> got = server_.Listen(address, static_cast<uint16_t>(port),
                                                  [this](const http::Request& request) { return Answer(request); });
    if (!got.ok()) return got.status();
    port_ = *got;
    server_.Start();
    return absl::OkStatus();
  }
  uint16_t port() const override { return port_; }

 private:
  http::Response Answer(const http::Request& request) {
    if (request.path == agent::kStsStatusPath) return ResponseOf(exchange_.Status());
    if (request.path != agent::kTokenPath) return http::NoSuchPath();
    http::Response out;
    out.later = std::make_shared<http::LaterResponse>();
    exchange_.Exchange({request.method, request.content_type, request.body},
                       [later = out.later](agent::StsAnswer answer) { later->Set(ResponseOf(std::move(answer))); });
    return out;
  }

  agent::TokenExchange& exchange_;
  uint16_t port_ = 0;
  http::Server server_;
};

size_t AppendBody(char* data, size_t size, size_t count, void* to) {
  constexpr size_t kMost = 1 << 20;
  auto& body = *static_cast<std::string*>(to);
  if (body.size() + size * count > kMost) return 0;
  body.append(data, size * count);
  return size * count;
}

absl::StatusOr<agent::TokenAnswer> PostByHttps(const agent::TokenCall& call, const std::string& roots_path) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), curl_easy_cleanup);
  if (curl == nullptr) return absl::InternalError("curl is not there");
  curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/json");
  if (!call.authorization.empty()) {
    list = curl_slist_append(list, fmt::format("Authorization: {}", call.authorization).c_str());
  }
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(list, curl_slist_free_all);
  agent::TokenAnswer out;
  std::string error(CURL_ERROR_SIZE, '\0');
  curl_easy_setopt(curl.get(), CURLOPT_URL, call.url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(call.body.size()));
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, call.body.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, AppendBody);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &out.body);
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, error.data());
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");  // the plugin's transport knows none
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, 5L);
  curl_easy_setopt(curl.get(), CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(curl.get(), CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  if (!roots_path.empty()) curl_easy_setopt(curl.get(), CURLOPT_CAINFO, roots_path.c_str());
  const CURLcode code = curl_easy_perform(curl.get());
  if (code != CURLE_OK) {
    const std::string why = error.c_str();
    return absl::UnavailableError(why.empty() ? curl_easy_strerror(code) : why);
  }
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  out.status = static_cast<int>(status);
  return out;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StsPort>> StsPort::Listen(PostToHost post, agent::TokenExchange& exchange,
                                                         const std::string& address, int port, const agent::Log& log) {
  auto out = std::make_unique<StsPortImpl>(std::move(post), exchange);
  if (absl::Status status = out->Start(address, port); !status.ok()) {
    Say(log, agent::Level::kError, "", fmt::format("Server failed to listen {}", Message(status)));
    return status;
  }
  Say(log, agent::Level::kInfo, "stsserver", fmt::format("Start listening on {}:{}", address, out->port()));
  return out;
}

agent::SendTokenCall SendByHttps(PostToHost post, std::string roots_path) {
  return [post = std::move(post), roots_path = std::move(roots_path)](
             const agent::TokenCall& call, absl::AnyInvocable<void(absl::StatusOr<agent::TokenAnswer>)> done) {
    std::thread([post, roots_path, call, done = std::move(done)]() mutable {
      absl::StatusOr<agent::TokenAnswer> answer = PostByHttps(call, roots_path);
      post([done = std::move(done), answer = std::move(answer)]() mutable { done(std::move(answer)); });
    }).detach();
  };
}

}  // namespace wavetank::serve
