// Into the pods of a live mesh: exec by WebSocket, proxied ports, and, where they are, kubectl and istioctl.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/json_text.h"
#include "fakes/kube/http/rest/rest.h"
#include "fakes/kube/http/transport/fetch.h"
#include "serve/pods/curl.h"
#include "serve/pods/websocket.h"
#include "serve/server.h"
#include "sim/pod_process.h"
#include "tests/await.h"
#include "tests/fakes/kube/http/http2_peer.h"
#include "tests/left_out.h"
#include "tests/serve/two_clusters.h"

namespace wavetank::serve {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

SessionOptions WithConfiguration() {
  SessionOptions out = TwoClusters();
  out.keep_configuration = true;
  return out;
}

class PodsTest : public ::testing::Test {
 protected:
  explicit PodsTest(bool tls = false) {
    absl::StatusOr<std::unique_ptr<Session>> made = Session::Create(WithConfiguration());
    EXPECT_TRUE(made.ok()) << made.status();
    ServerOptions options;
    options.listen = options.secure_listen = "127.0.0.1:0";
    options.kube.listen = "127.0.0.1:0";
    options.kube.tls = tls;
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(*std::move(made), options);
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string PodOf(const std::string& app) {
    return *server_->loop().Call(
        [&](sim::World& world) { return world.Pods("cluster1", "", app).front()->pod()->meta.name; });
  }
  std::string Api() { return server_->kube()->where()[0].server; }
  uint16_t ApiPort() { return static_cast<uint16_t>(std::stoi(Api().substr(Api().rfind(':') + 1))); }
  fakekube::http::Answer Get(const std::string& path) {
    const auto answer = fakekube::http::Send({.server = Api(), .path = path}, std::chrono::seconds(30));
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *answer : fakekube::http::Answer{};
  }

  // One exec by WebSocket, v4: what came on each channel.
  std::array<std::string, 4> Exec(const std::string& ns, const std::string& pod, const std::string& commands) {
    const std::string server = Api();
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::atoi(server.substr(server.rfind(':') + 1).c_str())));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    const std::string head = "GET /api/v1/namespaces/" + ns + "/pods/" + pod + "/exec?stdout=true&stderr=true" +
                             commands +
                             " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                             "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n";
    EXPECT_EQ(send(fd, head.data(), head.size(), 0), static_cast<ssize_t>(head.size()));
    std::string all;
    char piece[4096];
    for (ssize_t got; (got = recv(fd, piece, sizeof piece, 0)) > 0;) all.append(piece, static_cast<size_t>(got));
    close(fd);
    const size_t body = all.find("\r\n\r\n");
    EXPECT_THAT(all, AllOf(HasSubstr("101 Switching Protocols"), HasSubstr("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")));
    std::array<std::string, 4> out;
    for (size_t at = body + 4; body != std::string::npos && at + 2 <= all.size();) {
      size_t size = static_cast<unsigned char>(all[at + 1]), head_size = 2;
      if (size == 126) {
        size = static_cast<unsigned char>(all[at + 2]) * 256u + static_cast<unsigned char>(all[at + 3]);
        head_size = 4;
      } else if (size == 127) {
        head_size = 10;
        size = 0;
        for (size_t i = 2; i < head_size; ++i) size = size << 8 | static_cast<unsigned char>(all[at + i]);
      }
      const auto opcode = static_cast<unsigned char>(all[at]) & 15u;
      if (opcode == 2 && size > 0) {
        const auto channel = static_cast<size_t>(all[at + head_size]);
        if (channel < out.size()) out[channel] += all.substr(at + head_size + 1, size - 1);
      }
      at += head_size + size;
    }
    return out;
  }

  // What a program prints and how it ends, with a kubeconfig that leads here.
  std::string Run(const std::string& command, int* code = nullptr) {
    const std::filesystem::path folder =
        std::filesystem::path(::testing::TempDir()) / ("pods-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "kubeconfig") << RenderKubeconfig(server_->kube()->where(), "", server_->kube()->ca_pem(),
                                                             server_->kube()->admin());
    const std::string line = "cd " + folder.string() + " && HOME=" + folder.string() +
                             " KUBECONFIG=" + (folder / "kubeconfig").string() + " timeout 60 " + command + " 2>&1";
    FILE* const pipe = popen(line.c_str(), "r");
    std::string out;
    char piece[4096];
    for (size_t got; (got = fread(piece, 1, sizeof piece, pipe)) > 0;) out.append(piece, got);
    const int status = pclose(pipe);
    if (code != nullptr) *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    std::filesystem::remove_all(folder);
    return out;
  }

