// What requests and connections come to in Istio's metrics.
// istio/proxy: source/extensions/filters/http/istio_stats/istio_stats.cc
#include <string>

#include "fakes/envoy/access_log/access_log_format.h"
#include "fakes/envoy/access_log/istio_stats.h"
#include "fakes/envoy/http/message_size.h"
#include "fakes/envoy/proxy/data_plane_view.h"
#include "fakes/envoy/proxy/downstream.h"
#include "fakes/envoy/proxy/router.h"
#include "fakes/envoy/tcp/grpc.h"
#include "fakes/envoy/tcp/header_lines.h"

namespace wavetank::envoysim {
int64_t DownstreamConnection::Reports(const IstioStats& stats) const {
  const Duration interval = stats.reporting_interval();
  return interval <= Duration::zero() ? 0 : (envoy_.host().Now() - log_->start) / interval;
}

// Who is at the other end is known once bytes came, where the filter stands that asks.
bool DownstreamConnection::CountsAsOpened(const IstioStats& stats) const {
  if (Reports(stats) == 0) return false;
  if (listener_->inbound) {
    return chain_->exchanges_peers && flight_ != nullptr && flight_->kind != FirstFlight::Kind::kSilent;
  }
  return upstream_ready_ && log_->asks_upstream;
}

// Envoy: source/common/tcp_proxy/tcp_proxy.cc, onData, onUpstreamData (the meter of the connection's bytes)
void DownstreamConnection::CountBytes(uint64_t sent, uint64_t received, bool known) {
  for (size_t i = 0; i < chain_->stats.size(); ++i) {
    const int64_t reports = Reports(*chain_->stats[i]);
    log_->reported.resize(chain_->stats.size());
    ConnectionLog::Reported& last = log_->reported[i];
    if (last.reports != reports) last = {reports, log_->sent, log_->received};
  }
  log_->sent += sent;
  log_->received += received;
  log_->sizes_known &= known;
}

void DownstreamConnection::OnPassed(const RequestSpec& spec) {
  if (!tunnel_.empty()) {
    if (!streams_.empty()) envoy_.plane().router().OnTunnelled(streams_.front(), MessageSize(spec), 0);
    return;
  }
  if (log_ == nullptr || chain_ == nullptr) return;
  CountBytes(0, MessageSize(spec), spec.protocol != HttpProtocol::kHttp2 && spec.trailers.empty());
}

void DownstreamConnection::OnPassed(const Reply& reply) {
  if (!tunnel_.empty()) {
    const uint64_t size = MessageSize(reply.code, reply.headers, reply.body, reply.trailers);
    if (!streams_.empty()) envoy_.plane().router().OnTunnelled(streams_.front(), 0, size);
    return;
  }
  if (log_ == nullptr || chain_ == nullptr) return;
  CountBytes(MessageSize(reply.code, reply.headers, reply.body, reply.trailers), 0, reply.trailers.empty());
}

void DownstreamConnection::CountConnection(const IstioStats& stats, bool ended, const Bytes& bytes,
                                           IstioCounters* to) const {
  using Metric = IstioStats::Metric;
  MeasuredRequest r;
  r.tcp = true;
  r.inbound = listener_->inbound;
  r.flags = CountsAsOpened(stats) ? kNoFlags : log_->flags;  // labels are as they were then
  r.flags_of_enum = !envoy_.release().Has(EnvoyChange::kFlagsInOrderOfSetting);
  r.own = envoy_.peer();
  r.peer = log_->peer;
  r.cluster = log_->cluster;
  r.service_host = log_->service_host;
  r.service_name = log_->service_name;
  r.own_identity = r.inbound ? server_identity_ : log_->own_identity;
  r.peer_identity = r.inbound ? client_identity_ : log_->peer_identity;
  if (!r.inbound && r.peer == nullptr) r.endpoint_workload = log_->endpoint_workload;
  AccessLogEntry entry;
  if (stats.asks_entry()) FillLogEntry(&entry);
  const auto name = [&](Metric metric) { return stats.NameOf(metric, r, stats.asks_entry() ? &entry : nullptr); };
  to->Count(name(Metric::kOpened));
  to->Count(name(Metric::kSent), bytes.sent);
  to->Count(name(Metric::kReceived), bytes.received);
  if (!ended) return;
  to->Count(name(Metric::kClosed));
  to->CountDefined(stats, entry);
}

void DownstreamConnection::Measure() const {
  if (chain_ == nullptr || log_ == nullptr || chain_->http.has_value()) return;
  for (const std::shared_ptr<const IstioStats>& stats : chain_->stats)
    CountConnection(*stats, /*ended=*/true, {log_->sent, log_->received}, &envoy_.istio_counters());
}

void DownstreamConnection::AddOpened(std::map<std::string, uint64_t>* counters) const {
  if (chain_ == nullptr || log_ == nullptr || chain_->http.has_value()) return;
  IstioCounters opened;
  for (size_t i = 0; i < chain_->stats.size(); ++i) {
    const IstioStats& stats = *chain_->stats[i];
    if (!CountsAsOpened(stats)) continue;
    Bytes bytes{log_->sent, log_->received};
    // What came since the last report is not told yet.
    if (i < log_->reported.size() && log_->reported[i].reports == Reports(stats))
      bytes = {log_->reported[i].sent, log_->reported[i].received};
    CountConnection(stats, /*ended=*/false, bytes, &opened);
  }
  for (const auto& [name, count] : opened.others()) (*counters)[name] += count;
}

void Router::Measure(const Stream& s, const RequestRecord& record, const PeerInfo* peer, uint16_t grpc_status,
                     Duration lead) {
  DataPlaneView& envoy = *s.envoy;
  MeasuredRequest request;
  request.inbound = s.downstream->listener().inbound;
  request.grpc = IsGrpc(*s.spec);
  request.code = record.code;
  request.grpc_status = grpc_status != kNoGrpcStatus ? grpc_status : GrpcStatusOfHttp(record.code);
  request.flags = s.flags;
  request.flags_of_enum = !envoy.release().Has(EnvoyChange::kFlagsInOrderOfSetting);
  request.own = envoy.peer();
  request.peer = request.inbound ? plane_.fabric().peer(s.exchange) : peer;
  const bool tunnel = s.upgrade != nullptr && s.upgrade->stands;
  if (tunnel) request.peer = request.inbound ? s.upgrade->client : s.upgrade->server;
  if (request.inbound && !s.manager->exchanges_peers) request.peer = nullptr;
  request.host = s.spec->authority;
  if (s.route != nullptr) request.route = s.route->name;
  if (s.cluster != nullptr) {
    const ClusterConfig& config = s.cluster->config();
    request.cluster = config.name;
    request.service_host = config.istio_host;
    request.service_name = config.istio_name;
  }
  if (request.inbound) {
    request.peer_identity = plane_.configs().Keep(s.downstream->peer_identity());
    request.own_identity = plane_.configs().Keep(s.downstream->own_identity());
  } else {
    request.peer_identity = s.upstream_identity;
    request.own_identity = s.own_identity;
    if (request.peer == nullptr && s.upstream_host != nullptr) request.endpoint_workload = s.upstream_host->workload;
  }
  const bool of_service = !request.service_host.empty();
  const uint64_t request_size = MessageSize(*s.spec) + (tunnel ? s.upgrade->received : 0);
  AccessLogEntry entry;
  ShownInLog shown;
  for (const std::shared_ptr<const IstioStats>& stats : s.manager->stats) {
    IstioCounters& counters = envoy.istio_counters();
    IstioCounters::Key key;
    key.stats = stats->id();
    if (s.cluster != nullptr) key.cluster = s.cluster->config().hash.low;
    if (stats->hosts_by_header() && !of_service) key.host = HashBytes(request.host).low;
    if (!request.endpoint_workload.empty()) key.workload = HashBytes(request.endpoint_workload).low;
    key.peer = request.peer;
    key.own_identity = request.own_identity.data();
    key.peer_identity = request.peer_identity.data();
    key.flags = request.flags;
    const uint32_t route = request.route == "block_all" ? 1 : request.route == "allow_any" ? 2 : 0;
    key.code = request.code | uint32_t{request.grpc} << 16 | uint32_t{request.grpc_status & 0xffU} << 17 | route << 25;
    IstioCounters::Series* series = stats->asks_entry() ? nullptr : counters.Find(key);
    if (series == nullptr) {
      if (stats->asks_entry()) {
        FillLogEntry(s, record, lead, &shown, &entry);
        (request.inbound ? entry.downstream_peer_info : entry.upstream_peer_info) = request.peer;
      }
      const AccessLogEntry* const asked = stats->asks_entry() ? &entry : nullptr;
      series = &counters.Add(stats->asks_entry() ? nullptr : &key, *stats, request, asked);
    }
    if (!stats->defined().empty()) counters.CountDefined(*stats, entry);
    series->Record(envoy.host().Now() + lead - s.start, request_size,
                   MessageSize(record.code, record.headers, record.body, {}) + (tunnel ? s.upgrade->sent : 0));
    // A message passed the filter that counts them if the request was read on. Envoy: grpc_stats_filter.cc, decodeData
    if (!request.grpc || !s.manager->counts_messages || s.attempts == 0 || !s.looped) continue;
    series->has_messages = true;
    ++series->request_messages;
    if (FindHeaderLine(record.trailers, "grpc-status").has_value()) ++series->response_messages;
  }
}

}  // namespace wavetank::envoysim
