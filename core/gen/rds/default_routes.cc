#include "core/gen/rds/default_routes.h"

#include <array>
#include <charconv>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/envoyapi/any.h"
#include "core/gen/wire/duration.h"
#include "core/gen/wire/wire.h"
#include "core/model/addresses.h"
#include "core/model/service.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "envoy/config/route/v3/route.pb.h"
#include "envoy/config/route/v3/route_components.pb.h"
#include "envoy/extensions/retry/host/previous_hosts/v3/previous_hosts.pb.h"
#include "envoy/extensions/retry/priority/previous_priorities/v3/previous_priorities_config.pb.h"

namespace wavetank::pilot {
namespace {

namespace route_v3 = ::envoy::config::route::v3;
using RoutePb = route_v3::Route;
using ActionPb = route_v3::RouteAction;
using RetryPb = route_v3::RetryPolicy;
using HostPb = route_v3::VirtualHost;
using ConfigPb = route_v3::RouteConfiguration;

void WritePrefixMatch(wire::Writer& w) {
  w.Message(RoutePb::kMatchFieldNumber, [&] { w.Bytes(route_v3::RouteMatch::kPrefixFieldNumber, "/"); });
}

// A number's text, without a string around it.
class Digits {
 public:
  explicit Digits(int number) : end_(std::to_chars(text_, text_ + sizeof text_, number).ptr) {}
  std::string_view view() const { return {text_, static_cast<size_t>(end_ - text_)}; }

 private:
  char text_[12];
  char* end_;
};

void WriteDecorator(wire::Writer& w, std::string_view hostname, int port) {
  const bool v6 = IsIpv6(hostname);
  w.Message(RoutePb::kDecoratorFieldNumber, [&] {
    w.Joined(route_v3::Decorator::kOperationFieldNumber,
             {v6 ? "[" : "", hostname, v6 ? "]:" : ":", Digits(port).view(), "/*"});
  });
}

// Status codes that Go's net/http has words for.
bool IsHttpStatus(int code) {
  static constexpr std::array kRanges = {std::pair{100, 103}, std::pair{200, 208}, std::pair{226, 226},
                                         std::pair{300, 305}, std::pair{307, 308}, std::pair{400, 418},
                                         std::pair{421, 426}, std::pair{428, 429}, std::pair{431, 431},
                                         std::pair{451, 451}, std::pair{500, 508}, std::pair{510, 511}};
  for (const auto& [first, last] : kRanges) {
    if (code >= first && code <= last) return true;
  }
  return false;
}

void SetRetryOn(std::string_view retry_on, RetryPb& out) {
  std::string conditions;
  out.clear_retriable_status_codes();
  for (const absl::string_view raw : absl::StrSplit(absl::string_view(retry_on.data(), retry_on.size()), ',')) {
    const absl::string_view part = absl::StripAsciiWhitespace(raw);
    if (part.empty()) continue;
    int code = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), code);
    if (error == std::errc() && end == part.data() + part.size() && IsHttpStatus(code)) {
      out.add_retriable_status_codes(static_cast<uint32_t>(code));
    } else {
      absl::StrAppend(&conditions, conditions.empty() ? "" : ",", part);
    }
  }
  if (out.retriable_status_codes_size() > 0 && conditions.find("retriable-status-codes") == std::string::npos) {
    absl::StrAppend(&conditions, ",retriable-status-codes");
  }
  out.set_retry_on(conditions);
}

void AddPreviousHosts(RetryPb& out) {
  auto* previous_hosts = out.add_retry_host_predicate();
  previous_hosts->set_name("envoy.retry_host_predicates.previous_hosts");
  *previous_hosts->mutable_typed_config() =
      PackAny(envoy::extensions::retry::host::previous_hosts::v3::PreviousHostsPredicate());
}

// `any_503`: also one that the application may have seen.
RetryPb DefaultRetryPolicy(bool any_503) {
  RetryPb out;
  out.mutable_num_retries()->set_value(2);
  out.set_retry_on("connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes");
  if (any_503) out.add_retriable_status_codes(503);
  AddPreviousHosts(out);
  out.set_host_selection_retry_max_attempts(5);
  return out;
}

}  // namespace

std::string RetryPolicy(const std::optional<config::HttpRetry>& policy, const PushContext& push, bool same_host) {
  static const std::string* const kDefaults[] = {new std::string(Serialize(DefaultRetryPolicy(false))),
                                                 new std::string(Serialize(DefaultRetryPolicy(true)))};
  const bool any_503 = !push.profile().Has(Change::kNoRetriesOf503);
  if (!policy && !same_host) return *kDefaults[any_503 ? 1 : 0];
  if (policy && policy->attempts <= 0) return {};
  RetryPb out = DefaultRetryPolicy(any_503);
  if (same_host) out.clear_retry_host_predicate();
  if (!policy) return Serialize(out);
  out.mutable_num_retries()->set_value(static_cast<uint32_t>(policy->attempts));
  if (!policy->retry_on.empty()) SetRetryOn(policy->retry_on, out);
  if (policy->per_try_timeout) SetDuration(*policy->per_try_timeout, out.mutable_per_try_timeout());
  if (push.profile().Has(Change::kRetryBackoff)) {
    if (policy->retry_ignore_previous_hosts) {
      out.clear_retry_host_predicate();
      if (*policy->retry_ignore_previous_hosts) AddPreviousHosts(out);
    }
    if (policy->backoff) SetDuration(*policy->backoff, out.mutable_retry_back_off()->mutable_base_interval());
  }
  if (policy->retry_remote_localities.value_or(false)) {
    envoy::extensions::retry::priority::previous_priorities::v3::PreviousPrioritiesConfig config;
    config.set_update_frequency(2);
    auto* priority = out.mutable_retry_priority();
    priority->set_name("envoy.retry_priorities.previous_priorities");
    *priority->mutable_typed_config() = PackAny(config);
  }
  return Serialize(out);
}

