// A request's way through the HTTP filters of its connection manager.
// Envoy: source/common/http/filter_manager.cc
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "envoy/config/core/v3/base.pb.h"
#include "fakes/envoy/http/arrival.h"
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
  std::optional<Duration> BodyDue(Duration lead) const override {
    const Time then = now() + lead;
    if (router_.BodyIsHere(s_, then)) return std::nullopt;
    return std::max(s_.body_end - then, Duration::zero());
  }
  void HaveBody() override { s_.looped = true; }
  const RouteEntry* route() const override { return s_.route; }
  std::string_view RouteCluster() override {
    if (s_.route == nullptr) return {};
    if (s_.route->action == RouteEntry::Action::kHeader) return FindHeader(*s_.spec, s_.route->cluster).value_or("");
    ChooseCluster(&s_);
    return s_.weighted != nullptr ? s_.weighted->name : s_.route->cluster;
  }
  void ClearRouteCache() override { Reroute(&s_); }
  const RouteFilterConfig* RouteConfig() const override {
    const HttpFilterLink& link = s_.filters()[s_.next_filter - 1];
    if (const RouteFilterConfig* config = Configured(link.name, nullptr)) return config;
    // Before 1.29 the canonical name did, too.
    return s_.envoy->release().Has(EnvoyChange::kRouteFiltersByName) ? nullptr : Configured(link.canonical, nullptr);
  }
  std::vector<const RouteFilterConfig*> RouteConfigs(std::string_view field) const override {
    const HttpFilterLink& link = s_.filters()[s_.next_filter - 1];
    std::vector<const RouteFilterConfig*> out;
    Configured(field.empty() ? link.name : field, &out);
    if (field.empty() && out.empty() && !s_.envoy->release().Has(EnvoyChange::kRouteFiltersByName)) {
      Configured(link.canonical, &out);
    }
    return out;
  }
  const DynamicMetadata& notes() const override { return s_.notes; }
  void Note(MetadataNote note) override { s_.notes.push_back(std::move(note)); }

  ConnectionFacts connection() const override { return s_.downstream->Facts(); }
  std::optional<IpAddress> ForwardedFor() const override { return Router::ForwardedFor(*s_.manager, *s_.spec); }

  Time now() const override { return s_.envoy->host().Now(); }
  Time wall_clock() const override { return s_.envoy->host().WallClock(); }
  RandomStream& random() override { return s_.envoy->random(); }
  uint64_t& Counter(std::string_view name) override { return s_.envoy->Counter(name); }
  std::string_view Keep(std::string_view text) override { return router_.plane_.configs().Keep(text); }

  std::shared_ptr<FilterState>& Memory() override {
    for (auto& [place, kept] : s_.memory) {
      if (place == s_.next_filter) return kept;
    }
    return s_.memory.emplace_back(s_.next_filter, nullptr).second;
  }
  std::shared_ptr<FilterState>& State(uint64_t key, bool of_connection) override {
    return of_connection ? s_.downstream->filter_state(key) : s_.envoy->filter_state(key);
  }
  EnvoyRelease release() const override { return s_.envoy->release(); }
  Time listening_since() const override { return s_.envoy->listening_since(); }
  std::string LocalCluster() const override {
    envoy::config::core::v3::Node node;
    s_.envoy->process().context().FillNode(&node);
    return node.cluster();
  }
  std::string DownstreamAddress(bool remote) const override {
    return remote ? s_.downstream->remote().ToString() : s_.downstream->original_destination().ToString();
  }
  Membership MembersOf(std::string_view cluster) const override {
    Membership out;
    const auto* const active = s_.envoy->active().Find(cluster);
    if (active == nullptr) return out;
    out.known = true;
    for (const EndpointStatus& endpoint : s_.envoy->Endpoints()) {
      if (endpoint.cluster != cluster) continue;
      ++out.total;
      out.healthy += endpoint.outlier_ejected || endpoint.failed_active_hc ? 0 : 1;
    }
    return out;
  }
  void DescribeForLimits(uint32_t stage, const RateLimitSubject& subject, int options,
                         std::vector<RateLimitDescriptor>* out) const override {
    if (s_.route == nullptr) return;
    // VhRateLimitsOptions: 0 OVERRIDE, 1 INCLUDE, 2 IGNORE
    s_.route->limits.Describe(stage, subject, out);
    const bool of_host = s_.route->includes_host_limits || options == 1 || (options == 0 && s_.route->limits.empty());
    if (of_host && s_.host != nullptr) s_.host->limits.Describe(stage, subject, out);
  }
  std::vector<const HttpFilter*> chain() const override {
    std::vector<const HttpFilter*> out;
    for (size_t i = 0; i < s_.filters().size(); ++i) {
      if (s_.left_out.empty() || !s_.left_out[i]) out.push_back(s_.filters()[i].filter.get());
    }
    return out;
  }
  void Describe(AccessLogEntry* entry) const override {
    router_.EntryOf(s_, entry);
    entry->code = s_.local_code;
  }
  void CountForCluster(uint16_t code) override {
    ChooseCluster(&s_);
    if (s_.cluster != nullptr) s_.cluster->CountCode(code, /*retried=*/false, /*internal=*/true);
  }
  std::optional<uint16_t> PortOfNames() override {
    ChooseCluster(&s_);
    if (s_.cluster == nullptr || s_.cluster->config().type != DiscoveryType::kDynamicForward) return std::nullopt;
    return DefaultPort(s_.cluster->config());
  }
  HostLookup LookUp(const DnsCacheConfig& cache, std::string_view host, uint16_t port, Go go) override {
    DnsCache::Lookup found =
        s_.envoy->Names(cache).Find(NormalisedHost(host, port), [&router = router_, id = id_, go = std::move(go)] {
          Stream* const s = router.streams_.Get(id);
          if (s == nullptr || go == nullptr) return;
          s->looped = true;
          FilteredStream stream(router, id);
          go(stream);
        });
    static_assert(static_cast<int>(HostLookup::Status::kBusy) == static_cast<int>(DnsCache::Lookup::Status::kBusy));
    return {static_cast<HostLookup::Status>(found.status), std::move(found.details)};
  }
  std::string ClusterCounters() const override {
    ChooseCluster(&s_);
    if (s_.cluster == nullptr) return {};
    const ClusterConfig& config = s_.cluster->config();
    return "cluster." + (config.alt_stat_name.empty() ? config.name : config.alt_stat_name) + ".";
  }
  void ScriptLog(std::string_view level, const std::string& text) override {
    router_.plane_.NoteScript(now(), s_.envoy->options().name, level, text);
  }

  void AddFlags(ResponseFlags flags) override { s_.flags |= flags; }
  void AddReplyHeaders(std::string_view lines) override {
    s_.response_headers = Keep(std::string(s_.response_headers) + std::string(lines));
  }
  void OfferAlpn(const AlpnOffers& offers) override { s_.alpn = &offers; }

  void Answer(const LocalReply& reply, Duration lead) override { router_.Local(id_, reply, lead); }
  void Continue(Duration lead) override { router_.RunFilters(id_, lead); }
  void After(Duration wait, Go go) override {
    s_.backoff = s_.envoy->host().RunAfter(wait, [&router = router_, id = id_, go = std::move(go)] {
      Stream* const s = router.streams_.Get(id);
      if (s == nullptr) return;
      s->backoff = kNoTimer;
      s->looped = true;
      FilteredStream stream(router, id);
      go(stream);
    });
  }
  void Call(const RouteEntry& route, std::shared_ptr<const RequestSpec> request, Answered answered) override {
    router_.CallFor(id_, route, std::move(request), lead_, std::move(answered));
  }
  void Route(Duration lead) override { router_.Continue(id_, lead); }

  void set_lead(Duration lead) { lead_ = lead; }

  // What has a route says to filters, the most specific first; null where there is nothing.
  static std::array<const RouteFilterConfigs*, 3> Levels(const Stream& s) {
    return {s.weighted != nullptr ? &s.weighted->filters : nullptr, &s.route->filters,
            s.host != nullptr ? &s.host->filters : nullptr};
  }

 private:
  // The first, or nullptr if `all` takes them.
  const RouteFilterConfig* Configured(std::string_view name, std::vector<const RouteFilterConfig*>* all) const {
    if (s_.to_https) return nullptr;  // the route that tells so says nothing to filters, nor does its host
    // Where no route is, its host is not asked. Envoy: source/common/http/utility.h, resolveMostSpecificPerFilterConfig
    if (s_.route == nullptr) return nullptr;
    // Envoy chooses a weighted cluster with its route; here, where only then a filter would see it.
    // Envoy: source/common/router/weighted_cluster_specifier.cc, mostSpecificPerFilterConfig, perFilterConfigs
    if (s_.route->clusters_configure_filters) ChooseCluster(&s_);
    for (const RouteFilterConfigs* level : Levels(s_)) {
      if (level == nullptr) continue;
      for (const RouteFilterEntry& entry : *level) {
        if (entry.filter != name || entry.config == nullptr) continue;
        if (all == nullptr) return entry.config.get();
        all->push_back(entry.config.get());
      }
    }
    return nullptr;
  }

  Router& router_;
  const StreamId id_;
  Stream& s_;
  Duration lead_{};  // of the filter's turn
};

