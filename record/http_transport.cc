#include "record/http_transport.h"

#include <curl/curl.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"

namespace wavetank::record {
namespace {

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

curl_blob Blob(const std::string& text) {
  curl_blob blob;
  blob.data = const_cast<char*>(text.data());  // copied by libcurl
  blob.len = text.size();
  blob.flags = CURL_BLOB_COPY;
  return blob;
}

std::string HostOf(std::string_view url) {
  const size_t scheme = url.find("://");
  std::string_view rest = scheme == std::string_view::npos ? url : url.substr(scheme + 3);
  rest = rest.substr(0, rest.find_first_of("/?#"));
  if (!rest.empty() && rest[0] == '[') return std::string(rest.substr(1, rest.find(']') - 1));
  return std::string(rest.substr(0, rest.find(':')));
}

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos);
}

}  // namespace

// All calls that are under way. Callbacks run from Deliver() only, never from inside libcurl: a call may be ended in
// any of them.
class HttpLoop::Impl {
 public:
  struct CallState {
    Transport::Callbacks callbacks;
    CURL* easy = nullptr;
    std::unique_ptr<curl_slist, FreeList> headers;
    std::string pending;  // came, and not delivered
    bool told_code = false, dead = false, ended = false;
    absl::Status end;
    std::string error = std::string(CURL_ERROR_SIZE, '\0');
  };

  Impl() {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    multi_ = curl_multi_init();
    curl_multi_setopt(multi_, CURLMOPT_MAX_TOTAL_CONNECTIONS, 512L);
  }
  ~Impl() {
    for (auto& [easy, state] : calls_) Release(*state);
    curl_multi_cleanup(multi_);
    curl_global_cleanup();
  }

  void Add(const std::shared_ptr<CallState>& state) {
    calls_[state->easy] = state;
    curl_multi_add_handle(multi_, state->easy);
  }

  void Abort(const std::shared_ptr<CallState>& state) {
    state->dead = true;
    if (state->easy == nullptr) return;
    calls_.erase(state->easy);
    Release(*state);
  }

  void Wait(Duration longest) {
    const auto ms = std::max<int64_t>(0, (longest + 999us) / 1ms);
    // Has libcurl something to do at once, it says so by its own timeout.
    curl_multi_poll(multi_, nullptr, 0, static_cast<int>(std::min<int64_t>(ms, 1000)), nullptr);
  }

  void Deliver() {
    int running = 0;
    curl_multi_perform(multi_, &running);
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const auto it = calls_.find(message->easy_handle);
      if (it == calls_.end()) continue;
      CallState& state = *it->second;
      state.ended = true;
      state.end = StatusOf(message->data.result, state);
    }
    // A copy, since callbacks begin and end calls.
    std::vector<std::shared_ptr<CallState>> all;
    for (const auto& [easy, state] : calls_) {
      if (state->ended || !state->pending.empty()) all.push_back(state);
    }
    for (const std::shared_ptr<CallState>& state : all) Tell(state);
  }

 private:
  static absl::Status StatusOf(CURLcode result, const CallState& state) {
    if (result == CURLE_OK) return absl::OkStatus();
    const char* detail = state.error[0] != '\0' ? state.error.c_str() : curl_easy_strerror(result);
    switch (result) {
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CERTPROBLEM:
      case CURLE_SSL_CACERT_BADFILE:
      case CURLE_SSL_ISSUER_ERROR:
        return absl::UnauthenticatedError(detail);
      default:
        return absl::UnavailableError(detail);
    }
  }

  void Tell(const std::shared_ptr<CallState>& state) {
    if (state->dead) return;
    if (!state->told_code && state->easy != nullptr) {
      long code = 0;
      curl_easy_getinfo(state->easy, CURLINFO_RESPONSE_CODE, &code);
      if (code != 0) {
        state->told_code = true;
        state->callbacks.on_code(static_cast<int>(code));
        if (state->dead) return;
      }
    }
    if (!state->pending.empty()) {
      const std::string data = std::exchange(state->pending, {});
      state->callbacks.on_data(data);
      if (state->dead) return;
    }
    if (!state->ended) return;
    const absl::Status end = state->end;
    calls_.erase(state->easy);
    Release(*state);
    state->callbacks.on_end(end);
  }

  void Release(CallState& state) {
    if (state.easy == nullptr) return;
    curl_multi_remove_handle(multi_, state.easy);
    curl_easy_cleanup(state.easy);
    state.easy = nullptr;
  }

  CURLM* multi_;
  std::map<CURL*, std::shared_ptr<CallState>> calls_;
};

namespace {

using CallState = HttpLoop::Impl::CallState;

size_t Write(char* data, size_t size, size_t count, void* to) {
  static_cast<CallState*>(to)->pending.append(data, size * count);
  return size * count;
}

class HttpCall final : public Transport::Call {
 public:
  HttpCall(HttpLoop::Impl& loop, std::shared_ptr<CallState> state) : loop_(loop), state_(std::move(state)) {}
  ~HttpCall() override { loop_.Abort(state_); }

