// One ADS stream of one proxy (istiod: pilot/pkg/xds/ads.go and delta.go, Connection).
//
// It does one thing at a time, as istiod's goroutine for the stream does: a request, or a push event; requests first.
// Each response is generated at once and sent when the processors have done the work it stands for.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/push/push_context.h"
#include "core/xds/push_queue.h"
#include "core/xds/stream.h"

namespace wavetank::pilot {

class DiscoveryServer;

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  // `stream` must outlive it or be told of its end.
  Connection(DiscoveryServer& server, uint64_t number, Peer peer, AuthenticatePeer authenticate, AdsStream& stream);

  // The stream has passed the rate limit: what came in meanwhile is handled now.
  void Open();
  using Request = std::variant<DiscoveryRequest, DeltaDiscoveryRequest>;
  void Receive(Request request);
  // A push event out of the queue. The server is told when it is done, whatever happens to the stream.
  void Push(PushRequestRef request);
  // The server ends the stream.
  void Close(const absl::Status& status);
  // The client is gone; the AdsStream must not be touched any more.
  void HangUp();
  // The server went, without a word to its clients. A closed connection may live longer than it, with work that waits.
  bool Orphaned() const { return server_life_.expired(); }

  uint64_t number() const { return number_; }
  const std::string& id() const { return id_; }  // empty until the first request
  bool initialized() const { return initialized_; }
  bool delta() const { return delta_; }
  bool closed() const { return closed_ || Orphaned(); }
  const Proxy& proxy() const { return proxy_; }
  NameId trace_name() const { return trace_name_; }
  Time connected_at() const { return connected_at_; }
  const std::string& address() const { return peer_.address; }
  // The push context that its configuration was last made from; null before the first.
  const PushContextRef& last_push() const { return last_push_; }

  PushQueueSlot slot;  // the push queue's

 private:
  struct Incoming {
    Request request;
    CauseId cause;
  };

  void Next();
  void Idle();
  template <class Fn>
  void Work(const wavetank::Work& work, Fn fn);

  void Authenticated();
  absl::Status Initialize(const std::shared_ptr<const Node>& node);
  void Handle(const DiscoveryRequest& request);
  void Handle(const DeltaDiscoveryRequest& request);
  bool ShouldRespond(const DiscoveryRequest& request, ResourceDelta* delta);
  bool ShouldRespondDelta(const DeltaDiscoveryRequest& request);
  bool Rejected(const DiscoveryRequest& request);
  void ForceDependents(XdsType type);
  void Answer(XdsType type, ResourceDelta delta);

  void HandlePush();
  void PushAfterState();
  void PushTypes(size_t index);
  void FinishPush();
  // Generates and sends one type's response, then goes on with `done`; nothing to send: goes on at once.
  void PushXds(XdsType type, const PushRequestRef& request, Callback done);
  void Send(XdsType type, const PushRequestRef& request, GeneratedResources generated, std::string version);
  void SendDelta(XdsType type, const PushRequestRef& request, GeneratedResources generated,
                 std::vector<std::string> removed, std::string version);
  WatchedResource& Sent(XdsType type, const std::string& nonce);
  void Trace(TraceKind kind, XdsType type, int64_t a = 0, int64_t b = 0, std::string_view detail = {});

  DiscoveryServer* server_;
  std::weak_ptr<char> server_life_;
  const uint64_t number_;
  Peer peer_;
  AuthenticatePeer authenticate_;
  AdsStream& stream_;
  std::string id_;
  NameId trace_name_ = kNoName;
  const Time connected_at_;

  bool open_ = false, initialized_ = false, delta_ = false, first_ = true, busy_ = false, closed_ = false;
  bool registered_ = false;  // the registrar has heard of it
  std::deque<Incoming> incoming_;
  Proxy proxy_;
  ProxyLocality node_locality_;
  PushContextRef last_push_;
  Time last_push_time_{};

  PushRequestRef event_;  // the push event that waits or is under way
  bool pushing_ = false;  // it is under way
  std::vector<XdsType> types_;
};

}  // namespace wavetank::pilot