// Envoy: http/filter_chain_helper.cc, createFilterChainForFactories; config_impl.cc, filterDisabled
void Router::ChooseFilters(Stream* s) {
  if (!s->manager->discovered.empty()) s->own_filters = s->envoy->FiltersOf(*s->manager);
  // Envoy: http_connection_manager/config.cc, createUpgradeFilterChain
  if (s->upgrade != nullptr && !s->manager->upgrade_filters.empty()) {
    const std::string type = UpgradeOf(*s->spec);
    for (const auto& [of, filters] : s->manager->upgrade_filters) {
      if (of == type) s->own_filters = filters;
    }
  }
  const bool of_routes = s->route != nullptr && s->table->disables_filters;
  if (!s->manager->disables_filters && !of_routes) return;
  if (s->route != nullptr && s->route->clusters_configure_filters) ChooseCluster(s);
  const std::vector<HttpFilterLink>& filters = s->filters();
  s->left_out.resize(filters.size());
  for (size_t i = 0; i < filters.size(); ++i) {
    const RouteFilterEntry* said = nullptr;
    if (s->route != nullptr) {
      for (const RouteFilterConfigs* level : FilteredStream::Levels(*s)) {
        if (said != nullptr || level == nullptr) continue;
        const auto found = std::find_if(level->begin(), level->end(),
                                        [&](const RouteFilterEntry& e) { return e.filter == filters[i].name; });
        if (found != level->end()) said = &*found;
      }
    }
    s->left_out[i] = said != nullptr ? said->disabled : filters[i].disabled;
  }
}

