// Two networks, mutual TLS and a gateway by SNI: docs/real-envoy.md 1, 4 and 8.
#include "tests/fakes/envoy/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wavetank::envoysim::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(MeshTest, RequestsSplitEvenlyAndRemoteOnesPassOneGatewayByServerName) {
  Mesh mesh;
  mesh.Start();
  int v2 = 0;
  for (int i = 0; i < 1000; ++i) {
    const Lab::Result r = mesh.Ask(/*keep_alive=*/i % 2 == 0);
    ASSERT_EQ(r.record.code, 200) << r.details;
    EXPECT_EQ(r.flags, "-");
    EXPECT_EQ(r.details, "via_upstream");
    if (r.server == "v1") {
      ASSERT_EQ(r.hops.size(), 1u) << "straight to the server's sidecar";
      continue;
    }
    ++v2;
    EXPECT_EQ(r.server, "v2");
    EXPECT_EQ(r.upstream, kGatewayAddress);
    ASSERT_EQ(r.hops.size(), 2u);
    EXPECT_EQ(r.hop_snis[0], kHelloSni);
    EXPECT_FALSE(r.hops[0].tls) << "the gateway does not terminate";
    EXPECT_EQ(r.hops[0].to, mesh.gateway->workload);
    EXPECT_TRUE(r.hops[1].tls);
    EXPECT_EQ(r.hops[1].to, mesh.v2->workload);
    EXPECT_TRUE(r.hops[1].client_verified);
    EXPECT_TRUE(r.hops[1].server_verified);
  }
  ExpectBinomial(v2, 1000, 0.5);
  EXPECT_EQ(mesh.apps["v2"]->last_source.ip, *IpAddress::Parse("127.0.0.6"));
}

TEST(MeshTest, FewConnectionsServeManySequentialRequests) {
  Mesh mesh;
  mesh.Start();
  for (int i = 0; i < 200; ++i) mesh.Ask();
  EXPECT_LE(mesh.ClientCounter("upstream_cx_total"), 4u);
  EXPECT_EQ(mesh.ClientCounter("upstream_rq_total"), 200u);
}

TEST(MeshTest, PooledConnectionThroughTheGatewayStaysOnOnePod) {
  Mesh::Options o;
  o.with_v1 = false;
  o.v2_pods = 2;
  Mesh mesh(o);
  mesh.Start();
  for (int i = 0; i < 200; ++i) mesh.Ask();
  const int first = mesh.apps["v2"]->served, second = mesh.apps["v2-1"]->served;
  EXPECT_EQ(first + second, 200);
  EXPECT_TRUE(first == 0 || second == 0) << first << " and " << second;
}

TEST(MeshTest, ParallelRequestsThroughTheGatewaySpreadByConnection) {
  Mesh::Options o;
  o.with_v1 = false;
  o.v2_pods = 2;
  Mesh mesh(o);
  mesh.apps["v2"]->delay = mesh.apps["v2-1"]->delay = 50ms;
  mesh.Start();
  std::vector<std::shared_ptr<Lab::Result>> results;
  for (int i = 0; i < 40; ++i) results.push_back(mesh.Begin());
  mesh.lab.RunFor(1s);
  for (const auto& r : results) EXPECT_EQ(r->record.code, 200);
  EXPECT_EQ(mesh.ClientCounter("upstream_cx_total"), 40u);
  EXPECT_EQ(mesh.apps["v2"]->served + mesh.apps["v2-1"]->served, 40);
  EXPECT_GE(mesh.apps["v2"]->served, 8);
  EXPECT_GE(mesh.apps["v2-1"]->served, 8);
}

TEST(MeshTest, FirstCopyOfAnAddressWinsWithinOneAssignment) {
  Mesh mesh;
  mesh.Start();
  mesh.Push({{"10.1.0.11:5000", 1, "", true}, {"10.1.0.11:5000", 9, "", false}});
  ASSERT_EQ(mesh.sleep->envoy->Endpoints().size(), 1u);
  EXPECT_EQ(mesh.sleep->envoy->Endpoints()[0].weight, 1u);
  EXPECT_TRUE(mesh.sleep->envoy->Endpoints()[0].tls);
  EXPECT_EQ(mesh.Ask().server, "v1");
}

// --- TLS