  std::unique_ptr<Server> server_;
};

TEST_F(PodsTest, CurlInAPodSendsARequestThroughTheMesh) {
  const auto out =
      Exec("sample", PodOf("sleep"), "&command=curl&command=-sS&command=http%3A%2F%2Fhelloworld.sample%3A5000%2Fhello");
  EXPECT_THAT(out[1], HasSubstr("Hello version: v"));
  EXPECT_EQ(out[2], "");
  EXPECT_EQ(out[3], R"({"metadata":{},"status":"Success"})");
}

TEST_F(PodsTest, DateIsTheWorlds) {
  EXPECT_THAT(Exec("sample", PodOf("sleep"), "&command=date")[1], ::testing::ContainsRegex("^[A-Z][a-z]+ .* UTC 20"));
}

TEST_F(PodsTest, ACommandsEndIsToldAsTheKubeletTellsIt) {
  auto out = Exec("sample", PodOf("sleep"), "&command=curl&command=-sS&command=http%3A%2F%2Fnowhere.sample");
  EXPECT_EQ(out[2], "curl: (6) Could not resolve host: nowhere.sample\n");
  EXPECT_EQ(ParseJson(out[3]).at("details").at("causes")[0].at("message"), "6");
  out = Exec("sample", PodOf("sleep"), "&command=vi");
  EXPECT_THAT(out[3], HasSubstr("executable file not found in $PATH"));
}

TEST_F(PodsTest, TheAdminInterfaceOfAProxyIsReachedThroughTheApiServer) {
  const std::string at = "/api/v1/namespaces/sample/pods/" + PodOf("sleep") + ":15000/proxy/";
  const nlohmann::json dump = ParseJson(Get(at + "config_dump?include_eds").body);
  ASSERT_TRUE(dump.contains("configs")) << dump.dump().substr(0, 300);
  EXPECT_THAT(dump.dump(), HasSubstr("outbound|5000||helloworld.sample.svc.cluster.local"));
  EXPECT_THAT(dump.dump(), Not(HasSubstr("PRIVATE KEY")));
  const nlohmann::json& node = dump["configs"][0]["bootstrap"]["node"];
  EXPECT_EQ(node["metadata"]["ISTIO_VERSION"], "1.18.2");
  EXPECT_EQ(node["user_agent_build_version"]["version"]["minor_number"], 26)
      << "istioctl: proxy-config bootstrap -o short";
  EXPECT_THAT(Get(at + "clusters?format=json").body, HasSubstr("eds_health_status"));
  EXPECT_THAT(Get(at + "clusters").body, HasSubstr("::health_flags::healthy"));
  EXPECT_EQ(Get(at + "ready").body, "LIVE\n");
  EXPECT_THAT(Get(at + "certs").body, HasSubstr("spiffe://cluster.local/ns/sample/sa/"));
  EXPECT_THAT(Get(at + "server_info").body, HasSubstr("\"state\": \"LIVE\""));
  EXPECT_EQ(Get(at + "nosuch").status, 404);
}

TEST_F(PodsTest, IstiodsPagesAreReachedThroughTheApiServer) {
  const std::string at = "/api/v1/namespaces/istio-system/pods/" + PodOf("istiod");
  EXPECT_EQ(Get(at + ":15014/proxy/version").body.substr(0, 6), "1.18.2");
  EXPECT_THAT(Get(at + ":8080/proxy/debug/syncz").body, HasSubstr("cluster_acked"));
  EXPECT_EQ(Get(at + ":9/proxy/").status, 503);
}

TEST_F(PodsTest, AnAgentPassesIstiodsDebugPagesOn) {
  const std::string port = "&container=istio-proxy&command=pilot-agent&command=request&command=--debug-port&command=";
  const auto out = Exec("sample", PodOf("sleep"), port + "15004&command=GET&command=%2Fdebug%2Fsyncz");
  const nlohmann::json answer = ParseJson(out[1]);
  ASSERT_TRUE(answer.is_object()) << out[1] << out[2];
  EXPECT_EQ(answer.value("typeUrl", ""), "istio.io/debug/syncz");
  EXPECT_THAT(out[1], HasSubstr("\"genericXdsConfigs\""));
  // Pages of istio.io/debug are no messages of Envoy's: they come as Go prints the structure.
  const auto page = Exec("sample", PodOf("sleep"),
                         port + "15004&command=GET&command=%2Fdebug%3FresourceName%3Dconfig_dump%253FproxyID%253D" +
                             PodOf("sleep") + ".sample");
  EXPECT_EQ(ParseJson(page[1]).value("type_url", ""), "istio.io/debug") << page[1].substr(0, 200) << page[2];
  EXPECT_THAT(Exec("sample", PodOf("sleep"), port + "80&command=GET&command=%2F")[2],
              HasSubstr("debug port 80 is not in allowed list"));
}

