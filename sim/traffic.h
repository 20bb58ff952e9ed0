// Synthetic requests of one flow, at a steady rate, from the pods of one application.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fakes/envoy/apps/app.h"
#include "sim/pod_process.h"

namespace wavetank::sim {

struct TrafficSpec {
  std::string id, flow;
  std::string cluster, ns, app;  // of the clients
  std::string host;              // as the application writes it
  int port = 80;
  std::string path = "/", method = "GET";
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  bool keep_alive = false;
  bool tcp = false;        // one TCP connection per request, bytes that no inspector knows
  int64_t requests = 0;    // 0: until it is stopped
  Duration period = 10ms;  // between two requests
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
};

class TrafficSource {
 public:
  using Clients = std::function<std::vector<PodProcess*>()>;
  using OnRecord = std::function<void(const TrafficRecord&)>;

  // Starts at once. `clients` is asked for every request: pods come and go. `on_record` may be empty.
  TrafficSource(Commons& commons, TrafficSpec spec, const Credential& credential, Clients clients, OnRecord on_record);
  ~TrafficSource();

  void Stop() { stopped_ = true; }
  // Everything was sent (or it was stopped), and everything is answered.
  bool Done() const { return (stopped_ || (spec_.requests > 0 && sent_ >= spec_.requests)) && pending_ == 0; }
  int64_t pending() const { return pending_; }
  int64_t sent() const { return sent_; }
  const TrafficSpec& spec() const { return spec_; }

 private:
  void Tick();
  void SendOne();
  void Finish(const std::string& client, Time sent, const envoysim::RequestRecord& record);

  Commons& commons_;
  const TrafficSpec spec_;
  Clients clients_;
  OnRecord on_record_;
  envoysim::RequestSpec request_;
  bool stopped_ = false;
  int64_t sent_ = 0, pending_ = 0;
  uint64_t turn_ = 0;
  std::vector<envoysim::Hop> hops_;
  std::map<uint64_t, std::unique_ptr<envoysim::AppClient::Session>> sessions_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace wavetank::sim
