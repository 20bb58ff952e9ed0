#include "fakes/envoy/apps/client_streams.h"

#include <utility>
#include <vector>

#include "core/base/assert.h"

namespace wavetank::envoysim {

ClientStreams::ClientStreams(const ClientContext& client, const SocketAddress& destination,
                             std::shared_ptr<const FirstFlight> flight, bool given, Owner& owner)
    : client_(client), destination_(destination), flight_(std::move(flight)), given_(given), owner_(owner) {}

ClientStreams::~ClientStreams() {
  if (id_ != kNoConnection) client_.fabric.Close(id_, Fabric::End::kClient, CloseKind::kReset);
  for (auto& [number, stream] : streams_) {
    if (stream.exchange != kNoExchange) client_.fabric.Abandon(stream.exchange);
    client_.host.Cancel(stream.timeout);
    client_.host.Cancel(stream.answered);
  }
}

void ClientStreams::Open() {
  WAVETANK_ASSERT(id_ == kNoConnection, id_);
  id_ = client_.fabric.Connect({client_.workload, Origin::Who::kApplication, client_.source}, destination_, this);
  if (client_.fabric.state(id_) == Fabric::State::kConnected) OnConnected(id_);
}

bool ClientStreams::Takes(const SocketAddress& destination, const FirstFlight* given) const {
  return id_ != kNoConnection && !goes_away_ && destination_ == destination &&
         (given_ ? flight_.get() : nullptr) == given;
}

void ClientStreams::Send(Request request) {
  WAVETANK_ASSERT(!goes_away_, id_);
  WAVETANK_ASSERT(request.spec != nullptr);
  WAVETANK_ASSERT(request.done != nullptr);
  const uint64_t number = next_++;
  Stream& stream = streams_[number];
  stream.request = std::move(request);
  if (stream.request.deadline) {
    stream.timeout = client_.host.RunAfter(*stream.request.deadline - client_.host.Now(), [this, number] {
      streams_.at(number).timeout = kNoTimer;
      GiveUp(number);
    });
  }
  if (ready_) DispatchWaiting();
}

void ClientStreams::OnConnected(ConnectionId) {
  client_.fabric.SetFlight(id_, flight_);
  if (flight_->kind != FirstFlight::Kind::kTls) Ready();  // else when the session stands
}

void ClientStreams::OnTls(ConnectionId, const TlsOutcome& outcome) {
  finding_ = outcome.finding;
  if (outcome.ok) return Ready();
  const std::string why = outcome.error;
  client_.fabric.Close(id_, Fabric::End::kClient, CloseKind::kTlsFailed, "alert");
  Gone("TLS handshake failed", why);
}

void ClientStreams::Ready() {
  ready_ = true;
  DispatchWaiting();
}

void ClientStreams::DispatchWaiting() {
  if (dispatching_) return;  // whoever does goes on
  dispatching_ = true;
  for (auto it = streams_.begin(); it != streams_.end() && running_ < allowed_; ++it) {
    auto& [number, stream] = *it;
    if (stream.sent) continue;
    stream.sent = true;
    ++running_;
    stream.exchange =
        client_.fabric.NewExchange(id_, *stream.request.spec, this, number, kNoExchange, 0, stream.request.spec);
    client_.fabric.Dispatch(stream.exchange, Duration::zero());
  }
  dispatching_ = false;
}

void ClientStreams::OnHttp2Notice(ConnectionId, const Http2Notice& notice) {
  if (notice.max_concurrent_streams) allowed_ = *notice.max_concurrent_streams;
  goes_away_ |= notice.goes_away;
  if (ready_ && !goes_away_) DispatchWaiting();
  Settle();
}

void ClientStreams::OnReply(uint64_t number, const Reply& reply, Duration lead) {
  WAVETANK_ASSERT(lead >= Duration::zero(), lead);
  Stream& stream = streams_.at(number);
  WAVETANK_ASSERT(stream.answered == kNoTimer, id_, number);  // a request is answered once
  stream.exchange = kNoExchange;
  WAVETANK_ASSERT(running_ > 0, id_);
  --running_;
  goes_away_ |= reply.close;
  if (reply.refused && !stream.refused) {
    // Nobody has looked at it: it is tried again, once. grpc-go: stream.go, shouldRetry (unprocessed)
    stream.refused = true;
    stream.sent = false;
    client_.host.RunAfter(lead, [this, weak = std::weak_ptr<int>(alive_)] {
      if (!weak.expired()) Settle();
    });
    return;
  }
  const RequestRecord record =
      RecordOf(client_, *stream.request.spec, destination_, id_, stream.request.start, reply, lead);
  if (lead == Duration::zero() && !dispatching_) return Finish(number, record);
  // Answered within the pod, ahead of the clock: the client goes on when the clock is there.
  auto kept = std::make_shared<KeptRecord>(record);
  stream.answered = client_.host.RunAfter(lead, [this, number, kept] {
    streams_.at(number).answered = kNoTimer;
    Finish(number, kept->record);
  });
}

// RST_STREAM; the connection stays.
void ClientStreams::GiveUp(uint64_t number) {
  Stream& stream = streams_.at(number);
  if (stream.answered != kNoTimer) {
    client_.host.Cancel(stream.answered);
    stream.answered = kNoTimer;
  } else if (stream.exchange != kNoExchange) {
    client_.fabric.ResetRequest(std::exchange(stream.exchange, kNoExchange));
    --running_;
  }
  const Request& request = stream.request;
  Finish(number, RecordOfNone(client_, *request.spec, destination_, request.start, "client timeout", {}, finding_));
}

void ClientStreams::Finish(uint64_t number, const RequestRecord& record) {
  const auto it = streams_.find(number);
  WAVETANK_ASSERT(it != streams_.end(), id_, number);  // each request ends once
  WAVETANK_ASSERT(it->second.exchange == kNoExchange, id_, number);
  client_.host.Cancel(it->second.timeout);
  Request request = std::move(it->second.request);
  streams_.erase(it);
  const std::weak_ptr<int> alive = alive_;
  request.done(record);  // may end the client
  if (!alive.expired()) Settle();
}

void ClientStreams::OnClose(ConnectionId, CloseKind kind, std::string_view detail) {
  switch (kind) {
    case CloseKind::kRefused:
      return Gone("connection refused", detail);
    case CloseKind::kTimeout:
      return Gone("connection timed out", detail);
    default:
      return Gone("connection reset", detail);
  }
}

void ClientStreams::Gone(std::string_view why, std::string_view closer) {
  id_ = kNoConnection;
  goes_away_ = gone_ = true;
  const std::string kept_why(why), kept_closer(closer);
  std::vector<uint64_t> owed;
  for (const auto& [number, stream] : streams_) {
    if (stream.answered != kNoTimer) continue;           // answered already
    if (stream.sent || !ready_) owed.push_back(number);  // else its turn comes on another connection
  }
  const std::weak_ptr<int> alive = alive_;
  for (const uint64_t number : owed) {
    Stream& stream = streams_.at(number);
    if (stream.exchange != kNoExchange) {
      client_.fabric.Abandon(std::exchange(stream.exchange, kNoExchange));
      --running_;
    }
    const Request& request = stream.request;
    Finish(number, RecordOfNone(client_, *request.spec, destination_, request.start, kept_why, kept_closer, finding_));
    if (alive.expired()) return;
  }
  gone_ = false;
  Settle();
}

void ClientStreams::Settle() {
  if (gone_) return;
  if (ready_ && !goes_away_) DispatchWaiting();
  if (!goes_away_) return;
  // Those that have not gone out go elsewhere, the oldest first.
  for (auto it = streams_.begin(); it != streams_.end();) {
    if (it->second.sent) {
      ++it;
      continue;
    }
    client_.host.Cancel(it->second.timeout);
    Request request = std::move(it->second.request);
    it = streams_.erase(it);
    owner_.SendElsewhere(*this, std::move(request));
  }
  if (!streams_.empty()) return;
  if (id_ != kNoConnection) {
    client_.fabric.Close(std::exchange(id_, kNoConnection), Fabric::End::kClient, CloseKind::kFin);
  }
  owner_.Ended(*this);
}

}  // namespace wavetank::envoysim
