// What lint knows: rules with stable codes, each a row beside the function that finds it. A code is never used again
// for something else; those that `istioctl analyze` has are its own (istio: pkg/config/analysis/msg/messages.yaml of
// 1.18.2 to 1.30.3), in our words.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/mesh/mesh.h"

namespace wavetank::check {

enum class Level : uint8_t { kInfo, kWarning, kError };
std::string_view LevelName(Level level);  // "info", "warning", "error"

class Findings;

struct Rule {
  std::string_view code;  // "WT101", "IST0101"
  std::string_view name;  // "NetworkWithoutGateway"
  Level level = Level::kWarning;
  std::string_view cause;  // why it hurts, in a sentence
  std::string_view remedy;
  std::string_view incident;  // the public issue that paid for it; empty: none is known
  void (*find)(const Mesh& mesh, Findings& findings) = nullptr;
  bool fails_requests = true;  // false: what it finds is no reason for failed requests (WT801)
  // The releases in which it is asked: from `since` (empty: the first), before `until` (empty: all later ones).
  std::string_view since = {}, until = {};
  bool IsAskedIn(std::string_view istio) const;
};

// What became of an application's requests to a Service, sent in a copy of the settled mesh.
struct RequestOutcome {
  std::string client, cluster, client_ns;  // "sleep.sample@cluster1"
  std::string service, ns;
  int port = 0;
  int64_t sent = 0, failed = 0, retried = 0;
  int64_t refused = 0;               // by AuthorizationPolicies, which is no failure
  std::vector<std::string> reasons;  // of failures, the most frequent first
};

struct Finding {
  const Rule* rule = nullptr;
  std::string cluster, object;  // "cluster1", "Service sample/helloworld"; empty: of the mesh as a whole
  Place place;
  std::string message;        // what is wrong here
  std::string cause, remedy;  // of this one, where the rule's would mislead
  bool made_up = false;       // of an object that `import` made up (fakekube::kMadeUp)
  std::string_view Cause() const { return cause.empty() ? rule->cause : std::string_view(cause); }
  std::string_view Remedy() const { return remedy.empty() ? rule->remedy : std::string_view(remedy); }
  // The same finding in another run, whatever line it has moved to.
  std::string Fingerprint() const;
};

// Collects what one rule finds.
class Findings {
 public:
  // `unix_now`: today, by which certificates that files bring are judged.
  Findings(const Mesh& mesh, const Rule& rule, int64_t unix_now, const std::vector<RequestOutcome>& requests,
           std::vector<Finding>* out)
      : mesh_(mesh), rule_(rule), unix_now_(unix_now), requests_(requests), out_(*out) {}
  int64_t unix_now() const { return unix_now_; }
  const std::vector<RequestOutcome>& requests() const { return requests_; }
  // Of rules asked before this one: those with lower codes.
  const std::vector<Finding>& before() const { return out_; }
  void Add(const MeshCluster& cluster, const kube::Object& object, std::string message);
  // Null: it stands at the cluster.
  void Add(const MeshCluster& cluster, const kube::ObjectRef& object, std::string message);
  // Of configuration; the object itself is looked up.
  void Add(const MeshCluster& cluster, const config::ConfigMeta& meta, std::string message);
  void Add(std::string_view cluster, std::string_view object, const Place& place, std::string message);
  // Of the finding that was added last.
  void Explain(std::string cause, std::string remedy);
  void Append(std::string_view more);  // to its message
  void FollowsFromMadeUp();            // `import` made up what it is about
  // Takes back what an earlier rule found at the same object as the finding that was added last, where this one says
  // why; nullopt: it found nothing there whose message begins so.
  std::optional<Finding> TakeBack(std::string_view code, std::string_view message);
  // A finding of that code, of the cluster or, by "Kind namespace/name", of an object in it, is there already.
  bool Has(std::string_view code, std::string_view cluster, std::string_view object = {}) const;

 private:
  const Mesh& mesh_;
  const Rule& rule_;
  int64_t unix_now_;
  const std::vector<RequestOutcome>& requests_;
  std::vector<Finding>& out_;
};

// By theme; each list is one file's.
const std::vector<Rule>& NetworkRules();
const std::vector<Rule>& GatewayServiceRules();
const std::vector<Rule>& RemoteSecretRules();
const std::vector<Rule>& IdentityRules();
const std::vector<Rule>& ServiceRules();
const std::vector<Rule>& VirtualServiceRules();
const std::vector<Rule>& DestinationRuleRules();
const std::vector<Rule>& SniRules();
const std::vector<Rule>& SidecarRules();
const std::vector<Rule>& EnvoyFilterRules();
const std::vector<Rule>& AnswerRules();
const std::vector<Rule>& MutualTlsRules();
const std::vector<Rule>& ServiceEntryRules();
const std::vector<Rule>& GatewayRules();
const std::vector<Rule>& InjectionRules();
const std::vector<Rule>& VersionRules();
const std::vector<Rule>& AuthorizationRules();
const std::vector<Rule>& NetworkPolicyRules();
const std::vector<Rule>& AnnotationRules();
const std::vector<Rule>& ProviderRules();
const std::vector<Rule>& PolicyRules();
const std::vector<Rule>& SettingRules();
const std::vector<Rule>& RightsRules();
const std::vector<Rule>& OneSideRules();
const std::vector<Rule>& DifferenceRules();
const std::vector<Rule>& WorkloadRules();
// All of them, by code.
const std::vector<const Rule*>& AllRules();
const Rule* FindRule(std::string_view code);  // null: there is none

}  // namespace wavetank::check
