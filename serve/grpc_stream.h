// The writing half of one gRPC stream of the callback API: what its owner says from any thread goes out in order, one
// message at a time, and what waits is counted, so that a client that does not read is hung up on instead of filling
// the memory. Included by the few files that include gRPC.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "serve/frontend.h"

namespace wavetank::serve {

// The codes are the same numbers.
inline grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message().data(), status.message().size())};
}

using RawReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// Outlives its reactor: both the reactor and whoever writes hold it.
class Outbox {
 public:
  Outbox(RawReactor* reactor, grpc::CallbackServerContext* context, int64_t unread_bytes)
      : reactor_(reactor), context_(context), limit_(unread_bytes) {}

  // False: the stream is over, or has just been broken for not reading.
  bool Write(grpc::ByteBuffer message) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (reactor_ == nullptr || finishing_ || broken_) return false;
    waiting_bytes_ += static_cast<int64_t>(message.Length());
    if (waiting_bytes_ > limit_) {
      Break();
      return false;
    }
    waiting_.push_back(std::move(message));
    if (!writing_) Next();
    return true;
  }

  // Reads the next message, unless the stream ends.
  void Read(grpc::ByteBuffer* in) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (reactor_ != nullptr && !finishing_ && !broken_) reactor_->StartRead(in);
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
    waiting_bytes_ -= static_cast<int64_t>(waiting_.front().Length());
    waiting_.pop_front();
    if (!ok || broken_) waiting_.clear();
    if (!waiting_.empty()) return Next();
    if (finishing_) End();
  }
  void Detach() {
    const std::lock_guard<std::mutex> lock(mutex_);
    reactor_ = nullptr;
    context_ = nullptr;
    waiting_.clear();
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
    while (waiting_.size() > (writing_ ? 1u : 0u)) waiting_.pop_back();
    context_->TryCancel();
  }

  std::mutex mutex_;
  RawReactor* reactor_;
  grpc::CallbackServerContext* context_;
  const int64_t limit_;
  std::deque<grpc::ByteBuffer> waiting_;  // the first one is being written
  int64_t waiting_bytes_ = 0;
  bool writing_ = false, finishing_ = false, ended_ = false, broken_ = false;
  grpc::Status status_;
};

inline absl::StatusOr<StreamPlaceRef> EnterStream(Frontend& frontend, const TransportPeer& peer,
                                                  const std::shared_ptr<Outbox>& outbox) {
  return frontend.Enter(peer.address, [outbox](const absl::Status& status) { outbox->Expire(ToGrpc(status)); });
}

}  // namespace wavetank::serve
