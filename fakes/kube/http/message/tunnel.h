// What a connection becomes when its client asked for another protocol (exec, port-forward): bytes both ways.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace wavetank::fakekube::http {

class Tunnel {
 public:
  // The connection's other half. Both may be called on any thread, and do nothing once the connection has ended.
  struct Wire {
    std::function<void(std::string bytes)> send;
    std::function<void()> close;  // when what was sent has gone out
  };
  virtual ~Tunnel() = default;

  // On the server's thread, in this order: Open, OnBytes any number of times, OnClosed once.
  virtual void Open(Wire wire) = 0;
  virtual void OnBytes(std::string_view bytes) = 0;
  virtual void OnClosed() = 0;
};

}  // namespace wavetank::fakekube::http
