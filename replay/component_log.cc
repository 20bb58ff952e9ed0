#include "replay/component_log.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/json_text.h"
#include "core/kube/time_format.h"
#include "core/xds/debouncer.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace wavetank::replay {
namespace {

// istiod: pilot/pkg/util/network (ByteCount): "512B", "1.2kB".
std::string ByteCount(int64_t bytes) {
  if (bytes < 1000) return fmt::format("{}B", bytes);
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  constexpr std::string_view kUnits = "kMGTPE";
  while (value >= 1000 && unit + 1 < kUnits.size()) value /= 1000, ++unit;
  return fmt::format("{:.1f}{}B", value, kUnits[unit]);
}

// "sleep-1.sample" of "sleep-1.sample@cluster1".
std::string NodeOf(const std::string& proxy) { return proxy.substr(0, proxy.find('@')); }

bool IsProxyName(std::string_view name) { return name.find('@') != name.npos; }

}  // namespace

std::string LogTime(Time time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  std::string text = kube::FormatRfc3339(kWorldEpochUnixSeconds + seconds.count());
  text.pop_back();  // "Z"
  return fmt::format("{}.{:06}Z", text, (since - seconds) / 1us);
}

bool IsLoggedBySomeone(TraceKind kind) {
  switch (kind) {
    case TraceKind::kXdsConnected:
    case TraceKind::kXdsDisconnected:
    case TraceKind::kXdsNack:
    case TraceKind::kXdsRejected:
    case TraceKind::kXdsSent:
    case TraceKind::kConfigUpdate:
    case TraceKind::kDebounced:
    case TraceKind::kPushContextReady:
    case TraceKind::kSecretPushed:
      return true;
    default:
      return false;
  }
}

// istiod: pkg/log/options.go, names and order of the encoder's keys.
std::string AsJson(const std::string& line) {
  const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits('\t', 3));
  if (parts.size() < 3) return line;
  nlohmann::ordered_json out = {{"level", parts[1]}, {"time", parts[0]}};
  // Without a scope what follows is the text, whose own tabs are its own.
  if (parts.size() == 4 && parts[2].find(' ') == std::string::npos) {
    out["scope"] = parts[2];
    out["msg"] = parts[3];
  } else {
    out["msg"] = parts.size() == 4 ? parts[2] + "\t" + parts[3] : parts[2];
  }
  return JsonText(out);
}

std::string LineOf(Time time, const LogLine& line) {
  return line.scope.empty() ? fmt::format("{}\t{}\t{}", LogTime(time), line.level, line.text)
                            : fmt::format("{}\t{}\t{}\t{}", LogTime(time), line.level, line.scope, line.text);
}

void ComponentLog::Line(const LoggedEvent& event, std::string_view level, std::string_view scope,
                        const std::string& text) {
  tell_(event.time, LineOf(event.time, {level, scope, text}));
}

void ComponentLog::Add(const LoggedEvent& event) {
  // Which istiod a proxy is connected to is told by istiod's own event.
  if (event.kind == TraceKind::kXdsConnected && !event.object.empty()) {
    clients_[event.subject] = {event.object, event.detail, {}};
  }
  IsProxyName(component_) ? OfProxy(event) : OfIstiod(event);
  if (event.kind == TraceKind::kXdsDisconnected && !event.object.empty()) clients_.erase(event.subject);
}

void ComponentLog::OfIstiod(const LoggedEvent& event) {
  const auto client = clients_.find(event.subject);
  const bool mine = client != clients_.end() && client->second.istiod == component_;
  switch (event.kind) {
    // istiod: pilot/pkg/xds/ads.go
    case TraceKind::kXdsConnected:
      if (mine && !event.object.empty())
        Line(event, "info", "ads", fmt::format("ADS: new connection for node:{}", event.detail));
      return;
    case TraceKind::kXdsDisconnected:
      if (event.object == component_) Line(event, "info", "ads", fmt::format("ADS: \"\" {} terminated", event.detail));
      return;
    case TraceKind::kXdsNack:
      // Envoy's own event has no code.
      if (mine && event.a != 0) {
        Line(event, "warn", "ads",
             fmt::format("ADS:{}: ACK ERROR {} {}:{}", event.object, client->second.connection,
                         event.a == 13 ? "Internal" : fmt::format("Code({})", event.a), event.detail));
      }
      return;
    case TraceKind::kXdsRejected:
      if (event.subject == component_)
        Line(event, "warn", "ads",
             fmt::format("ADS: \"{}\" exceeded rate limit: rate: Wait(n=1) would exceed context deadline",
                         event.object));
      return;
    // istiod: pilot/pkg/xds/xdsgen.go
    case TraceKind::kXdsSent:
      if (mine) {
        const bool first = client->second.types.insert(event.object).second;
        Line(event, "info", "ads",
             fmt::format("{}: PUSH{} for node:{} resources:{} size:{}", event.object, first ? " request" : "",
                         NodeOf(event.subject), event.a, ByteCount(event.b)));
      }
      return;
    // istiod: pilot/pkg/xds/discovery.go
    case TraceKind::kConfigUpdate:
      if (event.subject != component_) return;
      if (configs_.empty() && !everything_) first_update_ = event.time;
      if (event.object.empty()) {
        everything_ = true;
      } else {
        configs_.insert(event.object);
      }
      last_update_ = event.time;
      return;
    case TraceKind::kDebounced: {
      if (event.subject != component_ || !tells_pushes_) return;
      // What a push of everything was for no event says.
      const std::string what = everything_ || configs_.empty()
                                   ? "reason unknown"
                                   : pilot::DebouncedConfigs(*configs_.begin(), configs_.size());
      Line(event, "info", "ads",
           pilot::DebouncedLine(++pushes_, event.a, what, event.time - last_update_, event.time - first_update_,
                                event.b == 1));
      configs_.clear();
      everything_ = false;
      return;
    }
    default:
      return;
  }
}

