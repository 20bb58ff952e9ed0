// The HTTP server against peers that a browser or kubectl never are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fakes/kube/http/message/status.h"
#include "tests/await.h"
#include "tests/fakes/kube/http/peer.h"
#include "tests/fakes/kube/http/served_cluster.h"
#include "tests/long.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ServerTest : public ::testing::Test {
 protected:
  void Serve(ServedCluster::Options options = {}) {
    served_ = std::make_unique<ServedCluster>(std::move(options));
    ASSERT_TRUE(served_->port().ok()) << served_->port().status();
  }
  // Below the ports that the system hands out: a client that keeps knocking after the server's end must find neither
  // another program's server there nor, as the port that it was given itself, its own end.
  void ServeBelowEphemeralPorts() {
    constexpr int kFirst = 20'000, kPorts = 12'000;
    for (int i = 0; i < 100; ++i) {
      ServedCluster::Options options;
      options.port = static_cast<uint16_t>(kFirst + (getpid() * 37 + next_port_++) % kPorts);
      served_ = std::make_unique<ServedCluster>(std::move(options));
      if (served_->port().ok()) return;
    }
    FAIL() << served_->port().status();
  }
  uint16_t port() { return *served_->port(); }
  void Put(const std::string& name, const std::string& value) {
    const absl::StatusOr<ObjectRef> done = served_->Call([&](Cluster& cluster) {
      return cluster.api().Apply({{"apiVersion", "v1"},
                                  {"kind", "ConfigMap"},
                                  {"metadata", {{"name", name}, {"namespace", "default"}}},
                                  {"data", {{"value", value}}}});
    });
    ASSERT_TRUE(done.ok()) << done.status();
  }

  std::unique_ptr<ServedCluster> served_;
  int next_port_ = 0;
};

TEST_F(ServerTest, KeepsAConnectionForManyRequests) {
  Serve();
  Peer peer(port());
  for (int i = 0; i < 3; ++i) {
    peer.Send(Get("/version"));
    const std::string answer = peer.Read("\"platform\"");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, HasSubstr("Content-Type: application/json"));
  }
  peer.Send(Get("/healthz") + Get("/no"));  // sent ahead
  const std::string both = peer.Read("page not found");
  EXPECT_THAT(both, HasSubstr("ok"));
  EXPECT_THAT(both, HasSubstr("page not found"));
}

TEST_F(ServerTest, HeadersSayInWhoseNameARequestIs) {
  Serve();
  Peer peer(port());
  const std::string target = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\nHost: x\r\n";
  peer.Send(target +
            "Impersonate-User: dave\r\nImpersonate-Group: dev\r\nimpersonate-group: ops\r\nImpersonate-Uid: 7\r\n"
            "Impersonate-Extra-Acme.com%2fProject: a\r\nContent-Length: 2\r\n\r\n{}");
  const std::string answer = peer.Read("username");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 201 "));
  EXPECT_THAT(answer, HasSubstr(R"("extra":{"acme.com/project":["a"]})"));
  EXPECT_THAT(answer, HasSubstr(R"("groups":["dev","ops","system:authenticated"])"));
  EXPECT_THAT(answer, HasSubstr(R"("uid":"7")"));
}

