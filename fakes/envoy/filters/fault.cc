#include "fakes/envoy/filters/fault.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "envoy/extensions/filters/http/fault/v3/fault.pb.h"
#include "fakes/envoy/config/route_config.h"
#include "fakes/envoy/match/matchers.h"
#include "fakes/envoy/match/proto_time.h"

namespace wavetank::envoysim {
namespace {

// Probabilities in parts per million.
struct FaultConfig final : RouteFilterConfig {
  bool abort_by_header = false, delay_by_header = false;
  uint32_t abort_per_million = 0;
  uint64_t abort_unit = 0, delay_unit = 0;  // millionths that one of its percentage's numerators is
  uint16_t abort_status = 0;
  uint16_t abort_grpc_status = kNoGrpcStatus;
  uint32_t delay_per_million = 0;
  Duration delay{};
  std::vector<HeaderMatch> headers;
  std::string upstream_cluster;
  std::optional<uint32_t> max_active;  // requests that it may be hurting at a time
};

// Of one filter of one Envoy.
struct ActiveFaults final : FilterState {
  uint64_t count = 0;
};

// A request counts as hurt until it is over.
struct ActiveFault final : FilterState {
  explicit ActiveFault(std::shared_ptr<ActiveFaults> all) : of(std::move(all)) { ++of->count; }
  ~ActiveFault() override { --of->count; }
  ActiveFault(const ActiveFault&) = delete;
  ActiveFault& operator=(const ActiveFault&) = delete;

  const std::shared_ptr<ActiveFaults> of;
};

absl::StatusOr<FaultConfig> CompileFault(const envoy::extensions::filters::http::fault::v3::HTTPFault& fault) {
  FaultConfig out;
  if (fault.has_abort()) {
    if (fault.abort().error_type_case() == 0) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (field: \"error_type\", reason: is required)");
    }
    out.abort_per_million = PartsPerMillion(fault.abort().percentage());
    out.abort_unit = MillionthsOfOne(fault.abort().percentage());
    out.abort_status = static_cast<uint16_t>(fault.abort().http_status());
    if (fault.abort().has_grpc_status()) {
      // Whoever does not speak gRPC is told that all is well. Envoy: filters/http/fault/fault_filter.cc,
      // abortWithStatus
      out.abort_grpc_status = static_cast<uint16_t>(fault.abort().grpc_status());
      out.abort_status = 200;
    }
    out.abort_by_header = fault.abort().has_header_abort();
    if (fault.abort().has_http_status() && (out.abort_status < 200 || out.abort_status >= 600)) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (FaultAbortValidationError.HttpStatus: "
          "value must be inside range [200, 600))");
    }
  }
  if (fault.has_delay()) {
    out.delay_per_million = PartsPerMillion(fault.delay().percentage());
    out.delay_unit = MillionthsOfOne(fault.delay().percentage());
    out.delay_by_header = fault.delay().has_header_delay();
    out.delay = std::chrono::seconds(fault.delay().fixed_delay().seconds()) +
                std::chrono::nanoseconds(fault.delay().fixed_delay().nanos());
  }
  if (fault.delay().has_fixed_delay() && out.delay <= Duration::zero()) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (FaultDelayValidationError.FixedDelay: value must be greater than 0s)");
  }
  for (const auto& header : fault.headers()) {
    absl::StatusOr<HeaderMatch> m = HeaderMatch::Make(header);
    if (!m.ok()) return m.status();
    out.headers.push_back(*std::move(m));
  }
  out.upstream_cluster = fault.upstream_cluster();
  if (fault.has_max_active_faults()) out.max_active = fault.max_active_faults().value();
  return out;
}

absl::StatusOr<FaultConfig> FromAny(const google::protobuf::Any& config) {
  envoy::extensions::filters::http::fault::v3::HTTPFault message;
  if (absl::Status s = UnpackConfig(config, &message); !s.ok()) return s;
  return CompileFault(message);
}

class FaultFilter final : public HttpFilter {
 public:
  FaultFilter(FaultConfig config, std::string prefix) : config_(std::move(config)), prefix_(std::move(prefix)) {}

  FilterStatus OnRequest(HttpStream& stream, Duration lead) const override {
    const auto* const of_route = static_cast<const FaultConfig*>(stream.RouteConfig());
    const FaultConfig& said = of_route != nullptr ? *of_route : config_;
    if (!Concerns(said, stream)) return FilterStatus::kContinue;
    FaultConfig fault = said;
    AskHeaders(stream.request(), &fault);
    const bool abort = fault.abort_per_million > 0 && stream.random().Chance(fault.abort_per_million);
    const LocalReply answer{fault.abort_status,     kFaultInjected, "fault_filter_abort", "fault filter abort", {},
                            fault.abort_grpc_status};
    if (fault.delay_per_million > 0 && stream.random().Chance(fault.delay_per_million) && Begin(fault, stream)) {
      stream.AddFlags(kDelayInjected);
      ++stream.Counter(prefix_ + "fault.delays_injected");
      stream.After(lead + fault.delay, [abort, answer, aborts = prefix_ + "fault.aborts_injected"](HttpStream& later) {
        if (abort) ++later.Counter(aborts);
        abort ? later.Answer(answer, Duration::zero()) : later.Continue(Duration::zero());
      });
      return FilterStatus::kStop;
    }
    if (!abort || !Begin(fault, stream)) return FilterStatus::kContinue;
    ++stream.Counter(prefix_ + "fault.aborts_injected");
    stream.Answer(answer, lead);
    return FilterStatus::kStop;
  }