void ComponentLog::OfProxy(const LoggedEvent& event) {
  // The agent's events bear the pod's UID behind the proxy's name.
  const bool of_agent = event.subject.starts_with(component_ + "/");
  if (event.subject != component_ && !of_agent) return;
  switch (event.kind) {
    // istiod: pkg/istio-agent/xds_proxy.go
    case TraceKind::kXdsConnected:
      if (!event.object.empty() && !connected_) {
        connected_ = true;
        Line(event, "info", "xdsproxy", "connected to upstream XDS server");
      }
      return;
    case TraceKind::kXdsDisconnected:
      if (!event.object.empty()) return;  // istiod's side of it
      connected_ = false;
      // envoy: source/extensions/config_subscription/grpc/grpc_stream.h
      Line(event, "warning", "envoy config",
           fmt::format("StreamAggregatedResources gRPC config stream to xds-grpc closed: 14, {}", event.detail));
      return;
    case TraceKind::kXdsNack:
      if (event.a != 0) return;
      // envoy: source/extensions/config_subscription/grpc/grpc_mux_impl.cc
      Line(event, "warning", "envoy config",
           fmt::format("gRPC config for {} rejected: {}", event.object, event.detail));
      return;
    // istiod: security/pkg/nodeagent/sds/sdsservice.go, cache/secretcache.go
    case TraceKind::kSecretPushed:
      if (of_agent) Line(event, "info", "sds", fmt::format("SDS: PUSH\tresource={}", event.object));
      return;
    default:
      return;
  }
}

void ComponentNames::Add(const LoggedEvent& event) {
  switch (event.kind) {
    case TraceKind::kConfigUpdate:
    case TraceKind::kDebounced:
    case TraceKind::kPushContextReady:
      istiods_.insert(event.subject);
      return;
    case TraceKind::kXdsConnected:
    case TraceKind::kXdsDisconnected:
      if (IsProxyName(event.subject)) proxies_.insert(event.subject);
      return;
    case TraceKind::kSecretPushed:
      if (IsProxyName(event.subject)) proxies_.insert(event.subject.substr(0, event.subject.find('/')));
      return;
    default:
      return;
  }
}

absl::StatusOr<std::string> ComponentNames::Find(const std::string& asked) const {
  std::vector<std::string> all(istiods_.begin(), istiods_.end());
  all.insert(all.end(), proxies_.begin(), proxies_.end());
  if (std::find(all.begin(), all.end(), asked) != all.end()) return asked;
  const size_t at = asked.find('@');
  const std::string head = asked.substr(0, at), cluster = at == std::string::npos ? "" : asked.substr(at + 1);
  std::vector<std::string> fitting;
  for (const std::string& name : istiods_) {
    if (head == "istiod" && (cluster.empty() || name.ends_with("." + cluster))) fitting.push_back(name);
    if (head != "istiod" && name.starts_with(head + ".")) fitting.push_back(name);
  }
  for (const std::string& name : proxies_) {
    const bool begins = name.starts_with(head) && (name.size() == head.size() || name[head.size()] == '-' ||
                                                   name[head.size()] == '.' || name[head.size()] == '@');
    if (begins && (cluster.empty() || name.ends_with("@" + cluster))) fitting.push_back(name);
  }
  if (fitting.size() == 1) return fitting.front();
  if (fitting.empty())
    return absl::NotFoundError(
        fmt::format("nothing in the log is called '{}'; there are {}", asked, absl::StrJoin(all, ", ")));
  return absl::InvalidArgumentError(fmt::format("'{}' may be {}", asked, absl::StrJoin(fitting, ", ")));
}

}  // namespace wavetank::replay