// Sleep's connections to helloworld show no certificate; `more`: of their CommonTlsContext.
void ConnectWithoutACertificate(Mesh& mesh, const std::string& more = "") {
  const std::string tls = R"({"name": "envoy.transport_sockets.tls", "typed_config": {
    "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", "sni": ")" +
                          std::string(kHelloSni) + R"(", "common_tls_context": {"alpn_protocols": ["istio"], )" + more +
                          R"(
    "validation_context_sds_secret_config": {"name": "ROOTCA", "sds_config": {"ads": {}, "resource_api_version": "V3"}}}}})";
  mesh.sleep->ads->world[XdsType::kCds][std::string(kHelloCluster)] =
      EdsCluster(kHelloCluster, "\"transport_socket\": " + tls);
}

TEST(MeshTlsTest, CertificateOfAnotherCaIsRefusedByTheServerAndShownToTheClient) {
  Mesh mesh;
  mesh.Identify(*mesh.sleep, kSleepId, &mesh.foreign);
  mesh.Start();
  const Lab::Result r = mesh.Ask();
  EXPECT_EQ(r.record.code, 503);
  EXPECT_EQ(r.flags, "URX,UF");
  EXPECT_EQ(r.record.attempts, 3u);
  EXPECT_EQ(r.body,
            "upstream connect error or disconnect/reset before headers. retried and the latest reset reason: remote "
            "connection failure");
  EXPECT_THAT(r.details, HasSubstr("upstream_reset_before_response_started{remote_connection_failure|TLS_error:"));
  EXPECT_THAT(r.details, HasSubstr("TLSV1_ALERT_UNKNOWN_CA"));
  EXPECT_EQ(mesh.ClientCounter("upstream_cx_connect_fail"), 3u);
  EXPECT_EQ(mesh.ClientCounter("ssl.connection_error"), 3u);
  EXPECT_EQ(mesh.ClientCounter("ssl.handshake"), 0u);
  EXPECT_EQ(mesh.v1->envoy->counter("listener.0.0.0.0_15006.ssl.fail_verify_error") +
                mesh.v2->envoy->counter("listener.0.0.0.0_15006.ssl.fail_verify_error"),
            3u);
}

TEST(MeshTlsTest, MissingClientCertificateIsCountedByTheServer) {
  Mesh::Options o;
  o.retry = false;
  Mesh mesh(o);
  // A context without a certificate of its own.
  ConnectWithoutACertificate(mesh);
  mesh.Start();
  for (int i = 0; i < 10; ++i) {
    const Lab::Result r = mesh.Ask();
    EXPECT_EQ(r.record.code, 503);
    EXPECT_EQ(r.flags, "UF");
    EXPECT_THAT(r.details, HasSubstr("HANDSHAKE_FAILURE")) << "the alert of TLS 1.2, a client's highest by default";
  }
  EXPECT_EQ(mesh.v1->envoy->counter("listener.0.0.0.0_15006.ssl.fail_verify_no_cert") +
                mesh.v2->envoy->counter("listener.0.0.0.0_15006.ssl.fail_verify_no_cert"),
            10u);
}

TEST(MeshTlsTest, UnderTls13ARefusedClientIsConnectedAndLosesItsRequest) {
  Mesh mesh{Mesh::Options()};
  ConnectWithoutACertificate(mesh, R"("tls_params": {"tls_maximum_protocol_version": "TLSv1_3"},)");
  mesh.Start();
  for (int i = 0; i < 10; ++i) {
    const Lab::Result r = mesh.Ask();
    EXPECT_EQ(r.record.code, 503);
    EXPECT_EQ(r.flags, "UC") << "and Istio's conditions do not retry it";
    EXPECT_THAT(r.details, HasSubstr("connection_termination"));
  }
  EXPECT_EQ(mesh.v1->envoy->counter("listener.0.0.0.0_15006.ssl.fail_verify_no_cert") +
                mesh.v2->envoy->counter("listener.0.0.0.0_15006.ssl.fail_verify_no_cert"),
            10u);
}

TEST(MeshTlsTest, WrongServerNameFailsAtTheClientOncePerTry) {
  Mesh::Options o;
  o.expected_san = "spiffe://cluster.local/ns/sample/sa/somebody-else";
  Mesh mesh(o);
  mesh.Start();
  const Lab::Result r = mesh.Ask();
  EXPECT_EQ(r.record.code, 503);
  EXPECT_EQ(r.flags, "URX,UF");
  EXPECT_THAT(r.details,
              HasSubstr("CERTIFICATE_VERIFY_FAILED:verify_cert_failed:_SAN_matcher,_certificate_SANs_are_["));
  EXPECT_EQ(mesh.ClientCounter("ssl.fail_verify_san"), 3u);
  EXPECT_EQ(mesh.ClientCounter("ssl.connection_error"), 0u);
  mesh.lab.RunFor(10ms);
  EXPECT_EQ(mesh.v1->envoy->counter("listener.0.0.0.0_15006.ssl.connection_error") +
                mesh.v2->envoy->counter("listener.0.0.0.0_15006.ssl.connection_error"),
            3u);
}

