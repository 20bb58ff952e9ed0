// RBAC filters: conditions on connections and requests compiled to trees, and their verdict.
// Envoy: source/extensions/filters/common/rbac (matchers.cc, engine_impl.cc), filters/http/rbac, filters/network/rbac
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/ip.h"
#include "fakes/envoy/config/filter_status.h"
#include "fakes/envoy/match/dynamic_metadata.h"
#include "fakes/envoy/match/matchers.h"

namespace envoy::config::rbac::v3 {
class Permission;
class Principal;
class RBAC;
}  // namespace envoy::config::rbac::v3

namespace google::protobuf {
class Any;
}

namespace wavetank::envoysim {

struct RequestSpec;

// What is asked about.
struct RbacSubject : ConnectionFacts {
  explicit RbacSubject(const ConnectionFacts& facts) : ConnectionFacts(facts), source(facts.connection_source) {}

  IpAddress source;                      // where the request was sent from
  const RequestSpec* request = nullptr;  // null at the network level
  const DynamicMetadata* metadata = nullptr;
};

// A permission or a principal.
class RbacCondition {
 public:
  // InvalidArgument: a pattern within cannot be compiled; Unimplemented: it is of a kind that is not simulated.
  static absl::StatusOr<RbacCondition> Make(const envoy::config::rbac::v3::Permission& permission);
  static absl::StatusOr<RbacCondition> Make(const envoy::config::rbac::v3::Principal& principal);
  // Any of them; never, without any.
  template <typename List>
  static absl::StatusOr<RbacCondition> AnyOf(const List& list) {
    return Combined(Kind::kOr, list);
  }

  bool Matches(const RbacSubject& subject) const;

 private:
  enum class Kind : uint8_t {
    kAny,
    kAnd,
    kOr,
    kNot,
    kHeader,
    kPath,
    kServerName,
    kIdentity,
    kPeerPrincipal,
    kDirectSource,
    kConnectionSource,
    kSource,
    kDestination,
    kPortRange,
    kMetadata,
  };
  template <typename List>
  static absl::StatusOr<RbacCondition> Combined(Kind kind, const List& list);
  template <typename Message>
  static absl::StatusOr<RbacCondition> Not(const Message& message);
  template <typename Range>
  static absl::StatusOr<RbacCondition> In(Kind kind, const Range& range);
  template <typename Matcher>
  static absl::StatusOr<RbacCondition> Text(Kind kind, const Matcher& matcher);
  static absl::StatusOr<RbacCondition> Header(const envoy::config::route::v3::HeaderMatcher& matcher);
  static absl::StatusOr<RbacCondition> Metadata(const envoy::type::matcher::v3::MetadataMatcher& matcher);
  static absl::StatusOr<RbacCondition> PathTemplate(const google::protobuf::Any& config);
  static RbacCondition Constant(bool matches);

  Kind kind_ = Kind::kAny;
  std::vector<RbacCondition> children_;
  std::optional<StringMatch> text_;
  std::optional<HeaderMatch> header_;
  std::optional<MetadataMatch> metadata_;
  IpPrefix prefix_;
  uint32_t start_ = 0, end_ = 0;  // ports, [start, end)
};

// An envoy.config.rbac.v3.RBAC.
struct RbacRules {
  enum class Action : uint8_t { kAllow, kDeny, kLog };
  struct Policy {
    std::string name;
    RbacCondition permissions, principals;
  };
  struct Verdict {
    bool allowed = true;
    std::string_view policy;  // the first, by name, that matches; empty if none does
  };

  Action action = Action::kAllow;
  std::vector<Policy> policies;  // by name

  // Errors are those of its conditions.
  static absl::StatusOr<RbacRules> Make(const envoy::config::rbac::v3::RBAC& rules);
  Verdict Decide(const RbacSubject& subject) const;
};

// A filter of either level. Shadow rules decide nothing but counters.
struct RbacConfig {
  std::optional<RbacRules> rules, shadow;
  // Whole names of counters; those of shadow rules have their prefix in between.
  std::string allowed, denied, shadow_allowed, shadow_denied;
  std::string shadow_policy_key;  // under which the policy of the shadow rules' verdict is noted

  // From either filter's message; counters begin with `prefix`, "http.in." or "tcp.". Errors are
  // those of its rules, or what Envoy says when it refuses the message.
  template <typename Message>
  static absl::StatusOr<RbacConfig> Make(const Message& message, const std::string& prefix);
};

// "rbac_access_denied_matched_policy[name]", as the details of an answer or the end of a connection say it.
std::string RbacDenial(std::string_view policy);

}  // namespace wavetank::envoysim
