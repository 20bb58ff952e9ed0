// The agent's DNS server: which names it answers itself, out of istiod's name table, and how (istiod:
// pkg/dns/client/dns.go). What it does not know goes to the servers of resolv.conf, as it was asked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ip.h"
#include "core/base/random.h"

namespace wavetank::pilot {
struct NameTable;
}

namespace wavetank::agent {

// Of the proxy that it stands beside.
struct DnsOptions {
  std::string proxy_namespace;
  std::string proxy_domain;         // "sample.svc.cluster.local", with or without the namespace
  std::vector<std::string> search;  // of resolv.conf
  // Asked before the first table came, it refuses (SERVFAIL); an agent that listens on port 53 as root passes on.
  bool respond_before_sync = false;
};

enum class DnsType : uint16_t { kA = 1, kCname = 5, kAaaa = 28 };

struct DnsRecord {
  std::string name;  // with the dot at its end
  DnsType type = DnsType::kA;
  IpAddress address;   // of an A or AAAA
  std::string target;  // of a CNAME
  friend bool operator==(const DnsRecord&, const DnsRecord&) = default;
};
inline constexpr uint32_t kDnsTtlSeconds = 30;

struct DnsDecision {
  enum class Kind : uint8_t {
    kAnswer,    // records, perhaps none: the name is known, and has no address of this type
    kUpstream,  // the name is nobody's here
    kServFail,  // no table yet
  };
  Kind kind = Kind::kUpstream;
  std::vector<DnsRecord> records;
};

class DnsTable {
 public:
  explicit DnsTable(DnsOptions options);

  // A new table takes the old one's place.
  void Update(const pilot::NameTable& table);
  // Whether there is one (the agent's readiness depends on it).
  bool ready() const { return ready_; }

  // One question. `name` may end with a dot; letters of both cases are one. Addresses are in the table's order: the
  // server shuffles them (Shuffle), as every lookup of a headless Service goes to another pod.
  DnsDecision Lookup(std::string_view name, uint16_t type) const;
  static void Shuffle(std::vector<DnsRecord>& records, RandomStream& random);

  // Every name that it answers, with the addresses; for the debug page /debug/ndsz.
  std::map<std::string, std::vector<IpAddress>> Names() const;

 private:
  struct Host {
    std::vector<IpAddress> v4, v6;
    std::string alias_of;  // a CNAME to that name; empty: none
  };
  void Add(const std::string& name, const std::vector<IpAddress>& v4, const std::vector<IpAddress>& v6);

  const DnsOptions options_;
  std::string domain_, first_part_;  // "svc.cluster.local", "svc"
  bool ready_ = false;
  std::map<std::string, Host, std::less<>> hosts_;
};

// The names under which a Kubernetes Service may be asked for, each with the dot at its end.
std::vector<std::string> AlternativeHosts(std::string_view host, std::string_view short_name, std::string_view ns,
                                          std::string_view proxy_namespace, std::string_view domain);

}  // namespace wavetank::agent