TEST(MeshTlsTest, OneServerWithAWrongIdentityIsRetriedElsewhere) {
  Mesh mesh;
  mesh.Identify(*mesh.v2, "spiffe://cluster.local/ns/sample/sa/thief");
  mesh.Start();
  uint32_t retries = 0;
  for (int i = 0; i < 40; ++i) {
    const Lab::Result r = mesh.Ask();
    EXPECT_EQ(r.record.code, 200);
    EXPECT_EQ(r.server, "v1");
    retries += r.record.attempts - 1;
  }
  EXPECT_GT(retries, 5u);
  EXPECT_EQ(mesh.ClientCounter("ssl.fail_verify_san"), retries);
}

TEST(MeshTlsTest, ExpiredServerCertificateIsRefusedAtVirtualTime) {
  Mesh::Options o;
  o.retry = false;
  Mesh mesh(o);
  mesh.v1->secrets->Set("default", mesh.ca.Identity(kHelloId, 10min));
  mesh.v2->secrets->Set("default", mesh.ca.Identity(kHelloId, 10min));
  mesh.Start();
  EXPECT_EQ(mesh.Ask().record.code, 200);
  mesh.lab.RunFor(11min);
  mesh.sleep->envoy->Stop(Envoy::StopKind::kKill);  // new connections only
  mesh.sleep->envoy->Start();
  mesh.lab.RunFor(1s);
  const Lab::Result r = mesh.Ask();
  EXPECT_EQ(r.record.code, 503);
  EXPECT_EQ(r.flags, "UF");
  EXPECT_THAT(r.details, HasSubstr("CERTIFICATE_VERIFY_FAILED"));
  EXPECT_THAT(r.details, HasSubstr("expired"));
}

// What verification found is told beside Envoy's words, of which those of Istio 1.18's Envoy say nothing.
class TlsFindingTest : public ::testing::Test {
 protected:
  static Mesh::Options Istio118() {
    Mesh::Options o;
    o.retry = false;
    o.plane.release = EnvoyRelease{26};
    return o;
  }
  void StartAnew(Mesh& mesh) {  // new connections only
    mesh.sleep->envoy->Stop(Envoy::StopKind::kKill);
    mesh.sleep->envoy->Start();
    mesh.lab.RunFor(1s);
  }
};

TEST_F(TlsFindingTest, AnExpiredCertificateSaysWhoseItWasAndSinceWhen) {
  Mesh mesh(Istio118());
  mesh.v1->secrets->Set("default", mesh.ca.Identity(kHelloId, 10min));
  mesh.v2->secrets->Set("default", mesh.ca.Identity(kHelloId, 10min));
  mesh.Start();
  mesh.lab.RunFor(11min);
  StartAnew(mesh);
  const Lab::Result r = mesh.Ask();
  EXPECT_THAT(r.finding, HasSubstr("the certificate of spiffe://cluster.local/ns/sample/sa/helloworld expired at 20"));
  EXPECT_EQ(r.failure, "TLS_error:_268435581:SSL_routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED")
      << "as this release prints it";
  EXPECT_EQ(mesh.Ask().finding, r.finding) << "a second later the same words";
}

TEST_F(TlsFindingTest, ARootThatTheServerDoesNotTrustIsNamedToTheClientsAnswers) {
  Mesh mesh(Istio118());
  mesh.Identify(*mesh.sleep, kSleepId, &mesh.foreign);
  mesh.Start();
  const Lab::Result r = mesh.Ask();
  EXPECT_THAT(r.failure, HasSubstr("TLSV1_ALERT_UNKNOWN_CA"));
  EXPECT_THAT(r.finding, HasSubstr("the root of the certificate of spiffe://cluster.local/ns/sample/sa/sleep, "));
  EXPECT_THAT(r.finding, HasSubstr(", is not among the trusted ones ("));
}

