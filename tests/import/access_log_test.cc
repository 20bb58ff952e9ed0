// Access logs as sources: formats, whose they are, and what a mesh makes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "import/access/access_format.h"
#include "import/access/pod_name.h"
#include "import/skeleton/mesh_of_objects.h"
#include "tests/import/imported.h"

namespace wavetank::importing {
namespace {

using testing::HasSubstr;

constexpr WallNs kSecond = 1'000'000'000;

// A request of a sidecar's application, in Istio's own format.
std::string Outbound(WallNs at, int code, const std::string& flags, const std::string& upstream) {
  return fmt::format(
      "[{}] \"GET /hello?x=1 HTTP/1.1\" {} {} {} - \"-\" 0 60 3 2 \"-\" \"curl/7.8 (a b)\" "
      "\"910a2dec-8902-4cc1-9e41-ab087439611e\" \"web.shop:5000\" \"{}\" outbound|5000||web.shop.svc.cluster.local "
      "10.1.7.7:48030 10.96.249.242:5000 10.1.7.7:50663 - default\n",
      FormatWall(at).substr(0, 23) + "Z", code, flags, flags == "-" ? "via_upstream" : "upstream_reset_before_response",
      upstream);
}

WallNs Begin() { return ParseWall("2024-05-06T07:08:00.000Z"); }

TEST(AccessFormat, OfIstioInTextTellsARequest) {
  AccessLine line;
  const std::string text = Outbound(Begin(), 503, "UF,URX", "10.1.9.9:8080");
  ASSERT_TRUE(AccessFormat::Known()[0].Read(std::string_view(text).substr(0, text.size() - 1), line));
  EXPECT_EQ(FormatWall(line.start), "2024-05-06T07:08:00.000000Z");
  EXPECT_EQ(line.code, 503);
  EXPECT_EQ(line.duration_ms, 3);
  EXPECT_EQ(line[AccessField::kPath], "/hello?x=1");
  EXPECT_EQ(line[AccessField::kFlags], "UF,URX");
  EXPECT_EQ(line[AccessField::kAuthority], "web.shop:5000");
  EXPECT_EQ(line[AccessField::kUpstreamHost], "10.1.9.9:8080");
  EXPECT_EQ(line[AccessField::kServerName], "");
}

TEST(AccessFormat, OfIstioInJsonTellsTheSame) {
  AccessLine line;
  ASSERT_TRUE(AccessFormat::Known()[1].Read(
      R"({"start_time":"2024-05-06T07:08:00.000Z","method":"GET","path":"/a","response_code":404,"duration":7,)"
      R"("response_flags":"-","authority":null,"upstream_cluster":"inbound|8080||"})",
      line));
  EXPECT_EQ(line.code, 404);
  EXPECT_EQ(line.duration_ms, 7);
  EXPECT_EQ(line[AccessField::kFlags], "");
  EXPECT_EQ(line[AccessField::kUpstreamCluster], "inbound|8080||");
}

TEST(AccessFormat, OfOnesOwnMayHaveItsOwnTimesAndOrder) {
  const auto format =
      AccessFormat::Parse("%RESPONSE_CODE%;%START_TIME(%d/%b/%Y:%H:%M:%S.%3f %z)%;100%%;%REQ(HOST):20%\n");
  ASSERT_TRUE(format.ok()) << format.status();
  AccessLine line;
  ASSERT_TRUE(format->Read("200;06/May/2024:09:08:00.250 +0200;100%;web", line));
  EXPECT_EQ(FormatWall(line.start), "2024-05-06T07:08:00.250000Z");
  EXPECT_EQ(line[AccessField::kAuthority], "web");
  EXPECT_FALSE(format->Read("200;06/May/2024:09:08:00.250;100%;web", line));
}

TEST(AccessFormat, OfJsonMayNestAndPutSeveralIntoOne) {
  const auto format = AccessFormat::Parse(
      R"({"t": "%START_TIME(%s.%3f)%", "http": {"what": "%REQ(:METHOD)% %REQ(:PATH)%"}, "code": "%RESPONSE_CODE%"})");
  ASSERT_TRUE(format.ok()) << format.status();
  AccessLine line;
  ASSERT_TRUE(format->Read(R"({"code":200,"http":{"what":"PUT /a"},"t":"1714979280.500","more":[1]})", line));
  EXPECT_EQ(FormatWall(line.start), "2024-05-06T07:08:00.500000Z");
  EXPECT_EQ(line[AccessField::kMethod], "PUT");
  EXPECT_EQ(line[AccessField::kPath], "/a");
}

TEST(AccessFormat, ThatCannotBeTakenApartIsRefused) {
  for (const char* format : {"%START_TIME%%PROTOCOL%", "%PROTOCOL%", "%START_TIME", "{\"a\": ", "%START_TIME(% x"}) {
    EXPECT_EQ(AccessFormat::Parse(format).status().code(), absl::StatusCode::kInvalidArgument) << format;
  }
}

TEST(AccessFormat, TakesNoLineOfAnyOtherShape) {
  AccessLine line;
  for (const AccessFormat& format : AccessFormat::Known()) {
    for (const std::string& text :
         {std::string(), std::string("["), std::string("[2024-05-06T07:08:00.000Z] \""),
          std::string("{\"start_time\":1}"), std::string("{}"), std::string(100'000, '['), std::string("\0[\xff", 3),
          std::string("[2024-05-06T07:08:00.000Z] \"GET / HTTP/1.1\" 99999 - 0 0 0 - \"-\" \"-\" \"-\" \"-\" \"-\"")}) {
      EXPECT_FALSE(format.Read(text, line)) << text.substr(0, 80);
    }
  }
}

TEST(LogOwner, IsToldByThePathsThatToolsWrite) {
  const auto of = [](std::string_view path) {
    const LogOwner owner = OwnerOfLog(path);
    return owner.pod.ns + "/" + owner.pod.pod + "/" + owner.container;
  };
  EXPECT_EQ(of("bug-report/proxies/shop/web-1/istio-proxy.log"), "shop/web-1/istio-proxy");
  EXPECT_EQ(of("bug-report/istio/istio-system/istiod-1/discovery.log"), "istio-system/istiod-1/discovery");
  EXPECT_EQ(of("must/namespaces/shop/pods/web-1/istio-proxy/istio-proxy/logs/current.log"), "shop/web-1/istio-proxy");
  EXPECT_EQ(of("var/log/pods/shop_web-1_0a-1b/istio-proxy/0.log"), "shop/web-1/istio-proxy");
  EXPECT_EQ(of("containers/web-1_shop_istio-proxy-0123456789ab.log"), "shop/web-1/istio-proxy");
  EXPECT_EQ(of("dump/shop/web-1/logs.txt"), "shop/web-1/");
  EXPECT_EQ(of("web-1.shop.log"), "shop/web-1/");
  EXPECT_EQ(of("web-1-istio-proxy.log"), "/web-1/");
}

class AccessLogs : public ImportTest {
 protected:
  static std::vector<InferredInput> Of(const Imported& imported, InputKind kind) {
    std::vector<InferredInput> out;
    for (const InferredInput& input : imported.evidence.inputs) {
      if (input.kind == kind) out.push_back(input);
    }
    return out;
  }
  // 20 a second for half a minute, to two pods in turn.
  static std::string Steady(int fails_each = 0) {
    std::string out;
    for (int i = 0; i < 600; ++i) {
      const bool fails = fails_each > 0 && i % fails_each == 0;
      out += Outbound(Begin() + i * kSecond / 20, fails ? 503 : 200, fails ? "UF" : "-",
                      i % 2 == 0 ? "10.1.9.9:8080" : "10.1.9.10:8080");
    }
    return out;
  }
};

TEST_F(AccessLogs, AreTrafficAtItsRate) {
  const Imported imported = Read({Put("proxies/shop/sleep-1/istio-proxy.log", Steady())});
  const auto traffic = Of(imported, InputKind::kTraffic);
  ASSERT_EQ(traffic.size(), 1u);
  EXPECT_EQ(traffic[0].name, "sleep-1");
  EXPECT_EQ(traffic[0].ns, "shop");
  EXPECT_EQ(traffic[0].host, "web.shop");
  const auto extra = ParseJson(traffic[0].extra);
  EXPECT_EQ(extra["requests"], 600);
  EXPECT_EQ(extra["periodNs"], 50'000'000);
  EXPECT_EQ(extra["port"], 5000);
  EXPECT_EQ(extra["path"], "/hello");
  EXPECT_EQ(imported.evidence.claims.size(), 3u);  // a window of ten seconds each
}

TEST_F(AccessLogs, TellAPauseAndAnotherRate) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += Outbound(Begin() + i * kSecond / 20, 200, "-", "10.1.9.9:8080");
  for (int i = 0; i < 200; ++i) text += Outbound(Begin() + (60 + i / 10) * kSecond, 200, "-", "10.1.9.9:8080");
  const auto traffic = Of(Read({Put("sleep-1.shop.log", text)}), InputKind::kTraffic);
  ASSERT_EQ(traffic.size(), 2u);
  EXPECT_EQ(FormatWall(traffic[1].at), "2024-05-06T07:09:00.000000Z");
  EXPECT_EQ(ParseJson(traffic[1].extra)["requests"], 200);
}

TEST_F(AccessLogs, AloneMakeAMeshThatSendsWhatTheyTell) {
  const Imported imported = Read({Put("sleep-1.shop.log", Steady())});
  const auto mesh = MakeSkeleton(imported.evidence);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  const Judgement judgement = Run(*mesh);
  EXPECT_EQ(judgement.agree, 3u) << Words(judgement);
  EXPECT_EQ(judgement.disagree, 0u) << Words(judgement);
}

TEST_F(AccessLogs, OfFailuresThatTheMeshDoesNotShowDisagree) {
  const Imported imported = Read({Put("sleep-1.shop.log", Steady(5))});
  const auto mesh = MakeSkeleton(imported.evidence);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  const Judgement judgement = Run(*mesh);
  EXPECT_EQ(judgement.agree, 0u) << Words(judgement);
  EXPECT_EQ(judgement.disagree, 3u) << Words(judgement);
  EXPECT_THAT(Words(judgement), HasSubstr("codes 200 80.0 % and here 100.0 %"));
}

// A fifth of the answers is the application's own 500.
TEST_F(AccessLogs, TellWhatApplicationsAnswered) {
  std::string text;
  for (int i = 0; i < 600; ++i) {
    text += Outbound(Begin() + i * kSecond / 20, i % 5 == 0 ? 500 : 200, "-", "10.1.9.9:8080");
  }
  const Imported imported = Read({Put("sleep-1.shop.log", text)});
  const auto behaviour = Of(imported, InputKind::kBehaviour);
  ASSERT_EQ(behaviour.size(), 1u);
  EXPECT_EQ(behaviour[0].name, "@10.1.9.9");
  const auto mesh = MakeSkeleton(imported.evidence);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  const Judgement judgement = Run(*mesh);
  EXPECT_EQ(judgement.agree, 3u) << Words(judgement);
}

TEST_F(AccessLogs, OfSeveralPodsMayStandInOneFile) {
  const std::string one = Outbound(Begin(), 200, "-", "10.1.9.9:8080");
  const Imported kubectl = Read({Put("all.log", "[pod/sleep-1/istio-proxy] " + one + "[pod/sleep-2/istio-proxy] " +
                                                    one + "[pod/sleep-2/sleep] " + one)});
  EXPECT_EQ(Of(kubectl, InputKind::kTraffic).size(), 2u);
  const Imported ours = Read({Put("run.log", "c1/shop/sleep-1 " + one + "c2/shop/sleep-1 " + one)});
  const auto traffic = Of(ours, InputKind::kTraffic);
  ASSERT_EQ(traffic.size(), 2u);
  EXPECT_EQ(traffic[0].cluster, "c1");
  EXPECT_EQ(traffic[1].cluster, "c2");
  const Imported dump =
      Read({Put("shop/sleep-1/logs.txt",
                "==== START logs for container sleep of pod shop/sleep-1 ====\nhello\n==== END logs for "
                "container sleep of pod shop/sleep-1 ====\n==== START logs for container istio-proxy of "
                "pod shop/sleep-1 ====\n2024-05-06T07:07:00.000000Z\tinfo\txdsproxy\tconnected\n" +
                    one + "==== END logs for container istio-proxy of pod shop/sleep-1 ====\n")});
  EXPECT_EQ(Of(dump, InputKind::kTraffic).size(), 1u);
  EXPECT_TRUE(dump.evidence.runs.empty());
  EXPECT_TRUE(dump.evidence.refusals.empty());
}

TEST_F(AccessLogs, OfAProxyAreNoLogOfAnIstiod) {
  const Imported imported =
      Read({Put("sleep-1.log",
                "2024-05-06T07:07:00.000000Z\tinfo\tProxy role\tips=[10.1.7.7] type=sidecar\n"
                "2024-05-06T07:07:00.100000Z\tinfo\txdsproxy\tconnected to upstream XDS server\n" +
                    Outbound(Begin(), 200, "-", "10.1.9.9:8080"))});
  EXPECT_TRUE(imported.evidence.runs.empty());
  EXPECT_EQ(imported.traffic.lines, 1u);
}

TEST_F(AccessLogs, AreReadByAGivenFormat) {
  const std::string text = "2024-05-06T07:08:00.000Z GET /a 200 web.shop outbound|80||web.shop.svc.cluster.local\n";
  EXPECT_EQ(Read({Put("sleep-1.shop.log", text)}).traffic.lines, 0u);
  const Imported imported = Read({folder_ / "sleep-1.shop.log"},
                                 {"%START_TIME% %REQ(:METHOD)% %REQ(:PATH)% %RESPONSE_CODE% %REQ(:AUTHORITY)% "
                                  "%UPSTREAM_CLUSTER%"});
  EXPECT_EQ(imported.traffic.lines, 1u);
  EXPECT_EQ(Of(imported, InputKind::kTraffic).size(), 1u);
}

TEST_F(AccessLogs, ThatAreBrokenAreCountedAndTheRestIsRead) {
  const std::string good = Outbound(Begin(), 200, "-", "10.1.9.9:8080");
  const std::string long_line = "[" + std::string(2 << 20, '1') + "\n";
  const Imported imported =
      Read({Put("sleep-1.shop.log", good + good.substr(0, 90) + "\n" + "{\"start_time\":\"never\"}\n" + long_line +
                                        std::string("[9\0\xff\xfe\n", 6) + good)});
  EXPECT_EQ(imported.traffic.lines, 2u);
  const auto& reasons = imported.evidence.refusals.reasons();
  ASSERT_TRUE(reasons.contains("line of no known access log format"));
  EXPECT_EQ(reasons.at("line of no known access log format").count, 3u);
  EXPECT_TRUE(reasons.contains("line of more than 1 MiB"));
}

TEST_F(AccessLogs, OfAServerCountOnlyWhereItsClientHasNone) {
  const std::string inbound =
      "[2024-05-06T07:08:00.000Z] \"GET /hello HTTP/1.1\" 200 - via_upstream - \"-\" 0 60 1 1 \"-\" \"curl\" \"id\" "
      "\"web.shop:5000\" \"10.1.9.9:8080\" inbound|8080|| 127.0.0.6:48253 10.1.9.9:8080 10.1.7.7:48030 "
      "outbound_.5000_._.web.shop.svc.cluster.local default\n";
  const std::string pod =
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"sleep-1","namespace":"shop","labels":{"app":"sleep"}},)"
      R"("spec":{"containers":[{"name":"a","image":"a"}]},"status":{"podIP":"10.1.7.7","phase":"Running"}})";
  const std::string server = Put("server/web-1.shop.log", inbound);
  const std::string pods = Put("pods/pods.json", pod);
  const auto traffic = Of(Read({server, pods}), InputKind::kTraffic);
  ASSERT_EQ(traffic.size(), 1u);
  EXPECT_EQ(traffic[0].name, "sleep-1");
  EXPECT_EQ(traffic[0].host, "web.shop");
  EXPECT_EQ(ParseJson(traffic[0].extra)["port"], 5000);
  const std::string client = Put("client/sleep-1.shop.log", Outbound(Begin(), 200, "-", "10.1.9.9:8080"));
  EXPECT_EQ(Of(Read({server, pods, client}), InputKind::kTraffic).size(), 1u);
  EXPECT_TRUE(Of(Read({server}), InputKind::kTraffic).empty());
}

}  // namespace
}  // namespace wavetank::importing