TEST_F(PodsTest, LogsOfUnknownContainersAreRefused) {
  const std::string at = "/api/v1/namespaces/sample/pods/" + PodOf("sleep");
  EXPECT_EQ(Get(at + "/log?container=istio-proxy").status, 200);
  EXPECT_EQ(Get(at + "/log?container=nosuch").status, 400);
  EXPECT_EQ(Get("/api/v1/namespaces/sample/pods/nosuch/log").status, 404);
}

TEST_F(PodsTest, IstiodsAndAgentsHaveLogs) {
  const std::string pods = "/api/v1/namespaces/";
  // What the agent says when it has its certificate, what istiod says of each proxy that connects.
  EXPECT_THAT(Get(pods + "sample/pods/" + PodOf("sleep") + "/log?container=istio-proxy").body,
              HasSubstr("\tinfo\tcache\tgenerated new workload certificate"));
  const std::string istiod = pods + "istio-system/pods/" + PodOf("istiod") + "/log?container=discovery";
  const std::string all = Get(istiod).body;
  EXPECT_THAT(all, AllOf(HasSubstr("\tinfo\tads\tADS: new connection for node:sleep-"),
                         HasSubstr("\tinfo\tads\tCDS: PUSH request for node:sleep-"), Not(HasSubstr("PRIVATE KEY"))));
  const std::string last = Get(istiod + "&tailLines=1").body;
  EXPECT_EQ(std::count(last.begin(), last.end(), '\n'), 1);
}

TEST_F(PodsTest, ALogIsFollowedUntilItsPodGoes) {
  fakekube::http::Peer peer(ApiPort());
  const std::string pod = PodOf("istiod");
  peer.Send(fakekube::http::Get("/api/v1/namespaces/istio-system/pods/" + pod +
                                "/log?follow=true&tailLines=1&timestamps=true"));
  EXPECT_THAT(peer.Read("\n20"), HasSubstr("Content-Type: text/plain"));
  const auto change = [&](const char* method, const std::string& path, const std::string& body) {
    fakekube::http::Peer other(ApiPort());
    other.Send(std::string(method) + " " + path +
               " HTTP/1.1\r\nHost: x\r\nContent-Type: application/merge-patch+json\r\nContent-Length: " +
               std::to_string(body.size()) + "\r\n\r\n" + body);
    EXPECT_THAT(other.Read("\r\n\r\n"), HasSubstr("HTTP/1.1 200"));
  };
  change("PATCH", "/apis/apps/v1/namespaces/sample/deployments/helloworld-v1/scale", R"({"spec":{"replicas":2}})");
  EXPECT_THAT(peer.Read("Push debounce stable"),
              ::testing::ContainsRegex("20..-..-..T[0-9:.]+Z 20..-[^\n]*Push debounce stable"));
  change("DELETE", "/api/v1/namespaces/istio-system/pods/" + pod, R"({"gracePeriodSeconds":0})");
  EXPECT_THAT(peer.Read("0\r\n\r\n"), ::testing::EndsWith("0\r\n\r\n"));
}

TEST_F(PodsTest, WhatHasEndedHasALogAndWhatHasSeveralContainersMustBeTold) {
  const nlohmann::json containers =
      nlohmann::json::array({{{"name", "a"}, {"image", "busybox"}, {"command", {"true"}}},
                             {{"name", "b"}, {"image", "busybox"}, {"command", {"true"}}}});
  ASSERT_TRUE(*server_->loop().Call([&](sim::World& world) {
    return world.KubeApi("cluster1")
        ->server()
        .Apply({{"apiVersion", "v1"},
                {"kind", "Pod"},
                {"metadata", {{"name", "once"}, {"namespace", "default"}}},
                {"spec", {{"restartPolicy", "Never"}, {"containers", containers}}}})
        .ok();
  }));
  const std::string log = "/api/v1/namespaces/default/pods/once/log";
  ASSERT_TRUE(Await([&] {
    return Get("/api/v1/namespaces/default/pods/once").body.find("\"phase\":\"Succeeded\"") != std::string::npos;
  }));
  EXPECT_EQ(Get(log + "?container=b").status, 200);
  EXPECT_EQ(ParseJson(Get(log).body)["message"],
            "a container name must be specified for pod once, choose one of: [a b]");
  EXPECT_EQ(ParseJson(Get(log + "?container=b&previous=true").body)["message"],
            "previous terminated container \"b\" in pod \"once\" not found");
  EXPECT_EQ(Get(log + "?container=b&tailLines=-1").status, 422);
}

