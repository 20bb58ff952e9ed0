#include "library/swarm/sometimes.h"

#include <algorithm>
#include <string>

#include "fakes/envoy/tcp/http.h"
#include "fakes/envoy/tcp/response_flags.h"

namespace wavetank::swarm {

const std::vector<SometimesRow>& SometimesRows() {
  static const auto* const rows = new std::vector<SometimesRow>{
      {"push-merged", "a push was asked for while another one waited for the same proxy"},
      {"many-events-one-push", "ten events or more became one push"},
      {"pushed-before-ack", "a response was sent before the one before it was acknowledged"},
      {"push-waited-long", "a push waited a second or more for its proxy's turn"},
      {"push-skipped", "a proxy was pushed nothing, as nothing of its own had changed"},
      {"stream-broke", "a proxy lost its stream"},
      {"stream-refused", "istiod refused a stream by its rate limit"},
      {"cluster-added-late", "an istiod took in another cluster while it ran"},
      {"cluster-removed", "an istiod dropped another cluster"},
      {"cluster-rejected", "an istiod could not read a remote Secret"},
      {"gateways-changed", "an istiod saw other gateways of networks"},
      {"gateways-gone", "an istiod was left without any gateway of a network"},
      {"line-cut", "a line was cut"},
      {"fault-before-ack", "a line or an API server failed while an ACK was owed"},
      {"fault-before-sync", "a line or an API server failed while an istiod read another cluster"},
      {"superseded-while-warming", "an Envoy got configuration of a type before the one before it was in force"},
      {"pod-died-while-pushed", "a pod went while pushes waited for proxies"},
      {"certificate-signed-again", "an identity got a second certificate"},
      {"request-failed", "a request failed"},
      {"request-retried", "a request was tried again"},
      {"no-healthy-upstream", "a request found no healthy upstream (UH)"},
      {"connect-failed", "a connection to an upstream failed (UF)"},
      {"passed-a-gateway", "a request passed a gateway"},
      {"answered-far-after-near", "a request that was tried again was answered in another cluster"},
  };
  return *rows;
}

Sometimes::Sometimes(sim::World& world) : world_(world) {
  world.kernel().AddObserver([this](const sim::TraceEvent& event) { Observe(event); });
}

void Sometimes::Observe(const sim::TraceEvent& event) {
  const TraceRecord& r = event.record;
  switch (r.kind) {
    case TraceKind::kPushQueued:
      if (queued_[r.subject]) reached_.insert("push-merged");
      queued_[r.subject] = true;
      break;
    case TraceKind::kPushDequeued:
      queued_[r.subject] = false;
      if (r.a >= 1'000'000'000) reached_.insert("push-waited-long");
      break;
    case TraceKind::kPushSkipped:
      reached_.insert("push-skipped");
      break;
    case TraceKind::kDebounced:
      if (r.a >= 10) reached_.insert("many-events-one-push");
      break;
    case TraceKind::kXdsSent:
      if (++owed_[{r.subject, r.object}] > 1) reached_.insert("pushed-before-ack");
      break;
    case TraceKind::kXdsReceived:
      if (!warming_.insert({r.subject, r.object}).second) reached_.insert("superseded-while-warming");
      break;
    case TraceKind::kXdsApplied:
      warming_.erase({r.subject, r.object});
      break;
    case TraceKind::kXdsAck:
    case TraceKind::kXdsNack:
      --owed_[{r.subject, r.object}];
      break;
    case TraceKind::kObjectDeleted:
      if (std::any_of(queued_.begin(), queued_.end(), [](const auto& each) { return each.second; }) &&
          world_.kernel().names().Text(r.object).rfind("Pod/", 0) == 0)
        reached_.insert("pod-died-while-pushed");
      break;
    case TraceKind::kXdsDisconnected:
      reached_.insert("stream-broke");
      queued_.erase(r.subject);
      std::erase_if(owed_, [&](const auto& each) { return each.first.first == r.subject; });
      std::erase_if(warming_, [&](const auto& each) { return each.first == r.subject; });
      break;
    case TraceKind::kXdsRejected:
      reached_.insert("stream-refused");
      break;
    case TraceKind::kClusterAdded:
      if (event.time > Time{} + 30s) reached_.insert("cluster-added-late");
      syncing_.insert({r.subject, r.object});
      break;
    case TraceKind::kClusterSynced:
      syncing_.erase({r.subject, r.object});
      break;
    case TraceKind::kClusterRemoved:
      syncing_.erase({r.subject, r.object});
      reached_.insert("cluster-removed");
      break;
    case TraceKind::kClusterRejected:
      reached_.insert("cluster-rejected");
      break;
    case TraceKind::kGatewaysChanged:
      reached_.insert(r.a == 0 ? "gateways-gone" : "gateways-changed");
      break;
    case TraceKind::kFaultStarted:
      if (!syncing_.empty()) reached_.insert("fault-before-sync");
      if (std::any_of(owed_.begin(), owed_.end(), [](const auto& each) { return each.second > 0; }))
        reached_.insert("fault-before-ack");
      reached_.insert("line-cut");
      break;
    case TraceKind::kCertificateSigned:
      if (event.time > Time{} + 30s) reached_.insert("certificate-signed-again");
      break;
    default:
      break;
  }
}

void Sometimes::Request(const sim::TrafficRecord& record) {
  const std::string flags = envoysim::ResponseFlagsToString(record.record.flags);
  if (record.server == nullptr) reached_.insert("request-failed");
  if (record.record.attempts > 1) reached_.insert("request-retried");
  if (flags.find("UH") != std::string::npos) reached_.insert("no-healthy-upstream");
  if (flags.find("UF") != std::string::npos) reached_.insert("connect-failed");
  for (const envoysim::Hop& hop : record.hops)
    if (!hop.tls && !hop.sni.empty() && hop.proxy != kNoName) reached_.insert("passed-a-gateway");
  if (record.server != nullptr && record.record.attempts > 1 && record.server->cluster != record.spec.cluster)
    reached_.insert("answered-far-after-near");
}

}  // namespace wavetank::swarm
