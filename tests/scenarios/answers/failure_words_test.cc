// What Envoy writes about a failure, in words.
#include "scenarios/answers/failure_words.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::scenario {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Words(std::string_view details, std::string_view transport = {}, uint16_t code = 503) {
  return FailureInWords({code, envoysim::kNoFlags, details, transport, "outbound|80||a", {}});
}

TEST(FailureInWords, AnAlertIsNamedAndSaysWhoseFaultItIs) {
  const char* const alert = "TLS_error:|268436504:SSL_routines:OPENSSL_internal:TLSV1_ALERT_UNKNOWN_CA:TLS_error_end";
  EXPECT_THAT(Words("", alert), HasSubstr("TLS alert unknown_ca"));
  const std::string details =
      std::string("upstream_reset_before_response_started{remote_connection_failure|") + alert + "}";
  EXPECT_EQ(Words(details), Words("", alert)) << "the same reason inside the details";
}

TEST(FailureInWords, ACertificateThatIsNotBelievedSaysWhy) {
  const std::string words =
      Words("",
            "TLS_error:|268435581:SSL_routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED:verify_cert_failed:_X509_"
            "verify_cert:_"
            "certificate_verification_error_at_depth_2:_self-signed_certificate_in_certificate_chain:TLS_error_end");
  EXPECT_EQ(words, "the caller does not believe its certificate: self-signed certificate in certificate chain");
  EXPECT_THAT(
      Words("", "TLS_error:|1:verify_cert_failed:_SAN_matcher,_certificate_SANs_are_[spiffe://a]:TLS_error_end"),
      HasSubstr("SAN matcher"));
}

std::string WithFinding(std::string_view transport, std::string_view finding) {
  FailureFacts facts{503, envoysim::kNoFlags, "", transport, "outbound|80||a", {}};
  facts.tls_finding = finding;
  return FailureInWords(facts);
}

TEST(FailureInWords, WhatVerificationFoundIsSaidWhateverTheReleaseOfTheEnvoyPrints) {
  constexpr std::string_view kExpired = "the certificate of spiffe://a/ns/b/sa/c expired at 2023-09-02T00:00:00Z";
  const std::string told = "the caller does not believe its certificate: " + std::string(kExpired);
  constexpr char kOf126[] = "TLS_error:_268435581:SSL_routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED";
  EXPECT_EQ(WithFinding(kOf126, kExpired), told);
  EXPECT_EQ(WithFinding("TLS_error:|268435581:SSL_routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED:verify_cert_"
                        "failed:_X509_verify_cert:_certificate_verification_error_at_depth_0:_certificate_has_"
                        "expired:TLS_error_end",
                        kExpired),
            told);
}

TEST(FailureInWords, AnAlertIsFollowedByWhatTheOtherSideFound) {
  EXPECT_EQ(WithFinding("TLS_error:_268436501:SSL_routines:OPENSSL_internal:SSLV3_ALERT_CERTIFICATE_EXPIRED", "why"),
            "TLS alert certificate_expired: the caller's certificate is over: why");
}

TEST(FailureInWords, AConnectionThatTls13ClosesIsToldFromOneThatJustClosed) {
  FailureFacts facts{503, envoysim::kNoFlags, "upstream_reset_before_response_started{connection_termination}", "",
                     "outbound|80||a"};
  EXPECT_THAT(FailureInWords(facts), HasSubstr("closed before"));
  facts.tls_finding = "none was shown";
  EXPECT_EQ(FailureInWords(facts),
            "the other side refused the caller's certificate and closed the connection: none was shown");
}

TEST(FailureInWords, ResetsAreToldApartByTheirWholeNames) {
  EXPECT_THAT(Words("upstream_reset_before_response_started{connection_termination}"), HasSubstr("closed before"));
  EXPECT_THAT(Words("upstream_reset_before_response_started{connection_timeout}"), HasSubstr("connect timeout"));
  EXPECT_THAT(Words("upstream_reset_before_response_started{overflow}"), HasSubstr("circuit breaker"));
  EXPECT_EQ(FailureInWords({0, envoysim::kNoFlags, "", "", "", "connection termination"}),
            Words("upstream_reset_before_response_started{connection_termination}"))
      << "of a try alone";
}

TEST(FailureInWords, ARefusedConnectionIsOneByItsNumber) {
  constexpr char kRefused[] = "connection refused: nothing listens there";
  EXPECT_EQ(Words("upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_111}"),
            kRefused);
  EXPECT_EQ(FailureInWords({503, envoysim::kNoFlags, "", "delayed_connect_error:_111"}), kRefused);
  EXPECT_EQ(FailureInWords({503, envoysim::kNoFlags, "", "delayed_connect_error:_Connection_refused"}), kRefused);
}

TEST(FailureInWords, OfATryThatTheFarProxyAnsweredSaysWhyItDid) {
  envoysim::FailedTry tried;
  tried.code = 503;
  EXPECT_EQ(FailureInWords(FactsOf(tried, "outbound|80||a")), "answered 503");
  tried.server_details = "upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_111}";
  EXPECT_EQ(FailureInWords(FactsOf(tried, "outbound|80||a")),
            "the proxy before the application answered: connection refused: nothing listens there");
}