// What a whole answer's gzip body says; its head is before it. Chunks are taken apart.
std::string Unzipped(const std::string& answer) {
  const size_t head = answer.find("\r\n\r\n");
  std::string body = head == std::string::npos ? "" : answer.substr(head + 4);
  if (answer.substr(0, head).find("Transfer-Encoding: chunked") != std::string::npos) {
    std::string whole;
    for (size_t at = 0; at < body.size();) {
      const size_t length = std::strtoul(body.c_str() + at, nullptr, 16);
      if (length == 0) break;
      at = body.find("\r\n", at) + 2;
      whole += body.substr(at, length);
      at += length + 2;
    }
    body = std::move(whole);
  }
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
  std::string out(32 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(body.data());
  stream.avail_in = static_cast<uInt>(body.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

std::string GetAs(const std::string& path, const std::string& encoding) {
  return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept-Encoding: " + encoding + "\r\n\r\n";
}

TEST_F(ServerTest, LargeAnswersAreCompressedForWhoAsks) {
  Serve();
  Put("small", "1");
  Put("large", std::string(200'000, 'x'));
  const auto ask = [&](const std::string& path, const std::string& encoding) {
    Peer peer(port());
    peer.Send(GetAs(path, encoding));
    return peer.Read("");
  };
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  const std::string one = ask(maps + "/large", "deflate, gzip");
  EXPECT_THAT(one, HasSubstr("Content-Encoding: gzip\r\n"));
  EXPECT_THAT(one, HasSubstr("Vary: Accept-Encoding\r\n"));
  EXPECT_LT(one.size(), 20'000U);
  EXPECT_EQ(json::parse(Unzipped(one))["data"]["value"], std::string(200'000, 'x'));
  for (int i = 0; i < 30; ++i) Put("other" + std::to_string(i), std::string(40'000, static_cast<char>('a' + i % 26)));
  const std::string list = ask(maps, "gzip");
  EXPECT_THAT(list, HasSubstr("Content-Encoding: gzip\r\n"));
  EXPECT_EQ(json::parse(Unzipped(list))["items"].size(), 32U);
  for (const auto& [path, encoding] : {std::pair<std::string, std::string>{maps + "/small", "gzip"},
                                       {maps + "/large", "deflate"},
                                       {maps + "/large", "gzip;q=0.5"}})
    EXPECT_THAT(ask(path, encoding), ::testing::Not(HasSubstr("Content-Encoding"))) << path << encoding;
}

TEST_F(ServerTest, ABodyInGzipIsNotRead) {
  Serve();
  const std::string body = "\x1f\x8b\x08 not json";
  Peer peer(port());
  peer.Send(
      "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
      "Content-Encoding: gzip\r\nConnection: close\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body);
  const std::string answer = peer.Read("");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(answer, HasSubstr(R"(invalid character '\\x1f' looking for beginning of value)"));
}

TEST_F(ServerTest, SendsListsAndWatchesInChunksAndEndsThemInOrder) {
  Serve();
  Put("a", "1");
  Peer peer(port());
  peer.Send(Get("/api/v1/namespaces/default/configmaps"));
  EXPECT_THAT(peer.Read("0\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked"));
  peer.Send(Get("/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=1"));
  EXPECT_THAT(peer.Read("\"name\":\"a\""), HasSubstr("\"ADDED\""));
  Put("b", "1");
  EXPECT_THAT(peer.Read("\"name\":\"b\""), HasSubstr("\"ADDED\""));
  EXPECT_THAT(peer.Read("0\r\n\r\n"), EndsWith("0\r\n\r\n"));
  peer.Send(Get("/healthz"));
  EXPECT_THAT(peer.Read("ok"), StartsWith("HTTP/1.1 200"));
}

// The versions of the objects in a watch's lines, in order.
std::vector<int64_t> VersionsIn(const std::string& text) {
  std::vector<int64_t> out;
  const std::string mark = "\"resourceVersion\":\"";
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1))
    out.push_back(std::strtoll(text.c_str() + at + mark.size(), nullptr, 10));
  return out;
}

// Lists and then watches from the list's version, over and over, while three clients write: every change after a list
// is told to its watch, once and in order.
TEST_F(ServerTest, AWatchFromAListsVersionLosesNothingWhileOthersWrite) {
  Serve();
  const std::string path = "/api/v1/namespaces/default/configmaps";
  std::vector<int64_t> all;  // on the store's thread
  Subscription told = served_->Call([&](Cluster& cluster) {
    return cluster.api().Observe("ConfigMap", [&](const Change& change) {
      if (change.object->meta.ns == "default") all.push_back(change.resource_version);
    });
  });
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (int w = 0; w < 3; ++w) {
    writers.emplace_back([&, w] {
      for (int i = 0; !stop; ++i) {
        Put("w" + std::to_string(w), std::to_string(i));
        LetTimePass(std::chrono::milliseconds(1 + w));
      }
    });
  }
  struct Watcher {
    explicit Watcher(uint16_t port) : peer(port) {}
    Peer peer;
    int64_t from = 0;
  };
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < 200; ++i) {
    auto watcher = std::make_unique<Watcher>(port());
    watcher->peer.Send(Get(path));
    const std::vector<int64_t> listed = VersionsIn(watcher->peer.Read("0\r\n\r\n"));
    ASSERT_FALSE(listed.empty());
    watcher->from = *std::max_element(listed.begin(), listed.end());  // the list's own is the newest of all
    watcher->peer.Send(Get(path + "?watch=true&resourceVersion=" + std::to_string(watcher->from)));
    watchers.push_back(std::move(watcher));
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
  Put("the-last", "1");
  served_->Call([&](Cluster&) {
    told.Cancel();
    return true;
  });
  ASSERT_GT(all.size(), 20u);
  for (const auto& watcher : watchers) {
    const std::vector<int64_t> got = VersionsIn(watcher->peer.ReadThroughLineWith("\"the-last\""));
    const std::vector<int64_t> wanted(std::upper_bound(all.begin(), all.end(), watcher->from), all.end());
    EXPECT_EQ(got, wanted) << "after " << watcher->from;
  }
}

TEST_F(ServerTest, AWatchOfASlowServerLosesNothing) {
  Serve();
  served_->Call([](Cluster& cluster) {
    cluster.api().faults().extra_latency = 300ms;
    return true;
  });
  Peer peer(port());
  peer.Send(Get("/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=" +
                std::to_string(served_->Call([](Cluster& cluster) { return cluster.api().resource_version(); }))));
  for (int i = 0; i < 5; ++i) Put("slow" + std::to_string(i), "1");
  EXPECT_EQ(VersionsIn(peer.ReadThroughLineWith("\"slow4\"")).size(), 5u);
}

TEST_F(ServerTest, ARequestHasOneDeadlineHoweverSlowlyItComes) {
  ServedCluster::Options options;
  options.server.request_timeout = 500ms;
  Serve(options);
  Peer slow(port());
  const auto start = std::chrono::steady_clock::now();
  bool closed = false;
  // A byte every 50 ms never stands still, and never ends.
  slow.Send("POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
  for (int i = 0; i < 400 && !closed; ++i) {
    slow.Send("x");
    slow.Read("", 50);
    closed = slow.closed();
  }
  EXPECT_TRUE(slow.closed());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
}

TEST_F(ServerTest, BookmarksComeToThoseWhoAskForThem) {
  ServedCluster::Options options;
  options.server.bookmark_period = 50ms;
  Serve(options);
  Peer asked(port()), not_asked(port());
  asked.Send(Get("/api/v1/pods?watch=true&allowWatchBookmarks=true"));
  not_asked.Send(Get("/api/v1/pods?watch=true"));
  EXPECT_THAT(asked.Read("BOOKMARK"), HasSubstr("\"type\":\"BOOKMARK\""));
  EXPECT_THAT(not_asked.Read("BOOKMARK", 300), ::testing::Not(HasSubstr("BOOKMARK")));
}

TEST_F(ServerTest, AWatchGoesWithItsClient) {
  Serve();
  {
    std::vector<std::unique_ptr<Peer>> peers;
    for (int i = 0; i < 20; ++i) {
      peers.push_back(std::make_unique<Peer>(port()));
      peers.back()->Send(Get("/api/v1/pods?watch=true"));
      peers.back()->Read("\r\n\r\n");
    }
    EXPECT_EQ(served_->server().connections(), 20u);
  }
  EXPECT_TRUE(Await([&] { return served_->server().connections() == 0; }));
  Put("a", "1");  // nobody is there to be told
}

TEST_F(ServerTest, BodiesAndHeadersHaveLimits) {
  ServedCluster::Options options;
  options.server.max_body_bytes = 1000;
  Serve(options);
  {
    Peer peer(port());
    peer.Send("POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    EXPECT_THAT(peer.Read("limit is 1000"), StartsWith("HTTP/1.1 413"));
  }
  {
    Peer peer(port());
    peer.Send("POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 20; ++i) peer.Send("64\r\n" + std::string(100, 'x') + "\r\n");
    EXPECT_THAT(peer.Read("limit is 1000"), StartsWith("HTTP/1.1 413"));
  }
  {
    Peer peer(port());
    peer.Send("GET /healthz HTTP/1.1\r\nX: " + std::string(40000, 'x') + "\r\n\r\n");
    EXPECT_THAT(peer.Read("too large"), StartsWith("HTTP/1.1 431"));
  }
  {
    Peer peer(port());
    peer.Send("\x16\x03\x01 this is TLS\r\n\r\n");
    EXPECT_THAT(peer.Read("no HTTP"), StartsWith("HTTP/1.1 400"));
  }
  {
    Peer peer(port());
    peer.Send("GET http://elsewhere/ HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(peer.Read("names no path"), StartsWith("HTTP/1.1 400"));
  }
}

TEST_F(ServerTest, WhoSendsTooSlowlyIsCutOff) {
  ServedCluster::Options options;
  options.server.request_timeout = 200ms;
  options.server.idle_timeout = 200ms;
  Serve(options);
  Peer slow(port());
  slow.Send("GET /healthz HT");
  Peer silent(port());
  EXPECT_EQ(slow.Read("never"), "");
  EXPECT_TRUE(slow.closed());
  silent.Read("never");
  EXPECT_TRUE(silent.closed());
}

TEST_F(ServerTest, WhoReadsTooSlowlyIsCutOffAndTheOthersNoticeNothing) {
  ServedCluster::Options options;
  options.server.max_unsent_watch_bytes = 1000000;
  Serve(options);
  Peer slow(port(), 4096), good(port());
  for (Peer* peer : {&slow, &good}) {
    peer->Send(Get("/api/v1/configmaps?watch=true"));
    peer->Read("\r\n\r\n");
  }
  // More than the kernel's buffers take.
  constexpr int kWrites = 150;
  for (int i = 0; i < kWrites; ++i) {
    Put("big", std::to_string(i) + std::string(100000, 'x'));
    good.Read("}}\n");
  }
  EXPECT_TRUE(Await([&] { return served_->server().connections() == 1; }));
  Put("last", "1");
  EXPECT_THAT(good.Read("\"name\":\"last\""), HasSubstr("\"name\":\"last\""));
}

TEST_F(ServerTest, TooManyConnectionsAreTurnedAway) {
  ServedCluster::Options options;
  options.server.max_connections = 3;
  Serve(options);
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(std::make_unique<Peer>(port()));
    peers.back()->Send(Get("/healthz"));
    EXPECT_THAT(peers.back()->Read("ok"), HasSubstr("200 OK"));
  }
  Peer fourth(port());
  fourth.Read("never");
  EXPECT_TRUE(fourth.closed());
  peers.clear();
  EXPECT_TRUE(Await([&] { return served_->server().connections() == 0; }));
  Peer later(port());
  later.Send(Get("/healthz"));
  EXPECT_THAT(later.Read("ok"), HasSubstr("200 OK"));
}

TEST_F(ServerTest, AThousandIdleWatchesHurtNobody) {
  Serve();
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 1000; ++i) {
    peers.push_back(std::make_unique<Peer>(port()));
    ASSERT_TRUE(peers.back()->connected());
    peers.back()->Send(Get("/api/v1/configmaps?watch=true"));
  }
  for (const auto& peer : peers) ASSERT_THAT(peer->Read("\r\n\r\n"), HasSubstr("200 OK"));
  Peer other(port());
  other.Send(Get("/api/v1/namespaces"));
  EXPECT_THAT(other.Read("0\r\n\r\n"), HasSubstr("kube-system"));
  EXPECT_EQ(served_->server().connections(), 1001u) << "none was dropped for it";
  Put("a", "1");
  for (const auto& peer : peers) ASSERT_THAT(peer->Read("\"name\":\"a\""), HasSubstr("ADDED"));
}

// A million of them takes 2 GB: with ./test --long only.
TEST_F(ServerTest, AListOfVeryManyObjectsComesInPagesAndHoldsUpNobody) {
  const int count = LongTests() ? 1'000'000 : 20'000;
  Serve();
  for (int from = 0; from < count; from += 5000) {
    served_->Call([&](Cluster& cluster) {
      for (int i = from; i < from + 5000; ++i) {
        cluster.api()
            .Create({{"apiVersion", "v1"},
                     {"kind", "ConfigMap"},
                     {"metadata", {{"name", "c" + std::to_string(i)}, {"namespace", "default"}}}})
            .IgnoreError();
      }
      return 0;
    });
  }
  // The whole list at once, for somebody who hardly reads it.
  Peer slow(port(), 4096);
  slow.Send(Get("/api/v1/namespaces/default/configmaps"));
  Peer peer(port());
  std::set<std::string> names;
  std::string token;
  do {
    peer.Send(Get("/api/v1/namespaces/default/configmaps?limit=5000" + (token.empty() ? "" : "&continue=" + token)));
    const std::string page = peer.Read("0\r\n\r\n", 60000);
    for (size_t at = 0; (at = page.find("\"name\":\"c", at)) != std::string::npos; ++at)
      names.insert(page.substr(at + 8, page.find('"', at + 8) - at - 8));
    const size_t at = page.find("\"continue\":\"");
    token = at == std::string::npos ? "" : page.substr(at + 12, page.find('"', at + 12) - at - 12);
    // Somebody else changes things meanwhile; the pages show them as they were.
    Put("late" + std::to_string(names.size()), "1");
  } while (!token.empty() && names.size() <= static_cast<size_t>(count));
  EXPECT_EQ(names.size(), static_cast<size_t>(count));
  EXPECT_EQ(served_->server().connections(), 2u) << "the slow reader was neither dropped nor waited for";
}

TEST_F(ServerTest, StopsWithWatchesOpenAndRequestsUnderWay) {
  ServedCluster::Options options;
  options.nap = std::chrono::milliseconds(20);
  Serve(options);
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 30; ++i) {
    peers.push_back(std::make_unique<Peer>(port()));
    peers.back()->Send(Get(i % 2 == 0 ? "/api/v1/pods?watch=true" : "/api/v1/namespaces"));
  }
  ASSERT_THAT(peers[0]->Read("\r\n\r\n"), HasSubstr("200 OK")) << "its watch is open; other requests wait their turn";
  served_ = nullptr;
  for (const auto& peer : peers) {
    peer->Read("never");
    EXPECT_TRUE(peer->closed());
  }
}

// A connection that was accepted just before the listening socket closed must not be served, nor be followed by others.
TEST_F(ServerTest, StopsWhileClientsKeepComing) {
  for (int round = 0; round < 20; ++round) {
    ServeBelowEphemeralPorts();
    const uint16_t at = port();
    std::atomic<bool> enough = false;
    std::atomic<size_t> came = 0;
    std::vector<std::unique_ptr<Peer>> peers;
    std::thread clients([&] {
      for (; !enough && peers.size() < 500; ++came) peers.push_back(std::make_unique<Peer>(at));
    });
    while (came < static_cast<size_t>(1 + round)) std::this_thread::yield();  // stops at another moment in each round
    served_ = nullptr;
    enough = true;
    clients.join();
    for (const auto& peer : peers) {
      if (!peer->connected()) continue;
      // Who waited behind a full queue of the listening socket is told nothing of its end by Linux, until it speaks.
      peer->Send(Get("/healthz"));
      peer->Read("never");
      EXPECT_TRUE(peer->closed()) << "a connection outlived its server";
    }
  }
}

TEST_F(ServerTest, APortThatIsTakenIsSaid) {
  Serve();
  ServedCluster::Options options;
  options.port = port();
  const ServedCluster second(options);
  EXPECT_EQ(second.port().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.port().status().message()), HasSubstr("in use"));
}

TEST_F(ServerTest, AnUnreachableServerHangsUpAndASlowOneAnswersLate) {
  Serve();
  served_->Call([](Cluster& cluster) { return cluster.api().faults().unreachable = true; });
  Peer refused(port());
  refused.Send(Get("/api/v1/pods"));
  EXPECT_EQ(refused.Read("never"), "");
  EXPECT_TRUE(refused.closed());
  served_->Call([](Cluster& cluster) {
    cluster.api().faults() = {};
    cluster.api().faults().extra_latency = 300ms;
    return 0;
  });
  const auto start = std::chrono::steady_clock::now();
  Peer late(port());
  late.Send(Get("/api/v1/pods"));
  EXPECT_THAT(late.Read("PodList"), HasSubstr("200 OK"));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(300));
}

}  // namespace
}  // namespace wavetank::fakekube::http
