// Small blocking HTTP/1.1 client and server over sockets, enough for what envoy-diff asks of a real Envoy.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "oracles/envoy/case.h"

namespace wavetank::envoydiff {

struct HttpAnswer {
  int code = 0;  // 0: refused, closed or timed out
  std::string body;
  std::string head;  // status line and headers
  bool close = false;
};

// What a compressed body is compared as, whatever its bytes.
std::string CompressedBody(const std::string& encoding);
// The header of the PROXY protocol, and what one says, "SOURCE DESTINATION" without ports, at the front of `buffer`,
// which loses it; nothing: there is none.
std::string ProxyProtocolHeader(const ClientProxyProtocol& proxy_protocol);
std::optional<std::string> TakeProxyProtocol(std::string* buffer);

// Of a head: the values of all headers of that name, in lower case, after commas; nothing if there is no such header,
// which is not the same as an empty one. ":path" of a request's.
std::optional<std::string> HeaderValues(const std::string& head, std::string_view name);

// One connection to an address or to a Unix socket's path, kept alive between requests unless a side closes it.
class HttpClient {
 public:
  // `from`: the address that it comes from, if not just any.
  explicit HttpClient(std::string address, std::string from = {},
                      std::optional<ClientProxyProtocol> proxy_protocol = {})
      : address_(std::move(address)), from_(std::move(from)), proxy_protocol_(std::move(proxy_protocol)) {}
  ~HttpClient() { Close(); }
  // Bodies come evenly over so long, the first of `pieces` + 1 equal parts with the head.
  void SendBodiesOver(int ms, int pieces) {
    body_ms_ = ms;
    body_pieces_ = pieces;
  }
  void SpeakHttp10() { minor_ = 0; }
  // Whether the next request goes on a connection that is there already.
  bool IsOpen();
  // Behind a body of so many bytes in one chunk.
  void SendTrailers(int bytes, std::vector<std::pair<std::string, std::string>> trailers) {
    chunk_.assign(static_cast<size_t>(bytes), 'x');
    trailers_ = std::move(trailers);
  }
  HttpAnswer Ask(std::string_view method, std::string_view host, std::string_view path,
                 const std::vector<std::pair<std::string, std::string>>& headers, bool keep_alive = true);

 private:
  void Close();
  // The parts of a body that do not come with the head; ends early where there is an answer.
  void SendRest(std::string_view rest) const;
  int minor_ = 1;  // of HTTP/1
  int body_ms_ = 0, body_pieces_ = 1;
  std::string chunk_;
  std::vector<std::pair<std::string, std::string>> trailers_;
  std::string address_, from_;
  const std::optional<ClientProxyProtocol> proxy_protocol_;
  int fd_ = -1;
};

// Answers everything with its name as body. Stop() closes the port and resets all connections.
class HttpServer {
 public:
  HttpServer(std::string name, std::string address) : name_(std::move(name)), address_(std::move(address)) {}
  ~HttpServer() { Stop(); }
  bool Start();
  void Stop();
  // Stops, and from then on answers no SYN, as a host that is gone.
  bool FallSilent();
  std::atomic<int> code{200};
  std::atomic<int> delay_ms{0};
  void Be(const BackendState& state);

 private:
  void Accept();
  void Serve(int fd);
  void EndSilence();
  const std::string name_, address_;
  int listen_fd_ = -1;
  int silent_fd_ = -1, filler_fd_ = -1;
  std::atomic<bool> running_{false};
  std::thread acceptor_;
  std::mutex mutex_;
  BackendState state_;
  std::set<int> open_;
  std::vector<std::thread> threads_;
};

}  // namespace wavetank::envoydiff
