// Clients that speak HTTP/2 and keep their connection: what they share of it, and what becomes of requests when it
// goes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/envoy/lab.h"

namespace wavetank::envoysim::lab {
namespace {

constexpr const char* kServer = "10.1.0.1:80";

// A client without a proxy, and a server that shows what came to it.
class Streams : public testing::Test, public Acceptor, public ConnectionHandler {
 protected:
  struct Asked {
    ConnectionId connection;
    ExchangeId exchange;
  };

  Streams() : lab_(1, Instant()) {
    const WorkloadId from = lab_.network.AddPod("10.2.0.1");
    lab_.network.AddPod("10.1.0.1");
    lab_.network.pod("10.1.0.1").apps[80] = this;
    client_ = std::make_unique<AppClient>(lab_.plane.fabric(), lab_.host, from, "client");
    spec_.authority = "x";
    spec_.protocol = HttpProtocol::kHttp2;
  }

  void Send(Duration timeout = {}) {
    AppClient::Options options{true, timeout};
    options.multiplex = true;
    client_->Send(*SocketAddress::Parse(kServer), spec_, options, [this](const RequestRecord& record) {
      ended_.push_back(record.code != 0 ? std::to_string(record.code) : std::string(record.details));
    });
  }
  void Answer(size_t which, uint16_t code = 200, bool refused = false) {
    Reply reply;
    reply.code = code;
    reply.refused = refused;
    lab_.plane.fabric().Answer(asked_.at(which).exchange, reply, Duration::zero());
    lab_.RunFor(10ms);
  }
  void Allow(uint32_t streams) {
    Http2Notice notice;
    notice.max_concurrent_streams = streams;
    lab_.plane.fabric().Notify(accepted_.back(), notice);
    lab_.RunFor(10ms);
  }

  // The server
  ConnectionHandler* Accept(ConnectionId connection, const AcceptInfo&) override {
    accepted_.push_back(connection);
    return this;
  }
  void OnConnected(ConnectionId) override {}
  void OnTls(ConnectionId, const TlsOutcome&) override {}
  void OnFirstFlight(ConnectionId, const std::shared_ptr<const FirstFlight>&, Duration) override {}
  void OnRequest(ConnectionId connection, ExchangeId exchange, const RequestSpec&, Duration) override {
    asked_.push_back({connection, exchange});
  }
  void OnRequestReset(ConnectionId, ExchangeId) override { ++resets_; }
  void OnClose(ConnectionId, CloseKind, std::string_view) override { ++closed_; }

