// Istio's own metrics: the filter istio.stats, of which a proxy counts requests with who asked, who answered, and how.
// istio/proxy: source/extensions/filters/http/istio_stats/istio_stats.cc
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "fakes/envoy/tcp/peer.h"
#include "fakes/envoy/tcp/response_flags.h"
#include "google/protobuf/any.pb.h"

namespace stats {
class MetricConfig;
class PluginConfig;
}  // namespace stats

namespace wavetank::envoysim {

struct AccessLogEntry;
class Extensions;
class LogExpression;

// What is known of a request at its end, or of a connection that carries none for its proxy. Views are valid during the
// call.
struct MeasuredRequest {
  bool inbound = false;  // the proxy stands before the server
  bool grpc = false;
  bool tcp = false;  // a connection
  uint16_t code = 0, grpc_status = 0;
  ResponseFlags flags = kNoFlags;
  bool flags_of_enum = false;
  const PeerInfo* own = nullptr;   // never null
  const PeerInfo* peer = nullptr;  // null: it did not say
  std::string_view endpoint_workload;
  std::string_view host, route, cluster, service_host, service_name;
  std::string_view own_identity, peer_identity;  // URI SANs; empty: no mesh TLS
};

// A metric's name in a proxy's statistics with its labels: "istiocustom.istio_requests_total", then kTagBegins, name,
// kTagValue and value of each.
inline constexpr char kTagBegins = '\x1f', kTagValue = '\x1e';
// Behind all that, of a histogram: "le" and a bound, "+Inf", "sum" or "count"; and of a gauge that mark alone.
inline constexpr char kPartBegins = '\x1d', kIsGauge = '\x1c';
inline constexpr std::string_view kIstioNamespace = "istiocustom.";

// Labels that each metric has by itself; others that Telemetry names are added to it.
std::span<const std::string_view> StandardTags();

class IstioStats {
 public:
  // InvalidArgument with Envoy's words.
  static absl::StatusOr<std::shared_ptr<const IstioStats>> Make(const google::protobuf::Any& config,
                                                                const Extensions& extensions);
  ~IstioStats();

  enum class Metric : uint8_t {
    kRequests,
    kDuration,
    kRequestBytes,
    kResponseBytes,
    kRequestMessages,  // of gRPC; told of peers alone, not of protocol, code and flags
    kResponseMessages,
    kOpened,  // of connections
    kClosed,
    kSent,  // bytes to the client
    kReceived,
  };
  static constexpr size_t kMetricCount = 10;
  // A metric that the configuration defines itself.
  struct Defined {
    enum class Type : uint8_t { kCounter, kGauge, kHistogram };
    std::string name;  // "istio_..."
    int value = 0;     // an expression
    Type type = Type::kCounter;
    std::vector<std::pair<std::string, int>> tags;  // and expressions, in order
  };
  // Empty: the metric is dropped. `entry` is looked at where Telemetry's tagOverrides ask for more than the request.
  std::string NameOf(Metric metric, const MeasuredRequest& request, const AccessLogEntry* entry) const;
  const std::vector<Defined>& defined() const { return defined_; }
  std::string NameOf(const Defined& metric, const AccessLogEntry& entry) const;
  // What a request, or a connection, adds to it; 0 where the expression is worth no whole number.
  uint64_t ValueOf(const Defined& metric, const AccessLogEntry& entry) const;
  bool asks_entry() const { return !expressions_.empty(); }
  bool hosts_by_header() const { return hosts_by_header_; }
  // After so long a connection counts as opened, if it is known by then who is at its other end; 0: when it ends.
  Duration reporting_interval() const { return reporting_interval_; }
  uint64_t id() const { return id_; }  // of no other one

 private:
  struct Overrides {
    bool dropped = false;
    std::vector<std::pair<std::string, int>> tags;   // replaced by an expression; -1: removed
    std::vector<std::pair<std::string, int>> added;  // in order
  };
  struct Asked {
    std::string text;
    std::shared_ptr<const LogExpression> expression;
    bool number = false;  // the value of a metric: as a tag's it is nothing
  };
  IstioStats();
  // -1: it is no expression. InvalidArgument: it asks for what no filter has.
  absl::StatusOr<int> Expression(const std::string& text, bool number, const Extensions& extensions);
  absl::Status Define(const stats::PluginConfig& config, const Extensions& extensions);
  absl::Status Override(const stats::MetricConfig& metric, const Extensions& extensions);
  std::string TagOf(int expression, const AccessLogEntry* entry) const;

  const uint64_t id_;
  bool hosts_by_header_ = true;
  Duration reporting_interval_{5s};
  std::array<Overrides, kMetricCount> overrides_;
  std::vector<Defined> defined_;
  std::vector<Asked> expressions_;  // one for each text
};

// What one proxy has counted.
class IstioCounters {
 public:
  // Bounds of Envoy's histograms, in milliseconds or bytes. Envoy: source/common/stats/histogram_impl.cc
  static constexpr std::array<double, 19> kBounds = {
      0.5, 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 600000, 1800000, 3600000};
  struct Histogram {
    std::string name;
    uint64_t count = 0, sum = 0;
    std::array<uint64_t, kBounds.size() + 1> buckets{};  // none counted in another
    void Record(uint64_t value);
  };
  // Metrics of requests with one set of labels; names are empty of those that are dropped.
  struct Series {
    std::string requests_name, request_messages_name, response_messages_name;
    Histogram duration, request_bytes, response_bytes;
    uint64_t requests = 0, request_messages = 0, response_messages = 0;
    bool has_messages = false;
    void Record(Duration took, uint64_t request_size, uint64_t response_size);
  };
  // What makes two requests count as one series, where the names do not have to be asked.
  struct Key {
    uint64_t stats = 0, cluster = 0, host = 0, workload = 0;
    const PeerInfo* peer = nullptr;
    const char *own_identity = nullptr, *peer_identity = nullptr;  // of texts that are kept once
    uint64_t flags = 0;
    uint32_t code = 0;  // with whether it is gRPC, its status and what the route is
    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.stats, k.cluster, k.host, k.workload, k.peer, k.own_identity, k.peer_identity,
                        k.flags, k.code);
    }
  };
  // Null: not known yet.
  Series* Find(const Key& key) const;
  Series& Add(const Key* key, const IstioStats& stats, const MeasuredRequest& request, const AccessLogEntry* entry);
  // Of a connection.
  void Count(std::string name, uint64_t amount = 1) {
    if (!name.empty()) others_[std::move(name)] += amount;
  }
  // What the configuration defines itself.
  void CountDefined(const IstioStats& stats, const AccessLogEntry& entry);
  const std::map<std::string, uint64_t>& others() const { return others_; }
  const std::map<std::string, Histogram>& defined() const { return defined_; }
  template <typename Each>
  void ForEach(Each each) const {
    for (const std::unique_ptr<Series>& series : series_) each(*series);
  }

 private:
  std::vector<std::unique_ptr<Series>> series_;
  absl::flat_hash_map<Key, Series*> by_key_;
  absl::flat_hash_map<std::string, Series*> by_name_;
  std::map<std::string, uint64_t> others_;
  std::map<std::string, Histogram> defined_;
};

}  // namespace wavetank::envoysim
