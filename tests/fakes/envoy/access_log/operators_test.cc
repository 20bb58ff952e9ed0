// Operators of access logs whose values only Istio's proxies have, or that nobody can compare.
#include <gtest/gtest.h>

#include <string>

#include "fakes/envoy/access_log/access_log_format.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/tcp/http.h"

namespace wavetank::envoysim {
namespace {

constexpr EnvoyRelease kOfIstio118{26}, kOfIstio130{36};

std::string Line(std::string_view format, const AccessLogEntry& entry, EnvoyRelease release = {}) {
  const auto made =
      AccessLogFormat::MakeText(format, /*omit_empty=*/false, Extensions(ExtensionSet::kIstioProxy, release));
  EXPECT_TRUE(made.ok()) << made.status();
  std::string out;
  if (made.ok()) made->Write(entry, &out);
  return out;
}

AccessLogEntry Noted() {
  AccessLogEntry entry;
  entry.tls = entry.principals_noted = true;
  entry.client_uri = "spiffe://cluster.local/ns/a/sa/b";
  entry.server_uri = "spiffe://cluster.local/ns/c/sa/d";
  return entry;
}

TEST(LogOperatorsTest, FilterStateTellsThePrincipalsThatIstioNoted) {
  constexpr std::string_view kBoth =
      "%FILTER_STATE(io.istio.peer_principal:PLAIN)% %FILTER_STATE(io.istio.local_principal:PLAIN)%";
  EXPECT_EQ(Line(kBoth, Noted()), "spiffe://cluster.local/ns/a/sa/b spiffe://cluster.local/ns/c/sa/d");
  AccessLogEntry unnoted = Noted();
  unnoted.principals_noted = false;
  EXPECT_EQ(Line(kBoth, unnoted), "- -");
}

TEST(LogOperatorsTest, APrincipalIsAMessageSinceIstio124) {
  EXPECT_EQ(Line("%FILTER_STATE(io.istio.peer_principal)%", Noted(), kOfIstio118), "-");
  EXPECT_EQ(Line("%FILTER_STATE(io.istio.peer_principal)%", Noted(), kOfIstio130),
            "\"spiffe://cluster.local/ns/a/sa/b\"");
}

TEST(LogOperatorsTest, IdsOfConnectionsAreUuidsOfTheirOwn) {
  AccessLogEntry one, other;
  one.connection_id = 1;
  other.connection_id = 2;
  EXPECT_NE(Line("%STREAM_ID%", one), Line("%STREAM_ID%", other));
  EXPECT_EQ(Line("%STREAM_ID%", one).size(), 36u);
}

TEST(LogOperatorsTest, TheStreamOfARequestHasTheRequestsId) {
  RequestSpec spec;
  AccessLogEntry entry;
  entry.request = &spec;
  entry.request_id = 7;
  EXPECT_EQ(Line("%STREAM_ID%", entry), Line("%REQ(X-REQUEST-ID)%", entry));
}

TEST(LogOperatorsTest, AnIdOfASessionHas32Bytes) {
  AccessLogEntry entry;
  EXPECT_EQ(Line("%DOWNSTREAM_TLS_SESSION_ID%", entry), "-");
  entry.session.number = 7;
  EXPECT_EQ(Line("%DOWNSTREAM_TLS_SESSION_ID%", entry).size(), 64u);
}

}  // namespace
}  // namespace wavetank::envoysim
