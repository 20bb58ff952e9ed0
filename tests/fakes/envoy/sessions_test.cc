// TLS sessions that are resumed: what a client keeps of them, and what a server makes of one.
// Envoy: source/common/tls/client_context_impl.cc, newSsl; BoringSSL: ssl/ssl_session.cc
#include "fakes/envoy/tls/session_cache.h"
#include "fakes/envoy/tls/tls.h"
#include "gtest/gtest.h"
#include "tests/fakes/envoy/lab.h"

namespace wavetank::envoysim::lab {
namespace {

constexpr Time kNow = Time{} + 1h;

TlsOutcome Given(uint64_t server, bool once) {
  TlsOutcome out;
  out.ok = true;
  out.session = {server, server, once, kNow + 2h};
  return out;
}

TEST(SessionTest, ATicketOfTls13IsUsedOnce) {
  TlsSessionCache cache(1);
  cache.Keep(Given(7, /*once=*/true));
  EXPECT_EQ(cache.Take(kNow).server, 7u);
  EXPECT_EQ(cache.Take(kNow).server, 0u);
}

TEST(SessionTest, TwoTicketsComeAtOnceForWhoKeepsThem) {
  TlsSessionCache cache(2);
  cache.Keep(Given(7, /*once=*/true));
  EXPECT_EQ(cache.Take(kNow).server, 7u);
  EXPECT_EQ(cache.Take(kNow).server, 7u);
  EXPECT_EQ(cache.Take(kNow).server, 0u);
}

TEST(SessionTest, AnOlderSessionStaysUntilANewerOneTakesItsPlace) {
  TlsSessionCache cache(1);
  cache.Keep(Given(7, /*once=*/false));
  EXPECT_EQ(cache.Take(kNow).server, 7u);
  EXPECT_EQ(cache.Take(kNow).server, 7u);
  cache.Keep(Given(8, /*once=*/false));
  EXPECT_EQ(cache.Take(kNow).server, 8u);
}

TEST(SessionTest, WhatIsTooOldIsNotOffered) {
  TlsSessionCache cache(1);
  cache.Keep(Given(7, /*once=*/false));
  EXPECT_EQ(cache.Take(kNow + 2h).server, 0u);
}

// A client and a server of one CA, who have met.
struct Acquainted {
  Acquainted() {
    context.validates = true;
    context.lowest_version = context.highest_version = 3;
    context.require_client_certificate = true;
    static_cast<TlsParty&>(server) = {std::make_shared<TlsContext>(context),
                                      ca.Identity("spiffe://a/server").certificate, ca.Root().trusted_ca, nullptr};
    server.sessions = 7;
    client = std::make_shared<TlsClient>();
    static_cast<TlsParty&>(*client) = {server.context, ca.Identity("spiffe://a/client", 2h).certificate,
                                       ca.Root().trusted_ca, nullptr};
    hello.kind = FirstFlight::Kind::kTls;
    hello.tls = client;
    hello.session = sessions.Handshake(hello, server, kNow).client.session;
  }
  LabCa ca{"mesh"};
  TlsContext context;
  TlsServer server;
  std::shared_ptr<TlsClient> client;
  FirstFlight hello;
  TlsSessions sessions;
};

TEST(SessionTest, AServerResumesWhatItGave) {
  Acquainted both;
  EXPECT_EQ(both.sessions.Handshake(both.hello, both.server, kNow).client.resumed.server, 7u);
  both.server.sessions = 8;
  EXPECT_EQ(both.sessions.Handshake(both.hello, both.server, kNow).client.resumed.server, 0u);
}

TEST(SessionTest, AServerLooksNotAgainAtTheCertificateOfWhoResumes) {
  Acquainted both;
  const Time expired = kNow + 3h;
  EXPECT_TRUE(both.sessions.Handshake(both.hello, both.server, expired).server_ok);
  both.hello.session = {};
  EXPECT_FALSE(both.sessions.Handshake(both.hello, both.server, expired).server_ok);
}

TEST(SessionTest, AServerWithoutTicketsGivesNoneUnderTls13) {
  Acquainted both;
  both.context.gives_tickets = false;
  both.server.context = std::make_shared<TlsContext>(both.context);
  both.hello.session = {};
  EXPECT_EQ(both.sessions.Handshake(both.hello, both.server, kNow).client.session.server, 0u);
}

}  // namespace
}  // namespace wavetank::envoysim::lab
