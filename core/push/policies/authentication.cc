#include "core/push/policies/authentication.h"

#include <fmt/format.h>

#include <utility>

#include "core/model/selection.h"
#include "core/push/policies/policy_attachment.h"

namespace wavetank::pilot {
namespace {

using Mode = config::PeerAuthentication::Mode;

bool ForAllWorkloads(const config::PeerAuthentication& policy) { return !policy.selector || policy.selector->empty(); }

MutualTlsMode Convert(Mode mode) {
  switch (mode) {
    case Mode::kDisable:
      return MutualTlsMode::kDisable;
    case Mode::kPermissive:
      return MutualTlsMode::kPermissive;
    case Mode::kStrict:
      return MutualTlsMode::kStrict;
    case Mode::kUnset:
      break;
  }
  return MutualTlsMode::kUnknown;
}

// Of the namespace's policies and then the root's, each by age, those that `takes` takes. istiod:
// getConfigsForWorkload.
template <typename Policies, typename Takes>
auto ForWorkload(const Policies& by_namespace, std::string_view ns, std::string_view root, const Takes& takes) {
  typename Policies::mapped_type out;
  const auto look = [&](std::string_view in) {
    const auto it = by_namespace.find(in);
    if (it == by_namespace.end()) return;
    for (const auto& policy : it->second) {
      if (takes(policy->spec, in)) out.push_back(policy);
    }
  };
  look(ns);
  if (ns != root) look(root);
  return out;
}

}  // namespace

AuthenticationPolicies::AuthenticationPolicies(const std::vector<config::PeerAuthenticationRef>& peers,
                                               const std::vector<config::RequestAuthenticationRef>& requests,
                                               std::string root_namespace, bool by_target)
    : root_namespace_(std::move(root_namespace)), by_target_(by_target) {
  for (const config::RequestAuthenticationRef& policy : requests) {
    requests_by_namespace_[policy->meta.ns].push_back(policy);
  }
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  std::map<std::string, Mode, std::less<>> found;
  std::map<std::string, bool, std::less<>> seen;
  for (const config::PeerAuthenticationRef& policy : peers) {
    for (const char c : fmt::format("{}.{};", policy->meta.uid, policy->meta.resource_version)) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    }
    const std::string& ns = policy->meta.ns;
    if (ForAllWorkloads(policy->spec)) {
      // The oldest of a namespace holds, others are as if they were not there.
      if (std::exchange(seen[ns], true)) continue;
      const Mode mode = policy->spec.mtls.value_or(Mode::kUnset);
      if (ns == root_namespace_) {
        global_mode_ = mode == Mode::kUnset ? MutualTlsMode::kPermissive : Convert(mode);
      } else {
        found[ns] = mode;
      }
    }
    by_namespace_[ns].push_back(policy);
  }
  version_ = fmt::format("{:016x}", hash);
  const MutualTlsMode inherited = global_mode_ == MutualTlsMode::kUnknown ? MutualTlsMode::kPermissive : global_mode_;
  for (const auto& [ns, mode] : found) namespace_modes_[ns] = mode == Mode::kUnset ? inherited : Convert(mode);
}

MutualTlsMode AuthenticationPolicies::GetNamespaceMutualTlsMode(std::string_view ns) const {
  const auto it = namespace_modes_.find(ns);
  return it == namespace_modes_.end() ? global_mode_ : it->second;
}

std::vector<config::PeerAuthenticationRef> AuthenticationPolicies::GetPeerAuthenticationsForWorkload(
    std::string_view ns, const Labels& labels) const {
  return ForWorkload(by_namespace_, ns, root_namespace_, [&](const config::PeerAuthentication& spec, std::string_view) {
    return !spec.selector || Selects(*spec.selector, labels);
  });
}

std::vector<config::RequestAuthenticationRef> AuthenticationPolicies::GetJwtPoliciesForWorkload(
    std::string_view ns, const Labels& labels) const {
  return ForWorkload(requests_by_namespace_, ns, root_namespace_,
                     [&](const config::RequestAuthentication& spec, std::string_view policy_ns) {
                       return Attaches(spec, policy_ns, ns, labels, by_target_);
                     });
}

MergedPeerAuthentication AuthenticationPolicies::ComposeForWorkload(std::string_view ns, const Labels& labels) const {
  const config::PeerAuthentication *mesh = nullptr, *of_namespace = nullptr, *workload = nullptr;
  for (const config::PeerAuthenticationRef& policy : GetPeerAuthenticationsForWorkload(ns, labels)) {
    const bool root = policy->meta.ns == root_namespace_;
    const config::PeerAuthentication** slot = nullptr;
    if (ForAllWorkloads(policy->spec)) {
      slot = root ? &mesh : &of_namespace;
    } else if (!root) {
      slot = &workload;  // a selector in the root namespace means nothing
    }
    if (slot != nullptr && *slot == nullptr) *slot = &policy->spec;  // the oldest one
  }
  MergedPeerAuthentication out;
  for (const config::PeerAuthentication* level : {mesh, of_namespace, workload}) {
    if (level != nullptr && level->mtls.value_or(Mode::kUnset) != Mode::kUnset) out.mode = Convert(*level->mtls);
  }
  if (workload != nullptr) {
    for (const auto& [port, mode] : workload->port_level_mtls) {
      out.per_port[port] = mode == Mode::kUnset ? out.mode : Convert(mode);
    }
  }
  return out;
}

}  // namespace wavetank::pilot
