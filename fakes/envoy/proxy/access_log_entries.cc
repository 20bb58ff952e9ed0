// What routers and connections tell their access logs at their end.
// Envoy: source/common/stream_info/stream_info_impl.h, source/common/http/conn_manager_impl.cc,
// source/common/tcp_proxy/tcp_proxy.cc
#include <algorithm>
#include <string>

#include "fakes/envoy/http/request_body.h"
#include "fakes/envoy/proxy/data_plane_view.h"
#include "fakes/envoy/proxy/downstream.h"
#include "fakes/envoy/proxy/router.h"
#include "fakes/envoy/tcp/grpc.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/request_edit.h"

namespace wavetank::envoysim {

SocketAddress ConnectingEnd(const Fabric& fabric, ConnectionId connection) {
  // Of Linux: net.ipv4.ip_local_port_range.
  constexpr uint64_t kFirst = 32768, kPorts = 28232;
  SocketAddress out = fabric.info(connection).source;
  if (out.port == 0) out.port = static_cast<uint16_t>(kFirst + Mix64(static_cast<uint64_t>(connection)) % kPorts);
  return out;
}

namespace {

const x509::Certificate* Leaf(const std::shared_ptr<const CertificateChain>& chain) {
  return chain == nullptr || chain->certificates.empty() ? nullptr : chain->certificates.front().get();
}

LoggedSession SessionOf(const UpstreamSession& session) {
  return {session.terms.version, session.terms.cipher, Leaf(session.server), Leaf(session.own), nullptr,
          session.number};
}

}  // namespace

void DownstreamConnection::Describe(AccessLogEntry* entry) const {
  // The Fabric has forgotten a connection that the other side has closed.
  if (log_ != nullptr) {
    entry->downstream_local = log_->destination;
    entry->downstream_remote = entry->downstream_peer = log_->source;
  } else {
    entry->downstream_local = original_destination();
    entry->downstream_peer = ConnectingEnd(envoy_.plane().fabric(), id_);
    entry->downstream_remote = remote();
  }
  if (flight_ != nullptr && flight_->kind == FirstFlight::Kind::kTls && listener_->tls_inspector &&
      !listener_->tls_inspector_disabled.Matches(entry->downstream_local.port)) {
    entry->server_name = flight_->sni;
  }
  if (chain_ != nullptr) entry->filter_chain = chain_->name;
  entry->connection_id = static_cast<uint64_t>(id_);
  entry->connection_number = number_;
  entry->tls = tls_;
  if (!tls_) return;
  const TlsClient* const client = flight_->tls.get();
  entry->tls13 = CommonVersion(client == nullptr ? nullptr : client->context.get(), *chain_->socket.tls) == 3;
  entry->client_certificate = !client_identity_.empty();
  entry->client_uri = client_identity_;
  entry->server_uri = server_identity_;
  const bool shown = !terms_.client_signature.empty();
  entry->principals_noted = peer_noted_ && shown;
  entry->session = {terms_.version,
                    terms_.cipher,
                    shown ? peer_certificate().get() : nullptr,
                    Leaf(server_certificate_),
                    shown ? &client->certificate->certificates : nullptr,
                    session_number_};
}

void DownstreamConnection::NoteFailure(ResponseFlags flags, std::string_view failure) {
  log_->flags |= flags;
  log_->transport_failure = failure;
  std::replace(log_->transport_failure.begin(), log_->transport_failure.end(), ' ', '_');
  if (flags != kUpstreamConnectionFailure) return;
  log_->host = log_->tried;
  if (connect_attempts_ >= chain_->tcp->max_connect_attempts) log_->flags |= kUpstreamRetryLimitExceeded;
}

void DownstreamConnection::WriteLogs() {
  if (log_ == nullptr || !envoy_.plane().collects_access_logs()) return;
  const AccessLogs* const tcp = chain_ != nullptr && chain_->tcp.has_value() ? chain_->tcp->logs.get() : nullptr;
  if (tcp == nullptr && listener_->logs == nullptr) return;
  AccessLogEntry entry;
  FillLogEntry(&entry);
  if (tcp != nullptr) envoy_.WriteAccessLogs(*tcp, &entry);
  if (listener_->logs != nullptr) envoy_.WriteAccessLogs(*listener_->logs, &entry);
}

void DownstreamConnection::FillLogEntry(AccessLogEntry* out) const {
  AccessLogEntry& entry = *out;
  Describe(&entry);
  entry.start = log_->start;
  entry.end = envoy_.host().Now();
  entry.http = chain_ != nullptr && chain_->http.has_value();
  entry.flags = log_->flags;
  entry.connection_flags = true;
  entry.details = log_->details;
  entry.termination = log_->termination;
  entry.transport_failure = log_->transport_failure;
  // A connection carries whole exchanges here: what a tcp_proxy passes on is counted, but for bytes of a session that
  // is not its own.
  const bool tcp = chain_ != nullptr && chain_->tcp.has_value();
  if (tcp && log_->sizes_known && !PassesTls()) {
    entry.bytes_received = entry.wire_received = log_->received;
    entry.bytes_sent = entry.wire_sent = log_->sent;
    // What a network filter read and did not let through has come all the same, and is on nobody's wire.
    if (!log_->spliced && chain_->reads && next_filter_ > 0) {
      entry.bytes_received = log_->read;
      if (!log_->heard || !log_->read_known) entry.bytes_received.reset();
    }
  } else if (entry.http && !refusal_.empty() && log_->heard && log_->read_known) {
    entry.bytes_received = log_->read;
    entry.wire_received = entry.wire_sent = 0;
  } else {
    if (entry.http ? log_->heard : log_->spliced) entry.bytes_received.reset();
    if (log_->spliced || entry.http) entry.bytes_sent.reset();
  }
  entry.upstream_number = log_->upstream_number;
  (listener_->inbound ? entry.downstream_peer_info : entry.upstream_peer_info) = log_->peer;
  entry.attempts = log_->host.empty() ? 0 : connect_attempts_;
  entry.upstream_host = log_->host;
  entry.upstream_remote = log_->remote;
  entry.upstream_local = log_->local;
  entry.upstream_name = log_->name;
  entry.upstream_session = SessionOf(log_->session);
  entry.cluster = log_->cluster;
  entry.cluster_config = log_->cluster_config;
  entry.host_workload = log_->endpoint_workload;
  entry.cluster_stat_name = log_->cluster_stat_name;
  entry.notes = &notes_;
}

void Router::EntryOf(const Stream& s, AccessLogEntry* out) const {
  AccessLogEntry& entry = *out;
  if (s.downstream != nullptr) s.downstream->Describe(&entry);
  entry.start = s.start;
  if (!s.headless) entry.request = s.spec;
  entry.http = true;
  entry.http2 = s.spec->protocol == HttpProtocol::kHttp2;
  entry.request_id = s.log != nullptr ? s.log->request_id : static_cast<uint64_t>(plane_.fabric().root(s.exchange));
  entry.flags = s.flags;
  if (s.cluster != nullptr) {
    entry.cluster = s.cluster->config().name;
    entry.cluster_stat_name = s.cluster->config().alt_stat_name;
    entry.cluster_config = s.cluster->config().config;
  }
  if (s.host != nullptr) entry.virtual_host = s.host->name;
  if (s.route != nullptr) {
    entry.route = s.route->name;
    entry.route_config = s.route->config;
  }
  if (s.upstream_host != nullptr) entry.host_workload = s.upstream_host->workload;
  if (s.upstream_host != nullptr) entry.upstream_host = entry.upstream_remote = s.upstream_host->address;
  if (const std::optional<IpAddress> source = ForwardedFor(*s.manager, *s.spec)) entry.downstream_remote = {*source, 0};
  entry.notes = &s.notes;
}

void Router::FillLogEntry(const Stream& s, const RequestRecord& record, Duration lead, ShownInLog* kept,
                          AccessLogEntry* out) const {
  DataPlaneView& envoy = *s.envoy;
  AccessLogEntry& entry = *out;
  std::string& shown = kept->headers;
  EntryOf(s, &entry);
  // What a try makes of a request, its log sees. Envoy: router.cc, decodeHeaders, doRetry, onUpstreamHostSelected
  if (s.attempts > 0 && !s.headless) {
    RequestEdit edit(*s.spec);
    EditForTry(s, &edit);
    kept->request = edit.Take();
    if (kept->request != nullptr) entry.request = kept->request.get();
  }
  entry.end = envoy.host().Now() + lead;
  entry.code = record.code;
  entry.grpc = IsGrpc(*s.spec);
  entry.code_as_grpc = GrpcStatusOfHttp(record.code);
  entry.details = record.details;
  entry.transport_failure = s.transport_failure;
  // That a body is empty, HTTP/1.1's codec says, behind the back of the log. Envoy: http1/codec_impl.cc
  entry.response_headers = record.headers;
  if (record.details != "via_upstream" && record.body.empty()) {
    ForEachHeader(record.headers, [&](std::string_view name, std::string_view value) {
      if (name != "content-length" || value != "0") AddHeaderLine(name, value, &shown);
    });
    entry.response_headers = shown;
  }
  entry.response_trailers = record.trailers;
  if (BodyIsHere(s, entry.end)) entry.bytes_received = BodyLength(*s.spec).value_or(0);
  entry.bytes_sent = record.body.size();
  if (record.details == "via_upstream") {
    const Time head = s.begun != 0 ? s.begun_at : entry.end;
    entry.response_after = head - entry.start;
    entry.response_took = entry.end - head;
    if (s.log != nullptr) entry.service_time = head - s.log->routed;
  } else {
    entry.text_body = !record.body.empty();
  }
  if (s.upgrade != nullptr && s.upgrade->stands) {
    entry.bytes_received = s.upgrade->received;
    entry.bytes_sent = s.upgrade->sent;
    entry.response_after = s.begun_at - entry.start;
  }
  entry.attempts = s.attempts;
  if (s.log == nullptr) return;
  entry.upstream_host = s.log->host;
  entry.upstream_remote = s.log->remote;
  entry.upstream_local = s.log->local;
  entry.upstream_name = s.log->name;
  entry.upstream_session = SessionOf(s.log->session);
  entry.upstream_number = s.log->upstream_number;
  entry.upstream_protocol = s.log->protocol;
}

void Router::WriteLogs(const Stream& s, const RequestRecord& record, Duration lead) {
  AccessLogEntry entry;
  ShownInLog shown;
  FillLogEntry(s, record, lead, &shown, &entry);
  s.envoy->WriteAccessLogs(*s.manager->logs, &entry);
}

}  // namespace wavetank::envoysim
