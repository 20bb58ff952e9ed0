#include "fakes/envoy/apps/client_record.h"

#include "fakes/envoy/tcp/grpc.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

void Trace(const ClientContext& client, const RequestSpec& spec, const SocketAddress& destination,
           const RequestRecord& record) {
  client.host.Emit({TraceKind::kRequest, client.trace_name, client.host.Intern(spec.authority), record.code,
                    record.latency.count(), fmt::format("-|{}|{}||0", record.details, destination.ToString())});
}

}  // namespace

RequestRecord RecordOf(const ClientContext& client, const RequestSpec& spec, const SocketAddress& destination,
                       ConnectionId connection, Time start, const Reply& reply, Duration lead) {
  RequestRecord record;
  const Duration latency = client.host.Now() + lead - start;
  if (reply.refused) {
    record.details = "stream refused";
    record.latency = latency;
    Trace(client, spec, destination, record);
    return record;
  }
  if (reply.record != nullptr) {
    record = *reply.record;
    record.latency = latency;
    record.trailers = reply.trailers;  // that it got
  } else {
    record.code = reply.code;
    record.body = reply.body;
    record.headers = reply.headers;
    record.trailers = reply.trailers;
    if (reply.code == 0) record.details = "answer broken off";
    record.server = reply.server;
    record.server_flags = reply.flags;
    record.server_details = reply.details;
    record.latency = latency;
    record.upstream_connection = connection;
    Trace(client, spec, destination, record);
  }
  if (record.code == 200 && reply.grpc_status != kNoGrpcStatus && IsGrpc(spec)) {
    record.grpc_status = reply.grpc_status;
    record.code = HttpStatusOfGrpc(reply.grpc_status);
  }
  return record;
}

RequestRecord RecordOfNone(const ClientContext& client, const RequestSpec& spec, const SocketAddress& destination,
                           Time start, std::string_view why, std::string_view closer, std::string_view tls_finding) {
  RequestRecord record;
  record.details = why;
  record.server_details = closer;
  record.tls_finding = tls_finding;
  record.latency = client.host.Now() - start;
  Trace(client, spec, destination, record);
  return record;
}

KeptRecord::KeptRecord(const RequestRecord& r) : record(r) {
  for (std::string_view* text :
       {&record.details, &record.transport_failure, &record.tls_finding, &record.body, &record.headers,
        &record.trailers, &record.listener, &record.filter_chain, &record.virtual_host, &record.route,
        &record.route_config, &record.cluster, &record.cluster_config, &record.server_details}) {
    texts.emplace_back(*text);
    *text = texts.back();
  }
  if (r.failed_tries == nullptr) return;
  failed_tries = *r.failed_tries;
  record.failed_tries = &failed_tries;
}

}  // namespace wavetank::envoysim
