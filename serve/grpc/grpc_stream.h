// The writing half of one gRPC stream of the callback API: what its owner says from any thread goes out in order, one
// message at a time, and what waits is counted: a client that does not read is not read from, and hung up on before it
// fills the memory. Included by the few files that include gRPC.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "serve/grpc/frontend.h"

namespace wavetank::serve {

// The codes are the same numbers.
inline grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message().data(), status.message().size())};
}

using RawReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// Outlives its reactor: both the reactor and its writers hold it.
class Outbox {
 public:
  // The frontend outlives the reactor.
  Outbox(RawReactor* reactor, grpc::CallbackServerContext* context, Frontend& frontend)
      : reactor_(reactor), context_(context), frontend_(frontend) {}

  // False: the stream is over, or has just been broken for not reading.
  bool Write(grpc::ByteBuffer message) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (reactor_ == nullptr || finishing_ || broken_) return false;
    Count(static_cast<int64_t>(message.Length()));
    waiting_.push_back(std::move(message));
    if (waiting_bytes_ > frontend_.limits().unread_bytes || frontend_.TakesTooMuch(waiting_bytes_)) {
      Break();
      return false;
    }
    if (!writing_) Next();
    return true;
  }

  // Reads the next message, unless the stream ends: now, or when the client has read enough of its answers. istiod,
  // too, takes no request from a stream while it cannot send on it.
  void Read(grpc::ByteBuffer* in) {
    const std::lock_guard<std::mutex> lock(mutex_);
    in_ = in;
    ReadOn();
  }

  // Ends the stream once what waits has gone out. Only the first call counts.
  void Finish(grpc::Status status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (reactor_ == nullptr || finishing_) return;
    finishing_ = true;
    status_ = std::move(status);
    if (!writing_) End();
  }

  // Ends it without waiting for what the client does not read.
  void Abort() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (reactor_ != nullptr && !finishing_) Break();
  }
  // Ends it with this status, or, if that would have to wait, without.
  void Expire(grpc::Status status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (reactor_ == nullptr || finishing_) return;
    if (writing_) return Break();
    finishing_ = true;
    status_ = std::move(status);
    End();
  }

  // From the reactor's OnWriteDone and OnDone.
  void Wrote(bool ok) {
    const std::lock_guard<std::mutex> lock(mutex_);
    writing_ = false;
    Count(-static_cast<int64_t>(waiting_.front().Length()));
    waiting_.pop_front();
    if (!ok || broken_) Forget(0);
    ReadOn();
    if (!waiting_.empty()) return Next();
    if (finishing_) End();
  }
  void Detach() {
    const std::lock_guard<std::mutex> lock(mutex_);
    Forget(0);
    reactor_ = nullptr;
    context_ = nullptr;
  }
  // Whether it was hung up on for not reading.
  bool broken() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return broken_;
  }

 private:
  void Next() {
    writing_ = true;
    reactor_->StartWrite(&waiting_.front());
  }
  void End() {
    if (!ended_) reactor_->Finish(status_);
    ended_ = true;
  }
  void Break() {
    broken_ = true;
    Forget(writing_ ? 1 : 0);
    context_->TryCancel();
  }
  // Of what waits, all but the first `keep`.
  void Forget(size_t keep) {
    while (waiting_.size() > keep) {
      Count(-static_cast<int64_t>(waiting_.back().Length()));
      waiting_.pop_back();
    }
  }
  void Count(int64_t bytes) {
    waiting_bytes_ += bytes;
    frontend_.CountUnread(bytes);
  }
  void ReadOn() {
    if (in_ == nullptr || reactor_ == nullptr || finishing_ || broken_) return;
    if (static_cast<int64_t>(waiting_.size()) >= frontend_.limits().unread_answers) return;
    reactor_->StartRead(std::exchange(in_, nullptr));
  }

  std::mutex mutex_;
  RawReactor* reactor_;
  grpc::CallbackServerContext* context_;
  Frontend& frontend_;
  grpc::ByteBuffer* in_ = nullptr;        // where to read the next message, which is not being read yet
  std::deque<grpc::ByteBuffer> waiting_;  // the first one is being written
  int64_t waiting_bytes_ = 0;
  bool writing_ = false, finishing_ = false, ended_ = false, broken_ = false;
  grpc::Status status_;
};

// ResourceExhausted: there are too many streams, or too many from this address (Frontend::Enter).
inline absl::StatusOr<StreamPlaceRef> EnterStream(Frontend& frontend, const TransportPeer& peer,
                                                  const std::shared_ptr<Outbox>& outbox) {
  return frontend.Enter(peer.address, [outbox](const absl::Status& status) { outbox->Expire(ToGrpc(status)); });
}

// The same for a call of one request, which has said what it wants.
inline absl::StatusOr<StreamPlaceRef> EnterCall(Frontend& frontend, const TransportPeer& peer) {
  absl::StatusOr<StreamPlaceRef> place = frontend.Enter(peer.address, [](const absl::Status&) {});
  if (place.ok()) (*place)->Heard();
  return place;
}

}  // namespace wavetank::serve
