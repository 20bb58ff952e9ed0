// SPDY/3.1 as Kubernetes' clients speak it for exec and port-forward: streams over one connection, their headers
// compressed. The server's half; without flow control, which those clients do not do either. Bytes in, events out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace wavetank::serve {

// Names in lower case; of several values of one name the first.
using StreamHeaders = std::map<std::string, std::string>;

class Spdy {
 public:
  struct Events {
    std::function<void(uint32_t stream, StreamHeaders headers)> on_stream;
    std::function<void(uint32_t stream, std::string_view bytes)> on_data;
    std::function<void(uint32_t stream)> on_end;    // the client says nothing more on it
    std::function<void(uint32_t stream)> on_reset;  // the client has given it up
    std::function<void(std::string bytes)> send;
  };
  explicit Spdy(Events events);
  ~Spdy();
  Spdy(const Spdy&) = delete;
  Spdy& operator=(const Spdy&) = delete;

  // False: this is no SPDY, or more than a client of ours may send; the connection must end.
  bool Take(std::string_view bytes);

  void Accept(uint32_t stream);  // SYN_REPLY
  void Data(uint32_t stream, std::string_view bytes);
  void End(uint32_t stream);                         // our half of the stream
  bool client_goes() const { return client_goes_; }  // it has said so: GOAWAY

 private:
  struct Codec;
  bool Control(uint16_t type, uint8_t flags, std::string_view payload);
  bool Stream(uint8_t flags, std::string_view payload);

  Events events_;
  std::string in_;
  uint32_t last_stream_ = 0;
  bool client_goes_ = false;
  std::unique_ptr<Codec> codec_;
};

}  // namespace wavetank::serve
