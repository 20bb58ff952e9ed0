#include "core/gen/rds/rds.h"

#include "core/gen/rds/virtual_hosts.h"
#include "core/profile/changes.h"
#include "core/xds/cache.h"
#include "envoy/config/route/v3/route.pb.h"
#include "envoy/extensions/filters/http/cors/v3/cors.pb.h"
#include "envoy/extensions/filters/http/fault/v3/fault.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

using config::StringMatch;
using ::testing::ElementsAre;

using Routes = ::envoy::config::route::v3::RouteConfiguration;
using Host = ::envoy::config::route::v3::VirtualHost;

class Rds : public ::testing::Test {
 protected:
  Routes Generate(const std::string& name) { return GenerateAll({name}).at(0); }

  std::vector<Routes> GenerateAll(std::vector<std::string> names) {
    const PushContextRef push = world_.Push();
    Proxy proxy = world_.Connect(*push, "c1", type_, labels_);
    proxy.dns_domain = "shop.svc.cluster.local";
    WatchedResource watched;
    const size_t asked = names.size();
    watched.resource_names = std::move(names);
    auto generator = MakeRdsGenerator({&cache_});
    const GeneratedResources out = generator->Generate(proxy, watched, world_.Request(push));
    cached_ = out.cached;
    EXPECT_EQ(out.resources.size(), asked);
    std::vector<Routes> all;
    for (const Resource& resource : out.resources) {
      EXPECT_TRUE(all.emplace_back().ParseFromString(std::string(*resource.bytes)));
    }
    return all;
  }

  static const Host& Find(const Routes& routes, const std::string& name) {
    for (const Host& host : routes.virtual_hosts()) {
      if (host.name() == name) return host;
    }
    ADD_FAILURE() << "no virtual host " << name << " in " << routes.DebugString();
    static const Host none;
    return none;
  }

  void AddVirtualService(config::VirtualService spec, const std::string& name = "vs", const std::string& ns = "shop",
                         kube::Labels annotations = {}) {
    auto rule = std::make_shared<config::TypedConfig<config::VirtualService>>();
    rule->meta.kind = config::Kind::kVirtualService;
    rule->meta.name = name;
    rule->meta.ns = ns;
    rule->meta.annotations = std::move(annotations);
    rule->meta.creation_unix_seconds = ++created_;
    rule->spec = std::move(spec);
    world_.configs.Put(config::VirtualServiceRef(std::move(rule)));
  }

  static config::VirtualService To(const std::string& host) {
    config::VirtualService out;
    out.hosts = {host};
    out.http.emplace_back().route.push_back({{host, "", 0}, true, 0, std::nullopt});
    return out;
  }

  // With these, and nothing left of before.
  void Since(std::initializer_list<Change> changes) {
    for (const Change change : changes) world_.profile.Set(change);
    cache_.ClearAll(Time{});
  }

  GenWorld world_;
  XdsCache cache_;
  NodeType type_ = NodeType::kSidecarProxy;
  Labels labels_;
  int64_t cached_ = 0;
  int64_t created_ = 0;
};

TEST_F(Rds, ServiceGoesByAllItsNamesAndItsAddress) {
  world_.AddService("web");
  const Routes routes = Generate("80");
  const Host& host = Find(routes, "web.shop.svc.cluster.local:80");
  EXPECT_THAT(host.domains(),
              ElementsAre("web.shop.svc.cluster.local", "web", "web.shop.svc", "web.shop", "240.0.0.1"));
  EXPECT_EQ(host.routes(0).route().cluster(), "outbound|80||web.shop.svc.cluster.local");
  EXPECT_EQ(host.routes(0).route().retry_policy().num_retries().value(), 2u);
  EXPECT_TRUE(host.include_request_attempt_count());
  EXPECT_TRUE(routes.ignore_port_in_host_matching());
}

TEST_F(Rds, AnAliasIsServedWhereWhatItStandsForIsAndRoutesToItLeadThere) {
  world_.AddService("web");
  const auto alias = world_.AddService("old");
  alias->resolution = Resolution::kAlias;
  alias->default_address = "0.0.0.0";
  alias->attributes.external_name = "web.shop.svc.cluster.local";
  config::VirtualService rule = To("elsewhere.example");
  rule.http[0].route[0].destination.host = "old.shop.svc.cluster.local";
  AddVirtualService(rule);
  const Routes routes = Generate("80");
  EXPECT_THAT(Find(routes, "web.shop.svc.cluster.local:80").domains(),
              ElementsAre("web.shop.svc.cluster.local", "web", "web.shop.svc", "web.shop", "old.shop.svc.cluster.local",
                          "old", "old.shop.svc", "old.shop", "240.0.0.1"));
  for (const Host& host : routes.virtual_hosts()) EXPECT_NE(host.name(), "old.shop.svc.cluster.local:80");
  EXPECT_EQ(Find(routes, "elsewhere.example:80").routes(0).route().cluster(),
            "outbound|80||web.shop.svc.cluster.local");
}

TEST_F(Rds, OnlyItsOwnNamespaceMayLeaveTheNamespaceOut) {
  world_.AddService("web", "other");
  EXPECT_THAT(Find(Generate("80"), "web.other.svc.cluster.local:80").domains(),
              ElementsAre("web.other.svc.cluster.local", "web.other", "web.other.svc", "240.0.0.1"));
}

