// Requests as proxies' access logs tell them: who asked whom, how often, and what came of it. Counted by windows, so
// that memory follows how many clients ask how many services for how long, and not how many lines tell of it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "import/evidence/evidence.h"

namespace wavetank::importing {

// Windows begin at multiples of this since 1970.
inline constexpr WallNs kTrafficWindow = 10'000'000'000;

// What a source calls a pod. Empty parts are not told.
struct PodName {
  std::string cluster, ns, pod;
  auto operator<=>(const PodName&) const = default;
};

struct FlowKey {
  PodName client;
  std::string client_ip;  // where only the server's log tells of the request: `client` is empty then
  std::string host;       // as the client writes it
  int64_t port = 0;
  std::string method, path;  // `path`: up to its second slash, as requests differ in the rest
  bool tcp = false;
  auto operator<=>(const FlowKey&) const = default;
};

// How long something took, in steps of a fifth.
class Durations {
 public:
  void Add(int64_t ms);
  void Add(const Durations& other);
  int64_t Quantile(double share) const;  // in ms; -1: none
  bool empty() const { return count_ == 0; }

 private:
  std::map<int16_t, uint64_t> steps_;
  uint64_t count_ = 0;
};

struct TrafficWindow {
  WallNs first = 0, last = 0;  // when the first and the last of them began
  uint64_t requests = 0;
  std::map<int64_t, uint64_t> codes;  // 0: no code, as of connections and clients that go first
  std::map<std::string, uint64_t> flags, upstreams;
  Durations durations;
  Place place;  // of the first

  void Add(const TrafficWindow& other);
};

struct Flow {
  std::string path;     // of the first request
  std::string service;  // the host of the upstream cluster, as istiod calls it; empty: none was chosen
  std::map<WallNs, TrafficWindow> windows;  // by their beginning
};

// What a server's own applications did, as its inbound lines tell (or, where there are none, its clients').
struct ServedWindow {
  uint64_t requests = 0;
  std::map<int64_t, uint64_t> codes;
  Durations durations;
  Place place;
};

struct Traffic {
  std::map<FlowKey, Flow> flows;
  std::map<PodName, std::map<WallNs, ServedWindow>> served;
  std::map<PodName, std::string> addresses;  // of pods whose lines tell
  uint64_t lines = 0;                        // of access logs
  uint64_t at_gateways = 0;                  // lines of gateways that passed a request on: its client tells of it too
  uint64_t from_outside = 0;                 // requests that came into the mesh through a gateway
  WallNs from = kNoTime, to = kNoTime;

  bool empty() const { return lines == 0; }
};

}  // namespace wavetank::importing
