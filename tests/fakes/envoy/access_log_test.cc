// What only the simulated Envoy can be asked about its access logs: no keys and tokens, no cost, times, who is who in a
// mesh. What the lines say is held to a real Envoy in tests/oracles/envoy/cases/access_logs.json.
#include "fakes/envoy/access_log/access_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/extensions/access_loggers/file/v3/file.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.pb.h"
#include "fakes/envoy/access_log/access_log_expression.h"
#include "fakes/envoy/extensions/extensions.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/envoy/mesh.h"

namespace wavetank::envoysim::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

std::string LineOf(std::string_view format, const AccessLogEntry& entry) {
  const auto made = AccessLogFormat::MakeText(format, false, ExtensionSet::kStock);
  EXPECT_TRUE(made.ok()) << made.status();
  if (!made.ok()) return {};
  std::string out;
  made->Write(entry, &out);
  return out;
}

TEST(AccessLogFormatTest, TokensAreMaskedWhereverTheyStand) {
  const std::string token = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2ln-bmF0_dXJl";
  RequestSpec spec;
  spec.path = "/hello?access_token=" + token + "&x=1";
  spec.headers = {{"authorization", "Basic c2VjcmV0"}, {"cookie", "session=secret"}, {"x-jwt", "Bearer " + token}};
  AccessLogEntry entry;
  entry.request = &spec;
  EXPECT_EQ(LineOf("%REQ(AUTHORIZATION)% %REQ(Cookie)% %REQ(nope?authorization)% %REQ(X-JWT)% %REQ(:PATH)%", entry),
            "redacted redacted redacted Bearer redacted /hello?access_token=redacted&x=1");
  EXPECT_EQ(LineOf("%REQ_WITHOUT_QUERY(:PATH)%", entry), "/hello");
}

TEST(AccessLogFormatTest, TimesAreTheCalendars) {
  const Time time{std::chrono::seconds(86400 * 31 + 3723) + 45678901ns};  // the world begins on 2023-09-01
  EXPECT_EQ(FormatLogTime(time, ""), "2023-10-02T01:02:03.045Z");
  EXPECT_EQ(
      FormatLogTime(time, "%d/%b/%Y:%H:%M:%S %z|%s.%3f|%6f|%f|%E3S|%F %T|%a %A %B %e %y %Z %%"),
      "02/Oct/2023:01:02:03 +0000|1696208523.045|045678|045678901|03.045|2023-10-02 01:02:03|Mon Monday October  2 "
      "23 UTC %");
}

// istio/istio#37130, #53003: Istio's own refuse them in the same words.
TEST(AccessLogFormatTest, OperatorsThatNobodyKnowsAreRefusedByEveryEnvoy) {
  for (const ExtensionSet set : {ExtensionSet::kStock, ExtensionSet::kIstioProxy}) {
    const auto made = AccessLogFormat::MakeText("%NO_SUCH%\n", false, set);
    EXPECT_EQ(made.status().message(), "Not supported field in StreamInfo: NO_SUCH");
    EXPECT_FALSE(AccessLogFormat::MakeText("%REQ(a\n", false, set).ok());
  }
}

TEST(AccessLogFormatTest, AnOperatorThatIsNotSimulatedWritesNothingAndIsNoted) {
  Extensions::Notes notes;
  const auto made = AccessLogFormat::MakeText("%TRACE_ID%", false, {ExtensionSet::kIstioProxy, {}, nullptr, &notes});
  ASSERT_TRUE(made.ok()) << made.status();
  std::string out;
  made->Write({}, &out);
  EXPECT_EQ(out, "-");
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes.begin()->type, "TRACE_ID");
}

TEST(LogExpressionTest, AnAttributeThatIsNotSimulatedIsNotedAndWritesEveryLine) {
  Extensions::Notes notes;
  const Extensions extensions(ExtensionSet::kStock, {}, nullptr, &notes);
  const auto made = LogExpression::Make("request.total_size > 5 && response.code == 1", extensions);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE((*made)->Holds({}));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes.begin()->type, "request.total_size");
  ASSERT_TRUE(LogExpression::Make("response.code == 1", extensions).ok());
  EXPECT_EQ(notes.size(), 1u);
}

TEST(LogExpressionTest, FlagsAreBitsInTheOrderOfEnvoysEnum) {
  const auto made = LogExpression::Make("response.flags == 0x8020", ExtensionSet::kStock);
  ASSERT_TRUE(made.ok()) << made.status();
  AccessLogEntry entry;
  EXPECT_FALSE((*made)->Holds(entry));
  entry.flags = kUpstreamConnectionFailure | kUpstreamRetryLimitExceeded;
  EXPECT_TRUE((*made)->Holds(entry));
}

TEST(LogExpressionTest, MetadataIsWhatFiltersNoted) {
  const auto made = LogExpression::Make("metadata.filter_metadata['a.filter'].user.age > 17.0", ExtensionSet::kStock);
  ASSERT_TRUE(made.ok()) << made.status();
  AccessLogEntry entry;
  EXPECT_FALSE((*made)->Holds(entry));
  const auto user = std::make_shared<const nlohmann::json>(nlohmann::json{{"age", 18}});
  const DynamicMetadata notes = {{"a.filter", "user", {}, user}};
  entry.notes = &notes;
  EXPECT_TRUE((*made)->Holds(entry));
}

