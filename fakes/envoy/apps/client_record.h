// What a client makes of an answer.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "fakes/envoy/tcp/fabric.h"

namespace wavetank::envoysim {

// A client's own requests; what its pod's proxy logged of one takes the place of what it saw itself.
struct ClientContext {
  Fabric& fabric;
  Host& host;
  WorkloadId workload;
  NameId trace_name;
  IpAddress source;  // that its sockets are bound to, if any
};

// Traced, unless a proxy in the pod has done so. It refers to the reply's texts. An answer of gRPC has the code that
// its status counts as (tcp/grpc.h), as its client knows no other.
RequestRecord RecordOf(const ClientContext& client, const RequestSpec& spec, const SocketAddress& destination,
                       ConnectionId connection, Time start, const Reply& reply, Duration lead);
// Of a request that nobody answered.
RequestRecord RecordOfNone(const ClientContext& client, const RequestSpec& spec, const SocketAddress& destination,
                           Time start, std::string_view why, std::string_view closer, std::string_view tls_finding);

// A record whose texts are its own.
struct KeptRecord {
  explicit KeptRecord(const RequestRecord& r);
  KeptRecord(const KeptRecord&) = delete;
  RequestRecord record;
  std::vector<FailedTry> failed_tries;
  std::deque<std::string> texts;
};

}  // namespace wavetank::envoysim
