// One forwarded connection to a port of a pod.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "fakes/kube/http/message/message.h"

namespace wavetank::serve {

class PodConnection {
 public:
  // Any thread.
  struct Peer {
    std::function<void(std::string bytes)> send;
    std::function<void()> end;
  };
  virtual ~PodConnection() = default;
  virtual void OnBytes(std::string_view bytes) = 0;
  virtual void OnEnd() = 0;
};

// HTTP/1.1, one request after the other. `ask` answers later, on any thread, in the order of asking; nullptr closes.
using AskPage =
    std::function<void(fakekube::http::Request request, absl::AnyInvocable<void(fakekube::http::Response)> answer)>;
std::shared_ptr<PodConnection> ConnectToPages(PodConnection::Peer peer, AskPage ask);

// Bytes to and from a listener of this process, "127.0.0.1:15012"; null: nobody listens there. Holds a thread while it
// lasts.
std::shared_ptr<PodConnection> ConnectToListener(PodConnection::Peer peer, const std::string& address);

}  // namespace wavetank::serve