// A Mesh whose sidecars and gateway log.
class LoggingMesh : public Mesh {
 public:
  explicit LoggingMesh(bool collect = true) {
    for (Lab::Proxy* proxy : {sleep, gateway, v1, v2}) {
      for (auto& [name, bytes] : proxy->ads->world[XdsType::kLds]) bytes = WithLogs(bytes);
    }
    if (collect) {
      lab.plane.CollectAccessLogs([this](EnvoyContext& by, const AccessLogLine& line) {
        EXPECT_GE(line.at, lab.kernel.Now());
        for (const auto& [name, proxy] : lab.proxies) {
          if (proxy->context.get() == &by) lines.push_back(name + " " + std::string(line.text));
        }
      });
    }
    Start();
  }
  std::vector<std::string> lines;

 private:
  static std::string WithLogs(const std::string& bytes) {
    namespace filters = envoy::extensions::filters::network;
    envoy::extensions::access_loggers::file::v3::FileAccessLog file;
    file.set_path("/dev/stdout");
    file.mutable_log_format()->mutable_text_format_source()->set_inline_string(
        "%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %REQ(X-REQUEST-ID)% %UPSTREAM_CLUSTER% "
        "%UPSTREAM_HOST% %REQUESTED_SERVER_NAME% %DOWNSTREAM_PEER_URI_SAN% %DURATION%\n");
    envoy::config::listener::v3::Listener listener;
    EXPECT_TRUE(listener.ParseFromString(bytes));
    const auto add = [&](auto* proto, google::protobuf::Any* config) {
      proto->add_access_log()->mutable_typed_config()->PackFrom(file);
      config->PackFrom(*proto);
    };
    for (auto& chain : *listener.mutable_filter_chains()) {
      for (auto& filter : *chain.mutable_filters()) {
        filters::http_connection_manager::v3::HttpConnectionManager http;
        filters::tcp_proxy::v3::TcpProxy tcp;
        auto* config = filter.mutable_typed_config();
        if (config->UnpackTo(&http)) {
          add(&http, config);
        } else if (config->UnpackTo(&tcp)) {
          add(&tcp, config);
        }
      }
    }
    return listener.SerializeAsString();
  }
};

// The word at `index` of a line.
std::string Word(const std::string& line, size_t index) {
  std::istringstream in(line);
  std::string word;
  for (size_t i = 0; i <= index; ++i) in >> word;
  return word;
}

TEST(AccessLogTest, BothSidecarsOfARequestLogItUnderOneId) {
  LoggingMesh mesh;
  mesh.Push({Mesh::Local()});
  ASSERT_EQ(mesh.Ask().record.code, 200);
  ASSERT_EQ(mesh.Ask().record.code, 200);
  ASSERT_EQ(mesh.lines.size(), 4u);
  EXPECT_THAT(mesh.lines[0], HasSubstr("v1 200 - via_upstream"));
  EXPECT_THAT(mesh.lines[0],
              HasSubstr("inbound|5000|| 10.1.0.11:5000 " + std::string(kHelloSni) + " " + std::string(kSleepId)));
  EXPECT_THAT(mesh.lines[1], HasSubstr("sleep 200 - via_upstream"));
  EXPECT_THAT(mesh.lines[1], HasSubstr(std::string(kHelloCluster) + " 10.1.0.11:5000 - - "));
  const std::string id = Word(mesh.lines[0], 4);
  EXPECT_THAT(id, MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_EQ(Word(mesh.lines[1], 4), id);
  EXPECT_EQ(Word(mesh.lines[3], 4), Word(mesh.lines[2], 4));
  EXPECT_NE(Word(mesh.lines[2], 4), id);
}

TEST(AccessLogTest, AGatewayLogsAConnectionWhenItEnds) {
  LoggingMesh mesh;
  mesh.Push({Mesh::Remote()});
  ASSERT_EQ(mesh.Ask().record.code, 200);
  ASSERT_EQ(mesh.lines.size(), 2u);
  EXPECT_THAT(mesh.lines[0], HasSubstr("v2 200"));
  EXPECT_THAT(mesh.lines[1], HasSubstr("sleep 200"));
  EXPECT_EQ(Word(mesh.lines[0], 4), Word(mesh.lines[1], 4));
  mesh.v2->envoy->Stop(Envoy::StopKind::kKill);
  mesh.lab.RunFor(100ms);
  ASSERT_EQ(mesh.lines.size(), 3u);
  EXPECT_THAT(mesh.lines[2],
              HasSubstr("gw2 0 - - - " + std::string(kHelloSni) + " 10.2.0.11:5000 " + std::string(kHelloSni)));
}

TEST(AccessLogTest, AClientThatGivesUpIsToldOf) {
  LoggingMesh mesh;
  mesh.Push({Mesh::Local()});
  mesh.apps["v1"]->delay = 10s;
  bool done = false;
  AppClient::Options options;
  options.timeout = 1s;
  mesh.sleep->client->Send(*SocketAddress::Parse(std::string(kVip)), mesh.spec, options,
                           [&](const RequestRecord&) { done = true; });
  mesh.lab.RunFor(2s);
  ASSERT_TRUE(done);
  ASSERT_EQ(mesh.lines.size(), 2u);
  EXPECT_THAT(mesh.lines[0], HasSubstr("sleep 0 DC downstream_remote_disconnect"));
  EXPECT_THAT(mesh.lines[1], HasSubstr("v1 0 DC downstream_remote_disconnect"));
}

TEST(AccessLogTest, WhoeverCollectsThemChangesNothing) {
  const auto run = [](bool collect) {
    LoggingMesh mesh(collect);
    mesh.Push({Mesh::Local(), Mesh::Remote()});
    for (int i = 0; i < 20; ++i) mesh.Ask(i % 3 != 0);
    EXPECT_EQ(mesh.lines.empty(), !collect);
    return mesh.lab.kernel.digest().Hex();
  };
  EXPECT_EQ(run(true), run(false));
}

}  // namespace
}  // namespace wavetank::envoysim::lab