std::string InboundRouteConfiguration(std::string_view cluster, std::string_view hostname, int service_port,
                                      bool retries) {
  return wire::Encode([&](wire::Writer& w) {
    w.Bytes(ConfigPb::kNameFieldNumber, cluster);
    w.Message(ConfigPb::kVirtualHostsFieldNumber, [&] {
      w.Bytes(HostPb::kNameFieldNumber, absl::StrCat("inbound|http|", service_port));
      w.Bytes(HostPb::kDomainsFieldNumber, "*");
      w.Message(HostPb::kRoutesFieldNumber, [&] {
        w.Bytes(RoutePb::kNameFieldNumber, "default");
        WritePrefixMatch(w);
        WriteDecorator(w, hostname, service_port);
        w.Message(RoutePb::kRouteFieldNumber, [&] {
          using StreamPb = ActionPb::MaxStreamDuration;
          w.Bytes(ActionPb::kClusterFieldNumber, cluster);
          w.Duration(ActionPb::kTimeoutFieldNumber, 0);
          if (retries) {
            w.Message(ActionPb::kRetryPolicyFieldNumber, [&] {
              w.Bytes(RetryPb::kRetryOnFieldNumber, "reset-before-request");
              w.UInt32Value(RetryPb::kNumRetriesFieldNumber, 2);
            });
          }
          w.Message(ActionPb::kMaxStreamDurationFieldNumber, [&] {
            w.Duration(StreamPb::kMaxStreamDurationFieldNumber, 0);
            w.Duration(StreamPb::kGrpcTimeoutHeaderMaxFieldNumber, 0);
          });
        });
      });
    });
    w.BoolValue(ConfigPb::kValidateClustersFieldNumber, false);
  });
}

std::string DefaultOutboundRoute(std::string_view hostname, int port, std::string_view retry_policy,
                                 std::string_view hash_policy, Duration timeout) {
  std::string out;
  out.reserve(2 * hostname.size() + retry_policy.size() + hash_policy.size() + 96);
  wire::Writer w(&out);
  w.Bytes(RoutePb::kNameFieldNumber, "default");
  WritePrefixMatch(w);
  WriteDecorator(w, hostname, port);
  w.Message(RoutePb::kRouteFieldNumber, [&] {
    // BuildSubsetKey
    w.Joined(ActionPb::kClusterFieldNumber, {"outbound|", Digits(port).view(), "||", hostname});
    w.NonEmpty(ActionPb::kRetryPolicyFieldNumber, retry_policy);
    w.NonEmpty(ActionPb::kHashPolicyFieldNumber, hash_policy);
    w.Duration(ActionPb::kTimeoutFieldNumber, timeout.count());
    w.Duration(ActionPb::kMaxGrpcTimeoutFieldNumber, timeout.count());
  });
  return out;
}

std::string PassthroughVirtualHost(std::string_view cluster, const ProxyHeaders& headers) {
  return wire::Encode([&](wire::Writer& w) {
    w.Bytes(HostPb::kNameFieldNumber, "allow_any");
    w.Bytes(HostPb::kDomainsFieldNumber, "*");
    w.Message(HostPb::kRoutesFieldNumber, [&] {
      w.Bytes(RoutePb::kNameFieldNumber, "allow_any");
      WritePrefixMatch(w);
      w.Message(RoutePb::kRouteFieldNumber, [&] {
        w.Bytes(ActionPb::kClusterFieldNumber, cluster);
        w.Duration(ActionPb::kTimeoutFieldNumber, 0);
        w.Duration(ActionPb::kMaxGrpcTimeoutFieldNumber, 0);
        if (headers.forwarded_host) w.Bool(ActionPb::kAppendXForwardedHostFieldNumber, true);
      });
    });
    if (headers.attempt_count) w.Bool(HostPb::kIncludeRequestAttemptCountFieldNumber, true);
  });
}

std::string BlackHoleVirtualHost(const ProxyHeaders& headers) {
  return wire::Encode([&](wire::Writer& w) {
    w.Bytes(HostPb::kNameFieldNumber, "block_all");
    w.Bytes(HostPb::kDomainsFieldNumber, "*");
    w.Message(HostPb::kRoutesFieldNumber, [&] {
      w.Bytes(RoutePb::kNameFieldNumber, "block_all");
      WritePrefixMatch(w);
      w.Message(RoutePb::kDirectResponseFieldNumber,
                [&] { w.Varint(route_v3::DirectResponseAction::kStatusFieldNumber, 502); });
    });
    if (headers.attempt_count) w.Bool(HostPb::kIncludeRequestAttemptCountFieldNumber, true);
  });
}

}  // namespace wavetank::pilot