TEST_F(Rds, UnknownHostsPassOrAreBlockedAfterAllOthers) {
  world_.AddService("web");
  Routes routes = Generate("80");
  const Host& last = routes.virtual_hosts(routes.virtual_hosts_size() - 1);
  EXPECT_EQ(last.name(), "allow_any");
  EXPECT_EQ(last.routes(0).route().cluster(), "PassthroughCluster");
  world_.mesh.outbound_traffic_policy = config::OutboundTrafficPolicy::Mode::kRegistryOnly;
  routes = Generate("80");
  const Host& blocked = routes.virtual_hosts(routes.virtual_hosts_size() - 1);
  EXPECT_EQ(blocked.name(), "block_all");
  EXPECT_EQ(blocked.routes(0).direct_response().status(), 502u);
}

TEST_F(Rds, SniffedPortServesItsServiceWhateverTheHostHeaderSays) {
  world_.AddService("any", "shop", {"x", 9000, Protocol::kUnsupported});
  world_.AddService("other", "shop", {"x", 9000, Protocol::kUnsupported});
  const Routes routes = Generate("any.shop.svc.cluster.local:9000");
  ASSERT_EQ(routes.virtual_hosts_size(), 1);
  EXPECT_THAT(routes.virtual_hosts(0).domains(), ElementsAre("*"));
  EXPECT_EQ(routes.virtual_hosts(0).routes(0).route().cluster(), "outbound|9000||any.shop.svc.cluster.local");
}

TEST_F(Rds, NameThatIsNoPortGetsAnEmptyConfiguration) {
  const Routes routes = Generate("what");
  EXPECT_EQ(routes.name(), "what");
  EXPECT_EQ(routes.virtual_hosts_size(), 0);
}

TEST_F(Rds, HeadlessServiceServesTheNamesOfItsPods) {
  auto service = world_.AddService("db");
  service->resolution = Resolution::kPassthrough;
  service->default_address = "0.0.0.0";
  EXPECT_THAT(Find(Generate("80"), "db.shop.svc.cluster.local:80").domains(),
              ElementsAre("db.shop.svc.cluster.local", "db", "db.shop.svc", "db.shop", "*.db.shop.svc.cluster.local",
                          "*.db", "*.db.shop.svc", "*.db.shop"));
}

TEST_F(Rds, VirtualServiceReplacesTheDefaultRoute) {
  world_.AddService("web");
  config::VirtualService rule = To(GenWorld::Host("web"));
  rule.http[0].name = "split";
  rule.http[0].timeout = 1500ms;
  rule.http[0].route = {{{GenWorld::Host("web"), "v1", 0}, true, 90, std::nullopt},
                        {{GenWorld::Host("web"), "v2", 0}, true, 10, std::nullopt},
                        {{GenWorld::Host("web"), "v3", 0}, true, 0, std::nullopt}};
  AddVirtualService(rule);
  const Host host = Find(Generate("80"), "web.shop.svc.cluster.local:80");
  ASSERT_EQ(host.routes_size(), 1);
  const auto& action = host.routes(0).route();
  EXPECT_EQ(action.timeout().seconds(), 1);
  EXPECT_EQ(action.timeout().nanos(), 500000000);
  ASSERT_EQ(action.weighted_clusters().clusters_size(), 2);  // no weight, no cluster
  EXPECT_EQ(action.weighted_clusters().clusters(0).name(), "outbound|80|v1|web.shop.svc.cluster.local");
  EXPECT_EQ(action.weighted_clusters().clusters(0).weight().value(), 90u);
  EXPECT_EQ(host.routes(0).name(), "split");
  EXPECT_EQ(host.routes(0).metadata().filter_metadata().at("istio").fields().at("config").string_value(),
            "/apis/networking.istio.io/v1alpha3/namespaces/shop/virtual-service/vs");
}

TEST_F(Rds, NothingFollowsARouteThatCatchesAll) {
  world_.AddService("web");
  config::VirtualService rule = To(GenWorld::Host("web"));
  rule.http.push_back(rule.http[0]);
  rule.http[0].match.emplace_back().uri = StringMatch{StringMatch::Kind::kPrefix, "/api"};
  rule.http.push_back(rule.http[1]);
  AddVirtualService(rule);
  const Host host = Find(Generate("80"), "web.shop.svc.cluster.local:80");
  ASSERT_EQ(host.routes_size(), 2);
  EXPECT_EQ(host.routes(0).match().prefix(), "/api");
  EXPECT_EQ(host.routes(1).match().prefix(), "/");
}

TEST_F(Rds, PrefixesOfAnIngressEndWhereAPathSegmentDoes) {
  world_.AddService("web");
  config::VirtualService rule = To(GenWorld::Host("web"));
  for (const char* path : {"/api/", "/"}) {
    rule.http.push_back(rule.http[0]);
    rule.http.back().match.emplace_back().uri = StringMatch{StringMatch::Kind::kPrefix, path};
  }
  rule.http.erase(rule.http.begin());
  AddVirtualService(rule, "vs", "shop", {{"internal.istio.io/route-semantics", "ingress"}});
  const Host host = Find(Generate("80"), "web.shop.svc.cluster.local:80");
  ASSERT_EQ(host.routes_size(), 2);
  EXPECT_EQ(host.routes(0).match().path_separated_prefix(), "/api");
  EXPECT_EQ(host.routes(0).decorator().operation(), "web.shop.svc.cluster.local:80/*");
  EXPECT_EQ(host.routes(1).match().prefix(), "/");
}

