#include "core/gen/nds/name_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/ip.h"
#include "core/gen/view/needs_push.h"
#include "core/gen/view/proxy_view.h"
#include "core/gen/wire/wire.h"
#include "core/model/clusterset.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace wavetank::pilot {
namespace {

// istio.io/istio/pkg/dns/proto/nds.proto: NameTable { map<string, NameInfo> table = 1 }.
constexpr int kTable = 1;
constexpr int kIps = 1, kRegistry = 2, kShortName = 3, kNamespace = 4;

class Builder {
 public:
  Builder(const Proxy& proxy, const PushContext& push) : proxy_(proxy), push_(push) {}

  NameTable Build() {
    if (push_.profile().Has(Change::kNamesByListener)) {
      for (const EgressListener& egress : proxy_.sidecar_scope->egress_listeners) {
        for (const ServiceRef& service : egress.services) Add(*service);
      }
    } else {
      for (const ServiceRef& service : proxy_.sidecar_scope->services()) Add(*service);
    }
    return std::move(out_);
  }

 private:
  void Add(const Service& service) {
    std::vector<std::string> ips;
    const std::vector<std::string> addresses = AddressesForProxy(service, proxy_, push_.profile());
    const bool headless = std::find(addresses.begin(), addresses.end(), kUnspecifiedIp) != addresses.end();
    for (const std::string& address : addresses) {
      if (IsIpAddress(address) && address != kUnspecifiedIp) ips.push_back(address);  // no prefix
    }
    if (ips.empty() && !headless) return;
    if (ips.empty() && service.resolution == Resolution::kPassthrough && !service.ports.empty()) {
      ips = AddInstances(service);
    }
    if (ips.empty()) return;
    const bool kubernetes = service.attributes.registry == Provider::kKubernetes;
    // Short names are those of the Service in the cluster.
    const bool has_short_name = kubernetes && !service.hostname.ends_with(kClusterSetDomain);
    const auto [at, added] = out_.hosts.try_emplace(service.hostname);
    NameTable::Entry& entry = at->second;
    if (added || (kubernetes && entry.registry != ProviderName(Provider::kKubernetes))) {
      // A Kubernetes service beats a ServiceEntry that only decorates it.
      entry.ips = std::move(ips);
      entry.registry = ProviderName(service.attributes.registry);
      if (has_short_name) {
        entry.ns = service.attributes.ns;
        entry.short_name = service.attributes.name;
      }
    } else if (entry.registry != ProviderName(Provider::kKubernetes)) {
      entry.ips.insert(entry.ips.end(), ips.begin(), ips.end());
    }
  }

  // Addresses of a headless service. Not across networks: clients would dial them directly.
  std::vector<std::string> AddInstances(const Service& service) {
    std::vector<std::string> ips;
    for (const ServiceInstance& instance : push_.ServiceInstancesByPort(service, service.ports[0].port, {})) {
      const EndpointProfile& profile = instance.endpoint.p();
      if (!proxy_.InNetwork(profile.network)) continue;
      if (of_ready_pods_ && instance.endpoint.health != HealthStatus::kHealthy) continue;
      if (!profile.sub_domain.empty() && !AddPod(service, instance.endpoint)) continue;
      const bool here = proxy_.InCluster(profile.locality.cluster);
      if (here || push_.env().features.headless_across_clusters) AppendAddresses(instance.endpoint, ips);
    }
    return ips;
  }

  static void AppendAddresses(const IstioEndpoint& endpoint, std::vector<std::string>& ips) {
    ips.push_back(endpoint.address);
    ips.insert(ips.end(), endpoint.p().more_addresses.begin(), endpoint.p().more_addresses.end());
  }