TEST_F(TlsFindingTest, AServerInPlainTextIsToldAsEachReleasePrintsIt) {
  const auto failure = [](EnvoyRelease release) {
    Mesh::Options o = Istio118();
    o.plane.release = release;
    Mesh mesh(o);
    mesh.lab.AddApp("plain", "10.1.0.20", 5000);
    mesh.Start();
    mesh.Push({{"10.1.0.20:5000", 1, "", true}});
    return mesh.Ask().failure;
  };
  EXPECT_EQ(failure(EnvoyRelease{26}), "TLS_error:_268435703:SSL_routines:OPENSSL_internal:WRONG_VERSION_NUMBER");
  EXPECT_EQ(failure(EnvoyRelease{40}),
            "TLS_error:|268435703:SSL_routines:OPENSSL_internal:WRONG_VERSION_NUMBER:TLS_error_end");
}

TEST_F(TlsFindingTest, TriesThatWereRetriedElsewhereKeepTheirFindings) {
  Mesh::Options o = Istio118();
  o.retry = true;
  Mesh mesh(o);
  mesh.Identify(*mesh.v2, "spiffe://cluster.local/ns/sample/sa/thief");
  mesh.Start();
  int told = 0;
  for (int i = 0; i < 20; ++i) {
    mesh.sleep->client->Send(*SocketAddress::Parse(std::string(kVip)), mesh.spec, {}, [&](const RequestRecord& record) {
      EXPECT_EQ(record.tls_finding, "") << "the last try was answered";
      if (record.failed_tries == nullptr) return;
      for (const FailedTry& each : *record.failed_tries) {
        EXPECT_EQ(each.tls_finding,
                  "it is of spiffe://cluster.local/ns/sample/sa/thief, and spiffe://cluster.local/ns/sample/sa/"
                  "helloworld is expected");
        ++told;
      }
    });
    mesh.lab.RunFor(100ms);
  }
  EXPECT_GT(told, 2);
}

TEST_F(TlsFindingTest, UnderTls13TheClosedConnectionSaysWhyTheServerHungUp) {
  Mesh mesh(Istio118());
  ConnectWithoutACertificate(mesh, R"("tls_params": {"tls_maximum_protocol_version": "TLSv1_3"},)");
  mesh.Start();
  const Lab::Result r = mesh.Ask();
  EXPECT_EQ(r.flags, "UC");
  EXPECT_EQ(r.failure, "");
  EXPECT_EQ(r.finding, "none was shown");
}

TEST(MeshTlsTest, RotatedCertificateServesNewConnectionsAndLeavesOldOnes) {
  Mesh mesh;
  mesh.Start();
  for (int i = 0; i < 50; ++i) mesh.Ask();
  const uint64_t before = mesh.ClientCounter("upstream_cx_total");
  // To an identity that the client does not expect.
  mesh.Identify(*mesh.v1, "spiffe://cluster.local/ns/sample/sa/thief");
  mesh.Identify(*mesh.v2, "spiffe://cluster.local/ns/sample/sa/thief");
  mesh.lab.RunFor(100ms);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(mesh.Ask().record.code, 200);
  EXPECT_EQ(mesh.ClientCounter("upstream_cx_total"), before);
  mesh.sleep->envoy->Stop(Envoy::StopKind::kKill);
  mesh.sleep->envoy->Start();
  mesh.lab.RunFor(1s);
  EXPECT_EQ(mesh.Ask().record.code, 503);
}

TEST(MeshTlsTest, WithoutSecretsNothingListensAndWithThemItDoes) {
  Mesh mesh;
  Lab::Proxy& late = mesh.lab.AddProxy("late", "10.1.0.12");
  late.ads->automatic = true;
  late.ads->world[XdsType::kCds]["inbound|5000||"] = OriginalDstCluster("inbound|5000||", "127.0.0.6");
  late.ads->world[XdsType::kLds]["virtualInbound"] = VirtualInbound(5000, "inbound|5000||");
  late.envoy->Start();
  mesh.lab.RunFor(60s);
  EXPECT_FALSE(late.envoy->live());
  EXPECT_TRUE(late.envoy->ListenerNames().empty());
  mesh.Identify(late, kHelloId);
  mesh.lab.RunFor(10ms);
  EXPECT_TRUE(late.envoy->live());
}