 private:
  HttpLoop::Impl& loop_;
  std::shared_ptr<CallState> state_;
};

class HttpTransport final : public Transport {
 public:
  HttpTransport(HttpLoop::Impl& loop, const kube::KubeConfig& config) : loop_(loop), config_(config) {
    base_ = config_.server;
    while (base_.ends_with('/')) base_.pop_back();
    if (base_.find("://") == std::string::npos) base_ = "https://" + base_;
    loopback_ = IsLoopback(HostOf(base_));
    if (config_.tls_server_name.empty()) return;
    // The name in the URL is what the certificate is held against; the connection goes to the server all the same.
    const size_t at = base_.find("://") + 3, end = std::min(base_.find_first_of("/?#", at), base_.size());
    const std::string authority = base_.substr(at, end - at);
    const size_t colon = authority.rfind(':');
    const bool port = colon != std::string::npos && authority.find(']', colon) == std::string::npos;
    const std::string tail = port ? authority.substr(colon) : ":443";
    connect_to_.reset(curl_slist_append(
        nullptr, fmt::format("::{}{}", authority.substr(0, port ? colon : std::string::npos), tail).c_str()));
    base_ = base_.substr(0, at) + config_.tls_server_name + tail + base_.substr(end);
  }

  std::unique_ptr<Call> Get(const std::string& target, bool endless, Callbacks callbacks) override {
    auto state = std::make_shared<CallState>();
    state->callbacks = std::move(callbacks);
    CURL* easy = state->easy = curl_easy_init();
    const auto set = [easy](CURLoption option, auto value) { curl_easy_setopt(easy, option, value); };
    set(CURLOPT_URL, (base_ + target).c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_USERAGENT, "wavetank-record");
    set(CURLOPT_CONNECTTIMEOUT, 15L);
    set(CURLOPT_TCP_KEEPALIVE, 1L);
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
    set(CURLOPT_PIPEWAIT, 1L);
    set(CURLOPT_ERRORBUFFER, state->error.data());
    set(CURLOPT_WRITEFUNCTION, &Write);
    set(CURLOPT_WRITEDATA, state.get());
    if (!endless) {
      set(CURLOPT_LOW_SPEED_LIMIT, 1L);
      set(CURLOPT_LOW_SPEED_TIME, 60L);
    }
    if (loopback_) set(CURLOPT_NOPROXY, "*");
    curl_slist* headers = curl_slist_append(nullptr, "Accept: application/json");
    if (!config_.token.empty()) {
      headers = curl_slist_append(headers, fmt::format("Authorization: Bearer {}", config_.token).c_str());
    }
    if (connect_to_ != nullptr) set(CURLOPT_CONNECT_TO, connect_to_.get());
    state->headers.reset(headers);
    set(CURLOPT_HTTPHEADER, headers);
    if (!config_.username.empty()) {
      set(CURLOPT_USERNAME, config_.username.c_str());
      set(CURLOPT_PASSWORD, config_.password.c_str());
    }
    const auto blob = [&](CURLoption option, const std::string& pem) {
      if (pem.empty()) return;
      curl_blob copy = Blob(pem);
      curl_easy_setopt(easy, option, &copy);
    };
    blob(CURLOPT_CAINFO_BLOB, config_.ca_pem);
    blob(CURLOPT_SSLCERT_BLOB, config_.client_certificate_pem);
    blob(CURLOPT_SSLKEY_BLOB, config_.client_key_pem);
    set(CURLOPT_SSLCERTTYPE, "PEM");
    set(CURLOPT_SSLKEYTYPE, "PEM");
    if (config_.insecure_skip_tls_verify) {
      set(CURLOPT_SSL_VERIFYPEER, 0L);
      set(CURLOPT_SSL_VERIFYHOST, 0L);
    }
    loop_.Add(state);
    return std::make_unique<HttpCall>(loop_, std::move(state));
  }

 private:
  HttpLoop::Impl& loop_;
  const kube::KubeConfig config_;
  std::string base_;
  bool loopback_ = false;
  std::unique_ptr<curl_slist, FreeList> connect_to_;
};

}  // namespace

HttpLoop::HttpLoop() : impl_(std::make_unique<Impl>()) {}
HttpLoop::~HttpLoop() = default;

absl::StatusOr<std::unique_ptr<Transport>> HttpLoop::Connect(const kube::KubeConfig& config) {
  if (config.server.starts_with("http://") && !IsLoopback(HostOf(config.server))) {
    return absl::InvalidArgumentError(fmt::format(
        "context '{}': {} is not encrypted, and everybody on the way could read what is recorded: use https://",
        config.context, config.server));
  }
  return std::make_unique<HttpTransport>(*impl_, config);
}

void HttpLoop::Wait(Duration longest) { impl_->Wait(longest); }
void HttpLoop::Deliver() { impl_->Deliver(); }

}  // namespace wavetank::record
