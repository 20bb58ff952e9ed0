// What all Envoys of a world share.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/host.h"
#include "fakes/envoy/access_log/access_log.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/tcp/fabric.h"
#include "fakes/envoy/tcp/latency.h"
#include "fakes/envoy/tcp/network.h"
#include "fakes/envoy/tcp/peer.h"

namespace wavetank::envoysim {

class ConfigStore;
class EnvoyContext;
class Router;
class TlsSessions;

// What all Envoys of a world share: decoded configuration, TCP, verified certificates. One per world; must outlive
// them.
class DataPlane {
 public:
  struct Options {
    StageLatencies latencies;
    ExtensionSet extensions = ExtensionSet::kIstioProxy;
    EnvoyRelease release;  // whose rules hold
    uint64_t seed = 0;
    // Which trace records the data plane emits; a benchmark of millions of requests turns them off.
    bool trace_requests = true;
    bool trace_connections = true;
  };

  DataPlane(Host& host, Network& network, const Options& options);
  ~DataPlane();

  Fabric& fabric() { return *fabric_; }
  ConfigStore& configs() { return *configs_; }
  TlsSessions& tls() { return *tls_; }
  Router& router() { return *router_; }
  const Options& options() const { return options_; }
  // Sees every line of an access log and whose it is, perhaps ahead of the clock (AccessLogLine::at). While it is empty
  // logs cost nothing; of requests and connections that are under way when it is set there are no lines.
  using OnAccessLog = std::function<void(EnvoyContext& by, const AccessLogLine& line)>;
  void CollectAccessLogs(OnAccessLog tell) { on_access_log_ = std::move(tell); }
  const OnAccessLog& on_access_log() const { return on_access_log_; }
  bool collects_access_logs() const { return on_access_log_ != nullptr; }

  // Responses that an Envoy refused, all with the same words.
  struct Nack {
    std::string proxy;      // EnvoyOptions::name
    std::string_view type;  // "LDS"
    std::string text;
    Time first{}, last{};
    int64_t count = 0;
  };
  // One per content; lives as long as this.
  const PeerInfo* KeepPeer(PeerInfo peer) { return &*peers_.insert(std::move(peer)).first; }
  void NoteNack(Time at, const std::string& proxy, std::string_view type, const std::string& text);
  const std::vector<Nack>& nacks() const { return nacks_; }  // in the order of `first`
  // Lines that scripts wrote to an Envoy's log, or that it wrote about them; equal ones once.
  struct ScriptLine {
    std::string proxy;
    std::string level, text;
    Time first{};
    int64_t count = 0;
  };
  static constexpr size_t kMostScriptLines = 1000;  // different ones; what comes later is not kept
  void NoteScript(Time at, const std::string& proxy, std::string_view level, const std::string& text);
  const std::vector<ScriptLine>& script_lines() const { return script_lines_; }
  // What was accepted and has no effect here, and which proxies hold it (EnvoyOptions::name).
  using WithoutEffect = std::map<Extensions::Note, std::set<std::string>>;
  void NoteWithoutEffect(const std::string& proxy, const Extensions::Notes& notes);
  const WithoutEffect& without_effect() const { return without_effect_; }

 private:
  const Options options_;
  std::set<PeerInfo> peers_;
  WithoutEffect without_effect_;
  std::vector<ScriptLine> script_lines_;
  std::vector<Nack> nacks_;
  std::map<std::tuple<std::string, std::string_view, std::string>, size_t> known_nacks_;  // by proxy, type, text
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<ConfigStore> configs_;
  std::unique_ptr<TlsSessions> tls_;
  std::unique_ptr<Router> router_;
  OnAccessLog on_access_log_;
};

}  // namespace wavetank::envoysim