TEST(MeshTlsTest, PlainTextToAStrictServerFindsNoFilterChain) {
  Mesh mesh;
  mesh.Start();
  RequestSpec spec;
  spec.authority = "10.2.0.11:5000";
  Lab::Proxy& outside = mesh.lab.AddProxy("outside", "10.3.0.1");
  mesh.lab.network.pod("10.3.0.1").envoy = nullptr;
  const Lab::Result r = mesh.lab.Ask(outside, "10.2.0.11:5000", spec);
  EXPECT_EQ(r.record.code, 0);
  EXPECT_EQ(r.details, "connection reset");
  EXPECT_EQ(mesh.v2->envoy->counter("listener.0.0.0.0_15006.no_filter_chain_match"), 1u);
}

TEST(MeshTlsTest, PlainTextToAPermissiveServerIsServed) {
  Mesh::Options o;
  o.strict = false;
  Mesh mesh(o);
  mesh.Start();
  RequestSpec spec;
  spec.authority = "10.2.0.11:5000";
  Lab::Proxy& outside = mesh.lab.AddProxy("outside", "10.3.0.1");
  mesh.lab.network.pod("10.3.0.1").envoy = nullptr;
  EXPECT_EQ(mesh.lab.Ask(outside, "10.2.0.11:5000", spec).server, "v2");
  EXPECT_EQ(mesh.Ask().record.code, 200) << "and TLS as well";
}

// --- the gateway

TEST(GatewayTest, UnknownServerNameFindsNoCluster) {
  Mesh::Options o;
  o.with_v1 = false;
  o.retry = false;
  o.sni = "outbound_.5000_._.nothing.sample.svc.cluster.local";
  Mesh mesh(o);
  mesh.Start();
  const Lab::Result r = mesh.Ask();
  EXPECT_EQ(r.record.code, 503);
  EXPECT_EQ(r.flags, "UF");
  EXPECT_EQ(mesh.gateway->envoy->counter("tcp.BlackHoleCluster.downstream_cx_no_route"), 1u);
  EXPECT_EQ(mesh.gateway->envoy->counter("listener.0.0.0.0_15443.no_filter_chain_match"), 0u);
}

TEST(GatewayTest, ServerNameOutsideItsDomainFindsNoFilterChain) {
  Mesh::Options o;
  o.with_v1 = false;
  o.retry = false;
  o.sni = "helloworld.example.com";
  Mesh mesh(o);
  mesh.Start();
  EXPECT_EQ(mesh.Ask().flags, "UF");
  EXPECT_EQ(mesh.gateway->envoy->counter("listener.0.0.0.0_15443.no_filter_chain_match"), 1u);
}

TEST(GatewayTest, WithoutIstiosAlpnFindsNoFilterChain) {
  Mesh::Options o;
  o.with_v1 = false;
  o.retry = false;
  Mesh mesh(o);
  mesh.sleep->ads->world[XdsType::kCds][std::string(kHelloCluster)] =
      EdsCluster(kHelloCluster, "\"transport_socket\": " + UpstreamTls(kHelloSni, kHelloId, {"h2"}));
  mesh.Start();
  EXPECT_EQ(mesh.Ask().flags, "UF");
  EXPECT_EQ(mesh.gateway->envoy->counter("listener.0.0.0.0_15443.no_filter_chain_match"), 1u);
}

TEST(GatewayTest, NoPodBehindItResetsTheConnection) {
  Mesh mesh;
  mesh.gateway->ads->world[XdsType::kEds][std::string(kHelloSni)] = Assignment(kHelloSni, std::vector<EndpointSpec>{});
  mesh.Start();
  int retried = 0;
  for (int i = 0; i < 20; ++i) {
    const Lab::Result r = mesh.Ask();
    EXPECT_EQ(r.server, "v1");
    retried += r.record.attempts > 1;
  }
  EXPECT_GT(retried, 2);
}

// --- endpoints go (docs/real-envoy.md 4)

TEST(EndpointRemovalTest, RequestsInFlightEndWellAndNewOnesGoElsewhere) {
  Mesh mesh;
  mesh.apps["v1"]->delay = mesh.apps["v2"]->delay = 3s;
  mesh.Start();
  std::vector<std::shared_ptr<Lab::Result>> flight;
  for (int i = 0; i < 20; ++i) flight.push_back(mesh.Begin());
  mesh.lab.RunFor(100ms);
  mesh.Push({Mesh::Local()});
  mesh.apps["v1"]->delay = {};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(mesh.Ask().server, "v1");
  mesh.lab.RunFor(4s);
  int v2 = 0;
  for (const auto& r : flight) {
    EXPECT_EQ(r->record.code, 200);
    v2 += r->server == "v2";
  }
  EXPECT_GT(v2, 2);
}