void Router::RunFilters(StreamId id, Duration lead) {
  Stream& s = *streams_.Get(id);
  FilteredStream stream(*this, id);
  stream.set_lead(lead);
  const std::vector<HttpFilterLink>& filters = s.filters();
  while (s.next_filter < filters.size()) {
    const size_t at = s.next_filter++;
    if (!s.left_out.empty() && s.left_out[at]) {
      if (s.next_filter == filters.size()) return;  // without its router nobody answers it
      continue;
    }
    if (filters[at].filter->OnRequest(stream, lead) == FilterStatus::kStop) return;
  }
  Continue(id, lead);  // a manager without filters
}

void Router::RunReplyFilters(StreamId id, Reply* reply, std::string_view details) {
  Stream& s = *streams_.Get(id);
  ReplyHead head;
  head.code = reply->code;
  head.from_upstream = details == "via_upstream";
  head.details = details;
  head.has_body = reply->has_body;
  head.headers = reply->headers;
  head.body = reply->body;
  head.trailers = reply->trailers;
  const size_t reached = s.next_filter;
  FilteredStream stream(*this, id);
  for (size_t i = s.filters().size(); i-- > 0;) {
    const HttpFilter& filter = *s.filters()[i].filter;
    if (!filter.sees_replies() || (!s.left_out.empty() && s.left_out[i])) continue;
    s.next_filter = i + 1;
    filter.OnReply(stream, head);
  }
  s.next_filter = reached;
  reply->code = head.code;
  reply->has_body = head.has_body;
  if (head.headers != reply->headers) reply->headers = plane_.configs().Keep(head.headers);
  if (head.body != reply->body) reply->body = plane_.configs().Keep(head.body);
  if (head.trailers != reply->trailers) reply->trailers = plane_.configs().Keep(head.trailers);
}

StreamId Router::NewCall(DataPlaneView& envoy, const RouteEntry& route, std::shared_ptr<const RequestSpec> request,
                         uint16_t proxies, Answered answered) {
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
  call.proxies = proxies;
  call.answered = std::make_unique<Answered>(std::move(answered));
  return id;
}

StreamId Router::Call(DataPlaneView& envoy, const RouteEntry& route, std::shared_ptr<const RequestSpec> request,
                      uint16_t proxies, Duration lead, Answered answered) {
  const StreamId id = NewCall(envoy, route, std::move(request), proxies, std::move(answered));
  Continue(id, lead);
  return id;
}

void Router::CallFor(StreamId id, const RouteEntry& route, std::shared_ptr<const RequestSpec> request, Duration lead,
                     HttpStream::Answered answered) {
  const Stream& of = *streams_.Get(id);
  const StreamId call = NewCall(*of.envoy, route, std::move(request), of.proxies,
                                [this, id, done = std::move(answered)](const Reply& reply, Duration ahead) {
                                  Stream* const s = streams_.Get(id);
                                  if (s == nullptr) return;
                                  s->call = kNoStream;
                                  FilteredStream stream(*this, id);
                                  done(stream, reply, ahead);
                                });
  streams_.Get(id)->call = call;
  streams_.Get(call)->asked_by = id;
  Continue(call, lead);
}

}  // namespace wavetank::envoysim
