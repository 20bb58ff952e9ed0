#include "scenarios/mesh/installer_files.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/kube/yaml.h"
#include "fakes/kube/objects/kinds.h"
#include "fmt/format.h"
#include "scenarios/mesh/istioctl.h"

namespace wavetank::scenario {
namespace {

using nlohmann::json;

bool IsKindFile(const json& document) {
  return fakekube::GroupOf(Text(document, "apiVersion")) == "kind.x-k8s.io" && Text(document, "kind") == "Cluster";
}
bool IsOperator(const json& document) {
  return fakekube::GroupOf(Text(document, "apiVersion")) == "install.istio.io" &&
         Text(document, "kind") == "IstioOperator";
}
fakekube::OtherDocuments OfInstallers() {
  return {[](const json& document) { return IsKindFile(document) || IsOperator(document); }, {}};
}

// The first part of "10.244.0.0/16,fd00:10:244::/56".
std::string FirstRange(const std::string& text) { return text.substr(0, text.find(',')); }

// [first, end) of an IPv4 CIDR or of "from-to"; InvalidArgument: it is neither.
absl::StatusOr<std::pair<uint64_t, uint64_t>> Bounds(const std::string& text) {
  const auto bad = [&] {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no range of IPv4 addresses; write one as 10.10.0.0/16", text));
  };
  const auto address = [](const std::string& part) -> std::optional<uint64_t> {
    const absl::StatusOr<IpAddress> ip = IpAddress::Parse(part);
    if (!ip.ok() || !ip->is_v4()) return std::nullopt;
    return ip->low();
  };
  if (const size_t dash = text.find('-'); dash != std::string::npos) {
    const auto from = address(text.substr(0, dash)), to = address(text.substr(dash + 1));
    if (!from || !to || *to < *from) return bad();
    return std::pair(*from, *to + 1);
  }
  const size_t slash = text.find('/');
  int bits = 0;
  const auto ip = address(text.substr(0, slash));
  if (slash == std::string::npos || !ip || !absl::SimpleAtoi(text.substr(slash + 1), &bits) || bits < 1 || bits > 32) {
    return bad();
  }
  const uint64_t size = uint64_t{1} << (32 - bits);
  return std::pair(*ip & ~(size - 1), (*ip & ~(size - 1)) + size);
}

std::string Trimmed(std::string text) {
  std::erase(text, ' ');
  return text;
}

// What MetalLB may give away, in order: of pools that it takes addresses from by itself.
std::vector<std::string> PoolAddresses(const json& object) {
  std::vector<std::string> out;
  const auto add = [&](const json& pool, const char* automatic) {
    if (At(pool, automatic) == false) return;
    for (const json& range : Items(At(pool, "addresses"))) out.push_back(Trimmed(TextOf(range)));
  };
  const std::string version = Text(object, "apiVersion");
  if (fakekube::GroupOf(version) == "metallb.io" && Text(object, "kind") == "IPAddressPool")
    add(At(object, "spec"), "autoAssign");
  const json& meta = At(object, "metadata");
  if (Text(object, "kind") == "ConfigMap" && Text(meta, "namespace") == "metallb-system" &&
      Text(meta, "name") == "config") {
    const absl::StatusOr<json> config = kube::ParseYaml(Text(At(object, "data"), "config"), "config");
    if (config.ok()) {
      for (const json& pool : Items(At(*config, "address-pools"))) add(pool, "auto-assign");
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<fakekube::Manifest>> LoadRendered(const std::string& path) {
  fakekube::OtherDocuments others = OfInstallers();
  absl::StatusOr<std::vector<fakekube::Manifest>> out = fakekube::LoadManifests(path, &others);
  if (!out.ok()) return out;
  for (const fakekube::Manifest& other : others.found) {
    if (!IsOperator(other.object)) continue;
    const auto at = [&](const absl::Status& why) {
      return absl::Status(why.code(), fmt::format("{}:{}: an IstioOperator: {}", other.file, other.line, Message(why)));
    };
    const absl::StatusOr<std::string> istioctl = FindIstioctl();
    if (!istioctl.ok()) {
      return at(absl::FailedPreconditionError(
          fmt::format("it is rendered by istioctl, and {}; install istioctl 1.18.2, or put what `istioctl manifest "
                      "generate -f {}` prints in its place",
                      Message(istioctl.status()), other.file)));
    }
    const absl::StatusOr<std::string> text = GenerateManifests(*istioctl, JsonText(other.object));
    if (!text.ok()) return at(text.status());
    absl::StatusOr<std::vector<fakekube::Manifest>> rendered =
        fakekube::ParseManifests(fmt::format("{} (rendered by istioctl)", other.file), *text);
    if (!rendered.ok()) return rendered;
    for (fakekube::Manifest& manifest : *rendered) out->push_back(std::move(manifest));
  }
  return out;
}

absl::StatusOr<ClusterRanges> ReadRanges(const ClusterSpec& cluster) {
  ClusterRanges out;
  std::vector<std::string> pools;
  for (const ManifestSpec& spec : cluster.manifests) {
    if (!spec.objects.is_null()) {
      for (const json& object : Items(spec.objects)) {
        for (std::string& range : PoolAddresses(object)) pools.push_back(std::move(range));
      }
      continue;
    }
    fakekube::OtherDocuments others = OfInstallers();
    const absl::StatusOr<std::vector<fakekube::Manifest>> manifests = fakekube::LoadManifests(spec.path, &others);
    if (!manifests.ok()) return manifests.status();
    for (const fakekube::Manifest& manifest : *manifests) {
      for (std::string& range : PoolAddresses(manifest.object)) pools.push_back(std::move(range));
    }
    for (const fakekube::Manifest& other : others.found) {
      if (!IsKindFile(other.object)) continue;
      const json& networking = At(other.object, "networking");
      if (Text(networking, "ipFamily") == "ipv6") {
        return absl::InvalidArgumentError(
            fmt::format("{}:{}: ipFamily ipv6 is not simulated; clusters have IPv4 addresses", other.file, other.line));
      }
      // kind: pkg/internal/apis/config/default.go.
      out.pods = FirstRange(Text(networking, "podSubnet", "10.244.0.0/16"));
      out.services = FirstRange(Text(networking, "serviceSubnet", "10.96.0.0/16"));
      for (const std::string* range : {&out.pods, &out.services}) {
        if (const auto bounds = Bounds(*range); !bounds.ok()) {
          return absl::InvalidArgumentError(fmt::format("{}:{}: {}", other.file, other.line, Message(bounds.status())));
        }
      }
      if (const size_t nodes = Items(At(other.object, "nodes")).size(); nodes > 1) {
        out.notes.push_back(
            fmt::format("{}:{}: {} nodes are asked for, and the cluster has one", other.file, other.line, nodes));
      }
    }
  }
  std::erase_if(pools, [](const std::string& range) { return range.find(':') != std::string::npos; });  // IPv6
  for (const std::string& range : pools) {
    if (const auto bounds = Bounds(range); !bounds.ok())
      return absl::InvalidArgumentError(fmt::format("a pool of MetalLB: {}", Message(bounds.status())));
  }
  if (!pools.empty()) out.load_balancers = pools.front();
  if (pools.size() > 1) {
    out.notes.push_back(
        fmt::format("of MetalLB's {} ranges the first, {}, is given to load balancers", pools.size(), pools.front()));
  }
  return out;
}

std::vector<std::string> SharedRanges(const Scenario& scenario) {
  std::vector<std::string> out;
  for (size_t i = 0; i < scenario.clusters.size(); ++i) {
    for (size_t j = i + 1; j < scenario.clusters.size(); ++j) {
      const ClusterSpec &a = scenario.clusters[i], &b = scenario.clusters[j];
      // Of two IP families that of IPv4, which stands first.
      const auto one = Bounds(a.pod_cidr.substr(0, a.pod_cidr.find(','))),
                 other = Bounds(b.pod_cidr.substr(0, b.pod_cidr.find(',')));
      if (a.network != b.network || !one.ok() || !other.ok()) continue;
      if (one->second <= other->first || other->second <= one->first) continue;
      out.push_back(fmt::format(
          "{} and {} are on one network, and their pods' ranges overlap ({}, {}): what one sends to a pod of the other "
          "in there stays with its own; give each a range of its own, or a network",
          a.name, b.name, a.pod_cidr, b.pod_cidr));
    }
  }
  return out;
}

}  // namespace wavetank::scenario
