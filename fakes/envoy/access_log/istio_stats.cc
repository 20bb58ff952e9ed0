#include "fakes/envoy/access_log/istio_stats.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <span>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "fakes/envoy/access_log/access_log_expression.h"
#include "fakes/envoy/access_log/access_log_format.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/match/proto_time.h"
#include "fmt/format.h"
#include "istio/stats.pb.h"

namespace wavetank::envoysim {
namespace {

// By IstioStats::Metric.
constexpr std::string_view kMetrics[IstioStats::kMetricCount] = {"requests_total",
                                                                 "request_duration_milliseconds",
                                                                 "request_bytes",
                                                                 "response_bytes",
                                                                 "request_messages_total",
                                                                 "response_messages_total",
                                                                 "tcp_connections_opened_total",
                                                                 "tcp_connections_closed_total",
                                                                 "tcp_sent_bytes_total",
                                                                 "tcp_received_bytes_total"};

constexpr std::string_view kStandardTags[] = {"reporter",
                                              "source_workload",
                                              "source_workload_namespace",
                                              "source_principal",
                                              "source_app",
                                              "source_version",
                                              "source_canonical_service",
                                              "source_canonical_revision",
                                              "source_cluster",
                                              "destination_workload",
                                              "destination_workload_namespace",
                                              "destination_principal",
                                              "destination_app",
                                              "destination_version",
                                              "destination_service",
                                              "destination_service_name",
                                              "destination_service_namespace",
                                              "destination_canonical_service",
                                              "destination_canonical_revision",
                                              "destination_cluster",
                                              "request_protocol",
                                              "response_flags",
                                              "connection_security_policy",
                                              "response_code",
                                              "grpc_response_status"};
bool IsStandard(std::string_view tag) {
  return std::find(std::begin(kStandardTags), std::end(kStandardTags), tag) != std::end(kStandardTags);
}

// istio/proxy: extensions/common/metadata_object.cc, convertEndpointMetadata: "workload;namespace;service;revision;
// cluster".
std::optional<PeerInfo> OfEndpoint(std::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(absl::string_view(text.data(), text.size()), ';');
  if (parts.size() < 5) return std::nullopt;
  return PeerInfo{parts[0], parts[1], parts[2], parts[3], {}, {}, parts[4]};
}

// istio/proxy: source/extensions/common/utils.cc, GetNamespace: of spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT.
std::string_view NamespaceOf(std::string_view identity) {
  const size_t ns = identity.find("/ns/");
  if (ns == identity.npos) return {};
  const std::string_view rest = identity.substr(ns + 4);
  const size_t end = rest.find("/sa/");
  return end == rest.npos ? std::string_view() : rest.substr(0, end);
}

std::string_view Or(std::string_view text, std::string_view otherwise) { return text.empty() ? otherwise : text; }

constexpr std::string_view kUnknown = "unknown", kLatest = "latest";

// Nothing depends on their order.
uint64_t NextStatsId() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

std::span<const std::string_view> StandardTags() { return kStandardTags; }

IstioStats::IstioStats() : id_(NextStatsId()) {}
IstioStats::~IstioStats() = default;

// Of one that does not parse the filter logs a line, and goes on without; of one that asks for what there is not the
// whole configuration is refused. istio_stats.cc, getOrCreateExpression
absl::StatusOr<int> IstioStats::Expression(const std::string& text, bool number, const Extensions& extensions) {
  for (size_t i = 0; i < expressions_.size(); ++i) {
    if (expressions_[i].text == text) return static_cast<int>(i);
  }
  const auto made = LogExpression::MakeOfMetric(text, extensions);
  if (absl::IsFailedPrecondition(made.status())) return absl::InvalidArgumentError(made.status().message());
  if (!made.ok()) return -1;
  expressions_.push_back({text, *made, number});
  return static_cast<int>(expressions_.size()) - 1;
}

absl::Status IstioStats::Define(const stats::PluginConfig& config, const Extensions& extensions) {
  for (const stats::MetricDefinition& definition : config.definitions()) {
    const auto is = [&](const Defined& other) { return other.name == "istio_" + definition.name(); };
    if (std::find(std::begin(kMetrics), std::end(kMetrics), definition.name()) != std::end(kMetrics) ||
        std::any_of(defined_.begin(), defined_.end(), is)) {
      continue;
    }
    const absl::StatusOr<int> value = Expression(definition.value(), /*number=*/true, extensions);
    if (!value.ok()) return value.status();
    if (*value < 0) continue;
    Defined& made = defined_.emplace_back();
    made.name = "istio_" + definition.name();
    made.value = *value;
    if (definition.type() == stats::GAUGE) made.type = Defined::Type::kGauge;
    if (definition.type() == stats::HISTOGRAM) made.type = Defined::Type::kHistogram;
  }
  return absl::OkStatus();
}

absl::Status IstioStats::Override(const stats::MetricConfig& metric, const Extensions& extensions) {
  std::vector<Overrides*> of;
  for (size_t i = 0; i < overrides_.size(); ++i) {
    if (metric.name().empty() || metric.name() == kMetrics[i]) of.push_back(&overrides_[i]);
  }
  if (metric.drop()) {
    for (Overrides* const to : of) to->dropped |= !metric.name().empty();
    return absl::OkStatus();
  }
  const auto set = [&](const std::string& tag, int expression) {
    for (Overrides* const to : of) {
      const auto at =
          std::find_if(to->tags.begin(), to->tags.end(), [&](const auto& each) { return each.first == tag; });
      at == to->tags.end() ? void(to->tags.emplace_back(tag, expression)) : void(at->second = expression);
    }
  };
  for (const std::string& tag : metric.tags_to_remove()) {
    if (IsStandard(tag)) set(tag, -1);
  }
  const std::map<std::string, std::string> dimensions(metric.dimensions().begin(), metric.dimensions().end());
  for (const auto& [tag, text] : dimensions) {
    const absl::StatusOr<int> expression = Expression(text, /*number=*/false, extensions);
    if (!expression.ok()) return expression.status();
    if (IsStandard(tag)) {
      set(tag, *expression);
    } else if (*expression >= 0) {
      for (Overrides* const to : of) to->added.emplace_back(tag, *expression);
    }
    if (*expression < 0) continue;
    for (Defined& defined : defined_) {
      if (metric.name().empty() || defined.name == "istio_" + metric.name())
        defined.tags.emplace_back(tag, *expression);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const IstioStats>> IstioStats::Make(const google::protobuf::Any& config,
                                                                   const Extensions& extensions) {
  stats::PluginConfig proto;
  if (absl::Status read = UnpackConfig(config, &proto); !read.ok()) return read;
  std::shared_ptr<IstioStats> out(new IstioStats());
  if (proto.has_tcp_reporting_duration()) out->reporting_interval_ = ToDuration(proto.tcp_reporting_duration());
  out->hosts_by_header_ = !proto.disable_host_header_fallback();
  if (absl::Status defined = out->Define(proto, extensions); !defined.ok()) return defined;
  const auto note = [&](bool there, const char* field) {
    if (there) extensions.NoteWithoutEffect("filter", fmt::format("stats.PluginConfig.{}", field));
  };
  note(proto.reporter() != stats::UNSPECIFIED, "reporter");
  note(proto.rotation_interval().seconds() > 0, "rotation_interval");
  for (const stats::MetricConfig& metric : proto.metrics()) {
    note(!metric.match().empty(), "metrics.match");
    if (absl::Status read = out->Override(metric, extensions); !read.ok()) return read;
  }
  return std::shared_ptr<const IstioStats>(std::move(out));
}

std::string IstioStats::TagOf(int expression, const AccessLogEntry* entry) const {
  const Asked& asked = expressions_[static_cast<size_t>(expression)];
  if (entry == nullptr) return std::string(kUnknown);
  const std::optional<std::string> value = asked.expression->Text(*entry);
  if (!value) return std::string(kUnknown);
  return asked.number ? std::string() : *value;
}

std::string IstioStats::NameOf(const Defined& metric, const AccessLogEntry& entry) const {
  std::string out = fmt::format("{}{}", kIstioNamespace, metric.name);
  for (const auto& [tag, expression] : metric.tags)
    out += fmt::format("{}{}{}{}", kTagBegins, tag, kTagValue, TagOf(expression, &entry));
  return out;
}

uint64_t IstioStats::ValueOf(const Defined& metric, const AccessLogEntry& entry) const {
  const Asked& asked = expressions_[static_cast<size_t>(metric.value)];
  uint64_t out = 0;
  const std::optional<std::string> text = asked.expression->Text(entry);
  return asked.number && text && absl::SimpleAtoi(*text, &out) ? out : 0;
}

std::string IstioStats::NameOf(Metric metric, const MeasuredRequest& r, const AccessLogEntry* entry) const {
  const Overrides& overrides = overrides_[static_cast<size_t>(metric)];
  if (overrides.dropped) return {};
  std::string out = fmt::format("{}istio_{}", kIstioNamespace, kMetrics[static_cast<size_t>(metric)]);
  const auto put = [&](std::string_view name, std::string_view value) {
    out += kTagBegins;
    out += name;
    out += kTagValue;
    out += value;
  };
  const auto tag = [&](std::string_view name, std::string_view value) {
    for (const auto& [changed, expression] : overrides.tags) {
      if (changed != name) continue;
      if (expression >= 0) put(name, TagOf(expression, entry));
      return;
    }
    put(name, value);
  };
  const PeerInfo& own = *r.own;
  std::optional<PeerInfo> peer;
  if (r.peer != nullptr) {
    peer = *r.peer;
  } else if (!r.inbound && !r.endpoint_workload.empty()) {
    peer = OfEndpoint(r.endpoint_workload);
  }
  if (!peer) peer.emplace();
  std::string_view host, name;
  if (hosts_by_header_) host = name = r.host;
  if (r.route == "block_all") {
    name = "BlackHoleCluster";
  } else if (r.route == "allow_any") {
    name = "PassthroughCluster";
  } else if (r.cluster == "BlackHoleCluster" || r.cluster == "PassthroughCluster" ||
             r.cluster == "InboundPassthroughClusterIpv4" || r.cluster == "InboundPassthroughClusterIpv6") {
    name = r.cluster;
  } else if (!r.service_host.empty()) {
    host = r.service_host;
    name = r.service_name;
  }
  const std::string_view peer_namespace = Or(NamespaceOf(r.peer_identity), peer->ns);
  tag("reporter", r.inbound ? "destination" : "source");
  const auto side = [&](const char* prefix, const PeerInfo& who, bool known, std::string_view ns,
                        std::string_view identity) {
    const std::string at(prefix);
    const auto is = [&](std::string_view text) { return known ? text : Or(text, kUnknown); };
    const auto revision = known ? std::string_view(who.canonical_revision) : Or(who.canonical_revision, kLatest);
    const bool source = at == "source_";
    tag(at + "workload", is(who.workload));
    if (source) {
      tag(at + "canonical_service", is(who.canonical_name));
      tag(at + "canonical_revision", revision);
    }
    tag(at + "workload_namespace", known ? ns : Or(ns, kUnknown));
    tag(at + "principal", Or(identity, kUnknown));
    tag(at + "app", is(who.app));
    tag(at + "version", is(who.version));
    if (source) return tag(at + "cluster", is(who.cluster));
    const std::string_view otherwise = known ? std::string_view(who.canonical_name) : kUnknown;
    tag(at + "service", Or(host, otherwise));
    tag(at + "canonical_service", is(who.canonical_name));
    tag(at + "canonical_revision", revision);
    tag(at + "service_name", Or(name, otherwise));
    tag(at + "service_namespace", known ? std::string_view(who.ns) : Or(ns, kUnknown));
    tag(at + "cluster", is(who.cluster));
  };
  if (r.inbound) {
    side("source_", *peer, false, peer_namespace, r.peer_identity);
    side("destination_", own, true, own.ns, r.own_identity);
  } else {
    side("source_", own, true, own.ns, r.own_identity);
    side("destination_", *peer, false, peer_namespace, r.peer_identity);
  }
  // Messages are told of before the rest is known. istio_stats.cc, reportHelper
  if (metric != Metric::kRequestMessages && metric != Metric::kResponseMessages) {
    tag("request_protocol", r.tcp ? "tcp" : r.grpc ? "grpc" : "http");
    if (!r.tcp) {
      tag("response_code", fmt::format("{}", r.code));
      tag("grpc_response_status", r.grpc ? fmt::format("{}", r.grpc_status) : std::string());
    }
    tag("response_flags", r.flags_of_enum ? ResponseFlagsOfEnum(r.flags)
                          : r.tcp         ? ConnectionFlagsToString(r.flags)
                                          : ResponseFlagsToString(r.flags));
    const bool mutual = !r.own_identity.empty() && !r.peer_identity.empty();
    tag("connection_security_policy", !r.inbound ? kUnknown : mutual ? "mutual_tls" : "none");
  }
  for (const auto& [added, expression] : overrides.added) put(added, TagOf(expression, entry));
  return out;
}

void IstioCounters::Histogram::Record(uint64_t value) {
  ++count;
  sum += value;
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), static_cast<double>(value));
  ++buckets[static_cast<size_t>(bound - kBounds.begin())];
}

void IstioCounters::Series::Record(Duration took, uint64_t request_size, uint64_t response_size) {
  ++requests;
  duration.Record(static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()));
  request_bytes.Record(request_size);
  response_bytes.Record(response_size);
}

void IstioCounters::CountDefined(const IstioStats& stats, const AccessLogEntry& entry) {
  using Type = IstioStats::Defined::Type;
  for (const IstioStats::Defined& metric : stats.defined()) {
    std::string name = stats.NameOf(metric, entry);
    const uint64_t value = stats.ValueOf(metric, entry);
    switch (metric.type) {
      case Type::kCounter:
        others_[std::move(name)] += value;
        break;
      case Type::kGauge:
        others_[name + kIsGauge] = value;
        break;
      case Type::kHistogram: {
        Histogram& histogram = defined_[name];
        histogram.name = std::move(name);
        histogram.Record(value);
      }
    }
  }
}

IstioCounters::Series* IstioCounters::Find(const Key& key) const {
  const auto it = by_key_.find(key);
  return it == by_key_.end() ? nullptr : it->second;
}

IstioCounters::Series& IstioCounters::Add(const Key* key, const IstioStats& stats, const MeasuredRequest& request,
                                          const AccessLogEntry* entry) {
  using Metric = IstioStats::Metric;
  // Of messages expressions are asked without a head of request or answer. istio_stats.cc, reportHelper
  AccessLogEntry headless;
  if (entry != nullptr) {
    headless = *entry;
    headless.request = nullptr;
    headless.response_headers = headless.response_trailers = {};
  }
  std::array<std::string, 6> names;
  std::string all;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto metric = static_cast<Metric>(i);
    const bool messages = metric == Metric::kRequestMessages || metric == Metric::kResponseMessages;
    if (messages && !request.grpc) continue;
    names[i] = stats.NameOf(metric, request, messages && entry != nullptr ? &headless : entry);
    all += names[i] + '\n';
  }
  Series*& series = by_name_[all];
  if (series == nullptr) {
    series = series_.emplace_back(std::make_unique<Series>()).get();
    series->requests_name = std::move(names[0]);
    series->duration.name = std::move(names[1]);
    series->request_bytes.name = std::move(names[2]);
    series->response_bytes.name = std::move(names[3]);
    series->request_messages_name = std::move(names[4]);
    series->response_messages_name = std::move(names[5]);
  }
  if (key != nullptr) by_key_.emplace(*key, series);
  return *series;
}

}  // namespace wavetank::envoysim