TEST_F(Rds, MatchesHoldForLabelsPortAndGatewayOfTheProxy) {
  world_.AddService("web");
  config::VirtualService rule = To(GenWorld::Host("web"));
  const config::HttpRoute route = rule.http[0];
  rule.http.assign(4, route);
  const char* names[] = {"labels", "port", "gateway", "rest"};
  for (int i = 0; i < 4; ++i) {
    rule.http[i].name = names[i];
    if (i < 3) rule.http[i].match.emplace_back().uri = StringMatch{StringMatch::Kind::kExact, names[i]};
  }
  rule.http[0].match[0].source_labels = {{"app", "client"}};
  rule.http[1].match[0].port = 8080;
  rule.http[2].match[0].gateways = {"shop/gw"};
  AddVirtualService(rule);
  EXPECT_EQ(Find(Generate("80"), "web.shop.svc.cluster.local:80").routes_size(), 1);
  labels_ = {{"app", "client"}};
  const Host host = Find(Generate("80"), "web.shop.svc.cluster.local:80");
  ASSERT_EQ(host.routes_size(), 2);
  EXPECT_EQ(host.routes(0).name(), "labels");
}

TEST_F(Rds, ClaimsAreMatchedInWhatTheTokensFilterLeftBehind) {
  world_.AddService("web");
  config::VirtualService rule = To("web.shop.svc.cluster.local");
  auto& match = rule.http[0].match.emplace_back();
  match.headers["@Request.Auth.Claims.group.id"] = {StringMatch::Kind::kPrefix, "dev"};
  match.headers["x-plain"] = {StringMatch::Kind::kExact, "v"};
  match.without_headers["@request.auth.claims.sub"] = {StringMatch::Kind::kRegex, "*"};
  AddVirtualService(rule);
  const Routes routes = Generate("80");
  const auto& written = Find(routes, "web.shop.svc.cluster.local:80").routes(0).match();
  ASSERT_EQ(written.headers_size(), 1);
  EXPECT_EQ(written.headers(0).name(), "x-plain");
  ASSERT_EQ(written.dynamic_metadata_size(), 2);
  const auto& group = written.dynamic_metadata(0);
  EXPECT_EQ(group.filter(), "istio_authn");
  std::vector<std::string> path;
  for (const auto& segment : group.path()) path.push_back(segment.key());
  EXPECT_THAT(path, ElementsAre("request.auth.claims", "group", "id"));
  EXPECT_EQ(group.value().list_match().one_of().string_match().prefix(), "dev");
  EXPECT_FALSE(group.invert());
  const auto& subject = written.dynamic_metadata(1);
  EXPECT_EQ(subject.value().list_match().one_of().string_match().safe_regex().regex(), "*") << "no presence";
  EXPECT_TRUE(subject.invert());
}

TEST_F(Rds, ClaimInBracketsIsAHeader) {
  world_.AddService("web");
  config::VirtualService rule = To("web.shop.svc.cluster.local");
  rule.http[0].match.emplace_back().headers["@request.auth.claims[sub]"] = {StringMatch::Kind::kExact, "v"};
  AddVirtualService(rule);
  const Routes routes = Generate("80");
  const auto& match = Find(routes, "web.shop.svc.cluster.local:80").routes(0).match();
  EXPECT_EQ(match.dynamic_metadata_size(), 0);
  EXPECT_EQ(match.headers(0).name(), "@request.auth.claims[sub]");
}

TEST_F(Rds, ClaimInBracketsIsAClaimSinceTheReleaseThatSplitsThem) {
  world_.AddService("web");
  world_.profile.Set(Change::kClaimsInBrackets);
  config::VirtualService rule = To(GenWorld::Host("web"));
  rule.http[0].match.emplace_back().headers["@request.auth.claims[a][b.c]"] = {StringMatch::Kind::kExact, "x"};
  AddVirtualService(rule);
  const auto match = Find(Generate("80"), "web.shop.svc.cluster.local:80").routes(0).match();
  EXPECT_EQ(match.headers_size(), 0);
  ASSERT_EQ(match.dynamic_metadata_size(), 1);
  ASSERT_EQ(match.dynamic_metadata(0).path_size(), 3);
  EXPECT_EQ(match.dynamic_metadata(0).path(1).key(), "a");
  EXPECT_EQ(match.dynamic_metadata(0).path(2).key(), "b.c");
}

TEST_F(Rds, RetriesWaitAndMayGoToTheSameHostSinceTheReleaseThatReadsIt) {
  world_.AddService("web");
  config::VirtualService rule = To(GenWorld::Host("web"));
  auto& retries = rule.http[0].retries.emplace();
  retries.attempts = 2;
  retries.backoff = std::chrono::milliseconds(100);
  retries.retry_ignore_previous_hosts = false;
  AddVirtualService(rule);
  const auto policy = [&] {
    return Find(Generate("80"), "web.shop.svc.cluster.local:80").routes(0).route().retry_policy();
  };
  EXPECT_FALSE(policy().has_retry_back_off());
  EXPECT_EQ(policy().retry_host_predicate_size(), 1);
  Since({Change::kRetryBackoff});
  EXPECT_EQ(policy().retry_back_off().base_interval().nanos(), 100'000'000);
  EXPECT_EQ(policy().retry_host_predicate_size(), 0);
}

