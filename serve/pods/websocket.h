// WebSocket (RFC 6455), the server's half, as Kubernetes' clients use it: binary messages. Bytes in, messages out.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace wavetank::serve {

// Sec-WebSocket-Accept for a client's Sec-WebSocket-Key.
std::string WebSocketAccept(std::string_view key);

class WebSocket {
 public:
  struct Events {
    std::function<void(std::string_view message)> on_message;
    std::function<void()> on_close;
    std::function<void(std::string bytes)> send;
  };
  explicit WebSocket(Events events) : events_(std::move(events)) {}

  // False: this is no WebSocket, or a message is too long; the connection must end.
  bool Take(std::string_view bytes);
  // Any thread.
  void Send(std::string_view message);
  void Close();

 private:
  void Frame(uint8_t opcode, std::string_view payload);

  Events events_;
  std::string in_, message_;
};

}  // namespace wavetank::serve
