// DestinationRules by the namespaces that they hold in, those of one host and namespace merged into one
// (istiod: pilot/pkg/model/push_context.go, setDestinationRules; destination_rule.go, mergeDestinationRule).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/push/export_to_defaults.h"
#include "core/push/host_match.h"
#include "core/push/sidecar_scope.h"

namespace wavetank::pilot {

class DestinationRuleIndex {
 public:
  using Rules = std::vector<ConsolidatedDestRuleRef>;

  // What releases do otherwise.
  struct Ways {
    bool selectors_first = false;  // Change::kSelectorsFirst
    bool by_export = false;        // Change::kRulesMergedByExport
  };
  // `sorted`: by creation time.
  DestinationRuleIndex(const std::vector<config::DestinationRuleRef>& sorted, const ExportToDefaults& defaults,
                       std::string root_namespace, std::string_view domain_suffix, Ways ways);

  // What holds for clients of `client_ns` and a host of namespace `service_ns`: rules of the client's namespace (for
  // clients in the root namespace only its private ones), else those that the service's namespace exports, else those
  // that the root namespace exports. Null if there are none.
  const Rules* Find(std::string_view client_ns, std::string_view hostname, std::string_view service_ns) const;

  // Whether Find could give something for the host to any proxy.
  bool Mentions(std::string_view hostname) const { return all_hosts_.MostSpecific(hostname) != nullptr; }

 private:
  struct Consolidated {
    struct Host {
      Rules rules;
      ExportTo export_to;
    };
    HostTable<Host> hosts;
    void Merge(const config::DestinationRuleRef& rule, const std::string& host, const ExportTo& export_to,
               bool by_export);
  };
  const Rules* Exported(std::string_view owner, std::string_view hostname, std::string_view client_ns) const;

  std::string root_namespace_;
  const Ways ways_;
  // Of rules that are not exported to the same namespaces, those that a client's has: by owner, host and client.
  mutable std::map<std::string, Rules> exported_;
  std::map<std::string, Consolidated, std::less<>> namespace_local_, exported_by_namespace_;
  Consolidated root_namespace_local_;
  HostTable<bool> all_hosts_;
};

}  // namespace wavetank::pilot