 private:
  // False: as many requests are hurt already as may be. Envoy: fault_filter.cc, tryIncActiveFaults
  bool Begin(const FaultConfig& fault, HttpStream& stream) const {
    std::shared_ptr<FilterState>& own = stream.Memory();
    if (own != nullptr) return true;
    std::shared_ptr<FilterState>& kept = stream.State(id_, /*of_connection=*/false);
    if (kept == nullptr) kept = std::make_shared<ActiveFaults>();
    auto all = std::static_pointer_cast<ActiveFaults>(kept);
    if (fault.max_active.has_value() && all->count >= *fault.max_active) {
      ++stream.Counter(prefix_ + "fault.faults_overflow");
      return false;
    }
    own = std::make_shared<ActiveFault>(std::move(all));
    return true;
  }

  // What the request itself asks for, where the configuration leaves it to that.
  // Envoy: filters/common/fault/fault_config.cc
  static void AskHeaders(const RequestSpec& request, FaultConfig* fault) {
    const auto number = [&](std::string_view name) -> std::optional<uint32_t> {
      uint32_t value = 0;
      const std::optional<std::string_view> text = FindHeader(request, name);
      if (!text || !absl::SimpleAtoi(std::string(*text), &value)) return std::nullopt;
      return value;
    };
    // A numerator of the configuration's denominator, and never more than its own.
    // Envoy: the same, HeaderPercentageProvider::percentage
    const auto limit = [&](std::string_view name, uint64_t unit, uint32_t* per_million) {
      if (const auto said = number(name))
        *per_million = static_cast<uint32_t>(std::min<uint64_t>(*per_million, *said * unit));
    };
    if (fault->abort_by_header) {
      const auto status = number("x-envoy-fault-abort-request"), grpc = number("x-envoy-fault-abort-grpc-request");
      if (status && *status >= 200 && *status < 600) {
        fault->abort_status = static_cast<uint16_t>(*status);
      } else if (grpc) {
        fault->abort_status = 200;
        fault->abort_grpc_status = static_cast<uint16_t>(*grpc);
      } else {
        fault->abort_per_million = 0;
      }
      limit("x-envoy-fault-abort-request-percentage", fault->abort_unit, &fault->abort_per_million);
    }
    if (fault->delay_by_header) {
      const auto ms = number("x-envoy-fault-delay-request");
      fault->delay = std::chrono::milliseconds(ms.value_or(0));
      if (!ms) fault->delay_per_million = 0;
      limit("x-envoy-fault-delay-request-percentage", fault->delay_unit, &fault->delay_per_million);
    }
  }

  static bool Concerns(const FaultConfig& fault, HttpStream& stream) {
    if (fault.abort_per_million == 0 && fault.delay_per_million == 0) return false;
    const auto matches = [&](const HeaderMatch& m) { return m.Matches(stream.request()); };
    if (!std::all_of(fault.headers.begin(), fault.headers.end(), matches)) return false;
    return fault.upstream_cluster.empty() || fault.upstream_cluster == stream.RouteCluster();
  }

  const FaultConfig config_;
  const std::string prefix_;
  const uint64_t id_ = NextFilterId();
};

}  // namespace

HttpFilterType FaultFilterType() {
  HttpFilterType type;
  type.message = type.route_message = "envoy.extensions.filters.http.fault.v3.HTTPFault";
  type.name = "envoy.filters.http.fault";
  type.make = [](const google::protobuf::Any& config,
                 const FilterContext& context) -> absl::StatusOr<std::shared_ptr<const HttpFilter>> {
    absl::StatusOr<FaultConfig> made = FromAny(config);
    if (!made.ok()) return made.status();
    return std::make_shared<FaultFilter>(*std::move(made), std::string(context.stat_prefix));
  };
  type.make_for_route = [](const google::protobuf::Any& config,
                           const Extensions&) -> absl::StatusOr<std::shared_ptr<const RouteFilterConfig>> {
    absl::StatusOr<FaultConfig> made = FromAny(config);
    if (!made.ok()) return made.status();
    return std::make_shared<FaultConfig>(*std::move(made));
  };
  return type;
}

}  // namespace wavetank::envoysim