TEST_F(PodsTest, KubectlExecutesForwardsAndReadsLogs) {
  const char* const kubectl = "/usr/bin/kubectl";
  NEEDS_TOOL(std::filesystem::exists(kubectl), "kubectl", "apt install kubernetes-client");
  const std::string sleep = PodOf("sleep");
  int code = -1;
  EXPECT_THAT(
      Run(std::string(kubectl) + " -n sample exec " + sleep + " -c sleep -- curl -s helloworld.sample:5000/hello",
          &code),
      HasSubstr("Hello version: v"));
  EXPECT_EQ(code, 0);
  Run(std::string(kubectl) + " -n sample exec " + sleep + " -c sleep -- false", &code);
  EXPECT_EQ(code, 1);
  Run(std::string(kubectl) + " -n sample logs " + sleep + " -c istio-proxy", &code);
  EXPECT_EQ(code, 0);
}

// Where HTTP/2 is offered: `logs -f` goes through it, what is upgraded (SPDY or WebSocket) must get HTTP/1.1.
class PodsOverTlsTest : public PodsTest, public ::testing::WithParamInterface<const char*> {
 protected:
  PodsOverTlsTest() : PodsTest(true) {}
};

TEST_P(PodsOverTlsTest, KubectlExecutesForwardsAndFollowsLogs) {
  const std::string kubectl = GetParam()[0] == '/' ? GetParam() : std::string(WAVETANK_SOURCE_DIR) + "/" + GetParam();
  NEEDS_TOOL(std::filesystem::exists(kubectl), kubectl, "tools/kube-clients, or apt install kubernetes-client");
  const std::string sleep = PodOf("sleep"), istiod = PodOf("istiod");
  int code = -1;
  EXPECT_THAT(Run(kubectl + " -n sample exec " + sleep + " -c sleep -- curl -s helloworld.sample:5000/hello", &code),
              HasSubstr("Hello version: v"));
  EXPECT_EQ(code, 0);
  Run(kubectl + " -n sample exec " + sleep + " -c sleep -- false", &code);
  EXPECT_EQ(code, 1);
  EXPECT_THAT(Run("sh -c \"printf 'echo a\\necho b >&2; exit 3\\necho c\\n' | " + kubectl + " -n sample exec -i " +
                      sleep + " -c sleep -- sh\"",
                  &code),
              AllOf(HasSubstr("a\n"), HasSubstr("b\n"), Not(HasSubstr("c\n"))));
  EXPECT_EQ(code, 3);

  // Until the page was asked for through the port that kubectl names.
  const std::string forward =
      "bash -c '" + kubectl + " -n sample port-forward pod/" + sleep + " :15000 > forwarded & " +
      "for i in $(seq 300); do port=$(sed -n \"s/^Forwarding from 127.0.0.1:\\([0-9]*\\).*/\\1/p\" forwarded); "
      "[ -n \"$port\" ] && break; sleep 0.1; done; curl -sS -m 30 http://127.0.0.1:$port/ready; "
      "curl -sS -m 30 http://127.0.0.1:$port/clusters | grep -c ::health_flags::; kill $!; wait'";
  EXPECT_THAT(Run(forward), ::testing::ContainsRegex("LIVE\n[1-9]"));

  // ControlZ, at istiod's loopback: what its log leaves out from now on.
  const std::string quiet =
      "bash -c '" + kubectl + " -n istio-system port-forward pod/" + istiod + " :9876 > control_z & " +
      "for i in $(seq 300); do port=$(sed -n \"s/^Forwarding from 127.0.0.1:\\([0-9]*\\).*/\\1/p\" control_z); "
      "[ -n \"$port\" ] && break; sleep 0.1; done; curl -sS -m 30 http://127.0.0.1:$port/scopej/delta; "
      "curl -sS -m 30 -X PUT http://127.0.0.1:$port/scopej/delta -d \"{\\\"output_level\\\":\\\"none\\\"}\"; "
      "curl -sS -m 30 http://127.0.0.1:$port/scopej/delta; kill $!; wait'";
  EXPECT_THAT(Run(quiet), ::testing::ContainsRegex("\"output_level\":\"info\".*\n*.*\"output_level\":\"none\""));

  // What istiod writes after kubectl has begun to look.
  const std::string follow =
      "bash -c '" + kubectl + " -n istio-system logs -f --tail=1 " + istiod + " > lines & " +
      "for i in $(seq 300); do [ -s lines ] && break; sleep 0.1; done; " + kubectl +
      " -n sample scale deployment helloworld-v1 --replicas=2; "
      "for i in $(seq 300); do [ $(wc -l < lines) -gt 1 ] && break; sleep 0.1; done; kill $!; wc -l < lines; wait'";
  EXPECT_THAT(Run(follow), ::testing::ContainsRegex("scaled\n([2-9]|[1-9][0-9]+)\n"));
}

