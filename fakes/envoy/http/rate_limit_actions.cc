#include "fakes/envoy/http/rate_limit_actions.h"

#include <algorithm>

#include "envoy/config/route/v3/route_components.pb.h"

namespace wavetank::envoysim {

absl::Status RateLimitActions::Add(const envoy::config::route::v3::RateLimit& proto) {
  using Proto = envoy::config::route::v3::RateLimit::Action;
  Entry entry;
  entry.stage = proto.stage().value();
  entry.disabled = !proto.disable_key().empty();
  for (const Proto& action : proto.actions()) {
    Action out;
    switch (action.action_specifier_case()) {
      case Proto::kSourceCluster:
        out = {Kind::kSourceCluster, "source_cluster", {}};
        break;
      case Proto::kDestinationCluster:
        out = {Kind::kDestinationCluster, "destination_cluster", {}};
        break;
      case Proto::kRemoteAddress:
        out = {Kind::kRemote, "remote_address", {}};
        break;
      case Proto::kRequestHeaders:
        out = {Kind::kHeader, action.request_headers().descriptor_key(), action.request_headers().header_name(),
               action.request_headers().skip_if_absent()};
        std::transform(out.value.begin(), out.value.end(), out.value.begin(),
                       [](unsigned char c) { return std::tolower(c); });
        break;
      case Proto::kGenericKey: {
        const std::string& key = action.generic_key().descriptor_key();
        out = {Kind::kGeneric, key.empty() ? "generic_key" : key, action.generic_key().descriptor_value()};
        break;
      }
      case Proto::kHeaderValueMatch: {
        const auto& match = action.header_value_match();
        out = {Kind::kMatch, match.descriptor_key().empty() ? "header_match" : match.descriptor_key(),
               match.descriptor_value()};
        out.expect_match = !match.has_expect_match() || match.expect_match().value();
        for (const auto& header : match.headers()) {
          absl::StatusOr<HeaderMatch> made = HeaderMatch::Make(header);
          if (!made.ok()) return made.status();
          out.headers.push_back(*std::move(made));
        }
        break;
      }
      default:
        break;
    }
    entry.actions.push_back(std::move(out));
  }
  entries_.push_back(std::move(entry));
  return absl::OkStatus();
}

bool RateLimitActions::Apply(const Action& action, const RateLimitSubject& subject, RateLimitDescriptor* out) {
  switch (action.kind) {
    case Kind::kSourceCluster:
      out->emplace_back(action.key, subject.local_cluster);
      return true;
    case Kind::kDestinationCluster:
      out->emplace_back(action.key, subject.route_cluster);
      return true;
    case Kind::kRemote:
      out->emplace_back(action.key, subject.remote.ToString());
      return true;
    case Kind::kGeneric:
      out->emplace_back(action.key, action.value);
      return true;
    case Kind::kHeader: {
      const std::optional<std::string_view> value = FindHeader(*subject.request, action.value);
      if (!value.has_value()) return action.skip_if_absent;
      out->emplace_back(action.key, *value);
      return true;
    }
    case Kind::kMatch: {
      const bool matches = std::all_of(action.headers.begin(), action.headers.end(),
                                       [&](const HeaderMatch& header) { return header.Matches(*subject.request); });
      if (matches != action.expect_match) return false;
      out->emplace_back(action.key, action.value);
      return true;
    }
    case Kind::kUnknown:
      break;
  }
  return false;
}

void RateLimitActions::Describe(uint32_t stage, const RateLimitSubject& subject,
                                std::vector<RateLimitDescriptor>* out) const {
  for (const Entry& entry : entries_) {
    if (entry.disabled || entry.stage != stage) continue;
    RateLimitDescriptor descriptor;
    const bool all = std::all_of(entry.actions.begin(), entry.actions.end(),
                                 [&](const Action& action) { return Apply(action, subject, &descriptor); });
    if (all && !descriptor.empty()) out->push_back(std::move(descriptor));
  }
}

}  // namespace wavetank::envoysim
