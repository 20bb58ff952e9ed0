// CoreDNS's configuration: which server answers for a name, and what its plugins do with a query, in the order of
// CoreDNS's own chain (coredns: plugin.cfg), not of the file.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/ip.h"
#include "core/base/time.h"
#include "core/kube/object.h"

namespace re2 {
class RE2;
}

namespace wavetank::sim {

class Corefile {
 public:
  // As written.
  struct Plugin {
    std::string name;
    std::vector<std::string> words;               // behind the name
    std::vector<std::vector<std::string>> block;  // within its braces, a line each
    std::string place;                            // "line 3", "custom/log.override, line 1"
  };
  struct Server {
    std::vector<std::string> zones;
    std::vector<Plugin> plugins;
  };
  // What CoreDNS's pods find beside the Corefile, by paths within its folder: "NodeHosts", "custom/a.server".
  using Files = std::map<std::string, std::string, std::less<>>;
  // The other keys of ConfigMap kube-system/coredns, and those of coredns-custom, which k3s and AKS mount at
  // /etc/coredns/custom. Null: there is none.
  static Files FilesOf(const kube::Object* coredns, const kube::Object* custom);

  // With its snippets and imports in their places. `files` null: imports of files are passed over. InvalidArgument:
  // CoreDNS does not read it. coredns/caddy: caddyfile/parse.go.
  static absl::StatusOr<std::vector<Server>> Read(std::string_view text, const Files* files);
  // "cluster.local", "cluster.local.:53" and "dns://cluster.local" as "cluster.local"; "." as nothing.
  static std::string ZoneOf(std::string zone);

  // Compiled. InvalidArgument as above, or of a plugin's own words.
  static absl::StatusOr<std::shared_ptr<const Corefile>> Make(std::string_view text, const Files* files);
  ~Corefile();

  bool reloads() const { return reloads_; }
  // What it says and has no effect here: "plugin etcd".
  const std::vector<std::string>& without_effect() const { return without_effect_; }

  // What becomes of a name without its last dot, in small letters. One of:
  struct Step {
    enum class Kind : uint8_t {
      kAddresses,  // of hosts or a template
      kAlias,      // of a template: another name
      kNoSuchName,
      kService,   // the kubernetes plugin answers for it, as `name` below its zone `zone`
      kForward,   // to these servers, which are asked for `name`; none: those of the node
      kNoServer,  // nobody answers (REFUSED, SERVFAIL)
    };
    Kind kind = Kind::kNoServer;
    std::string name, zone;
    std::vector<IpAddress> addresses;
    std::vector<std::string> servers;
    std::optional<Duration> ttl;
    bool falls_through = false;           // kService: what it does not know goes on (AfterServices)
    std::vector<std::string> namespaces;  // kService: of these alone; none: all
  };
  Step Query(std::string name) const;
  // Where the kubernetes plugin has handed a name on.
  Step AfterServices(std::string_view name) const;

 private:
  struct Compiled;
  Corefile();
  Step Ask(std::string name, bool after_services) const;
  absl::Status Add(const Server& server, const Files* files);

  bool reloads_ = false;
  std::vector<std::string> without_effect_;
  std::vector<std::unique_ptr<Compiled>> servers_;
};

}  // namespace wavetank::sim
