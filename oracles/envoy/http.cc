#include "oracles/envoy/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>

#include "fakes/envoy/apps/ext_authz_app.h"
#include "fmt/format.h"
#include "oracles/envoy/peers/process.h"

namespace wavetank::envoydiff {
namespace {

bool ParseAddress(const std::string& text, sockaddr_in* out) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  *out = {};
  out->sin_family = AF_INET;
  out->sin_port = htons(static_cast<uint16_t>(std::atoi(text.c_str() + colon + 1)));
  return inet_pton(AF_INET, text.substr(0, colon).c_str(), &out->sin_addr) == 1;
}

void Reset(int fd) {
  const linger hard{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
}

// Reads until `buffer` holds the head of a message; false if the connection ends first.
bool ReadHead(int fd, std::string* buffer, size_t* head) {
  char chunk[8192];
  while ((*head = buffer->find("\r\n\r\n")) == std::string::npos) {
    const ssize_t n = recv(fd, chunk, sizeof(chunk), 0);
    if (n <= 0) return false;
    buffer->append(chunk, static_cast<size_t>(n));
  }
  *head += 4;
  return true;
}

std::string HeaderValue(const std::string& head, std::string_view name) {
  std::string lower = head;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const size_t at = lower.find(fmt::format("\r\n{}:", name));
  if (at == std::string::npos) return {};
  size_t begin = at + name.size() + 3;
  while (begin < head.size() && head[begin] == ' ') ++begin;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

bool ReadN(int fd, std::string* buffer, size_t n) {
  char chunk[8192];
  while (buffer->size() < n) {
    const ssize_t got = recv(fd, chunk, sizeof(chunk), 0);
    if (got <= 0) return false;
    buffer->append(chunk, static_cast<size_t>(got));
  }
  return true;
}

// A line's end in `buffer`, read until there is one.
bool ReadLine(int fd, std::string* buffer, size_t* end) {
  while ((*end = buffer->find("\r\n")) == std::string::npos) {
    if (!ReadN(fd, buffer, buffer->size() + 1)) return false;
  }
  return true;
}

// A chunked body, which leaves `buffer`; how long it was. `trailers`: what is behind it, as a head without its first
// line.
bool ReadChunks(int fd, std::string* buffer, size_t* length, std::string* trailers) {
  *length = 0;
  *trailers = "\r\n";
  for (;;) {
    size_t line = 0;
    if (!ReadLine(fd, buffer, &line)) return false;
    const size_t size = std::strtoul(buffer->c_str(), nullptr, 16);
    if (size == 0) {
      buffer->erase(0, line + 2);
      while (ReadLine(fd, buffer, &line)) {
        trailers->append(*buffer, 0, line + 2);
        buffer->erase(0, line + 2);
        if (line == 0) return true;
      }
      return false;
    }
    if (!ReadN(fd, buffer, line + 2 + size + 2)) return false;
    buffer->erase(0, line + 2 + size + 2);
    *length += size;
  }
}

// A socket that listens there, or -1.
int Listen(const std::string& address, int backlog) {
  sockaddr_in at;
  if (!ParseAddress(address, &at)) return -1;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (BindWhenFree(fd, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) && listen(fd, backlog) == 0) return fd;
  close(fd);
  return -1;
}

bool SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

std::string CompressedBody(const std::string& encoding) { return "(" + encoding + ")"; }

std::string ProxyProtocolHeader(const ClientProxyProtocol& said) {
  const bool nobody = said.source.empty();
  sockaddr_in source = {}, destination = {};
  if (!nobody && (!ParseAddress(said.source, &source) || !ParseAddress(said.destination, &destination))) return {};
  if (said.version == 1) {
    if (nobody) return "PROXY UNKNOWN\r\n";
    const auto ip = [](const std::string& address) { return address.substr(0, address.rfind(':')); };
    return fmt::format("PROXY TCP4 {} {} {} {}\r\n", ip(said.source), ip(said.destination), ntohs(source.sin_port),
                       ntohs(destination.sin_port));
  }
  std::string out("\r\n\r\n\0\r\nQUIT\n", 12);
  out += static_cast<char>(nobody ? 0x20 : 0x21);
  out += static_cast<char>(nobody ? 0 : 0x11);
  out += '\0';
  out += static_cast<char>(nobody ? 0 : 12);
  if (nobody) return out;
  for (const in_addr& ip : {source.sin_addr, destination.sin_addr}) {
    out.append(reinterpret_cast<const char*>(&ip), sizeof(ip));
  }
  for (const in_port_t& port : {source.sin_port, destination.sin_port}) {
    out.append(reinterpret_cast<const char*>(&port), sizeof(port));
  }
  return out;
}

std::optional<std::string> TakeProxyProtocol(std::string* buffer) {
  if (buffer->starts_with("PROXY ")) {
    const size_t end = buffer->find("\r\n");
    if (end == buffer->npos) return std::nullopt;
    char family[16] = {}, source[64] = {}, destination[64] = {};
    std::sscanf(buffer->substr(0, end).c_str(), "PROXY %15s %63s %63s", family, source, destination);
    buffer->erase(0, end + 2);
    return fmt::format("v1 {} {}", source, destination);
  }
  constexpr size_t kHead = 16;
  if (!buffer->starts_with("\r\n\r\n") || buffer->size() < kHead) return std::nullopt;
  const size_t length = static_cast<unsigned char>((*buffer)[15]);
  char source[INET_ADDRSTRLEN] = {}, destination[INET_ADDRSTRLEN] = {};
  if (length >= 12 && buffer->size() >= kHead + 8) {
    inet_ntop(AF_INET, buffer->data() + kHead, source, sizeof(source));
    inet_ntop(AF_INET, buffer->data() + kHead + 4, destination, sizeof(destination));
  }
  buffer->erase(0, kHead + length);
  return fmt::format("v2 {} {}", source, destination);
}

std::optional<std::string> HeaderValues(const std::string& head, std::string_view name) {
  if (name == ":path") {
    const size_t begin = head.find(' ') + 1;
    return head.substr(begin, head.find(' ', begin) - begin);
  }
  std::optional<std::string> out;
  size_t at = 0;
  while ((at = head.find("\r\n", at)) != head.npos) {
    at += 2;
    const size_t colon = head.find(':', at), end = head.find("\r\n", at);
    if (colon == head.npos || end == head.npos || colon > end) continue;
    std::string key = head.substr(at, colon - at);
    std::transform(key.begin(), key.end(), key.begin(), [](unsigned char c) { return std::tolower(c); });
    if (key != name) continue;
    size_t begin = colon + 1;
    while (begin < end && head[begin] == ' ') ++begin;
    out = (out ? *out + "," : "") + head.substr(begin, end - begin);
  }
  return out;
}

void HttpServer::Be(const BackendState& state) {
  code = state.code;
  delay_ms = state.delay_ms;
  const std::lock_guard<std::mutex> lock(mutex_);
  state_ = state;
}

void HttpClient::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

// As HTTP libraries do: what the other side has closed is not used again.
bool HttpClient::IsOpen() {
  char byte = 0;
  if (fd_ >= 0 && !(recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))) {
    Close();
  }
  return fd_ >= 0;
}

HttpAnswer HttpClient::Ask(std::string_view method, std::string_view host, std::string_view path,
                           const std::vector<std::pair<std::string, std::string>>& headers, bool keep_alive) {
  const bool opened = !IsOpen();
  if (opened) {
    sockaddr_in ip;
    sockaddr_un file = {};
    const bool is_file = address_.starts_with('/');
    if (is_file ? address_.size() >= sizeof(file.sun_path) : !ParseAddress(address_, &ip)) return {};
    file.sun_family = AF_UNIX;
    if (is_file) address_.copy(file.sun_path, address_.size());
    const auto* to = is_file ? reinterpret_cast<const sockaddr*>(&file) : reinterpret_cast<const sockaddr*>(&ip);
    fd_ = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience{60, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    const int one = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    sockaddr_in from;
    if (!from_.empty() && (!ParseAddress(from_ + ":0", &from) ||
                           bind(fd_, reinterpret_cast<const sockaddr*>(&from), sizeof(from)) != 0)) {
      Close();
      return {};
    }
    if (connect(fd_, to, is_file ? sizeof(file) : sizeof(ip)) != 0) {
      Close();
      return {};
    }
  }
  std::string request = opened && proxy_protocol_ ? ProxyProtocolHeader(*proxy_protocol_) : "";
  request += fmt::format("{} {} HTTP/1.{}\r\nhost: {}\r\n", method, path, minor_, host);
  for (const auto& [name, value] : headers) request += fmt::format("{}: {}\r\n", name, value);
  request += "\r\n";
  // A request that tells its length has a body of that many bytes.
  std::string body;
  for (const auto& [name, value] : headers) {
    if (name == "content-length") body.append(std::strtoul(value.c_str(), nullptr, 10), 'x');
  }
  if (!trailers_.empty()) {
    request += chunk_.empty() ? "0\r\n" : fmt::format("{:x}\r\n{}\r\n0\r\n", chunk_.size(), chunk_);
    for (const auto& [name, value] : trailers_) request += fmt::format("{}: {}\r\n", name, value);
    request += "\r\n";
  }
  const size_t at_once = body_ms_ > 0 ? body.size() / static_cast<size_t>(body_pieces_ + 1) : body.size();
  request += body.substr(0, at_once);
  std::string buffer;
  size_t head = 0;
  const bool sent = SendAll(fd_, request);
  if (sent) SendRest(std::string_view(body).substr(at_once));
  if (!sent || !ReadHead(fd_, &buffer, &head)) {
    Close();
    return {};
  }
  HttpAnswer answer;
  answer.code = std::atoi(buffer.c_str() + 9);
  const std::string headers_text = buffer.substr(0, head);
  answer.head = headers_text;
  buffer.erase(0, head);
  const std::string length = HeaderValue(headers_text, "content-length");
  if (HeaderValue(headers_text, "transfer-encoding") == "chunked" && method != "HEAD") {
    for (;;) {
      size_t line = 0;
      if (!ReadLine(fd_, &buffer, &line)) return answer;
      const size_t size = std::strtoul(buffer.c_str(), nullptr, 16);
      if (size == 0) {
        buffer.erase(0, line + 2);
        break;
      }
      if (!ReadN(fd_, &buffer, line + 2 + size + 2)) return answer;
      answer.body += buffer.substr(line + 2, size);
      buffer.erase(0, line + 2 + size + 2);
    }
    // Trailers are shown as headers are.
    for (size_t line = 1; line != 0;) {
      if (!ReadLine(fd_, &buffer, &line)) return answer;
      answer.head.insert(answer.head.size() - 2, buffer.substr(0, line == 0 ? 0 : line + 2));
      buffer.erase(0, line + 2);
    }
  } else if (!length.empty() && method != "HEAD") {
    const size_t n = std::strtoul(length.c_str(), nullptr, 10);
    // A part of an answer is none.
    if (ReadN(fd_, &buffer, n)) {
      answer.body = buffer.substr(0, n);
    } else {
      answer.code = 0;
      keep_alive = false;
    }
  }
  answer.close = HeaderValue(headers_text, "connection") == "close";
  if (answer.close || !keep_alive) Close();
  return answer;
}

void HttpClient::SendRest(std::string_view rest) const {
  for (int left = body_pieces_; left > 0 && !rest.empty(); --left) {
    pollfd answer{fd_, POLLIN, 0};
    if (poll(&answer, 1, body_ms_ / body_pieces_) != 0) return;
    const size_t piece = rest.size() / static_cast<size_t>(left);
    if (!SendAll(fd_, rest.substr(0, piece))) return;
    rest.remove_prefix(piece);
  }
}

bool HttpServer::Start() {
  if (running_) return true;
  EndSilence();
  listen_fd_ = Listen(address_, 128);
  if (listen_fd_ < 0) return false;
  running_ = true;
  acceptor_ = std::thread([this] { Accept(); });
  return true;
}

// Linux drops a SYN when the queue of connections nobody has accepted is full; one of length 0 takes one.
bool HttpServer::FallSilent() {
  Stop();
  sockaddr_in at;
  silent_fd_ = Listen(address_, 0);
  if (silent_fd_ < 0 || !ParseAddress(address_, &at)) return false;
  filler_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return connect(filler_fd_, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0;
}

void HttpServer::EndSilence() {
  for (int* fd : {&silent_fd_, &filler_fd_}) {
    if (*fd < 0) continue;
    Reset(*fd);
    close(*fd);
    *fd = -1;
  }
}

void HttpServer::Stop() {
  EndSilence();
  if (!running_.exchange(false)) return;
  shutdown(listen_fd_, SHUT_RDWR);
  acceptor_.join();
  close(listen_fd_);
  listen_fd_ = -1;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (int fd : open_) {
      Reset(fd);
      shutdown(fd, SHUT_RD);
    }
  }
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

void HttpServer::Accept() {
  for (;;) {
    const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!running_) {
      close(fd);
      return;
    }
    open_.insert(fd);
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void HttpServer::Serve(int fd) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  std::string buffer;
  size_t head = 0;
  if (!ReadN(fd, &buffer, 12)) buffer.clear();
  if (buffer.starts_with("\r\n\r\n") && !ReadN(fd, &buffer, 16)) buffer.clear();
  if (buffer.starts_with("\r\n\r\n") && !ReadN(fd, &buffer, 16 + static_cast<unsigned char>(buffer[15]))) {
    buffer.clear();
  }
  while (buffer.starts_with("PROXY ") && buffer.find("\r\n") == buffer.npos && ReadN(fd, &buffer, buffer.size() + 1)) {
  }
  const std::string announced = TakeProxyProtocol(&buffer).value_or("-");
  while (running_ && ReadHead(fd, &buffer, &head)) {
    BackendState state;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      state = state_;
    }
    // As fakes/envoy/apps/ext_authz_app.h.
    const std::string request = buffer.substr(0, head);
    const bool judges = state.authorizer && code == 200;
    const bool denied = judges && !state.allow && HeaderValue(request, "x-ext-authz") != "allow";
    std::vector<std::optional<std::string>> values;
    std::string headers;
    if (judges) headers = fmt::format("x-ext-authz-check-result: {}\r\n", denied ? "denied" : "allowed");
    for (const auto& [name, value] : state.headers) headers += fmt::format("{}: {}\r\n", name, value);
    buffer.erase(0, head);
    std::string trailers;
    size_t length = std::strtoul(HeaderValue(request, "content-length").c_str(), nullptr, 10);
    if (HeaderValue(request, "transfer-encoding") == "chunked") {
      if (!ReadChunks(fd, &buffer, &length, &trailers)) break;
    } else {
      if (!ReadN(fd, &buffer, length)) break;
      buffer.erase(0, length);
    }
    for (const std::string& name : state.echo) {
      values.push_back(name == ":proxy"                 ? std::optional<std::string>(announced)
                       : name == ":bytes"               ? std::optional<std::string>(std::to_string(length))
                       : name.starts_with(kTrailerEcho) ? HeaderValues(trailers, name.substr(kTrailerEcho.size()))
                                                        : HeaderValues(request, name));
    }
    const std::string body =
        denied ? envoysim::kExtAuthzDenial : PaddedBody(EchoBody(name_, state.echo, values), state.body);
    for (int waited = 0; waited < delay_ms && running_; waited += 5) {
      std::this_thread::sleep_for(std::chrono::milliseconds(std::min(5, delay_ms - waited)));
    }
    if (!running_ || code == 0) {
      Reset(fd);
      break;
    }
    if (const std::string type = HeaderValue(request, "upgrade"); state.upgrade && !type.empty()) {
      if (!SendAll(fd, fmt::format("HTTP/1.1 101 Switching Protocols\r\nupgrade: {}\r\nconnection: Upgrade\r\n{}\r\n",
                                   type, headers))) {
        break;
      }
      continue;
    }
    const bool head_only = request.starts_with("HEAD ");
    if (!state.trailers.empty()) {
      std::string behind;
      for (const auto& [name, value] : state.trailers) behind += fmt::format("{}: {}\r\n", name, value);
      if (!SendAll(fd, fmt::format("HTTP/1.1 {} OK\r\n{}transfer-encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n{}\r\n",
                                   code.load(), headers, body.size(), body, behind))) {
        break;
      }
      continue;
    }
    const size_t at_once = state.body_ms > 0 ? body.size() / 2 : body.size();
    if (!SendAll(fd, fmt::format("HTTP/1.1 {} OK\r\n{}content-length: {}\r\n\r\n{}", denied ? 403 : code.load(),
                                 headers, body.size(), head_only ? "" : body.substr(0, at_once)))) {
      break;
    }
    if (head_only || at_once == body.size()) continue;
    for (int waited = 0; waited < state.body_ms && running_; waited += 5) {
      std::this_thread::sleep_for(std::chrono::milliseconds(std::min(5, state.body_ms - waited)));
    }
    if (!running_) {
      Reset(fd);
      break;
    }
    if (!SendAll(fd, body.substr(at_once))) break;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  open_.erase(fd);
  close(fd);
}

}  // namespace wavetank::envoydiff