TEST(FailureInWords, OfATryThatItsOwnProxyGaveUpNamesTheTimeLimitAndNoAnswer) {
  envoysim::FailedTry tried;
  tried.code = 504;
  tried.flags = envoysim::kUpstreamRequestTimeout;
  EXPECT_EQ(FailureInWords(FactsOf(tried, "outbound|80||a")), "a try took longer than the route's perTryTimeout");
}

TEST(FailureInWords, AConnectionThatAProxyClosedSaysWhatTheProxysFlagMeans) {
  EXPECT_EQ(FailureInWords({0, envoysim::kNoFlags, "connection reset", "", "", "", "listener b, cluster c: UH"}),
            "connection reset by a proxy (listener b, cluster c: UH, no endpoint is there, or none is healthy)");
}

TEST(FailureInWords, AConnectionThatTheCallersProxyClosedSaysWhoseLimitOrWhatMetIt) {
  const auto closed = [](std::string_view closer) {
    return FailureInWords({0, envoysim::kNoFlags, "connection reset", "", "", "", closer});
  };
  EXPECT_EQ(closed("listener b, cluster outbound|80||a: UO"),
            "connection reset by the caller's proxy (listener b, cluster outbound|80||a: UO, it is at its own limit: a "
            "circuit breaker is open, too many connections)");
  EXPECT_EQ(closed("listener b, cluster outbound|80||a at 10.1.0.1:80: UF, connection timeout"),
            "connection reset by the caller's proxy (listener b, cluster outbound|80||a at 10.1.0.1:80: UF, connection "
            "timeout, nothing answered within the connect timeout)");
  EXPECT_THAT(closed("listener b, cluster outbound|80||a at 10.1.0.1:80: UF, delayed connect error: 111"),
              HasSubstr("nothing listens there"));
  EXPECT_EQ(closed("listener virtualInbound, cluster inbound|80|| at 10.1.0.1:80: this proxy ended"),
            "connection reset by the proxy before the application (listener virtualInbound, cluster inbound|80|| at "
            "10.1.0.1:80: this proxy ended)");
}

TEST(FailureInWords, ARequestThatIsBeyondTheCallersOwnLimitSaysSo) {
  EXPECT_EQ(Words("upstream_reset_before_response_started{overflow}"),
            "refused at the caller's own limit: a circuit breaker is open: too many requests or connections");
  EXPECT_EQ(FailureInWords({503, envoysim::kNoFlags, "via_upstream", "", "outbound|80||a", "",
                            "upstream_reset_before_response_started{overflow}"}),
            "the proxy before the application answered: refused at that proxy's own limit: a circuit breaker is open: "
            "too many requests or connections");
}

TEST(FailureInWords, WhatTheClientItselfDidIsToldInWords) {
  EXPECT_EQ(FailureInWords({0, envoysim::kNoFlags, "client pod gone"}),
            "the client's pod was gone before an answer came");
  EXPECT_EQ(FailureInWords({0, envoysim::kNoFlags, "client timeout"}),
            "the client's own time limit ended before an answer came");
}

TEST(FailureInWords, LocalRepliesNameTheirCluster) {
  EXPECT_THAT(Words("no_healthy_upstream"), HasSubstr("(outbound|80||a)"));
  EXPECT_THAT(Words("route_not_found", {}, 404), HasSubstr("no route matches"));
  EXPECT_EQ(Words("via_upstream", {}, 500), "the application answered 500");
}

TEST(FailureInWords, ADenialNamesThePolicy) {
  constexpr char kDenied[] = "rbac_access_denied_matched_policy[ns[sample]-policy[deny]-rule[0]]";
  EXPECT_EQ(Words(kDenied, {}, 403), "AuthorizationPolicy sample/deny denies it, by its rule 0 (counted from 0)");
  EXPECT_EQ(Words("rbac_access_denied_matched_policy[none]", {}, 403), "no AuthorizationPolicy allows it");
  EXPECT_EQ(FailureInWords({403, envoysim::kNoFlags, "via_upstream", "", "outbound|80||a", "", kDenied}),
            "the proxy before the application answered: " + Words(kDenied, {}, 403));
  EXPECT_EQ(FailureInWords({0, envoysim::kNoFlags, "connection reset", "", "", "", kDenied}),
            "connection reset by a proxy (" + Words(kDenied, {}, 403) + ")");
}

TEST(FailureInWords, WhatIsUnknownStandsAsItIsAndIsNeverEmpty) {
  EXPECT_EQ(Words("something_new"), "something new");
  EXPECT_EQ(Words("", {}, 418), "answered 418");
  EXPECT_EQ(Words("", {}, 0), "no answer");
  EXPECT_THAT(Words("upstream_reset_before_response_started{"), Not(testing::IsEmpty()));
}

TEST(FailureInWords, AHostThatIsLookedUpSaysWhatDnsSaid) {
  EXPECT_EQ(Words("dns_resolution_failure{cares_norecords:Domain_name_not_found}"),
            "the proxy looked its host up, and DNS knows no address of it (outbound|80||a)");
  EXPECT_EQ(Words("dns_resolution_failure{resolve_timeout}"),
            "the proxy looked its host up, and DNS did not answer in time (outbound|80||a)");
  EXPECT_EQ(Words("dns_resolution_failure{cares_failure:DNS_server_returned_general_failure}"),
            "the proxy looked its host up, and DNS failed (outbound|80||a)");
}

}  // namespace
}  // namespace wavetank::scenario