TEST_F(Rds, ARouteOfTheGatewayApiThatRewritesToASlashTakesThePrefixAwaySinceTheReleaseThatDoes) {
  const auto put = [&](const std::string& name, const std::string& prefix) {
    world_.AddService(name);
    config::VirtualService rule = To(GenWorld::Host(name));
    rule.hosts = {GenWorld::Host(name)};
    rule.http[0].match.emplace_back().uri = StringMatch{StringMatch::Kind::kPrefix, prefix};
    rule.http[0].rewrite.emplace().uri = "/";
    AddVirtualService(rule, name, "shop", {{"internal.istio.io/route-semantics", "gateway"}});
  };
  put("web", "/a.b");
  put("api", "/");
  const auto action = [&](const std::string& name) {
    return Find(Generate("80"), GenWorld::Host(name) + ":80").routes(0).route();
  };
  EXPECT_EQ(action("web").prefix_rewrite(), "/");
  EXPECT_EQ(action("api").prefix_rewrite(), "/");
  Since({Change::kGatewayApiPrefixRemoved});
  EXPECT_EQ(action("web").regex_rewrite().pattern().regex(), "^/a\\.b(/?)(.*)");
  EXPECT_EQ(action("web").regex_rewrite().substitution(), "/\\2");
  EXPECT_EQ(action("api").regex_rewrite().pattern().regex(), "^(/?)(.*)");
}

