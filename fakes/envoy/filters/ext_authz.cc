#include "fakes/envoy/filters/ext_authz.h"

#include <memory>
#include <string>
#include <utility>

#include "envoy/extensions/filters/http/ext_authz/v3/ext_authz.pb.h"
#include "envoy/extensions/filters/network/ext_authz/v3/ext_authz.pb.h"
#include "fakes/envoy/config/listener_config.h"
#include "fakes/envoy/filters/ext_authz_config.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/request_edit.h"

namespace wavetank::envoysim {
namespace {

using Result = ExtAuthzConfig::Result;

std::string_view CounterOf(Result result) {
  return result == Result::kAllowed ? "ok" : result == Result::kDenied ? "denied" : "error";
}

template <typename Where>
void Count(const ExtAuthzConfig& config, Where& where, std::string_view what) {
  ++where.Counter(config.counters + std::string(what));
}

// What a route says: only whether it is asked about counts here; what it tells an authorizer besides nobody reads.
struct ExtAuthzOfRoute final : RouteFilterConfig {
  bool disabled = false;
};

class HttpExtAuthz final : public HttpFilter {
 public:
  explicit HttpExtAuthz(ExtAuthzConfig config) : config_(std::move(config)) {}

  FilterStatus OnRequest(HttpStream& stream, Duration lead) const override {
    if (stream.route() == nullptr) return FilterStatus::kContinue;  // Envoy: ext_authz.cc, getPerRouteFlags
    const auto* const of_route = dynamic_cast<const ExtAuthzOfRoute*>(stream.RouteConfig());
    if (of_route != nullptr && of_route->disabled) return FilterStatus::kContinue;
    const uint32_t share = config_.enabled_per_million;
    const bool drawn = share >= 1'000'000 || (share > 0 && stream.random().Chance(share));
    if (!drawn || !config_.AsksAbout(stream.notes())) {
      Count(config_, stream, "disabled");
      if (!config_.deny_at_disable) return FilterStatus::kContinue;
      stream.Answer({config_.status_on_error, kUnauthorizedExternalService, "ext_authz_error", ""}, lead);
      return FilterStatus::kStop;
    }
    stream.Call(config_.route, config_.Check(&stream.request(), stream.connection().identity),
                [this](HttpStream& asked, const Reply& reply, Duration ahead) { Answered(asked, reply, ahead); });
    return FilterStatus::kStop;
  }

 private:
  void Answered(HttpStream& stream, const Reply& reply, Duration lead) const {
    const Result result = config_.ResultOf(reply);
    Count(config_, stream, CounterOf(result));
    switch (result) {
      case Result::kAllowed:
        Apply(stream, reply);
        return stream.Continue(lead);
      case Result::kDenied:
        return Deny(stream, reply, lead);
      case Result::kError:
        if (config_.failure_mode_allow) {
          Count(config_, stream, "failure_mode_allowed");
          return stream.Continue(lead);
        }
        return stream.Answer({config_.status_on_error, kUnauthorizedExternalService, "ext_authz_error", ""}, lead);
    }
  }

  // What the authorizer says takes the place of what the route does. Envoy: ext_authz.cc, onComplete
  void Deny(HttpStream& stream, const Reply& reply, Duration lead) const {
    const std::string said = config_.ForClient(reply.headers, /*allowed=*/false);
    LocalReply answer{reply.check_denied != 0 ? reply.check_denied : reply.code, kUnauthorizedExternalService,
                      "ext_authz_denied", stream.Keep(std::string(reply.body))};
    answer.edit = [&said](std::string* lines) {
      std::string kept;
      ForEachHeader(*lines, [&](std::string_view name, std::string_view value) {
        bool replaced = false;
        ForEachHeader(said, [&](std::string_view other, std::string_view) { replaced |= other == name; });
        if (!replaced) AddHeaderLine(name, value, &kept);
      });
      *lines = kept + said;
    };
    stream.Answer(answer, lead);
  }

