// The client's end of an ADS stream, of either protocol. gRPC's threads call the hooks; anybody may write or hang up.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <deque>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "envoy/service/discovery/v3/ads.grpc.pb.h"

namespace wavetank::serve {

// Held by shared pointers. Once begun it keeps itself until Ended() has returned.
template <class Request, class Response>
class AdsCall : public grpc::ClientBidiReactor<Request, Response>,
                public std::enable_shared_from_this<AdsCall<Request, Response>> {
 public:
  using Stub = envoy::service::discovery::v3::AggregatedDiscoveryService::Stub;

  // Once. What the request's metadata needs is in context() by then.
  void Begin(std::shared_ptr<Stub> stub) {
    self_ = this->shared_from_this();
    stub_ = std::move(stub);
    if constexpr (std::is_same_v<Request, envoy::service::discovery::v3::DiscoveryRequest>) {
      stub_->async()->StreamAggregatedResources(&context_, this);
    } else {
      stub_->async()->DeltaAggregatedResources(&context_, this);
    }
    this->AddHold();  // since writes come whenever they like
    response_ = std::make_shared<Response>();
    this->StartRead(response_.get());
    this->StartCall();
  }

  // In the order of the calls. Nothing is written any more once the stream is over.
  void Write(Request request) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (over_) return;
    waiting_.push_back(std::move(request));
    if (waiting_.size() == 1) this->StartWrite(&waiting_.front());
  }
  void Cancel() { context_.TryCancel(); }

 protected:
  grpc::ClientContext& context() { return context_; }

  // The server has accepted the stream.
  virtual void Connected() {}
  virtual void Received(std::shared_ptr<const Response> response) = 0;
  // The last call.
  virtual void Ended(const grpc::Status& status) = 0;

 private:
  void OnReadInitialMetadataDone(bool ok) final {
    if (ok) Connected();
  }
  void OnWriteDone(bool ok) final {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!ok || over_) return waiting_.clear();
    waiting_.pop_front();
    if (!waiting_.empty()) this->StartWrite(&waiting_.front());
  }
  void OnReadDone(bool ok) final {
    if (!ok) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        over_ = true;
      }
      return this->RemoveHold();
    }
    Received(std::move(response_));
    response_ = std::make_shared<Response>();
    this->StartRead(response_.get());
  }
  void OnDone(const grpc::Status& status) final {
    Ended(status);
    const std::shared_ptr<AdsCall> last = std::move(self_);
  }

  std::shared_ptr<Stub> stub_;
  grpc::ClientContext context_;
  std::shared_ptr<Response> response_;
  std::mutex mutex_;
  std::deque<Request> waiting_;  // guarded; the first is being written
  bool over_ = false;            // guarded
  std::shared_ptr<AdsCall> self_;
};

}  // namespace wavetank::serve
