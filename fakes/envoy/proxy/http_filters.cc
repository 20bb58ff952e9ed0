// A request's way through the HTTP filters of its connection manager.
// Envoy: source/common/http/filter_manager.cc
#include <string>
#include <utility>

#include "fakes/envoy/proxy/data_plane_view.h"
#include "fakes/envoy/proxy/router.h"

namespace wavetank::envoysim {

class Router::FilteredStream final : public HttpStream {
 public:
  FilteredStream(Router& router, StreamId id) : router_(router), id_(id), s_(*router.streams_.Get(id)) {}

  const RequestSpec& request() const override { return *s_.spec; }
  void Replace(std::shared_ptr<const RequestSpec> request) override {
    s_.own_spec = std::move(request);
    s_.spec = s_.own_spec.get();
  }
  const RouteEntry* route() const override { return s_.route; }
  void ClearRouteCache() override { Reroute(&s_); }
  const RouteFilterConfig* RouteConfig() const override {
    const HttpFilterLink& link = s_.manager->filters[s_.next_filter - 1];
    if (const RouteFilterConfig* config = Configured(link.name)) return config;
    // Before 1.29 the canonical name did, too.
    return s_.envoy->release().Has(EnvoyChange::kRouteFiltersByName) ? nullptr : Configured(link.canonical);
  }
  const DynamicMetadata& notes() const override { return s_.notes; }
  void Note(MetadataNote note) override { s_.notes.push_back(std::move(note)); }

  ConnectionFacts connection() const override { return s_.downstream->Facts(); }
  std::optional<IpAddress> ForwardedFor() const override { return Router::ForwardedFor(*s_.manager, *s_.spec); }

  Time now() const override { return s_.envoy->host().Now(); }
  RandomStream& random() override { return s_.envoy->random(); }
  uint64_t& Counter(std::string_view name) override { return s_.envoy->Counter(name); }
  std::string_view Keep(std::string_view text) override { return router_.plane_.configs().Keep(text); }

  void AddFlags(ResponseFlags flags) override { s_.flags |= flags; }
  void AddReplyHeaders(std::string_view lines) override {
    s_.response_headers = Keep(std::string(s_.response_headers) + std::string(lines));
  }
  void OfferAlpn(const AlpnOffers& offers) override { s_.alpn = &offers; }

  void Answer(const LocalReply& reply, Duration lead) override {
    router_.Local(id_, reply.code, reply.flags, reply.details, reply.body, lead, reply.headers, reply.grpc_status);
  }
  void Continue(Duration lead) override { router_.RunFilters(id_, lead); }
  void After(Duration wait, Go go) override {
    s_.backoff = s_.envoy->host().RunAfter(wait, [&router = router_, id = id_, go = std::move(go)] {
      Stream* const s = router.streams_.Get(id);
      if (s == nullptr) return;
      s->backoff = kNoTimer;
      FilteredStream stream(router, id);
      go(stream);
    });
  }
  void Call(const RouteEntry& route, std::shared_ptr<const RequestSpec> request, Answered answered) override {
    router_.CallFor(id_, route, std::move(request), lead_, std::move(answered));
  }
  void Route(Duration lead) override { router_.Continue(id_, lead); }

  void set_lead(Duration lead) { lead_ = lead; }

 private:
  const RouteFilterConfig* Configured(std::string_view name) const {
    for (const RouteFilterConfigs* level :
         {s_.route != nullptr ? &s_.route->filters : nullptr, s_.host != nullptr ? &s_.host->filters : nullptr}) {
      if (level == nullptr) continue;
      for (const auto& [filter, config] : *level) {
        if (filter == name) return config.get();
      }
    }
    return nullptr;
  }

  Router& router_;
  const StreamId id_;
  Stream& s_;
  Duration lead_{};  // of the filter's turn
};

void Router::RunFilters(StreamId id, Duration lead) {
  Stream& s = *streams_.Get(id);
  FilteredStream stream(*this, id);
  stream.set_lead(lead);
  const std::vector<HttpFilterLink>& filters = s.manager->filters;
  while (s.next_filter < filters.size()) {
    if (filters[s.next_filter++].filter->OnRequest(stream, lead) == FilterStatus::kStop) return;
  }
  Continue(id, lead);  // a manager without filters
}

StreamId Router::NewCall(DataPlaneView& envoy, const RouteEntry& route, std::shared_ptr<const RequestSpec> request,
                         Answered answered) {
  static const HttpConnectionManager kAsyncClient;  // no filter of the listener's
  const StreamId id = streams_.Allocate();
  Stream& call = *streams_.Get(id);
  call.envoy = &envoy;
  call.manager = &kAsyncClient;
  call.own_spec = std::move(request);
  call.spec = call.own_spec.get();
  call.route = &route;
  call.cluster = envoy.Cluster(route.cluster);
  call.start = envoy.host().Now();
  call.answered = std::make_unique<Answered>(std::move(answered));
  return id;
}

StreamId Router::Call(DataPlaneView& envoy, const RouteEntry& route, std::shared_ptr<const RequestSpec> request,
                      Duration lead, Answered answered) {
  const StreamId id = NewCall(envoy, route, std::move(request), std::move(answered));
  Continue(id, lead);
  return id;
}

void Router::CallFor(StreamId id, const RouteEntry& route, std::shared_ptr<const RequestSpec> request, Duration lead,
                     HttpStream::Answered answered) {
  const StreamId call = NewCall(*streams_.Get(id)->envoy, route, std::move(request),
                                [this, id, done = std::move(answered)](const Reply& reply, Duration ahead) {
                                  Stream* const s = streams_.Get(id);
                                  if (s == nullptr) return;
                                  s->call = kNoStream;
                                  FilteredStream stream(*this, id);
                                  done(stream, reply, ahead);
                                });
  streams_.Get(id)->call = call;
  Continue(call, lead);
}

}  // namespace wavetank::envoysim
