// Names that requests and connections ask for, looked up when they do. One cache per name of a cache in an Envoy.
// Envoy: source/extensions/common/dynamic_forward_proxy/dns_cache_impl.cc
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/host.h"
#include "fakes/envoy/extensions/dns_cache_config.h"
#include "fakes/envoy/process/process.h"
#include "fakes/envoy/tcp/address.h"
#include "fakes/envoy/tcp/network.h"

namespace wavetank::envoysim {

// "HOST:PORT" as caches and clusters know a host: a name, an address or either with a port; empty: there is none.
// Envoy: dns_cache.h, DnsHostInfo::normalizeHostForDfp
std::string NormalisedHost(std::string_view host, uint16_t default_port);

class DnsCache {
 public:
  struct Lookup {
    enum class Status : uint8_t {
      kKnown,    // at `addresses`, of which the first counts
      kUnknown,  // `details` say why
      kAsking,   // `done` will be called
      kFull,     // no room for one more host
      kBusy,     // nor for one more that waits
    };
    Status status = Status::kUnknown;
    std::vector<SocketAddress> addresses;
    std::string details;
  };
  // What is known of a host that is resolved has changed; no addresses: it is forgotten.
  using OnChange = std::function<void(const std::string& host, const std::vector<SocketAddress>& addresses)>;

  DnsCache(Process& process, const DnsCacheConfig& config, OnChange on_change);
  ~DnsCache();
  DnsCache(const DnsCache&) = delete;
  DnsCache& operator=(const DnsCache&) = delete;

  const DnsCacheConfig& config() const { return config_; }
  // `done` is called later, once, and only if kAsking was returned. `host`: as NormalisedHost() has it.
  Lookup Find(const std::string& host, Callback done);
  // Somebody has chosen the host.
  void Touch(const std::string& host);
  // Those that have addresses, sorted.
  std::vector<std::pair<std::string, std::vector<SocketAddress>>> Known() const;

 private:
  struct Host {
    std::string name;
    uint16_t port = 0;
    std::vector<SocketAddress> addresses;
    bool complete = false;  // it was answered once
    std::string details;
    Time used{};
    uint64_t query = 0;  // the present one's number; 0: none
    TimerId refresh = kNoTimer, limit = kNoTimer;
    std::vector<Callback> waiting;
  };
  void Ask(const std::string& key);
  void Answered(const std::string& key, uint64_t query, const absl::StatusOr<DnsAnswer>& answer, bool timed_out);
  void Again(const std::string& key);
  void Forget(const std::string& key);

  Process& process_;
  const DnsCacheConfig config_;
  const OnChange on_change_;
  std::map<std::string, Host> hosts_;  // by NormalisedHost()
  uint64_t queries_ = 0;
  uint32_t waiting_ = 0;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::envoysim
