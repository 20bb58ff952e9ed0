#include "scenarios/answers/failure_words.h"

#include <algorithm>
#include <iterator>

#include "fakes/envoy/tcp/grpc.h"
#include "fmt/format.h"

namespace wavetank::scenario {
namespace {

struct Words {
  std::string_view sign, words;
};

// Parts of BoringSSL's reasons. The alert is what the other side sent.
constexpr Words kAlerts[] = {
    {"ALERT_UNKNOWN_CA", "TLS alert unknown_ca: it does not believe the root of the caller's certificate"},
    {"ALERT_CERTIFICATE_EXPIRED", "TLS alert certificate_expired: the caller's certificate is over"},
    {"ALERT_CERTIFICATE_REQUIRED", "TLS alert certificate_required: the caller showed no certificate"},
    {"ALERT_CERTIFICATE_UNKNOWN",
     "TLS alert certificate_unknown: it does not accept the caller's certificate or its names"},
    {"ALERT_BAD_CERTIFICATE", "TLS alert bad_certificate: it cannot use the caller's certificate"},
    {"ALERT_UNSUPPORTED_CERTIFICATE", "TLS alert unsupported_certificate"},
    {"ALERT_CERTIFICATE_REVOKED", "TLS alert certificate_revoked"},
    {"ALERT_DECRYPT_ERROR", "TLS alert decrypt_error: a signature in the handshake is wrong"},
    {"ALERT_HANDSHAKE_FAILURE",
     "TLS alert handshake_failure: no agreement on the handshake, or no certificate was shown"},
};

constexpr Words kDetails[] = {
    {"route_not_found", "no route matches the request's host and path"},
    {"cluster_not_found", "its route names a cluster that the proxy does not have"},
    {"dns_resolution_failure{cares_norecords", "the proxy looked its host up, and DNS knows no address of it"},
    {"dns_resolution_failure{resolve_timeout", "the proxy looked its host up, and DNS did not answer in time"},
    {"dns_resolution_failure", "the proxy looked its host up, and DNS failed"},
    {"dns_cache_overflow", "the proxy would have to look its host up, and knows as many as it may"},
    {"pending_request_overflow", "the proxy would have to look its host up, and as many as may wait for that already"},
    {"no_healthy_upstream", "no endpoint is there, or none is healthy"},
    {"upstream_per_try_timeout", "a try took longer than the route's perTryTimeout"},
    {"response_timeout", "no answer within the route's timeout"},
    {"fault_filter_abort", "a VirtualService's fault injection aborted it"},
    {"direct_response", "the route itself answers"},
    {"http1.headers_too_large",
     "it goes in a circle of proxies, one of which refuses it when x-forwarded-for has grown too large"},
    {"low_version", "HTTP/1.0, which proxies do not take unless istiod's PILOT_HTTP10 is true"},
    {"client timeout", "the client's own time limit ended before an answer came"},
    {"client pod gone", "the client's pod was gone before an answer came"},
    {"no client pod", "no pod of the client runs"},
    {"network unreachable", "DNS has addresses of an IP family alone that the client's pod is not in"},
    {"jwt_authn_access_denied", "its token was refused, or it brought none (RequestAuthentication)"},
    {"ext_authz_denied", "an external authorizer denied it"},
    {"ext_authz_error", "an external authorizer could not be asked"},
};

constexpr Words kResets[] = {
    {"remote_connection_failure", "the connection could not be made"},
    {"local_connection_failure", "the connection could not be begun"},
    {"connection_timeout", "nothing answered within the connect timeout"},
    {"connection_termination", "the connection was closed before an answer came"},
    {"remote_reset", "the other side reset the request"},
    {"remote_refused_stream_reset", "the other side refused the request"},
    {"local_reset", "given up here"},
    {"overflow", "a circuit breaker is open: too many requests or connections"},
    {"protocol_error", "the other side does not speak the protocol"},
};

template <size_t N>
std::string_view Find(const Words (&table)[N], std::string_view text) {
  const auto* const found =
      std::find_if(std::begin(table), std::end(table), [&](const Words& w) { return text.find(w.sign) != text.npos; });
  return found == std::end(table) ? std::string_view() : found->words;
}

std::string Spaced(std::string_view text) {
  std::string out(text);
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

std::string CloserWords(std::string_view closer);
std::string_view CloserOf(std::string_view closer);

// What a handshake or a connection came to; empty if neither the reason nor what was found says anything.
std::string Transport(std::string_view reason, std::string_view finding) {
  const std::string found = finding.empty() ? std::string() : fmt::format(": {}", finding);
  if (const std::string_view words = Find(kAlerts, reason); !words.empty()) return std::string(words) + found;
  if (finding.starts_with("listener ") && reason.find("Connection_reset_by_peer") != reason.npos) {
    // A proxy on the way closed it: what it said of its own end.
    const std::string words = CloserWords(finding);
    return fmt::format("the connection was reset in its handshake by {} ({}{}{})", CloserOf(finding), finding,
                       words.empty() ? "" : ", ", words);
  }
  if (!finding.empty()) {
    // Who is refused in TLS 1.3 learns it by a connection that closes.
    return (reason.find("CERTIFICATE_VERIFY_FAILED") != reason.npos
                ? "the caller does not believe its certificate"
                : "the other side refused the caller's certificate and closed the connection") +
           found;
  }
  if (reason.empty()) return {};
  if (const size_t at = reason.find("verify_cert_failed:"); at != reason.npos) {
    std::string_view why = reason.substr(at + 19);
    if (const size_t end = why.find(":TLS_error_end"); end != why.npos) why = why.substr(0, end);
    // "_X509_verify_cert:_certificate_verification_error_at_depth_2:_self-signed_certificate...": the last part says
    // it.
    constexpr std::string_view kDepth = "error_at_depth_";
    if (const size_t depth = why.find(kDepth); depth != why.npos) {
      if (const size_t colon = why.find(':', depth); colon != why.npos) why = why.substr(colon + 1);
    }
    while (why.starts_with('_')) why.remove_prefix(1);
    return "the caller does not believe its certificate: " + Spaced(why);
  }
  if (reason.find("CERTIFICATE_VERIFY_FAILED") != reason.npos) {
    return "the caller does not believe its certificate";
  }
  // Of Envoys before 1.32 the system's number alone.
  if (reason.find("Connection_refused") != reason.npos || reason == "delayed_connect_error:_111")
    return "connection refused: nothing listens there";
  if (reason == "delayed_connect_error:_110") return "the connection timed out";
  if (reason.find("Secret_is_not_supplied_by_SDS") != reason.npos) return "the proxy has no certificate of its own yet";
  return Spaced(reason);
}

std::string ResetWords(std::string_view reset) {
  std::string name(reset);
  std::replace(name.begin(), name.end(), ' ', '_');
  // Whole names: "connection_termination" is no "connection_timeout".
  for (const Words& each : kResets) {
    if (each.sign == name) return std::string(each.words);
  }
  return Spaced(reset);
}

// "listener A, cluster B at C: UF, connection timeout", as a proxy says of a connection that it closed: what its flag
// and reason mean. Empty: they say no more than they do.
std::string CloserWords(std::string_view closer) {
  constexpr Words kFlags[] = {{"UH", "no endpoint is there, or none is healthy"},
                              {"UF", "it could not connect to the endpoint that it chose"},
                              {"UO", "it is at its own limit: a circuit breaker is open, too many connections"},
                              {"NR", "no filter chain or cluster fits the connection"},
                              {"DT", "the connection reached its longest duration"}};
  const size_t colon = closer.rfind(": ");
  if (colon != closer.npos) {
    for (const Words& each : kFlags) {
      if (closer.substr(colon + 2) == each.sign) return std::string(each.words);
    }
  }
  constexpr std::string_view kFailed = ": UF, ";
  const size_t failed = closer.find(kFailed);
  if (failed == closer.npos) return {};
  std::string reason(closer.substr(failed + kFailed.size()));
  if (reason == "connection timeout") return "nothing answered within the connect timeout";
  std::replace(reason.begin(), reason.end(), ' ', '_');
  if (reason.find("Connection_reset_by_peer") != reason.npos)
    return "the other side reset the connection in its handshake";
  std::string words = Transport(reason, {});
  return words == Spaced(reason) ? std::string() : words;
}

// Whose proxy it was that closed a connection, by the cluster that it had chosen.
std::string_view CloserOf(std::string_view closer) {
  if (closer.find("cluster outbound|") != closer.npos || closer.find("cluster PassthroughCluster") != closer.npos ||
      closer.find("cluster BlackHoleCluster") != closer.npos)
    return "the caller's proxy";
  if (closer.find("cluster inbound|") != closer.npos || closer.find("cluster InboundPassthrough") != closer.npos)
    return "the proxy before the application";
  if (closer.find("cluster outbound_.") != closer.npos) return "a gateway";
  return "a proxy";
}

// "reason}" of such details.
std::string_view WithoutBrace(std::string_view text) {
  if (text.ends_with('}')) text.remove_suffix(1);
  return text;
}

// The reset's name inside "upstream_reset_before_response_started{name|...}".
std::string_view ResetIn(std::string_view details) {
  const size_t open = details.find('{');
  if (open == details.npos) return {};
  details.remove_prefix(open + 1);
  return details.substr(0, details.find_first_of("|}"));
}

// "rbac_access_denied_matched_policy[ns[sample]-policy[deny]-rule[0]]", also where a connection was closed by it;
// empty: it is something else. istiod: pilot/pkg/security/authz/builder, policyName.
std::string Denial(std::string_view details) {
  constexpr std::string_view kSign = "rbac_access_denied_matched_policy[";
  const size_t at = details.find(kSign);
  if (at == details.npos) return {};
  const std::string_view policy = details.substr(at + kSign.size());
  if (policy.starts_with("none")) return "no AuthorizationPolicy allows it";
  const auto part = [&](std::string_view key) -> std::string_view {
    const size_t begin = policy.find(key);
    if (begin == policy.npos) return {};
    const std::string_view rest = policy.substr(begin + key.size());
    return rest.substr(0, rest.find(']'));
  };
  const std::string_view ns = part("ns["), name = part("policy[");
  if (ns.empty() || name.empty()) return "an AuthorizationPolicy denies it";
  return fmt::format("AuthorizationPolicy {}/{} denies it, by its rule {} (counted from 0)", ns, name, part("rule["));
}

// "503", or of gRPC "gRPC status 14, Unavailable".
std::string AnswerWords(const FailureFacts& facts) {
  if (facts.grpc_status == envoysim::kNoGrpcStatus) return fmt::format("{}", facts.code);
  return fmt::format("gRPC status {}, {}", facts.grpc_status, envoysim::GrpcStatusName(facts.grpc_status));
}

}  // namespace

FailureFacts FactsOf(const envoysim::FailedTry& tried, std::string_view cluster) {
  return {tried.code,
          tried.flags,
          tried.server_details.empty() ? "" : "via_upstream",
          tried.transport_failure,
          cluster,
          tried.reason,
          tried.server_details,
          tried.tls_finding};
}

FailureFacts FactsOf(const envoysim::RequestRecord& record) {
  return {record.code, record.flags,          record.details,     record.transport_failure, record.cluster,
          {},          record.server_details, record.tls_finding, record.grpc_status};
}

std::string FailureInWords(const FailureFacts& facts) {
  // A proxy whose own limit ends a request had no one else to ask.
  if (facts.details == "upstream_reset_before_response_started{overflow}" && facts.closer.empty())
    return fmt::format("refused at {} own limit: {}", facts.cluster.empty() ? "that proxy's" : "the caller's",
                       ResetWords("overflow"));
  if (facts.details.empty() && facts.reset.empty() && facts.code != 0 && !facts.closer.empty()) {
    FailureFacts its = facts;
    its.details = facts.closer;
    its.closer = {};
    return FailureInWords(its);
  }
  if (facts.details == "via_upstream" && !facts.closer.empty() && facts.closer != "via_upstream") {
    FailureFacts its = facts;
    its.details = facts.closer;
    its.transport_failure = its.closer = its.cluster = its.tls_finding = {};
    return "the proxy before the application answered: " + FailureInWords(its);
  }
  if (std::string words = Denial(facts.details); !words.empty()) return words;
  // A client that speaks TLS itself has no proxy's reason, but its own.
  const std::string_view reason =
      facts.transport_failure.empty() && !facts.tls_finding.empty() ? facts.closer : facts.transport_failure;
  if (facts.code == 0 && !facts.closer.empty() && facts.tls_finding.empty()) {
    const std::string denial = Denial(facts.closer);
    const std::string words = CloserWords(facts.closer);
    return fmt::format("{} by {} ({}{}{})", Spaced(facts.details), CloserOf(facts.closer),
                       denial.empty() ? facts.closer : denial, words.empty() ? "" : ", ", words);
  }
  if (std::string words = Transport(reason, facts.tls_finding); !words.empty()) return words;
  if (!facts.reset.empty()) return ResetWords(facts.reset);
  // Of a try that its own proxy gave up: nobody answered 504.
  if (facts.details.empty() && (facts.flags & envoysim::kUpstreamRequestTimeout) != 0)
    return std::string(Find(kDetails, "upstream_per_try_timeout"));
  // What stands in its braces is no reset's name.
  const bool of_dns = facts.details.starts_with("dns_resolution_failure{");
  if (const std::string_view reset = ResetIn(facts.details); !reset.empty() && !of_dns) {
    const size_t bar = facts.details.find('|');
    if (bar != facts.details.npos) {
      if (std::string words = Transport(WithoutBrace(facts.details.substr(bar + 1)), {}); !words.empty()) return words;
    }
    return ResetWords(reset);
  }
  if (const std::string_view words = Find(kDetails, facts.details); !words.empty()) {
    return facts.cluster.empty() ? std::string(words) : fmt::format("{} ({})", words, facts.cluster);
  }
  if (facts.details == "via_upstream") return "the application answered " + AnswerWords(facts);
  if (!facts.details.empty()) return Spaced(facts.details);
  return facts.code == 0 ? "no answer" : "answered " + AnswerWords(facts);
}

}  // namespace wavetank::scenario
