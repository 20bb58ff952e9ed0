#include "serve/pods/stream_tunnel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "fakes/kube/http/message/status.h"
#include "serve/pods/websocket.h"

namespace wavetank::serve {
namespace {

namespace http = fakekube::http;

constexpr char kSpdyInside[] = "SPDY/3.1+portforward.k8s.io";

// One connection, and its owner on top.
class StreamTunnel : public http::Tunnel, public Streams, public std::enable_shared_from_this<StreamTunnel> {
 public:
  explicit StreamTunnel(std::shared_ptr<StreamOwner> owner) : owner_(std::move(owner)) {}
  void Open(Wire wire) override {
    wire_ = std::move(wire);
    owner_->OnOpen(std::weak_ptr<Streams>(std::shared_ptr<Streams>(shared_from_this(), this)));
    Opened();
  }
  void OnBytes(std::string_view bytes) override {
    if (!Take(bytes)) wire_.close();
  }
  void OnClosed() override { owner_->OnClosed(); }

 protected:
  virtual void Opened() {}
  virtual bool Take(std::string_view bytes) = 0;
  const std::shared_ptr<StreamOwner> owner_;
  Wire wire_;
};

class SpdyTunnel : public StreamTunnel {
 public:
  explicit SpdyTunnel(std::shared_ptr<StreamOwner> owner) : StreamTunnel(std::move(owner)) {}
  void Data(uint32_t stream, std::string_view bytes) override { spdy_.Data(stream, bytes); }
  void End(uint32_t stream) override { spdy_.End(stream); }
  // The client goes first: one that is told so at once may still wait for the answer to its last stream, which Go's
  // client then loses (moby/spdystream: connection.go, Serve) and waits 30 s for.
  void Close() override { over_ = true; }

 protected:
  bool Take(std::string_view bytes) override { return spdy_.Take(bytes) && !(over_ && spdy_.client_goes()); }
  virtual void Send(std::string bytes) { wire_.send(std::move(bytes)); }

 private:
  std::atomic<bool> over_ = false;  // set by the thread on which a command ends
  Spdy spdy_{{.on_stream =
                  [this](uint32_t stream, const StreamHeaders& headers) {
                    spdy_.Accept(stream);
                    owner_->OnStream(stream, headers);
                  },
              .on_data = [this](uint32_t stream, std::string_view bytes) { owner_->OnData(stream, bytes); },
              .on_end = [this](uint32_t stream) { owner_->OnEnd(stream); },
              .on_reset = [this](uint32_t stream) { owner_->OnEnd(stream); },
              .send = [this](std::string bytes) { Send(std::move(bytes)); }}};
};

// SPDY's bytes as a WebSocket's messages.
class SpdyInsideTunnel final : public SpdyTunnel {
 public:
  using SpdyTunnel::SpdyTunnel;

 protected:
  bool Take(std::string_view bytes) override { return socket_.Take(bytes) && good_; }
  void Send(std::string bytes) override { socket_.Send(bytes); }

 private:
  bool good_ = true;
  WebSocket socket_{{.on_message = [this](std::string_view message) { good_ = good_ && SpdyTunnel::Take(message); },
                     .on_close = [this] { wire_.close(); },
                     .send = [this](std::string bytes) { wire_.send(std::move(bytes)); }}};
};

// A channel's number is its messages' first byte.
class ChannelTunnel final : public StreamTunnel {
 public:
  ChannelTunnel(std::shared_ptr<StreamOwner> owner, std::vector<StreamHeaders> channels, bool port_channels)
      : StreamTunnel(std::move(owner)), channels_(std::move(channels)), port_channels_(port_channels) {}
  void Data(uint32_t stream, std::string_view bytes) override {
    socket_.Send(std::string(1, static_cast<char>(stream - 1)) + std::string(bytes));
  }
  void End(uint32_t) override {}  // a channel has no end of its own
  void Close() override {
    socket_.Close();
    wire_.close();
  }

