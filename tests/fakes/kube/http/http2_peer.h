// A bare client of HTTP/2 within TLS, for tests: one connection, any number of streams, and a window that the test
// says.
#pragma once

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/fakes/kube/http/peer.h"

namespace wavetank::fakekube::http {

class Http2Peer {
 public:
  struct Got {
    std::map<std::string, std::string> headers;
    std::string body;
    bool ended = false;
    uint32_t error = NGHTTP2_NO_ERROR;  // why, if it was reset
    int status() const { return headers.count(":status") == 0 ? 0 : std::stoi(headers.at(":status")); }
  };

  // `protocols`: as ALPN writes them. `window`: bytes of a stream that are taken unasked.
  explicit Http2Peer(uint16_t port, const std::string& protocols = "\x02h2", uint32_t window = 1 << 20)
      : tcp_(port), context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free), ssl_(SSL_new(context_.get()), SSL_free) {
    ::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to connections that are closed, too
    SSL_set_fd(ssl_.get(), tcp_.fd());
    SSL_set_alpn_protos(ssl_.get(), reinterpret_cast<const unsigned char*>(protocols.data()),
                        static_cast<unsigned>(protocols.size()));
    if (SSL_connect(ssl_.get()) != 1) return;
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &name, &size);
    chosen_.assign(reinterpret_cast<const char*>(name), size);
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnClose);
    nghttp2_session_client_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window}};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, 1);
    nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, 1 << 28);
  }
  ~Http2Peer() { nghttp2_session_del(session_); }
  Http2Peer(const Http2Peer&) = delete;
  Http2Peer& operator=(const Http2Peer&) = delete;

  const std::string& chosen() const { return chosen_; }
  // Whose certificates the server asks for, each as OpenSSL writes a name in one line.
  std::vector<std::string> authorities() const {
    std::vector<std::string> out;
    const STACK_OF(X509_NAME)* const names = SSL_get0_peer_CA_list(ssl_.get());
    for (int i = 0; i < sk_X509_NAME_num(names); ++i) {
      char line[256];
      out.emplace_back(X509_NAME_oneline(sk_X509_NAME_value(names, i), line, sizeof line));
    }
    return out;
  }
  bool closed() const { return closed_; }

  // The stream's number. `length` of the body that is announced but never comes: -1 for what `body` is.
  int32_t Ask(const std::string& method, const std::string& path, const std::string& body = "",
              const std::vector<std::pair<std::string, std::string>>& more = {}, bool ends = true) {
    std::vector<std::pair<std::string, std::string>> fields = {
        {":method", method}, {":scheme", "https"}, {":authority", "x"}, {":path", path}};
    fields.insert(fields.end(), more.begin(), more.end());
    std::vector<nghttp2_nv> pairs;
    for (auto& [name, value] : fields) {
      pairs.push_back({reinterpret_cast<uint8_t*>(name.data()), reinterpret_cast<uint8_t*>(value.data()), name.size(),
                       value.size(), NGHTTP2_NV_FLAG_NONE});
    }
    auto sending = std::make_unique<Body>(Body{body, 0, ends});
    nghttp2_data_provider source{};
    source.source.ptr = sending.get();
    source.read_callback = ReadBody;
    bodies_.push_back(std::move(sending));
    const bool with_body = !body.empty() || !ends;
    const int32_t number =
        nghttp2_submit_request(session_, nullptr, pairs.data(), pairs.size(), with_body ? &source : nullptr, nullptr);
    Flush();
    return number;
  }
  Got& Of(int32_t number) { return got_[number]; }

  // Reads until it is so, the connection ends, or nothing has come for so long.
  template <class Fn>
  bool Until(Fn fn, int milliseconds = 60000) {
    while (!fn()) {
      pollfd wait{tcp_.fd(), POLLIN, 0};
      if (SSL_pending(ssl_.get()) == 0 && ::poll(&wait, 1, milliseconds) != 1) return false;
      char buffer[16384];
      const int count = SSL_read(ssl_.get(), buffer, sizeof buffer);
      if (count <= 0) {
        closed_ = true;
        return fn();
      }
      if (nghttp2_session_mem_recv(session_, reinterpret_cast<uint8_t*>(buffer), static_cast<size_t>(count)) < 0)
        return false;
      Flush();
    }
    return true;
  }
  // The whole answer.
  Got Answer(int32_t number) {
    Until([&] { return Of(number).ended; });
    return Of(number);
  }
  bool SendBytes(const std::string& bytes) {
    return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
  }
  void Reset(int32_t number) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, number, NGHTTP2_CANCEL);
    Flush();
  }

 private:
  struct Body {
    std::string bytes;
    size_t at;
    bool ends;
  };
  void Flush() {
    const uint8_t* bytes = nullptr;
    for (ssize_t count = nghttp2_session_mem_send(session_, &bytes); count > 0;
         count = nghttp2_session_mem_send(session_, &bytes)) {
      SSL_write(ssl_.get(), bytes, static_cast<int>(count));
    }
  }
  static Http2Peer& Self(void* user) { return *static_cast<Http2Peer*>(user); }
  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                      const uint8_t* value, size_t value_size, uint8_t, void* user) {
    Self(user).got_[frame->hd.stream_id].headers[{reinterpret_cast<const char*>(name), name_size}] = {
        reinterpret_cast<const char*>(value), value_size};
    return 0;
  }
  static int OnData(nghttp2_session*, uint8_t, int32_t number, const uint8_t* bytes, size_t size, void* user) {
    Self(user).got_[number].body.append(reinterpret_cast<const char*>(bytes), size);
    return 0;
  }
  static int OnClose(nghttp2_session*, int32_t number, uint32_t error, void* user) {
    Self(user).got_[number].ended = true;
    Self(user).got_[number].error = error;
    return 0;
  }
  static ssize_t ReadBody(nghttp2_session*, int32_t, uint8_t* out, size_t size, uint32_t* flags,
                          nghttp2_data_source* source, void*) {
    Body& body = *static_cast<Body*>(source->ptr);
    const size_t count = std::min(size, body.bytes.size() - body.at);
    body.bytes.copy(reinterpret_cast<char*>(out), count, body.at);
    body.at += count;
    if (body.at < body.bytes.size() || count > 0) return static_cast<ssize_t>(count);
    if (!body.ends) return NGHTTP2_ERR_DEFERRED;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    return 0;
  }

  Peer tcp_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  nghttp2_session* session_ = nullptr;
  std::string chosen_;
  bool closed_ = false;
  std::map<int32_t, Got> got_;
  std::vector<std::unique_ptr<Body>> bodies_;
};

}  // namespace wavetank::fakekube::http
