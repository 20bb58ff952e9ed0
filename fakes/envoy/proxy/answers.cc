// How a request ends: an answer of the Envoy's own, or the upstream's on its way back, and the record of it.
#include <algorithm>
#include <utility>

#include "fakes/envoy/proxy/data_plane_view.h"
#include "fakes/envoy/proxy/router.h"
#include "fakes/envoy/tcp/grpc.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fmt/format.h"

namespace wavetank::envoysim {

void Router::Local(StreamId id, const LocalReply& local, Duration lead) {
  Stream& s = *streams_.Get(id);
  s.flags |= local.flags;
  // The route's cluster is named by answers of filters, too: an Envoy chooses it with the route.
  // Envoy: conn_manager_impl.cc, refreshCachedRoute
  if (s.downstream != nullptr) ChooseCluster(&s);
  // A route that leads somewhere has its word about answers that are not from there, before whoever answers.
  // Envoy: filter_manager.cc, sendLocalReplyViaFilterChain
  const bool leads = s.route != nullptr && s.route->action != RouteEntry::Action::kDirect &&
                     s.route->action != RouteEntry::Action::kRedirect;
  std::string lines;
  if (s.downstream != nullptr && local.edited && leads && s.table != nullptr &&
      (s.table->edits_headers || (s.host != nullptr && s.host->count_attempts_in_reply))) {
    lines = EditReply(s, {}, 0, local.details);
  }
  lines += local.headers;
  if (local.edit != nullptr) local.edit(&lines);
  s.flags |= local.later_flags;
  Reply reply;
  reply.code = local.code;
  reply.body = local.body;
  std::string_view content_type = "text/plain";
  if (s.downstream != nullptr && s.manager->local_replies != nullptr) {
    AccessLogEntry entry;
    EntryOf(s, &entry);
    entry.code = local.code;
    entry.details = local.details;
    const LocalReplyRules::Rewritten made = s.manager->local_replies->Rewrite(entry, local.body, &lines);
    reply.code = made.code;
    reply.body = plane_.configs().Keep(made.body);
    content_type = plane_.configs().Keep(made.content_type);
  }
  reply.from_proxy = true;
  s.local_code = reply.code;
  if (s.downstream != nullptr && IsGrpc(*s.spec)) {
    reply.grpc_status = local.grpc_status != kNoGrpcStatus ? local.grpc_status : GrpcStatusOfHttp(reply.code);
    reply.code = 200;
    std::string_view message = std::exchange(reply.body, {});
    if (content_type == "application/json" && message.ends_with('\n')) message.remove_suffix(1);
    AddHeaderLine("content-type", "application/grpc", &lines);
    lines += GrpcStatusLines(reply.grpc_status, message);
  }
  reply.headers = lines == local.headers ? local.headers : plane_.configs().Keep(lines);
  reply.has_body = !reply.body.empty();
  // Envoy: source/common/http/utility.cc, prepareLocalReply
  if (reply.has_body && s.downstream != nullptr) {
    bool said = false;
    const bool formatted = reply.body != local.body;
    std::string rest;
    ForEachHeader(reply.headers, [&](std::string_view name, std::string_view value) {
      said |= name == "content-type";
      if (!formatted || name != "content-type") AddHeaderLine(name, value, &rest);
    });
    std::string framed = fmt::format("content-length: {}\n", reply.body.size());
    if (!said || formatted) AddHeaderLine("content-type", content_type, &framed);
    reply.headers = plane_.configs().Keep(framed + rest);
  }
  Finish(id, reply, local.details, lead);
}

void Router::PassBack(StreamId id, Reply* reply, std::string_view* details, bool* closes, Duration lead) {
  Stream& s = *streams_.Get(id);
  bool passed_on = *details == "via_upstream";
  if (passed_on && s.table != nullptr &&
      (s.table->edits_headers || !s.set_cookie.empty() || (s.host != nullptr && s.host->count_attempts_in_reply))) {
    reply->headers = plane_.configs().Keep(EditReply(s, reply->headers, reply->code, *details));
  }
  if (s.manager->filters_see_replies) {
    RunReplyFilters(id, reply, *details);
    if (reply->code == 0) {  // a filter took its status. Envoy: header_utility.cc, checkRequiredResponseHeaders
      passed_on = false;
      *reply = {};
      reply->code = 502;
      reply->from_proxy = reply->has_body = true;
      reply->body = "missing required header: :status";
      reply->headers = "content-length: 32\ncontent-type: text/plain\n";
      *details = "filter_removed_required_response_headers{missing_required_header:_:status}";
    }
  }
  std::string_view headers = reply->headers;
  if (!s.response_headers.empty()) {
    headers = headers.empty() ? s.response_headers
                              : plane_.configs().Keep(std::string(headers) + std::string(s.response_headers));
  }
  // Over HTTP/2 it may have ended as it began.
  const bool tunnel = s.upgrade != nullptr && reply->code == 101;
  const std::optional<std::string_view> connection = FindHeaderLine(headers, "connection");
  headers = WithServer(*s.manager, headers);
  if ((s.upgrade == nullptr || !s.upgrade->stands) && !BodyIsHere(s, s.envoy->host().Now() + lead)) AnswerEarly(s);
  // Envoy: conn_manager_impl.cc, decodeHeaders: HTTP/1.0 is kept by nobody who does not ask for it; encodeHeaders: a
  // tunnel does not say that its connection closes.
  *closes = !tunnel && (s.downstream->SayIfClosing() || s.spec->protocol == HttpProtocol::kHttp10);
  if (s.spec->protocol != HttpProtocol::kHttp2) {
    headers = WithFraming(headers, *reply, !passed_on && s.spec->method != "HEAD", *closes);
  }
  if (tunnel && connection) headers = plane_.configs().Keep(fmt::format("{}connection: {}\n", headers, *connection));
  reply->headers = headers;
}

// Envoy: http1/codec_impl.cc, encodeTrailersBase
bool Router::WritesTrailers(const Stream& s) {
  return s.spec->protocol == HttpProtocol::kHttp2 || s.manager->arrival.http1_trailers;
}

// Envoy: conn_manager_impl.cc, chargeStats
void Router::CountAnswer(const Stream& s, uint16_t code) {
  for (HttpStats* stats : {&s.downstream->http_stats(), &s.downstream->listener_http_stats()}) {
    stats->Count(HttpStat::kRqCompleted);
    const int kind = code / 100;
    if (kind >= 1 && kind <= 5) stats->Count(static_cast<HttpStat>(static_cast<int>(HttpStat::kRq1xx) + kind - 1));
  }
}

RequestRecord Router::RecordOf(const Stream& s, const Reply& reply, std::string_view details, Duration lead) const {
  RequestRecord record;
  record.code = reply.code;
  record.flags = s.flags;
  record.details = details;
  record.transport_failure = s.transport_failure;
  record.tls_finding = s.tls_finding;
  record.body = reply.body;
  record.headers = reply.headers;
  record.trailers = reply.trailers;
  record.listener = s.downstream->listener().name;
  record.filter_chain = s.downstream->chain()->name;
  if (s.host != nullptr) record.virtual_host = s.host->name;
  if (s.route != nullptr) {
    record.route = s.route->name;
    record.route_config = s.route->config;
  }
  if (s.cluster != nullptr) {
    record.cluster = s.cluster->config().name;
    record.cluster_config = s.cluster->config().config;
  }
  if (s.upstream_host != nullptr) record.upstream = s.upstream_host->address;
  record.attempts = s.attempts;
  record.server = reply.server;
  if (details == "via_upstream" && reply.from_proxy) {
    record.server_flags = reply.flags;
    record.server_details = reply.details;
  }
  record.latency = s.envoy->host().Now() + lead - s.start;
  record.upstream_connection = s.upstream_connection;
  return record;
}

void Router::Trace(const Stream& s, const RequestRecord& record) const {
  if (!plane_.options().trace_requests || s.downstream->listener().inbound) return;
  DataPlaneView& envoy = *s.envoy;
  char text[256];
  const auto end =
      fmt::format_to_n(text, sizeof(text), "{}|{}|{}|{}|{}",
                       envoy.release().Has(EnvoyChange::kFlagsInOrderOfSetting) ? ResponseFlagsToString(s.flags)
                                                                                : ResponseFlagsOfEnum(s.flags),
                       record.details, s.upstream_host != nullptr ? s.upstream_host->address.ToString() : "",
                       record.cluster, s.attempts);
  envoy.host().Emit({TraceKind::kRequest, envoy.trace_name(), envoy.host().Intern(s.spec->authority), record.code,
                     record.latency.count(), std::string_view(text, std::min(end.size, sizeof(text)))});
}

void Router::Finish(StreamId id, const Reply& came, std::string_view details, Duration lead) {
  Stream& s = *streams_.Get(id);
  DataPlaneView& envoy = *s.envoy;
  if (s.timeout != kNoTimer) envoy.host().Cancel(s.timeout);
  if (s.backoff != kNoTimer) envoy.host().Cancel(s.backoff);
  if (s.longest != kNoTimer) envoy.host().Cancel(s.longest);
  if (s.silence != kNoTimer) envoy.host().Cancel(s.silence);
  if (s.overdue != kNoTimer) envoy.host().Cancel(s.overdue);
  if (s.retrying) --s.cluster->retries;
  // Nobody waits for what a filter has asked, which knows what the filter keeps of the request.
  if (s.call != kNoStream) AbortDownstream(std::exchange(s.call, kNoStream), {});
  EndEarlier(s);
  if (s.downstream == nullptr) {  // mirrored, or a question
    const std::unique_ptr<Answered> answered = std::move(s.answered);
    if (Stream* const asker = streams_.Get(s.asked_by)) asker->looped |= s.looped;
    streams_.Free(id);
    if (answered != nullptr) (*answered)(came, lead);
    return;
  }
  Reply upstream = came;
  bool closes = false;
  if (s.begun != 0) {  // its head is with the client
    upstream.code = s.begun;
    upstream.headers = s.begun_headers;
    upstream.trailers = s.broken ? std::string_view() : s.begun_trailers;
    closes = s.downstream->SayIfClosing();
  } else {
    PassBack(id, &upstream, &details, &closes, lead);
  }
  const bool passed_on = details == "via_upstream";
  const std::string_view headers = upstream.headers;
  if (s.begun == 0) CountAnswer(s, upstream.code);
  s.downstream->http_stats().Uncount(HttpStat::kRqActive);
  if (s.upgrade != nullptr) s.downstream->http_stats().Uncount(HttpStat::kCxUpgradesActive);
  RequestRecord record = RecordOf(s, upstream, details, lead);
  // The stream is gone before the client reads the record.
  const std::vector<FailedTry> failed_tries = std::move(s.failed_tries);
  if (!failed_tries.empty()) record.failed_tries = &failed_tries;
  if (s.upgrade == nullptr || !s.upgrade->stands) Trace(s, record);  // else its answer was traced
  if (s.log != nullptr) WriteLogs(s, record, lead);
  if (!s.manager->stats.empty()) Measure(s, record, passed_on ? came.peer : nullptr, upstream.grpc_status, lead);
  // Its client has a part of it, which is no answer.
  if (s.broken) record.code = upstream.code = 0;
  // What a CONNECT's client is told. Envoy: conn_manager_impl.cc, doEndStream
  const ResponseFlags of_reset = s.broken && s.upgrade != nullptr ? s.flags : kNoFlags;
  Reply reply = upstream;
  if (!WritesTrailers(s)) reply.trailers = {};
  reply.record = &record;
  reply.peer = s.manager->exchanges_peers && plane_.fabric().peer(s.exchange) != nullptr ? envoy.peer() : nullptr;
  reply.headers = headers;
  reply.flags |= of_reset;
  reply.close = closes || (s.last_here && s.spec->protocol == HttpProtocol::kHttp2);
  if (!passed_on && !s.broken) {
    reply.flags = s.flags;
    reply.details = details;
    reply.from_proxy = true;
  }
  DownstreamConnection* downstream = s.downstream;
  const ExchangeId exchange = s.exchange;
  streams_.Free(id);
  plane_.fabric().Answer(exchange, reply, lead);
  downstream->RemoveStream(id);
}

}  // namespace wavetank::envoysim