// The first speaks SPDY, one from 1.31 on WebSocket.
INSTANTIATE_TEST_SUITE_P(Kubectls, PodsOverTlsTest,
                         ::testing::Values("build/kube-clients/bin/kubectl", "/usr/bin/kubectl"),
                         [](const auto& tested) { return tested.index == 0 ? "OfTools" : "OfTheMachine"; });

class PodsWithHttp2Test : public PodsTest {
 protected:
  PodsWithHttp2Test() : PodsTest(true) {}
};

// HTTP/2 has no upgrades (RFC 9113, 8.6).
TEST_F(PodsWithHttp2Test, AskedThroughHttp2AnUpgradeIsRefused) {
  fakekube::http::Http2Peer peer(ApiPort());
  const auto got = peer.Answer(
      peer.Ask("POST", "/api/v1/namespaces/sample/pods/" + PodOf("sleep") + "/exec?stdout=true&command=date"));
  EXPECT_EQ(got.status(), 400);
  EXPECT_THAT(got.body, HasSubstr("unable to upgrade: missing upgrade headers in request"));
}

TEST_F(PodsTest, ARealIstioctlShowsProxiesAndTheirConfiguration) {
  const char* const istioctl = getenv("WAVETANK_ISTIOCTL");
  NEEDS_BROUGHT(istioctl != nullptr, "WAVETANK_ISTIOCTL",
                "WAVETANK_ISTIOCTL names an istioctl 1.18.2 (tests/README.md)");
  const std::string program(istioctl), pod = PodOf("sleep") + ".sample";
  EXPECT_THAT(Run(program + " proxy-status"), AllOf(HasSubstr(pod), HasSubstr("SYNCED"), HasSubstr("1.18.2")));
  EXPECT_THAT(Run(program + " proxy-config endpoints " + pod +
                  " --cluster 'outbound|5000||helloworld.sample.svc.cluster.local'"),
              HasSubstr("HEALTHY     OK"));
  EXPECT_THAT(Run(program + " proxy-config clusters " + pod), HasSubstr("helloworld.sample.svc.cluster.local"));
  EXPECT_THAT(Run(program + " proxy-config listeners " + pod), HasSubstr("Route: 5000"));
  EXPECT_THAT(Run(program + " proxy-config routes " + pod), HasSubstr("helloworld.sample.svc.cluster.local:5000"));
  EXPECT_THAT(Run(program + " proxy-config secret " + pod), AllOf(HasSubstr("ROOTCA"), HasSubstr("Cert Chain")));
  EXPECT_THAT(Run(program + " proxy-config bootstrap " + pod), HasSubstr("\"bootstrap\""));
  EXPECT_THAT(Run(program + " version"), HasSubstr("1.18.2"));
  EXPECT_THAT(Run(program + " x internal-debug syncz"), HasSubstr("cluster_acked"));
  EXPECT_THAT(Run(program + " x describe pod " + pod), HasSubstr("Port: http 80/HTTP targets pod port 80"));
}

