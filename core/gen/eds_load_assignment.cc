#include "core/gen/eds_load_assignment.h"

#include "core/gen/locality.h"
#include "core/gen/wire.h"

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
constexpr int kEndpointAddress = 1;
namespace address {
constexpr int kSocketAddress = 1, kPipe = 2, kSocketAddressAddress = 2, kSocketAddressPort = 3, kPipePath = 1;
}
constexpr int kStructValueString = 3;
constexpr int kMapKey = 1, kMapValue = 2;

constexpr std::string_view kUnixPrefix = "unix://";

// istiod: util.go, BuildAddress: whatever has no port is a pipe.
void WriteAddress(const LbEndpoint& e, wire::Writer& out) {
  if (e.port != 0) {
    out.Message(address::kSocketAddress, [&] {
      out.NonEmpty(address::kSocketAddressAddress, *e.address);
      out.Varint(address::kSocketAddressPort, e.port);
    });
    return;
  }
  std::string_view path = *e.address;
  if (path.starts_with(kUnixPrefix)) path.remove_prefix(kUnixPrefix.size());
  out.Message(address::kPipe, [&] { out.NonEmpty(address::kPipePath, path); });
}

// The metadata of the shape goes in the middle: what stands before and after it is written to `scratch` first, so that
// the length is known and nothing has to move.
void WriteEndpoint(const LbEndpoint& e, const EndpointShape& shape, std::string& scratch, wire::Writer& out) {
  scratch.clear();
  wire::Writer parts(&scratch);
  parts.Message(lb_endpoint::kEndpoint, [&] { parts.Message(kEndpointAddress, [&] { WriteAddress(e, parts); }); });
  if (e.health != 0) parts.Varint(lb_endpoint::kHealthStatus, e.health);
  const size_t before = scratch.size();
  parts.UInt32Value(lb_endpoint::kWeight, e.weight);

  const std::string_view written = scratch;
  out.Header(group::kLbEndpoints, written.size() + shape.metadata.size());
  out.Append(written.substr(0, before));
  out.Append(shape.metadata);
  out.Append(written.substr(before));
}

void WriteGroup(const LoadAssignment& assignment, const LocalityLbEndpoints& g, std::string& scratch,
                wire::Writer& out) {
  out.Message(group::kLocality, [&] {
    const LocalityParts parts = SplitLocality(g.locality);
    out.NonEmpty(1, parts.region);
    out.NonEmpty(2, parts.zone);
    out.NonEmpty(3, parts.sub_zone);
  });
  for (const LbEndpoint& e : g.endpoints) WriteEndpoint(e, assignment.shapes[e.shape], scratch, out);
  if (g.weight) out.UInt32Value(group::kWeight, *g.weight);
  if (g.priority != 0) out.Varint(group::kPriority, g.priority);
}

// An entry of map<string, Struct> whose Struct has the one field `name`: the parts of `text`, one after the other.
void WriteStructEntry(std::string_view key, std::string_view name, std::initializer_list<std::string_view> text,
                      wire::Writer& out) {
  size_t length = 0;
  for (std::string_view part : text) length += part.size();
  out.Message(1, [&] {
    out.Bytes(kMapKey, key);
    out.Message(kMapValue, [&] {
      out.Message(1, [&] {
        out.Bytes(kMapKey, name);
        out.Message(kMapValue, [&] {
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

std::string LoadAssignment::Encode(std::string_view cluster_name) const {
  constexpr size_t kBesideMetadata = 48;  // an endpoint's other fields, and a locality's, about
  size_t expected = cluster_name.size() + kBesideMetadata;
  for (const LocalityLbEndpoints& g : localities) {
    expected += kBesideMetadata + g.locality.size();
    for (const LbEndpoint& e : g.endpoints) expected += kBesideMetadata + shapes[e.shape].metadata.size();
  }
  std::string bytes, scratch;
  bytes.reserve(expected);
  scratch.reserve(2 * kBesideMetadata);
  wire::Writer out(&bytes);
  out.NonEmpty(cla::kClusterName, cluster_name);
  for (const LocalityLbEndpoints& g : localities) {
    out.Message(cla::kEndpoints, [&] { WriteGroup(*this, g, scratch, out); });
  }
  return bytes;
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

}  // namespace wavetank::pilot
