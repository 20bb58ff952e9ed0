#include "core/gen/eds/eds_load_assignment.h"

#include "core/gen/eds/locality.h"
#include "core/gen/wire/wire.h"
#include "core/model/addresses.h"

namespace wavetank::pilot {
namespace {

// Field numbers of envoy/config/endpoint/v3/endpoint_components.proto, endpoint.proto and core/v3/address.proto,
// base.proto. Here rather than from the generated classes, which would cost every user of this file their headers;
// the test reads the bytes back with those classes.
namespace cla {
constexpr int kClusterName = 1, kEndpoints = 2;
}
namespace group {
constexpr int kLocality = 1, kLbEndpoints = 2, kWeight = 3, kPriority = 5;
}
namespace lb_endpoint {
constexpr int kEndpoint = 1, kHealthStatus = 2, kMetadata = 3, kWeight = 4;
}
constexpr int kEndpointAddress = 1, kEndpointMoreAddresses = 4, kMoreAddress = 1;
namespace address {
constexpr int kSocketAddress = 1, kPipe = 2, kSocketAddressAddress = 2, kSocketAddressPort = 3, kPipePath = 1;
}
constexpr int kStructValueString = 3;

// All of the following write backwards, the last field first.

// istiod: util.go, BuildAddress: whatever has no port is a pipe.
void WriteAddress(std::string_view text, uint32_t port, wire::ReverseWriter& out) {
  if (port != 0) {
    out.Message(address::kSocketAddress, [&] {
      out.Varint(address::kSocketAddressPort, port);
      out.NonEmpty(address::kSocketAddressAddress, text);
    });
    return;
  }
  std::string_view path = text;
  if (path.starts_with(kUnixPrefix)) path.remove_prefix(kUnixPrefix.size());
  out.Message(address::kPipe, [&] { out.NonEmpty(address::kPipePath, path); });
}

void WriteMoreAddresses(const std::vector<std::string>& addresses, uint32_t port, wire::ReverseWriter& out) {
  for (auto it = addresses.rbegin(); it != addresses.rend(); ++it) {
    constexpr size_t kFields = 5;
    out.Reserve(kFields * wire::ReverseWriter::kField + it->size());
    out.Message(kEndpointMoreAddresses, [&] { out.Message(kMoreAddress, [&] { WriteAddress(*it, port, out); }); });
  }
}

void WriteEndpoint(const LbEndpoint& e, const EndpointShape& shape, wire::ReverseWriter& out) {
  constexpr size_t kFields = 8;
  out.Reserve(kFields * wire::ReverseWriter::kField + e.address->size() + shape.metadata.size());
  out.Message(group::kLbEndpoints, [&] {
    out.UInt32Value(lb_endpoint::kWeight, e.weight);
    out.Append(shape.metadata);
    if (e.health != 0) out.Varint(lb_endpoint::kHealthStatus, e.health);
    out.Message(lb_endpoint::kEndpoint, [&] {
      if (shape.more_addresses != nullptr) WriteMoreAddresses(*shape.more_addresses, e.port, out);
      out.Message(kEndpointAddress, [&] { WriteAddress(*e.address, e.port, out); });
    });
  });
}

void WriteGroup(const LoadAssignment& assignment, const LocalityLbEndpoints& g, wire::ReverseWriter& out) {
  constexpr size_t kFields = 7;
  out.Reserve(kFields * wire::ReverseWriter::kField);
  if (g.priority != 0) out.Varint(group::kPriority, g.priority);
  if (g.weight) out.UInt32Value(group::kWeight, *g.weight);
  for (auto e = g.endpoints.rbegin(); e != g.endpoints.rend(); ++e) WriteEndpoint(*e, assignment.shapes[e->shape], out);
  out.Reserve(kFields * wire::ReverseWriter::kField + g.locality.size());
  out.Message(group::kLocality, [&] {
    const LocalityParts parts = SplitLocality(g.locality);
    out.NonEmpty(3, parts.sub_zone);
    out.NonEmpty(2, parts.zone);
    out.NonEmpty(1, parts.region);
  });
}

// An entry of map<string, Struct> whose Struct has the one field `name`: the parts of `text`, one after the other.
void WriteStructEntry(std::string_view key, std::string_view name, std::initializer_list<std::string_view> text,
                      wire::Writer& out) {
  size_t length = 0;
  for (std::string_view part : text) length += part.size();
  out.Message(1, [&] {
    out.Bytes(wire::kMapKey, key);
    out.Message(wire::kMapValue, [&] {
      out.Message(1, [&] {
        out.Bytes(wire::kMapKey, name);
        out.Message(wire::kMapValue, [&] {
          out.Header(kStructValueString, length);
          for (std::string_view part : text) out.Append(part);
        });
      });
    });
  });
}

// istiod: pkg/kube/labels/labels.go, CanonicalService.
std::string_view FirstLabel(const Labels* labels, std::initializer_list<std::string_view> names,
                            std::string_view otherwise) {
  if (labels == nullptr) return otherwise;
  for (std::string_view name : names) {
    if (const auto it = labels->find(name); it != labels->end()) return it->second;
  }
  return otherwise;
}

}  // namespace

uint32_t LocalityLbEndpoints::SumOfWeights() const {
  uint32_t sum = 0;
  for (const LbEndpoint& e : endpoints) sum += e.weight;
  return sum;
}

size_t LoadAssignment::EndpointCount() const {
  size_t count = 0;
  for (const LocalityLbEndpoints& g : localities) count += g.endpoints.size();
  return count;
}

std::string_view LoadAssignment::Encode(std::string_view cluster_name, std::string& buffer) const {
  wire::ReverseWriter out(&buffer);
  for (auto g = localities.rbegin(); g != localities.rend(); ++g) {
    out.Message(cla::kEndpoints, [&] { WriteGroup(*this, *g, out); });
  }
  out.Reserve(wire::ReverseWriter::kField + cluster_name.size());
  out.NonEmpty(cla::kClusterName, cluster_name);
  return out.written();
}

std::string LoadAssignment::Encode(std::string_view cluster_name) const {
  std::string buffer;
  return std::string(Encode(cluster_name, buffer));
}

void LoadAssignment::Clear() {
  for (LocalityLbEndpoints& g : localities) {
    g.endpoints.clear();
    spare.push_back(std::move(g.endpoints));
  }
  localities.clear();
  shapes.clear();
  owned_labels.clear();
  owned_metadata.clear();
  owned_addresses.clear();
}

std::vector<LbEndpoint> LoadAssignment::TakeSpare() {
  if (spare.empty()) return {};
  std::vector<LbEndpoint> out = std::move(spare.back());
  spare.pop_back();
  return out;
}

std::string EncodeEndpointMetadata(const EndpointMetadata& m) {
  const std::string_view name =
      FirstLabel(m.labels, {"service.istio.io/canonical-name", "app.kubernetes.io/name", "app"}, m.workload_name);
  std::string_view revision =
      FirstLabel(m.labels, {"service.istio.io/canonical-revision", "app.kubernetes.io/version", "version"}, "latest");
  if (revision == "latest") revision = {};
  std::string bytes;
  constexpr size_t kAround = 120;  // tags, lengths, keys
  bytes.reserve(kAround + m.tls_mode.size() + m.workload_name.size() + m.ns.size() + name.size() + revision.size() +
                m.cluster.size());
  wire::Writer out(&bytes);
  out.Message(lb_endpoint::kMetadata, [&] {
    if (!m.tls_mode.empty() && m.tls_mode != kDisabledTlsMode) {
      WriteStructEntry("envoy.transport_socket_match", "tlsMode", {m.tls_mode}, out);
    }
    WriteStructEntry("istio", "workload", {m.workload_name, ";", m.ns, ";", name, ";", revision, ";", m.cluster}, out);
  });
  return bytes;
}

const std::string& ProfileMetadata(const EndpointProfile& profile, bool without_tls) {
  std::string& made = profile.encoded.metadata[without_tls ? 1 : 0];
  if (made.empty()) {
    made = EncodeEndpointMetadata({without_tls ? std::string_view() : std::string_view(profile.tls_mode),
                                   profile.workload_name, profile.ns, profile.locality.cluster.str(), &profile.labels});
  }
  return made;
}

}  // namespace wavetank::pilot
