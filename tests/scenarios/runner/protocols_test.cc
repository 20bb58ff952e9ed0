// What a flow's clients speak: HTTP/1.0, HTTP/1.1, HTTP/2, gRPC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/runner/hello_mesh.h"

namespace wavetank::scenario {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST(Grpc, IsBalancedByRequestWithSidecarsAndByConnectionWithout) {
  const auto with = AskHello({}, "protocol: grpc, path: /hello.Greeter/SayHello");
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(with->failed, 0);
  EXPECT_THAT(with->by_pod, SizeIs(2));
  const auto without = AskHello({.sidecars = false}, "protocol: grpc, path: /hello.Greeter/SayHello");
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->failed, 0);
  EXPECT_THAT(without->by_pod, SizeIs(1)) << "kube-proxy chooses for the connection, and it is kept";
}

TEST(Grpc, ReachesNobodyBehindAPortThatSaysHttp1) {
  const auto result = AskHello({.port = "name: http, port: 5000"}, "protocol: grpc");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failed, 40);
  EXPECT_EQ(result->by_code, (std::map<int, int64_t>{{503, 40}}));
}

TEST(Grpc, GoesThroughAPortWhoseProtocolIsSniffed) {
  const auto result = AskHello({.port = "port: 5000"}, "protocol: grpc");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failed, 0);
}

TEST(Grpc, ErrorsOfApplicationsAreStatusesThatCountAsHttps) {
  const auto result =
      AskHello({}, "protocol: grpc",
               "{name: s, do: [{behaviour: {app: hello, namespace: sample, answers: [{code: 403, share: "
               "100%}]}}], then: [{flow: f, requests: 20}]}");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failed, 20);
  EXPECT_EQ(result->by_code, (std::map<int, int64_t>{{403, 20}}));
  ASSERT_THAT(result->failures, testing::Not(testing::IsEmpty()));
  EXPECT_THAT(result->failures[0].cause, HasSubstr("the application answered gRPC status 7, PermissionDenied"));
}

TEST(Http2, IsTranslatedForAPortThatSaysHttp1) {
  const auto result = AskHello({.port = "name: http, port: 5000"}, "protocol: http2");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failed, 0);
  EXPECT_THAT(result->by_pod, SizeIs(2));
}

TEST(Http10, IsToldToUpgradeBySidecarsAndServedWithout) {
  const auto with = AskHello({.port = "name: http, port: 5000"}, "protocol: http1.0");
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(with->by_code, (std::map<int, int64_t>{{426, 40}}));
  // The client's sidecar sees no HTTP that it knows, and passes it on; the server's says no.
  ASSERT_THAT(with->failures, SizeIs(1));
  EXPECT_THAT(with->failures[0].cause, HasSubstr("HTTP/1.0, which proxies do not take"));
  const auto without = AskHello({.port = "name: http, port: 5000", .sidecars = false}, "protocol: http1.0");
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->failed, 0);
}

TEST(Http10, IsServedIfIstiodIsToldTo) {
  const auto result = AskHello({.port = "name: http, port: 5000", .environment = "{name: PILOT_HTTP10, value: 'true'}"},
                               "protocol: http1.0");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failed, 0);
}

TEST(Http10, PassesAsBytesWhereTheProtocolIsSniffed) {
  const auto result = AskHello({.port = "port: 5000"}, "protocol: http1.0");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->failed, 0);
}

TEST(Protocols, ThatCannotBeAreRefusedAtTheirPlace) {
  const auto why = [](const std::string& flow) { return std::string(AskHello({}, flow).status().message()); };
  EXPECT_THAT(why("protocol: grpc, method: GET"), HasSubstr("'GET' is not gRPC's, whose calls are POSTs"));
  EXPECT_THAT(why("protocol: http1.0, connections: keep-alive"), HasSubstr("HTTP/1.0 ends a connection"));
  EXPECT_THAT(why("protocol: http3"), HasSubstr("http1.0"));
}

}  // namespace
}  // namespace wavetank::scenario
