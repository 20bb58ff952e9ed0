// What the agent does to the ADS stream between its Envoy and istiod (istiod: pkg/istio-agent/xds_proxy.go,
// xds_proxy_delta.go). Knows no message: the drivers tell it what matters of each, and send what it asks for.
//
// Every stream of the Envoy has one stream to istiod of its own, and ends with it, so that the Envoy itself connects
// again, with its own back-off, and says everything anew. A second stream of the Envoy ends the first. All requests are
// passed on as they are, ACKs and NACKs too. After the first request for listeners the agent adds its own: the name
// table (NDS) if it has a DNS server, the proxy's configuration (PCDS) if it may be changed while it runs, the health
// of the application if something probes it. Answers to these stay here and are acknowledged here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/agent/log.h"

namespace wavetank::agent {

inline constexpr std::string_view kListenerTypeUrl = "type.googleapis.com/envoy.config.listener.v3.Listener";
inline constexpr std::string_view kExtensionTypeUrl = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig";
inline constexpr std::string_view kNameTableTypeUrl = "type.googleapis.com/istio.networking.nds.v1.NameTable";
inline constexpr std::string_view kProxyConfigTypeUrl = "type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig";
inline constexpr std::string_view kHealthTypeUrl = "type.googleapis.com/istio.v1.HealthInformation";
inline constexpr std::string_view kDebugTypePrefix = "istio.io/debug";

// A request that the agent makes itself. In a delta stream only type, nonce and error are said.
struct OwnRequest {
  std::string type_url, version_info, response_nonce;
  std::vector<std::string> resource_names;
  struct Error {
    int32_t code = 0;  // google.rpc.Code
    std::string message;
  };
  std::optional<Error> error;
};

// What is to be done with an answer of istiod.
enum class Verdict : uint8_t {
  kForward,  // to the Envoy
  kKeep,     // it was the agent's; `reply` may have to be sent
  kTap,      // it answers a client of the agent's that asks for istiod's debug pages
  kDrop,     // of no type that an Envoy takes
};

class XdsRelay {
 public:
  // Takes the first resource of an answer of its type. An error is told to istiod as a NACK.
  using Handler = std::function<absl::Status(std::string_view resource)>;

  explicit XdsRelay(Log log = {}) : log_(std::move(log)) {}

  void Handle(std::string_view type_url, Handler handler) { handlers_[std::string(type_url)] = std::move(handler); }

  // One pair of streams. The number of the newest is what counts: what an older one still does is to be closed.
  class Connection {
   public:
    // A request of the Envoy is passed on; then these, in order.
    std::vector<OwnRequest> AfterDownstream(std::string_view type_url);
    // Whether what the agent reports of its application may go out: not before the listeners were asked for.
    bool may_report_health() const { return asked_; }

   private:
    friend class XdsRelay;
    explicit Connection(XdsRelay& relay) : relay_(relay) {}
    XdsRelay& relay_;
    bool asked_ = false;  // for listeners
  };
  // `overlapping`: another connection is open, which the driver closes now.
  std::unique_ptr<Connection> Connect(bool overlapping);

  struct Answer {
    Verdict verdict = Verdict::kForward;
    std::optional<OwnRequest> reply;
  };
  // `first`: of the answer's resources; null if it has none.
  Answer OnUpstream(std::string_view type_url, std::string_view version, std::string_view nonce,
                    const std::string_view* first);

  // The application's health has changed: what is to be sent now on an open connection, and first on later ones.
  OwnRequest SetHealth(bool healthy, std::string_view message);

  // Words for the log, as the real one has them: istiod ended the stream, or the Envoy did.
  void UpstreamEnded(uint64_t connection, const absl::Status& status) const;
  void DownstreamEnded(uint64_t connection, const absl::Status& status) const;
  void ConnectFailed(std::string_view address, const absl::Status& status) const;
  void Connected(std::string_view address) const;

 private:
  const Log log_;
  std::map<std::string, Handler, std::less<>> handlers_;
  std::optional<OwnRequest> health_;
};

// Whether the end of a stream is one of those that come with the daily work: not worth a warning (istiod:
// pkg/istio-grpc, IsExpectedGRPCError).
bool IsExpectedEnd(const absl::Status& status);

}  // namespace wavetank::agent
