// Several streams over one upgraded connection, as exec and port-forward need them: over SPDY/3.1, over a WebSocket's
// channels, or over SPDY inside a WebSocket.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fakes/kube/http/message/message.h"
#include "fakes/kube/http/message/tunnel.h"
#include "serve/pods/spdy.h"

namespace wavetank::serve {

// What the streams' owner may do. Any thread; nothing happens once the connection has ended.
class Streams {
 public:
  virtual ~Streams() = default;
  virtual void Data(uint32_t stream, std::string_view bytes) = 0;
  virtual void End(uint32_t stream) = 0;
  virtual void Close() = 0;  // when what was sent has gone out
};

// The owner: what exec, or port-forward, makes of the streams. On the server's thread.
class StreamOwner {
 public:
  virtual ~StreamOwner() = default;
  virtual void OnOpen(std::weak_ptr<Streams> streams) = 0;
  // "streamtype": stdin, stdout, stderr, error, resize, data; of forwarded connections "port" and "requestid", too.
  virtual void OnStream(uint32_t stream, const StreamHeaders& headers) = 0;
  virtual void OnData(uint32_t stream, std::string_view bytes) = 0;
  virtual void OnEnd(uint32_t stream) = 0;
  virtual void OnClosed() = 0;
};

// The answer that begins a tunnel of what the client asks for: 101, or 400 if it asks for nothing that is spoken here.
// `channels`: the streams that a WebSocket's channels are, by number, for clients that do not speak SPDY inside.
// `protocols`: subprotocols, best first; which one was chosen is told to `owner`'s maker.
struct TunnelOffer {
  std::vector<std::string> spdy_protocols, websocket_protocols;
  std::vector<StreamHeaders> channels;
  bool port_channels = false;  // the first two bytes on each channel are its port
};
using MakeOwner = std::function<std::shared_ptr<StreamOwner>(const std::string& protocol)>;
fakekube::http::Response UpgradeTo(const fakekube::http::Request& request, const TunnelOffer& offer,
                                   const MakeOwner& make);

}  // namespace wavetank::serve
