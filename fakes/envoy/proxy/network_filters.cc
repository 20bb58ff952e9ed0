// A connection's way through the network filters of its chain.
// Envoy: source/common/network/filter_manager_impl.cc
#include <utility>

#include "fakes/envoy/proxy/data_plane_view.h"
#include "fakes/envoy/proxy/downstream.h"

namespace wavetank::envoysim {

ConnectionFacts DownstreamConnection::Facts() const {
  ConnectionFacts out;
  out.tls = tls_;
  if (client_verified_) out.identity = client_identity_;
  if (peer_noted_) out.peer_principal = out.identity;
  out.direct_source = envoy_.fabric().info(id_).source.ip;
  out.connection_source = source_ip();
  out.destination = original_destination().ip;
  out.port = original_destination().port;
  if (flight_ != nullptr && listener_->tls_inspector && !listener_->tls_inspector_disabled.Matches(out.port)) {
    out.server_name = flight_->sni;
  }
  return out;
}

uint64_t& DownstreamConnection::Counter(std::string_view name) { return envoy_.Counter(name); }

void DownstreamConnection::Explain(ResponseFlags flags, std::string_view details, std::string_view termination) {
  if (!termination.empty() || !details.empty()) refusal_ = termination.empty() ? details : termination;
  if (log_ == nullptr) return;
  log_->flags |= flags;
  if (!details.empty()) log_->details = details;
  if (!termination.empty()) log_->termination = termination;
}

void DownstreamConnection::Call(const RouteEntry& route, std::shared_ptr<const RequestSpec> request,
                                Answered answered) {
  const StreamId call =
      envoy_.plane().router().Call(envoy_, route, std::move(request), envoy_.fabric().proxies(id_), Duration::zero(),
                                   [this, done = std::move(answered)](const Reply& reply, Duration) {
                                     call_ = kNoStream;
                                     done(*this, reply);
                                   });
  if (!decision_.has_value()) call_ = call;
}

void DownstreamConnection::Decide(bool goes_on) {
  decision_ = goes_on;
  if (deciding_) return;  // within Admit(), which goes on by itself
  asking_ = false;
  goes_on ? Proceed() : CloseNow(CloseKind::kReset, refusal_);
}

DownstreamConnection::Admission DownstreamConnection::Admit() {
  if (asking_) return Admission::kAsking;
  while (next_filter_ < chain_->filters.size()) {
    decision_.reset();
    deciding_ = true;
    const FilterStatus status = chain_->filters[next_filter_++]->OnData(*this);
    deciding_ = false;
    if (status == FilterStatus::kContinue) continue;
    asking_ = !decision_.has_value();
    if (asking_) return Admission::kAsking;
    if (!*decision_) return Admission::kRefused;
  }
  return Admission::kAdmitted;
}

// Does what waited for the verdict.
void DownstreamConnection::Proceed() {
  switch (Admit()) {
    case Admission::kRefused:
      return CloseNow(CloseKind::kReset, refusal_);
    case Admission::kAsking:
      return;
    case Admission::kAdmitted:
      break;
  }
  if (chain_->tcp.has_value()) return Splice();
  const Fabric& fabric = envoy_.fabric();
  const std::vector<std::pair<ExchangeId, const RequestSpec*>> waiting = std::exchange(unadmitted_, {});
  bool gone = false;  // a request may end the connection, and this with it
  is_gone_ = &gone;
  for (const auto& [exchange, spec] : waiting) {
    if (!fabric.pending(exchange)) continue;  // given up meanwhile, and `spec` with it
    Take(exchange, *spec, Duration::zero());
    if (gone) return;
  }
  is_gone_ = nullptr;
}

}  // namespace wavetank::envoysim