 protected:
  void Opened() override {
    for (size_t i = 0; i < channels_.size(); ++i) {
      const StreamHeaders& headers = channels_[i];
      if (headers.empty()) continue;
      if (port_channels_) {
        const auto named = headers.find("port");
        const int port = named == headers.end() ? 0 : std::atoi(named->second.c_str());
        Data(static_cast<uint32_t>(i + 1),
             {std::array{static_cast<char>(port), static_cast<char>(port >> 8)}.data(), 2});
      }
      owner_->OnStream(static_cast<uint32_t>(i + 1), headers);
    }
  }
  bool Take(std::string_view bytes) override { return socket_.Take(bytes); }

 private:
  void OnMessage(std::string_view message) {
    if (message.empty()) return;
    const auto channel = static_cast<unsigned char>(message[0]);
    // v5: [255, N] ends channel N.
    if (channel == 255 && message.size() > 1) return owner_->OnEnd(static_cast<unsigned char>(message[1]) + 1u);
    if (channel < channels_.size() && message.size() > 1) owner_->OnData(channel + 1u, message.substr(1));
  }

  const std::vector<StreamHeaders> channels_;
  const bool port_channels_;
  WebSocket socket_{{.on_message = [this](std::string_view message) { OnMessage(message); },
                     .on_close = [this] { wire_.close(); },
                     .send = [this](std::string bytes) { wire_.send(std::move(bytes)); }}};
};

// The first of `offered`, in our order, that the client names; empty: none.
std::string Choose(const std::vector<std::string>& offered, const std::string& asked) {
  std::set<std::string> names;
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(asked, ','))) {
    names.insert(std::string(absl::StripAsciiWhitespace(name)));
  }
  const auto found =
      std::find_if(offered.begin(), offered.end(), [&](const auto& name) { return names.contains(name); });
  return found == offered.end() ? "" : *found;
}

http::Response Switch(std::shared_ptr<http::Tunnel> tunnel, std::vector<std::pair<std::string, std::string>> headers) {
  http::Response out;
  out.code = 101;
  out.content_type.clear();
  out.headers = std::move(headers);
  out.headers.emplace_back("Connection", "Upgrade");
  out.tunnel = std::move(tunnel);
  return out;
}

}  // namespace

http::Response UpgradeTo(const http::Request& request, const TunnelOffer& offer, const MakeOwner& make) {
  if (absl::AsciiStrToLower(request.upgrade) == "websocket") {
    const std::string protocol = Choose(offer.websocket_protocols, request.upgrade_protocols);
    if (protocol.empty()) return http::BadRequest("none of the WebSocket's subprotocols is spoken here");
    std::shared_ptr<http::Tunnel> tunnel;
    if (protocol == kSpdyInside) {
      tunnel = std::make_shared<SpdyInsideTunnel>(make(protocol));
    } else {
      tunnel = std::make_shared<ChannelTunnel>(make(protocol), offer.channels, offer.port_channels);
    }
    return Switch(std::move(tunnel), {{"Upgrade", "websocket"},
                                      {"Sec-WebSocket-Accept", WebSocketAccept(request.websocket_key)},
                                      {"Sec-WebSocket-Protocol", protocol}});
  }
  if (absl::AsciiStrToLower(request.upgrade) != "spdy/3.1") {
    return http::BadRequest("unable to upgrade: missing upgrade headers in request: SPDY/3.1 or websocket");
  }
  // Clients older than the header speak the first version.
  std::string protocol = Choose(offer.spdy_protocols, request.upgrade_protocols);
  if (protocol.empty() && !request.upgrade_protocols.empty()) {
    return http::Failure(403, "Forbidden", "none of the client's stream protocols is spoken here");
  }
  std::vector<std::pair<std::string, std::string>> headers = {{"Upgrade", "SPDY/3.1"}};
  if (!protocol.empty()) headers.emplace_back("X-Stream-Protocol-Version", protocol);
  return Switch(std::make_shared<SpdyTunnel>(make(protocol)), std::move(headers));
}

}  // namespace wavetank::serve
