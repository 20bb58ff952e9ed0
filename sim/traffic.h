// Synthetic requests of one flow, at a steady rate, from the pods of one application.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "fakes/envoy/apps/app.h"
#include "sim/apps/retry.h"
#include "sim/pod_process.h"

namespace wavetank::sim {

struct TrafficSpec {
  std::string id, flow;
  std::string cluster, ns, app;  // of the clients
  std::string host;              // as the application writes it
  int port = 80;
  std::string path = "/", method = "GET";
  std::vector<std::pair<std::string, std::string>> headers, trailers;  // names in lower case
  // Of each request's body, beside its content-length: half of it goes out with the head, the rest in so many pieces,
  // evenly, the last of them after `body_over`.
  int64_t body_bytes = 0, body_pieces = 1;
  Duration body_over{};
  bool keep_alive = false;
  bool tcp = false;  // bytes that no inspector knows: a connection per request, or of keep_alive one per user
  // Of HTTP. One of HTTP/2 that is kept carries all requests of a pod to a destination side by side, as many as the
  // server allows. gRPC's requests are HTTP/2's with its headers; what their timeout is, grpc-timeout says.
  envoysim::HttpProtocol http = envoysim::HttpProtocol::kHttp11;
  bool grpc = false;
  // A connection begins as HTTP/1.1's and is upgraded, and then it is as one of TCP: the request is made first, and
  // without 101 for an answer there is no message.
  bool websocket = false;
  std::shared_ptr<const envoysim::FirstFlight> flight;  // of TLS; null: plain text
  int64_t requests = 0;                                 // 0: until it is stopped
  Duration period = 10ms;                               // between two requests
  // Not zero: the period changes into this one, its rate evenly, within `ramp` from the start.
  Duration ramp{}, last_period{};
  // The waits between requests are drawn, exponentially, and `period` is their mean: several are on their way at once
  // now and then, as from many independent users, so that kept connections become more than one.
  bool poisson = false;
  // Not 0: a closed loop. So many users send, wait for the answer, think, and send again; the period does not count.
  int64_t users = 0;
  Duration think{};
  Duration timeout{};  // the client's patience with an attempt; zero: none
  RetryRule retry;
};

// What a client shows: apart from TrafficSpec, which reports see.
struct Credential {
  std::string token;          // empty: none
  std::string header, param;  // where; neither: "authorization: Bearer TOKEN"
};

struct TrafficRecord {
  const TrafficSpec& spec;
  const std::string& client;  // pod, as in traces
  Time sent, done;
  const envoysim::RequestRecord& record;
  const PodIdentity* server;               // null: no server answered
  const std::vector<envoysim::Hop>& hops;  // of the last upstream connection, the client's sidecar first
  int64_t client_attempts = 1;             // of the client itself; `record` is the last one's
};

// An application has answered, and not with an error; a proxy's own answer is none.
inline bool Answered(const TrafficRecord& t) {
  return t.server != nullptr && t.record.code >= 200 && t.record.code < 400;
}

// What a client of that traffic sends, without credentials.
envoysim::RequestSpec RequestOf(const TrafficSpec& spec);
// Resolves the host as the pod does, and sends one request from it. `request` must live until done; `done` is called
// once, never within this call, unless the pod goes first.
void SendRequest(PodProcess& pod, const TrafficSpec& spec, const envoysim::RequestSpec& request,
                 const envoysim::AppClient::Options& options, envoysim::AppClient::Done done);
// Tells `to` of a request that has ended now; its hops are asked for while its connection lives.
void TellRecord(const Commons& commons, const TrafficSpec& spec, const std::string& client, Time sent,
                int64_t client_attempts, const envoysim::RequestRecord& record,
                const std::function<void(const TrafficRecord&)>& to);

class TrafficSource {
 public:
  using Clients = std::function<std::vector<PodProcess*>()>;
  using OnRecord = std::function<void(const TrafficRecord&)>;

  // Starts at once. `clients` is asked for every request: pods come and go. `on_record` may be empty.
  TrafficSource(Commons& commons, TrafficSpec spec, const Credential& credential, Clients clients, OnRecord on_record);
  ~TrafficSource();

  void Stop() { stopped_ = true; }
  // Everything was sent (or it was stopped), and everything is answered.
  bool Done() const { return Over() && pending_ == 0; }
  int64_t pending() const { return pending_; }
  int64_t sent() const { return sent_; }
  const TrafficSpec& spec() const { return spec_; }

 private:
  // One request of a client, through all its attempts.
  struct Try {
    std::string client;
    Time sent{};
    int64_t attempt = 1;
    uint64_t user = 0;  // of a closed loop, from 1
  };

  bool Over() const { return stopped_ || (spec_.requests > 0 && sent_ >= spec_.requests); }
  void Tick();
  // Of the open loop, now.
  Duration Period() const;
  Duration NextWait();
  void SendOne(uint64_t user);
  void Attempt(PodProcess& pod, Try each);
  // Of WebSocket, on a new connection: `done` is told of the message's end, or of the handshake's, if that fails.
  void ShakeHands(uint64_t number, envoysim::AppClient::Done done);
  void Ended(Try each, const envoysim::RequestRecord& record);
  void Finish(const Try& each, const envoysim::RequestRecord& record);

  Commons& commons_;
  const TrafficSpec spec_;
  Clients clients_;
  OnRecord on_record_;
  envoysim::RequestSpec request_;
  bool stopped_ = false;
  int64_t sent_ = 0, pending_ = 0;
  uint64_t turn_ = 0;
  Time began_{};
  RandomStream arrivals_;
  // Of TCP and WebSocket: by request, or of streams that stay by user, with the pod that holds each.
  struct Stream {
    std::string client;
    std::unique_ptr<envoysim::AppClient::Session> session;
  };
  std::map<uint64_t, Stream> streams_;
  uint64_t streams_opened_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  envoysim::RequestSpec handshake_;  // of WebSocket, with which a connection begins
};

}  // namespace wavetank::sim
