#include "fakes/envoy/fault_config.h"

#include <algorithm>

#include "envoy/extensions/filters/http/fault/v3/fault.pb.h"
#include "envoy/type/v3/percent.pb.h"

namespace wavetank::envoysim {

uint32_t PartsPerMillion(const envoy::type::v3::FractionalPercent& percent) {
  uint64_t scale = 10'000;
  if (percent.denominator() == envoy::type::v3::FractionalPercent::TEN_THOUSAND) scale = 100;
  if (percent.denominator() == envoy::type::v3::FractionalPercent::MILLION) scale = 1;
  return static_cast<uint32_t>(std::min<uint64_t>(percent.numerator() * scale, 1'000'000));
}

absl::StatusOr<FaultConfig> CompileFault(const envoy::extensions::filters::http::fault::v3::HTTPFault& fault) {
  FaultConfig out;
  if (fault.has_abort()) {
    if (fault.abort().error_type_case() == 0) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (field: \"error_type\", reason: is required)");
    }
    out.abort_per_million = PartsPerMillion(fault.abort().percentage());
    out.abort_status = static_cast<uint16_t>(fault.abort().http_status());
    if (fault.abort().has_http_status() && (out.abort_status < 200 || out.abort_status >= 600)) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (FaultAbortValidationError.HttpStatus: "
          "value must be inside range [200, 600))");
    }
  }
  if (fault.has_delay()) {
    out.delay_per_million = PartsPerMillion(fault.delay().percentage());
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
  return out;
}

}  // namespace wavetank::envoysim