TEST(Curl, ReadsWhatPeopleWrite) {
  const auto call = ReadCurl({"curl", "-sSI", "-Hx-a: b", "-o/dev/null", "-w", "%{http_code}", "http://h.ns:81/p?q#f"});
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->host, "h.ns");
  EXPECT_EQ(call->port, 81);
  EXPECT_EQ(call->path, "/p?q");
  EXPECT_EQ(call->method, "HEAD");
  EXPECT_EQ(call->headers.at("x-a"), "b");
  EXPECT_EQ(CurlResult(*call, {.code = 200, .body = "x"}).out, "200");
  EXPECT_EQ(ReadCurl({"curl", "-0", "h"})->protocol, "http1.0");
  EXPECT_EQ(ReadCurl({"curl", "--http2-prior-knowledge", "-m2.5", "h"})->max_time, 2500ms);
  EXPECT_EQ(CurlResult(*ReadCurl({"curl", "-m", "2", "h"}), {.why = "client timeout"}).err,
            "curl: (28) Operation timed out after 2000 milliseconds with 0 bytes received\n");
  EXPECT_FALSE(ReadCurl({"curl", "-m", "soon", "h"}).ok());
  EXPECT_FALSE(ReadCurl({"curl", "--socks5", "x", "h"}).ok());
  EXPECT_FALSE(ReadCurl({"curl", "ftp://h"}).ok());
  EXPECT_FALSE(ReadCurl({"curl"}).ok());
}

TEST(Curl, SpeaksTlsToAnAddressThatItIsTold) {
  const auto call = ReadCurl({"curl", "-k", "--resolve", "shop.example:443:172.30.1.1", "https://shop.example/a"});
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_TRUE(call->tls && call->insecure);
  EXPECT_EQ(call->port, 443);
  EXPECT_EQ(call->connect_to, "172.30.1.1");
  EXPECT_EQ(ReadCurl({"curl", "--resolve", "shop.example:8443:172.30.1.1", "https://shop.example"})->connect_to, "");
  EXPECT_FALSE(ReadCurl({"curl", "--resolve", "shop.example", "https://shop.example"}).ok());
  EXPECT_FALSE(ReadCurl({"curl", "--cacert", "ca.crt", "https://shop.example"}).ok());
  EXPECT_EQ(CurlResult(*call, {.why = "TLS handshake failed", .closer = "CERTIFICATE_VERIFY_FAILED"}).exit_code, 60);
  EXPECT_EQ(CurlResult(*call, {.why = "TLS handshake failed", .closer = "HANDSHAKE_FAILURE"}).exit_code, 35);
  EXPECT_EQ(CurlResult(*call, {.why = "connection reset", .closer = "listener a: no filter chain"}).exit_code, 35);
  EXPECT_EQ(CurlResult(*call, {.why = "connection reset"}).exit_code, 56);
}

TEST(Curl, SaysWhoItIsUnlessItIsToldOtherwise) {
  EXPECT_THAT(ReadCurl({"curl", "h"})->headers.at("user-agent"), testing::StartsWith("curl/"));
  EXPECT_EQ(ReadCurl({"curl", "-A", "me", "h"})->headers.at("user-agent"), "me");
  EXPECT_FALSE(ReadCurl({"curl", "-H", "Accept:", "h"})->headers.contains("accept"));
}

TEST(Curl, ShowsTheHeadsThatItIsAskedFor) {
  const CurlAnswer answer{.code = 418, .body = "x", .headers = "x-a: b\n"};
  const std::string head = "HTTP/1.1 418 Unknown\r\nx-a: b\r\n\r\n";
  EXPECT_EQ(CurlResult(*ReadCurl({"curl", "-i", "h"}), answer).out, head + "x");
  EXPECT_EQ(CurlResult(*ReadCurl({"curl", "-o", "/dev/null", "-D", "-", "h"}), answer).out, head);
  EXPECT_THAT(CurlResult(*ReadCurl({"curl", "-sv", "-H", "Host: shop.example", "h/p"}), answer).err,
              testing::AllOf(HasSubstr("> GET /p HTTP/1.1\r\n> Host: shop.example\r\n"),
                             HasSubstr("< HTTP/1.1 418 Unknown\r\n< x-a: b\r\n")));
}

TEST(WebSocket, AnswersTheKeyOfItsRfc) {
  EXPECT_EQ(WebSocketAccept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  bool closed = false;
  std::string heard;
  WebSocket socket({.on_message = [&](std::string_view m) { heard = m; },
                    .on_close = [&] { closed = true; },
                    .send = [](const std::string&) {}});
  EXPECT_FALSE(WebSocket({.on_message = nullptr, .on_close = nullptr, .send = nullptr}).Take("\x81\x01x"));  // unmasked
  // Byte by byte: a frame of three bytes under the mask 0.
  for (const char c : std::string("\x82\x83\0\0\0\0abc", 9)) EXPECT_TRUE(socket.Take({&c, 1}));
  EXPECT_EQ(heard, "abc");
  EXPECT_TRUE(socket.Take(std::string("\x88\x80\0\0\0\0", 6)));
  EXPECT_TRUE(closed);
}

}  // namespace
}  // namespace wavetank::serve
