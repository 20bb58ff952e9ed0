// DNS on the wire (RFC 1035), as far as the agent's server and a real istiod's need it: one question in, an answer out.
// What comes in is hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/agent/dns_table.h"

namespace wavetank::agent {

struct DnsQuery {
  uint16_t id = 0;
  bool recursion_desired = false;
  std::string name;  // as it was written, with the dot at its end; the root is "."; other dots are escaped ("a\\.b.")
  uint16_t type = 0, klass = 0;
  size_t udp_size = 512;  // that the client takes in one datagram (EDNS), at least 512
  bool has_question = true;
};

// InvalidArgument: no DNS query.
absl::StatusOr<DnsQuery> ParseQuery(std::string_view message);

enum class DnsRcode : uint8_t { kNoError = 0, kServFail = 2, kNxDomain = 3 };

// For how long, in seconds, an answer holds.
struct DnsLife {
  uint32_t records = kDnsTtlSeconds;
  std::optional<uint32_t> nothing;  // that nothing is there (RFC 2308: a SOA record says it); none: it is not said
};

// The answer to `query`. `limit`: bytes that the client takes; records that do not fit are left out, and it is told so
// (TC). Authoritative unless it is a failure.
std::string MakeAnswer(const DnsQuery& query, const std::vector<DnsRecord>& records, DnsRcode code, size_t limit,
                       const DnsLife& life = {});

// Query for `name` of this type, for tests and for clients.
std::string MakeQuery(uint16_t id, std::string_view name, uint16_t type);
// The A, AAAA and CNAME records of an answer. InvalidArgument: it is none; Unavailable: SERVFAIL; NotFound: NXDOMAIN.
absl::StatusOr<std::vector<DnsRecord>> ParseAnswer(std::string_view message);

}  // namespace wavetank::agent