  void Apply(HttpStream& stream, const Reply& reply) const {
    RequestEdit edit(stream.request());
    config_.Apply(reply.headers, &edit);
    if (std::shared_ptr<const RequestSpec> changed = edit.Take()) {
      stream.Replace(std::move(changed));
      if (config_.clear_route_cache) stream.ClearRouteCache();
    }
    const std::string shown = config_.ForClient(reply.headers, /*allowed=*/true);
    if (!shown.empty()) stream.AddReplyHeaders(shown);
  }

  const ExtAuthzConfig config_;
};

class NetworkExtAuthz final : public NetworkFilter {
 public:
  explicit NetworkExtAuthz(ExtAuthzConfig config) : config_(std::move(config)) {}

  bool reads() const override { return true; }
  FilterStatus OnData(NetworkConnection& connection) const override {
    if (!config_.AsksAbout(connection.notes())) {
      Count(config_, connection, "disabled");
      return FilterStatus::kContinue;
    }
    Count(config_, connection, "total");
    connection.Call(config_.route, config_.Check(nullptr, connection.Facts().identity),
                    [this](NetworkConnection& asked, const Reply& reply) { Answered(asked, reply); });
    return FilterStatus::kStop;
  }

 private:
  void Answered(NetworkConnection& connection, const Reply& reply) const {
    const Result result = config_.ResultOf(reply);
    Count(config_, connection, CounterOf(result));
    bool passed = result == Result::kAllowed;
    if (result == Result::kError && config_.failure_mode_allow) {
      Count(config_, connection, "failure_mode_allowed");
      passed = true;
    }
    if (!passed) {
      Count(config_, connection, "cx_closed");
      connection.Explain(kUnauthorizedExternalService,
                         result == Result::kError ? "ext_authz_error" : "ext_authz_denied", {});
    }
    connection.Decide(passed);
  }

  const ExtAuthzConfig config_;
};

}  // namespace

HttpFilterType ExtAuthzFilterType() {
  HttpFilterType type;
  type.message = "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz";
  type.name = "envoy.filters.http.ext_authz";
  type.make = [](const google::protobuf::Any& config,
                 const FilterContext& context) -> absl::StatusOr<std::shared_ptr<const HttpFilter>> {
    envoy::extensions::filters::http::ext_authz::v3::ExtAuthz message;
    if (absl::Status s = UnpackConfig(config, &message); !s.ok()) return s;
    absl::StatusOr<ExtAuthzConfig> made = ExtAuthzConfig::Make(message, std::string(context.stat_prefix));
    if (!made.ok()) return made.status();
    return std::make_shared<HttpExtAuthz>(*std::move(made));
  };
  type.route_message = "envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute";
  type.make_for_route = [](const google::protobuf::Any& config,
                           const Extensions&) -> absl::StatusOr<std::shared_ptr<const RouteFilterConfig>> {
    envoy::extensions::filters::http::ext_authz::v3::ExtAuthzPerRoute message;
    if (absl::Status s = UnpackConfig(config, &message); !s.ok()) return s;
    if (message.override_case() == message.OVERRIDE_NOT_SET) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (field: \"override\", reason: is required)");
    }
    auto made = std::make_shared<ExtAuthzOfRoute>();
    made->disabled = message.disabled();
    return made;
  };
  return type;
}

NetworkFilterType NetworkExtAuthzType() {
  return {"envoy.extensions.filters.network.ext_authz.v3.ExtAuthz", "envoy.filters.network.ext_authz",
          /*terminal=*/false, [](const google::protobuf::Any& config, const FilterContext&, FilterChain* chain) {
            envoy::extensions::filters::network::ext_authz::v3::ExtAuthz message;
            if (absl::Status s = UnpackConfig(config, &message); !s.ok()) return s;
            absl::StatusOr<ExtAuthzConfig> made = ExtAuthzConfig::Make(message);
            if (made.ok()) chain->filters.push_back(std::make_shared<NetworkExtAuthz>(*std::move(made)));
            return made.status();
          }};
}

}  // namespace wavetank::envoysim