  // "mysql-0.mysql.ns.svc.cluster.local". Two clusters may have a pod of that name: the proxy's own wins.
  bool AddPod(const Service& service, const IstioEndpoint& endpoint) {
    const size_t dot = service.hostname.find('.');
    if (dot == std::string::npos) return false;
    NameTable::Entry entry;
    AppendAddresses(endpoint, entry.ips);
    entry.registry = ProviderName(service.attributes.registry);
    entry.ns = service.attributes.ns;
    entry.short_name = absl::StrCat(endpoint.p().host_name, ".", endpoint.p().sub_domain);
    const std::string host = absl::StrCat(entry.short_name, service.hostname.substr(dot));
    const auto at = out_.hosts.find(host);
    if (at == out_.hosts.end()) {
      out_.hosts.emplace(host, std::move(entry));
    } else if (proxy_.InCluster(endpoint.p().locality.cluster)) {
      at->second = std::move(entry);
    }
    return true;
  }

  const Proxy& proxy_;
  const PushContext& push_;
  const bool of_ready_pods_ = push_.profile().Has(Change::kNamesOfReadyPods);
  NameTable out_;
};

// Calls `field(number, bytes)` for each length-delimited field; false if the message is not well-formed.
template <typename Field>
bool ForEachField(std::string_view bytes, Field field) {
  using google::protobuf::internal::WireFormatLite;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  while (const uint32_t tag = in.ReadTag()) {
    if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&in, tag)) return false;
      continue;
    }
    uint32_t size = 0;
    std::string value;
    if (!in.ReadVarint32(&size) || !in.ReadString(&value, static_cast<int>(size))) return false;
    if (!field(WireFormatLite::GetTagFieldNumber(tag), std::move(value))) return false;
  }
  return in.ConsumedEntireMessage();
}

bool DecodeEntry(std::string_view bytes, NameTable::Entry& out) {
  return ForEachField(bytes, [&](int number, std::string value) {
    if (number == kIps)
      out.ips.push_back(std::move(value));
    else if (number == kRegistry)
      out.registry = std::move(value);
    else if (number == kShortName)
      out.short_name = std::move(value);
    else if (number == kNamespace)
      out.ns = std::move(value);
    return true;
  });
}

bool NeedsPush(const PushRequest& request, const Proxy& proxy) {
  if (!request.full) return (request.reasons & Reason(TriggerReason::kHeadlessEndpoint)) != 0;
  return AnyConcerns(XdsType::kNds, request.configs_updated, proxy);
}

class NdsGenerator : public Generator {
 public:
  GeneratedResources Generate(const Proxy& proxy, const WatchedResource& /*watched*/,
                              const PushRequest& request) override {
    GeneratedResources out;
    if (!NeedsPush(request, proxy) || proxy.IsRouter() || proxy.sidecar_scope == nullptr) {
      out.send = false;
      return out;
    }
    out.resources.push_back({"", EncodeNameTable(BuildNameTable(proxy, *request.push))});
    return out;
  }
};

}  // namespace

NameTable BuildNameTable(const Proxy& proxy, const PushContext& push) { return Builder(proxy, push).Build(); }

std::string EncodeNameTable(const NameTable& table) {
  return wire::Encode([&](wire::Writer& w) {
    for (const auto& [host, entry] : table.hosts) {
      w.Message(kTable, [&, &name = host, &info = entry] {
        w.Bytes(wire::kMapKey, name);
        w.Message(wire::kMapValue, [&] {
          w.Repeated(kIps, info.ips);
          w.NonEmpty(kRegistry, info.registry);
          w.NonEmpty(kShortName, info.short_name);
          w.NonEmpty(kNamespace, info.ns);
        });
      });
    }
  });
}

absl::StatusOr<NameTable> DecodeNameTable(std::string_view bytes) {
  NameTable out;
  const bool ok = ForEachField(bytes, [&](int number, std::string value) {
    if (number != kTable) return true;
    std::string host;
    NameTable::Entry entry;
    const bool fields = ForEachField(value, [&](int part, std::string content) {
      if (part == wire::kMapKey) host = std::move(content);
      return part != wire::kMapValue || DecodeEntry(content, entry);
    });
    out.hosts[host] = std::move(entry);
    return fields;
  });
  if (!ok) return absl::InvalidArgumentError("not a NameTable");
  return out;
}

std::unique_ptr<Generator> MakeNdsGenerator() { return std::make_unique<NdsGenerator>(); }

}  // namespace wavetank::pilot
