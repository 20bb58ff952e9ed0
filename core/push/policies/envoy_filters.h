// EnvoyFilters by namespace, ready to be applied, and the patches of one proxy (istiod: pilot/pkg/model/envoyfilter.go,
// push_context.go initEnvoyFilters, EnvoyFilters).
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/kinds/envoy_filter.h"
#include "core/model/proxy.h"
#include "core/model/push_request.h"

namespace google::protobuf {
class Message;
}
namespace re2 {
class RE2;
}

namespace wavetank::pilot {

struct EnvoyPatch {
  using Operation = config::EnvoyFilter::Operation;

  ConfigKey from;
  Operation operation = Operation::kInvalid;
  const config::EnvoyFilter::Match* match = nullptr;
  // Of the type that the patch applies to. Null: the patch has no value, or one that is none of that type.
  std::shared_ptr<const google::protobuf::Message> value;
  // Of the proxies: their version begins so, or matches; neither: any.
  std::string version_prefix;
  std::shared_ptr<const re2::RE2> version;
  bool by_domain = false;  // a virtual host's domainName counts

  bool Matches(const Proxy& proxy) const;
};

// In the order in which they are applied.
class EnvoyPatches {
 public:
  using ApplyTo = config::EnvoyFilter::ApplyTo;
  using List = std::vector<const EnvoyPatch*>;

  const List& Of(ApplyTo kind) const;
  void Add(ApplyTo kind, const EnvoyPatch* patch) { by_kind_[kind].push_back(patch); }
  // The EnvoyFilters with patches of these kinds, by namespace and name, each once. istiod: KeysApplyingTo.
  std::vector<ConfigKey> From(std::initializer_list<ApplyTo> kinds) const;

 private:
  std::map<ApplyTo, List> by_kind_;
};

class EnvoyFilters {
 public:
  EnvoyFilters() = default;
  // How a release chooses and orders them: by targetRefs (Change::kEnvoyFilterTargets), by priority before the
  // namespace (Change::kEnvoyFiltersByPriority), and virtual hosts by their domains (Change::kPatchesByDomain).
  struct Rules {
    bool by_target = false, by_priority = false, by_domain = false;
  };
  // `sorted`: by creation time.
  EnvoyFilters(const std::vector<config::EnvoyFilterRef>& sorted, std::string root_namespace, Rules rules);

  // Those of the root namespace and of the proxy's own, by priority and age. Null: no EnvoyFilter selects the proxy.
  // The patches live as long as the index.
  std::shared_ptr<const EnvoyPatches> For(const Proxy& proxy) const;

 private:
  struct Filter {
    config::EnvoyFilterRef config;
    std::vector<std::pair<EnvoyPatches::ApplyTo, EnvoyPatch>> patches;
  };
  std::string root_namespace_;
  Rules rules_;
  std::map<std::string, std::vector<Filter>, std::less<>> by_namespace_;
};

// The values of its patches that cannot be read and therefore count as none, each with its path and what is wrong.
std::vector<std::string> UnreadablePatchValues(const config::EnvoyFilter& filter);

}  // namespace wavetank::pilot