  Lab lab_;
  RequestSpec spec_;
  std::unique_ptr<AppClient> client_;
  std::vector<ConnectionId> accepted_;
  std::vector<Asked> asked_;
  std::vector<std::string> ended_;
  int resets_ = 0, closed_ = 0;
};

TEST_F(Streams, AreUnderWayOnOneConnectionSideBySide) {
  Send();
  lab_.RunFor(10ms);
  Send();
  Send();
  lab_.RunFor(10ms);
  EXPECT_EQ(accepted_.size(), 1u);
  ASSERT_EQ(asked_.size(), 3u);
  Answer(2);
  Answer(0, 503);
  EXPECT_THAT(ended_, testing::ElementsAre("200", "503")) << "each when it is answered";
}

TEST_F(Streams, BeyondWhatTheServerAllowsWaitForTheirTurn) {
  Send();
  lab_.RunFor(10ms);
  Allow(1);
  Send();
  Send();
  lab_.RunFor(10ms);
  EXPECT_EQ(asked_.size(), 1u);
  Answer(0);
  EXPECT_EQ(asked_.size(), 2u);
  Answer(1);
  Answer(2);
  EXPECT_THAT(ended_, testing::ElementsAre("200", "200", "200"));
  EXPECT_EQ(accepted_.size(), 1u);
}

TEST_F(Streams, ThatNobodyLookedAtAreSentAgainOnce) {
  Send();
  lab_.RunFor(10ms);
  Answer(0, 0, /*refused=*/true);
  ASSERT_EQ(asked_.size(), 2u);
  EXPECT_TRUE(ended_.empty());
  Answer(1, 0, /*refused=*/true);
  EXPECT_EQ(asked_.size(), 2u);
  EXPECT_THAT(ended_, testing::ElementsAre("stream refused"));
}

TEST_F(Streams, ThatAreGivenUpLeaveTheConnectionToTheOthers) {
  Send(100ms);
  Send();
  lab_.RunFor(200ms);
  EXPECT_THAT(ended_, testing::ElementsAre("client timeout"));
  EXPECT_EQ(resets_, 1);
  EXPECT_EQ(closed_, 0);
  Answer(1);
  EXPECT_THAT(ended_, testing::ElementsAre("client timeout", "200"));
}

TEST_F(Streams, OfAConnectionThatGoesAwayEndThereAndOthersOpenANewOne) {
  Send();
  lab_.RunFor(10ms);
  Allow(1);
  Send();  // waits
  Http2Notice notice;
  notice.goes_away = true;
  lab_.plane.fabric().Notify(accepted_[0], notice);
  lab_.RunFor(10ms);
  ASSERT_EQ(accepted_.size(), 2u);
  ASSERT_EQ(asked_.size(), 2u);
  EXPECT_EQ(asked_[1].connection, accepted_[1]);
  EXPECT_EQ(closed_, 0) << "it still owes an answer";
  Answer(0);
  EXPECT_EQ(closed_, 1);
  Answer(1);
  EXPECT_THAT(ended_, testing::ElementsAre("200", "200"));
}

TEST_F(Streams, OfAConnectionThatIsResetFailAndTheNextOpensANewOne) {
  Send();
  Send();
  lab_.RunFor(10ms);
  lab_.plane.fabric().Close(accepted_[0], Fabric::End::kServer, CloseKind::kReset);
  lab_.RunFor(10ms);
  EXPECT_THAT(ended_, testing::ElementsAre("connection reset", "connection reset"));
  Send();
  lab_.RunFor(10ms);
  EXPECT_EQ(accepted_.size(), 2u);
}

// grpc-go: what its transport has not seen goes on with the next one.
TEST_F(Streams, ThatWaitForTheirTurnGoElsewhereWhenTheConnectionIsReset) {
  Send();
  lab_.RunFor(10ms);
  Allow(1);
  Send();
  lab_.RunFor(10ms);
  lab_.plane.fabric().Close(accepted_[0], Fabric::End::kServer, CloseKind::kReset);
  lab_.RunFor(10ms);
  EXPECT_THAT(ended_, testing::ElementsAre("connection reset"));
  ASSERT_EQ(asked_.size(), 2u);
  Answer(1);
  EXPECT_THAT(ended_, testing::ElementsAre("connection reset", "200"));
}

TEST_F(Streams, OfAConnectionThatIsRefusedFailTogether) {
  lab_.network.pod("10.1.0.1").apps.clear();
  Send();
  Send();
  lab_.RunFor(10ms);
  EXPECT_THAT(ended_, testing::ElementsAre("connection refused", "connection refused"));
  EXPECT_EQ(lab_.plane.fabric().counters().connections, 1u);
}

TEST_F(Streams, ThatAreAnsweredAheadOfTheClockOutliveTheirConnection) {
  client_ = std::make_unique<AppClient>(lab_.plane.fabric(), lab_.host, lab_.network.AddPod("10.1.0.1"), "local");
  Send();
  Send();
  lab_.RunFor(10ms);
  Allow(2);
  Send();  // waits
  Reply reply;
  lab_.plane.fabric().Answer(asked_.at(0).exchange, reply, 100ms);
  lab_.plane.fabric().Close(accepted_[0], Fabric::End::kServer, CloseKind::kReset);
  lab_.RunFor(10ms);
  EXPECT_THAT(ended_, testing::ElementsAre("connection reset"));
  ASSERT_EQ(asked_.size(), 3u);
  Answer(2);
  lab_.RunFor(100ms);
  EXPECT_THAT(ended_, testing::ElementsAre("connection reset", "200", "200"));
}

TEST_F(Streams, EndWithoutACallWithTheirClient) {
  Send();
  Send(1s);
  lab_.RunFor(10ms);
  client_.reset();
  lab_.RunFor(2s);
  EXPECT_EQ(closed_, 1);
  EXPECT_TRUE(ended_.empty());
}

}  // namespace
}  // namespace wavetank::envoysim::lab