TEST_F(Rds, RequestsAreCopiedToSeveralPlacesAndPathsRewrittenByRegexSinceTheReleasesThatReadIt) {
  world_.AddService("web");
  config::VirtualService rule = To(GenWorld::Host("web"));
  rule.http[0].mirrors.resize(3);
  rule.http[0].mirrors[0].destination = config::Destination{"one.example", "", 80};
  rule.http[0].mirrors[0].percentage = 12.5;
  rule.http[0].mirrors[1].destination = config::Destination{"none.example", "", 80};
  rule.http[0].mirrors[1].percentage = 0;
  rule.http[0].mirrors[2].destination = config::Destination{"all.example", "", 80};
  rule.http[0].rewrite.emplace().uri_regex = config::HttpRewrite::Regex{"^/a/(.*)$", "/\\1"};
  AddVirtualService(rule);
  const auto action = [&] { return Find(Generate("80"), "web.shop.svc.cluster.local:80").routes(0).route(); };
  EXPECT_EQ(action().request_mirror_policies_size(), 0);
  EXPECT_FALSE(action().has_regex_rewrite());
  Since({Change::kSeveralMirrors, Change::kUriRegexRewrite});
  const auto today = action();
  ASSERT_EQ(today.request_mirror_policies_size(), 2);
  EXPECT_EQ(today.request_mirror_policies(0).cluster(), "outbound|80||one.example");
  EXPECT_EQ(today.request_mirror_policies(0).runtime_fraction().default_value().numerator(), 125'000u);
  EXPECT_EQ(today.request_mirror_policies(1).runtime_fraction().default_value().numerator(), 100u);
  EXPECT_FALSE(today.request_mirror_policies(1).disable_shadow_host_suffix_append());
  EXPECT_EQ(today.regex_rewrite().pattern().regex(), "^/a/(.*)$");
  EXPECT_EQ(today.regex_rewrite().substitution(), "/\\1");
  Since({Change::kMirrorsKeepHost});
  EXPECT_TRUE(action().request_mirror_policies(1).disable_shadow_host_suffix_append());
}

TEST_F(Rds, PreflightsOfStrangersAreAnsweredWhereTheRuleSaysSo) {
  world_.AddService("web");
  for (const Change change : {Change::kCorsByFilter, Change::kPreflightsForwarded}) world_.profile.Set(change);
  using Unmatched = config::CorsPolicy::UnmatchedPreflights;
  for (const Unmatched unmatched : {Unmatched::kUnspecified, Unmatched::kForward, Unmatched::kIgnore}) {
    config::VirtualService rule = To(GenWorld::Host("web"));
    rule.http[0].cors_policy.emplace().unmatched_preflights = unmatched;
    AddVirtualService(rule);
    Since({});
    ::envoy::extensions::filters::http::cors::v3::CorsPolicy cors;
    const auto configs = Find(Generate("80"), "web.shop.svc.cluster.local:80").routes(0).typed_per_filter_config();
    ASSERT_TRUE(configs.at("envoy.filters.http.cors").UnpackTo(&cors));
    EXPECT_EQ(cors.forward_not_matching_preflights().value(), unmatched != Unmatched::kIgnore);
  }
}

TEST_F(Rds, ACookieOfAHashHasAttributesSinceTheReleaseThatReadsThem) {
  world_.AddService("web");
  config::DestinationRule rule;
  rule.host = GenWorld::Host("web");
  auto& hash = rule.traffic_policy.emplace().load_balancer.emplace().consistent_hash.emplace();
  hash.key = config::ConsistentHash::Key::kHttpCookie;
  hash.cookie.name = "c";
  hash.cookie.attributes = {{"SameSite", "Strict"}};
  world_.AddRule("web", rule);
  const auto cookie = [&] {
    return Find(Generate("80"), "web.shop.svc.cluster.local:80").routes(0).route().hash_policy(0).cookie();
  };
  EXPECT_EQ(cookie().attributes_size(), 0);
  Since({Change::kHashCookieAttributes});
  ASSERT_EQ(cookie().attributes_size(), 1);
  EXPECT_EQ(cookie().attributes(0).name(), "SameSite");
  EXPECT_EQ(cookie().attributes(0).value(), "Strict");
}

TEST_F(Rds, AddressOfTwoServicesLeadsToTheOlderOne) {
  const auto younger = world_.AddService("younger");
  world_.AddService("another")->creation_unix_seconds = 1;
  younger->creation_unix_seconds = 2;
  const Routes routes = Generate("80");
  EXPECT_THAT(Find(routes, "another.shop.svc.cluster.local:80").domains(), ::testing::Contains("240.0.0.1"));
  EXPECT_THAT(Find(routes, "younger.shop.svc.cluster.local:80").domains(),
              ::testing::Not(::testing::Contains("240.0.0.1")));
}

TEST_F(Rds, RetriesTakeStatusCodesAmongConditions) {
  world_.AddService("web");
  config::VirtualService rule = To(GenWorld::Host("web"));
  rule.http[0].retries = config::HttpRetry{3, Duration(250ms), "gateway-error, 503,504", std::nullopt};
  AddVirtualService(rule);
  const auto policy = Find(Generate("80"), "web.shop.svc.cluster.local:80").routes(0).route().retry_policy();
  EXPECT_EQ(policy.num_retries().value(), 3u);
  EXPECT_EQ(policy.retry_on(), "gateway-error,retriable-status-codes");
  EXPECT_THAT(policy.retriable_status_codes(), ElementsAre(503u, 504u));
  EXPECT_EQ(policy.per_try_timeout().nanos(), 250000000);
}

TEST_F(Rds, ZeroAttemptsTurnRetriesOff) {
  world_.AddService("web");
  config::VirtualService rule = To(GenWorld::Host("web"));
  rule.http[0].retries.emplace().attempts = 0;
  AddVirtualService(rule);
  EXPECT_FALSE(Find(Generate("80"), "web.shop.svc.cluster.local:80").routes(0).route().has_retry_policy());
}

TEST_F(Rds, FaultMirrorRewriteAndHeadersAreTranslated) {
  world_.AddService("web");
  world_.AddService("shadow");
  config::VirtualService rule = To(GenWorld::Host("web"));
  config::HttpRoute& route = rule.http[0];
  route.fault.emplace().abort.emplace().http_status = 418;
  route.fault->abort->percentage = 12.5;
  route.mirror = config::Destination{GenWorld::Host("shadow"), "", 0};
  route.mirror_percentage = 50.0;
  route.rewrite.emplace().uri = "/new";
  route.rewrite->authority = "inner.example";
  route.headers.emplace().request.emplace().set = {{"x-a", "1"}, {"host", "ignored"}};
  route.headers->request->remove = {"x-b", ":path"};
  AddVirtualService(rule);
  const auto out = Find(Generate("80"), "web.shop.svc.cluster.local:80").routes(0);
  ::envoy::extensions::filters::http::fault::v3::HTTPFault fault;
  ASSERT_TRUE(out.typed_per_filter_config().at("envoy.filters.http.fault").UnpackTo(&fault));
  EXPECT_EQ(fault.abort().http_status(), 418u);
  EXPECT_EQ(fault.abort().percentage().numerator(), 125000u);
  ASSERT_EQ(out.route().request_mirror_policies_size(), 1);
  EXPECT_EQ(out.route().request_mirror_policies(0).cluster(), "outbound|80||shadow.shop.svc.cluster.local");
  EXPECT_EQ(out.route().request_mirror_policies(0).runtime_fraction().default_value().numerator(), 500000u);
  EXPECT_EQ(out.route().prefix_rewrite(), "/new");
  EXPECT_EQ(out.route().host_rewrite_literal(), "inner.example");
  ASSERT_EQ(out.request_headers_to_add_size(), 1);
  EXPECT_EQ(out.request_headers_to_add(0).header().key(), "x-a");
  EXPECT_THAT(out.request_headers_to_remove(), ElementsAre("x-b"));
}

TEST_F(Rds, AFaultOfWhichNothingCanBeTranslatedIsAnEmptyOne) {
  world_.AddService("web");
  config::VirtualService rule = To(GenWorld::Host("web"));
  rule.http[0].fault.emplace().delay = config::HttpFaultInjection::Delay{.percent = 50};
  AddVirtualService(rule);
  const auto out = Find(Generate("80"), "web.shop.svc.cluster.local:80").routes(0);
  ASSERT_TRUE(out.typed_per_filter_config().contains("envoy.filters.http.fault"));
  EXPECT_EQ(out.typed_per_filter_config().at("envoy.filters.http.fault").value(), "");
}

TEST_F(Rds, RedirectNamesNoPortThatItsSchemeImplies) {
  world_.AddService("web");
  config::VirtualService rule = To(GenWorld::Host("web"));
  rule.http[0].route.clear();
  rule.http[0].redirect.emplace().authority = "new.example";
  rule.http[0].redirect->port = 80;
  rule.http[0].redirect->redirect_code = 307;
  AddVirtualService(rule);
  const auto redirect = Find(Generate("80"), "web.shop.svc.cluster.local:80").routes(0).redirect();
  EXPECT_EQ(redirect.host_redirect(), "new.example");
  EXPECT_EQ(redirect.port_redirect(), 0u);
  EXPECT_EQ(redirect.response_code(), ::envoy::config::route::v3::RedirectAction::TEMPORARY_REDIRECT);
}

TEST_F(Rds, HostsWithoutServiceAreServedOnPort80Only) {
  world_.AddService("web");
  world_.AddService("web2", "shop", {"http", 8080, Protocol::kHttp});
  config::VirtualService rule = To(GenWorld::Host("web"));
  rule.hosts = {"bookinfo.example"};
  AddVirtualService(rule);
  EXPECT_EQ(Find(Generate("80"), "bookinfo.example:80").routes(0).route().cluster(),
            "outbound|80||web.shop.svc.cluster.local");
  const Routes other = Generate("8080");
  for (const Host& host : other.virtual_hosts()) EXPECT_NE(host.name(), "bookinfo.example:8080");
}

TEST_F(Rds, ConsistentHashingBecomesAHashPolicy) {
  world_.AddService("web");
  config::DestinationRule rule;
  rule.host = GenWorld::Host("web");
  auto& hash = rule.traffic_policy.emplace().load_balancer.emplace().consistent_hash.emplace();
  hash.key = config::ConsistentHash::Key::kHttpHeaderName;
  hash.name = "x-user";
  world_.AddRule("web", rule);
  const auto action = Find(Generate("80"), "web.shop.svc.cluster.local:80").routes(0).route();
  ASSERT_EQ(action.hash_policy_size(), 1);
  EXPECT_EQ(action.hash_policy(0).header().header_name(), "x-user");
}

TEST_F(Rds, SecondProxyTakesTheRoutesFromTheCache) {
  world_.AddService("web");
  Generate("80");
  EXPECT_EQ(cached_, 0);
  Generate("80");
  EXPECT_EQ(cached_, 1);
  cache_.Clear({{ConfigKind::kServiceEntry, GenWorld::Host("web"), "shop"}}, Time(1s));
  Generate("80");
  EXPECT_EQ(cached_, 0);
}

TEST_F(Rds, RoutesThatDependOnTheSourceAreNotCached) {
  world_.AddService("web");
  config::VirtualService rule = To(GenWorld::Host("web"));
  rule.http[0].match.emplace_back().source_labels = {{"app", "client"}};
  AddVirtualService(rule);
  Generate("80");
  Generate("80");
  EXPECT_EQ(cached_, 0);
}

class RouterRds : public Rds {
 protected:
  RouterRds() {
    type_ = NodeType::kRouter;
    labels_ = {{"istio", "gw"}};
  }

  void AddGateway(config::Server server) { AddGateway(std::vector<config::Server>{std::move(server)}); }
  void AddGateway(std::vector<config::Server> servers) {
    auto gateway = std::make_shared<config::TypedConfig<config::Gateway>>();
    gateway->meta.kind = config::Kind::kGateway;
    gateway->meta.name = "gw";
    gateway->meta.ns = "shop";
    gateway->spec.selector = {{"istio", "gw"}};
    gateway->spec.servers = std::move(servers);
    world_.configs.Put(config::GatewayRef(std::move(gateway)));
  }

  static config::Server HttpServer(std::vector<std::string> hosts, uint32_t port = 8080) {
    config::Server out;
    out.port = {port, "HTTP", "http", 0};
    out.has_port = true;
    out.hosts = std::move(hosts);
    return out;
  }

  config::VirtualService Bound(std::vector<std::string> hosts) {
    config::VirtualService out = To(GenWorld::Host("web"));
    out.hosts = std::move(hosts);
    out.gateways = {"gw"};
    return out;
  }
};

TEST_F(RouterRds, RouteOfAGatewayThatIsGoneIsEmpty) {
  const Routes routes = Generate("http.8080");
  EXPECT_EQ(routes.virtual_hosts_size(), 0);
  EXPECT_FALSE(routes.ignore_port_in_host_matching());
}

TEST_F(RouterRds, ServerWithoutVirtualServiceAnswers404) {
  AddGateway(HttpServer({"*"}));
  const Routes routes = Generate("http.8080");
  ASSERT_EQ(routes.virtual_hosts_size(), 1);
  EXPECT_EQ(routes.virtual_hosts(0).name(), "blackhole:8080");
  EXPECT_EQ(routes.virtual_hosts(0).routes_size(), 0);
}

TEST_F(RouterRds, HostsOfServerAndRuleMeetAtTheNarrowerSide) {
  world_.AddService("web");
  AddGateway(HttpServer({"*.example", "inner.test"}));
  AddVirtualService(Bound({"a.example", "*.test", "b.other"}));
  const Routes routes = Generate("http.8080");
  ASSERT_EQ(routes.virtual_hosts_size(), 1);  // same routes, one virtual host
  EXPECT_EQ(routes.virtual_hosts(0).name(), "inner.test:8080");
  EXPECT_THAT(routes.virtual_hosts(0).domains(), ElementsAre("inner.test", "a.example"));
  EXPECT_EQ(routes.virtual_hosts(0).routes(0).route().cluster(), "outbound|80||web.shop.svc.cluster.local");
}

TEST_F(RouterRds, CatchAllOfOneRuleDoesNotHideAnothersRoutes) {
  world_.AddService("web");
  AddGateway(HttpServer({"*"}));
  AddVirtualService(Bound({"a.example"}), "all");
  config::VirtualService api = Bound({"a.example"});
  api.http[0].match.emplace_back().uri = StringMatch{StringMatch::Kind::kPrefix, "/api"};
  AddVirtualService(api, "api");
  const Host host = Find(Generate("http.8080"), "a.example:8080");
  ASSERT_EQ(host.routes_size(), 2);
  EXPECT_EQ(host.routes(0).match().prefix(), "/api");
}

// Rules are translated once for all servers of a gateway, but for those that look at the port.
TEST_F(RouterRds, RuleThatLooksAtThePortHasRoutesOfItsOwnOnEach) {
  world_.AddService("web");
  AddGateway({HttpServer({"*"}), HttpServer({"*"}, 9090)});
  config::VirtualService plain = Bound({"plain.example"}), derived = Bound({"derived.example"});
  config::VirtualService matching = Bound({"matching.example"});
  derived.http[0].route.clear();
  derived.http[0].redirect.emplace().authority = "new.example";
  derived.http[0].redirect->derive_port = config::HttpRedirect::DerivePort::kFromRequestPort;
  matching.http[0].match.emplace_back().port = 9090;
  AddVirtualService(plain, "plain");
  AddVirtualService(derived, "derived");
  AddVirtualService(matching, "matching");
  const std::vector<Routes> all = GenerateAll({"http.8080", "http.9090"});
  ASSERT_EQ(all.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const int port = i == 0 ? 8080 : 9090;
    const auto host = [&](const char* name) { return name + std::string(".example:") + std::to_string(port); };
    EXPECT_EQ(Find(all[i], host("plain")).routes(0).route().cluster(), "outbound|80||web.shop.svc.cluster.local");
    EXPECT_EQ(Find(all[i], host("derived")).routes(0).redirect().port_redirect(), static_cast<uint32_t>(port));
    EXPECT_EQ(all[i].virtual_hosts_size(), port == 9090 ? 3 : 2);  // one rule has no say on 8080
  }
  EXPECT_EQ(Find(all[1], "matching.example:9090").routes_size(), 1);
}

TEST_F(RouterRds, HttpsRedirectCoversHostsWithoutRuleToo) {
  world_.AddService("web");
  config::Server server = HttpServer({"*/a.example", "*/b.example"});
  server.tls.emplace().https_redirect = true;
  AddGateway(server);
  AddVirtualService(Bound({"a.example"}));
  const Routes routes = Generate("http.8080");
  EXPECT_EQ(Find(routes, "a.example:8080").require_tls(), Host::ALL);
  EXPECT_EQ(Find(routes, "b.example:8080").require_tls(), Host::ALL);
}

TEST(AlternativeDomains, OutsideKubernetesShareTheProxysSuffix) {
  EXPECT_THAT(AlternativeDomains("foo.local.campus.net", 80, "local.campus.net"), ElementsAre("foo", "foo:80"));
  EXPECT_THAT(AlternativeDomains("foo.local.campus.net", 0, "remote.campus.net"),
              ElementsAre("foo.local", "foo.local.campus"));
  EXPECT_TRUE(AlternativeDomains("foo.example", 80, "campus.net").empty());
}

TEST(AlternativeDomains, ForeignHostsAreNotShortenedInsideKubernetes) {
  EXPECT_TRUE(AlternativeDomains("api.example.com", 80, "shop.svc.cluster.local").empty());
}

TEST_F(Rds, OfSeveralDestinationsOneThatHasAllTheWeightStaysWeightedByProfile) {
  world_.AddService("web");
  config::VirtualService rule = To("elsewhere.example");
  auto& route = rule.http[0].route;
  route[0].destination.host = "web.shop.svc.cluster.local";
  route[0].weight = 100;
  route.push_back(route[0]);
  route[1].weight = 0;
  AddVirtualService(rule);
  const auto action = [&] { return Find(Generate("80"), "elsewhere.example:80").routes(0).route(); };
  EXPECT_EQ(action().cluster(), "outbound|80||web.shop.svc.cluster.local");
  Since({Change::kWeightsAsWritten});
  ASSERT_EQ(action().weighted_clusters().clusters_size(), 1);
  EXPECT_EQ(action().weighted_clusters().clusters(0).weight().value(), 100u);
}

TEST_F(Rds, TheRegexOfAllPathsEndsTheListByProfile) {
  world_.AddService("web");
  config::VirtualService rule = To("elsewhere.example");
  rule.http[0].match.emplace_back().uri = config::StringMatch{config::StringMatch::Kind::kRegex, ".*"};
  rule.http.push_back(rule.http[0]);
  AddVirtualService(rule);
  const auto routes = [&] { return Find(Generate("80"), "elsewhere.example:80").routes_size(); };
  EXPECT_EQ(routes(), 2);
  Since({Change::kRegexCatchesAll});
  EXPECT_EQ(routes(), 1);
}

TEST_F(Rds, AServiceFollowsTheRuleThatNamesItBestByProfile) {
  world_.AddService("web");
  world_.AddService("api");
  const auto add = [&](const std::string& host, const std::string& destination) {
    config::VirtualService rule = To(host);
    rule.http[0].route[0].destination.host = destination;
    AddVirtualService(rule, destination);
  };
  add("*.svc.cluster.local", "far");
  add("*.shop.svc.cluster.local", "near");
  add("api.shop.svc.cluster.local", "for-api");
  const auto cluster = [&](const std::string& service) {
    return Find(Generate("80"), service + ".shop.svc.cluster.local:80").routes(0).route().cluster();
  };
  EXPECT_EQ(cluster("web"), "outbound|80||far.shop.svc.cluster.local") << "the oldest";
  Since({Change::kMostSpecificWildcard});
  EXPECT_EQ(cluster("web"), "outbound|80||near.shop.svc.cluster.local");
  EXPECT_EQ(cluster("api"), "outbound|80||for-api.shop.svc.cluster.local");
}

TEST_F(Rds, AGatewayApiRouteOfAThirdNamespaceHoldsForAllOrByProfileForItsOwnClients) {
  world_.AddService("web", "other");
  const auto cluster = [this] {
    const Routes routes = Generate("80");
    return Find(routes, "web.other.svc.cluster.local:80").routes(0).route().cluster();
  };
  config::VirtualService rule = To("web.other.svc.cluster.local");
  rule.http[0].route[0].destination.subset = "third";
  AddVirtualService(rule, "third", "third", {{"internal.istio.io/route-semantics", "gateway"}});
  EXPECT_EQ(cluster(), "outbound|80|third|web.other.svc.cluster.local");
  Since({Change::kGatewayApiMeshPorts});
  EXPECT_EQ(cluster(), "outbound|80||web.other.svc.cluster.local");
  // The client's own counts, and before an older one of the service's namespace.
  rule.http[0].route[0].destination.subset = "others";
  AddVirtualService(rule, "others", "other", {{"internal.istio.io/route-semantics", "gateway"}});
  EXPECT_EQ(cluster(), "outbound|80|others|web.other.svc.cluster.local");
  rule.http[0].route[0].destination.subset = "own";
  AddVirtualService(rule, "own", "shop", {{"internal.istio.io/route-semantics", "gateway"}});
  EXPECT_EQ(cluster(), "outbound|80|own|web.other.svc.cluster.local");
}

// istiod: httproute.go, buildCatchAllVirtualHost; route.go, applyHTTPRouteDestination.
TEST_F(Rds, AttemptsAreCountedAndRewrittenHostsToldOnAsProxyHeadersSay) {
  world_.AddService("web");
  config::VirtualService rule = To("elsewhere.example");
  rule.http[0].route[0].destination = {GenWorld::Host("web"), "", 80};
  rule.http[0].rewrite.emplace().authority = "other.example";
  AddVirtualService(rule);
  world_.mesh = **config::ApplyMeshConfigDefaults(
      "defaultConfig: {proxyHeaders: {attemptCount: {disabled: true}, xForwardedHost: {enabled: true}}}");
  EXPECT_TRUE(Find(Generate("80"), "elsewhere.example:80").include_request_attempt_count());
  Since({Change::kProxyHeaders});
  const Routes counted = Generate("80");
  for (const auto& host : counted.virtual_hosts()) EXPECT_FALSE(host.include_request_attempt_count()) << host.name();
  EXPECT_FALSE(Find(counted, "elsewhere.example:80").routes(0).route().append_x_forwarded_host());
  Since({Change::kForwardedHostAndPort});
  EXPECT_TRUE(Find(Generate("80"), "elsewhere.example:80").routes(0).route().append_x_forwarded_host());
  EXPECT_TRUE(Find(Generate("80"), "allow_any").routes(0).route().append_x_forwarded_host());
}

TEST_F(Rds, HostsAreSmallLettersByProfile) {
  world_.AddService("web")->hostname = "Web.example";
  config::VirtualService rule = To("WEB.Example");
  rule.hosts.push_back("Elsewhere.Example");
  AddVirtualService(rule);
  EXPECT_EQ(Find(Generate("80"), "Elsewhere.Example:80").domains(0), "Elsewhere.Example");
  EXPECT_EQ(Find(Generate("80"), "Web.example:80").routes(0).route().cluster(), "outbound|80||Web.example");
  Since({Change::kHostsInSmallLetters});
  EXPECT_EQ(Find(Generate("80"), "elsewhere.example:80").domains(0), "elsewhere.example");
  EXPECT_EQ(Find(Generate("80"), "web.example:80").routes(0).route().cluster(), "outbound|80||WEB.Example");
}

TEST_F(Rds, ADestinationWithAPortThatIsAnAliasLeadsToWhatItStandsFor) {
  world_.AddService("web");
  const auto alias = world_.AddService("old");
  alias->resolution = Resolution::kAlias;
  alias->attributes.external_name = "web.shop.svc.cluster.local";
  config::VirtualService rule = To("elsewhere.example");
  rule.http[0].route[0].destination = {"old.shop.svc.cluster.local", "v1", 80};
  AddVirtualService(rule);
  Since({Change::kExternalNameAliases});
  EXPECT_EQ(Find(Generate("80"), "elsewhere.example:80").routes(0).route().cluster(),
            "outbound|80|v1|web.shop.svc.cluster.local");
}

}  // namespace
}  // namespace wavetank::pilot