TEST(EndpointRemovalTest, EmptyAssignmentAnswersNoHealthyUpstream) {
  Mesh mesh;
  mesh.Start();
  mesh.Push({});
  const Lab::Result r = mesh.Ask();
  EXPECT_EQ(r.record.code, 503);
  EXPECT_EQ(r.flags, "UH");
  EXPECT_EQ(r.details, "no_healthy_upstream");
  EXPECT_EQ(r.body, "no healthy upstream");
  EXPECT_EQ(r.record.attempts, 1u);
}

class TcpTest : public ::testing::Test {
 protected:
  TcpTest() {
    mesh.sleep->ads->world[XdsType::kLds]["0.0.0.0_5000"] =
        TcpListenerTo("0.0.0.0_5000", "0.0.0.0:5000", kHelloCluster);
    mesh.sleep->ads->world[XdsType::kCds][std::string(kHelloCluster)] =
        EdsCluster(kHelloCluster, SocketMatches(kHelloSni, kHelloId));
    mesh.Start();
  }
  struct Answer {
    bool done = false;
    uint16_t code = 0;
    std::string server;
  };
  Answer AskOn(AppClient::Session& session) {
    auto answer = std::make_shared<Answer>();
    session.Send(mesh.spec, [this, answer](const RequestRecord& r) {
      *answer = {true, r.code, mesh.lab.Name(r.server)};
    });
    mesh.lab.RunFor(100ms);
    return *answer;
  }
  std::unique_ptr<AppClient::Session> Open() {
    return mesh.sleep->client->OpenSession(*SocketAddress::Parse(std::string(kVip)), FirstFlight::Kind::kHttp1);
  }
  Mesh mesh;
};

TEST_F(TcpTest, OneConnectionStaysWithOneHost) {
  auto session = Open();
  std::set<std::string> servers;
  for (int i = 0; i < 100; ++i) servers.insert(AskOn(*session).server);
  EXPECT_EQ(servers.size(), 1u);
}

TEST_F(TcpTest, ConnectionsAreBalancedOneByOne) {
  std::map<std::string, int> servers;
  for (int i = 0; i < 40; ++i) ++servers[AskOn(*Open()).server];
  EXPECT_EQ(servers["v1"], 20);
  EXPECT_EQ(servers["v2"], 20);
}

TEST_F(TcpTest, AConnectionThatTlsEndsTellsItsClientWhatWasWrongWithWhichCertificate) {
  for (Lab::Proxy* server : {mesh.v1, mesh.v2}) mesh.Identify(*server, "spiffe://elsewhere/ns/sample/sa/helloworld");
  mesh.lab.RunFor(100ms);
  auto session = Open();
  std::string closer;
  session->Send(mesh.spec, [&](const RequestRecord& r) { closer = r.server_details; });
  mesh.lab.RunFor(100ms);
  EXPECT_THAT(closer, HasSubstr("listener 0.0.0.0_5000, cluster outbound|5000||helloworld"));
  EXPECT_THAT(closer, HasSubstr("whose trust domain elsewhere is not the expected cluster.local"));
}

TEST_F(TcpTest, ConnectionsOutliveTheRemovalOfTheirHost) {
  std::vector<std::unique_ptr<AppClient::Session>> sessions;
  std::vector<std::string> servers;
  for (int i = 0; i < 6; ++i) {
    sessions.push_back(Open());
    servers.push_back(AskOn(*sessions.back()).server);
  }
  EXPECT_NE(std::find(servers.begin(), servers.end(), "v2"), servers.end());
  mesh.Push({Mesh::Local()});
  mesh.lab.RunFor(10min);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(AskOn(*sessions[i]).server, servers[i]);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(AskOn(*Open()).server, "v1");
}

TEST_F(TcpTest, WithoutAHostTheConnectionCloses) {
  mesh.Push({});
  auto session = Open();
  EXPECT_EQ(AskOn(*session).code, 0);
  EXPECT_FALSE(session->open());
}

TEST_F(TcpTest, WhatNoListenerKnowsPassesThrough) {
  mesh.lab.AddApp("legacy", "10.4.0.1", 9000);
  RequestSpec spec;
  spec.authority = "legacy";
  const Lab::Result r = mesh.lab.Ask(*mesh.sleep, "10.4.0.1:9000", spec);
  EXPECT_EQ(r.server, "legacy");
}

}  // namespace
}  // namespace wavetank::envoysim::lab
